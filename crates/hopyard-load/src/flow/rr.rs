//! Request/response over a standing connection or over datagrams: one transaction at a time, or several ([`super::burst`]).

use std::io;

use hopyard_net::clock;

use super::exchange::{Account, Responder, Times, first_number, work_for};
use super::{Context, Io, again, burst, timed_out};

/// Sends requests and waits for their responses until told to stop.
///
/// # Errors
/// The socket failed, or the other end closed, before the window was over.
pub(crate) fn client(
    io: &impl Io,
    buffers: &mut Responder,
    times: &mut Times,
    context: Context<'_>,
) -> Result<(), String> {
    if buffers.outstanding > 1 {
        return burst::client(io, buffers, times, context);
    }
    let mut account = Account::new(context.tally);
    let mut began = clock::monotonic_ns();
    let bytes = buffers.number_bytes();
    let mut number = first_number();
    while !context.stopped() {
        if buffers.pause_ns > 0 {
            work_for(buffers.pause_ns);
            began = clock::monotonic_ns();
        }
        if buffers.datagrams {
            number = number.wrapping_add(1);
            buffers.request[..bytes].copy_from_slice(&number.to_le_bytes()[..bytes]);
        }
        if let Err(e) = io.send(&buffers.request) {
            return context.ended("send a request", &e);
        }
        let taken = if buffers.datagrams {
            take_datagram(io, &mut buffers.response, &buffers.request[..bytes])
        } else {
            take_whole(io, &mut buffers.response)
        };
        match taken {
            Taken::Whole => {}
            Taken::Lost => {
                context.tally.timed_out(times.has(began));
                began = clock::monotonic_ns();
                continue;
            }
            Taken::Closed => {
                // A datagram may be lost: its time so far says nothing.
                times.cut_off((!buffers.datagrams).then_some(began));
                return context.closed();
            }
            Taken::Failed(e) => return context.ended("receive a response", &e),
        }
        let ended = clock::monotonic_ns();
        times.record(began, ended);
        account.completed(buffers.response.len());
        began = ended;
    }
    Ok(())
}

/// Answers requests until the other end closes or traffic stops.
///
/// # Errors
/// The socket failed, or the other end closed, before the window was over.
pub(crate) fn server(
    io: &impl Io,
    buffers: &mut Responder,
    context: Context<'_>,
) -> Result<(), String> {
    let mut account = Account::new(context.tally);
    let number = buffers.number_bytes();
    while !context.stopped() {
        let taken = if buffers.datagrams {
            take_datagram(io, &mut buffers.request, &[])
        } else {
            take_whole(io, &mut buffers.request)
        };
        match taken {
            Taken::Whole => {}
            Taken::Lost => continue,
            Taken::Closed => return context.closed(),
            Taken::Failed(e) => return context.ended("receive a request", &e),
        }
        if buffers.datagrams {
            buffers.response[..number].copy_from_slice(&buffers.request[..number]);
        }
        if buffers.service_time_ns > 0 {
            work_for(buffers.service_time_ns);
        }
        if let Err(e) = io.send(&buffers.response) {
            return context.ended("send a response", &e);
        }
        account.completed(buffers.request.len());
    }
    Ok(())
}

pub(super) enum Taken {
    Whole,
    Lost,
    Closed,
    Failed(io::Error),
}

/// Takes one whole message of a connection.
#[inline]
pub(super) fn take_whole(io: &impl Io, message: &mut [u8]) -> Taken {
    let mut have = 0;
    while have < message.len() {
        match io.recv(&mut message[have..]) {
            Ok(0) => return Taken::Closed,
            Ok(n) => have += n,
            Err(e) if again(&e) => {}
            Err(e) => return lost_or_failed(e),
        }
    }
    Taken::Whole
}

/// Takes one datagram of the message's size that begins with the number `wanted`: others are late, or strays. A longer one is
/// cut to the size and passes; the only ones are greetings, and the number tells those from responses.
#[inline]
fn take_datagram(io: &impl Io, message: &mut [u8], wanted: &[u8]) -> Taken {
    loop {
        match io.recv(message) {
            Ok(0) => return Taken::Closed,
            Ok(n) => {
                let is_whole = n == message.len();
                if is_whole && message.starts_with(wanted) {
                    return Taken::Whole;
                }
            }
            Err(e) if again(&e) => {}
            Err(e) => return lost_or_failed(e),
        }
    }
}

fn lost_or_failed(error: io::Error) -> Taken {
    if timed_out(&error) {
        Taken::Lost
    } else {
        Taken::Failed(error)
    }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;
    use std::collections::VecDeque;

    use super::*;

    /// Gives these to one call each, and then nothing in time.
    struct Given(RefCell<VecDeque<&'static [u8]>>);

    impl Io for Given {
        fn send(&self, message: &[u8]) -> io::Result<usize> {
            Ok(message.len())
        }

        fn recv(&self, buffer: &mut [u8]) -> io::Result<usize> {
            let next = self.0.borrow_mut().pop_front();
            let next = next.ok_or(io::ErrorKind::WouldBlock)?;
            let bytes = next.len().min(buffer.len());
            buffer[..bytes].copy_from_slice(&next[..bytes]);
            Ok(bytes)
        }
    }

    fn given(parts: &[&'static [u8]]) -> Given {
        Given(RefCell::new(parts.iter().copied().collect()))
    }

    #[test]
    fn a_datagram_of_another_size_is_no_part_of_a_message() {
        let io = given(&[b"12", b"3456", b"78", b"9abc"]);
        let mut message = [0; 4];
        for whole in [b"3456", b"9abc"] {
            let taken = take_datagram(&io, &mut message, &[]);
            assert!(matches!(taken, Taken::Whole));
            assert_eq!(&message, whole);
        }
        let taken = take_datagram(&io, &mut message, &[]);
        assert!(matches!(taken, Taken::Lost));
    }

    #[test]
    fn a_late_answer_is_passed_over() {
        let io = given(&[b"1a", b"2", b"2b"]);
        let mut message = [0; 2];
        let taken = take_datagram(&io, &mut message, b"2");
        assert!(matches!(taken, Taken::Whole));
        assert_eq!(&message, b"2b");
    }

    /// One that was sent 256 requests before has the same first byte.
    #[test]
    fn an_answer_is_known_by_all_bytes_of_its_number() {
        let io = given(&[b"7abc....", b"7abd...."]);
        let mut message = [0; 8];
        let taken = take_datagram(&io, &mut message, b"7abd....");
        assert!(matches!(taken, Taken::Whole));
        assert_eq!(&message, b"7abd....");
    }

    #[test]
    fn each_turn_has_other_numbers() {
        let one = first_number();
        std::thread::sleep(std::time::Duration::from_micros(1));
        assert!(first_number() > one);
    }

    #[test]
    fn a_connection_gives_a_message_in_parts() {
        let io = given(&[b"12", b"34", b"5"]);
        let mut message = [0; 4];
        assert!(matches!(take_whole(&io, &mut message), Taken::Whole));
        assert_eq!(&message, b"1234");
        assert!(matches!(take_whole(&io, &mut message), Taken::Lost));
    }
}
