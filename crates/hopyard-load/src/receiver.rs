//! Did the receiver keep up? Its CPU time and what its sockets had no room for.

use std::os::fd::AsFd;
use std::sync::atomic::{AtomicI32, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};

use hopyard_net::{clock, datagrams};

/// A thread's id, once it runs.
pub(super) type SharedTid = Arc<AtomicI32>;

/// What the receiver spent and lost up to an instant.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Effort {
    /// Datagrams that its sockets had no room for.
    pub(crate) drops: u64,
    /// CPU time of each of its threads, ns.
    pub(crate) cpu_ns: Vec<u64>,
}

impl Effort {
    /// Reads it of a receiver's sockets and threads.
    ///
    /// # Errors
    /// A sentence: a socket or a thread is not there yet, or no more.
    pub(super) fn read<'a, S: AsFd + 'a>(
        sockets: impl Iterator<Item = &'a Arc<Mutex<Option<Arc<S>>>>>,
        threads: impl Iterator<Item = &'a SharedTid>,
    ) -> Result<Self, String> {
        let mut effort = Self::default();
        for socket in sockets {
            let socket = socket.lock().unwrap_or_else(PoisonError::into_inner);
            let socket = socket
                .as_ref()
                .ok_or("a receiver had no socket when the window opened")?;
            let drops = datagrams::socket_drops(socket.as_fd())
                .map_err(|e| format!("cannot read a socket's drops (SO_MEMINFO): {e}"))?;
            effort.drops += u64::from(drops);
        }
        for tid in threads {
            let used_ns = clock::cpu_ns_of_thread(tid.load(Relaxed))
                .map_err(|e| format!("cannot read the CPU time of a receiver's thread: {e}"))?;
            effort.cpu_ns.push(used_ns);
        }
        Ok(effort)
    }

    /// What came between two readings.
    pub(super) fn since(&self, start: &Self) -> Self {
        let spans = self.cpu_ns.iter().zip(&start.cpu_ns);
        Self {
            drops: self.drops.saturating_sub(start.drops),
            cpu_ns: spans
                .map(|(end, start)| end.saturating_sub(*start))
                .collect(),
        }
    }
}
