//! Turns: several windows over the same connections, with pauses between them.
//!
//! Only the threads that begin traffic pause. The others wait in a socket call meanwhile, as they do between two messages.

use std::sync::atomic::Ordering::Relaxed;
use std::sync::mpsc::TryRecvError;

use hopyard_net::{clock, cpu};

use super::parting::Parting;
use super::{Edge, Session, Tallied, Timetable};
use crate::summary::{DIGITS, FINE_DIGITS, summarise_any};
use crate::tally::Reading;

impl Session {
    /// Makes traffic by the timetable and gives back what this end counted in the window; the connections stay.
    ///
    /// TCP's own account, flows and scheduling are not read for a turn, which is too short for it: [`Session::finish`]
    /// has them of all turns.
    ///
    /// # Errors
    /// A flow failed.
    pub(crate) fn turn(
        &mut self,
        timetable: Timetable,
        mut wait_until: impl FnMut(u64) -> Result<(), String>,
    ) -> Result<Tallied, String> {
        self.begin_turn(timetable)?;
        let window = self.watch_window(timetable, &mut wait_until, |_| Ok(()))?;
        // Flows that fill the CPUs would otherwise go on until this thread has one.
        let prompt = cpu::RealtimeGuard::new();
        wait_until(timetable.stop_ns)?;
        let parting = self.pause()?;
        drop(prompt);
        Ok(Tallied {
            latency: summarise_any(parting.round_trips.as_ref(), FINE_DIGITS)?,
            first_packet: summarise_any(parting.first_packets.as_ref(), FINE_DIGITS)?,
            ..window
        })
    }

    fn begin_turn(&mut self, timetable: Timetable) -> Result<(), String> {
        let is_first = self.first_turn.is_none();
        if is_first {
            let edge = self.edge()?;
            let counted = Reading::total(self.tallies());
            self.first_turn = Some((timetable.start_ns, counted, edge));
        }
        for thread in &self.threads {
            // A thread that is gone has said why; `pause` reads it.
            if thread.begins {
                let _ = thread.start.send(timetable);
            } else if is_first {
                // It goes on through all turns, and no error of its connection is expected in any of them.
                let _ = thread.start.send(Timetable {
                    close_ns: u64::MAX,
                    ..timetable
                });
            }
        }
        Ok(())
    }

    /// Ends the traffic that this end begins, and hears what its threads have to say of the turn.
    fn pause(&mut self) -> Result<Parting, String> {
        self.pause.store(true, Relaxed);
        let mut parting = Parting::default();
        for _ in self.threads.iter().filter(|thread| thread.begins) {
            parting.take_in(self.outcome("pause")?)?;
        }
        self.pause.store(false, Relaxed);
        match self.ended.try_recv() {
            Err(TryRecvError::Empty) => Ok(parting),
            Err(TryRecvError::Disconnected) => Err("the threads of the flows ended".to_owned()),
            Ok(Err(why)) => Err(why),
            Ok(Ok(_)) => Err("a flow ended before its turns were over".to_owned()),
        }
    }

    /// Ends the connections and gives back what this end counted since the first turn began, warm-ups included.
    ///
    /// # Errors
    /// There was no turn, or a connection cannot be read.
    pub(crate) fn finish(mut self) -> Result<Tallied, String> {
        let (began_ns, counted, opened) = self
            .first_turn
            .take()
            .ok_or("finish: there was no turn before")?;
        let edges: [Edge; 2] = [opened, self.edge()?];
        let counted = Reading::total(self.tallies()).since(counted);
        let span_ns = clock::monotonic_ns().saturating_sub(began_ns);
        let counted = Tallied {
            first_packet: summarise_any(self.first_packets.as_ref(), DIGITS)?,
            ..self.counted(span_ns, counted)
        };
        Ok(self.edges_counted(counted, &edges))
    }
}
