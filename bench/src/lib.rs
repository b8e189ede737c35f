//! What the programs here share.

pub mod cells;
