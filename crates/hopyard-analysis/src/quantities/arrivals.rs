//! Figures of the arrivals of numbered datagrams, all flows of a sample together.

use super::float;
use crate::model::{Arrivals, FlowArrivals, Latency, Measurement};
use crate::stats;

/// A figure of the arrivals, if there are any.
pub(super) fn of(m: &Measurement, figure: impl Fn(&Arrivals) -> Option<f64>) -> Option<f64> {
    figure(m.arrivals.as_ref()?)
}

/// A quantile of a distribution of times that has enough observations for it.
pub(super) fn times(times: Option<&Latency>, q: f64) -> Option<f64> {
    let times = times?;
    quantile(times.count, &times.quantiles, q)
}

fn quantile(count: u64, quantiles: &[(f64, u64)], q: f64) -> Option<f64> {
    let found = quantiles.iter().find(|(at, _)| (at - q).abs() < 1e-9)?;
    stats::enough_for_quantile(count, q).then(|| float(found.1))
}

/// RFC 3550's jitter: the mean over flows.
pub(super) fn smoothed(arrivals: &Arrivals) -> Option<f64> {
    let flows: Vec<f64> = arrivals
        .flows
        .iter()
        .filter_map(|flow| flow.jitter_rfc3550_ns)
        .collect();
    stats::mean(&flows)
}

/// The median run length.
pub(super) fn median_run(arrivals: &Arrivals) -> Option<f64> {
    let runs = arrivals.runs.as_ref()?;
    quantile(runs.count, &runs.quantiles, 0.5)
}

/// Share of datagrams that are Type-P-Reordered (RFC 4737, 4.1).
pub(super) fn reordered(arrivals: &Arrivals) -> Option<f64> {
    share(arrivals, |flow| flow.reordered)
}

/// Further copies over datagrams.
pub(super) fn duplicated(arrivals: &Arrivals) -> Option<f64> {
    share(arrivals, |flow| flow.duplicates)
}

fn share(arrivals: &Arrivals, part: fn(&FlowArrivals) -> u64) -> Option<f64> {
    let parts: u64 = arrivals.flows.iter().map(part).sum();
    let packets = arrivals.packets();
    (packets > 0).then(|| float(parts) / float(packets))
}

/// Share of arriving datagrams that the receiving sockets had no room for.
pub(super) fn dropped(arrivals: &Arrivals) -> Option<f64> {
    let came = arrivals.packets() + arrivals.socket_drops;
    (came > 0).then(|| float(arrivals.socket_drops) / float(came))
}

/// Share of the window for which the receiver's busiest thread had a CPU.
pub(super) fn busiest(arrivals: &Arrivals, window_ns: u64) -> Option<f64> {
    let most = arrivals.receiver_cpu_ns.iter().max()?;
    (window_ns > 0).then(|| float(*most) / float(window_ns))
}

#[cfg(test)]
mod tests {
    use crate::model::stored::Run;
    use crate::model::{
        Arrivals, Axes, FlowArrivals, Latency, LoadKind, Outcome, Peer, RunLengths, WarningCode,
    };
    use crate::testing::{measured, push, run};
    use crate::{assess, quantity};

    fn times(count: u64, at: &[(f64, u64)]) -> Option<Latency> {
        Some(Latency {
            count,
            min_ns: 0,
            mean_ns: 0.0,
            max_ns: 0,
            quantiles: at.to_vec(),
            histogram: Vec::new(),
        })
    }

    /// Two flows: 900 and 90 datagrams, ten reordered, five copies.
    fn arrivals() -> Arrivals {
        let flow = |packets, jitter| FlowArrivals {
            packets,
            reordered: packets / 90,
            jitter_rfc3550_ns: Some(jitter),
            ..FlowArrivals::default()
        };
        let mut flows = vec![flow(900, 100.0), flow(90, 300.0)];
        flows[1].duplicates = 5;
        Arrivals {
            flows,
            pdv: times(990, &[(0.5, 1), (0.99, 700), (0.999, 900)]),
            ipdv: times(20_000, &[(0.999, 1500)]),
            interarrival: times(988, &[(0.5, 4000), (0.99, 9000)]),
            interarrival_sd_ns: Some(1200.0),
            series: None,
            lateness: None,
            runs: Some(RunLengths {
                count: 50,
                mean: 19.8,
                max: 60,
                quantiles: vec![(0.5, 24)],
            }),
            socket_drops: 10,
            receiver_cpu_ns: vec![20_000_000, 50_000_000],
        }
    }

    fn run_of(arrivals: &Arrivals) -> Run {
        let mut run = run(&["veth"]);
        let load = LoadKind::UdpFlood;
        run.header.cells[0].cell.load = load;
        run.header.cells[0].cell.axes = Axes::default().for_cell(load, Peer::Local, &[]);
        for block in 0..8 {
            let mut m = measured(12_000_000);
            m.arrivals = Some(arrivals.clone());
            push(&mut run, block, 0, 0, Outcome::Measured(Box::new(m)));
        }
        run
    }

    #[test]
    fn figures_of_numbered_datagrams() {
        let report = assess(&run_of(&arrivals()));
        let value = |name: &str| report.cells[0].estimates.get(name).map(|e| e.value);
        for (name, wanted) in [
            // 990 observations are enough for neither quantile.
            ("jitter_pdv_ns", None),
            ("jitter_pdv_p99_ns", None),
            ("jitter_ipdv_ns", Some(1500.0)),
            ("jitter_rfc3550_ns", Some(200.0)),
            ("interarrival_p50_ns", Some(4000.0)),
            ("run_length_p50_packets", Some(24.0)),
            ("run_length_mean_packets", Some(19.8)),
            ("reordered_ratio", Some(11.0 / 990.0)),
            ("duplicated_ratio", Some(5.0 / 990.0)),
            ("receiver_dropped_ratio", Some(0.01)),
            // 50 of 200 ms.
            ("receiver_busy_ratio", Some(0.25)),
            ("sender_late_p99_ns", None),
            ("latency_p50_ns", None),
        ] {
            assert!(quantity(name).is_ok());
            assert_eq!(value(name), wanted, "{name}");
        }
    }

    #[test]
    fn a_receiver_that_did_not_keep_up_is_said_to() {
        let warned = |arrivals: &Arrivals| {
            let report = assess(&run_of(arrivals));
            let of = |w: &&crate::model::Warning| w.code == WarningCode::Receiver;
            report.warnings.iter().find(of).map(|w| w.message.clone())
        };
        let message = warned(&arrivals()).unwrap();
        assert!(
            message.contains("no room for up to 1.0 % of the datagrams"),
            "{message}"
        );
        let mut fine = arrivals();
        fine.socket_drops = 0;
        assert_eq!(warned(&fine), None);
        fine.receiver_cpu_ns = vec![190_000_000];
        assert!(warned(&fine).unwrap().contains("95.0 % of the time"));
    }
}
