//! The plugin as a container runtime calls it, in throw-away hosts. Needs root.
//!
//! The scenarios are those of the reference plugins' own suites for `bridge` and `macvlan`, where they make sense, and those
//! that these lack: isolation and spoofing, killed calls, GC.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod attach;
mod bandwidth;
mod changing;
mod crowd;
mod dhcp;
mod failures;
mod garbage;
mod host;
mod host_local;
mod netavark;
mod podman;
mod rules;
mod states;
mod tools;
mod who_reserves;

#[expect(dead_code, reason = "other tests use the rest")]
#[path = "../../../../tests/support/skip.rs"]
mod skip;
