//! The host around the program: its signals and programs, files that somebody else may have made, and owners of
//! leftovers.

pub mod abandoned;
pub mod bounded;
mod note;
pub mod owner;
pub mod programs;
pub mod signals;

pub use note::note;
