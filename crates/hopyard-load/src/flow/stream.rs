//! Bulk transfer: one end sends without pause, the other counts.
//!
//! A lone flow waits in its socket call. The flows of one CPU take turns on one thread, and wait together
//! when none of them can go on. With a thread for each, the scheduler
//! lets one sender run for a whole time slice (some ms) while its receiver goes to sleep and is woken
//! for every few segments; in turns, the receiver finds the next flow's data whenever it looks.

use std::io;
use std::os::fd::AsFd;
use std::time::Duration;

use nix::errno::Errno;
use nix::libc;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

use hopyard_net::clock;

use super::{Context, Io, Message, RETRY_AFTER, Schedule, again, timed_out};
use hopyard_model::Counted;

/// Bytes taken per receive call of a TCP stream, as iperf3 and iperf do by default.
pub(crate) const RECEIVE_BYTES: usize = 128 * 1024;

/// Calls for one flow before it is the next one's turn. A sender's turn is one message: more, and it is a time
/// slice again (16 KiB messages, 4 flows: 28 Gbit/s with 1, 22 with 4, 20 with 10). A receiver takes what has
/// come, which leaves fewer turns with nothing to do (32 Gbit/s with 4 or 16, 28 with 1), with a bound so that
/// no flow starves.
const SENDS_IN_A_TURN: u32 = 1;
const RECEIVES_IN_A_TURN: u32 = 4;

/// What came of one socket call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Step {
    /// Bytes went through, or the call is to be made again.
    Went,
    /// It would have to wait (non-blocking sockets only).
    Waits,
    /// The flow is over, and so is the window.
    Over,
}

/// The sending end of a flow.
pub(crate) struct Sending<'a, I> {
    io: &'a I,
    context: Context<'a>,
    counted: Counted,
    /// Messages of a call.
    each: u64,
    /// Bytes of the present call that went already: a non-blocking socket takes what it has room for.
    gone: usize,
}

impl<'a, I: Io> Sending<'a, I> {
    /// So many messages are sent by each call.
    pub(crate) fn new(io: &'a I, context: Context<'a>, each: u32) -> Self {
        Self {
            io,
            context,
            counted: context.tally.read().sent,
            each: u64::from(each),
            gone: 0,
        }
    }

    /// Messages that went.
    pub(crate) fn messages(&self) -> u64 {
        self.counted.messages
    }

    /// Hands the rest of a message to the kernel.
    ///
    /// # Errors
    /// The socket failed before the window was over.
    #[inline]
    pub(crate) fn step(&mut self, message: &[u8]) -> Result<Step, String> {
        match self.io.send(&message[self.gone..]) {
            Ok(n) => {
                self.gone += n;
                self.counted.bytes += n as u64;
                if self.gone == message.len() {
                    self.gone = 0;
                    self.counted.messages += self.each;
                }
                self.context.tally.set_sent(self.counted);
                Ok(Step::Went)
            }
            Err(e) if again(&e) => Ok(Step::Went),
            Err(e) if timed_out(&e) => Ok(Step::Waits),
            Err(e) if no_buffers(&e) => {
                self.context.tally.send_error();
                Ok(Step::Went)
            }
            Err(e) => self.context.ended("send", &e).map(|()| Step::Over),
        }
    }
}

/// The receiving end of a flow.
pub(crate) struct Receiving<'a, I> {
    io: &'a I,
    context: Context<'a>,
    counted: Counted,
}

impl<'a, I: Io> Receiving<'a, I> {
    pub(crate) fn new(io: &'a I, context: Context<'a>) -> Self {
        Self {
            io,
            context,
            counted: context.tally.read().received,
        }
    }

    /// Takes what is there.
    ///
    /// # Errors
    /// The socket failed, or the other end closed, before the window was over.
    #[inline]
    pub(crate) fn step(&mut self, buffer: &mut [u8]) -> Result<Step, String> {
        match self.io.take(buffer) {
            Ok((0, _)) => self.context.closed().map(|()| Step::Over),
            Ok((n, messages)) => {
                self.counted.bytes += n as u64;
                self.counted.messages += messages;
                self.context.tally.set_received(self.counted);
                Ok(Step::Went)
            }
            Err(e) if again(&e) => Ok(Step::Went),
            Err(e) if timed_out(&e) => Ok(Step::Waits),
            Err(e) => self.context.ended("receive", &e).map(|()| Step::Over),
        }
    }
}

/// Sends messages until told to stop. A number is used again where the kernel refused the datagram: what was never sent
/// is not lost.
///
/// # Errors
/// The socket failed before the window was over.
pub(crate) fn transmit(
    io: &impl Io,
    message: &mut Message,
    context: Context<'_>,
) -> Result<(), String> {
    let mut flow = Sending::new(io, context, message.count());
    while !context.stopped() && flow.step(message.ready(flow.messages(), None))? != Step::Over {}
    Ok(())
}

/// Sends a message at each of a schedule's instants until told to stop. What could not go in its time
/// goes as soon as it can, so that the mean is kept. Gives back the schedule as far as it came.
///
/// # Errors
/// The socket failed before the window was over.
pub(crate) fn transmit_paced(
    io: &impl Io,
    message: &mut Message,
    context: Context<'_>,
    mut schedule: Schedule,
) -> Result<Schedule, String> {
    clock::sharp_timers().map_err(|e| format!("cannot make timers sharp: {e}"))?;
    let mut flow = Sending::new(io, context, message.count());
    while !context.stopped() {
        let due_ns = schedule.due_ns();
        // A sleep that is over before it begins still takes µs, which one that is behind does not have.
        if clock::monotonic_ns() < due_ns {
            let wakes_ns = schedule.wakes_ns();
            clock::sleep_until_monotonic_ns(wakes_ns).map_err(|e| format!("cannot sleep: {e}"))?;
        }
        let number = flow.messages();
        while flow.messages() == number && !context.stopped() {
            if flow.step(message.ready(number, Some(due_ns)))? == Step::Over {
                return Ok(schedule);
            }
        }
        schedule.advance(clock::monotonic_ns());
    }
    Ok(schedule)
}

/// Receives until the other end closes or traffic stops.
///
/// # Errors
/// The socket failed, or the other end closed, before the window was over.
pub(crate) fn receive(io: &impl Io, buffer: &mut [u8], context: Context<'_>) -> Result<(), String> {
    let mut flow = Receiving::new(io, context);
    while !context.stopped() && flow.step(buffer)? != Step::Over {}
    Ok(())
}

/// [`transmit`] for several flows of one thread; their sockets do not block.
///
/// # Errors
/// As [`transmit`], of the first flow that fails.
pub(crate) fn transmit_in_turns<I: Io + AsFd>(
    flows: &[(I, Context<'_>)],
    message: &mut Message,
) -> Result<(), String> {
    let each = message.count();
    let mut sending: Vec<_> = flows
        .iter()
        .map(|(io, context)| Sending::new(io, *context, each))
        .collect();
    let message = message.ready(0, None);
    take_turns(flows, PollFlags::POLLOUT, &mut sending, |flow| {
        turn(SENDS_IN_A_TURN, || flow.step(message))
    })
}

/// [`receive`] for several flows of one thread; their sockets do not block. One buffer serves them all
/// and so stays in the cache.
///
/// # Errors
/// As [`receive`], of the first flow that fails.
pub(crate) fn receive_in_turns<I: Io + AsFd>(
    flows: &[(I, Context<'_>)],
    buffer: &mut [u8],
) -> Result<(), String> {
    let mut receiving: Vec<_> = flows
        .iter()
        .map(|(io, context)| Receiving::new(io, *context))
        .collect();
    take_turns(flows, PollFlags::POLLIN, &mut receiving, |flow| {
        turn(RECEIVES_IN_A_TURN, || flow.step(buffer))
    })
}

/// Up to `calls` calls, fewer if the flow would have to wait; did any go?
#[inline]
fn turn(calls: u32, mut step: impl FnMut() -> Result<Step, String>) -> Result<Step, String> {
    for made in 0..calls {
        match step()? {
            Step::Went => {}
            Step::Waits if made > 0 => return Ok(Step::Went),
            other => return Ok(other),
        }
    }
    Ok(Step::Went)
}

/// A turn for each flow, round after round; after a round in which none went, waits until one can.
fn take_turns<I: Io + AsFd, F>(
    flows: &[(I, Context<'_>)],
    wanted: PollFlags,
    states: &mut [F],
    mut turn: impl FnMut(&mut F) -> Result<Step, String>,
) -> Result<(), String> {
    let mut watched: Vec<_> = flows
        .iter()
        .map(|(socket, _)| PollFd::new(socket.as_fd(), wanted))
        .collect();
    // All flows of a session stop together.
    while flows.iter().all(|(_, context)| !context.stopped()) {
        let mut went = false;
        for state in &mut *states {
            match turn(state)? {
                Step::Went => went = true,
                Step::Waits => {}
                Step::Over => return Ok(()),
            }
        }
        if !went {
            for (one, (io, _)) in watched.iter_mut().zip(flows) {
                // `poll` tells of notices in any case.
                let has_to_wait = io.awaits_notices();
                one.set_events(if has_to_wait {
                    PollFlags::empty()
                } else {
                    wanted
                });
            }
            let retries = flows.iter().any(|(io, _)| io.retries());
            wait(&mut watched, retries.then_some(RETRY_AFTER))?;
        }
    }
    Ok(())
}

/// Until a socket can go on or was shut down, or for so long at most.
fn wait(watched: &mut [PollFd<'_>], most: Option<Duration>) -> Result<(), String> {
    let most = most.and_then(|most| PollTimeout::try_from(most).ok());
    match poll(watched, most.unwrap_or(PollTimeout::NONE)) {
        Ok(_) | Err(Errno::EINTR) => Ok(()),
        Err(e) => Err(format!("cannot wait for a flow: {e}")),
    }
}

/// The kernel has no room for another datagram now: netperf counts these as failed sends and goes on.
pub(super) fn no_buffers(error: &io::Error) -> bool {
    error.raw_os_error() == Some(libc::ENOBUFS)
}

#[cfg(test)]
mod tests;
