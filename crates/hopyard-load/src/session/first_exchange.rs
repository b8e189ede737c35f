//! The first exchange of a flow: a fresh socket sends a datagram, and the server's thread answers it.
//!
//! Before the traffic, while the server still takes datagrams from anybody: every path that keeps something of each flow (a
//! connection of the packet filter, a flow of Open vSwitch) makes that for these datagrams.

use std::time::{Duration, Instant};

use hopyard_net::cpu;

use crate::socket::Settings;
use crate::sockets::Target;
use crate::summary::Timings;

/// Fresh sockets for each flow: enough for a median, ...
const EACH: usize = 32;
/// ... and of all flows, as far as each has one.
const MOST: usize = 64;

/// For so long, whatever the round trip takes: the controller waits for the flows meanwhile.
const LONGEST: Duration = Duration::from_secs(1);

/// So many without an answer, and the path is tried no further: whether it carries anything is for the flows to find out.
const LOST: usize = 2;

/// Times the first exchange of fresh sockets with the server of each flow, from the CPUs on which the flows are going to be.
///
/// # Errors
/// A sentence: no socket can be made, or a CPU is none of ours.
pub(super) fn of_flows(
    settings: &Settings,
    servers: &[Target],
    cpus: &[usize],
) -> Result<Timings, String> {
    let each = (MOST / servers.len().max(1)).clamp(1, EACH);
    let mut times = Timings::new()?;
    let mut lost = 0;
    let began = Instant::now();
    let timed = || -> Result<(), String> {
        for (index, server) in servers.iter().enumerate() {
            if !cpus.is_empty() {
                let cpu = cpus[index % cpus.len()];
                cpu::pin_current_thread(&[cpu])
                    .map_err(|e| format!("cannot run on CPU {cpu}: {e}"))?;
            }
            for _ in 0..each {
                let took = settings
                    .first_exchange(server)
                    .map_err(|e| format!("cannot time a first exchange with {server}: {e}"))?;
                match took {
                    Some(took_ns) => times.record(took_ns),
                    None => lost += 1,
                }
                if lost == LOST || began.elapsed() > LONGEST {
                    return Ok(());
                }
            }
        }
        Ok(())
    };
    // A thread of its own: where this one runs is not changed.
    std::thread::scope(|scope| scope.spawn(timed).join())
        .map_err(|_| "a thread panicked; its message is on stderr".to_owned())??;
    Ok(times)
}

#[cfg(test)]
mod tests {
    use std::net::{IpAddr, Ipv4Addr};

    use hopyard_model::{Api, Axes, LoadKind, Peer};

    use super::*;
    use crate::session::Session;
    use crate::spec::LoadSpec;

    /// The server's thread takes datagrams at the sockets of all its flows.
    #[test]
    fn every_flow_of_a_shared_thread_has_its_first_exchanges() {
        let kind = LoadKind::UdpRr;
        let axes = Axes::default().for_cell(kind, Peer::Local, &[]);
        let spec = LoadSpec {
            flows: 2,
            api: Api::Epoll,
            ..LoadSpec::new(kind, &axes)
        };
        let here = IpAddr::from(Ipv4Addr::LOCALHOST).into();
        let cpus = &cpu::current_affinity().unwrap()[..1];
        let (server, ports) = Session::serve(&spec, &here, cpus).unwrap();
        assert_eq!(server.threads.len(), 1);
        let patience = Duration::from_secs(5);
        let client = Session::connect(&spec, &here, &ports, cpus, patience).unwrap();
        let times = client.first_packets.as_ref().unwrap();
        // As far as the machine is fast enough; of the first flow alone it would be half of them.
        let count = times.histogram().len() as usize;
        assert!(count > EACH, "{count}");
    }
}
