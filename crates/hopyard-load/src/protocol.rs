//! The worker's protocol: one JSON object per line, requests in on stdin, replies out on stdout.
//!
//! ```text
//! worker      hello
//! controller  serve | connect        worker  serving | connected
//! controller  accept                 worker  connected     (the server, when every client is connected)
//! controller  run                    worker  done          (after the window; the connections end)
//! controller  turn                   worker  done          (after the window; the connections stay)
//! controller  finish                 worker  done          (what all turns counted; the connections end)
//! controller  ceiling                worker  done
//! controller  clock                  worker  clock         (where it has a kernel of its own)
//! controller  set_apart              worker  apart         (before anything else, where it is a container)
//! controller  host                   worker  host          (where it was started by a command of the user)
//! controller  way                    worker  way           (the same; a session then counts at the device)
//! controller  attend                 worker  attending     (the same; from then on both say `beat` now and then)
//! controller  meter                  worker  metered       (where its machine is not the controller's)
//! controller  quit, or end of input  worker  (exits)
//! ```
//!
//! Any request may be answered by `failed` with a sentence. Requests are numbered from 1 (`nr`), and each answer has the number
//! of its request, so that a line that is lost or comes twice is no answer to another. Instants are `CLOCK_MONOTONIC` of the
//! worker's host, ns.

mod timetable;

use std::net::IpAddr;

use serde::{Deserialize, Serialize};

pub use self::timetable::Timetable;
use super::endpoint::{Attendance, DeviceSpan, HostFacts, ProcessAt, WayFound};
use super::sockets::Place;
use super::spec::LoadSpec;
use super::tally::Reading;
use hopyard_model::{
    Arrivals, Counted, CpuUse, InvalidSample, Latency, MOST_FLOWS, Scheduling, TcpSummary,
    ZeroCopied, largest, plausible,
};

/// Version of the protocol; both ends must have the same.
pub const VERSION: u32 = 10;

/// A message with its number.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Numbered<T> {
    /// That of the request that it is, or that it answers; none of a greeting, of `beat` and of `quit`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nr: Option<u64>,
    /// What is said.
    #[serde(flatten)]
    pub message: T,
}

/// What the controller asks.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "do", rename_all = "snake_case")]
pub enum Request {
    /// Be the server: listen, a port for each flow.
    Serve {
        /// Traffic, sizes and limits; both ends get the same.
        spec: LoadSpec,
        /// Own address to listen at, or directory.
        address: Place,
        /// CPUs for the flows, in turn; none leaves them to the scheduler, with a thread for each (one for all
        /// flows of numbered datagrams).
        cpus: Vec<usize>,
    },
    /// Be the client: connect every flow.
    Connect {
        /// Traffic, sizes and limits; both ends get the same.
        spec: LoadSpec,
        /// Where the server listens.
        address: Place,
        /// The server's ports, one per flow.
        ports: Vec<u16>,
        /// CPUs for the flows, in turn; none leaves them to the scheduler, with a thread for each.
        cpus: Vec<usize>,
        /// Longest to wait for any one flow, ms.
        patience_ms: u64,
    },
    /// Be the server still: say when every flow has its connection.
    Accept {
        /// Longest to wait for that, ms.
        patience_ms: u64,
    },
    /// Make and count traffic, then end the connections.
    Run(Timetable),
    /// Make and count traffic over connections that stay for further turns.
    Turn(Timetable),
    /// End the connections and report what was counted since the first turn began, warm-ups included.
    Finish,
    /// How fast do the loops go with no path at all (`/dev/null`, `/dev/zero`)?
    Ceiling {
        /// Traffic, sizes and limits of the load that is tried.
        spec: LoadSpec,
        /// How long to try, ms.
        span_ms: u64,
        /// CPU to run on.
        cpu: Option<usize>,
    },
    /// What does your clock say?
    Clock,
    /// Be a container: have mount and cgroup namespaces of your own.
    SetApart,
    /// Which machine and namespace are you in?
    Host,
    /// By which device do packets go to this address? Its counters are reported with the next windows.
    Way {
        /// Address of the other end.
        to: IpAddr,
    },
    /// End when you have heard nothing for some time, and say that you live.
    Attend(Attendance),
    /// Read the CPU time of your machine over each window from now on. What it uses by itself is the answer.
    Meter {
        /// Further processes of the load on that machine.
        others: Vec<ProcessAt>,
        /// How long to look at what it uses by itself, ms.
        quiet_ms: u64,
    },
    /// The controller lives. It is not answered.
    Beat,
    /// End the process.
    Quit,
}

/// What the worker answers.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "is", rename_all = "snake_case")]
pub enum Reply {
    /// First line of every worker.
    Hello {
        /// Version of the protocol: [`VERSION`].
        protocol: u32,
        /// Version of the program.
        version: String,
    },
    /// The server listens at all of its ports.
    Serving {
        /// A port per flow; flows of numbered datagrams share some.
        ports: Vec<u16>,
    },
    /// Every flow has its connection, and a thread that waits for the start.
    Connected,
    /// The window is over.
    Done(Box<Tallied>),
    /// The answer to [`Request::Clock`].
    Clock {
        /// `CLOCK_MONOTONIC` of the worker, ns.
        monotonic_ns: u64,
    },
    /// The answer to [`Request::SetApart`].
    Apart,
    /// The answer to [`Request::Host`].
    Host(Box<HostFacts>),
    /// The answer to [`Request::Way`].
    Way(WayFound),
    /// A shell is ready to take the worker's program; it is none of the worker's own answers.
    Send,
    /// The answer to [`Request::Attend`].
    Attending,
    /// The answer to [`Request::Meter`].
    Metered {
        /// What the machine used with no load of ours.
        quiet: CpuSpan,
    },
    /// The worker lives; it says so at any time.
    Beat,
    /// The request could not be carried out.
    Failed {
        /// Operation, object and way out.
        cause: String,
    },
}

/// CPU time of a worker's machine over a span.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CpuSpan {
    /// What it used.
    Used(CpuUse),
    /// It could not be read: a sentence without its full stop, that says why.
    Unknown(String),
}

impl From<Result<CpuUse, String>> for CpuSpan {
    fn from(read: Result<CpuUse, String>) -> Self {
        match read {
            Ok(used) => Self::Used(used),
            Err(why) => Self::Unknown(why),
        }
    }
}

impl CpuSpan {
    /// Can it be? A worker may be another program, or one gone wrong.
    ///
    /// # Errors
    /// More time than so many CPUs have.
    pub fn check(&self) -> Result<(), InvalidSample> {
        match self {
            Self::Used(used) => used.check(),
            Self::Unknown(_) => Ok(()),
        }
    }
}

/// More parts than any window is cut into.
const MOST_SLICES: usize = 100;
/// More classes than a histogram of times has.
const MOST_BUCKETS: usize = 1 << 16;

/// What one end counted in the window.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Tallied {
    /// The window as this end's clock saw it, ns.
    pub window_ns: u64,
    /// How much later than planned it looked when the window opened or closed, the greater of both, ns.
    pub late_ns: u64,
    /// What this end took in.
    pub received: Counted,
    /// What this end handed to the kernel.
    pub sent: Counted,
    /// Sends refused for want of buffers.
    pub send_errors: u64,
    /// Requests that got no response in time and were given up: of a window of its own those that began in it.
    pub timeouts: u64,
    /// Received units per slice: bytes of a stream, transactions otherwise.
    pub slices: Vec<u64>,
    /// Round-trip times (client of a request/response load), or one-way times (server of `udp_paced`).
    pub latency: Option<Latency>,
    /// Times to connect (client of `tcp_crr`), or round trips of the first datagrams of fresh sockets (client of `udp_rr`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first_packet: Option<Latency>,
    /// How numbered datagrams arrived (their server).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub arrivals: Option<Arrivals>,
    /// Datagrams of an open loop that were due in the window: by the sender's schedule, or those of them that the
    /// receiver has.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub due: Option<u64>,
    /// Connections that were due in the window, by the client's schedule, and ended before traffic stopped.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub finished: Option<u64>,
    /// What became of sends without a copy (the sender that made such).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub zero_copy: Option<ZeroCopied>,
    /// TCP's own account (standing connections).
    pub tcp: Option<TcpSummary>,
    /// What each flow took in; of a TCP stream, what its kernel took in.
    pub flows: Vec<Counted>,
    /// How this end's threads were scheduled.
    pub scheduling: Scheduling,
    /// Counters of the device that [`Request::Way`] found.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub device: Option<DeviceSpan>,
    /// CPU time of its machine over the window, where [`Request::Meter`] came before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu: Option<CpuSpan>,
}

impl Tallied {
    /// Nothing but counters over a span, ns.
    pub(super) fn counted(window_ns: u64, counted: Reading) -> Self {
        Self {
            window_ns,
            received: counted.received,
            sent: counted.sent,
            send_errors: counted.send_errors,
            timeouts: counted.timeouts,
            ..Self::default()
        }
    }

    /// Can it be? A worker may be another program, or one gone wrong.
    ///
    /// # Errors
    /// A count is larger than any window can hold, or a list longer than any load makes it.
    pub fn check(&self) -> Result<(), InvalidSample> {
        let buckets = |times: &Option<Latency>| times.as_ref().map_or(0, |l| l.histogram.len());
        for (what, count, most) in [
            ("slices", self.slices.len(), MOST_SLICES),
            ("flows", self.flows.len(), MOST_FLOWS as usize),
            ("latency", buckets(&self.latency), MOST_BUCKETS),
            ("first_packet", buckets(&self.first_packet), MOST_BUCKETS),
        ]
        .into_iter()
        .chain(self.arrivals.iter().flat_map(Arrivals::lists))
        {
            if count > most {
                return Err(InvalidSample::TooMany { what, count, most });
            }
        }
        self.cpu.as_ref().map_or(Ok(()), CpuSpan::check)?;
        plausible(&[
            ("window_ns", self.window_ns),
            ("late_ns", self.late_ns),
            ("received", self.received.largest()),
            ("sent", self.sent.largest()),
            ("send_errors", self.send_errors),
            ("timeouts", self.timeouts),
            ("slices", largest(&self.slices)),
            ("latency", self.latency.as_ref().map_or(0, Latency::largest)),
            (
                "first_packet",
                self.first_packet.as_ref().map_or(0, Latency::largest),
            ),
            (
                "arrivals",
                self.arrivals.as_ref().map_or(0, Arrivals::largest),
            ),
            ("due", self.due.unwrap_or(0)),
            ("finished", self.finished.unwrap_or(0)),
            ("tcp", self.tcp.map_or(0, TcpSummary::largest)),
            ("zero_copy", self.zero_copy.map_or(0, ZeroCopied::largest)),
            (
                "flows",
                self.flows
                    .iter()
                    .map(|flow| flow.largest())
                    .max()
                    .unwrap_or(0),
            ),
            ("scheduling", self.scheduling.largest()),
            (
                "device",
                self.device.as_ref().map_or(0, DeviceSpan::largest),
            ),
        ])
    }
}
