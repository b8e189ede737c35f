use clap::{CommandFactory, Parser};

use super::*;
use crate::cli::command::{Args, Command};

#[test]
fn the_definition_is_sound() {
    Args::command().debug_assert();
}

#[test]
fn axes_are_checked_where_they_are_typed() {
    assert!(axis_values("flows=1,2,4").is_ok());
    assert!(axis_values("flows").is_err());
    assert!(
        axis_values("flows=2,placement=same")
            .unwrap_err()
            .contains("--set placement=same")
    );
    let of_devices = axis_values("gro@br0=on,off").unwrap();
    assert_eq!(of_devices.0, "device_offload");
    assert_eq!(of_devices.1, ["gro@br0=on", "gro@br0=off"]);
    assert!(axis_values("device_offload=none,gro@br0=off+tso@a/eth0=on").is_ok());
    for (wrong, why) in [
        ("gro@br0=off,tso@eth0=off", "--set tso@eth0=off"),
        ("gro@br0=red", "no switch `red`"),
        ("device_offload=gro@br0=red", "no switch `red`"),
        ("mtu@br0=on", "no offload flag `mtu`"),
    ] {
        let error = axis_values(wrong).unwrap_err();
        assert!(error.contains(why), "{wrong}: {error}");
    }
    assert!(
        axis_values("flows=0")
            .unwrap_err()
            .contains("out of bounds")
    );
    assert!(
        axis_values("colour=red")
            .unwrap_err()
            .contains("there is no axis `colour`")
    );
}

fn port_command(words: &[&str]) -> Result<PortCommand, String> {
    let all = ["hopyard", "switch", "port"].into_iter();
    let all = all.chain(words.iter().copied());
    match Args::try_parse_from(all)
        .map_err(|error| error.to_string())?
        .command
    {
        Command::Switch(SwitchArgs {
            command: SwitchCommand::Port(port),
        }) => Ok(port.command),
        other => Err(format!("{other:?}")),
    }
}

#[test]
fn a_change_of_a_port_says_what_changes() {
    let set = |words: &[&str]| port_command(&[&["set", "s", "va"], words].concat());
    let is_isolated = |words: &[&str]| match set(words) {
        Ok(PortCommand::Set { isolated, .. }) => isolated.map(bool::from),
        other => panic!("{other:?}"),
    };
    assert_eq!(is_isolated(&["--isolated"]), Some(true));
    assert_eq!(is_isolated(&["--isolated", "off"]), Some(false));
    assert_eq!(is_isolated(&["--router", "--dhcp-server", "off"]), None);
    assert!(set(&[]).unwrap_err().contains("--isolated"));
    assert!(set(&["--isolated", "perhaps"]).is_err());
    let error = set(&["--broadcasts", "many"]).unwrap_err();
    assert!(error.contains("`unlimited`"), "{error}");
}

#[test]
fn a_port_has_a_limit_of_broadcasts_and_no_server_unasked() {
    let Ok(PortCommand::Add {
        router,
        dhcp_server,
        broadcasts,
        ..
    }) = port_command(&["add", "s", "va"])
    else {
        panic!("it is no port to add");
    };
    assert!(!router && !dhcp_server);
    assert_eq!(broadcasts.per_second(), Some(100));
    let error = port_command(&["add", "s", "va", "--ip-prefix", "fd00::1/64"]).unwrap_err();
    assert!(error.contains("fd00::/64"), "{error}");
}

/// Each command of the pages about what the reports have is one that there is, with its paths, axes, values and claims.
#[test]
fn commands_of_the_reports_pages_are_accepted() {
    let docs = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/reports");
    let read = |page| std::fs::read_to_string(format!("{docs}/{page}.md")).unwrap();
    let page = ["systems", "rules"].map(read).concat();
    let reports = crate::claims::reports().unwrap();
    let claims = reports.iter().flat_map(|report| &report.claims);
    let questions = reports.iter().flat_map(|report| &report.questions);
    let ids = claims.map(|claim| claim.id.as_str());
    let ids: Vec<&str> = ids.chain(questions.map(|one| one.id.as_str())).collect();
    let rows = page.lines().filter(|line| line.starts_with('|'));
    let quoted = rows.flat_map(|row| row.split('`').skip(1).step_by(2));
    let mut runs = 0;
    for command in quoted.filter(|command| command.starts_with("hopyard ")) {
        let words = shlex::split(command).unwrap();
        let args = Args::try_parse_from(&words).unwrap_or_else(|e| panic!("{command}: {e}"));
        match args.command {
            Command::Run(args) => {
                let plan = crate::cli::run::planned(&args);
                let mut plan = plan.unwrap_or_else(|e| panic!("{command}: {e:?}"));
                plan.where_installed = true;
                match crate::plan::expand(&plan) {
                    Ok(cells) => assert!(!cells.cells.is_empty(), "{command}"),
                    // What a path or an axis takes may not be here.
                    Err(crate::plan::ExpandError::NoPaths(_)) => {}
                    Err(error) => {
                        let error = crate::chain(&error);
                        assert!(error.contains("this host has no "), "{command}: {error}");
                    }
                }
                runs += 1;
            }
            Command::Claims(_) => {
                let is_id = |word: &&String| word.starts_with(|c: char| c.is_ascii_uppercase());
                for id in words.iter().filter(is_id) {
                    assert!(ids.contains(&id.as_str()), "{command}: {id}");
                }
            }
            _ => {}
        }
    }
    assert!(runs >= 25, "{runs}");
}
