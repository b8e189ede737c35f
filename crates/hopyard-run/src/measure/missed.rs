//! Whether the machine missed a window: somebody else had the CPUs, which says nothing about the path.

use super::Error;
use super::counts::Counts;
use crate::load::protocol::{CpuSpan, Tallied};
use crate::units::float;

/// Checks that every counter was read when the window opened and closed. If a machine keeps a CPU away for half a
/// window, counts cover another span, or traffic that had stopped.
pub(super) fn check(counts: &Counts, is_crowded: bool) -> Result<(), Error> {
    let (planned_ns, observed) = (counts.planned_ns, &counts.observed);
    ends_were_there(&counts.clients, &counts.server, is_crowded, planned_ns)?;
    in_time("the controller", observed.late_ns, planned_ns)?;
    // Read after everything else.
    let by_worker = |end: &Tallied| match end.cpu {
        Some(CpuSpan::Used(used)) => Some(used.elapsed_ns),
        Some(CpuSpan::Unknown(_)) | None => None,
    };
    let read_ns = [&counts.client, &counts.server].map(by_worker);
    for read_ns in read_ns
        .into_iter()
        .flatten()
        .chain([observed.cpu.elapsed_ns])
    {
        if !(0.5..=2.0).contains(&(read_ns / float(planned_ns))) {
            return Err(Error::Missed(format!(
                "CPU time was read over {:.1} of {:.1} ms",
                read_ns / 1e6,
                float(planned_ns) / 1e6
            )));
        }
    }
    Ok(())
}

/// The same check, endpoints only. If there are more senders than CPUs, some are always late: then their mean counts.
pub(super) fn ends_were_there(
    clients: &[Tallied],
    server: &Tallied,
    is_crowded: bool,
    planned_ns: u64,
) -> Result<(), Error> {
    let late = clients.iter().map(|client| client.late_ns);
    let late_ns = if is_crowded {
        late.sum::<u64>() / clients.len().max(1) as u64
    } else {
        late.max().unwrap_or(0)
    };
    in_time("the client", late_ns, planned_ns)?;
    in_time("the server", server.late_ns, planned_ns)
}

fn in_time(who: &str, late_ns: u64, planned_ns: u64) -> Result<(), Error> {
    if late_ns <= planned_ns / 2 {
        return Ok(());
    }
    Err(Error::Missed(format!(
        "{who} had no CPU when it opened or closed, and looked {:.1} ms late at {:.1} ms",
        float(late_ns) / 1e6,
        float(planned_ns) / 1e6
    )))
}
