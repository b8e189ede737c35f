//! Numbered datagrams: many flows to one receiver, which enters each datagram into a journal.

use std::time::Duration;

use hopyard_net::datagrams::Batch;

use super::ceiling::timed;
use super::{Loops, NO_SOCKET, Origin, Run, Said, Work};
use crate::flow::{self, Message, Replaying, Schedule};
use crate::journal::Journal;
use crate::numbered::HEADER_BYTES;
use crate::protocol::Tallied;
use crate::spec::LoadSpec;

/// As fast as the senders can, or at given instants.
pub(super) struct Numbered;

impl Loops for Numbered {
    fn check(&self, spec: &LoadSpec) -> Result<(), String> {
        if (spec.message_size as usize) < HEADER_BYTES {
            return Err(format!(
                "message_size {} is too small for {}: its datagrams carry their number and times, {HEADER_BYTES} bytes; \
                 choose {HEADER_BYTES} or more, or load udp_stream",
                spec.message_size, spec.kind
            ));
        }
        if spec.kind.replays() {
            return match &spec.replay {
                Some(_) => Ok(()),
                None => Err(format!("{} with no trace", spec.kind)),
            };
        }
        if spec.kind.is_open_loop() && spec.pace_bps.is_none() {
            return Err(format!(
                "{} with no pace: give one, such as pace=100mbit, or choose load udp_flood",
                spec.kind
            ));
        }
        Ok(())
    }

    /// Which of many senders runs is the scheduler's to say.
    fn share_threads(&self) -> bool {
        false
    }

    fn prepare<'a>(&self, work: Work<'a>) -> Result<Run<'a>, String> {
        let Work {
            spec,
            timetable,
            start_ns,
            ..
        } = work;
        let flow = work.flow()?;
        let (socket, context) = (flow.socket.ok_or(NO_SOCKET)?, flow.context);
        match *flow.origin {
            Origin::Gatherer { flows, .. } => {
                let mut batch = Batch::new(flow::BATCH, spec.message_size as usize);
                let mut journal = Journal::new(flows, timetable)?;
                Ok(Box::new(move || {
                    flow::gather(socket, &mut batch, &mut journal, context)?;
                    Ok(Said::Journal(Box::new(journal)))
                }))
            }
            Origin::Client {
                number: Some(number),
                place,
                ..
            } => {
                let mut message =
                    Message::numbered(spec.message_size, number, spec.service_time_ns);
                if let Some(replaying) = Replaying::new(spec, timetable.open_ns, start_ns, place) {
                    return Ok(Box::new(move || {
                        let due = replaying.clone();
                        flow::transmit_replayed(socket, &mut message, context, replaying)?;
                        Ok(Said::Due(
                            due.due_between(timetable.open_ns, timetable.close_ns),
                        ))
                    }));
                }
                let schedule = Schedule::new(spec, start_ns, place);
                Ok(Box::new(move || {
                    let Some(schedule) = schedule else {
                        flow::transmit(socket, &mut message, context)?;
                        return Ok(Said::Nothing);
                    };
                    let schedule = schedule.counting(timetable.open_ns, timetable.close_ns);
                    let left = flow::transmit_paced(socket, &mut message, context, schedule)?;
                    Ok(if spec.kind.is_open_loop() {
                        Said::Due(left.due())
                    } else {
                        Said::Nothing
                    })
                }))
            }
            Origin::Client { number: None, .. } => {
                Err(format!("{}: the server gave a flow no number", spec.kind))
            }
            Origin::Connector { .. } | Origin::Server { .. } => {
                Err(format!("{}: a flow that is of another load", spec.kind))
            }
        }
    }

    /// Its receiver takes many datagrams per call, so that it is never the slower end.
    fn ceiling(&self, spec: &LoadSpec, span: Duration) -> Result<Tallied, String> {
        let mut message = Message::numbered(spec.message_size, 0, 0);
        timed(span, |io, context| {
            flow::transmit(io, &mut message, context)
        })
    }
}
