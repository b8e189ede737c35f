//! `hopyard doctor --claims`.

use super::reports;
use crate::claims::{self, Lack};
use crate::cli::{Done, pretty, print};

/// What claims lack on this machine, and how to get it.
pub(in crate::cli) fn doctor(as_json: bool) -> Done {
    let chosen = claims::choose(reports()?, &[])?;
    let cpus = hopyard_net::cpu::online_cpus().map_err(crate::measure::Error::from)?;
    let lacks = claims::lacks(&chosen, u32::try_from(cpus.len()).unwrap_or(u32::MAX));
    if as_json {
        return print(&pretty(&lacks)?);
    }
    let mut missing: Vec<&String> = lacks.iter().flat_map(|lack| &lack.claims).collect();
    missing.sort();
    missing.dedup();
    let mut text = format!(
        "{} of {} claims can be tested here wholly.\n\n",
        chosen.len() - missing.len(),
        chosen.len()
    );
    for lack in &lacks {
        text.push_str(&said(lack));
    }
    print(&text)
}

fn said(lack: &Lack) -> String {
    let ids = lack.claims.join(" ");
    let mut text = format!("- {ids}: {}.", lack.what);
    if lack.in_guest {
        text.push_str(&format!(
            " Or in a guest: `hopyard claims {ids} --guest auto`."
        ));
    }
    text.push('\n');
    text
}
