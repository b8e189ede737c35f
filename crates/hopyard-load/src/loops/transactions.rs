//! One request and one response at a time over a standing connection or over datagrams.

use super::{Loops, NO_SOCKET, Origin, Run, Said, Work};
use crate::flow::{self, Responder, Times};

/// Transactions over TCP or UDP.
pub(super) struct Transactions;

impl Loops for Transactions {
    /// In turns, the time of a transaction would hold the work on those of others.
    fn share_threads(&self) -> bool {
        false
    }

    fn prepare<'a>(&self, work: Work<'a>) -> Result<Run<'a>, String> {
        let flow = work.flow()?;
        let (socket, context) = (flow.socket.ok_or(NO_SOCKET)?, flow.context);
        let mut responder = Responder::of(work.spec);
        if matches!(flow.origin, Origin::Server { .. }) {
            return Ok(Box::new(move || {
                flow::rr_server(socket, &mut responder, context).map(|()| Said::Nothing)
            }));
        }
        let mut times = Times::of(&work.timetable)?;
        Ok(Box::new(move || {
            flow::rr_client(socket, &mut responder, &mut times, context)?;
            Ok(Said::RoundTrips(times.timings))
        }))
    }
}
