//! `hopyard switch create --shortcut` and `hopyard switch shortcut`.

use std::path::Path;
use std::process::ExitCode;

use hopyard_switch::{
    Loss, NewShortcut, NewSwitch, PartyStats, Shortcut, ShortcutCounters, Switch, test_shortcut,
};

use super::super::{Done, table};
use super::show::warn;

/// Makes a switch with a shortcut, or neither.
pub(super) fn create(
    new: &NewSwitch<'_>,
    cgroup: &Path,
    accept: &[Loss],
) -> Result<Switch, hopyard_switch::Error> {
    // Before anything is made, because it takes longest.
    let test = test_shortcut()?;
    let mut switch = Switch::create(new)?;
    match switch.set_tested_shortcut(&NewShortcut { cgroup, accept }, &test) {
        Ok(()) => Ok(switch),
        Err(error) => {
            // The first error is the one to report.
            let _ = switch.delete();
            Err(error)
        }
    }
}

/// Gives a switch a shortcut, or removes it.
pub(super) fn set(name: &str, cgroup: Option<&Path>, accept: &[Loss]) -> Done {
    let mut switch = Switch::open(name)?;
    match cgroup {
        Some(cgroup) => {
            switch.set_shortcut(&NewShortcut { cgroup, accept })?;
            warn(&switch.show()?);
        }
        None => switch.remove_shortcut()?,
    }
    Ok(ExitCode::SUCCESS)
}

/// The text about it in `show`, at the end of its line.
pub(super) fn shown(shortcut: Option<&Shortcut>) -> String {
    shortcut.map_or_else(String::new, |shortcut| {
        format!(", shortcut for sockets of {}", shortcut.cgroup.display())
    })
}

/// The text about it in `stats`, below the rest.
pub(super) fn counted(parties: &[PartyStats]) -> String {
    let rows: Vec<(&str, &ShortcutCounters)> = parties
        .iter()
        .filter_map(|party| Some((&*party.party, party.shortcut.as_ref()?)))
        .collect();
    if rows.is_empty() {
        return String::new();
    }
    let mut table = table(&[
        "by the shortcut",
        "joined",
        "rx messages",
        "rx bytes",
        "tx messages",
        "tx bytes",
        "refused",
    ]);
    for (port, c) in rows {
        let mut row = vec![port.to_owned()];
        row.extend(
            [
                c.joined,
                c.rx_messages,
                c.rx_bytes,
                c.tx_messages,
                c.tx_bytes,
                c.refused,
            ]
            .map(|n| n.to_string()),
        );
        table.add_row(row);
    }
    format!("{table}\n")
}
