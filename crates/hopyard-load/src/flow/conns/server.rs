//! The server's end: it answers one request for each connection, and closes. A connection whose request is late, since a packet of it
//! was lost, or whose client is slow to take the response, holds up no other.

use std::collections::HashMap;
use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};

use nix::errno::Errno;
use nix::sys::epoll::{Epoll, EpollCreateFlags, EpollEvent, EpollFlags, EpollTimeout};
use nix::sys::socket::{MsgFlags, recv};
use socket2::Socket as RawSocket;

use super::super::exchange::{Account, Responder};
use super::super::{Context, Io, Socket, again, timed_out};
use super::EVENTS;

/// A connection that was accepted.
struct Connection {
    socket: Socket,
    /// Bytes of the request that came.
    have: usize,
    /// Bytes of the response that went.
    sent: usize,
}

/// The server's end of a flow.
pub(crate) struct Server<'a> {
    listener: &'a RawSocket,
    epoll: Epoll,
    buffers: Responder,
    /// By the numbers of their descriptors.
    connections: HashMap<u64, Connection>,
}

impl<'a> Server<'a> {
    /// Watches a listener, which does not block from then on.
    ///
    /// # Errors
    /// A sentence: no epoll instance can be made, or the listener cannot be watched.
    pub(crate) fn new(listener: &'a RawSocket, buffers: Responder) -> Result<Self, String> {
        listener
            .set_nonblocking(true)
            .map_err(|e| format!("cannot make a socket non-blocking: {e}"))?;
        let epoll = Epoll::new(EpollCreateFlags::EPOLL_CLOEXEC)
            .map_err(|e| format!("cannot make an epoll instance: {e}"))?;
        epoll
            .add(listener, EpollEvent::new(EpollFlags::EPOLLIN, id(listener)))
            .map_err(|e| format!("cannot watch a socket: {e}"))?;
        Ok(Self {
            listener,
            epoll,
            buffers,
            connections: HashMap::new(),
        })
    }

    /// Answers until the listener is shut down.
    ///
    /// # Errors
    /// The listener failed before the window was over.
    pub(crate) fn run(mut self, context: Context<'_>) -> Result<(), String> {
        let mut account = Account::new(context.tally);
        let mut events = [EpollEvent::empty(); EVENTS];
        while !context.stopped() {
            let ready = match self.epoll.wait(&mut events, EpollTimeout::NONE) {
                Ok(ready) => ready,
                Err(Errno::EINTR) => continue,
                Err(e) => return context.ended("wait for connections", &e.into()),
            };
            for event in &events[..ready] {
                if event.data() != id(self.listener) {
                    self.go_on(event.data(), &mut account);
                    continue;
                }
                match self.accept() {
                    Err(e) if again(&e) || timed_out(&e) => {}
                    Err(e) => return context.ended("accept", &e),
                    Ok(()) => {}
                }
            }
        }
        Ok(())
    }

    /// Takes the next connection. Its request comes a little later, as a rule.
    fn accept(&mut self) -> io::Result<()> {
        let (socket, _) = self.listener.accept()?;
        let socket = Socket(OwnedFd::from(socket));
        let id = id(&socket);
        self.epoll
            .add(&socket, EpollEvent::new(EpollFlags::EPOLLIN, id))?;
        let connection = Connection {
            socket,
            have: 0,
            sent: 0,
        };
        self.connections.insert(id, connection);
        Ok(())
    }

    /// Goes on with a connection as far as it can be.
    fn go_on(&mut self, id: u64, account: &mut Account<'_>) {
        let Some(one) = self.connections.get_mut(&id) else {
            return;
        };
        match one.answer(&mut self.buffers) {
            Ok(()) => account.completed(self.buffers.request.len()),
            Err(e) if timed_out(&e) && one.have < self.buffers.request.len() => return,
            Err(e) if timed_out(&e) => {
                let mut room = EpollEvent::new(EpollFlags::EPOLLOUT, id);
                if self.epoll.modify(&one.socket, &mut room).is_ok() {
                    return;
                }
            }
            // The client went away in mid-transaction; it will say why.
            Err(_) => {}
        }
        self.connections.remove(&id);
    }
}

/// The name of a socket among events.
fn id(socket: &impl AsFd) -> u64 {
    u64::from(socket.as_fd().as_raw_fd().unsigned_abs())
}

impl Connection {
    /// Takes what is missing of the request, and sends what is missing of the response.
    ///
    /// # Errors
    /// It would have to wait; or the connection failed.
    fn answer(&mut self, buffers: &mut Responder) -> io::Result<()> {
        while self.have < buffers.request.len() {
            let room = &mut buffers.request[self.have..];
            let fd = self.socket.as_fd().as_raw_fd();
            match recv(fd, room, MsgFlags::MSG_DONTWAIT).map_err(io::Error::from) {
                Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Ok(n) => self.have += n,
                Err(e) if again(&e) => {}
                Err(e) => return Err(e),
            }
        }
        while self.sent < buffers.response.len() {
            match self.socket.send_now(&buffers.response[self.sent..]) {
                Ok(n) => self.sent += n,
                Err(e) if again(&e) => {}
                Err(e) => return Err(e),
            }
        }
        Ok(())
    }
}
