//! The command that measures a pair.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use hopyard_model::{Family, units};

use crate::endpoints::Endpoint;
use crate::plan::Plan;

/// The run of a pair. A run's own time limit would end it early without a word: what ends it is the pair's deadline, so its limit is
/// twice that.
pub(super) fn run_between(
    [client, server]: [&Endpoint; 2],
    plan: &Plan,
    program: &Path,
    directory: &Path,
) -> Command {
    let loads: Vec<&str> = plan.loads.iter().map(|load| load.name()).collect();
    let limit = Duration::from_secs(2 * plan.deadline_s);
    let mut command = Command::new(program);
    command
        .args(["run", "--paths", "as-is", "--json"])
        .arg(format!("--client={}", client.connect))
        .arg(format!("--server={}", server.connect))
        .args(["--loads", &loads.join(",")])
        .args(["--window", &units::show_short_duration(plan.window())])
        .args(["--warm-up", &units::show_short_duration(plan.warm_up())])
        .args([
            "--blocks",
            &format!("{}..{}", plan.blocks_min, plan.blocks_max),
        ])
        .args(["--time-limit", &units::show_short_duration(limit)])
        .arg("--out")
        .arg(directory.join("run"));
    if plan.family != Family::V4 {
        command.args(["--set", &format!("family={}", plan.family)]);
    }
    if let Some(address) = server.address {
        command.args(["--server-address", &address.to_string()]);
    }
    command
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::Settings;
    use crate::plan::tests::machines;

    #[test]
    fn traffic_has_the_family_of_the_addresses() {
        let words = |address: Option<&str>, family| {
            let mut machines = machines(2);
            machines[1].address = address.map(|a| a.parse().unwrap());
            let settings = Settings {
                family,
                ..Settings::default()
            };
            let plan = Plan::new(machines, &settings).map_err(|e| e.to_string())?;
            let ends = [0, 1].map(|at| &plan.endpoints[at]);
            let run = run_between(ends, &plan, Path::new("hopyard"), Path::new("d"));
            let words = run.get_args().map(|word| word.to_str().unwrap().to_owned());
            Ok::<_, String>(words.collect::<Vec<_>>().join(" "))
        };
        let v6 = words(Some("2001:db8::1"), None).unwrap();
        assert!(v6.contains("--set family=6") && v6.ends_with("--server-address 2001:db8::1"));
        assert!(words(None, Some(Family::V6)).unwrap().contains("family=6"));
        assert!(!words(Some("192.0.2.1"), None).unwrap().contains("family"));
        let refused = words(Some("192.0.2.1"), Some(Family::V6)).unwrap_err();
        assert!(refused.contains("`n2` has address 192.0.2.1"), "{refused}");
    }

    #[test]
    fn a_run_may_take_as_long_as_its_pair() {
        let settings = Settings {
            window: Some(Duration::from_secs(60)),
            ..Settings::default()
        };
        let plan = Plan::new(machines(2), &settings).unwrap();
        assert!(plan.deadline_s > 8 * 60);
        let [client, server] = [0, 1].map(|at| &plan.endpoints[at]);
        let run = run_between(
            [client, server],
            &plan,
            Path::new("hopyard"),
            Path::new("d"),
        );
        let words: Vec<_> = run.get_args().map(|word| word.to_str().unwrap()).collect();
        let limit = words.iter().position(|word| *word == "--time-limit");
        let limit = units::parse_duration(words[limit.unwrap() + 1]).unwrap();
        assert_eq!(limit.as_secs(), 2 * plan.deadline_s, "{words:?}");
    }
}
