//! The command that measures a pair.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use hopyard_model::units;

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
