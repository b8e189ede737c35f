//! Code shared by the programs here.

mod batch;
pub mod cells;
mod helper;

pub use batch::Batch;
pub use helper::Helper;
