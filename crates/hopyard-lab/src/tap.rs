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
use crate::model::{Datapath, DatapathKind, QueueFrames};
use crate::tapswitch::{self, Document};

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

/// What a tap switch counted of the queues of its taps.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QueueCounts {
    /// How often flows changed queues, all taps together.
    pub changes: u64,
    /// What each tap gave the switch; empty if the switch does not count by queue.
    pub frames: Vec<QueueFrames>,
}

impl QueueCounts {
    /// The difference to an earlier reading of the same switch.
    #[must_use]
    pub fn since(&self, start: &Self) -> Self {
        let taps = self.frames.iter().zip(&start.frames);
        Self {
            changes: self.changes.saturating_sub(start.changes),
            frames: taps.map(|(now, then)| now.since(then)).collect(),
        }
    }

    /// `None` where there is one queue alone.
    fn of(document: &Document) -> Option<Self> {
        if document.queues.attached < 2 {
            return None;
        }
        let ports = document.ports.iter();
        let changes = ports.clone().map(|port| port.queue_changes).sum();
        let frames = ports
            .map(|port| QueueFrames {
                bytes: port.rx_bytes,
                frames: port.rx_frames_by_queue.clone(),
            })
            .filter(|tap| !tap.frames.is_empty());
        Some(Self {
            changes,
            frames: frames.collect(),
        })
    }
}

/// What was counted of queues since the switch was started; `None` where there is one queue alone, or nobody who counts.
pub(super) fn queue_counts(switch: Option<&Service>) -> Result<Option<QueueCounts>> {
    let Some(switch) = switch.filter(|s| std::ptr::eq(s.home, &HOME)) else {
        return Ok(None);
    };
    Ok(QueueCounts::of(&tapswitch::read(&switch.name)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As a switch tells it, with so many queues and what each of two taps gave.
    fn told(queues: usize, ports: [(u64, u64, &[u64]); 2]) -> Document {
        let port = |(changes, bytes, frames): (u64, u64, &[u64])| {
            serde_json::json!({
                "port": "eth0",
                "there": true,
                "rx_frames": frames.iter().sum::<u64>(),
                "rx_bytes": bytes,
                "rx_frames_by_queue": frames,
                "tx_frames": 7,
                "tx_bytes": 700,
                "flooded": 1,
                "learnt": 1,
                "moved": 0,
                "table_full": 0,
                "waited": 0,
                "queue_changes": changes,
                "drops": {},
            })
        };
        let document = serde_json::json!({
            "schema": tapswitch::SCHEMA,
            "switch": "lab",
            "pid": 1,
            "uptime_s": 1.0,
            "queues": { "asked": queues.to_string(), "attached": queues, "changes": 0 },
            "steering": "kernel",
            "addresses": 2,
            "ports": ports.map(port),
        });
        serde_json::from_value(document).unwrap()
    }

    #[test]
    fn queues_are_counted_for_each_tap_between_two_readings() {
        let before = QueueCounts::of(&told(2, [(3, 1000, &[5, 5]), (1, 100, &[2, 0])])).unwrap();
        let after = QueueCounts::of(&told(2, [(4, 9000, &[95, 5]), (3, 500, &[2, 9])])).unwrap();
        let tap = |bytes, frames: [u64; 2]| QueueFrames {
            bytes,
            frames: frames.to_vec(),
        };
        assert_eq!(
            after.since(&before),
            QueueCounts {
                changes: 3,
                frames: vec![tap(8000, [90, 0]), tap(400, [0, 9])],
            }
        );
        // A queue that came in between had no frames before.
        let more = QueueCounts::of(&told(3, [(3, 1000, &[5, 5, 8]), (1, 100, &[2, 0, 0])]));
        assert_eq!(more.unwrap().since(&before).frames[0].frames, [0, 0, 8]);
    }

    #[test]
    fn what_was_not_counted_is_absent() {
        assert_eq!(
            QueueCounts::of(&told(1, [(0, 10, &[5]), (0, 10, &[5])])),
            None
        );
        let silent = QueueCounts::of(&told(2, [(0, 10, &[]), (0, 10, &[])])).unwrap();
        assert!(silent.frames.is_empty(), "{silent:?}");
    }

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
