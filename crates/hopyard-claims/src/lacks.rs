//! What this machine lacks for claims to be tested, before anything is measured.

use serde::Serialize;

use super::Chosen;
use super::demand::put_off;
use super::lacking::lacking;
use super::rule::{Check, Judge};

/// Something that is missing, and the claims that miss it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Lack {
    /// What it is, and how to get it.
    pub what: String,
    /// Ids of claims that cannot be tested without it, or not wholly.
    pub claims: Vec<String>,
    /// Can a guest with another kernel have it (`hopyard claims --guest auto`)?
    pub in_guest: bool,
}

/// All that these claims lack here, each thing with all its claims.
#[must_use]
pub fn lacks(chosen: &[Chosen<'_>], cpus: u32) -> Vec<Lack> {
    let mut all: Vec<Lack> = Vec::new();
    for one in chosen {
        let claim = one.claim;
        let mut found: Vec<(String, bool)> = Vec::new();
        let mut is_lacking = claim.checks.is_empty();
        for check in &claim.checks {
            let lacking = of_check(check, cpus);
            is_lacking |= !lacking.is_empty();
            found.extend(lacking);
            found.extend(asked_by_name(*one, check).map(|why| (why, false)));
        }
        // What a claim misses where something is lacking is not missed where all of it is there.
        let missing = claim.missing.iter().filter(|_| is_lacking);
        found.extend(missing.map(|what| (what.clone(), false)));
        for (what, in_guest) in found {
            match all.iter_mut().find(|lack| lack.what == what) {
                Some(lack) if lack.claims.contains(&claim.id) => {}
                Some(lack) => lack.claims.push(claim.id.clone()),
                None => all.push(Lack {
                    what,
                    claims: vec![claim.id.clone()],
                    in_guest,
                }),
            }
        }
    }
    all
}

/// Why the plan of a part is not run unless its claim is named.
fn asked_by_name(one: Chosen<'_>, check: &Check) -> Option<String> {
    check.of_cells()?;
    let unnamed = Chosen {
        by_id: false,
        ..one
    };
    put_off(&unnamed, one.plan_of(check), false)
}

/// What one part of a rule lacks; and whether a guest can have it.
fn of_check(check: &Check, cpus: u32) -> Vec<(String, bool)> {
    match &check.judge {
        Judge::Missing { missing } => return vec![(missing.clone(), false)],
        Judge::Does { does } => {
            return super::bench::lacking(does)
                .map(|why| (why, true))
                .into_iter()
                .collect();
        }
        Judge::Bench { .. } => return Vec::new(),
        _ => {}
    }
    let mut found = Vec::new();
    if let Some(least) = check.cpus.filter(|least| *least > cpus) {
        found.push((
            format!("{least} CPUs: this machine has {cpus}; take a machine, or a size of virtual machine, with more"),
            false,
        ));
    }
    let asks_for_vhost = check
        .of_cells()
        .is_some_and(|(_, cells)| cells.asks("vhost", "on"));
    if asks_for_vhost {
        found.extend(super::bench::lacking("queues-carry-by-vhost").map(|why| (why, false)));
    }
    for path in check.named_paths() {
        let in_guest = super::in_guest::can_be_in_guest(&path);
        if let Some(why) = lacking(&path, false)
            && !found.iter().any(|(known, _)| *known == why)
        {
            found.push((why, in_guest));
        }
    }
    found
}
