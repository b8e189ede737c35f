//! What the two ends of a load do with their sockets: a file for each kind of loops that a load's descriptor names.

mod ceiling;
mod connections;
mod events;
mod numbered;
mod open_connections;
mod segments;
mod stream;
mod transactions;

use std::os::fd::OwnedFd;
use std::time::Duration;

use socket2::Socket as Listener;

use super::flow::{Context, Opened, SharedSocket, Socket};
use super::journal::Journal;
use super::protocol::{Tallied, Timetable};
use super::socket::{SetSocket, Settings};
use super::sockets::Target;
use super::spec::LoadSpec;
use super::summary::Timings;
use hopyard_model::Api;
use hopyard_model::loads::LoopKind;

impl LoadSpec {
    /// Its loops.
    pub(crate) fn loops(&self) -> &'static dyn Loops {
        match (self.kind.info().loops, self.api) {
            (LoopKind::Streams, Api::Sockets) => &stream::Streams,
            (LoopKind::Streams, Api::Epoll) => &events::STREAMS_BY_EPOLL,
            (LoopKind::Streams, Api::Uring) => &events::STREAMS_BY_URING,
            (LoopKind::Transactions, Api::Sockets) => &transactions::Transactions,
            (LoopKind::Transactions, Api::Epoll) => &events::TRANSACTIONS_BY_EPOLL,
            (LoopKind::Transactions, Api::Uring) => &events::TRANSACTIONS_BY_URING,
            // These have no others (`check_bounds`).
            (LoopKind::Segments, _) => &segments::Segments,
            (LoopKind::Numbered, _) => &numbered::Numbered,
            (LoopKind::Connections, _) => &connections::Connections,
            (LoopKind::OpenConnections, _) => &open_connections::OpenConnections,
        }
    }

    /// What is wrong with it, if anything: the bounds that hold for every endpoint.
    ///
    /// # Errors
    /// A sentence naming the value and its bound.
    pub fn check(&self) -> Result<(), String> {
        self.check_bounds()?;
        self.loops().check(self)
    }
}

/// What the ends of a load do.
pub(crate) trait Loops: Sync {
    /// What sets a data socket for messages of so many bytes, before it is bound or connected.
    fn set(&self) -> SetSocket {
        |_, _| Ok(())
    }

    /// What the load needs beyond the bounds of all loads.
    ///
    /// # Errors
    /// A sentence naming the value and its bound.
    fn check(&self, _: &LoadSpec) -> Result<(), String> {
        Ok(())
    }

    /// May the flows of one CPU share a thread, and take turns on it?
    fn share_threads(&self) -> bool;

    /// Makes everything that the loops of a thread write to, before the start; what is given back runs them.
    ///
    /// # Errors
    /// A sentence: a flow has no socket, or it cannot be set.
    fn prepare<'a>(&self, work: Work<'a>) -> Result<Run<'a>, String>;

    /// The loops with no path at all, for a span: what the generator itself can do at most. Unless a load says otherwise, that is
    /// what a client of transactions can do.
    ///
    /// # Errors
    /// A sentence: a loop failed.
    fn ceiling(&self, spec: &LoadSpec, span: Duration) -> Result<Tallied, String> {
        ceiling::of_transactions(spec, span)
    }
}

/// What a thread says last, or what went wrong.
pub(crate) type Outcome = Result<Said, String>;

/// What a thread has to say besides its counters.
pub(crate) enum Said {
    Nothing,
    /// The round trips of a client.
    RoundTrips(Timings),
    /// The transactions of a client that connects for each, and the times that connecting took.
    Connections {
        transactions: Timings,
        connects: Timings,
    },
    /// The connections of a client that opens them when they are due.
    Opened(Box<Opened>),
    /// How many datagrams of an open loop's sender were due in the window.
    Due(u64),
    /// The datagrams of a receiver of numbered ones.
    Journal(Box<Journal>),
}

/// How a flow gets its socket.
pub(crate) enum Origin {
    Client {
        connected: OwnedFd,
        /// Where the server numbers its flows.
        number: Option<u32>,
        /// Its place among all flows of the load.
        place: u32,
    },
    /// `tcp_crr` and `tcp_conns` connect anew for each transaction.
    Connector {
        server: Target,
        /// Its place among all flows of the load.
        place: u32,
    },
    Server {
        listener: Listener,
    },
    /// Takes the numbered datagrams of several flows.
    Gatherer {
        socket: Listener,
        flows: u32,
    },
}

/// The loops of a thread, ready to run.
pub(crate) type Run<'a> = Box<dyn FnOnce() -> Outcome + 'a>;

/// What a thread has to do in a turn of traffic.
pub(crate) struct Work<'a> {
    pub(crate) spec: &'a LoadSpec,
    pub(crate) settings: &'a Settings,
    pub(crate) timetable: Timetable,
    /// When its flows begin, ns.
    pub(crate) start_ns: u64,
    /// One, unless the loops share threads.
    pub(crate) flows: Vec<Flow<'a>>,
}

/// A flow of a thread.
pub(crate) struct Flow<'a> {
    pub(crate) origin: &'a Origin,
    /// Its standing connection, if it has one.
    pub(crate) socket: Option<&'a Socket>,
    /// Where the controlling thread finds what it is to shut down.
    pub(crate) shared: &'a SharedSocket,
    pub(crate) context: Context<'a>,
}

impl<'a> Work<'a> {
    /// Is this the end that sends a stream?
    pub(crate) fn sends(&self) -> bool {
        let is_server = |flow: &Flow<'_>| matches!(flow.origin, Origin::Server { .. });
        self.flows.iter().any(is_server) == self.spec.kind.is_from_server()
    }

    /// The sockets of all flows.
    ///
    /// # Errors
    /// A flow has none.
    pub(crate) fn sockets(&self) -> Result<Vec<(&'a Socket, Context<'a>)>, String> {
        let flows = self.flows.iter();
        flows
            .map(|flow| Ok((flow.socket.ok_or(NO_SOCKET)?, flow.context)))
            .collect()
    }

    /// The flow of loops that share no threads.
    ///
    /// # Errors
    /// It is none, or more than one.
    fn flow(&self) -> Result<&Flow<'a>, String> {
        match &*self.flows {
            [flow] => Ok(flow),
            flows => Err(format!("{} flows on a thread for one", flows.len())),
        }
    }
}

const NO_SOCKET: &str = "a flow without a socket";
