//! The state that the kernel makes of combinations of offloads, read before any of them is measured.

use super::Error;
use crate::lab::{self, Lab};
use crate::model::{
    Axes, FixedOffload, OffloadChange, OffloadCombination, OffloadFlag, OffloadNow, OffloadState,
    OffloadSurvey, Peer, Switch,
};
use crate::{assess, measure, signals};

/// Flags as read back, or why the kernel refuses them.
type ReadBack = Result<Vec<OffloadState>, String>;

/// Builds the path once for each combination of offloads and reads the flags back.
///
/// # Errors
/// The path cannot be built here, none of its offloads can be changed, or the user wants to stop.
pub fn survey_offloads(path: &'static lab::Path, peer: Peer) -> Result<OffloadSurvey, Error> {
    path.available().map_err(measure::Error::from)?;
    path.check(peer).map_err(measure::Error::from)?;
    let as_made = read_back(path, peer, &Axes::default())?.map_err(Error::Nothing)?;
    let first = OffloadChange::all(Switch::On);
    let asked = |change: &OffloadChange| change.with(&Axes::default());
    let all_on = read_back(path, peer, &asked(&first))?.map_err(Error::Nothing)?;
    let (fixed, flags) = changeable(&all_on);
    let mut read = vec![(first, Ok(all_on))];
    for change in assess::offload_changes(&flags).into_iter().skip(1) {
        let states = read_back(path, peer, &asked(&change))?;
        read.push((change, states));
    }
    let survey = OffloadSurvey {
        now: now(&as_made),
        ..compare(fixed, read)
    };
    let measured = survey.combinations.iter().filter(|c| c.is_measured());
    if measured.count() < 2 {
        return Err(Error::Nothing(format!(
            "no device that the traffic of path `{}` with peer `{peer}` passes lets its offloads be changed: \
             choose another path",
            path.name
        )));
    }
    Ok(survey)
}

/// The flags of every device of the path. Those of other devices (a bridge's own device, the wire of a path that does
/// not use it) may differ without affecting the traffic.
fn read_back(path: &'static lab::Path, peer: Peer, axes: &Axes) -> Result<ReadBack, Error> {
    if signals::interrupted() {
        return Err(measure::Error::Interrupted.into());
    }
    match Lab::build(path, peer, axes) {
        Ok(lab) => {
            let hops = &lab.topology.way;
            let on_way = |state: &&OffloadState| {
                hops.iter()
                    .any(|hop| hop.namespace == state.namespace && hop.device == state.device)
            };
            Ok(Ok(lab.offloads.iter().filter(on_way).cloned().collect()))
        }
        Err(lab::Error::OffloadFixed {
            device,
            flag,
            state,
            ..
        }) => Ok(Err(format!("{device} has {flag} {state} [fixed]"))),
        Err(error) => Err(measure::Error::from(error).into()),
    }
}

/// The flags that no device allows to change, and the others.
fn changeable(states: &[OffloadState]) -> (Vec<FixedOffload>, Vec<OffloadFlag>) {
    let mut fixed = Vec::new();
    let mut flags = Vec::new();
    for flag in OffloadFlag::ALL {
        let own: Vec<_> = states.iter().filter(|s| s.flag == flag).collect();
        if own.iter().any(|s| !s.fixed) {
            flags.push(flag);
        } else if let Some(state) = common(&own) {
            fixed.push(FixedOffload { flag, state });
        }
    }
    (fixed, flags)
}

/// The state that devices share, `mixed` if they differ; `None` without devices.
fn common(states: &[&OffloadState]) -> Option<String> {
    let first = states.first()?;
    let alike = states.iter().all(|s| s.state == first.state);
    Some(if alike { &*first.state } else { "mixed" }.to_owned())
}

/// The state of every flag on the devices of the path.
fn now(states: &[OffloadState]) -> Vec<OffloadNow> {
    let state = |flag: OffloadFlag| {
        let own: Vec<_> = states.iter().filter(|s| s.flag == flag).collect();
        common(&own).map(|state| OffloadNow { flag, state })
    };
    OffloadFlag::ALL.into_iter().filter_map(state).collect()
}

/// Which combinations read back alike, and what each changes against the first, all on.
fn compare(fixed: Vec<FixedOffload>, read: Vec<(OffloadChange, ReadBack)>) -> OffloadSurvey {
    let mut seen: Vec<(OffloadChange, Vec<OffloadState>)> = Vec::new();
    let mut combinations = Vec::new();
    for (change, states) in read {
        let mut combination = OffloadCombination {
            change,
            changed: Vec::new(),
            same_as: None,
            refused: None,
        };
        match states {
            Err(cause) => combination.refused = Some(cause),
            Ok(states) => {
                let all_on = seen.first().map_or(&states, |(_, first)| first);
                combination.changed = differing(&states, all_on);
                let alike = seen.iter().find(|(_, other)| is_same(&states, other));
                combination.same_as = alike.map(|(change, _)| change.clone());
                if alike.is_none() {
                    seen.push((combination.change.clone(), states));
                }
            }
        }
        combinations.push(combination);
    }
    OffloadSurvey {
        now: Vec::new(),
        fixed,
        combinations,
    }
}

/// Namespace, device and flag.
fn key(state: &OffloadState) -> (&str, &str, OffloadFlag) {
    (&state.namespace, &state.device, state.flag)
}

/// Flags that differ on some device.
fn differing(states: &[OffloadState], others: &[OffloadState]) -> Vec<OffloadFlag> {
    let differs = |flag: &OffloadFlag| {
        states.iter().filter(|s| s.flag == *flag).any(|state| {
            let other = others.iter().find(|other| key(other) == key(state));
            other.is_none_or(|other| other.state != state.state)
        })
    };
    OffloadFlag::ALL.into_iter().filter(differs).collect()
}

fn is_same(states: &[OffloadState], others: &[OffloadState]) -> bool {
    differing(states, others).is_empty()
}

#[cfg(test)]
mod tests {
    use super::*;
    use OffloadFlag::{Gro, Gso, Lro, Tso, TxChecksum};

    /// Two veth devices: LRO is not available, and TSO goes off with checksums.
    fn veth(change: &OffloadChange) -> Vec<OffloadState> {
        let axes = change.with(&Axes::default());
        let asked = |flag| axes.offload_of("a", "eth0", flag).map(|(to, _)| to);
        let wanted = |flag| asked(flag) == Some(Switch::On);
        let mut states = Vec::new();
        for namespace in ["a", "b"] {
            states.extend(OffloadFlag::ALL.map(|flag| {
                let on = match flag {
                    Lro => false,
                    Tso => wanted(Tso) && wanted(TxChecksum),
                    other => wanted(other),
                };
                OffloadState {
                    namespace: namespace.to_owned(),
                    device: "eth0".to_owned(),
                    flag,
                    state: if on { "on" } else { "off" }.to_owned(),
                    fixed: flag == Lro,
                    asked: asked(flag),
                }
            }));
        }
        states
    }

    fn told(survey: &OffloadSurvey) -> String {
        let mut lines: Vec<String> = survey
            .fixed
            .iter()
            .map(|f| format!("{} fixed {}", f.flag.name(), f.state))
            .collect();
        lines.extend(survey.combinations.iter().map(|c| {
            let changed: Vec<&str> = c.changed.iter().map(|flag| flag.name()).collect();
            let same = c.same_as.as_ref().map(|s| format!(" = {s}"));
            let refused = c.refused.as_ref().map(|cause| format!(" refused: {cause}"));
            format!(
                "{}: [{}]{}{}",
                c.change,
                changed.join(" "),
                same.unwrap_or_default(),
                refused.unwrap_or_default()
            )
        }));
        lines.join("\n")
    }

    #[test]
    fn what_reads_back_alike_is_measured_once() {
        let (fixed, flags) = changeable(&veth(&OffloadChange::all(Switch::On)));
        assert_eq!(flags, [TxChecksum, Tso, Gso, Gro]);
        let changes = assess::offload_changes(&flags);
        let read = changes.into_iter().map(|c| (c.clone(), Ok(veth(&c))));
        insta::assert_snapshot!(told(&compare(fixed, read.collect())), @"
        lro fixed off
        all on: []
        all off: [tx_checksum tso gso gro]
        tx_checksum off, rest on: [tx_checksum tso]
        tso off, rest on: [tso]
        gso off, rest on: [gso]
        gro off, rest on: [gro]
        tso and gso off, rest on: [tso gso]
        tso and gro off, rest on: [tso gro]
        tx_checksum on, rest off: [tso gso gro]
        tso on, rest off: [tx_checksum tso gso gro] = all off
        gso on, rest off: [tx_checksum tso gro]
        gro on, rest off: [tx_checksum tso gso]
        tx_checksum and tso on, rest off: [gso gro]
        ");
    }

    #[test]
    fn what_is_fixed_on_some_devices_only_may_be_refused() {
        let mut on = veth(&OffloadChange::all(Switch::On));
        for state in &mut on {
            state.fixed |= state.flag == Gro || (state.flag == Tso && state.namespace == "a");
            if state.flag == Gro && state.namespace == "b" {
                "off".clone_into(&mut state.state);
            }
        }
        let (fixed, flags) = changeable(&on);
        assert_eq!(flags, [TxChecksum, Tso, Gso]);
        let tso = OffloadChange::but(Switch::On, &[Tso]);
        let gso = OffloadChange::but(Switch::On, &[Gso]);
        let read = vec![
            (OffloadChange::all(Switch::On), Ok(on.clone())),
            (tso, Err("a/eth0 has tso on [fixed]".to_owned())),
            (gso, Ok(on)),
        ];
        insta::assert_snapshot!(told(&compare(fixed, read)), @"
        gro fixed mixed
        lro fixed off
        all on: []
        tso off, rest on: [] refused: a/eth0 has tso on [fixed]
        gso off, rest on: [] = all on
        ");
    }
}
