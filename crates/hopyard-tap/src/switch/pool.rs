//! The ports, their workers, and the threads of these: how queues are attached and detached.

use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use super::counters::{Cell, Counters};
use super::port::Port;
use super::rest::Rest;
use super::scale::{Change, Scale};
use super::shared::Shared;
use super::worker::{QueueThread, Worker};
use super::{Join, PortState, State, queue_files};
use crate::error::{Error, Result, chain};
use crate::queue::Queue;
use crate::sys;

/// Time between choosing a queue and placing the frame in it, if `membarrier` is not available: the kernel does both
/// with softirqs off.
const UNDER_WAY: Duration = Duration::from_millis(20);
/// Time in which the frames of a queue must be read.
const DRY_AFTER: Duration = Duration::from_secs(1);
/// Interval of checks whether they are.
const DRY_LOOK: Duration = Duration::from_millis(1);
/// How long no queue is attached automatically after a failure, because trying takes time.
const AGAIN_AFTER: Duration = Duration::from_secs(10);

/// The ports and the workers that serve them.
#[derive(Debug)]
pub(super) struct WorkerPool {
    shared: Arc<Shared>,
    ports: Vec<Port>,
    /// One for each queue that was ever attached; those beyond `attached` are idle.
    workers: Vec<WorkerHandle>,
    /// The threads of the workers, which are dealt out to them in turn.
    threads: Vec<QueueThread>,
    /// The most threads; `None` if each worker has its own.
    most_threads: Option<usize>,
    attached: usize,
    changes: u64,
    /// The port whose offloads are checked next.
    next_look: usize,
    /// Why the last change that the load required failed, and when.
    trouble: Option<(String, Instant)>,
}

#[derive(Debug)]
struct WorkerHandle {
    /// Whether a port had no queue for it. It is replaced before the queue is attached again.
    incomplete: bool,
    records: Records,
    /// Idle time up to the manager's last check, nanoseconds.
    seen_ns: u64,
}

/// Data that a worker writes and others read.
#[derive(Debug, Clone)]
struct Records {
    /// By port.
    counters: Arc<[Cell]>,
    rest: Arc<Rest>,
}

/// A queue of a worker, and whether it is read.
type Post = (Arc<Queue>, bool);

impl WorkerPool {
    pub(super) fn new(ports: Vec<Port>, shared: Arc<Shared>, most_threads: Option<usize>) -> Self {
        let mut pool = Self {
            shared,
            ports,
            workers: Vec::new(),
            threads: Vec::new(),
            most_threads,
            attached: 0,
            changes: 0,
            next_look: 0,
            trouble: None,
        };
        pool.look_at_offloads(pool.ports.len());
        pool
    }

    /// Attaches one more queue to every port, with a worker. Ports whose device was deleted are left out. After an
    /// error, all queues are detached again, and no frame is lost.
    ///
    /// # Errors
    /// There is no worker, or no further queue for an existing device.
    pub(super) fn grow(&mut self) -> Result<()> {
        let files = queue_files(self.ports.len(), 1);
        Error::need_files(
            "attach one more queue to the ports of the tap switch",
            files,
        )?;
        self.add_queue().map_err(|error| error.at_limit(2 * files))
    }

    fn add_queue(&mut self) -> Result<()> {
        self.detach_incomplete()?;
        let number = self.attached;
        let former = self.dismiss_incomplete(number);
        let is_new = self.workers.len() == number;
        if is_new {
            // Before any queue is attached, because its frames must be read.
            self.prepare(number)?;
        }
        let (queues, failure) = self.attach(number);
        let Some(queues) = queues else {
            // There is no queue to write to, so the whole switch does not start.
            return failure.map_or(Ok(()), Err);
        };
        if is_new {
            let handle = self.employ(queues, failure.is_some(), former);
            self.workers.push(handle);
        }
        self.attached += 1;
        self.shared.set_queues(self.attached);
        let Some(failure) = failure else {
            return Ok(());
        };
        // The other ports' queues may have frames by now.
        self.shrink()?;
        Err(failure)
    }

    /// The thread of the worker for the queues with this number.
    fn thread_of(&self, number: usize) -> usize {
        self.most_threads.map_or(number, |most| number % most)
    }

    /// Has a thread make all that a worker needs; the first worker of a thread has the thread started.
    fn prepare(&mut self, number: usize) -> Result<()> {
        if let Some(thread) = self.threads.get(self.thread_of(number)) {
            return thread.prepare(number);
        }
        let thread = QueueThread::start(number)?;
        thread.prepare(number)?;
        self.threads.push(thread);
        Ok(())
    }

    /// Detaches the last queue if not every port has it. That is tried as soon as attaching it has failed, and may have failed then.
    fn detach_incomplete(&mut self) -> Result<()> {
        let is_incomplete = self.workers.last().is_some_and(|last| last.incomplete);
        if !is_incomplete || self.workers.len() != self.attached || self.shrink()? {
            return Ok(());
        }
        let why = "the last one is not of all ports, and has frames that their receivers do not take; try again later";
        Err(Error::invalid("attach a queue of the tap switch", why))
    }

    /// A queue of each port, and whether it is read; and the error of the first existing device without one. That
    /// device and all after it get an older queue to write to.
    fn attach(&mut self, number: usize) -> (Option<Vec<Post>>, Option<Error>) {
        let mut failure = None;
        let queue = |port: &mut Port| {
            if failure.is_none() {
                match port.grow(number) {
                    Ok(queue) => return Some((queue, true)),
                    Err(error) => failure = Some(error),
                }
            }
            Some((port.stand_in()?, false))
        };
        let queues = self.ports.iter_mut().map(queue).collect();
        (queues, failure)
    }

    /// Has the prepared worker serve the queue that was just attached.
    fn employ(&self, queues: Vec<Post>, incomplete: bool, former: Option<Records>) -> WorkerHandle {
        let records = former.unwrap_or_else(|| Records {
            counters: queues.iter().map(|_| Cell::default()).collect(),
            rest: Arc::default(),
        });
        let (queues, reads) = queues.into_iter().unzip();
        let worker = Worker {
            number: self.attached,
            queues,
            counters: Arc::clone(&records.counters),
            rest: Arc::clone(&records.rest),
            shared: Arc::clone(&self.shared),
        };
        self.threads[self.thread_of(self.attached)].serve(worker, reads);
        WorkerHandle {
            incomplete,
            records,
            seen_ns: 0,
        }
    }

    /// Ends the worker of a queue that not every port had; the next worker continues its counters.
    fn dismiss_incomplete(&mut self, number: usize) -> Option<Records> {
        let handle = self.workers.pop_if(|handle| handle.incomplete)?;
        debug_assert_eq!(self.workers.len(), number);
        self.threads[self.thread_of(number)].dismiss(number);
        for port in &mut self.ports {
            port.close(number);
        }
        Some(handle.records)
    }

    /// Detaches the last queue of every port after reading it empty; false if it does not become empty.
    fn shrink(&mut self) -> Result<bool> {
        let last = self.attached - 1;
        let among = u16::try_from(last).unwrap_or(u16::MAX);
        let mut done = self.each(|port| port.steer(Some(among)));
        let dry = done.is_ok() && self.runs_dry(last);
        if dry {
            done = self.each(|port| port.shrink(last));
            self.attached = last;
            self.shared.set_queues(last);
        }
        let steered = self.each(|port| port.steer(None));
        done.and(steered).map(|()| dry)
    }

    /// Does it to every port, also after failures; returns the first error.
    fn each(&self, act: impl Fn(&Port) -> Result<()>) -> Result<()> {
        self.ports.iter().map(act).fold(Ok(()), Result::and)
    }

    /// Waits until the queues of a worker that get no frames any more are empty.
    ///
    /// Detaching drops what the kernel still holds for reading (`tun_queue_purge`). A frame that was read into a buffer
    /// of the worker is safe, whether the worker has seen it or not, because a detached queue can still be written.
    /// Whether the worker is idle does not matter: it may not have been woken yet.
    fn runs_dry(&self, number: usize) -> bool {
        all_have_arrived();
        let deadline = Instant::now() + DRY_AFTER;
        let files = || self.ports.iter().filter_map(move |port| port.file(number));
        // If that cannot be checked, there may be some.
        while sys::is_ready(files(), libc::POLLIN).unwrap_or(true) {
            if Instant::now() > deadline {
                return false;
            }
            thread::sleep(DRY_LOOK);
        }
        true
    }

    /// Attaches or detaches queues until there are `count`.
    pub(super) fn change_queues(&mut self, count: usize) -> Result<()> {
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

    /// The share of time for which each worker of an attached queue was busy since the last call.
    fn busy(&mut self, elapsed: Duration) -> Vec<f64> {
        let now_ns = self.shared.now_ns();
        let share = |handle: &mut WorkerHandle| {
            let rested = handle.records.rest.until(now_ns);
            let since = rested.saturating_sub(handle.seen_ns);
            handle.seen_ns = rested;
            (1.0 - Duration::from_nanos(since).as_secs_f64() / elapsed.as_secs_f64()).max(0.0)
        };
        let mut shares: Vec<f64> = self.workers.iter_mut().map(share).collect();
        shares.truncate(self.attached);
        shares
    }

    /// Checks for `count` of the ports whether frames for them are joined, other ports each time.
    pub(super) fn look_at_offloads(&mut self, count: usize) {
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

    /// Attaches or detaches a queue, depending on the load.
    pub(super) fn follow(&mut self, scale: &mut Scale, elapsed: Duration) {
        let busy = self.busy(elapsed);
        let before = self.attached;
        let change = scale.look(&busy);
        let lately = |(_, at): &(String, Instant)| at.elapsed() < AGAIN_AFTER;
        if change == Change::Keep || self.trouble.as_ref().is_some_and(lately) {
            return;
        }
        let changed = match change {
            Change::Grow => self.grow(),
            _ => self.shrink().map(drop),
        };
        // It continues with the queues that it has, and `State::trouble` says why.
        self.trouble = changed.err().map(|error| (chain(&error), Instant::now()));
        self.changes += u64::from(self.attached != before);
    }

    /// What each worker counted at a port.
    fn cells(&self, port: usize) -> impl Iterator<Item = &Cell> + Clone {
        self.workers
            .iter()
            .map(move |handle| &handle.records.counters[port])
    }

    pub(super) fn state(&self) -> State {
        let port = |(number, port): (usize, &Port)| PortState {
            device: port.device().to_owned(),
            there: port.is_there(),
            rules: port.rules().clone(),
            joins: self.shared.joins(number),
            counters: Counters::sum(&self.cells(number)),
            by_queue: self
                .cells(number)
                .map(|cell| Counters::sum(&std::iter::once(cell)))
                .collect(),
            unread: port.unread(),
        };
        State {
            ports: self.ports.iter().enumerate().map(port).collect(),
            uptime: Duration::from_nanos(self.shared.now_ns()),
            queues: self.attached,
            threads: self.threads.len().min(self.attached),
            changes: self.changes,
            addresses: self.shared.table.len(self.shared.now_s()),
            trouble: self.trouble.as_ref().map(|(text, _)| text.clone()),
        }
    }

    /// Ends all workers.
    pub(super) fn end(&mut self) {
        let threads = self.threads.drain(..).map(QueueThread::end);
        // All are told before one is waited for.
        let threads: Vec<JoinHandle<()>> = threads.collect();
        for thread in threads {
            // A thread that panicked has printed it; there is nothing else to do.
            let _ = thread.join();
        }
        self.workers.clear();
    }
}

/// Waits until each frame is in the queue that was chosen for it.
///
/// The kernel chooses and fills the queue within one RCU section (`__dev_queue_xmit`), however long the sender loses
/// its CPU in between. Frames that it left in the queueing discipline for another CPU are not waited for.
fn all_have_arrived() {
    if sys::wait_for_readers().is_err() {
        thread::sleep(UNDER_WAY);
    }
}
