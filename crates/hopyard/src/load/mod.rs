//! Load: the loops that make and receive traffic, and the protocol that drives them.
//!
//! [`worker`] runs at an endpoint and speaks [`protocol`] on its stdin and stdout; [`remote`] is the
//! controller's end of that pipe. The loops in `flow` do nothing but socket calls and plain stores.

mod crew;
mod flow;
pub(crate) mod latency;
pub(crate) mod lines;
pub mod protocol;
pub mod remote;
mod scheduling;
mod session;
mod socket;
pub mod spec;
mod tally;
pub mod worker;

pub use spec::LoadSpec;
