//! Bulk data one way.

use std::os::fd::AsFd;
use std::time::Duration;

use socket2::SockRef;

use super::ceiling::{slower, timed};
use super::{Loops, Run, Said, Work};
use crate::flow::{self, Context, Io, Message, Schedule, Socket, ZeroCopySocket};
use crate::protocol::Tallied;
use crate::spec::{LoadSpec, MOST_MESSAGE};

/// A TCP stream, or datagrams, a message for each call.
pub(super) struct Streams;

impl Loops for Streams {
    fn share_threads(&self) -> bool {
        true
    }

    fn prepare<'a>(&self, work: Work<'a>) -> Result<Run<'a>, String> {
        let size = work.spec.message_size;
        if work.sends() {
            transmit(&work, Message::plain(size))
        } else {
            let buffer = vec![0; receive_size(work.spec)];
            receive(&work, buffer, |socket| socket)
        }
    }

    fn ceiling(&self, spec: &LoadSpec, span: Duration) -> Result<Tallied, String> {
        let mut message = Message::plain(spec.message_size);
        let mut buffer = vec![0; receive_size(spec)];
        let sent = timed(span, |io, context| {
            flow::transmit(io, &mut message, context)
        })?;
        let got = timed(span, |io, context| flow::receive(io, &mut buffer, context))?;
        Ok(slower(sent, got))
    }
}

/// No message that keeps its bounds is longer than what is received at once.
const _: () = assert!(MOST_MESSAGE as usize <= flow::RECEIVE_BYTES);

pub(super) fn receive_size(spec: &LoadSpec) -> usize {
    if spec.kind.is_tcp() {
        flow::RECEIVE_BYTES
    } else {
        spec.message_size as usize
    }
}

/// Sends the message again and again: each flow at its pace if it has one, several in turns.
pub(super) fn transmit<'a>(work: &Work<'a>, message: Message) -> Result<Run<'a>, String> {
    let flows = ready(work)?;
    if work.spec.zero_copy {
        let flows = flows
            .into_iter()
            .map(|(socket, context)| Ok((ZeroCopySocket::new(socket, context.tally)?, context)));
        return transmit_by(work, flows.collect::<Result<_, String>>()?, message);
    }
    transmit_by(work, flows, message)
}

fn transmit_by<'a, I: Io + AsFd + 'a>(
    work: &Work<'a>,
    flows: Vec<(I, Context<'a>)>,
    mut message: Message,
) -> Result<Run<'a>, String> {
    let schedule = Schedule::new(work.spec, work.start_ns, 0);
    Ok(Box::new(move || {
        match (&*flows, schedule) {
            ([(socket, context)], Some(schedule)) => {
                flow::transmit_paced(socket, &mut message, *context, schedule)?;
            }
            ([(socket, context)], None) => flow::transmit(socket, &mut message, *context)?,
            (flows, _) => flow::transmit_in_turns(flows, &mut message)?,
        }
        Ok(Said::Nothing)
    }))
}

/// Takes what comes, of several flows in turns; `by` says how it is taken from a socket.
pub(super) fn receive<'a, I: Io + AsFd + 'a>(
    work: &Work<'a>,
    mut buffer: Vec<u8>,
    by: impl Fn(&'a Socket) -> I,
) -> Result<Run<'a>, String> {
    let flows = ready(work)?.into_iter();
    let flows: Vec<_> = flows
        .map(|(socket, context)| (by(socket), context))
        .collect();
    Ok(Box::new(move || {
        match &*flows {
            [(io, context)] => flow::receive(io, &mut buffer, *context)?,
            flows => flow::receive_in_turns(flows, &mut buffer)?,
        }
        Ok(Said::Nothing)
    }))
}

/// The sockets of the flows. Those of several do not block.
fn ready<'a>(work: &Work<'a>) -> Result<Vec<(&'a Socket, Context<'a>)>, String> {
    let flows = work.sockets()?;
    if flows.len() > 1 {
        for (socket, _) in &flows {
            SockRef::from(*socket)
                .set_nonblocking(true)
                .map_err(|e| format!("cannot make a socket non-blocking: {e}"))?;
        }
    }
    Ok(flows)
}
