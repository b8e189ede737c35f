//! What no cell of a plan can show: things done in throw-away namespaces that work or do not, and pairs
//! of things timed side by side.

mod churn;
mod copies;
mod definition;
mod drops;
mod filters;
mod frames;
mod site;
mod steps;
mod taps;
mod threads;
mod tunnel;
mod udp;
mod untouched;
mod vhost;

use serde::{Deserialize, Serialize};

use crate::lab;
use crate::model::UnknownName;

/// What was seen of a deed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FunctionalCheck {
    /// Did it do what is claimed?
    pub passed: bool,
    /// What was seen, without a full stop.
    pub seen: String,
}

impl FunctionalCheck {
    fn passed(seen: String) -> Self {
        Self { passed: true, seen }
    }

    fn failed(seen: String) -> Self {
        Self {
            passed: false,
            seen,
        }
    }
}

/// A deed, or why it cannot be done here.
pub type Done = Result<FunctionalCheck, String>;

/// What was timed, block by block.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Timed {
    /// In words.
    pub what: String,
    /// A value for each block.
    pub values: Vec<f64>,
    /// What each is compared with; without it the values stand by themselves.
    pub base: Option<Vec<f64>>,
}

/// A bench, or why it cannot be had here.
pub(crate) type Benched = Result<Timed, String>;

/// What can go wrong with either.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    /// The kernel's objects.
    #[error(transparent)]
    Net(#[from] hopyard_net::Error),
    /// A tap or tun.
    #[error(transparent)]
    Tap(#[from] hopyard_tap::Error),
    /// The direct switch.
    #[error(transparent)]
    Switch(#[from] hopyard_switch::Error),
    #[error(transparent)]
    Lab(#[from] lab::Error),
    /// A measured window.
    #[error(transparent)]
    Measure(#[from] crate::measure::Error),
    #[error(transparent)]
    Name(#[from] UnknownName),
    /// A socket.
    #[error("cannot {what}")]
    Socket {
        what: &'static str,
        #[source]
        source: std::io::Error,
    },
    /// What it takes is not here.
    #[error("{0}")]
    Lacking(String),
}

type Result<T, E = Error> = std::result::Result<T, E>;

/// Names what was tried with a socket.
fn socket(what: &'static str) -> impl Fn(std::io::Error) -> Error {
    move |source| Error::Socket { what, source }
}

type Named<T> = (&'static str, fn() -> Result<T>);

/// Deeds by name.
pub(super) static DEEDS: &[Named<FunctionalCheck>] = &[
    ("plain-program-on-tap", taps::plain_program),
    ("queues-come-and-go", churn::queues_come_and_go),
    ("many-queues-of-a-tun", tunnel::many_queues),
    ("queues-by-fewer-threads", threads::fewer_than_queues),
    ("rule-stops-bridge", filters::rule_stops_bridge),
    (
        "rule-misses-internal-ports",
        filters::rule_misses_internal_ports,
    ),
    ("fewer-steps-than-a-bridge", steps::fewer_than_a_bridge),
    ("uplink-is-left-alone", untouched::uplink_is_left_alone),
    ("host-needs-no-pair", untouched::host_needs_no_pair),
    ("one-copy-of-a-broadcast", frames::one_copy_of_a_broadcast),
    ("twelve-uplinks", untouched::twelve_uplinks),
    (
        "nothing-before-the-first-guest",
        definition::nothing_before_the_first_guest,
    ),
    ("frames-by-address", frames::by_address),
    ("queues-carry-by-vhost", vhost::queues_carry),
];

/// Benches by name.
pub(super) static BENCHES: &[Named<Timed>] = &[
    ("plain-tap-against-one-queue", taps::plain_against_one_queue),
    ("tun-queues-against-one", tunnel::queues_against_one),
    ("copies-per-forwarded-packet", copies::per_forwarded_packet),
    (
        "copies-per-forwarded-datagram",
        copies::per_forwarded_datagram,
    ),
    ("copies-per-filtered-packet", copies::per_filtered_packet),
    ("copies-per-bridged-packet", copies::per_bridged_packet),
];

fn find<T>(
    kind: &'static str,
    known: &[Named<T>],
    name: &str,
) -> Result<fn() -> Result<T>, UnknownName> {
    let found = known.iter().find(|(known, _)| *known == name);
    found
        .map(|(_, run)| *run)
        .ok_or_else(|| UnknownName::new(kind, name, known.iter().map(|(name, _)| *name)))
}

/// Is there such a deed?
///
/// # Errors
/// There is none; the error lists them.
pub(super) fn deed(name: &str) -> Result<(), UnknownName> {
    find("deed", DEEDS, name).map(drop)
}

/// Is there such a bench?
///
/// # Errors
/// There is none; the error lists them.
pub(super) fn bench(name: &str) -> Result<(), UnknownName> {
    find("bench", BENCHES, name).map(drop)
}

/// What a deed needs that this machine's kernel plainly does not have.
pub(super) fn lacking(name: &str) -> Option<String> {
    match name {
        "rule-misses-internal-ports" => super::lacking::lacking("ovs-internal", false),
        "queues-carry-by-vhost" => vhost::lacking(),
        _ => None,
    }
}

/// Does a deed.
pub(super) fn carry_out(name: &str) -> Done {
    let run = find("deed", DEEDS, name).map_err(|e| e.to_string())?;
    run().map_err(|e| crate::chain(&e))
}

/// Times a bench.
pub(super) fn measure(name: &str) -> Benched {
    let run = find("bench", BENCHES, name).map_err(|e| e.to_string())?;
    run().map_err(|e| crate::chain(&e))
}
