//! Remarks on figures: marks, doubts, failures, path proof.

use super::document::{Block, headed, shorten};
use super::group::{Group, Layout, with_peer};
use super::quantity;
use crate::model::{
    CellReport, CellStatus, ClocksReport, FlowControl, RunReport, WarningCode, distinct,
};
use crate::plain;
use crate::units::{counted, float};

/// A limit of TCP gets a remark if it applied for more than this share of the time.
const HELD_BACK: f64 = 0.05;

fn counted_u64(n: u64, what: &str) -> String {
    counted(usize::try_from(n).unwrap_or(usize::MAX), what)
}

/// What a reader should know or doubt about a cell with figures, as one remark.
pub(super) fn doubts(cell: &CellReport) -> Option<String> {
    if instead(cell).is_some() {
        return None;
    }
    let guest = cell.guest.iter().map(|g| plain::line(&g.to_string()));
    let two_modes = cell.two_modes.iter().map(|(name, modes)| {
        let both = quantity::show_all(name, modes);
        let what = quantity::words(name);
        format!("{what} has two modes, {both}: the figure lies between them")
    });
    let endpoints = cell.endpoints.iter();
    let endpoints = endpoints.map(|e| plain::line(&e.to_string()));
    let clocks = cell.clocks.iter().map(clocks);
    let mut remarks: Vec<String> = guest
        .chain(endpoints)
        .chain(clocks)
        .chain(two_modes)
        .collect();
    if cell.unsettled_samples > 0 {
        let windows = counted(cell.unsettled_samples as usize, "window");
        remarks.push(format!("{windows} never settled"));
    }
    if cell.failed_samples > 0 {
        let samples = counted(cell.failed_samples as usize, "sample");
        let cause = cell
            .cause
            .as_deref()
            .map(plain::line)
            .filter(|c| !c.is_empty());
        remarks.push(match cause {
            Some(cause) => format!("{samples} failed: {cause}"),
            None => format!("{samples} failed"),
        });
    }
    let held_back = [
        (cell.receive_window_limited_ratio, "the receiver's window"),
        (cell.send_buffer_limited_ratio, "its send buffer"),
    ];
    for (share, by) in held_back {
        if let Some(share) = share.filter(|share| *share >= HELD_BACK) {
            remarks.push(format!(
                "TCP was held back by {by} {:.0} % of the time",
                share * 100.0
            ));
        }
    }
    if let Some(drops) = cell.device_drops.filter(|drops| *drops > 0) {
        remarks.push(format!("devices dropped {}", counted_u64(drops, "packet")));
    }
    if !cell.way.proved {
        remarks.push("path proof failed, see below".to_owned());
    }
    (!remarks.is_empty()).then(|| format!("{}: {}", plain::line(&cell.path), remarks.join("; ")))
}

/// How well the clocks of two ends are known, and whether there are one-way times.
fn clocks(clocks: &ClocksReport) -> String {
    let time = |ns: u64| quantity::show_all("clock_ns", &[float(ns)]);
    let bound = time(clocks.bound_ns);
    let one_way = match clocks.one_way_samples {
        None => String::new(),
        Some((told, all)) if told == all => format!(", one-way times ±{bound}"),
        Some((0, _)) => {
            format!(", no one-way times: two clocks known to ±{bound}, more than the delay itself")
        }
        Some((told, all)) => format!(
            ", one-way times ±{bound} in {told} of {all} samples; in the others that is more than the delay itself"
        ),
    };
    format!(
        "its windows opened at both ends within {}{one_way}",
        time(clocks.edges_within_ns)
    )
}

/// The text of a row without figures.
pub(super) fn instead(cell: &CellReport) -> Option<String> {
    // A cell that failed in some blocks has figures and a remark.
    if !cell.estimates.is_empty() {
        return None;
    }
    let status = status(cell.status)?;
    Some(match cell.cause.as_deref().map(plain::line) {
        Some(cause) if !cause.is_empty() => format!("{status}: {cause}"),
        _ => status.to_owned(),
    })
}

/// The same for a narrow column.
pub(super) fn instead_short(text: &str) -> String {
    shorten(text, 60)
}

fn status(status: CellStatus) -> Option<&'static str> {
    match status {
        CellStatus::Ok => None,
        CellStatus::Failed => Some("failed"),
        CellStatus::Unsupported => Some("unsupported"),
    }
}

/// Why a table has no comparisons though the run has a base path.
pub(super) fn no_base(group: &Group<'_>, layout: &Layout<'_>) -> Option<Block> {
    let base = layout.base.filter(|_| !group.is_compared())?;
    let figures = |cell: &&&CellReport| cell.is_measured();
    let is_base = |cell: &&CellReport| layout.is_base(cell);
    let measured: Vec<&CellReport> = group.cells.iter().filter(figures).copied().collect();
    let others = !measured.iter().all(is_base);
    let has_base = measured.iter().any(is_base);
    (others && !has_base).then(|| {
        let base = plain::line(base);
        Block::Notes(vec![format!("No comparison: {base} has no figures here.")])
    })
}

/// Every warning once, by subject.
pub(super) fn warnings(report: &RunReport) -> Vec<Block> {
    let mut folds: Vec<(String, Vec<String>)> = Vec::new();
    for warning in &report.warnings {
        let (about, message) = (about(warning.code), plain::line(&warning.message));
        match folds.iter_mut().find(|(name, _)| name == about) {
            Some((_, messages)) if messages.contains(&message) => {}
            Some((_, messages)) => messages.push(message),
            None => folds.push((about.to_owned(), vec![message])),
        }
    }
    if folds.is_empty() {
        return Vec::new();
    }
    vec![Block::Heading("Warnings".to_owned()), Block::Folds(folds)]
}

/// The subject of a warning.
fn about(code: WarningCode) -> &'static str {
    use WarningCode as W;
    match code {
        W::CutShort | W::QuickLook | W::LeftOut | W::NotCompared | W::Failed | W::Way => "the run",
        W::Width | W::TwoModes | W::Unsettled | W::Dependent => "precision",
        W::ForeignCpu
        | W::ForeignForks
        | W::Steal
        | W::DisturbedTurns
        | W::MissedWindows
        | W::Closure
        | W::CpuAccounting
        | W::CpuUnknown
        | W::FrequencyScaling
        | W::DebugKernel
        | W::Emulated => "the machine",
        W::Trace
        | W::GeneratorCeiling
        | W::Pace
        | W::Search
        | W::Receiver
        | W::SilentFlows
        | W::SharedCpu
        | W::ZeroCopy => "the load",
        W::Offload
        | W::Datapath
        | W::CongestionControl
        | W::EndsDiffer
        | W::Tracking
        | W::Backlog => "the setting",
    }
}

/// Full causes, each once, with the cells concerned.
pub(super) fn failures(report: &RunReport, layout: &Layout<'_>) -> Vec<Block> {
    let without: Vec<&CellReport> = report
        .cells
        .iter()
        .filter(|cell| instead(cell).is_some())
        .collect();
    let kind = |cell: &CellReport| (cell.path.clone(), instead(cell).unwrap_or_default());
    let sentences = distinct(without.iter().map(|cell| kind(cell)))
        .into_iter()
        .map(|(path, text)| {
            let own: Vec<&&CellReport> = without
                .iter()
                .filter(|cell| kind(cell) == (path.clone(), text.clone()))
                .collect();
            let all = report.cells.iter().filter(|cell| cell.path == path).count();
            let place = match own.as_slice() {
                [one] => layout.place(one),
                _ if own.len() == all => "all its cells".to_owned(),
                _ => format!("{} of its {all} cells", own.len()),
            };
            format!("{} ({place}) {text}", plain::line(&path))
        })
        .collect();
    headed("Without figures", sentences)
}

/// Whose traffic packet filter rules of the hub see.
pub(super) fn filters(report: &RunReport) -> Option<Block> {
    let with = |wanted: bool| {
        let cells = report.cells.iter();
        let those = cells.filter(|cell| cell.is_measured() && cell.filter_sees == Some(wanted));
        distinct(those.map(|cell| with_peer(&cell.path, cell.peer)))
    };
    let sentence = match (with(true), with(false)) {
        (seen, unseen) if seen.is_empty() && unseen.is_empty() => return None,
        (seen, unseen) if unseen.is_empty() => format!("see the traffic of {}", seen.join(", ")),
        (seen, unseen) if seen.is_empty() => format!("see none of this: {}", unseen.join(", ")),
        (seen, unseen) => format!(
            "see the traffic of {}; they do not see that of {}",
            seen.join(", "),
            unseen.join(", ")
        ),
    };
    Some(Block::Paragraph(format!(
        "Packet filter rules in the hub (nftables, iptables) {sentence}."
    )))
}

/// What forwarded, if there are several possibilities.
pub(super) fn datapaths(report: &RunReport) -> Option<Block> {
    let cells = report.cells.iter();
    let told: Vec<(String, &CellReport)> = cells
        .filter_map(|cell| Some((plain::line(&cell.datapath.as_ref()?.to_string()), cell)))
        .collect();
    let kinds = distinct(told.iter().map(|(what, _)| what));
    let sentences = kinds.into_iter().map(|kind| {
        let (own, others): (Vec<_>, Vec<_>) = told.iter().partition(|(what, _)| what == kind);
        let paths = distinct(own.iter().map(|(_, cell)| &*cell.path));
        let names = paths.into_iter().map(|path| {
            let flows = |told: &[&(String, &CellReport)]| {
                let cells = told.iter().map(|(_, cell)| cell);
                distinct(cells.filter(|c| c.path == path).map(|c| c.axes.flows))
            };
            let (own, others) = (flows(&own), flows(&others));
            // With many ports it may be another one.
            if others.is_empty() || own.iter().any(|n| others.contains(n)) {
                return plain::line(path);
            }
            let own: Vec<String> = own.iter().map(u32::to_string).collect();
            format!("{} with {} flows", plain::line(path), own.join(", "))
        });
        format!("{}: {kind}.", names.collect::<Vec<_>>().join(", "))
    });
    let sentences: Vec<String> = sentences.collect();
    (!sentences.is_empty()).then(|| Block::Paragraph(sentences.join(" ")))
}

/// Flow control of the link, if there is one.
pub(super) fn link(report: &RunReport) -> Option<Block> {
    let ends = distinct(report.cells.iter().flat_map(|cell| &cell.link));
    let kinds = distinct(ends.iter().map(|end| end.flow_control));
    let of = |kind: FlowControl| {
        let own = ends.iter().filter(|end| end.flow_control == kind);
        let names = own.map(|end| plain::line(&format!("{}/{}", end.namespace, end.name)));
        format!("{}: {kind}", names.collect::<Vec<_>>().join(", "))
    };
    let said: Vec<String> = kinds.into_iter().map(of).collect();
    let dropped = ends.iter().all(|end| end.flow_control == FlowControl::None);
    let dropped = if dropped {
        ", so a full queue drops and nobody is asked to wait"
    } else {
        ""
    };
    (!said.is_empty()).then(|| {
        Block::Paragraph(format!(
            "Flow control of the link: {}{dropped}.",
            said.join("; ")
        ))
    })
}

/// The path proof.
pub(super) fn way(report: &RunReport, layout: &Layout<'_>) -> Vec<Block> {
    let measured: Vec<&CellReport> = report
        .cells
        .iter()
        .filter(|cell| cell.is_measured())
        .collect();
    let unproved: Vec<&&CellReport> = measured.iter().filter(|cell| !cell.way.proved).collect();
    match (measured.len(), unproved.len()) {
        (0, _) => Vec::new(),
        (all, 0) => {
            let whom = match all {
                1 => "the cell".to_owned(),
                2 => "both cells".to_owned(),
                _ => format!("all {all} cells"),
            };
            let with = if all < report.cells.len() {
                " with figures"
            } else {
                ""
            };
            vec![Block::Paragraph(format!(
                "Path proof passed for {whom}{with}: the path's devices moved with the traffic, no \
                 other did."
            ))]
        }
        (all, some) => {
            let heading = format!("Path proof failed for {some} of {}", counted(all, "cell"));
            let sentences = unproved
                .iter()
                .map(|cell| {
                    let problems: Vec<String> =
                        cell.way.problems.iter().map(|p| plain::line(p)).collect();
                    let why = if problems.is_empty() {
                        "no reason was recorded".to_owned()
                    } else {
                        problems.join("; ")
                    };
                    format!("{}: {why}", layout.name(cell))
                })
                .collect();
            headed(heading, sentences)
        }
    }
}
