//! A sweep of offloads: what switching each off does to all on, what switching each on does to all off, and which one
//! matters.

mod by_device;
mod now;

use super::document::{Block, Cell, Column, Footnotes, Row, Table, headed};
use super::figures::Figures;
use super::group::Group;
use super::notes;
use super::quantity::{BUSY_CORES, RETRANSMITS};
use crate::model::{
    CellReport, OffloadChange, OffloadCombination, OffloadFinding, OffloadReport, OffloadSurvey,
    Switch, listed_offloads,
};
use crate::plain;
pub(super) use by_device::blocks as by_device;
pub(super) use now::blocks as now;

/// The findings for each load, as text.
pub(super) fn findings(report: &OffloadReport) -> Vec<Block> {
    let several = report.findings.len() > 1;
    let sentences = |finding: &OffloadFinding| {
        let place = format!("{} · {}: ", finding.load, finding.peer);
        let mut list = vec![format!("{place}{}", finding.sentence)];
        let whose = if several { place.as_str() } else { "" };
        list.extend(finding.remarks.iter().map(|r| format!("{whose}{r}")));
        list
    };
    let findings = report.findings.iter().flat_map(sentences).collect();
    headed("Which offload matters", findings)
}

/// A table of flags switched off and one of flags switched on, with footnotes, and the flags that were not measured.
pub(super) fn tables(group: &Group<'_>, survey: &OffloadSurvey) -> Vec<Block> {
    let mut footnotes = Footnotes::default();
    let mut blocks = vec![Block::Heading(group.title.clone())];
    for rest in [Switch::On, Switch::Off] {
        blocks.extend(table(group, survey, rest, &mut footnotes).map(Block::Table));
    }
    blocks.extend(footnotes.block());
    blocks.extend(not_measured(survey));
    blocks
}

/// All on, flags switched off, and all off; or all off and flags switched on.
fn table(
    group: &Group<'_>,
    survey: &OffloadSurvey,
    rest: Switch,
    footnotes: &mut Footnotes,
) -> Option<Table> {
    let base = OffloadChange::all(rest);
    let all_off = OffloadChange::all(Switch::Off);
    let in_table = |c: &&OffloadCombination| {
        c.change == base
            || c.change.base() == base && !(rest == Switch::Off && c.change.flags.is_empty())
    };
    let mut rows: Vec<&OffloadCombination> = survey.combinations.iter().filter(in_table).collect();
    // All flags together come last.
    rows.sort_by_key(|c| rest == Switch::On && c.change == all_off);
    if rows.len() < 2 {
        return None;
    }
    let figures = Figures::of(group).without(&[BUSY_CORES, RETRANSMITS]);
    let mut columns = vec![Column::left(&["offloads", &format!("(rest {rest})")])];
    columns.extend(figures.columns(&base.to_string()));
    let row =
        |combination: &&OffloadCombination| row(group, combination, &figures, &base, footnotes);
    Some(Table {
        rows: rows.iter().map(row).collect(),
        columns,
        keys: 1,
    })
}

fn row(
    group: &Group<'_>,
    combination: &OffloadCombination,
    figures: &Figures,
    base: &OffloadChange,
    footnotes: &mut Footnotes,
) -> Row {
    let change = &combination.change;
    let name = if change.flags.is_empty() {
        change.to_string()
    } else {
        change.flags_in_words()
    };
    let instead = |text: String| Row::Instead {
        keys: vec![name.clone()],
        text,
    };
    if let Some(cause) = &combination.refused {
        return instead(format!("not to be had: {}", plain::line(cause)));
    }
    if let Some(same) = &combination.same_as {
        return instead(if *same == change.base() {
            format!("changes nothing here: reads back like {same}")
        } else {
            format!("reads back like {same}: not measured twice")
        });
    }
    let is_own = |cell: &&&CellReport| OffloadChange::of(&cell.axes).as_ref() == Some(change);
    let Some(cell) = group.cells.iter().find(is_own) else {
        return instead("no cell".to_owned());
    };
    if let Some(text) = notes::instead(cell) {
        return instead(text);
    }
    // All off is in both tables; its remarks are in the first.
    let again = change == base && base.rest == Switch::Off;
    let remarks: Vec<String> = along(combination)
        .into_iter()
        .chain(notes::doubts(cell))
        .collect();
    let mark = footnotes.mark((!remarks.is_empty() && !again).then(|| remarks.join("; ")));
    let key = Cell::lone(format!("{name} {mark}").trim_end());
    Row::Cells(
        std::iter::once(key)
            .chain(figures.fields(cell, change == base))
            .collect(),
    )
}

/// Flags that go off together with the named ones.
fn along(combination: &OffloadCombination) -> Option<String> {
    let change = &combination.change;
    let others: Vec<_> = combination
        .changed
        .iter()
        .copied()
        .filter(|flag| !change.flags.contains(flag))
        .collect();
    let off_by_name = change.rest == Switch::On && !change.flags.is_empty();
    (off_by_name && !others.is_empty()).then(|| {
        format!(
            "{} off with {}",
            listed_offloads(&others),
            listed_offloads(&change.flags)
        )
    })
}

/// Flags that cannot be changed.
fn not_measured(survey: &OffloadSurvey) -> Option<Block> {
    let fixed: Vec<String> = survey
        .fixed
        .iter()
        .map(|fixed| {
            format!(
                "{} is fixed {}",
                fixed.flag.name(),
                plain::line(&fixed.state)
            )
        })
        .collect();
    (!fixed.is_empty()).then(|| {
        Block::Paragraph(format!(
            "Not measured, since no device of the path lets it be changed: {}.",
            fixed.join(", ")
        ))
    })
}
