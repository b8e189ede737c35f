//! Running tap switches, and asking them what they are doing.
//!
//! A switch is a process in the foreground. It answers on the socket `ctl` of a directory of its name: whoever
//! connects gets one document and the end of the file.

mod document;
mod home;

pub use document::{Document, PortDocument, QueuesDocument, SCHEMA};
pub use home::{Claim, Error, HOME, names, need_free, read, socket};
