//! What would change a recommendation.

use super::Evidence;
use crate::model::{AXES, CellReport, Choice, Placement, WarningCode, distinct};

/// Sentences, the most general first.
pub(super) fn of(evidence: &Evidence<'_>, choices: &[Choice]) -> Vec<String> {
    let chosen: Vec<&CellReport> = choices
        .iter()
        .flat_map(|choice| chosen(evidence, choice))
        .collect();
    if chosen.is_empty() {
        return Vec::new();
    }
    let mut sentences = Vec::new();
    sentences.extend(setting(evidence.cells));
    sentences.extend(placement(choices));
    sentences.extend(offloads(&chosen));
    sentences.extend(unseen(&chosen));
    sentences.extend(doubts(evidence));
    if choices.iter().any(|choice| choice.best.len() > 1) {
        sentences.push(
            "Ties are what this run cannot tell apart: more blocks (--blocks, --time-limit) can."
                .to_owned(),
        );
    }
    sentences
}

/// The recommended cells.
fn chosen<'a>(evidence: &Evidence<'a>, choice: &Choice) -> Vec<&'a CellReport> {
    let is_best = |cell: &&CellReport| {
        let same = (cell.load, cell.peer) == (choice.load, choice.peer);
        same && choice
            .best
            .iter()
            .any(|best| best.path == cell.path && best.axes == cell.axes)
    };
    evidence.cells.iter().filter(is_best).collect()
}

/// The values that all cells share: at other values the order may differ.
fn setting(cells: &[CellReport]) -> Option<String> {
    let common = AXES.iter().filter(|axis| !axis.of_path).filter_map(|axis| {
        let is_concerned = |cell: &&CellReport| {
            (axis.fits)(cell.load, cell.peer) && !axis.is_lacked(cell.load, &cell.axes)
        };
        let concerned = cells.iter().filter(is_concerned);
        // What is left to the kernel is another setting than one that was chosen.
        let values = distinct(concerned.map(|cell| (axis.show)(&cell.axes)));
        match values.as_slice() {
            [Some(one)] => Some(format!("{}={one}", axis.name)),
            _ => None,
        }
    });
    let common: Vec<String> = common.collect();
    (!common.is_empty()).then(|| {
        format!(
            "It holds for {}; at other values (--set) the order may be another.",
            common.join(", ")
        )
    })
}

fn placement(choices: &[Choice]) -> Option<String> {
    let apart = choices.iter().all(|c| c.axes.placement == Placement::Split);
    let turns = choices.iter().any(|choice| !choice.load.is_stream());
    (apart && turns).then(|| {
        "Requests and responses between two CPUs pay for waking the other one: where both ends share one \
         (--set placement=same) figures are far from these."
            .to_owned()
    })
}

/// Offloads as read back, unless the user chose them.
fn offloads(chosen: &[&CellReport]) -> Vec<String> {
    let told = |cell: &&CellReport| {
        cell.load.is_stream() && cell.axes.offload.is_none() && !cell.offloads.is_empty()
    };
    let of = |cell: &CellReport| {
        let flags = cell
            .offloads
            .iter()
            .map(|(flag, state)| format!("{flag} {state}"));
        flags.collect::<Vec<_>>().join(", ")
    };
    let told: Vec<&CellReport> = chosen.iter().copied().filter(told).collect();
    let sentence = |flags: String| {
        let alike = told.iter().filter(|cell| of(cell) == flags);
        let paths = distinct(alike.map(|cell| cell.path.as_str())).join(", ");
        format!("{paths} had {flags}: `hopyard doctor --offloads PATH` tells what each is worth.")
    };
    distinct(told.iter().map(|cell| of(cell)))
        .into_iter()
        .map(sentence)
        .collect()
}

/// Paths whose traffic a packet filter of the host does not see.
fn unseen(chosen: &[&CellReport]) -> Option<String> {
    let unseen = chosen.iter().filter(|cell| cell.filter_sees == Some(false));
    let unseen = distinct(unseen.map(|cell| cell.path.as_str()));
    (!unseen.is_empty()).then(|| {
        format!(
            "Packet filter rules of the host see nothing of {}: --need filter asks for paths whose traffic they see.",
            unseen.join(", ")
        )
    })
}

/// Warnings that could reverse the order.
fn doubts(evidence: &Evidence<'_>) -> Option<String> {
    let bears = |code: &WarningCode| {
        use WarningCode as W;
        !matches!(
            code,
            W::Closure
                | W::CongestionControl
                | W::QuickLook
                | W::Way
                | W::Failed
                | W::LeftOut
                | W::NotCompared
                | W::Width
        )
    };
    let codes = distinct(evidence.warnings.iter().map(|w| w.code).filter(bears));
    let names: Vec<&str> = codes.into_iter().map(WarningCode::words).collect();
    (!names.is_empty()).then(|| format!("Warnings that bear on it: {}.", names.join(", ")))
}
