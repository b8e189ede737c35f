//! The receiving end of numbered datagrams: many flows on one socket, many datagrams per call.
//!
//! One socket, so that its queue holds the order in which the datagrams of all flows came.

use std::os::fd::AsFd;

use hopyard_net::clock;
use hopyard_net::datagrams::Batch;

use super::{Context, Socket, again};
use crate::journal::{Came, Journal};
use crate::numbered::Header;
use hopyard_model::Counted;

/// Datagrams taken in one call.
pub(crate) const BATCH: usize = 64;
/// The wall clock against the monotonic one moves by no more than this, unless somebody sets it.
const CLOCK_STEP_NS: u64 = 100_000;

/// Enters every numbered datagram into the journal until traffic stops. The flow's counters have first copies only: a path that
/// duplicates datagrams carries no more data.
///
/// # Errors
/// The socket failed before the window was over, the kernel gave no receive times, or the wall clock they are taken
/// from was set meanwhile.
pub(crate) fn gather(
    socket: &Socket,
    batch: &mut Batch,
    journal: &mut Journal,
    context: Context<'_>,
) -> Result<(), String> {
    let ahead_ns = clock::realtime_ahead_ns();
    let mut counted = Counted::default();
    while !context.stopped() {
        match batch.receive(socket.0.as_fd()) {
            Ok(()) => {}
            Err(e) if again(&e) => continue,
            Err(e) => return context.ended("receive", &e),
        }
        let read_ns = clock::monotonic_ns();
        for datagram in batch.iter() {
            let Some(header) = Header::read(datagram.payload) else {
                continue;
            };
            let arrived_ns = datagram
                .arrived_ns
                .ok_or("the kernel gave a datagram no receive time (SO_TIMESTAMPNS)")?
                .wrapping_add_signed(-ahead_ns);
            let bytes = datagram.payload.len();
            let came = Came {
                arrived_ns,
                read_ns,
            };
            if journal.enter(&header, bytes, came) {
                counted.messages += 1;
                counted.bytes += bytes as u64;
            }
        }
        context.tally.set_received(counted);
    }
    if clock::realtime_ahead_ns().abs_diff(ahead_ns) > CLOCK_STEP_NS {
        return Err("the wall clock was set while datagrams were timed by it".to_owned());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::net::UdpSocket;
    use std::sync::atomic::AtomicBool;
    use std::time::Duration;

    use hopyard_net::datagrams;

    use super::*;
    use crate::numbered::HEADER_BYTES;
    use crate::protocol::Timetable;
    use crate::tally::Tally;

    #[test]
    fn copies_are_not_in_the_main_figures() {
        let receiver = UdpSocket::bind("127.0.0.1:0").unwrap();
        datagrams::stamp_arrivals(&receiver).unwrap();
        let soon = Duration::from_millis(100);
        receiver.set_read_timeout(Some(soon)).unwrap();
        let sender = UdpSocket::bind("127.0.0.1:0").unwrap();
        sender.connect(receiver.local_addr().unwrap()).unwrap();
        // The last is of no flow of this receiver.
        for (flow, number) in [(0, 0), (0, 1), (0, 1), (0, 2), (0, 0), (7, 3)] {
            let mut message = [0; HEADER_BYTES];
            let header = Header {
                flow,
                number,
                due_ns: 0,
                sent_ns: 0,
            };
            header.write(&mut message);
            sender.send(&message).unwrap();
        }
        let (tally, stop) = (Tally::default(), AtomicBool::new(false));
        // The window is closed: an empty queue ends the flow.
        let context = Context {
            tally: &tally,
            stop: &stop,
            close_ns: 0,
        };
        let timetable = Timetable {
            start_ns: 0,
            open_ns: 0,
            close_ns: 0,
            stop_ns: 0,
            slices: 1,
            other_behind_ns: 0,
            edge_ns: 0,
        };
        let mut journal = Journal::new(1, timetable).unwrap();
        let mut batch = Batch::new(BATCH, HEADER_BYTES);
        gather(&Socket(receiver.into()), &mut batch, &mut journal, context).unwrap();
        let received = tally.read().received;
        let wanted = (3, 3 * HEADER_BYTES as u64);
        assert_eq!((received.messages, received.bytes), wanted);
    }
}
