//! Devices of `/dev/net/tun` in throw-away namespaces, with real traffic. Needs root.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a test fails by panicking"
)]

mod offloads;
mod owners;
mod queues;
mod steering;
#[path = "../world/mod.rs"]
mod world;
mod wrong;
