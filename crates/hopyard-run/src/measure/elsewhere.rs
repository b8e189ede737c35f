//! Existing endpoints: where their flows may run, their clocks, and path proof by their own readings.

use hopyard_net::clock;

use super::ends::Ends;
use super::places::{places_by_core, split_apart};
use super::{Error, Places, places};
use crate::lab::{self, Lab, role};
use crate::load::endpoint::DeviceSpan;
use crate::load::protocol::{Tallied, Timetable};
use crate::load::remote::Remote;
use crate::meter::path_proof::Watched;
use crate::model::{ClocksCompared, DeviceCount, Placement};
use crate::signals;

/// Time between the order to start and the start, besides the transit time of messages: programs that forward them wait
/// for a CPU.
const LEAD_NS: u64 = 20_000_000;
/// A clock that moves by more than this part of the window during it changes the window's length.
const MOST_MOVED: u64 = 50;

/// What a timetable needs because of the ends' clocks and the pipes to them.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Distance {
    /// How much longer the order to start takes than by a local pipe, ns.
    lead_ns: u64,
    /// How far the ends' clocks may be apart though they were compared, ns.
    unsure_ns: u64,
}

impl Distance {
    pub(super) fn allow_for(self, timetable: Timetable) -> Timetable {
        timetable.later_by(self.lead_ns).wider_by(self.unsure_ns)
    }
}

/// Where the two ends run. `allowed` are the CPUs that this process may use.
pub(super) fn place(lab: &Lab, placement: Placement, allowed: &[usize]) -> lab::Result<Places> {
    let Some((client, server)) = lab.hosts() else {
        return places(placement, allowed);
    };
    if client.is_with(server) {
        let shared = client.cpus.iter().filter(|cpu| server.cpus.contains(cpu));
        let shared: Vec<usize> = shared.copied().collect();
        match placement {
            Placement::Same if shared.is_empty() => return Err(lab::Error::NoSharedCpu),
            Placement::Split if shared.len() < 2 => {
                return split_apart(&client.cpus, &server.cpus);
            }
            _ => {}
        }
        // The cores of another machine are not known here.
        return if is_other_machine(lab) {
            places_by_core(placement, &shared, |cpu| cpu)
        } else {
            places(placement, &shared)
        };
    }
    // The CPUs of two machines are different, even with equal numbers.
    Ok(match placement {
        Placement::Free => places(placement, allowed)?,
        Placement::Same | Placement::Split => Places {
            client: client.cpus.clone(),
            server: server.cpus.clone(),
        },
    })
}

/// Whether an endpoint is on another kernel than this process.
pub(super) fn is_other_machine(lab: &Lab) -> bool {
    let used = lab.endpoints_used();
    used.is_some_and(|used| !used.are_on_this_kernel())
}

impl Ends {
    fn attended(&mut self) -> impl Iterator<Item = &mut Remote> {
        let all = self.clients.iter_mut().chain([&mut self.server]);
        all.filter(|worker| worker.is_attended())
    }

    /// Compares the clocks of both ends with ours, right before a window. `is_one`: both ends read one clock.
    pub(super) fn compare_clocks(&mut self, is_one: bool) -> Result<Distance, Error> {
        let mut distance = Distance::default();
        for worker in self.attended() {
            if !worker.clock().is_ours {
                worker.compare_clocks()?;
            }
            let clock = worker.clock();
            let lead_ns = LEAD_NS + 2 * clock.round_trip_ns;
            distance.lead_ns = distance.lead_ns.max(lead_ns);
            if !is_one {
                distance.unsure_ns += clock.unsure_ns();
            }
        }
        if is_one {
            // The more precise reading counts for both.
            let clocks = self.attended().map(|worker| worker.clock());
            let closest = clocks.min_by_key(|clock| (!clock.is_ours, clock.round_trip_ns));
            for worker in self.attended() {
                worker.set_clock(closest.unwrap_or_default());
            }
        }
        Ok(distance)
    }

    /// Checks that the workers behind commands of the user still live.
    pub(super) fn look(&mut self) -> Result<(), Error> {
        for worker in self.attended() {
            worker.look()?;
        }
        Ok(())
    }

    /// Sleeps until an instant, and checks every 100 ms whether the user wants to stop, and whether all workers still
    /// live.
    pub(super) fn wait_until(&mut self, instant_ns: u64) -> Result<(), Error> {
        const LOOK_NS: u64 = 100_000_000;
        loop {
            if signals::interrupted() {
                return Err(Error::Interrupted);
            }
            self.look()?;
            let now = clock::monotonic_ns();
            if now >= instant_ns {
                return Ok(());
            }
            let next = instant_ns.min(now + LOOK_NS);
            clock::sleep_until_monotonic_ns(next).map_err(Error::Clock)?;
        }
    }

    /// Checks that the clocks of other machines kept to ours during the window. Returns the relation of the two clocks,
    /// if each end has one of its own.
    pub(super) fn check_clocks(
        &mut self,
        window_ns: u64,
        is_one: bool,
    ) -> Result<Option<ClocksCompared>, Error> {
        let mut known = Vec::new();
        for worker in self.attended() {
            let before = worker.clock();
            if before.is_ours {
                known.push((before, before));
                continue;
            }
            let after = worker.clock_offset()?;
            known.push((before, after));
            let moved = before.moved(after);
            if moved.as_nanos() > u128::from(window_ns / MOST_MOVED) {
                return Err(Error::Missed(format!(
                    "the clock of the {} moved against hopyard's by {:.1} ms or more while it lasted",
                    worker.endpoint(),
                    moved.as_secs_f64() * 1e3
                )));
            }
        }
        // The server is the last.
        let [(client, client_after), (server, server_after)] = known[..] else {
            return Ok(None);
        };
        let (before, after) = (server.beside(client), server_after.beside(client_after));
        Ok((!is_one).then(|| ClocksCompared::between(before, after)))
    }
}

/// The devices that the workers of both endpoints read, and how long they were watched.
pub(super) fn devices(
    lab: &Lab,
    client: &Tallied,
    server: &Tallied,
) -> Option<(Vec<DeviceCount>, Option<Watched>)> {
    let (client_host, server_host) = lab.hosts()?;
    let mut spans: Vec<(&str, &DeviceSpan)> = Vec::new();
    let ends = [lab.topology.client.role, lab.topology.server.role];
    // Devices of namespaces that hopyard made are read by itself.
    if ends[0] == role::CLIENT {
        spans.extend(client.device.as_ref().map(|span| (ends[0], span)));
    }
    let is_same_device = client_host.is_with(server_host)
        && client_host.net_ns == server_host.net_ns
        && client.device.as_ref().map(|span| &span.name)
            == server.device.as_ref().map(|span| &span.name);
    if !is_same_device {
        spans.extend(server.device.as_ref().map(|span| (ends[1], span)));
    }
    let watched = spans.iter().map(|(_, span)| Watched::from(span.span_ns));
    let watched = watched.reduce(Watched::and);
    let counts = spans.into_iter().map(|(role, span)| span.count(role));
    Some((counts.collect(), watched))
}
