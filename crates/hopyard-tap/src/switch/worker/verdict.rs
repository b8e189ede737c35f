//! Where a frame goes, and whether it may.

use super::{BUFFER, HEADER, Work};
use crate::switch::counters::{Event, Reason};
use crate::switch::flows::Seen;
use crate::switch::frame::{Mac, addresses};
use crate::switch::table::{Found, Learnt};

/// The decision about a frame that was read.
pub(super) enum Verdict {
    /// It goes to this port.
    Send(usize),
    /// It goes to every other port: its address is a group's, or unknown.
    Flood,
    /// It is not forwarded.
    Drop(Reason),
}

impl Work {
    pub(super) fn verdict(&self, from: usize, buffer: u16, length: usize) -> Verdict {
        self.judge(from, buffer, length)
            .unwrap_or_else(Verdict::Drop)
    }

    fn judge(&self, from: usize, buffer: u16, length: usize) -> Result<Verdict, Reason> {
        if length == BUFFER {
            return Err(Reason::Giant);
        }
        let frame = self.ring.frame(buffer, length).get(HEADER.bytes()..);
        let frame = frame.ok_or(Reason::Runt)?;
        let (to, source) = addresses(frame).ok_or(Reason::Runt)?;
        if !source.is_station() {
            return Err(Reason::BadSource);
        }
        let shared = &self.worker.shared;
        let now_s = shared.now_s();
        match shared.table.learn(source, from, now_s) {
            Learnt::Known => {}
            learnt => self.note(learnt, from)?,
        }
        match shared.flows.seen(frame, self.worker.number) {
            Seen::Alike => {}
            Seen::New(flow) => shared.pin(flow),
            Seen::Changed(flow) => {
                self.count(from, Event::QueueChanged, 1);
                shared.pin(flow);
            }
        }
        if to.is_group() {
            return group(to);
        }
        match shared.table.find(to, from, now_s) {
            Found::At(port) => Ok(Verdict::Send(port)),
            Found::Nowhere => Ok(Verdict::Flood),
            Found::Barred(port) if port == from => Err(Reason::SamePort),
            Found::Barred(_) => Err(Reason::Isolated),
        }
    }

    /// Counts what the table learnt; an error if the port may not send from the address.
    #[cold]
    fn note(&self, learnt: Learnt, from: usize) -> Result<(), Reason> {
        let event = match learnt {
            Learnt::Known => return Ok(()),
            Learnt::New => Event::Learnt,
            Learnt::Moved => Event::Moved,
            Learnt::Full => Event::TableFull,
            Learnt::Refused => return Err(Reason::Mac),
            Learnt::OverQuota => return Err(Reason::Quota),
        };
        self.count(from, event, 1);
        Ok(())
    }
}

fn group(to: Mac) -> Result<Verdict, Reason> {
    if to.is_reserved() {
        return Err(Reason::Reserved);
    }
    Ok(Verdict::Flood)
}
