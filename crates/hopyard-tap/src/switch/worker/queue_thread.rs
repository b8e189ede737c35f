//! A thread that serves the queues of one worker, or of several.
//!
//! Every worker has a ring of its own. With one worker, the thread sleeps in its ring, so sleeping takes no further
//! system call. With several, it goes round those that have something to do, and sleeps in poll(2) on all rings.

use std::io::{self, PipeReader, PipeWriter, Read, Write};
use std::os::fd::AsRawFd;
use std::sync::mpsc::{Receiver, Sender, SyncSender, TryRecvError, channel, sync_channel};
use std::thread::JoinHandle;
use std::time::Instant;

use super::{LOOK, Work, Worker};
use crate::error::{Error, Result};
use crate::ring::{Done, Ring};
use crate::switch::thread::spawn;
use crate::sys;

/// What the thread is told to do.
enum Order {
    /// Make the buffers of one more worker, and say whether they are there.
    Prepare(SyncSender<io::Result<()>>),
    /// Serve the queues of a worker with these buffers; for each queue, whether it is read.
    Serve(Worker, Vec<bool>),
    /// Serve the queues with this number no more, and say when that is so.
    Dismiss(usize, SyncSender<()>),
}

/// A thread of workers. Dropping it ends the thread.
#[derive(Debug)]
pub(in crate::switch) struct QueueThread {
    thread: JoinHandle<()>,
    orders: Sender<Order>,
    /// Gets a byte for each order, which wakes the thread. Closed after `orders`, so that the thread finds both closed.
    bell: PipeWriter,
}

impl QueueThread {
    /// Starts a thread without queues. It is named by the first that it will have.
    ///
    /// # Errors
    /// There is no thread, or no files for its bell.
    pub(in crate::switch) fn start(first: usize) -> Result<Self> {
        let (ear, bell) = io::pipe().map_err(|source| cannot_start(first, source))?;
        let (orders, ordered) = channel();
        let thread = spawn(&format!("tap queue {first}"), move || {
            Serving {
                orders: ordered,
                bell: ear,
                spare: None,
                works: Vec::new(),
            }
            .run();
        })?;
        Ok(Self {
            thread,
            orders,
            bell,
        })
    }

    /// Makes all that a worker for the queues with this number needs, before any of them is attached.
    ///
    /// # Errors
    /// There is no memory or file for its buffers.
    pub(in crate::switch) fn prepare(&self, number: usize) -> Result<()> {
        let (say, said) = sync_channel(1);
        self.tell(Order::Prepare(say));
        // The thread closes the channel if it panics.
        let gone = || Err(io::Error::other("its thread ended"));
        said.recv()
            .unwrap_or_else(|_| gone())
            .map_err(|source| cannot_start(number, source))
    }

    /// Begins to serve the queues of a worker, which was prepared.
    pub(in crate::switch) fn serve(&self, worker: Worker, reads: Vec<bool>) {
        self.tell(Order::Serve(worker, reads));
    }

    /// Ends the worker of the queues with this number, and waits for it: nobody else writes its counters then.
    pub(in crate::switch) fn dismiss(&self, number: usize) {
        let (say, said) = sync_channel(1);
        self.tell(Order::Dismiss(number, say));
        // A thread that panicked has ended its workers too.
        let _ = said.recv();
    }

    /// Ends the thread, which the handle waits for.
    pub(in crate::switch) fn end(self) -> JoinHandle<()> {
        self.thread
    }

    fn tell(&self, order: Order) {
        // The byte first: the thread finds it as soon as it has the order. Both fail only if the thread has ended.
        let _ = (&self.bell).write_all(&[0]);
        let _ = self.orders.send(order);
    }
}

fn cannot_start(number: usize, source: io::Error) -> Error {
    Error::Kernel {
        what: format!("start worker {number} of the tap switch"),
        source,
    }
}

/// What the thread itself has.
struct Serving {
    orders: Receiver<Order>,
    bell: PipeReader,
    /// The buffers of the worker that comes next.
    spare: Option<Ring>,
    works: Vec<Work>,
}

impl Serving {
    fn run(&mut self) {
        let mut done = Vec::new();
        while self.obey() {
            if let [only] = self.works.as_mut_slice() {
                only.run_alone(&self.bell);
            } else {
                self.go_round(&mut done);
            }
        }
    }

    /// Carries out the orders that are there; false if there will be no more.
    fn obey(&mut self) -> bool {
        loop {
            match self.orders.try_recv() {
                Ok(order) => self.carry_out(order),
                Err(TryRecvError::Empty) => return true,
                Err(TryRecvError::Disconnected) => return false,
            }
        }
    }

    fn carry_out(&mut self, order: Order) {
        // The byte of this order, which is there already.
        let _ = (&self.bell).read_exact(&mut [0]);
        match order {
            Order::Prepare(say) => {
                // Whoever gave the order waits for the answer.
                let _ = say.send(self.prepare());
            }
            Order::Serve(worker, reads) => {
                if let Some(ring) = self.spare.take() {
                    self.works.push(worker.begin(ring, &reads));
                }
            }
            Order::Dismiss(number, say) => {
                self.works.retain(|work| work.worker.number != number);
                let _ = say.send(());
            }
        }
    }

    /// A ring must be used by the thread that made it.
    fn prepare(&mut self) -> io::Result<()> {
        self.spare = Some(Worker::ring()?);
        Ok(())
    }

    /// Moves the frames that are there at each worker; waits if there are none.
    fn go_round(&mut self, done: &mut Vec<Done>) {
        let mut found = false;
        for work in &mut self.works {
            // Looking takes a system call, which a worker without anything to do does not need.
            if work.ring.is_quiet() {
                found |= work.drop_overdue();
            } else {
                work.look(done);
                work.act(done);
                // Busy ports do not keep the frames of a stalled one from being given up.
                work.drop_overdue();
                found = true;
            }
        }
        if !found {
            self.rest();
        }
    }

    /// Waits for work at any worker, as [`Work::rest`] at one: polls for a while, then sleeps. It counts no idle time,
    /// which would be that of all queues together and tell nothing of one.
    fn rest(&mut self) {
        let began = Instant::now();
        while self.works.iter_mut().all(|work| work.ring.is_quiet()) {
            if began.elapsed() > LOOK {
                self.sleep();
                break;
            }
            std::hint::spin_loop();
        }
    }

    /// Sleeps until there is a completion in any ring, or an order.
    fn sleep(&self) {
        let limit = self.works.iter().filter_map(Work::patience_left).min();
        let rings = self.works.iter().map(|work| work.ring.fd());
        // After a signal the caller looks and comes again.
        let _ = sys::wait_to_read(rings.chain([self.bell.as_raw_fd()]), limit);
    }
}

impl Work {
    /// Drops frames that have waited too long; returns whether there were any. Other workers of the thread may be busy
    /// for ever, so this does not wait until the thread is idle.
    pub(super) fn drop_overdue(&mut self) -> bool {
        let lost = self.give_up_waiting();
        if lost {
            // Buffers are free again, for ports that had none.
            self.feed();
        }
        lost
    }
}
