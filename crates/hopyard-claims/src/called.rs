//! What figures are called.

use super::groups::{self, Group};
use super::rule::{Check, Judge};
use super::what::What;
use crate::model::{Cell, distinct};

/// `goodput, veth-route / native` where all pairs differ in the same, else `goodput over veth`; and what a mean is over.
pub(super) fn compared(words: &str, check: &Check, groups: &[&Group<'_>]) -> String {
    let all = distinct(groups.iter().flat_map(|group| group.versus()));
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
    let names = found.iter().map(|(cell, _)| what.name(cell.load));
    distinct(names.map(|name| crate::report::claims::words(&name))).join(" or ")
}
