//! What a switch must be to those beside it: real stacks, real devices, in throw-away namespaces.
//!
//! `frames.rs` asks where single frames go. This asks what the claims of the 2006 proposal say of the
//! uplink (never taken down, nothing of the host's own lost), of guests as they are (bridges behind
//! them, large sends, other MTUs, taps) and of neighbour discovery. It needs root.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod flow;
mod foreign;
mod frames;
mod guests;
mod hooks;
mod kinds;
mod life;
mod listen;
mod many;
mod neighbours;
mod netlink;
mod passed_by;
mod rules;
mod site;
#[expect(dead_code, reason = "other tests use the rest")]
#[path = "../../../../tests/support/skip.rs"]
mod skip;
mod sockets;
mod untouched;
#[expect(dead_code, reason = "other tests use the rest")]
#[path = "../world/mod.rs"]
mod world;
