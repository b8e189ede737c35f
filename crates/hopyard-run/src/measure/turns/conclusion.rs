//! The result of a generation: a measurement of each cell from its turns.

use super::round::Taken;
use super::standing::Standing;
use crate::lab;
use crate::load::latency;
use crate::load::protocol::Tallied;
use crate::measure::aux_counters::{AuxCounters, Passed};
use crate::measure::counts::{Counts, Observed, assemble, read_devices};
use crate::measure::machines::Machines;
use crate::measure::used_cpus::UsedCpus;
use crate::measure::{Error, QuietCores, merge};
use crate::meter::devices;
use crate::model::{
    Arrived, BusyCpus, Counted, CpuUse, Latency, LoadKind, Measurement, TcpSummary, Turn, kept,
    scaled,
};
use crate::units::float;

impl Standing<'_> {
    /// Combines the turns, and proves the path by all traffic of the generation.
    pub(super) fn conclude(self, quiet: QuietCores) -> Result<Measurement, Error> {
        let Standing {
            cell,
            lab,
            mut ends,
            devices: before,
            beside,
            traffic_ns,
            backlog_drops,
            taken,
            ..
        } = self;
        let after = read_devices(&lab)?;
        // Between its turns, other labs had theirs.
        let passed = Passed {
            span_ns: traffic_ns,
            backlog_drops,
            ..AuxCounters::read(&lab, &[])?.since(&beside)
        };
        let connections = lab.connections()?;
        let unix_connections = lab.unix_connections()?;
        let finished = ends.finish().map_err(|error| ends.cause_of(error));
        if let Some(death) = lab.death() {
            return Err(lab::Error::from(death).into());
        }
        let (clients, server) = finished?;
        let mut client = merge::merged(&clients).map_err(Error::Merge)?;
        // Both ends counted everything that passed the devices.
        let span_ns = client.window_ns;
        let whole = |end: Tallied| Tallied {
            window_ns: span_ns,
            ..end
        };
        client = whole(client);
        let turns: Vec<Turn> = taken.iter().map(|taken| taken.turn.clone()).collect();
        let taken = kept(taken, |taken| taken.turn.is_quiet());
        let cpu = taken
            .iter()
            .map(|taken| taken.turn.cpu)
            .reduce(CpuUse::plus);
        let cpu = cpu.ok_or_else(|| Error::Missed("none of its turns was measured".to_owned()))?;
        let mean = |of: fn(&UsedCpus<Option<BusyCpus>>) -> Option<BusyCpus>| {
            BusyCpus::mean(taken.iter().filter_map(|taken| of(&taken.busy)))
        };
        let counts = Counts {
            observed: Observed {
                cpu,
                devices: devices::since(&after, &before),
                watched: span_ns.into(),
                late_ns: 0,
                beside: passed,
                busy: UsedCpus {
                    client: mean(|busy| busy.client),
                    server: mean(|busy| busy.server),
                    allowed: mean(|busy| busy.allowed),
                },
                connections,
                unix_connections,
            },
            client,
            clients: clients.into_iter().map(whole).collect(),
            server: whole(server),
            machines: Machines::Here,
            clocks: None,
            planned_ns: span_ns,
        };
        let whole = assemble(cell, &lab, counts, quiet)?;
        put_together(cell.load, (whole, traffic_ns), &taken, turns)
    }
}

/// A measurement of the kept turns, based on that of all traffic, with the time that this took.
fn put_together(
    load: LoadKind,
    (whole, traffic_ns): (Measurement, u64),
    taken: &[Taken],
    turns: Vec<Turn>,
) -> Result<Measurement, Error> {
    let sum = |of: fn(&Turn) -> Counted| {
        let all = taken.iter().map(|taken| of(&taken.turn));
        all.fold(Default::default(), Counted::plus)
    };
    let received = sum(|turn| turn.received);
    let units = |counted: Counted| {
        float(if load.is_stream() {
            counted.bytes
        } else {
            counted.transactions
        })
    };
    let share = units(received) / units(whole.received).max(1.0);
    let together = |of: fn(&Taken) -> Option<&Latency>| {
        let times: Vec<&Latency> = taken.iter().filter_map(of).collect();
        latency::together(&times).map_err(Error::Merge)
    };
    Ok(Measurement {
        window_ns: taken.iter().map(|taken| taken.turn.window_ns).sum(),
        received,
        sent: sum(|turn| turn.sent),
        slices: taken
            .iter()
            .map(|taken| {
                let Turn { received, .. } = taken.turn;
                if load.is_stream() {
                    received.bytes
                } else {
                    received.transactions
                }
            })
            .collect(),
        latency: together(|taken| taken.latency.as_ref())?,
        // First packets of fresh sockets belong to the whole generation; those of connections belong to its turns.
        first_packet: together(|taken| taken.first_packet.as_ref())?.or(whole.first_packet.clone()),
        // Rare, so a share of it would be rounded to none or to one.
        answered: load
            .may_lose_requests()
            .then_some(whole.received.transactions),
        send_errors: scaled(whole.send_errors, share),
        client_scheduling: whole.client_scheduling.times(share),
        // Other labs had their turns between its own.
        tcp: whole.tcp.map(|tcp| TcpSummary {
            span_ns: traffic_ns,
            ..tcp
        }),
        arrived: whole.arrived.map(|arrived| Arrived {
            bytes: scaled(arrived.bytes, share),
            skbs: scaled(arrived.skbs, share),
        }),
        turns,
        ..whole
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::assess::quantity;
    use crate::assess::testing::measured;
    use crate::model::CpuTolerance;

    fn transactions(transactions: u64) -> Counted {
        Counted {
            transactions,
            ..Counted::default()
        }
    }

    #[test]
    fn a_lost_request_is_one_of_all_of_the_generation() {
        let whole = Measurement {
            received: transactions(999),
            timeouts: 1,
            ..measured(1)
        };
        let taken = turn_of(&whole);
        let turns = vec![taken.turn.clone()];
        let load = LoadKind::UdpRr;
        let together = put_together(load, (whole, 30_000_000), &[taken], turns).unwrap();
        assert_eq!(
            (together.timeouts, together.received.transactions),
            (1, 300)
        );
        let lost = quantity("lost_ratio").unwrap();
        let lost = lost.value(&together, load, CpuTolerance(0.02)).unwrap();
        assert!((lost - 0.001).abs() < 1e-9, "{lost}");
    }

    #[test]
    fn what_tcp_sent_again_is_of_the_time_of_its_own_traffic() {
        let whole = Measurement {
            received: transactions(999),
            window_ns: 400_000_000,
            tcp: Some(TcpSummary {
                retransmits: 6,
                ..TcpSummary::default()
            }),
            ..measured(1)
        };
        let taken = turn_of(&whole);
        let turns = vec![taken.turn.clone()];
        let load = LoadKind::TcpRr;
        let together = put_together(load, (whole, 30_000_000), &[taken], turns).unwrap();
        let again = quantity("retransmits_per_s").unwrap();
        let again = again.value(&together, load, CpuTolerance(0.02)).unwrap();
        assert!((again - 200.0).abs() < 1e-9, "{again}");
    }

    fn turn_of(whole: &Measurement) -> Taken {
        Taken {
            turn: Turn {
                round: 0,
                window_ns: 10_000_000,
                received: transactions(300),
                sent: Counted::default(),
                cpu: whole.cpu,
                disturbance: None,
            },
            latency: None,
            first_packet: None,
            busy: UsedCpus::default(),
        }
    }
}
