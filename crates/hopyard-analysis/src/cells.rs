//! One cell from its samples.

mod machines;

use std::collections::BTreeMap;

use super::quantities::{QUANTITIES, decides_width};
use super::{latency, settling};
use crate::model::stored::{Header, PlannedCell};
use crate::model::{
    Axes, CellReport, CellStatus, CpuUse, DeviceOffloadsSeen, DeviceSeen, FlowArrivals, LinkEnd,
    LoadKind, MachineOverhead, Measurement, OffloadState, Outcome, Sample, Switch, WayReport,
};
use crate::stats::{self, Samples};
use crate::units::float;

/// Ticks add up if their sum is within this share of the time that passed (docs/method.md, rule 2).
pub const CLOSURE: f64 = 0.01;

/// The measurements of the samples that did not fail.
pub(super) fn measurements<'a>(samples: &'a [&Sample]) -> impl Iterator<Item = &'a Measurement> {
    samples.iter().filter_map(|s| s.measurement())
}

/// The measurements of a cell.
pub(super) fn measured<'a>(samples: &[&'a Sample], cell: usize) -> Vec<&'a Measurement> {
    let own = samples.iter().filter(|s| s.cell == cell);
    own.filter_map(|s| s.measurement()).collect()
}

/// The sample of a cell in a block.
pub(super) fn of_block<'a>(samples: &[&'a Sample], cell: usize, block: u32) -> Option<&'a Sample> {
    let mut own = samples.iter().copied().filter(|s| s.cell == cell);
    own.find(|s| s.block == block)
}

/// Every cell without its verdicts.
pub(super) fn assess(header: &Header, samples: &[&Sample]) -> Vec<CellReport> {
    let ticks_add_up = (mean_closure(samples) - 1.0).abs() <= CLOSURE;
    header
        .cells
        .iter()
        .enumerate()
        .map(|(index, planned)| {
            let all: Vec<&Sample> = samples
                .iter()
                .copied()
                .filter(|s| s.cell == index)
                .collect();
            one(
                header,
                planned,
                &all,
                &measured(samples, index),
                ticks_add_up,
            )
        })
        .collect()
}

fn one(
    header: &Header,
    planned: &PlannedCell,
    all: &[&Sample],
    measured: &[&Measurement],
    ticks_add_up: bool,
) -> CellReport {
    let load = planned.cell.load;
    let failures: Vec<&str> = all
        .iter()
        .filter_map(|s| match &s.outcome {
            Outcome::Failed { cause } => Some(cause.as_str()),
            Outcome::Measured(_) => None,
        })
        .collect();
    let whole = failures.is_empty() && !measured.is_empty();
    let (status, cause) = match &planned.unsupported {
        Some(cause) => (CellStatus::Unsupported, Some(cause.clone())),
        None if whole => (CellStatus::Ok, None),
        // A cell that failed in some blocks has figures nevertheless, and its status shows the failure.
        None => (CellStatus::Failed, Some(first_cause(&failures))),
    };
    let tolerance = header.cpu_tolerance();
    let mut estimates = BTreeMap::new();
    let mut two_modes = BTreeMap::new();
    for quantity in QUANTITIES.iter().filter(|q| q.applies(load)) {
        if let Some(estimate) = quantity.estimate(measured, load, tolerance, header.confidence) {
            estimates.insert(quantity.name.to_owned(), estimate);
        }
        let values: Vec<f64> = measured
            .iter()
            .filter_map(|m| quantity.value(m, load, tolerance))
            .collect();
        if decides_width(quantity.name, load, &planned.cell.axes)
            && let Ok(values) = Samples::new(&values)
            && let Some(modes) = stats::two_modes(&values)
        {
            two_modes.insert(quantity.name.to_owned(), modes);
        }
    }
    CellReport {
        path: planned.cell.path.clone(),
        peer: planned.cell.peer,
        load,
        axes: planned.cell.axes.clone(),
        status,
        cause,
        estimates,
        verdicts: BTreeMap::new(),
        two_modes,
        window_s: window_s(measured),
        unsettled_samples: count(measured.iter().filter(|m| is_unsettled(m))),
        failed_samples: count(failures.iter()),
        receive_window_limited_ratio: limited(measured, |t| t.receive_window_limited_ns),
        send_buffer_limited_ratio: limited(measured, |t| t.send_buffer_limited_ns),
        cpu_split_ratio: if ticks_add_up {
            split(measured)
        } else {
            BTreeMap::new()
        },
        device_drops: device_drops(measured),
        lost_datagrams: lost(measured, load),
        searches: measured.iter().filter_map(|m| m.search.clone()).collect(),
        flows: flows(measured),
        latency: latency::report(measured),
        series: settling::report(measured, header.confidence),
        offloads: offloads(measured),
        offloads_by_device: offloads_by_device(measured, &planned.cell.axes),
        link: link(measured),
        filter_sees: planned.filter_sees,
        chains: planned.chains.clone(),
        offers: planned.offers.clone(),
        rules_instead: planned.rules_instead.clone(),
        datapath: measured.iter().find_map(|m| m.datapath.clone()),
        guest: measured.iter().find_map(|m| m.guest.clone()),
        endpoints: measured.iter().find_map(|m| m.endpoints.clone()),
        clocks: machines::clocks(measured),
        machine_steal_ratio: machines::steal(measured),
        way: way(measured),
        profile: None,
    }
}

/// The mean length of the windows, s. Those of turns are all turns of a block together.
fn window_s(measured: &[&Measurement]) -> Option<f64> {
    let all_ns: u64 = measured.iter().map(|m| m.window_ns).sum();
    let windows = u32::try_from(measured.len()).ok().filter(|n| *n > 0)?;
    Some(float(all_ns) / f64::from(windows) / 1e9)
}

fn first_cause(failures: &[&str]) -> String {
    failures.first().map_or_else(
        || "it was never measured: the run ended before its turn".to_owned(),
        |cause| (*cause).to_owned(),
    )
}

fn count<T>(items: impl Iterator<Item = T>) -> u32 {
    u32::try_from(items.count()).unwrap_or(u32::MAX)
}

fn is_unsettled(m: &Measurement) -> bool {
    let slices: Vec<f64> = m.slices.iter().copied().map(float).collect();
    stats::unsettled(&slices)
}

/// Share of busy time in which TCP was limited, over all samples.
fn limited(measured: &[&Measurement], by: fn(&crate::model::TcpSummary) -> u64) -> Option<f64> {
    let tcp: Vec<_> = measured.iter().filter_map(|m| m.tcp.as_ref()).collect();
    let busy: u64 = tcp.iter().map(|t| t.busy_ns).sum();
    (busy > 0).then(|| float(tcp.iter().map(|t| by(t)).sum()) / float(busy))
}

/// Tick shares of all samples together.
fn split(measured: &[&Measurement]) -> BTreeMap<String, f64> {
    let sum = |of: fn(&Measurement) -> f64| measured.iter().map(|m| of(m)).sum::<f64>();
    let parts = [
        ("user", sum(|m| m.cpu.split.user_ns)),
        ("system", sum(|m| m.cpu.split.system_ns)),
        ("irq", sum(|m| m.cpu.split.irq_ns)),
        ("softirq", sum(|m| m.cpu.split.softirq_ns)),
    ];
    let total: f64 = parts.iter().map(|(_, ns)| ns).sum();
    if total <= 0.0 {
        return BTreeMap::new();
    }
    parts
        .into_iter()
        .map(|(name, ns)| (name.to_owned(), ns / total))
        .collect()
}

fn device_drops(measured: &[&Measurement]) -> Option<u64> {
    let drops = measured.iter().flat_map(|m| &m.devices);
    let drops = drops.map(|device| device.dropped);
    drops.reduce(|all, own| all + own)
}

/// What was lost in all windows together: in a single one more may have arrived than was sent, because its ends are read one after the
/// other. Of an open loop, what was due counts as sent.
fn lost(measured: &[&Measurement], load: LoadKind) -> Option<u64> {
    if measured.is_empty() || load.is_tcp() {
        return None;
    }
    if !load.is_stream() {
        return Some(measured.iter().map(|m| m.timeouts).sum());
    }
    let of = |m: &&Measurement| match m.open_loop {
        Some(open) => (open.due, open.arrived),
        None => (m.sent.messages, m.received.messages),
    };
    let plus = |(sent, arrived), (more, also)| (sent + more, arrived + also);
    let (sent, arrived) = measured.iter().map(of).fold((0_u64, 0_u64), plus);
    Some(sent.saturating_sub(arrived))
}

/// Each flow of numbered datagrams over all samples.
fn flows(measured: &[&Measurement]) -> Vec<FlowArrivals> {
    let mut sums: Vec<FlowArrivals> = Vec::new();
    for arrivals in measured.iter().filter_map(|m| m.arrivals.as_ref()) {
        sums.resize_with(sums.len().max(arrivals.flows.len()), Default::default);
        for (sum, flow) in sums.iter_mut().zip(&arrivals.flows) {
            *sum = sum.plus(flow);
        }
    }
    sums
}

/// Each flag over all devices of all samples; `differs` if it is not as asked for.
fn offloads(measured: &[&Measurement]) -> BTreeMap<String, String> {
    flags(measured.iter().flat_map(|m| &m.offloads))
}

/// The same for each device; empty if all devices are alike and none was switched by itself.
fn offloads_by_device(measured: &[&Measurement], axes: &Axes) -> Vec<DeviceOffloadsSeen> {
    let mut devices: Vec<(&str, &str, Vec<&OffloadState>)> = Vec::new();
    for state in measured.iter().flat_map(|m| &m.offloads) {
        let (namespace, name) = (&*state.namespace, &*state.device);
        match devices
            .iter_mut()
            .find(|(of, known, _)| (*of, *known) == (namespace, name))
        {
            Some((.., states)) => states.push(state),
            None => devices.push((namespace, name, vec![state])),
        }
    }
    let seen = devices
        .into_iter()
        .map(|(namespace, name, states)| DeviceOffloadsSeen {
            namespace: namespace.to_owned(),
            name: name.to_owned(),
            flags: flags(states.into_iter()),
        });
    let seen: Vec<DeviceOffloadsSeen> = seen.collect();
    let alike = seen.windows(2).all(|two| two[0].flags == two[1].flags);
    if alike && axes.device_offload.is_none() {
        Vec::new()
    } else {
        seen
    }
}

/// Each end of the link, once in each state that was seen.
fn link(measured: &[&Measurement]) -> Vec<LinkEnd> {
    let mut ends: Vec<LinkEnd> = Vec::new();
    for end in measured.iter().flat_map(|m| &m.link) {
        if !ends.contains(end) {
            ends.push(end.clone());
        }
    }
    ends
}

fn flags<'a>(states: impl Iterator<Item = &'a OffloadState>) -> BTreeMap<String, String> {
    let mut flags: BTreeMap<String, String> = BTreeMap::new();
    for state in states {
        let wrong = |asked| state.state != if asked == Switch::On { "on" } else { "off" };
        let now = match state.asked {
            Some(asked) if wrong(asked) && !state.fixed => "differs",
            _ => state.state.as_str(),
        };
        flags
            .entry(state.flag.name().to_owned())
            .and_modify(|known| {
                if known != now && known != "differs" {
                    *known = if now == "differs" { "differs" } else { "mixed" }.to_owned();
                }
            })
            .or_insert_with(|| now.to_owned());
    }
    flags
}

fn way(measured: &[&Measurement]) -> WayReport {
    let mut problems: Vec<String> = Vec::new();
    let mut devices: Vec<DeviceSeen> = Vec::new();
    for m in measured {
        for problem in &m.way.problems {
            // Figures differ from sample to sample; one problem of each kind is enough.
            let kind = |p: &str| p.split(' ').take(2).collect::<Vec<_>>().join(" ");
            if !problems.iter().any(|known| kind(known) == kind(problem)) {
                problems.push(problem.clone());
            }
        }
        for device in &m.devices {
            let packets = device.rx_packets + device.tx_packets;
            let known = devices
                .iter_mut()
                .find(|d| d.namespace == device.namespace && d.name == device.name);
            match known {
                Some(known) => known.packets += packets,
                None => devices.push(DeviceSeen {
                    namespace: device.namespace.clone(),
                    name: device.name.clone(),
                    packets,
                }),
            }
        }
    }
    let proved = !measured.is_empty() && measured.iter().all(|m| m.way.proved);
    WayReport {
        proved,
        problems,
        devices,
    }
}

/// Other use of the machine, over all windows.
pub(super) fn elsewhere(samples: &[&Sample]) -> Option<MachineOverhead> {
    let uses: Vec<_> = measurements(samples).map(|m| m.cpu).collect();
    let whole: f64 = uses.iter().map(|u| u.elapsed_ns * f64::from(u.cpus)).sum();
    let share = |of: fn(&CpuUse) -> f64| uses.iter().map(of).sum::<f64>() / whole;
    (whole > 0.0).then(|| MachineOverhead {
        foreign_ratio: share(|u| u.foreign_ns),
        steal_ratio: share(|u| u.steal_ns),
        controller_ratio: share(|u| u.controller_ns),
        baseline_ratio: share(|u| u.baseline_ns),
        closure: mean_closure(samples),
    })
}

/// Sum of tick columns over time passed, all windows together, because single windows are too short for it.
fn mean_closure(samples: &[&Sample]) -> f64 {
    let mut ticks = 0.0;
    let mut elapsed = 0.0;
    for sample in samples {
        if let Outcome::Measured(m) = &sample.outcome {
            ticks += m.cpu.closure * m.cpu.elapsed_ns;
            elapsed += m.cpu.elapsed_ns;
        }
    }
    if elapsed > 0.0 { ticks / elapsed } else { 1.0 }
}

#[cfg(test)]
mod tests {
    use super::lost;
    use crate::model::{LoadKind, Measurement, OpenLoop};
    use crate::testing::measured;

    #[test]
    fn windows_in_which_more_arrived_than_was_sent_cancel_out() {
        let window = |sent, received| {
            let mut m = measured(1);
            (m.sent.messages, m.received.messages) = (sent, received);
            m
        };
        let of = |all: &[Measurement], load| lost(&all.iter().collect::<Vec<_>>(), load);
        let even = [window(100, 105), window(100, 95)];
        assert_eq!(of(&even, LoadKind::UdpStream), Some(0));
        let short = [window(100, 105), window(100, 90)];
        assert_eq!(of(&short, LoadKind::UdpStream), Some(5));
        let mut open = window(100, 90);
        open.open_loop = Some(OpenLoop {
            due: 120,
            arrived: 117,
        });
        assert_eq!(of(&[open], LoadKind::UdpPaced), Some(3));
        let mut request = window(0, 0);
        request.timeouts = 2;
        assert_eq!(of(&[request], LoadKind::UdpRr), Some(2));
        assert_eq!(of(&short, LoadKind::TcpStream), None);
        assert_eq!(of(&[], LoadKind::UdpStream), None);
    }
}
