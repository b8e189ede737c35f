//! Windows that show given values: each quantity by its name.

use std::collections::BTreeMap;

use super::synthetic::CPUS;
use super::*;
use crate::model::{
    ArrivalInterval, ArrivalSeries, Arrivals, BusyCpus, Counted, FlowArrivals, Measurement,
    ProfileWindow, QueueChanges, QueueFrames, RunLengths, Scheduling, Stack,
};

/// A window that shows these values.
pub(super) fn sample(values: &BTreeMap<&str, f64>) -> Measurement {
    let mut m = measured(25_000_000);
    let window_s = m.window_ns as f64 / 1e9;
    let has = |name: &str| values.get(name).copied();
    let count = |value: f64| value.round() as u64;
    m.received = Counted {
        bytes: has("goodput_bps").map_or(25_000_000, |v| count(v * window_s / 8.0)),
        messages: has("packets_per_s").map_or(2_000_000, |v| count(v * window_s)),
        transactions: has("transactions_per_s").map_or(20_000, |v| count(v * window_s)),
    };
    cpu_of(&mut m, values);
    m.sent = m.received;
    if let Some(lost) = has("lost_ratio") {
        m.sent.messages = count(m.received.messages as f64 / (1.0 - lost));
    }
    if let Some(refused) = has("send_error_ratio") {
        m.send_errors = count(m.sent.messages as f64 * refused / (1.0 - refused));
    }
    let skbs = has("skbs_per_s").map_or(20_000.0, |v| v * window_s);
    m.arrived = m.arrived.map(|mut arrived| {
        arrived.skbs = count(skbs);
        arrived.bytes = count(has("bytes_per_skb").unwrap_or(40_000.0) * skbs);
        arrived
    });
    m.queue_changes = has("queue_changes_per_flow_per_s").map(|v| QueueChanges {
        count: count(v * 8.0 * 1e5),
        flows: 8,
        span_ns: 100_000_000_000_000,
    });
    m.queue_frames = queue_frames(m.received.bytes);
    let per_switch = has("client_cpu_ns_per_switch");
    let busy = has("client_cpu_busy_ratio").or(per_switch.map(|_| 1.0));
    m.client_cpus = busy.map(|busy_ratio| BusyCpus {
        cpus: 1,
        busy_ratio,
    });
    m.server_cpus = has("server_cpu_busy_ratio").map(|busy_ratio| BusyCpus {
        cpus: 1,
        busy_ratio,
    });
    let counted = |name: &str| has(name).map(|v| count(v * window_s));
    let turns = per_switch
        .zip(busy)
        .map(|(ns, busy)| count(busy * window_s * 1e9 / ns));
    m.client_scheduling = Scheduling {
        voluntary_switches: Some(0),
        involuntary_switches: turns.or(counted("client_context_switches_per_s")),
        migrations: None,
        cache_misses: has("cache_misses_per_packet")
            .map(|misses| count(misses * m.received.messages as f64)),
    };
    m.arrivals = Some(arrivals(values, m.window_ns as f64));
    m
}

/// Data by two queues, the second one another share of them in each window, and acknowledgements by the first alone.
fn queue_frames(bytes: u64) -> Vec<QueueFrames> {
    let tap = |bytes, frames: [u64; 2]| QueueFrames {
        bytes,
        frames: frames.to_vec(),
    };
    let data = tap(1_000_000, [30_000, 10_000 + bytes % 20_000]);
    vec![data, tap(9_000, [9_000, 0])]
}

/// CPU time, and what is derived of it.
fn cpu_of(m: &mut Measurement, values: &BTreeMap<&str, f64>) {
    let has = |name: &str| values.get(name).copied();
    m.cpu.cpus = CPUS;
    let whole = m.cpu.elapsed_ns * f64::from(CPUS);
    let busy = has("busy_cores").map(|v| v * m.cpu.elapsed_ns);
    let busy = busy.or(has("busy_ratio").map(|v| v * whole));
    let bits = m.received.bytes as f64 * 8.0;
    let units: [(&str, &mut u64); 3] = [
        ("cpu_ns_per_byte", &mut m.received.bytes),
        ("cpu_ns_per_packet", &mut m.received.messages),
        ("cpu_ns_per_transaction", &mut m.received.transactions),
    ];
    let mut spent = busy;
    for (name, count) in units {
        match (has(name), busy) {
            (Some(cost), None) => spent = Some(cost * *count as f64),
            (Some(cost), Some(busy)) => *count = (busy / cost) as u64,
            (None, _) => {}
        }
    }
    let spent = spent.or(has("efficiency_bps_per_core").map(|v| bits * 1e9 / v));
    let spent = spent
        .or(has("normalized_bps_per_cpu_percent")
            .map(|v| bits * 1e9 * f64::from(CPUS) / (100.0 * v)));
    if let Some(spent) = spent {
        m.cpu.busy_ns += spent - m.cpu.net().middle_ns();
    }
    if let Some(softirq) = has("softirq_ratio") {
        m.cpu.split.softirq_ns = softirq * whole;
    }
}

fn arrivals(values: &BTreeMap<&str, f64>, window_ns: f64) -> Arrivals {
    let has = |name: &str| values.get(name).copied();
    let packets = 1_000_000;
    let dropped = has("receiver_dropped_ratio").unwrap_or(0.0);
    let busy = has("receiver_busy_ratio");
    Arrivals {
        flows: vec![FlowArrivals {
            packets,
            ..FlowArrivals::default()
        }],
        pdv: None,
        ipdv: None,
        interarrival: None,
        interarrival_sd_ns: has("interarrival_sd_ns"),
        series: has("settling_s").map(settling),
        lateness: None,
        runs: has("run_length_p50_packets").map(|length| RunLengths {
            count: 1000,
            mean: length,
            max: 100,
            quantiles: vec![(0.5, length.round() as u64)],
        }),
        socket_drops: (packets as f64 * dropped / (1.0 - dropped)).round() as u64,
        receiver_cpu_ns: busy.map(|v| (v * window_ns) as u64).into_iter().collect(),
    }
}

/// Jitter that has its last value from that second on.
fn settling(time_s: f64) -> ArrivalSeries {
    let interval = |second: u32| ArrivalInterval {
        packets: 1000,
        interarrival_sd_ns: Some(if f64::from(second + 1) < time_s.round() {
            2e6
        } else {
            1e6
        }),
        jitter_rfc3550_ns: None,
    };
    ArrivalSeries {
        interval_ns: 1_000_000_000,
        before_ns: 0,
        intervals: (0..1200).map(interval).collect(),
    }
}

/// A function of each subsystem that rules name.
const FUNCTIONS: [(&str, &str); 4] = [
    ("bridge", "br_forward"),
    ("netfilter", "nf_hook_slow"),
    ("bpf", "bpf_prog_run"),
    ("checksum", "csum_partial"),
];

/// Samples of which these shares fell into subsystems: of several named together, what those before do not have went into the last.
pub(super) fn profile(
    values: &BTreeMap<&str, f64>,
    block: u32,
    cell: usize,
) -> Option<ProfileWindow> {
    let mut shares: Vec<(Vec<&str>, f64)> = Vec::new();
    for (name, share) in values {
        if let Some(names) = name.strip_suffix(" share_ratio") {
            shares.push((names.split('+').collect(), *share));
        }
        if let Some(names) = name.strip_prefix("cost of ") {
            shares.push((
                names.split('+').collect(),
                share / values["cpu_ns_per_byte"],
            ));
        }
    }
    shares.sort_by_key(|(names, _)| names.len());
    shares.first()?;
    // The last one is the program itself.
    let mut own = [0.0_f64; FUNCTIONS.len() + 1];
    for (names, share) in &shares {
        let place = |name: &&str| FUNCTIONS.iter().position(|(known, _)| known == name);
        let places: Vec<usize> = names.iter().map(|name| place(name).unwrap()).collect();
        let have: f64 = places.iter().map(|place| own[*place]).sum();
        // What claims together ask for may not be: then the one of fewer subsystems counts.
        own[*places.last().unwrap()] += (share - have).max(0.0);
    }
    let given: f64 = own.iter().sum();
    assert!(given < 1.0, "{shares:?}");
    own[FUNCTIONS.len()] = 1.0 - given;
    let stacks = (1..).zip(own).map(|(function, share)| Stack {
        frames: vec![0, function],
        samples: (share * 1e6) as u64,
    });
    let functions = FUNCTIONS.iter().map(|(_, function)| *function);
    let frames = ["client"].into_iter().chain(functions).chain(["[user]"]);
    Some(ProfileWindow {
        block,
        attempt: 0,
        cell,
        span_ns: 500_000_000,
        frequency_hz: 997,
        cpus: CPUS,
        elsewhere: 0,
        lost: 0,
        frames: frames.map(str::to_owned).collect(),
        stacks: stacks.collect(),
    })
}
