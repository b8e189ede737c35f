//! A thread that will be a worker, with everything it needs before any queue is attached.

use std::io::{self, PipeReader, PipeWriter};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::JoinHandle;

use super::Worker;
use crate::error::{Error, Result};
use crate::switch::thread::spawn;

/// A worker's data, and for each of its queues whether it is read.
type Order = (Worker, Vec<bool>);

/// A thread with the buffers of a worker, which waits for its queues. Dropping it ends the thread.
pub(in crate::switch) struct Recruit {
    thread: JoinHandle<()>,
    orders: SyncSender<Order>,
    end: PipeWriter,
}

impl Recruit {
    /// For the queues with this number.
    ///
    /// # Errors
    /// There is no thread, or no memory or file for its buffers.
    pub(in crate::switch) fn new(number: usize) -> Result<Self> {
        let what = || format!("start worker {number} of the tap switch");
        let failed = |source| Error::Kernel {
            what: what(),
            source,
        };
        let (end, end_writer) = io::pipe().map_err(failed)?;
        let (orders, ordered) = sync_channel(1);
        let (say, said) = sync_channel(1);
        let thread = spawn(&format!("tap queue {number}"), move || {
            serve(&say, &ordered, &end);
        })?;
        // The thread closes the channel if it panics.
        let gone = || Err(io::Error::other("its thread ended"));
        said.recv().unwrap_or_else(|_| gone()).map_err(failed)?;
        Ok(Self {
            thread,
            orders,
            end: end_writer,
        })
    }

    /// Starts its work, which ends when the returned pipe is closed.
    pub(in crate::switch) fn work(
        self,
        worker: Worker,
        reads: Vec<bool>,
    ) -> (JoinHandle<()>, PipeWriter) {
        // It waits for nothing else, so this cannot fail.
        let _ = self.orders.send((worker, reads));
        (self.thread, self.end)
    }
}

fn serve(say: &SyncSender<io::Result<()>>, ordered: &Receiver<Order>, end: &PipeReader) {
    // A ring must be used by the thread that made it.
    let ring = match Worker::ring() {
        Ok(ring) => ring,
        Err(error) => {
            let _ = say.send(Err(error));
            return;
        }
    };
    let asked = say.send(Ok(()));
    if let (Ok(()), Ok((worker, reads))) = (asked, ordered.recv()) {
        worker.run(ring, &reads, end);
    }
}
