//! Code shared by the programs here.

pub mod cells;
