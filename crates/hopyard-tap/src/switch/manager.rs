//! Who starts workers, and decides how many queues there are.

use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use super::counters::{Cell, Counters};
use super::port::Port;
use super::rest::Rest;
use super::scale::{Change, Scale};
use super::shared::Shared;
use super::worker::Worker;
use super::{Join, PortState, QueueCount, State, Switch};
use crate::error::{Error, Result};
use crate::sys;

/// How often the manager looks.
const PERIOD: Duration = Duration::from_millis(100);
/// Ports whose offloads it looks at each time: asking the kernel takes a lock of which it has one.
const LOOKS: usize = 16;
/// How long a frame is under way between being given a queue's number and being in it where the kernel cannot be asked: it
/// does both with its softirqs off.
const UNDER_WAY: Duration = Duration::from_millis(20);
/// How long the frames that are in a queue may take to be read.
const DRY_AFTER: Duration = Duration::from_secs(1);
/// How often it is looked whether they are.
const DRY_LOOK: Duration = Duration::from_millis(1);

/// The ports and the workers that serve them.
#[derive(Debug)]
pub(super) struct Crew {
    shared: Arc<Shared>,
    ports: Vec<Port>,
    /// One for each queue ever attached; those beyond `attached` have nothing to do.
    workers: Vec<Hand>,
    attached: usize,
    changes: u64,
    /// The port whose offloads are looked at next.
    next_look: usize,
}

#[derive(Debug)]
struct Hand {
    thread: JoinHandle<()>,
    counters: Arc<[Cell]>,
    rest: Arc<Rest>,
    /// Rested up to the manager's last look, nanoseconds.
    seen_ns: u64,
}

impl Crew {
    pub(super) fn new(ports: Vec<Port>, shared: Arc<Shared>) -> Self {
        let mut crew = Self {
            shared,
            ports,
            workers: Vec::new(),
            attached: 0,
            changes: 0,
            next_look: 0,
        };
        crew.look_at_offloads(crew.ports.len());
        crew
    }

    /// Attaches one more queue to every port, with a worker.
    pub(super) fn grow(&mut self) -> Result<()> {
        let number = self.attached;
        let queues = self
            .ports
            .iter_mut()
            .map(|port| port.grow(number))
            .collect::<Result<Vec<_>>>()?;
        if self.workers.len() == number {
            let rest = Arc::new(Rest::default());
            let counters: Arc<[Cell]> = queues.iter().map(|_| Cell::default()).collect();
            let worker = Worker {
                number,
                queues,
                counters: Arc::clone(&counters),
                rest: Arc::clone(&rest),
                shared: Arc::clone(&self.shared),
            };
            self.workers.push(Hand {
                thread: spawn(&format!("tap queue {number}"), || worker.run())?,
                counters,
                rest,
                seen_ns: 0,
            });
        }
        self.attached += 1;
        if self.attached > 1 {
            self.shared.flows.watch();
        }
        Ok(())
    }

    /// Detaches the last queue of every port, read empty before; false if it does not run dry.
    fn shrink(&mut self) -> Result<bool> {
        let last = self.attached - 1;
        let among = u16::try_from(last).unwrap_or(u16::MAX);
        for port in &self.ports {
            port.steer(Some(among))?;
        }
        let dry = self.runs_dry(last);
        if dry {
            for port in &self.ports {
                port.shrink(last)?;
            }
            self.attached = last;
        }
        self.ports.iter().try_for_each(|port| port.steer(None))?;
        Ok(dry)
    }

    /// Waits until nothing is left in the queues of a worker that get nothing any more.
    ///
    /// What detaching throws away is what the kernel still holds for reading (`tun_queue_purge`). A frame that it has read for
    /// the worker, whether the worker knows of it or not, is in a buffer of the worker's, and a detached queue still writes:
    /// whether the worker rests says nothing, as one that has not been woken yet does.
    fn runs_dry(&self, number: usize) -> bool {
        all_have_arrived();
        let deadline = Instant::now() + DRY_AFTER;
        let files = || self.ports.iter().map(move |port| port.file(number));
        // Where that cannot be asked, there may be some.
        while sys::is_ready(files(), libc::POLLIN).unwrap_or(true) {
            if Instant::now() > deadline {
                return false;
            }
            thread::sleep(DRY_LOOK);
        }
        true
    }

    /// Attaches or detaches queues until there are so many.
    pub(super) fn set_queues(&mut self, count: usize) -> Result<()> {
        while self.attached < count {
            self.grow()?;
            self.changes += 1;
        }
        while self.attached > count {
            if !self.shrink()? {
                let why = "frames are left in it that their receivers do not take; try again later";
                return Err(Error::invalid("detach a queue of the tap switch", why));
            }
            self.changes += 1;
        }
        Ok(())
    }

    /// The share of time that each worker of an attached queue was at work since the last call.
    fn busy(&mut self, elapsed: Duration) -> Vec<f64> {
        let now_ns = self.shared.now_ns();
        let share = |hand: &mut Hand| {
            let rested = hand.rest.until(now_ns);
            let since = rested.saturating_sub(hand.seen_ns);
            hand.seen_ns = rested;
            (1.0 - Duration::from_nanos(since).as_secs_f64() / elapsed.as_secs_f64()).max(0.0)
        };
        let mut shares: Vec<f64> = self.workers.iter_mut().map(share).collect();
        shares.truncate(self.attached);
        shares
    }

    /// Looks whether frames for so many of the ports are to be joined, other ports each time.
    fn look_at_offloads(&mut self, count: usize) {
        if self.shared.join == Join::Off {
            return;
        }
        for _ in 0..count.min(self.ports.len()) {
            let port = self.next_look % self.ports.len();
            self.shared
                .set_joins(port, self.ports[port].takes_segments());
            self.next_look = port + 1;
        }
    }

    fn follow(&mut self, scale: &mut Scale, elapsed: Duration) {
        let busy = self.busy(elapsed);
        let before = self.attached;
        // Without a further queue it goes on as it is, and a device that was deleted has no use for one.
        let _ = match scale.look(&busy) {
            Change::Keep => Ok(()),
            Change::Grow => self.grow(),
            Change::Shrink => self.shrink().map(drop),
        };
        self.changes += u64::from(self.attached != before);
    }

    pub(super) fn state(&self) -> State {
        let port = |(number, port): (usize, &Port)| PortState {
            device: port.device().to_owned(),
            there: port.is_there(),
            joins: self.shared.joins(number),
            counters: Counters::sum(&self.workers.iter().map(|hand| &hand.counters[number])),
            unread: port.unread(),
        };
        State {
            ports: self.ports.iter().enumerate().map(port).collect(),
            uptime: Duration::from_nanos(self.shared.now_ns()),
            queues: self.attached,
            changes: self.changes,
            addresses: self.shared.table.len(self.shared.now_s()),
        }
    }

    /// Waits for all workers, which have been told to end.
    pub(super) fn join(&mut self) {
        for hand in self.workers.drain(..) {
            // A thread that panicked has said so; nothing is left to do about it.
            let _ = hand.thread.join();
        }
    }
}

/// Waits until each frame is in the queue whose number it was given before.
///
/// The kernel chooses and fills the queue within one section under RCU (`__dev_queue_xmit`), however long the sender's CPU is
/// taken away in between. What it left in the queue's discipline for another CPU to send is not waited for.
fn all_have_arrived() {
    if sys::wait_for_readers().is_err() {
        thread::sleep(UNDER_WAY);
    }
}

/// The thread that keeps the clock and the number of queues.
pub(super) struct Manager {
    shared: Arc<Shared>,
    crew: Weak<Mutex<Crew>>,
    scale: Option<Scale>,
}

impl Manager {
    pub(super) fn new(switch: &Switch, queues: QueueCount) -> Self {
        Self {
            shared: Arc::clone(&switch.shared),
            crew: Arc::downgrade(&switch.crew),
            scale: match queues {
                QueueCount::Fixed(_) => None,
                QueueCount::Auto { most } => Some(Scale::new(most)),
            },
        }
    }

    pub(super) fn start(mut self) -> Result<JoinHandle<()>> {
        spawn("tap manager", move || self.run())
    }

    fn run(&mut self) {
        let mut last_ns = self.shared.now_ns();
        while !self.shared.is_ending() {
            thread::park_timeout(PERIOD);
            self.shared.tick();
            let now_ns = self.shared.now_ns();
            let elapsed = Duration::from_nanos(now_ns - last_ns);
            let Some(crew) = self.crew.upgrade() else {
                continue;
            };
            if elapsed < PERIOD / 2 {
                continue;
            }
            let mut crew = crew.lock().unwrap_or_else(PoisonError::into_inner);
            crew.look_at_offloads(LOOKS);
            if let Some(scale) = &mut self.scale {
                crew.follow(scale, elapsed);
            }
            last_ns = now_ns;
        }
    }
}

fn spawn(name: &str, run: impl FnOnce() + Send + 'static) -> Result<JoinHandle<()>> {
    thread::Builder::new()
        .name(name.into())
        .spawn(run)
        .map_err(|source| Error::Kernel {
            what: format!("start thread `{name}` of the tap switch"),
            source,
        })
}
