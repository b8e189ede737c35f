//! `hopyard switch apply` and `export`.

use std::process::ExitCode;
use std::time::{Duration, Instant};

use hopyard_switch::Switch;
use hopyard_switch::apply::{Plan, PresentPort, Turn};
use serde::Serialize;

use super::super::args::ApplyArgs;
use super::super::{Done, Failure, pretty, print};
use super::need_a_free_name;

mod file;
mod words;

use file::Described;
use words::words;

/// Interval of checks for missing devices.
const PERIOD: Duration = Duration::from_millis(100);
/// Exit status of `--dry-run` if there is something to do, as for `diff`.
const DIFFERS: u8 = 1;

#[derive(Serialize)]
struct Document<'a> {
    schema: &'static str,
    switch: &'a str,
    dry_run: bool,
    changes: Vec<Step>,
    left_alone: &'a [String],
    missing: &'a [String],
    other_mac: &'a [String],
}

#[derive(Serialize)]
struct Step {
    step: &'static str,
    device: Option<String>,
    text: String,
}

pub(super) fn apply(args: &ApplyArgs) -> Done {
    let described = file::read(&args.file).map_err(Failure::request)?;
    need_a_free_name(&described.spec.name)?;
    let (plan, _turn) = compare(&described, args)?;
    if !args.dry_run {
        carry_out(&plan, args.json)?;
    }
    if args.json {
        print(&json(&plan, args.dry_run)?)?;
    } else {
        print(&text(&plan, args.dry_run))?;
    }
    if args.dry_run && !plan.changes.is_empty() {
        return Ok(ExitCode::from(DIFFERS));
    }
    if !plan.changes.is_empty() {
        super::warn(&Switch::open(&plan.name)?.show()?);
    }
    Ok(ExitCode::SUCCESS)
}

/// The steps needed, and the right to take them; waits for missing devices, and lets others go first meanwhile.
fn compare(described: &Described, args: &ApplyArgs) -> Result<(Plan, Turn), Failure> {
    let end = args.wait.map(|wait| Instant::now() + wait);
    loop {
        let turn = Turn::take()?;
        let plan = described.spec.compare(args.prune)?;
        if plan.problems.is_empty() {
            return Ok((plan, turn));
        }
        drop(turn);
        let may_come = plan.problems.iter().all(|problem| problem.missing);
        if may_come && end.is_some_and(|end| Instant::now() < end) {
            std::thread::sleep(PERIOD);
            continue;
        }
        let all: Vec<String> = plan.problems.iter().map(|p| described.say(p)).collect();
        return Err(Failure::request(all.join("\n")));
    }
}

fn carry_out(plan: &Plan, silent: bool) -> Result<(), Failure> {
    let mut done = 0;
    let mut told = Ok(ExitCode::SUCCESS);
    let carried_out = plan.carry_out(|change| {
        done += 1;
        if !silent {
            // Printed at once, because the next step may take long or fail.
            let line = format!("{}: {}\n", plan.name, words(change).text);
            told = print(&line);
        }
    });
    if let Err(error) = carried_out {
        let mut failure = Failure::from(error);
        failure.message += &format!(
            "; {done} of {} steps are done, and the next `hopyard switch apply` takes those that are left",
            plan.changes.len()
        );
        return Err(failure);
    }
    told.map(drop)
}

fn json(plan: &Plan, dry_run: bool) -> Result<String, Failure> {
    let steps = plan.changes.iter().map(words).map(|words| Step {
        step: words.step,
        device: words.device,
        text: words.text,
    });
    pretty(&Document {
        schema: "hopyard/switch-apply/1",
        switch: &plan.name,
        dry_run,
        changes: steps.collect(),
        left_alone: &plan.left_alone,
        missing: &plan.missing,
        other_mac: &plan.other_mac,
    })
}

fn text(plan: &Plan, dry_run: bool) -> String {
    let Plan { name, changes, .. } = plan;
    let mut text = String::new();
    if dry_run {
        for change in changes {
            text += &format!("{name}: would {}\n", words(change).text);
        }
    }
    for missing in &plan.missing {
        text += &format!("{name}: optional port left out: {missing}\n");
    }
    for port in &plan.other_mac {
        text += &format!(
            "{name}: {port}, whose frames are dropped; if that is right, write it as `mac`\n"
        );
    }
    if !plan.left_alone.is_empty() {
        let ports = plan.left_alone.join(", ");
        text += &format!("{name}: ports left alone, which are not in the file: {ports}\n");
    }
    let number = changes.len();
    text += &match (number, dry_run) {
        (0, _) => format!("{name}: nothing to do\n"),
        (1, true) => format!("{name}: 1 step to take\n"),
        (1, false) => format!("{name}: 1 step taken\n"),
        (_, true) => format!("{name}: {number} steps to take\n"),
        (_, false) => format!("{name}: {number} steps taken\n"),
    };
    text
}

/// A file from which `apply` makes the switch.
pub(super) fn export(name: &str) -> Done {
    let present = Switch::open(name)?.described()?;
    let quoted = |text: &str| toml::Value::String(text.to_owned()).to_string();
    let mut text = format!("name = {}\n", quoted(name));
    if let Some(uplink) = &present.uplink {
        text += &format!("uplink = {}\n", quoted(uplink));
    }
    if !present.host_macs.is_empty() {
        let macs: Vec<String> = present
            .host_macs
            .iter()
            .map(|m| quoted(&m.to_string()))
            .collect();
        text += &format!("host_mac = [{}]\n", macs.join(", "));
    }
    for (key, is) in [
        ("answer", present.answers),
        ("behind_others", present.behind_others),
    ] {
        if is {
            text += &format!("{key} = true\n");
        }
    }
    if let Some(shortcut) = &present.shortcut {
        text += &words::shortcut_table(shortcut);
    }
    for PresentPort { spec, declared, .. } in &present.ports {
        text += "\n[[ports]]\n";
        if !declared {
            text += "# not made from a file: take it out if it is another program's\n";
        }
        text += &format!("device = {}\n", quoted(&spec.device));
        for setting in words::settings(spec) {
            text += &format!("{setting}\n");
        }
    }
    print(&text)
}
