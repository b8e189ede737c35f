//! A connection for each transaction.

use super::{Loops, Origin, Run, Said, Work};
use crate::flow::{self, Responder, Times};

/// Connect, request, response, close.
pub(super) struct Connections;

impl Loops for Connections {
    /// In turns, the time of a transaction would hold the work on those of others.
    fn share_threads(&self) -> bool {
        false
    }

    fn prepare<'a>(&self, work: Work<'a>) -> Result<Run<'a>, String> {
        let Work {
            spec,
            settings,
            timetable,
            ..
        } = work;
        let flow = work.flow()?;
        let (origin, context) = (flow.origin, flow.context);
        let mut responder = Responder::of(spec);
        match origin {
            Origin::Connector { server, .. } => {
                let times = || Times::new(timetable.open_ns, timetable.close_ns);
                let (mut times, mut connects) = (times()?, times()?);
                Ok(Box::new(move || {
                    let both = (&mut times, &mut connects);
                    flow::crr_client(server, settings, &mut responder, both, context)?;
                    Ok(Said::Connections {
                        transactions: times.timings,
                        connects: connects.timings,
                    })
                }))
            }
            Origin::Server { listener } => Ok(Box::new(move || {
                flow::crr_server(listener, &mut responder, context).map(|()| Said::Nothing)
            })),
            Origin::Client { .. } | Origin::Gatherer { .. } => {
                Err(format!("{}: a flow that is of another load", spec.kind))
            }
        }
    }
}
