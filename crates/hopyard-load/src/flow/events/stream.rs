//! The two ends of bulk data.

use hopyard_net::clock;

use super::Part;
use crate::flow::{Context, Schedule};
use hopyard_model::Counted;

/// Sends without pause, or at a schedule's instants.
pub(crate) struct Sender<'a> {
    context: Context<'a>,
    counted: Counted,
    schedule: Option<Schedule>,
}

impl<'a> Sender<'a> {
    pub(crate) fn new(context: Context<'a>, schedule: Option<Schedule>) -> Self {
        Self {
            context,
            counted: context.tally.read().sent,
            schedule,
        }
    }
}

impl Part for Sender<'_> {
    const IS_SHARP: bool = true;

    #[inline]
    fn begin(&mut self, _: &mut [u8]) -> bool {
        if self.context.stopped() {
            return false;
        }
        if let Some(schedule) = &mut self.schedule {
            let now_ns = clock::monotonic_ns();
            if schedule.due_ns() > now_ns {
                return false;
            }
            schedule.advance(now_ns);
        }
        true
    }

    #[inline]
    fn sent(&mut self, bytes: usize, is_whole: bool) {
        self.counted.bytes += bytes as u64;
        self.counted.messages += u64::from(is_whole);
        self.context.tally.set_sent(self.counted);
    }

    fn came(&mut self, _: &[u8]) {}

    fn expects(&self) -> bool {
        false
    }

    fn streams(&self) -> bool {
        self.schedule.is_none()
    }

    fn wakes_ns(&self) -> Option<u64> {
        self.schedule.as_ref().map(Schedule::due_ns)
    }

    fn is_over(&self) -> bool {
        self.context.stopped()
    }
}

/// Takes what comes.
pub(crate) struct Receiver<'a> {
    context: Context<'a>,
    counted: Counted,
}

impl<'a> Receiver<'a> {
    pub(crate) fn new(context: Context<'a>) -> Self {
        Self {
            context,
            counted: context.tally.read().received,
        }
    }
}

impl Part for Receiver<'_> {
    fn begin(&mut self, _: &mut [u8]) -> bool {
        false
    }

    fn sent(&mut self, _: usize, _: bool) {}

    #[inline]
    fn came(&mut self, bytes: &[u8]) {
        self.counted.bytes += bytes.len() as u64;
        self.counted.messages += 1;
        self.context.tally.set_received(self.counted);
    }

    fn expects(&self) -> bool {
        true
    }

    fn is_over(&self) -> bool {
        self.context.stopped()
    }
}
