//! Connections that are opened when they are due, however those before them go: an open loop, as `transmit_paced` is for datagrams.
//!
//! Each is connect, request, response and the server's close. Times count from the instant at which a connection was due, so what
//! a stall held up is in them (coordinated omission); one that has not ended when traffic stops counts with the time until then.

mod server;

use std::io;
use std::os::fd::{AsFd, OwnedFd};

use hopyard_net::clock;
use nix::poll::{PollFd, PollFlags, ppoll};
use nix::sys::epoll::{Epoll, EpollCreateFlags, EpollEvent, EpollFlags, EpollTimeout};
use nix::sys::time::{TimeSpec, TimeValLike};

use super::exchange::Account;
use super::{Context, Io, Schedule, Socket, again, timed_out};
use crate::protocol::Timetable;
use crate::socket::Settings;
use crate::sockets::Target;
use crate::summary::Timings;
use hopyard_model::MOST_OPEN;
pub(crate) use server::Server;

/// Events taken by a call.
const EVENTS: usize = 64;
/// Longest wait, ns: what tells a loop to stop does not wake it.
const LONGEST_WAIT_NS: u64 = 20_000_000;

/// What became of the connections that were due in the window.
pub(crate) struct Opened {
    /// From when it was due to its end.
    pub(crate) latency: Timings,
    /// From SYN to established.
    pub(crate) connects: Timings,
    /// How many were due.
    pub(crate) due: u64,
    /// How many of those ended before traffic stopped.
    pub(crate) finished: u64,
}

/// A connection on its way.
struct Connection {
    socket: Socket,
    due_ns: u64,
    syn_ns: u64,
    /// Bytes of the request that were handed over.
    sent: usize,
    /// Bytes of the response that came.
    have: usize,
}

/// How far a connection got.
enum Progress {
    /// It waits for the other end.
    Waits,
    /// The server closed after a whole response.
    Ended,
}

/// The client's end of a flow, with everything that its loop writes to.
pub(crate) struct Client<'a> {
    server: &'a Target,
    settings: &'a Settings,
    epoll: Epoll,
    connections: Vec<Option<Connection>>,
    free: Vec<usize>,
    request: Vec<u8>,
    response: Vec<u8>,
    timetable: Timetable,
    opened: Opened,
}

impl<'a> Client<'a> {
    /// A client of messages of these sizes, bytes.
    ///
    /// # Errors
    /// A sentence: no epoll instance or histogram can be made.
    pub(crate) fn new(
        server: &'a Target,
        settings: &'a Settings,
        sizes: [u32; 2],
        timetable: Timetable,
    ) -> Result<Self, String> {
        let epoll = Epoll::new(EpollCreateFlags::EPOLL_CLOEXEC)
            .map_err(|e| format!("cannot make an epoll instance: {e}"))?;
        let [request, response] = sizes.map(|size| vec![0x5a; size as usize]);
        Ok(Self {
            server,
            settings,
            epoll,
            connections: (0..MOST_OPEN).map(|_| None).collect(),
            free: (0..MOST_OPEN as usize).rev().collect(),
            request,
            response,
            timetable,
            opened: Opened {
                latency: Timings::new()?,
                connects: Timings::new()?,
                due: 0,
                finished: 0,
            },
        })
    }

    /// Opens connections when they are due until told to stop.
    ///
    /// # Errors
    /// A connection failed before the window was over.
    pub(crate) fn run(
        mut self,
        schedule: Schedule,
        context: Context<'_>,
    ) -> Result<Opened, String> {
        let Timetable {
            open_ns, close_ns, ..
        } = self.timetable;
        let mut schedule = schedule.counting(open_ns, close_ns);
        let mut account = Account::new(context.tally);
        let mut events = [EpollEvent::empty(); EVENTS];
        while !context.stopped() {
            let now_ns = clock::monotonic_ns();
            if schedule.due_ns() <= now_ns
                && let Some(place) = self.free.pop()
            {
                if let Err(e) = self.open(place, schedule.due_ns()) {
                    context.ended(&format!("connect to {}", self.server), &e)?;
                    break;
                }
                schedule.advance(now_ns);
                continue;
            }
            let ready = match self.wait(&schedule, &mut events) {
                Ok(ready) => ready,
                Err(e) => {
                    context.ended("wait for connections", &e)?;
                    break;
                }
            };
            for event in events.iter().take(ready) {
                let place = usize::try_from(event.data()).unwrap_or(usize::MAX);
                match self.progress(place) {
                    Ok(Progress::Waits) => {}
                    Ok(Progress::Ended) => {
                        self.end(place);
                        account.completed(self.response.len());
                    }
                    Err(e) => {
                        context.ended(&format!("exchange with {}", self.server), &e)?;
                        return Ok(self.stop(schedule));
                    }
                }
            }
        }
        Ok(self.stop(schedule))
    }

    fn open(&mut self, place: usize, due_ns: u64) -> io::Result<()> {
        let (socket, syn_ns) = self.settings.begin_connecting(self.server)?;
        let socket = Socket(OwnedFd::from(socket));
        let both = EpollFlags::EPOLLIN | EpollFlags::EPOLLOUT | EpollFlags::EPOLLET;
        self.epoll
            .add(socket.as_fd(), EpollEvent::new(both, place as u64))?;
        self.connections[place] = Some(Connection {
            socket,
            due_ns,
            syn_ns,
            sent: 0,
            have: 0,
        });
        Ok(())
    }

    /// Waits for events, or until the next connection is due: to the nanosecond, which `epoll_wait` cannot.
    fn wait(&self, schedule: &Schedule, events: &mut [EpollEvent]) -> io::Result<usize> {
        let left_ns = if self.free.is_empty() {
            LONGEST_WAIT_NS
        } else {
            let left_ns = schedule.due_ns().saturating_sub(clock::monotonic_ns());
            left_ns.min(LONGEST_WAIT_NS)
        };
        if left_ns > 0 {
            let left = TimeSpec::nanoseconds(i64::try_from(left_ns).unwrap_or(i64::MAX));
            let mut fds = [PollFd::new(self.epoll.0.as_fd(), PollFlags::POLLIN)];
            match ppoll(&mut fds, Some(left), None) {
                Ok(_) | Err(nix::errno::Errno::EINTR) => {}
                Err(e) => return Err(e.into()),
            }
        }
        match self.epoll.wait(events, EpollTimeout::ZERO) {
            Ok(ready) => Ok(ready),
            Err(nix::errno::Errno::EINTR) => Ok(0),
            Err(e) => Err(e.into()),
        }
    }

    /// Goes on with a connection as far as it can be.
    fn progress(&mut self, place: usize) -> io::Result<Progress> {
        let Some(Some(one)) = self.connections.get_mut(place) else {
            return Ok(Progress::Waits);
        };
        let mut end = [0; 1];
        loop {
            let moved = if one.sent < self.request.len() {
                one.socket.send(&self.request[one.sent..])
            } else if one.have < self.response.len() {
                one.socket.recv(&mut self.response[one.have..])
            } else {
                one.socket.recv(&mut end)
            };
            let bytes = match moved {
                Ok(bytes) => bytes,
                Err(e) if again(&e) => continue,
                Err(e) if timed_out(&e) => return Ok(Progress::Waits),
                Err(e) => return Err(e),
            };
            if one.sent < self.request.len() {
                if one.sent == 0 && self.timetable.has(one.due_ns) {
                    let took_ns = clock::monotonic_ns().saturating_sub(one.syn_ns);
                    self.opened.connects.record(took_ns);
                }
                one.sent += bytes;
            } else if bytes == 0 && one.have == self.response.len() {
                return Ok(Progress::Ended);
            } else if bytes == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            } else {
                one.have += bytes;
            }
        }
    }

    fn end(&mut self, place: usize) {
        let Some(one) = self.connections[place].take() else {
            return;
        };
        self.free.push(place);
        // Its socket closes first: its time is over when nothing of it is left at this end.
        let due_ns = one.due_ns;
        drop(one);
        if self.timetable.has(due_ns) {
            self.opened.finished += 1;
            let took_ns = clock::monotonic_ns().saturating_sub(due_ns);
            self.opened.latency.record(took_ns);
        }
    }

    /// What came of it. The schedule goes on with what was not opened.
    fn stop(mut self, mut schedule: Schedule) -> Opened {
        let Timetable {
            open_ns, close_ns, ..
        } = self.timetable;
        let now_ns = clock::monotonic_ns();
        for one in self.connections.iter().flatten() {
            if self.timetable.has(one.due_ns) {
                let waited_ns = now_ns.saturating_sub(one.due_ns);
                self.opened.latency.record(waited_ns);
                // Those that were never established are the slowest of all.
                if one.sent == 0 {
                    self.opened
                        .connects
                        .record(now_ns.saturating_sub(one.syn_ns));
                }
            }
        }
        while schedule.due_ns() < close_ns {
            if schedule.due_ns() >= open_ns {
                let waited_ns = now_ns.saturating_sub(schedule.due_ns());
                self.opened.latency.record(waited_ns);
            }
            schedule.advance(0);
        }
        self.opened.due = schedule.due();
        self.opened
    }
}
