//! The tap switch of a lab: our own, as a process beside the others.

use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::{Mutex, PoisonError};

use hopyard_net::NetNs;

use super::builder::Builder;
use super::daemon::{Home, Program, Ready, Service};
use super::need::Need;
use super::{Error, Result};
use crate::guest::Carried;
use crate::model::{Datapath, DatapathKind};
use crate::tapswitch;

static SWITCH: Program = Program {
    name: "hopyard",
    called: "the tap switch",
    remedy: "check that the program file still exists and was not replaced",
};
/// Multi-queue taps, and io_uring for the switch that joins them.
pub const NEED: Need = Need {
    since: "6.7",
    carried: Carried::modules(&["tun"]),
    ..Need::new("taps and io_uring", |_| probe())
};
/// Where its directories are.
pub(super) static HOME: Home = Home {
    shown_by: Some(|name| format!("hopyard tapswitch show {name}")),
    ..Home::new("tap switch", tapswitch::HOME, &[SWITCH.name])
};
/// Queues of each tap where the axes do not say.
pub(crate) const QUEUES: u32 = 2;

static PROGRAM: Mutex<Option<PathBuf>> = Mutex::new(None);

/// Has labs that are built from now on start switches of hopyard's own with this program, in place of the one that runs.
pub fn set_program(program: PathBuf) {
    *PROGRAM.lock().unwrap_or_else(PoisonError::into_inner) = Some(program);
}

pub(super) fn program() -> Result<PathBuf> {
    let program = PROGRAM.lock().unwrap_or_else(PoisonError::into_inner);
    program.clone().map_or_else(
        || {
            std::env::current_exe().map_err(|source| Error::File {
                what: "find the file of the running hopyard".to_owned(),
                source,
            })
        },
        Ok,
    )
}

/// Can this host run the tap switch?
fn probe() -> hopyard_net::Result<()> {
    probe_taps()?;
    hopyard_tap::switch::supported().map_err(|error| hopyard_net::Error::Unsupported {
        what: "run the tap switch".to_owned(),
        feature: "io_uring".to_owned(),
        remedy: crate::chain(&error),
    })
}

/// Can this host make taps?
pub(super) fn probe_taps() -> hopyard_net::Result<()> {
    let ns = NetNs::create()?;
    let new = hopyard_tap::NewDevice {
        queues: hopyard_tap::Queues::Multi(1),
        ..hopyard_tap::NewDevice::tap("probe")
    };
    match ns.run(|| new.create())? {
        Ok(_) => Ok(()),
        Err(hopyard_tap::Error::Net(error)) => Err(error),
        Err(error) => Err(hopyard_net::Error::Unsupported {
            what: "make a multi-queue tap".to_owned(),
            feature: "tun".to_owned(),
            remedy: format!(
                "load module `tun` (CONFIG_TUN) and check that /dev/net/tun can be opened ({}), or choose another \
                 path",
                crate::chain(&error)
            ),
        }),
    }
}

impl Builder {
    /// The tap switch, with a multi-queue tap of each name in each namespace, up and with the lab's MTU.
    ///
    /// # Errors
    /// The switch does not start, or the kernel will not; there are to be more threads than queues.
    pub(crate) fn tap_switch(&mut self, taps: &[(&'static str, &'static str)]) -> Result<()> {
        let queues = self.axes().queues.unwrap_or(QUEUES);
        let threads = self.axes().queue_threads;
        check_threads(threads, queues)?;
        let mut switch = Command::new(program()?);
        switch.stdin(Stdio::null());
        switch.args(["tapswitch", "run", &self.id.to_string()]);
        for (role, name) in taps {
            // The namespaces have no names; the switch finds them among our descriptors.
            let file = self.space(role)?.ns().proc_path();
            switch.arg(format!("--tap={name}@{}", file.display()));
        }
        let axes = self.axes();
        switch.arg(format!("--queues={queues}"));
        if let Some(threads) = threads {
            switch.arg(format!("--threads={threads}"));
        }
        if let Some(steering) = axes.steering {
            switch.arg(format!("--steering={steering}"));
        }
        if let Some(join) = axes.join {
            switch.arg(format!("--join={join}"));
        }
        let datapath = Datapath {
            switch: "hopyard tapswitch".to_owned(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            kind: DatapathKind::Userspace,
            hook: None,
        };
        let service = self.service(&HOME, datapath)?;
        let socket = service.directory().join("ctl");
        service.start(&SWITCH, switch, Some(Ready::Socket(socket)))?;
        let mtu = self.mtu();
        let queue_length = self.axes().queue_length;
        for (role, name) in taps {
            let space = self.space(role)?;
            space.set_mtu(name, mtu)?;
            if let Some(frames) = queue_length {
                space.set_tx_queue_len(name, frames)?;
            }
            self.note_device(role, name);
        }
        Ok(())
    }
}

/// Refuses threads that would have no queue to serve.
fn check_threads(threads: Option<u32>, queues: u32) -> Result<()> {
    match threads {
        Some(threads) if threads > queues => {
            let why = format!(
                "each thread serves one queue at least, and each tap has {queues}; set `queue_threads` to {queues} or \
                 less, or `queues` to {threads} or more"
            );
            let (switch, value) = (SWITCH.called, threads.to_string());
            Err(Error::refused(switch, "queue_threads", value, why))
        }
        _ => Ok(()),
    }
}

/// How often flows have changed queues since the switch was started; `None` where there is one queue alone, or nobody who counts.
pub(super) fn queue_changes(switch: Option<&Service>) -> Result<Option<u64>> {
    let Some(switch) = switch.filter(|s| std::ptr::eq(s.home, &HOME)) else {
        return Ok(None);
    };
    let document = tapswitch::read(&switch.name)?;
    let counts = document.ports.iter().map(|port| port.queue_changes);
    Ok((document.queues.attached > 1).then(|| counts.sum()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_without_a_queue_is_refused_with_what_to_set() {
        for (threads, queues) in [(None, 1), (Some(1), 1), (Some(1), 4), (Some(4), 4)] {
            assert!(check_threads(threads, queues).is_ok(), "{threads:?}");
        }
        let error = check_threads(Some(3), 2).unwrap_err();
        assert_eq!(
            error.to_string(),
            "the tap switch cannot have queue_threads=3: each thread serves one queue at least, and each tap has 2; set \
             `queue_threads` to 2 or less, or `queues` to 3 or more"
        );
        assert!(error.is_unsupported());
    }
}
