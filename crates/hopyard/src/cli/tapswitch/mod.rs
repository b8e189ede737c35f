//! `hopyard tapswitch`.

mod args;
mod ports;
mod show;

use std::os::fd::AsFd;
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use hopyard_net::NetNs;
use hopyard_tap::Offloads;
use hopyard_tap::switch::{NewPort, NewSwitch, QueueCount};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

pub(super) use args::TapswitchArgs;
use args::{Queues, RunArgs, TapswitchCommand};

use super::{Done, Failure, is_read, line, pretty, print};
use crate::signals;
use crate::tapswitch::{Claim, Document, Error, names, need_free, read};

/// Interval of `stats --watch`.
const PERIOD: Duration = Duration::from_secs(1);

pub(super) fn tapswitch(args: TapswitchArgs) -> Done {
    match args.command {
        TapswitchCommand::Run(args) => run(&args),
        TapswitchCommand::Show { name, json } => show(name, json),
        TapswitchCommand::Stats { name, json, watch } => stats(&name, json, watch),
    }
}

impl From<hopyard_tap::Error> for Failure {
    fn from(error: hopyard_tap::Error) -> Self {
        if error.is_usage() {
            Self::asked(&error)
        } else {
            Self::internal(&error)
        }
    }
}

fn run(args: &RunArgs) -> Done {
    signals::listen().map_err(|error| Failure::internal(&error))?;
    let new = new_switch(args)?;
    let asked = match new.queues {
        QueueCount::Fixed(count) => count.to_string(),
        QueueCount::Auto { .. } => "auto".to_owned(),
    };
    let steering = format!("{:?}", args.steering).to_lowercase();
    let join = format!("{:?}", args.join).to_lowercase();
    need_free(&args.name)?;
    let switch = new.start()?;
    // Only now, because a client that can reach it may rely on its devices.
    let claim = Claim::take(&args.name)?;
    let labels = args.ports.0.iter().map(|port| port.tap.label.clone());
    let labels: Vec<String> = labels.collect();
    let set = (&*asked, &*steering, &*join);
    let document = || Document::new(&args.name, &labels, set, &switch.state());
    answer(&claim, document);
    print(&show::totals(&document()))
}

fn new_switch(args: &RunArgs) -> Result<NewSwitch, Failure> {
    let here = NetNs::current().map_err(hopyard_tap::Error::from)?;
    let port = |port: &ports::Port| -> Result<NewPort, hopyard_tap::Error> {
        Ok(NewPort {
            device: port.tap.device.clone(),
            ns: match &port.tap.netns {
                Some(file) => NetNs::open(Path::new(file))?,
                None => here.try_clone()?,
            },
            rules: port.rules.clone(),
        })
    };
    Ok(NewSwitch {
        ports: args.ports.0.iter().map(port).collect::<Result<_, _>>()?,
        queues: match args.queues {
            Queues::Fixed(count) => QueueCount::Fixed(count),
            Queues::Auto => QueueCount::Auto {
                most: std::thread::available_parallelism().map_or(1, usize::from),
            },
        },
        threads: args.threads,
        steering: args.steering.into(),
        offloads: if args.no_offloads {
            Offloads::default()
        } else {
            Offloads::ALL
        },
        join: args.join.into(),
        send_buffer: args.send_buffer,
        ..NewSwitch::default()
    })
}

/// Answers requests until the switch must end.
fn answer(claim: &Claim, document: impl Fn() -> Document) {
    while !signals::interrupted() {
        let mut asked = [PollFd::new(claim.listener().as_fd(), PollFlags::POLLIN)];
        // A signal ends the wait; one just before the wait is seen slightly later.
        let limit = PollTimeout::from(100u8);
        if matches!(poll(&mut asked, limit), Ok(count) if count > 0) {
            claim.answer(&document);
        }
    }
}

fn show(name: Option<String>, json: bool) -> Done {
    let switches = match name {
        Some(name) => vec![read(&name)?],
        None => all()?,
    };
    if json {
        return print(&pretty(&switches)?);
    }
    if switches.is_empty() {
        return print("no tap switch runs\n");
    }
    for document in &switches {
        print(&show::what(document))?;
        for port in document.ports.iter().filter(|port| !port.there) {
            crate::note(format_args!(
                "{}: tap `{}` was deleted",
                document.switch, port.port
            ));
        }
        if let Some(trouble) = &document.queues.trouble {
            crate::note(format_args!("{}: {trouble}", document.switch));
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// The status of all running switches; those that end meanwhile are left out.
fn all() -> Result<Vec<Document>, Error> {
    let each = names()?.into_iter().map(|name| read(&name));
    each.filter(|answer| !matches!(answer, Err(Error::None { .. })))
        .collect()
}

fn stats(name: &str, json: bool, watch: bool) -> Done {
    let mut last = read(name)?;
    let mut text = if json && !watch {
        pretty(&last)?
    } else if json {
        line(&last)?
    } else {
        show::totals(&last)
    };
    while is_read(&text)? && watch {
        std::thread::sleep(PERIOD);
        let mut now = read(name)?;
        now.span_s = Some(now.uptime_s - last.uptime_s);
        text = if json {
            line(&now)?
        } else {
            show::rates(&now, &last)
        };
        last = now;
    }
    Ok(ExitCode::SUCCESS)
}
