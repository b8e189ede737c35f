//! What ports may do to each other, to the host and to the wire: isolation, deferred checksums, servers that nobody
//! asked for, broadcasts to thousands of ports. Real devices, in throw-away namespaces. It needs root.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod checksums;
mod down;
mod flood;
#[expect(dead_code, reason = "other tests use the rest")]
#[path = "../uplink/frames.rs"]
mod frames;
mod isolation;
#[expect(dead_code, reason = "other tests use the rest")]
#[path = "../uplink/listen.rs"]
mod listen;
mod mtu;
mod multicast;
mod owners;
#[expect(dead_code, reason = "other tests use the rest")]
#[path = "../packet/mod.rs"]
mod packet;
mod rates;
mod servers;
#[expect(dead_code, reason = "other tests use the rest")]
#[path = "../uplink/site.rs"]
mod site;
mod trace;
#[expect(dead_code, reason = "other tests use the rest")]
#[path = "../world/mod.rs"]
mod world;
