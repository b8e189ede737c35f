//! Code shared by the programs here.

pub mod cells;
mod ready;

pub use ready::Ready;
