//! Connections that are opened when they are due.

use super::{Loops, Origin, Run, Said, Work};
use crate::flow::{ConnsClient, ConnsServer, Responder, Schedule};
use crate::spec::LoadSpec;

/// Connect, request, response, close, at given instants.
pub(super) struct OpenConnections;

impl Loops for OpenConnections {
    fn check(&self, spec: &LoadSpec) -> Result<(), String> {
        match spec.connections_per_s {
            Some(1..) => Ok(()),
            Some(0) | None => Err(format!(
                "{} with no connection_rate: give one, such as 1000",
                spec.kind
            )),
        }
    }

    /// The instants of several flows would be in each other's way.
    fn share_threads(&self) -> bool {
        false
    }

    fn prepare<'a>(&self, work: Work<'a>) -> Result<Run<'a>, String> {
        let Work {
            spec,
            settings,
            timetable,
            start_ns,
            ..
        } = work;
        let flow = work.flow()?;
        let (origin, context) = (flow.origin, flow.context);
        match origin {
            Origin::Connector { server, place } => {
                let sizes = [spec.request_size, spec.response_size];
                let client = ConnsClient::new(server, settings, sizes, timetable)?;
                let schedule = Schedule::new(spec, start_ns, *place)
                    .ok_or_else(|| format!("{}: no connection_rate", spec.kind))?;
                Ok(Box::new(move || {
                    let opened = client.run(schedule, context)?;
                    Ok(Said::Opened(Box::new(opened)))
                }))
            }
            Origin::Server { listener } => {
                let server = ConnsServer::new(listener, Responder::of(spec))?;
                Ok(Box::new(move || {
                    server.run(context).map(|()| Said::Nothing)
                }))
            }
            Origin::Client { .. } | Origin::Gatherer { .. } => {
                Err(format!("{}: a flow that is of another load", spec.kind))
            }
        }
    }
}

#[cfg(test)]
mod tests;
