//! The end of a session: its threads end, and say what they know.

use std::sync::mpsc::RecvTimeoutError;
use std::time::Duration;

use super::{Session, Thread};
use crate::journal::Journal;
use crate::loops::{Outcome, Said};
use crate::summary::Timings;

/// How long a flow may take to notice that it is over.
const FAREWELL: Duration = Duration::from_secs(2);
const PANICKED: &str = "a flow's thread panicked; its message is on stderr";

/// What the threads of a session had to say, put together.
#[derive(Default)]
pub(super) struct Parting {
    pub(super) round_trips: Option<Timings>,
    /// Of the first packets of flows.
    pub(super) first_packets: Option<Timings>,
    pub(super) due: Option<u64>,
    /// Of connections that were due, those that ended.
    pub(super) finished: Option<u64>,
    pub(super) journal: Option<Box<Journal>>,
}

impl Session {
    /// Ends every flow and gathers what they have to say.
    pub(super) fn farewell(&mut self) -> Result<Parting, String> {
        self.hang_up();
        let mut parting = Parting::default();
        for _ in 0..self.threads.len() {
            parting.take_in(self.outcome("stop")?)?;
        }
        for Thread { start, handle, .. } in std::mem::take(&mut self.threads) {
            // It waits for another turn otherwise.
            drop(start);
            if handle.join().is_err() {
                return Err(PANICKED.to_owned());
            }
        }
        Ok(parting)
    }

    /// What the next thread has to say that was told to do this.
    pub(super) fn outcome(&self, doing: &str) -> Outcome {
        let heard = self.ended.recv_timeout(FAREWELL);
        heard.unwrap_or_else(|error| {
            let late = format!("a flow did not {doing} within {} s", FAREWELL.as_secs());
            Err(self.why_silent(error, late))
        })
    }

    /// Why nothing is heard of a thread: it panicked, or is late. One that ends otherwise has said why.
    pub(super) fn why_silent(&self, error: RecvTimeoutError, late: String) -> String {
        let has_ended = |thread: &Thread| thread.handle.is_finished();
        if error == RecvTimeoutError::Disconnected || self.threads.iter().any(has_ended) {
            PANICKED.to_owned()
        } else {
            late
        }
    }
}

impl Parting {
    pub(super) fn take_in(&mut self, said: Said) -> Result<(), String> {
        match said {
            Said::Nothing => {}
            Said::RoundTrips(one) => add(&mut self.round_trips, one)?,
            Said::Connections {
                transactions,
                connects,
            } => {
                add(&mut self.round_trips, transactions)?;
                add(&mut self.first_packets, connects)?;
            }
            Said::Opened(one) => {
                add(&mut self.round_trips, one.latency)?;
                add(&mut self.first_packets, one.connects)?;
                self.due = Some(self.due.unwrap_or(0) + one.due);
                self.finished = Some(self.finished.unwrap_or(0) + one.finished);
            }
            Said::Due(one) => self.due = Some(self.due.unwrap_or(0) + one),
            Said::Journal(one) => match &mut self.journal {
                Some(sum) => sum.absorb(*one)?,
                none => *none = Some(one),
            },
        }
        Ok(())
    }
}

fn add(sum: &mut Option<Timings>, one: Timings) -> Result<(), String> {
    match sum {
        Some(sum) => return sum.add(&one),
        none => *none = Some(one),
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::net::{IpAddr, Ipv4Addr};
    use std::sync::mpsc::channel;
    use std::thread::JoinHandle;

    use hopyard_model::{Axes, LoadKind, Peer};

    use super::*;
    use crate::spec::LoadSpec;

    /// A server whose only flow waits for its client.
    fn session() -> Session {
        let kind = LoadKind::TcpStream;
        let axes = Axes::default().for_cell(kind, Peer::Local, &[]);
        let here = IpAddr::from(Ipv4Addr::LOCALHOST).into();
        let served = Session::serve(&LoadSpec::new(kind, &axes), &here, &[]);
        served.unwrap().0
    }

    fn panicked() -> Thread {
        let handle: JoinHandle<()> = std::thread::spawn(|| panic!("as the test wants it"));
        while !handle.is_finished() {
            std::thread::yield_now();
        }
        Thread {
            start: channel().0,
            tid: crate::receiver::SharedTid::default(),
            begins: true,
            handle,
        }
    }

    #[test]
    fn a_thread_that_panicked_is_not_called_late() {
        let mut session = session();
        let silence = |session: &Session| {
            let timeout = RecvTimeoutError::Timeout;
            session.why_silent(timeout, "late".to_owned())
        };
        assert_eq!(silence(&session), "late");
        session.threads.push(panicked());
        assert_eq!(silence(&session), PANICKED);
        assert_eq!(session.accept(Duration::ZERO).unwrap_err(), PANICKED);
    }

    #[test]
    fn where_nobody_is_left_to_speak_all_threads_panicked() {
        let mut session = session();
        (_, session.ended) = channel();
        let outcome = session.outcome("stop");
        assert_eq!(outcome.err().as_deref(), Some(PANICKED));
    }
}
