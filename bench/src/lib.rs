//! Code shared by the programs here.

pub mod cells;
mod helper;

pub use helper::Helper;
