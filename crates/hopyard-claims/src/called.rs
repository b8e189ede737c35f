//! What figures are called.

use super::groups::{self, Group};
use super::rule::{Check, Judge};
use super::what::What;
use crate::model::Cell;

/// `goodput, veth-route / native` where all pairs differ in the same, else `goodput over veth`; and what a mean is over.
pub(super) fn compared(words: &str, check: &Check, groups: &[&Group<'_>]) -> String {
    let mut all: Vec<String> = Vec::new();
    for versus in groups.iter().flat_map(|group| group.versus()) {
        if !all.contains(&versus) {
            all.push(versus);
        }
    }
    let mut text = match (&check.judge, all.as_slice()) {
        (_, [one]) => format!("{words}, {one}"),
        (Judge::Ratio { to, .. }, [_, ..]) if to.len() == 1 => format!("{words} over {}", to[0]),
        (Judge::Share { without, base, .. }, _) => {
            format!("share of {words} above {base} that {without} lacks")
        }
        (Judge::Corrected { to, less, .. }, _) => {
            format!("{words} over {to}, without what they differ by at {less}")
        }
        _ => words.to_owned(),
    };
    if !check.mean_over.is_empty() {
        let values = groups::common_mean(groups).filter(|values| !values.is_empty());
        let values = values.unwrap_or_else(|| check.mean_over.join(", ").replace('_', " "));
        text.push_str(&format!(", geometric mean over {values}"));
    }
    if check.geometric {
        text.push_str(", geometric mean over blocks");
    }
    text
}

/// What is measured of cells, in words.
pub(super) fn words(what: &What, found: &[(&Cell, Vec<&Cell>)]) -> String {
    let mut names: Vec<String> = Vec::new();
    for (cell, _) in found {
        let name = crate::report::claims::words(&what.name(cell.load));
        if !names.contains(&name) {
            names.push(name);
        }
    }
    names.join(" or ")
}
