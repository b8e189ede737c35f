//! A switch in user space: multi-queue taps, joined by MAC address.
//!
//! Each port is a tap, in whatever network namespace. One worker serves one queue of all ports: what leaves the
//! kernel by queue *i* of one tap enters it by queue *i* of another, so that workers share nothing but the table
//! of addresses. Each has a thread of its own, unless fewer threads are to serve all ([`NewSwitch::threads`]). Frames
//! pass with their [`VnetHeader`](crate::VnetHeader) as the kernel made it: a 64 KiB segment is one frame, and
//! checksums nobody needs are never computed.
//!
//! A frame whose destination has been heard goes to the port where it was heard last; broadcasts, multicasts and all
//! others go to every other port, as far as the [`Rules`] of ports allow. Frames of one TCP flow that are there together and follow each other to a port enter it as
//! one ([`Join`]). Whatever is lost is counted by [`Reason`].
//!
//! ```no_run
//! use hopyard_net::NetNs;
//! use hopyard_tap::switch::{NewPort, NewSwitch};
//!
//! let ns = || NetNs::open("/run/netns/web".as_ref());
//! let ports = vec![
//!     NewPort::new("tap0", NetNs::current()?),
//!     NewPort::new("tap0", ns()?),
//! ];
//! let switch = NewSwitch { ports, ..NewSwitch::default() }.start()?;
//! for port in switch.state().ports {
//!     println!("{} sent {} frames", port.device, port.counters.rx_frames);
//! }
//! # Ok::<(), hopyard_tap::Error>(())
//! ```

mod counters;
mod flows;
mod frame;
#[cfg(fuzzing)]
pub mod fuzzing;
mod join;
mod manager;
mod pinner;
mod pool;
mod port;
mod rest;
mod rules;
mod scale;
mod shared;
mod slots;
mod storm;
mod table;
mod thread;
mod worker;

use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use hopyard_net::on_fresh_thread;

use crate::error::{Error, Result};
use crate::{MAX_QUEUES, Offloads};
pub use counters::{Counters, Reason};
use manager::Manager;
use pinner::Pinner;
use pool::WorkerPool;
use port::Port;
pub use rules::{MAX_GIVEN, NewPort, Rules};
use shared::Shared;
pub use table::AGEING_S;
use worker::Worker;

/// The most ports of one switch.
pub const MAX_PORTS: usize = 1024;

/// Checks whether this process can start switches here.
///
/// # Errors
/// [`Error::Unsupported`] without the io_uring features that a switch needs.
pub fn supported() -> Result<()> {
    // After a ring was closed, the verifier fails on that thread (ring_exit.rs).
    let asked = on_fresh_thread("ring probe", || Worker::ring().map(drop)).flatten();
    let what = "start the tap switch";
    asked.map_err(|error| match error.raw_os_error() {
        Some(libc::EMFILE | libc::ENFILE | libc::ENOMEM) => Error::Kernel {
            what: what.into(),
            source: error,
        },
        _ => Error::Unsupported {
            what: what.into(),
            feature: "io_uring for this process".into(),
            remedy: format!(
                "it takes Linux 6.7 with CONFIG_IO_URING, kernel.io_uring_disabled=0, and a container that allows it \
                 ({error})"
            ),
        },
    })
}

/// How many queues are attached at each port.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum QueueCount {
    /// This many, permanently.
    Fixed(usize),
    /// One up to `most`, depending on the load.
    Auto {
        /// Most queues of each port.
        most: usize,
    },
}

/// What chooses the queue by which a frame leaves the kernel. See [`Steering`](crate::Steering).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum Choice {
    /// The kernel: flows stay where their answers came in, also when the number of queues changes.
    Kernel,
    /// A hash of addresses, protocol and ports, both directions alike.
    #[default]
    Hash,
    /// The CPU that sends.
    Cpu,
    /// The switch: it assigns new flows to the queues in turn, both directions of a flow to the same one, for as long
    /// as the flow lasts. The first frame of a flow comes by hash.
    Pinned,
}

/// How frames of one TCP flow are joined. They must be found together, follow each other, and enter the kernel by a
/// device with TCP segmentation offload (`ethtool -k`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum Join {
    /// Not at all.
    Off,
    /// Into one frame, if resegmenting it gives packets identical to the originals: the rules of the kernel's GRO.
    Packets,
    /// Into one frame: the same bytes in the same order, in packets no longer than before.
    #[default]
    Stream,
}

/// A switch to start.
#[derive(Debug)]
pub struct NewSwitch {
    /// The ports: two or more.
    pub ports: Vec<NewPort>,
    /// The number of queues of each port.
    pub queues: QueueCount,
    /// The most threads that serve them: queue *i* of all ports is served by thread *i* modulo this number. `None` is a
    /// thread for each queue. A number needs [`QueueCount::Fixed`], and is that of the queues at most.
    pub threads: Option<usize>,
    /// What chooses among them.
    pub steering: Choice,
    /// Work that may be left undone on frames; without `uso` if the kernel lacks it.
    pub offloads: Offloads,
    /// How frames of a flow are joined.
    pub join: Join,
    /// Limit on the bytes under way into the kernel, for each queue; further frames wait. Frames for the kernel's own
    /// sockets are taken at once; frames for a slower device add up.
    pub send_buffer: u32,
    /// How long frames wait for a device that takes no more, before they are lost ([`Reason::Stalled`]).
    pub patience: Duration,
}

impl Default for NewSwitch {
    fn default() -> Self {
        Self {
            ports: Vec::new(),
            queues: QueueCount::Fixed(1),
            threads: None,
            steering: Choice::default(),
            offloads: Offloads::ALL,
            join: Join::default(),
            send_buffer: 4 * 1024 * 1024,
            patience: Duration::from_millis(100),
        }
    }
}

impl NewSwitch {
    /// Makes or opens the devices, brings them up, and starts to move frames. After an error, everything that was made
    /// is removed.
    ///
    /// # Errors
    /// [`Error::Invalid`] for fewer than two or more than [`MAX_PORTS`] ports, for the same device twice, for invalid
    /// rules, for no queues or more than [`MAX_QUEUES`], for threads without a queue; [`Error::Limit`] if the process may not have enough files,
    /// memory or threads; the errors of [`NewDevice::create`](crate::NewDevice::create) and
    /// [`Device::open_with`](crate::Device::open_with).
    pub fn start(self) -> Result<Switch> {
        self.check()?;
        let files = needed_files(self.ports.len(), self.first());
        self.begin().map_err(|error| error.at_limit(2 * files))
    }

    fn begin(self) -> Result<Switch> {
        supported()?;
        let pinner = (self.steering == Choice::Pinned).then(Pinner::new);
        let pinner = pinner.transpose()?.map(Arc::new);
        let ports = self
            .ports
            .iter()
            .map(|new| Port::open(new, &self, pinner.clone()))
            .collect::<Result<Vec<_>>>()?;
        let shared = Arc::new(Shared::new(&self, pinner)?);
        let pool = WorkerPool::new(ports, Arc::clone(&shared), self.threads);
        // From here on, dropping it ends what was started.
        let mut switch = Switch {
            shared,
            pool: Arc::new(Mutex::new(pool)),
            manager: None,
        };
        for _ in 0..self.first() {
            switch.pool().grow()?;
        }
        let manager = Manager::new(&switch, self.queues);
        switch.manager = Some(manager.start()?);
        Ok(switch)
    }

    /// Queues to begin with.
    fn first(&self) -> usize {
        match self.queues {
            QueueCount::Fixed(count) => count,
            QueueCount::Auto { .. } => 1,
        }
    }

    fn check(&self) -> Result<()> {
        let refuse = |why: String| Err(Error::invalid("start the tap switch", why));
        let ports = self.ports.len();
        if !(2..=MAX_PORTS).contains(&ports) {
            return refuse(format!("it takes 2 to {MAX_PORTS} taps, not {ports}"));
        }
        let (QueueCount::Fixed(count) | QueueCount::Auto { most: count }) = self.queues;
        check_queues(count)?;
        check_threads(self.threads, self.queues)?;
        Error::need_files("start the tap switch", needed_files(ports, self.first()))?;
        let mut seen = std::collections::HashSet::new();
        for port in &self.ports {
            if !seen.insert((port.device.as_str(), port.ns.inode()?)) {
                return refuse(format!("tap `{}` is named twice", port.device));
            }
        }
        rules::check(&self.ports)
    }
}

fn check_queues(count: usize) -> Result<()> {
    if (1..=MAX_QUEUES).contains(&count) {
        return Ok(());
    }
    let why = format!("a tap has 1 to {MAX_QUEUES} queues, not {count}");
    Err(Error::invalid("attach queues of the tap switch", why))
}

/// Checks that each thread has a queue to serve.
fn check_threads(threads: Option<usize>, queues: QueueCount) -> Result<()> {
    let Some(threads) = threads else {
        return Ok(());
    };
    let why = match queues {
        QueueCount::Fixed(count) if (1..=count).contains(&threads) => return Ok(()),
        QueueCount::Fixed(count) => {
            format!("each serves one queue at least, so {count} queue(s) have 1 to {count} of them, not {threads}")
        }
        // Whether one more queue is needed shows by how busy its thread is.
        QueueCount::Auto { .. } => {
            "queues that follow the load have a thread each; give a number of queues, or no number of threads".into()
        }
    };
    Err(Error::invalid("start the threads of the tap switch", why))
}

/// Files that a switch needs besides the namespaces of its ports: netlink sockets and other files for each port's
/// device, and the queues.
fn needed_files(ports: usize, queues: usize) -> u64 {
    const PORT: usize = 5;
    (ports * PORT) as u64 + queue_files(ports, queues)
}

/// Files that queues need, with a thread for each: one at each port; for each worker its ring and the pipe that wakes
/// its thread; and some while starting.
fn queue_files(ports: usize, queues: usize) -> u64 {
    const WORKER: usize = 3;
    const SPARE: usize = 16;
    (queues * (ports + WORKER) + SPARE) as u64
}

/// Status of a port.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct PortState {
    /// Name of the device at the start.
    pub device: String,
    /// Whether it still exists.
    pub there: bool,
    /// Its rules at the start.
    pub rules: Rules,
    /// Whether frames for it are joined, by the last check of the device.
    pub joins: bool,
    /// Frames and bytes since the switch began, all queues of the port together.
    pub counters: Counters,
    /// The same for each queue, by number.
    pub by_queue: Vec<Counters>,
    /// Frames that the kernel dropped before the switch could read them, because a queue was full or none was attached,
    /// and other drops of the device; `None` if it can no longer be asked.
    pub unread: Option<u64>,
}

/// Status of a switch.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct State {
    /// In the order in which they were named.
    pub ports: Vec<PortState>,
    /// Time since it began.
    pub uptime: Duration,
    /// Queues attached at each port.
    pub queues: usize,
    /// Threads that serve them.
    pub threads: usize,
    /// How often a queue was attached or detached since the start.
    pub changes: u64,
    /// Addresses in the table.
    pub addresses: usize,
    /// Why the number of queues could not follow the load, the last time.
    pub trouble: Option<String>,
}

/// A running switch. Dropping it ends it and removes the devices that it made.
#[derive(Debug)]
pub struct Switch {
    shared: Arc<Shared>,
    pool: Arc<Mutex<WorkerPool>>,
    manager: Option<JoinHandle<()>>,
}

impl Switch {
    /// The current status.
    #[must_use]
    pub fn state(&self) -> State {
        self.pool().state()
    }

    /// Attaches or detaches queues of every port, under traffic, without losing a frame. With [`QueueCount::Auto`] the
    /// load soon decides again. If a queue cannot be attached at every port, it is attached at none.
    ///
    /// # Errors
    /// [`Error::Invalid`] for none or more than [`MAX_QUEUES`], or if a queue to be detached does not become empty;
    /// [`Error::Limit`]; those of [`Device::open_queue`](crate::Device::open_queue).
    pub fn set_queues(&self, count: usize) -> Result<()> {
        check_queues(count)?;
        self.pool().change_queues(count)
    }

    fn pool(&self) -> std::sync::MutexGuard<'_, WorkerPool> {
        self.pool.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Switch {
    fn drop(&mut self) {
        self.shared.end();
        if let Some(manager) = self.manager.take() {
            manager.thread().unpark();
            // A thread that panicked has printed it; there is nothing else to do.
            let _ = manager.join();
        }
        self.pool().end();
    }
}
