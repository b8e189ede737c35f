//! `hopyard switch`.

use std::process::ExitCode;

use hopyard_switch::{NewPort, NewSwitch, NewUplink, PortChange, Switch};

use super::args::{PortCommand, SwitchArgs, SwitchCommand};
use super::{Done, Failure};
use crate::lab::LabId;

mod apply;
mod headers;
mod metrics;
mod shortcut;
mod show;
mod stats;
mod trace;
mod words;

use show::warn;
pub(super) use words::advice;

pub(super) fn switch(args: SwitchArgs) -> Done {
    match args.command {
        SwitchCommand::Create {
            name,
            uplink,
            answer,
            host_mac,
            behind_others,
            shortcut,
            accept,
        } => {
            need_a_free_name(&name)?;
            let new = NewSwitch {
                name: &name,
                uplink: uplink.as_deref(),
                host_macs: host_mac,
                answers: answer,
                behind_others,
                ..NewSwitch::default()
            };
            let switch = match shortcut {
                Some(cgroup) => shortcut::create(&new, &cgroup, &accept)?,
                None => Switch::create(&new)?,
            };
            warn(&switch.show()?);
            Ok(ExitCode::SUCCESS)
        }
        SwitchCommand::Uplink {
            name,
            device,
            host_mac,
        } => {
            let mut switch = Switch::open(&name)?;
            switch.set_uplink(&NewUplink {
                device: &device,
                host_macs: (!host_mac.is_empty()).then_some(&host_mac),
            })?;
            warn(&switch.show()?);
            Ok(ExitCode::SUCCESS)
        }
        SwitchCommand::Shortcut {
            name,
            cgroup,
            accept,
            off: _,
        } => shortcut::set(&name, cgroup.as_deref(), &accept),
        SwitchCommand::Port(args) => port(args.command),
        SwitchCommand::Apply(args) => apply::apply(&args),
        SwitchCommand::Export { name } => apply::export(&name),
        SwitchCommand::Show { name, json } => show::show(name, json),
        SwitchCommand::Stats { name, json, watch } => stats::stats(&name, json, watch),
        SwitchCommand::Trace(args) => trace::trace(&args),
        SwitchCommand::Metrics { name, output } => metrics::metrics(name, output.as_deref()),
        SwitchCommand::Upgrade { name: Some(name) } => {
            upgrade(&name)?;
            Ok(ExitCode::SUCCESS)
        }
        SwitchCommand::Upgrade { name: None } => upgrade_all(),
        SwitchCommand::Delete { name, unused: true } => {
            Switch::remove_unused(&name)?;
            Ok(ExitCode::SUCCESS)
        }
        SwitchCommand::Delete {
            name,
            unused: false,
        } => {
            Switch::remove(&name)?;
            Ok(ExitCode::SUCCESS)
        }
    }
}

/// Does something with each switch. A switch that is removed meanwhile is left out. So is one that another version of hopyard made,
/// with a note.
fn of_all<T>(each: impl Fn(&str) -> hopyard_switch::Result<T>) -> Result<Vec<T>, Failure> {
    let mut all = Vec::new();
    for name in Switch::list()? {
        match each(&name) {
            Ok(one) => all.push(one),
            Err(hopyard_switch::Error::NoSwitch { .. }) => {}
            Err(error @ hopyard_switch::Error::OtherLayout { .. }) => {
                crate::note(format_args!("left out: {}", Failure::from(error).message));
            }
            Err(error) => return Err(error.into()),
        }
    }
    Ok(all)
}

fn upgrade(name: &str) -> hopyard_switch::Result<()> {
    until_it_stays(|| Switch::open(name)?.upgrade())
}

/// Changes the switch that there is, also where somebody deletes it and makes it anew meanwhile.
fn until_it_stays(
    mut change: impl FnMut() -> hopyard_switch::Result<()>,
) -> hopyard_switch::Result<()> {
    loop {
        match change() {
            Err(hopyard_switch::Error::MadeAnew { .. }) => {}
            changed => return changed,
        }
    }
}

/// Continues after switches that cannot be upgraded, and names each.
fn upgrade_all() -> Done {
    let mut failures = Vec::new();
    for name in Switch::list()? {
        match upgrade(&name) {
            // It was deleted meanwhile.
            Ok(()) | Err(hopyard_switch::Error::NoSwitch { .. }) => {}
            Err(error) => failures.push(Failure::from(error)),
        }
    }
    let Some(status) = failures.iter().map(|failure| failure.status).max() else {
        return Ok(ExitCode::SUCCESS);
    };
    let messages: Vec<String> = failures.into_iter().map(|one| one.message).collect();
    Err(Failure {
        status,
        message: messages.join("\n"),
    })
}

/// Refuses names of the form that switches of labs have.
fn need_a_free_name(name: &str) -> Result<(), Failure> {
    if LabId::of_switch(name).is_none() {
        return Ok(());
    }
    let why = format!("`{name}` is reserved for switches of labs: choose another name");
    Err(Failure::request(why))
}

fn port(command: PortCommand) -> Done {
    match command {
        PortCommand::Add {
            name,
            device,
            mac,
            ip,
            ip_prefix,
            vlan,
            isolated,
            allow_spoof,
            queued,
            router,
            dhcp_server,
            broadcasts,
            rate_in,
            rate_out,
        } => Switch::open(&name)?.add_port(&NewPort {
            device: &device,
            macs: mac,
            ips: ip,
            prefixes: ip_prefix,
            vlan,
            isolated,
            allow_spoof,
            queued,
            router,
            dhcp_server,
            broadcasts,
            rate_in,
            rate_out,
            ..NewPort::default()
        })?,
        PortCommand::Set {
            name,
            device,
            isolated,
            allow_spoof,
            router,
            dhcp_server,
            broadcasts,
            rate_in,
            rate_out,
        } => Switch::open(&name)?.set_port(&PortChange {
            device: &device,
            isolated: isolated.map(bool::from),
            router: router.map(bool::from),
            dhcp_server: dhcp_server.map(bool::from),
            broadcasts,
            allow_spoof: allow_spoof.map(bool::from),
            rate_in,
            rate_out,
            ..PortChange::default()
        })?,
        PortCommand::Del { name, device } => Switch::open(&name)?.remove_port(&device)?,
    }
    Ok(ExitCode::SUCCESS)
}

#[cfg(test)]
mod tests {
    use hopyard_switch::Error;

    use super::*;

    #[test]
    fn a_switch_that_was_made_anew_is_changed_and_one_that_is_gone_is_not() {
        let name = || "lan".to_owned();
        let gone = || Error::NoSwitch {
            name: name(),
            there: Vec::new(),
        };
        for is_there in [true, false] {
            let mut calls = 0;
            let done = until_it_stays(|| {
                calls += 1;
                match calls {
                    1 | 2 => Err(Error::MadeAnew { name: name() }),
                    _ if is_there => Ok(()),
                    _ => Err(gone()),
                }
            });
            assert_eq!((calls, done.is_ok()), (3, is_there));
        }
    }
}
