//! The plan that measures combinations of offloads.

use std::time::Duration;

use super::{Part, Paths, Plan};
use crate::model::{Base, Blocks, LoadKind, OffloadChange, OffloadFlag, OffloadSurvey, Peer};

/// Long enough to settle after the warm-up. More blocks are better than longer windows.
const WINDOW: Duration = Duration::from_millis(300);
const WARM_UP: Duration = Duration::from_millis(100);
const BLOCKS: Blocks = Blocks { min: 10, max: 16 };
/// For each load, so that a sweep of one load ends within two minutes.
const TIME_LIMIT: Duration = Duration::from_secs(100);

/// The plan of a sweep: each distinct combination under each load.
#[must_use]
pub fn offloads(path: &str, peer: Peer, loads: &[LoadKind], survey: &OffloadSurvey) -> Plan {
    let measured = survey.combinations.iter().filter(|c| c.is_measured());
    let part = |change: &OffloadChange| Part {
        paths: Paths::Named(vec![path.to_owned()]),
        peers: vec![peer],
        loads: loads.to_vec(),
        set: settings(change),
    };
    let count = u32::try_from(loads.len()).unwrap_or(u32::MAX);
    Plan {
        name: "offloads".to_owned(),
        summary: format!("what each offload does on {path}"),
        parts: measured.map(|c| part(&c.change)).collect(),
        base: Some(Base::OFFLOAD.to_owned()),
        base_asked: false,
        limit_asked: false,
        needs: Vec::new(),
        window: WINDOW,
        warm_up: WARM_UP,
        profile_window: None,
        blocks: BLOCKS,
        half_width: 0.025,
        confidence: 0.95,
        margin: 0.02,
        time_limit: Some(TIME_LIMIT.saturating_mul(count)),
        turns: true,
        decide: None,
        published: Vec::new(),
        settings: None,
        endpoints: None,
        fail_on: None,
        where_installed: false,
        keep_awake: false,
    }
}

/// The axes that select a combination.
fn settings(change: &OffloadChange) -> Vec<(String, Vec<String>)> {
    let single = |flag: &OffloadFlag| (flag.name(), change.rest.other());
    std::iter::once((Base::OFFLOAD, change.rest))
        .chain(change.flags.iter().map(single))
        .map(|(axis, value)| (axis.to_owned(), vec![value.to_string()]))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{FixedOffload, OffloadCombination, Switch};
    use crate::plan::expand;

    #[test]
    fn what_is_alike_or_refused_has_no_cells() {
        let combination = |change, same_as, refused| OffloadCombination {
            change,
            changed: Vec::new(),
            same_as,
            refused,
        };
        let (on, off) = (
            OffloadChange::all(Switch::On),
            OffloadChange::all(Switch::Off),
        );
        let but = |rest, flag| OffloadChange::but(rest, &[flag]);
        let survey = OffloadSurvey {
            now: Vec::new(),
            fixed: vec![FixedOffload {
                flag: OffloadFlag::Lro,
                state: "off".to_owned(),
            }],
            combinations: vec![
                combination(on, None, None),
                combination(off.clone(), None, None),
                combination(but(Switch::On, OffloadFlag::Gro), None, None),
                combination(but(Switch::Off, OffloadFlag::Tso), Some(off), None),
                combination(
                    but(Switch::On, OffloadFlag::Gso),
                    None,
                    Some("no".to_owned()),
                ),
            ],
        };
        let loads = [LoadKind::TcpStream, LoadKind::TcpRr];
        let plan = offloads("native", Peer::Local, &loads, &survey);
        assert_eq!(plan.time_limit, Some(Duration::from_secs(200)));
        let cells = expand(&plan).unwrap().cells;
        let asked: Vec<String> = cells
            .iter()
            .filter_map(|cell| Some(format!("{} {}", cell.load, OffloadChange::of(&cell.axes)?)))
            .collect();
        insta::assert_snapshot!(asked.join("\n"), @"
        tcp_stream all on
        tcp_rr all on
        tcp_stream all off
        tcp_rr all off
        tcp_stream gro off, rest on
        tcp_rr gro off, rest on
        ");
    }
}
