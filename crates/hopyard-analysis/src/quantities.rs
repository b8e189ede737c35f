//! Quantities: each by its name in JSON, with its computation from a sample.

use crate::model::{Axes, CpuTolerance, CpuUse, EndsOn, LoadKind, Measurement, UnknownName};
use crate::stats::{self, Estimate, Samples};
use crate::units::float;

mod arrivals;
mod queues;
mod registry;

pub use registry::QUANTITIES;

/// One quantity.
pub struct Quantity {
    /// Name in JSON, with its unit.
    pub name: &'static str,
    /// How it is computed from a sample.
    kind: Kind,
    /// The loads that have it.
    loads: fn(LoadKind) -> bool,
    /// Whether it is compared with the base path.
    pub compared: bool,
}

enum Kind {
    /// A value per sample; the estimate is their mean.
    Value(fn(&Measurement, LoadKind) -> Option<f64>),
    /// A quantile of the observations in a sample; `None` if they are too few.
    Quantile(fn(&Measurement) -> Option<f64>),
    /// A share that was lost. Datagrams under way at the edges of a window make it less than 0 in some samples; the estimate, their mean, is at
    /// least 0.
    Share(fn(&Measurement, LoadKind) -> Option<f64>),
    /// As `Value` for samples whose CPU time is known, from the load's CPU time over the receiver's window, ns.
    Cpu(fn(&Measurement, f64) -> Option<f64>),
    /// Two figures per sample: cost and units, or the reverse. The estimate is the ratio of their sums (docs/method.md,
    /// "CPU cost").
    Demand(fn(&Measurement, f64) -> [f64; 2]),
    /// As `Cpu` and `Demand`, from the CPU time of the machine of one end.
    CpuOf(EndsOn, fn(&Measurement, f64) -> Option<f64>),
    DemandOf(EndsOn, fn(&Measurement, f64) -> [f64; 2]),
}

/// The main figure of a cell.
#[must_use]
pub fn main_figure(load: LoadKind, axes: &Axes) -> &'static str {
    if axes.search.is_some() {
        "throughput_packets_per_s"
    } else {
        load.info().main_figure
    }
}

/// The CPU cost that goes with a load's main figure.
#[must_use]
pub fn cost(load: LoadKind) -> &'static str {
    load.info().unit.cost()
}

/// Whether its width decides if such a cell needs more blocks: true for the main figure and its cost.
#[must_use]
pub(super) fn decides_width(name: &str, load: LoadKind, axes: &Axes) -> bool {
    name == main_figure(load, axes) || name == cost(load)
}

/// The quantity with that name.
///
/// # Errors
/// There is none; the error lists them all.
pub fn quantity(name: &str) -> Result<&'static Quantity, UnknownName> {
    QUANTITIES
        .iter()
        .find(|q| q.name == name)
        .ok_or_else(|| UnknownName::new("quantity", name, QUANTITIES.iter().map(|q| q.name)))
}

impl Quantity {
    /// Whether the load has it.
    #[must_use]
    pub fn applies(&self, load: LoadKind) -> bool {
        (self.loads)(load)
    }

    /// Whether more of it is better. True for rates; false for costs, latencies and jitter. `None` for quantities that
    /// are neither good nor bad.
    #[must_use]
    pub fn more_is_better(&self) -> Option<bool> {
        match self.name {
            "send_errors_per_s" | "retransmits_per_s" => Some(false),
            name if name.ends_with("_bps") || name.ends_with("_per_s") => Some(true),
            name if [
                "cpu_ns",
                "latency_",
                "jitter_",
                "connect_",
                "first_exchange_",
            ]
            .iter()
            .any(|kind| name.starts_with(kind)) =>
            {
                Some(false)
            }
            _ => None,
        }
    }

    /// Its value in one sample; `None` if it was not measured.
    #[must_use]
    pub fn value(&self, m: &Measurement, load: LoadKind, tolerance: CpuTolerance) -> Option<f64> {
        let value = match &self.kind {
            Kind::Value(of) | Kind::Share(of) => of(m, load),
            Kind::Quantile(of) => of(m),
            Kind::Cpu(of) => of(m, net_ns(m, tolerance)?),
            Kind::CpuOf(ends, of) => of(m, net_ns_of(m, *ends, tolerance)?),
            Kind::Demand(_) | Kind::DemandOf(..) => {
                let [cost, units] = self.demand(m, tolerance)?;
                Some(cost / units)
            }
        };
        value.filter(|v| v.is_finite())
    }

    /// Cost and units of one sample, if the quantity is a cost per unit and the sample's CPU time is known.
    pub(super) fn demand(&self, m: &Measurement, tolerance: CpuTolerance) -> Option<[f64; 2]> {
        match &self.kind {
            Kind::Demand(of) => Some(of(m, net_ns(m, tolerance)?)),
            Kind::DemandOf(ends, of) => Some(of(m, net_ns_of(m, *ends, tolerance)?)),
            _ => None,
        }
    }

    /// Whether it is computed from the CPU time of samples.
    #[must_use]
    pub fn needs_cpu(&self) -> bool {
        !matches!(
            self.kind,
            Kind::Value(_) | Kind::Quantile(_) | Kind::Share(_)
        )
    }

    /// Whether it is a share of what was sent, of which one window may show a little less than none.
    #[must_use]
    pub fn is_share(&self) -> bool {
        matches!(self.kind, Kind::Share(_))
    }

    /// Whether it is known in a cell with these samples: a quantile, if nine of ten have it. In a slow cell, the samples that have enough
    /// observations are the faster ones.
    pub(super) fn is_known_in<'a>(
        &self,
        measured: impl IntoIterator<Item = &'a Measurement>,
    ) -> bool {
        let Kind::Quantile(of) = self.kind else {
            return true;
        };
        let known: Vec<bool> = measured.into_iter().map(|m| of(m).is_some()).collect();
        let unknown = known.iter().filter(|is_known| !**is_known).count();
        10 * unknown <= known.len()
    }

    /// Its estimate over samples; `None` if fewer than two have it, or if it is not known in the cell.
    #[must_use]
    pub fn estimate(
        &self,
        measured: &[&Measurement],
        load: LoadKind,
        tolerance: CpuTolerance,
        confidence: f64,
    ) -> Option<Estimate> {
        if let Kind::Demand(_) | Kind::DemandOf(..) = self.kind {
            let demands = measured.iter().filter_map(|m| self.demand(m, tolerance));
            let (costs, units): (Vec<f64>, Vec<f64>) = demands.map(<(f64, f64)>::from).unzip();
            return stats::ratio_of_sums(&costs, &units, confidence);
        }
        if !self.is_known_in(measured.iter().copied()) {
            return None;
        }
        let values = measured
            .iter()
            .filter_map(|m| self.value(m, load, tolerance));
        let values = Samples::new(&values.collect::<Vec<_>>()).ok()?;
        let mean = stats::mean_interval(&values, confidence)?;
        Some(match self.kind {
            Kind::Share(_) => mean.not_below_zero(),
            _ => mean,
        })
    }
}

/// CPU time of the load over the receiver's window, ns, because the meter's own window differs at its edges. `None` if
/// it is not known precisely enough.
fn net_ns(m: &Measurement, tolerance: CpuTolerance) -> Option<f64> {
    over_window(&m.cpu, m, tolerance)
}

/// The same for the machine that only one end uses.
fn net_ns_of(m: &Measurement, ends: EndsOn, tolerance: CpuTolerance) -> Option<f64> {
    let machine = m.machines.iter().find(|machine| machine.ends == ends)?;
    over_window(machine.cpu.as_ref()?, m, tolerance)
}

fn over_window(cpu: &CpuUse, m: &Measurement, tolerance: CpuTolerance) -> Option<f64> {
    Some(cpu.net_ns(tolerance)? / cpu.elapsed_ns * float(m.window_ns))
}

/// A rate; `None` if nothing was counted.
fn per_second(m: &Measurement, count: Option<u64>) -> Option<f64> {
    Some(float(count?) / window_s(m))
}

/// What TCP sent again, over the time in which that was counted.
fn retransmits_per_s(m: &Measurement) -> Option<f64> {
    let tcp = m.tcp?;
    let span_ns = if tcp.span_ns == 0 {
        m.window_ns
    } else {
        tcp.span_ns
    };
    Some(float(tcp.retransmits) / (float(span_ns) / 1e9))
}

fn window_s(m: &Measurement) -> f64 {
    float(m.window_ns) / 1e9
}

/// Transactions have a round trip; an open loop has one-way times from when a message was due.
fn has_latency(load: LoadKind) -> bool {
    load.info().timed.is_some()
}

fn quantile(m: &Measurement, q: f64) -> Option<f64> {
    arrivals::times(m.latency.as_ref(), q)
}

fn first_packet(m: &Measurement, q: f64) -> Option<f64> {
    arrivals::times(m.first_packet.as_ref(), q)
}

fn lost_ratio(m: &Measurement, load: LoadKind) -> Option<f64> {
    if let Some(open_loop) = m.open_loop {
        return open_loop.loss_ratio();
    }
    if load.is_udp_stream() {
        let sent = float(m.sent.messages);
        return (sent > 0.0).then(|| 1.0 - float(m.received.messages) / sent);
    }
    let answered = m.answered.unwrap_or(m.received.transactions);
    let asked = float(answered + m.timeouts);
    (asked > 0.0).then(|| float(m.timeouts) / asked)
}

/// Whether a quantity is already compared under another name. Packets of equal size are bytes over their size, so one
/// comparison covers both; the report shows bytes, and CPU per packet.
pub(super) fn is_said_twice(quantity: &Quantity, load: LoadKind) -> bool {
    load.info().repeated.contains(&quantity.name)
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
    fn every_load_has_its_main_figure_and_its_cost() {
        let searched = Axes {
            search: Some(crate::model::SearchFor::NDR),
            ..Axes::default()
        };
        let loads = LoadKind::ALL.map(|load| (load, Axes::default()));
        for (load, axes) in loads.into_iter().chain([(LoadKind::UdpPaced, searched)]) {
            for name in [main_figure(load, &axes), cost(load)] {
                let quantity = quantity(name).unwrap();
                assert!(
                    quantity.applies(load) && quantity.compared,
                    "{load}: {name}"
                );
            }
        }
    }
}
