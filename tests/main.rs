//! Privileged tests: real namespaces, real traffic, the real program.
//!
//! ```text
//! cargo test -p hopyard --test lab
//! ```
//!
//! They need root; not being root is a failure. Which run beside each other is in `support/machine.rs`.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a test fails by panicking"
)]

mod ab;
mod af_xdp;
mod apis;
mod apply;
mod attach;
mod awake;
mod axes;
mod bisect;
mod book;
mod broken;
mod chance;
mod ci;
mod claims;
mod conformance;
mod connections;
mod containers;
mod cpu;
mod device_offloads;
mod diff;
mod directories;
mod doctor;
mod endpoints;
mod exports;
mod fetches;
mod first_packet;
mod fleet;
mod floods;
mod flow_steering;
mod forward;
mod guest_hook;
mod hooks;
mod host_link;
mod hostile_guests;
mod hostile_runs;
mod html;
mod interrupts;
mod kept;
mod kernels;
mod kills;
mod labs;
mod learning;
mod left_out;
mod leftovers;
mod moves;
mod multipath;
mod napi;
mod netfilter;
mod offloads;
mod outstanding;
mod ovs;
mod ovs_failures;
mod packages;
mod packet_sizes;
mod pipes;
mod profile;
mod progress;
mod protocol;
mod published;
mod recommendation;
mod replay;
mod requests;
mod resume;
mod rootless;
mod ruleset;
mod runs;
mod scale;
mod searches;
mod services;
mod shortcut;
mod slow_rules;
mod support;
mod switch_metrics;
mod switch_trace;
mod switches;
mod tapswitch;
mod terminals;
mod totals;
mod transmit_steering;
mod tunnel_program;
mod turns;
mod udp_gso;
mod unix_sockets;
mod uplink;
mod watch;
mod wire;
mod workers;
mod xdp;
mod zero_copy;
