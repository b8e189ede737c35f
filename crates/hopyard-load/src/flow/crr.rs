//! Connect, request, response, close: a new TCP connection for every transaction.
//!
//! The server closes first, so that the waiting after a close (TIME-WAIT, RFC 9293) is on its side and
//! the client's ports can be used again at once.

use std::os::fd::OwnedFd;

use hopyard_net::clock;
use socket2::Socket as RawSocket;

use super::exchange::Account;
use super::rr::{Taken, take_whole};
use super::{Context, Io, Responder, Socket, Times, again};
use crate::socket::Settings;
use crate::sockets::Target;

/// Makes transactions until told to stop; `connects` are the times from SYN to established.
///
/// # Errors
/// A connection failed before the window was over.
pub(crate) fn client(
    server: &Target,
    settings: &Settings,
    buffers: &mut Responder,
    (times, connects): (&mut Times, &mut Times),
    context: Context<'_>,
) -> Result<(), String> {
    let mut account = Account::new(context.tally);
    while !context.stopped() {
        let began = clock::monotonic_ns();
        let (connection, opened) = match settings.connect(server) {
            Ok((connection, opened)) => (Socket(OwnedFd::from(connection)), opened),
            Err(e) => return context.ended(&format!("connect to {server}"), &e),
        };
        if let Err(e) = connection.send(&buffers.request) {
            return context.ended("send a request", &e);
        }
        if let Err(e) = take_all(&connection, &mut buffers.response) {
            return context.ended("receive a response", &e);
        }
        drop(connection);
        times.record(began, clock::monotonic_ns());
        connects.record(opened.syn_ns, opened.established_ns);
        account.completed(buffers.response.len());
    }
    Ok(())
}

/// Answers one request per connection until the listener is shut down.
///
/// # Errors
/// The listener failed before the window was over.
pub(crate) fn server(
    listener: &RawSocket,
    buffers: &mut Responder,
    context: Context<'_>,
) -> Result<(), String> {
    let mut account = Account::new(context.tally);
    while !context.stopped() {
        let connection = match listener.accept() {
            Ok((connection, _)) => Socket(OwnedFd::from(connection)),
            Err(e) if again(&e) => continue,
            Err(e) => return context.ended("accept", &e),
        };
        let taken = take_whole(&connection, &mut buffers.request);
        if !matches!(taken, Taken::Whole) || connection.send(&buffers.response).is_err() {
            // The client went away in mid-transaction; it will say why.
            continue;
        }
        account.completed(buffers.request.len());
    }
    Ok(())
}

/// The whole response and the server's close after it.
fn take_all(connection: &Socket, response: &mut [u8]) -> std::io::Result<()> {
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
            0 => return Err(std::io::ErrorKind::UnexpectedEof.into()),
            n => have += n,
        }
    }
}
