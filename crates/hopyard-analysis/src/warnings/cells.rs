//! Warnings about single cells.

use std::collections::BTreeSet;

use super::{named, percent, with};
use crate::model::stored::Run;
use crate::model::{
    CellReport, CellStatus, DatapathKind, EndpointsUsed, OPEN_VSWITCH, Placement, RunSummary,
    Searched,
};
use crate::stats::Estimate;

/// A result above this share of what the generator can do gets a warning.
const CEILING: f64 = 0.9;
/// A receiver is the limit if its busiest thread has a CPU for this share of the time, ...
const RECEIVER_BUSY: f64 = 0.9;
/// ... or if its sockets have no room for this share of the arriving datagrams.
const RECEIVER_DROPS: f64 = 1e-4;
/// A sender below this share of its pace was held up by something else.
const PACE: f64 = 0.98;
/// The largest share of unfinished connections without a warning.
const UNFINISHED: f64 = 0.01;
/// More copies than this share of the sends without one.
const COPIED: f64 = 0.01;

pub(super) fn failed(cells: &[CellReport]) -> Option<String> {
    let found = with(cells, |cell| cell.status == CellStatus::Failed)?;
    let samples: u32 = found.iter().map(|cell| cell.failed_samples).sum();
    Some(format!(
        "{} failed ({samples} samples in all); the causes stand below the tables.",
        named(&found)
    ))
}

pub(super) fn way(cells: &[CellReport]) -> Option<String> {
    let found = with(cells, CellReport::is_unproved)?;
    let problem = found.iter().find_map(|cell| cell.way.problems.first())?;
    Some(format!(
        "Path proof failed for {}: {problem}. Do not trust these cells before you know why.",
        named(&found)
    ))
}

pub(super) fn two_modes(cells: &[CellReport]) -> Option<String> {
    let found = with(cells, |cell| !cell.two_modes.is_empty())?;
    Some(format!(
        "{} show two modes: their mean describes neither. Look for what differs between samples \
         (placement, steal, queue choice).",
        named(&found)
    ))
}

pub(super) fn unsettled(cells: &[CellReport]) -> Option<String> {
    let found = with(cells, |cell| cell.unsettled_samples > 0)?;
    // A rare unsettled window is chance; a fifth of them is a property of the cell.
    let often: Vec<&CellReport> = found
        .into_iter()
        .filter(|cell| {
            let n = cell.estimates.values().map(|e| e.n).max().unwrap_or(0);
            f64::from(cell.unsettled_samples)
                > 0.2 * f64::from(u32::try_from(n).unwrap_or(u32::MAX))
        })
        .collect();
    (!often.is_empty()).then(|| {
        format!(
            "{} did not settle within more than a fifth of their windows: use a longer --window, or a longer warm-up \
             in the plan.",
            named(&often)
        )
    })
}

pub(super) fn ceiling(run: &Run, cells: &[CellReport]) -> Option<String> {
    let near: Vec<&CellReport> = run
        .header
        .cells
        .iter()
        .zip(cells)
        .filter(|(planned, cell)| {
            let (name, unit) = cell.load.info().unit.rate();
            let flows = f64::from(cell.axes.flows.min(run.header.environment.cpus));
            match (planned.ceiling_per_s, cell.estimates.get(name)) {
                (Some(most), Some(seen)) => seen.value > CEILING * most * unit * flows,
                _ => false,
            }
        })
        .map(|(_, cell)| cell)
        .collect();
    (!near.is_empty()).then(|| {
        format!(
            "{} are within 10 % of what the load generator itself can do with no path at all: the path may \
             be faster than shown.",
            named(&near)
        )
    })
}

/// Whether the two endpoints differ in something that affects figures.
pub(super) fn ends_differ(cells: &[CellReport]) -> Option<String> {
    let endpoints = cells.iter().filter_map(|cell| cell.endpoints.as_ref());
    let all: BTreeSet<String> = endpoints.flat_map(EndpointsUsed::differences).collect();
    let all: Vec<String> = all.into_iter().collect();
    (!all.is_empty()).then(|| {
        format!(
            "The two endpoints of as-is are not alike: {}. What a figure says of the path, it says of these two together.",
            all.join("; ")
        )
    })
}

/// Whether the pace was kept. What was sent counts if it is known, else what arrived.
pub(super) fn pace(cells: &[CellReport]) -> Option<String> {
    let found = with(cells, |cell| {
        let asked = cell.axes.pace_bps.and_then(|rate| rate.0);
        let estimate = |name| cell.estimates.get(name);
        let kept = estimate("sent_bps").or_else(|| estimate("goodput_bps"));
        asked
            .zip(kept)
            .is_some_and(|(asked, kept)| kept.value < PACE * asked as f64)
    })?;
    Some(format!(
        "{} did not keep the pace asked for: the sender or the path cannot, or waking for each message takes too \
         long. Ask for a lower pace or larger messages.",
        named(&found)
    ))
}

/// Whether the due connections ended.
pub(super) fn connections(cells: &[CellReport]) -> Option<String> {
    let found = with(cells, |cell| {
        let unfinished = cell.estimates.get("unfinished_ratio");
        unfinished.is_some_and(|share| share.value > UNFINISHED)
    })?;
    Some(format!(
        "{} did not keep up with the connections asked for: some had not ended when traffic stopped. Latencies count from when \
         a connection was due, and those that had not ended with the time until then. Ask for a lower connection_rate, or for \
         more flows.",
        named(&found)
    ))
}

/// Did the kernel copy what was to be sent without a copy?
pub(super) fn zero_copy(cells: &[CellReport]) -> Option<String> {
    let copied = |cell: &CellReport| cell.estimates.get("zerocopy_copied_ratio").map(|e| e.value);
    let found = with(cells, |cell| {
        copied(cell).is_some_and(|share| share > COPIED)
    })?;
    let shares = found.iter().filter_map(|cell| copied(cell));
    Some(format!(
        "The kernel copied the bytes of {} of the sends without a copy all the same in {}: with zerocopy=on these cost the copy \
         and the bookkeeping for doing without it. What goes to a socket of the same kernel is always copied (loopback, veth and \
         all that leads back up); a network card that sends from memory does without.",
        percent(shares.fold(0.0, f64::max)),
        named(&found)
    ))
}

/// Did each search find both bounds?
pub(super) fn search(cells: &[CellReport]) -> Option<String> {
    let irregular = |search: &&Searched| !search.result.regular;
    let found = with(cells, |cell| cell.searches.iter().any(|s| irregular(&s)))?;
    let all = found.iter().flat_map(|cell| &cell.searches);
    let all: Vec<&Searched> = all.filter(irregular).collect();
    let unlimited = all.iter().any(|s| s.result.upper_per_s.is_none());
    Some(format!(
        "A search for a rate ended without a regular result in {} samples of {}: {}.",
        all.len(),
        named(&found),
        if unlimited {
            "the path carried all that the generator can send, so its own rate is higher"
        } else {
            "its bounds are further apart than asked for, since trials of the same rate differed; try longer windows"
        }
    ))
}

/// Whether the receiver of numbered datagrams kept up.
pub(super) fn receiver(cells: &[CellReport]) -> Option<String> {
    let at_least = |cell: &CellReport, name, least| {
        let estimate = cell.estimates.get(name);
        estimate.is_some_and(|e: &Estimate| e.value >= least)
    };
    let found = with(cells, |cell| {
        at_least(cell, "receiver_dropped_ratio", RECEIVER_DROPS)
            || at_least(cell, "receiver_busy_ratio", RECEIVER_BUSY)
    })?;
    let greatest = |name| {
        let values = found.iter().filter_map(|cell| cell.estimates.get(name));
        percent(values.map(|e| e.value).fold(0.0, f64::max))
    };
    Some(format!(
        "The receiver did not keep up with {}: its sockets had no room for up to {} of the datagrams, and up to {} of \
         the time its busiest thread had a CPU. What was lost there says nothing of the path: use fewer or slower senders, a \
         larger socket_buffer, or placement `split`.",
        named(&found),
        greatest("receiver_dropped_ratio"),
        greatest("receiver_busy_ratio"),
    ))
}

/// Whether every flow had arrivals in every window.
pub(super) fn silent_flows(cells: &[CellReport]) -> Option<String> {
    let silent = |cell: &CellReport| cell.estimates.get("silent_flows").map_or(0.0, |e| e.value);
    let found = with(cells, |cell| silent(cell) > 0.0)?;
    let worst = found
        .iter()
        .max_by(|a, b| silent(a).total_cmp(&silent(b)))?;
    Some(format!(
        "Nothing arrived of some flows of {} in some windows ({:.0} of {} in the mean where they were most): their \
         senders had no turn on a crowded CPU, or what they sent was lost. With a longer --window or fewer flows all \
         take part.",
        named(&found),
        silent(worst).ceil(),
        worst.axes.flows,
    ))
}

pub(super) fn shared_cpu(summary: &RunSummary, cells: &[CellReport]) -> Option<String> {
    let free = with(cells, |cell| cell.axes.placement == Placement::Free)?;
    let one = if summary.environment.cpus < 2 {
        "had to share the one CPU"
    } else {
        "may have shared a CPU"
    };
    Some(format!(
        "With placement `free` the two ends of {} {one}, which changes request/response figures several \
         times over: use placement `same` or `split`.",
        named(&free)
    ))
}

pub(super) fn offload(cells: &[CellReport]) -> Option<String> {
    let found = with(cells, |cell| {
        cell.offloads.values().any(|state| state == "differs")
    })?;
    let flags: BTreeSet<&str> = found
        .iter()
        .flat_map(|cell| cell.offloads.iter().filter(|(_, s)| *s == "differs"))
        .map(|(flag, _)| flag.as_str())
        .collect();
    Some(format!(
        "{} of {} are not what was asked for: another flag they depend on does not allow it.",
        flags.into_iter().collect::<Vec<_>>().join(", "),
        named(&found)
    ))
}

pub(super) fn datapath(cells: &[CellReport]) -> Option<String> {
    // Only Open vSwitch has another datapath; other user-space switches have not.
    let userspace = |cell: &&CellReport| {
        let datapath = cell.datapath.as_ref();
        datapath.is_some_and(|d| d.kind == DatapathKind::Userspace && d.switch == OPEN_VSWITCH)
    };
    let found: Vec<&CellReport> = cells.iter().filter(userspace).collect();
    let datapath = found.first()?.datapath.as_ref()?;
    let paths: BTreeSet<&str> = found.iter().map(|cell| cell.path.as_str()).collect();
    Some(format!(
        "{} forwarded in userspace for {}, since this kernel has no module `openvswitch`: every frame \
         crossed into its process and back. The figures say nothing about its kernel datapath.",
        datapath.switch,
        paths.into_iter().collect::<Vec<_>>().join(", ")
    ))
}

pub(super) fn emulated_guest(cells: &[CellReport]) -> Option<String> {
    let found = with(cells, CellReport::has_emulated_guest)?;
    Some(format!(
        "Emulated: shape only. The guests of {} had a program for a CPU (QEMU without KVM), so no absolute \
         figure of theirs means anything, nor what they cost beside others.",
        named(&found)
    ))
}
