//! Connect, request, response, close: a new TCP connection for every transaction.
//!
//! The server closes first, so that the waiting after a close (TIME-WAIT, RFC 9293) is on its side and
//! the client's ports can be used again at once.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::{Arc, PoisonError};

use hopyard_net::clock;
use socket2::Socket as RawSocket;

use super::exchange::Account;
use super::rr::{Taken, take_whole};
use super::{Context, Io, Responder, SharedSocket, Socket, Times, again};
use crate::socket::{Opened, Settings, connect};
use crate::sockets::Target;

/// The connection of a transaction. Until it is dropped, the controlling thread can shut it down: nobody waits for an answer that does
/// not come for as long as TCP tries.
struct Present<'a> {
    socket: Arc<Socket>,
    shared: &'a SharedSocket,
}

impl<'a> Present<'a> {
    /// `None` where traffic is over: the controlling thread may have looked before the connection was there.
    fn new(socket: RawSocket, shared: &'a SharedSocket, context: Context<'_>) -> Option<Self> {
        let socket = Arc::new(Socket(OwnedFd::from(socket)));
        set(shared, Some(Arc::clone(&socket)));
        let present = Self { socket, shared };
        (!context.stopped()).then_some(present)
    }
}

impl AsFd for Present<'_> {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

impl Drop for Present<'_> {
    fn drop(&mut self) {
        set(self.shared, None);
    }
}

fn set(shared: &SharedSocket, socket: Option<Arc<Socket>>) {
    *shared.lock().unwrap_or_else(PoisonError::into_inner) = socket;
}

/// Makes transactions until told to stop; `connects` are the times from SYN to established. One that is not over by then counts with
/// the time that it has taken so far.
///
/// # Errors
/// A connection failed before the window was over.
pub(crate) fn client(
    (server, settings, shared): (&Target, &Settings, &SharedSocket),
    buffers: &mut Responder,
    (times, connects): (&mut Times, &mut Times),
    context: Context<'_>,
) -> Result<(), String> {
    let mut account = Account::new(context.tally);
    while !context.stopped() {
        let began = clock::monotonic_ns();
        let opened = match settings.open_to(server) {
            Ok(socket) => Present::new(socket, shared, context),
            Err(e) => return context.ended("open a socket", &e),
        };
        let Some(connection) = opened else {
            break;
        };
        match transact(&connection, server, buffers) {
            Ok(opened) => {
                drop(connection);
                times.record(began, clock::monotonic_ns());
                connects.record(opened.syn_ns, opened.established_ns);
                account.completed(buffers.response.len());
            }
            Err((doing, e)) => {
                times.cut_off([began]);
                return context.ended(&doing, &e);
            }
        }
    }
    Ok(())
}

/// Connects, asks, and waits for the answer and the server's close; an error says what failed.
fn transact(
    connection: &Present<'_>,
    server: &Target,
    buffers: &mut Responder,
) -> Result<Opened, (String, io::Error)> {
    let opened = connect(connection, server).map_err(|e| (format!("connect to {server}"), e))?;
    let socket = &*connection.socket;
    socket
        .send(&buffers.request)
        .map_err(|e| ("send a request".to_owned(), e))?;
    take_all(socket, &mut buffers.response).map_err(|e| ("receive a response".to_owned(), e))?;
    Ok(opened)
}

/// Answers one request per connection until the listener is shut down.
///
/// # Errors
/// The listener failed before the window was over.
pub(crate) fn server(
    (listener, shared): (&RawSocket, &SharedSocket),
    buffers: &mut Responder,
    context: Context<'_>,
) -> Result<(), String> {
    let mut account = Account::new(context.tally);
    while !context.stopped() {
        let accepted = match listener.accept() {
            Ok((socket, _)) => Present::new(socket, shared, context),
            Err(e) if again(&e) => continue,
            Err(e) => return context.ended("accept", &e),
        };
        let Some(connection) = accepted else {
            break;
        };
        let socket = &*connection.socket;
        let taken = take_whole(socket, &mut buffers.request);
        if !matches!(taken, Taken::Whole) || socket.send(&buffers.response).is_err() {
            // The client went away in mid-transaction; it will say why.
            continue;
        }
        account.completed(buffers.request.len());
    }
    Ok(())
}

/// The whole response and the server's close after it.
fn take_all(connection: &Socket, response: &mut [u8]) -> io::Result<()> {
    let mut have = 0;
    let mut end = [0; 1];
    loop {
        let room = if have < response.len() {
            &mut response[have..]
        } else {
            &mut end[..]
        };
        match connection.recv(room)? {
            0 if have == response.len() => return Ok(()),
            0 => return Err(io::ErrorKind::UnexpectedEof.into()),
            n => have += n,
        }
    }
}
