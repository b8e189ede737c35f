//! The shortcut: connections between two ports of a switch by sockmap. Real traffic, in throw-away namespaces. It needs
//! root and cgroup v2.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod bench;
mod data;
mod life;
mod rules;
mod stream;
#[expect(dead_code, reason = "other tests use the rest")]
#[path = "../world/mod.rs"]
mod world;
