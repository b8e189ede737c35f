//! Privileged tests: real namespaces, real traffic, the real program.
//!
//! ```text
//! cargo test -p hopyard --test lab
//! ```
//!
//! They need root; not being root is a failure. What measures, or compares the state of the machine,
//! runs alone ([`support::alone`]); everything else runs beside others ([`support::beside`]).

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a test fails by panicking"
)]

mod ab;
mod axes;
mod book;
mod broken;
mod chance;
mod claims;
mod conformance;
mod containers;
mod cpu;
mod diff;
mod directories;
mod doctor;
mod exports;
mod fetches;
mod floods;
mod forward;
mod hooks;
mod hostile_guests;
mod hostile_runs;
mod html;
mod interrupts;
mod kept;
mod kernels;
mod kills;
mod labs;
mod leftovers;
mod netfilter;
mod offloads;
mod ovs;
mod ovs_failures;
mod packages;
mod packet_sizes;
mod pipes;
mod profile;
mod progress;
mod protocol;
mod recommendation;
mod requests;
mod resume;
mod runs;
mod scale;
mod searches;
mod support;
mod switches;
mod tapswitch;
mod terminals;
mod totals;
mod turns;
mod udp_gso;
mod watch;
mod workers;
