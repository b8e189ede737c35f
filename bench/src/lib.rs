//! Code shared by the programs here.

pub mod cells;
mod helper;
mod scheduled;

pub use helper::Helper;
pub use scheduled::Scheduled;
