//! Runs whose cells make curves.

use super::{measured, push, run};
use crate::model::stored::Run;
use crate::model::{
    ArrivalInterval, ArrivalSeries, Arrivals, Axes, BusyCpus, Containers, LoadKind, Measurement,
    Outcome, Peer, Scheduling,
};

pub(crate) const FLOWS: [u32; 9] = [1, 2, 4, 8, 12, 16, 20, 24, 32];

/// The figures of one sample.
#[derive(Debug, Clone, Copy)]
pub struct Shown {
    pub packets: f64,
    pub busy: f64,
    pub gap_sd_ns: f64,
    pub switches: f64,
}

/// Best-effort senders, native and in containers, with ten blocks of what `of` returns for (own, flows), each value
/// varied by up to 1 %.
pub fn senders(of: impl Fn(bool, f64) -> Shown) -> Run {
    let mut run = run(&["macvlan"]);
    let template = run.header.cells[0].clone();
    run.header.cells.clear();
    run.header.base = Some("native".to_owned());
    let load = LoadKind::UdpFlood;
    for kind in [Containers::Native, Containers::Own] {
        for flows in FLOWS {
            let mut planned = template.clone();
            if kind == Containers::Native {
                "native".clone_into(&mut planned.cell.path);
            }
            planned.cell.load = load;
            planned.cell.peer = Peer::Far;
            planned.cell.axes = Axes {
                containers: Some(kind),
                flows,
                ..Axes::default()
            }
            .for_cell(load, Peer::Far, &["containers"]);
            run.header.cells.push(planned);
        }
    }
    for block in 0..10u32 {
        for cell in 0..run.header.cells.len() {
            let axes = &run.header.cells[cell].cell.axes;
            let shown = of(
                axes.containers == Some(Containers::Own),
                f64::from(axes.flows),
            );
            let salt = (block * 7 + u32::try_from(cell).unwrap() * 3) % 11;
            let noise = 1.0 + 0.002 * (f64::from(salt) - 5.0);
            push(
                &mut run,
                block,
                0,
                cell,
                Outcome::Measured(Box::new(sample(shown, noise))),
            );
        }
    }
    run
}

fn sample(shown: Shown, noise: f64) -> Measurement {
    let mut m = measured(1 << 20);
    let window_s = m.window_ns as f64 / 1e9;
    m.received.messages = (shown.packets * noise * window_s) as u64;
    m.client_cpus = Some(BusyCpus {
        cpus: 1,
        busy_ratio: (shown.busy * noise).min(1.0),
    });
    m.client_scheduling = Scheduling {
        voluntary_switches: Some(0),
        involuntary_switches: Some((shown.switches * noise * window_s) as u64),
        ..Scheduling::default()
    };
    m.arrivals = Some(Arrivals {
        flows: Vec::new(),
        pdv: None,
        ipdv: None,
        interarrival: None,
        interarrival_sd_ns: Some(shown.gap_sd_ns * noise),
        series: Some(decaying(shown.gap_sd_ns)),
        lateness: None,
        runs: None,
        socket_drops: 0,
        receiver_cpu_ns: Vec::new(),
    });
    m
}

/// Jitter that begins at twice its final value and halves its excess in each interval of 5 s: within 10 % from the
/// fifth on.
fn decaying(last_ns: f64) -> ArrivalSeries {
    let interval = |i: i32| ArrivalInterval {
        packets: 5_000,
        interarrival_sd_ns: Some(last_ns * (1.0 + 0.5f64.powi(i))),
        jitter_rfc3550_ns: None,
    };
    ArrivalSeries {
        interval_ns: 5_000_000_000,
        before_ns: 0,
        intervals: (0..20).map(interval).collect(),
    }
}

/// A knee at 12 for native senders and at 4 in containers. CPU use leaps from 45 to 100 % between 16 and 20 native
/// senders; in containers it is full from the first on.
pub fn published(own: bool, n: f64) -> Shown {
    let knee = if own { 4.0 } else { 12.0 };
    Shown {
        packets: 100_000.0,
        busy: if own || n > 18.0 { 1.02 } else { 0.45 },
        gap_sd_ns: 1000.0 * (10.0 + n + 6.0 * (n - knee).max(0.0)),
        switches: 250.0,
    }
}
