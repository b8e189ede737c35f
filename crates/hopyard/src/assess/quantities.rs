//! What is estimated: every quantity by its name in JSON, with how it comes out of a sample.

use crate::model::{LoadKind, Measurement, UnknownName};
use crate::stats::{self, Estimate, Samples};

/// One quantity.
pub struct Quantity {
    /// Name in JSON, with its unit.
    pub name: &'static str,
    /// How it comes out of a sample.
    kind: Kind,
    /// Which loads have it.
    loads: fn(LoadKind) -> bool,
    /// Is it compared with the base path?
    pub compared: bool,
    /// Does its width decide whether to go on measuring?
    pub decides_width: bool,
}

enum Kind {
    /// A value per sample; the estimate is their mean.
    Value(fn(&Measurement, LoadKind) -> Option<f64>),
    /// Cost and units per sample; the estimate is the ratio of their sums (docs/method.md, "Derived").
    Demand(fn(&Measurement) -> f64, fn(&Measurement, LoadKind) -> f64),
}

/// Every quantity.
pub static QUANTITIES: &[Quantity] = &[
    Quantity {
        name: "goodput_bps",
        kind: Kind::Value(|m, _| Some(float(m.received.bytes) * 8.0 / window_s(m))),
        loads: LoadKind::is_stream,
        compared: true,
        decides_width: true,
    },
    Quantity {
        name: "sent_bps",
        kind: Kind::Value(|m, _| Some(float(m.sent.bytes) * 8.0 / window_s(m))),
        loads: |load| load == LoadKind::UdpStream,
        compared: false,
        decides_width: false,
    },
    Quantity {
        name: "packets_per_s",
        kind: Kind::Value(|m, _| Some(float(m.received.messages) / window_s(m))),
        loads: |load| load == LoadKind::UdpStream,
        compared: true,
        decides_width: false,
    },
    Quantity {
        name: "transactions_per_s",
        kind: Kind::Value(|m, _| Some(float(m.received.transactions) / window_s(m))),
        loads: |load| !load.is_stream(),
        compared: true,
        decides_width: true,
    },
    Quantity {
        name: "cpu_ns_per_byte",
        kind: Kind::Demand(net_ns, |m, _| float(m.received.bytes)),
        loads: LoadKind::is_stream,
        compared: true,
        decides_width: true,
    },
    Quantity {
        name: "efficiency_bps_per_core",
        kind: Kind::Demand(|m| float(m.received.bytes) * 8.0, |m, _| net_ns(m) / 1e9),
        loads: LoadKind::is_stream,
        compared: false,
        decides_width: false,
    },
    Quantity {
        name: "normalized_bps_per_cpu_percent",
        kind: Kind::Demand(
            |m| float(m.received.bytes) * 8.0,
            |m, _| net_ns(m) / 1e9 / f64::from(m.cpu.cpus) * 100.0,
        ),
        loads: LoadKind::is_stream,
        compared: false,
        decides_width: false,
    },
    Quantity {
        name: "skbs_per_s",
        kind: Kind::Value(|m, _| Some(float(m.arrived?.skbs) / window_s(m))),
        loads: LoadKind::is_stream,
        compared: false,
        decides_width: false,
    },
    Quantity {
        name: "cpu_ns_per_packet",
        kind: Kind::Demand(net_ns, |m, _| float(m.received.messages)),
        loads: |load| load == LoadKind::UdpStream,
        compared: true,
        decides_width: false,
    },
    Quantity {
        name: "cpu_ns_per_transaction",
        kind: Kind::Demand(net_ns, |m, _| float(m.received.transactions)),
        loads: |load| !load.is_stream(),
        compared: true,
        decides_width: true,
    },
    Quantity {
        name: "busy_cores",
        kind: Kind::Value(|m, _| Some(m.cpu.net_ns() / m.cpu.elapsed_ns)),
        loads: |_| true,
        compared: false,
        decides_width: false,
    },
    Quantity {
        name: "client_context_switches_per_s",
        kind: Kind::Value(|m, _| per_second(m, m.client_scheduling.switches())),
        loads: |_| true,
        compared: false,
        decides_width: false,
    },
    Quantity {
        name: "client_migrations_per_s",
        kind: Kind::Value(|m, _| per_second(m, m.client_scheduling.migrations)),
        loads: |_| true,
        compared: false,
        decides_width: false,
    },
    Quantity {
        name: "client_cache_misses_per_s",
        kind: Kind::Value(|m, _| per_second(m, m.client_scheduling.cache_misses)),
        loads: |_| true,
        compared: false,
        decides_width: false,
    },
    Quantity {
        name: "latency_p50_ns",
        kind: Kind::Value(|m, _| quantile(m, 0.5)),
        loads: |load| !load.is_stream(),
        compared: true,
        decides_width: false,
    },
    Quantity {
        name: "latency_p99_ns",
        kind: Kind::Value(|m, _| quantile(m, 0.99)),
        loads: |load| !load.is_stream(),
        compared: true,
        decides_width: false,
    },
    Quantity {
        name: "latency_p999_ns",
        kind: Kind::Value(|m, _| quantile(m, 0.999)),
        loads: |load| !load.is_stream(),
        compared: false,
        decides_width: false,
    },
    Quantity {
        name: "lost_ratio",
        kind: Kind::Value(lost_ratio),
        loads: |load| !load.is_tcp(),
        compared: false,
        decides_width: false,
    },
    Quantity {
        name: "bytes_per_skb",
        kind: Kind::Value(|m, _| {
            let arrived = m.arrived.filter(|a| a.skbs > 0)?;
            Some(float(arrived.bytes) / float(arrived.skbs))
        }),
        loads: LoadKind::is_stream,
        compared: false,
        decides_width: false,
    },
    Quantity {
        name: "queue_changes_per_flow_per_s",
        kind: Kind::Value(|m, _| {
            let changes = m.queue_changes?;
            let flow_seconds = float(changes.span_ns) / 1e9 * f64::from(changes.flows);
            Some(float(changes.count) / flow_seconds)
        }),
        loads: |load| load != LoadKind::TcpCrr,
        compared: false,
        decides_width: false,
    },
    Quantity {
        name: "guest_steal_ratio",
        kind: Kind::Value(|m, _| m.guest_steal_ratio),
        loads: |_| true,
        compared: false,
        decides_width: false,
    },
    Quantity {
        name: "retransmits",
        kind: Kind::Value(|m, _| m.tcp.map(|tcp| float(tcp.retransmits))),
        loads: |load| load.is_tcp() && load != LoadKind::TcpCrr,
        compared: false,
        decides_width: false,
    },
];

/// The CPU cost that goes with a load's main figure.
#[must_use]
pub fn cost(load: LoadKind) -> &'static str {
    match load {
        LoadKind::UdpStream => "cpu_ns_per_packet",
        _ if load.is_stream() => "cpu_ns_per_byte",
        _ => "cpu_ns_per_transaction",
    }
}

/// The quantity of that name.
///
/// # Errors
/// There is none; the error lists them all.
pub fn quantity(name: &str) -> Result<&'static Quantity, UnknownName> {
    QUANTITIES
        .iter()
        .find(|q| q.name == name)
        .ok_or_else(|| UnknownName {
            kind: "quantity",
            name: name.to_owned(),
            choices: QUANTITIES
                .iter()
                .map(|q| q.name)
                .collect::<Vec<_>>()
                .join(", "),
        })
}

impl Quantity {
    /// Does the load have it?
    #[must_use]
    pub fn applies(&self, load: LoadKind) -> bool {
        (self.loads)(load)
    }

    /// Is more of it better? Rates are; costs and latencies are not. `None` where that cannot be said.
    #[must_use]
    pub fn more_is_better(&self) -> Option<bool> {
        match self.name {
            name if name.ends_with("_bps") || name.ends_with("_per_s") => Some(true),
            name if name.starts_with("cpu_ns") || name.starts_with("latency_") => Some(false),
            _ => None,
        }
    }

    /// Its value in one sample; `None` where it was not measured.
    #[must_use]
    pub fn value(&self, m: &Measurement, load: LoadKind) -> Option<f64> {
        let value = match &self.kind {
            Kind::Value(of) => of(m, load),
            Kind::Demand(cost, units) => Some(cost(m) / units(m, load)),
        };
        value.filter(|v| v.is_finite())
    }

    /// Cost and units of one sample, where the quantity is a cost per unit.
    pub(super) fn demand(&self, m: &Measurement, load: LoadKind) -> Option<(f64, f64)> {
        match &self.kind {
            Kind::Value(_) => None,
            Kind::Demand(cost, units) => Some((cost(m), units(m, load))),
        }
    }

    /// Its estimate over samples; `None` where fewer than two have it.
    #[must_use]
    pub fn estimate(
        &self,
        measured: &[&Measurement],
        load: LoadKind,
        confidence: f64,
    ) -> Option<Estimate> {
        match &self.kind {
            Kind::Value(_) => {
                let values: Vec<f64> = measured
                    .iter()
                    .filter_map(|m| self.value(m, load))
                    .collect();
                stats::mean_interval(&Samples::new(&values).ok()?, confidence)
            }
            Kind::Demand(cost, units) => {
                let costs: Vec<f64> = measured.iter().map(|m| cost(m)).collect();
                let units: Vec<f64> = measured.iter().map(|m| units(m, load)).collect();
                stats::ratio_of_sums(&costs, &units, confidence)
            }
        }
    }
}

/// CPU time of the load over the receiver's window, ns: the meter's own window differs by its edges.
fn net_ns(m: &Measurement) -> f64 {
    m.cpu.net_ns() / m.cpu.elapsed_ns * float(m.window_ns)
}

/// What was not counted has no rate.
fn per_second(m: &Measurement, count: Option<u64>) -> Option<f64> {
    Some(float(count?) / window_s(m))
}

fn window_s(m: &Measurement) -> f64 {
    float(m.window_ns) / 1e9
}

fn quantile(m: &Measurement, q: f64) -> Option<f64> {
    let latency = m.latency.as_ref()?;
    if !stats::enough_for_quantile(latency.count, q) {
        return None;
    }
    latency
        .quantiles
        .iter()
        .find(|(at, _)| (at - q).abs() < 1e-9)
        .map(|(_, ns)| float(*ns))
}

fn lost_ratio(m: &Measurement, load: LoadKind) -> Option<f64> {
    if load == LoadKind::UdpStream {
        let sent = float(m.sent.messages);
        // What was under way when the window opened may make the receiver count a little more.
        return (sent > 0.0).then(|| (1.0 - float(m.received.messages) / sent).max(0.0));
    }
    let asked = float(m.received.transactions + m.timeouts);
    (asked > 0.0).then(|| float(m.timeouts) / asked)
}

#[expect(
    clippy::cast_precision_loss,
    reason = "counts of a window are far below 2^53"
)]
fn float(count: u64) -> f64 {
    count as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique_and_carry_their_unit() {
        let mut names: Vec<_> = QUANTITIES.iter().map(|q| q.name).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), QUANTITIES.len());
        assert!(quantity("goodput_bps").is_ok());
        assert!(quantity("goodput").is_err());
    }

    #[test]
    fn what_is_compared_has_a_better_side() {
        for compared in QUANTITIES.iter().filter(|q| q.compared) {
            assert!(compared.more_is_better().is_some(), "{}", compared.name);
        }
        let better = |name| quantity(name).unwrap().more_is_better();
        assert_eq!(better("transactions_per_s"), Some(true));
        assert_eq!(better("cpu_ns_per_byte"), Some(false));
        assert_eq!(better("latency_p99_ns"), Some(false));
        assert_eq!(better("bytes_per_skb"), None);
    }

    #[test]
    fn every_load_has_exactly_what_decides_width() {
        for load in LoadKind::ALL {
            let deciding = QUANTITIES
                .iter()
                .filter(|q| q.decides_width && q.applies(load));
            assert_eq!(deciding.count(), 2, "{load}: its main figure and its cost");
            assert!(quantity(cost(load)).unwrap().applies(load));
        }
    }
}
