//! Load: the loops that make and receive traffic, and the protocol that drives them.
//!
//! [`worker`] runs at an endpoint and speaks [`protocol`] on its stdin and stdout; [`remote`] is the
//! controller's end of that pipe. The loops in `flow` do nothing but socket calls and plain stores.

mod attend;
pub mod endpoint;
mod flow;
mod flow_thread;
mod greeting;
mod input;
mod journal;
pub mod kernel_files;
pub mod latency;
pub mod lines;
mod loops;
pub mod meter;
mod numbered;
pub mod protocol;
mod receiver;
pub mod remote;
mod scheduling;
mod session;
mod socket;
mod sockets;
pub mod spec;
mod summary;
mod tally;
pub mod worker;

pub use socket::DATAGRAM_PATIENCE;
pub use sockets::{Place, Sockets};
pub use spec::{LoadSpec, least_load, pace_of};

/// What `fuzz/` has of a pipe: the messages that are heard of bytes, and why not all of them.
///
/// # Errors
/// There is no thread to hear them.
#[cfg(fuzzing)]
pub fn heard<T: serde::de::DeserializeOwned + Send + 'static>(
    bytes: Vec<u8>,
) -> std::io::Result<Vec<std::io::Result<T>>> {
    lines::hear_all(std::io::Cursor::new(bytes))
}
