//! Runs made by hand, for tests here and in other crates (feature `testing`).

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

pub mod curves;
pub mod offloads;
mod profiles;

pub use profiles::profile_window;

use std::collections::BTreeMap;

use crate::model::stored::{End, Header, PlannedCell, Run, SCHEMA};
use crate::model::{
    Arrived, Axes, Cell, Counted, CpuAccounting, CpuUse, DeviceCount, Environment, Latency,
    LoadKind, Measurement, Outcome, PathProof, Peer, Sample, Scheduling, Searched, TickSplit,
};
use crate::stats::search::{Goal, GoalResult};

const WINDOW_NS: u64 = 200_000_000;

fn environment() -> Environment {
    Environment {
        hopyard_version: "0".into(),
        hopyard_revision: None,
        hostname: "h".into(),
        kernel_release: "6".into(),
        kernel_version: "v".into(),
        architecture: "x".into(),
        kernel_command_line: String::new(),
        cpu_model: "cpu".into(),
        cpu_hz: Some(2e9),
        cpus: 2,
        split_cpus: None,
        numa_nodes: 1,
        memory_bytes: 1,
        hypervisor: None,
        clock_source: "tsc".into(),
        frequency_governor: None,
        mitigations: BTreeMap::new(),
        cpu_accounting: CpuAccounting::IdleClock,
        others_hidden: None,
        kernel_options: BTreeMap::new(),
        sysctls: [(
            "net.ipv4.tcp_congestion_control".to_owned(),
            "cubic".to_owned(),
        )]
        .into(),
        debug_features: Vec::new(),
    }
}

pub fn run(paths: &[&str]) -> Run {
    let load = LoadKind::TcpStream;
    let cells = paths.iter().map(|path| PlannedCell {
        cell: Cell {
            path: (*path).to_owned(),
            peer: Peer::Local,
            load,
            axes: Axes::default().for_cell(load, Peer::Local, &[]),
        },
        unsupported: None,
        filter_sees: None,
        chains: None,
        rules_instead: None,
        offers: None,
        ceiling_per_s: None,
    });
    let header = Header {
        schema: SCHEMA.into(),
        id: "id".into(),
        plan: "plan".into(),
        seed: 1,
        started: "2026-01-01T00:00:00Z".into(),
        window_ns: WINDOW_NS,
        warm_up_ns: 0,
        profile_window_ns: None,
        blocks_min: 8,
        blocks_max: 8,
        half_width: 0.025,
        confidence: 0.95,
        margin: 0.02,
        published: Vec::new(),
        time_limit_ns: None,
        profile: false,
        turn_ns: None,
        shortest_turn_ns: None,
        decide: None,
        offloads: None,
        settings: None,
        endpoints: None,
        fail_on: None,
        base: Some("veth".into()),
        base_asked: false,
        limit_asked: false,
        needs: Vec::new(),
        left_out: Vec::new(),
        traces: Vec::new(),
        cells: cells.collect(),
        environment: environment(),
    };
    Run {
        header,
        samples: Vec::new(),
        profiles: Vec::new(),
        end: Some(End::Complete),
    }
}

/// A window in which `bytes` arrived and two CPUs were busy for three quarters.
pub fn measured(bytes: u64) -> Measurement {
    let counted = Counted {
        bytes,
        messages: bytes / 16384,
        transactions: 0,
    };
    Measurement {
        window_ns: WINDOW_NS,
        received: counted,
        sent: counted,
        send_errors: 0,
        timeouts: 0,
        answered: None,
        slices: vec![bytes / 10; 10],
        cpu: CpuUse {
            elapsed_ns: 2e8,
            cpus: 2,
            busy_ns: 3.15e8,
            foreign_ns: 0.05e8,
            controller_ns: 0.05e8,
            baseline_ns: 0.05e8,
            closure: 1.0,
            split: TickSplit {
                user_ns: 1e7,
                system_ns: 2e7,
                softirq_ns: 1e7,
                ..TickSplit::default()
            },
            ..CpuUse::default()
        },
        machines: Vec::new(),
        clocks: None,
        latency: None,
        first_packet: None,
        arrivals: None,
        open_loop: None,
        search: None,
        zero_copy: None,
        tcp: None,
        client_scheduling: Scheduling::default(),
        client_cpus: None,
        server_cpus: None,
        allowed_cpus: None,
        arrived: Some(Arrived {
            bytes,
            skbs: bytes / 60_000,
        }),
        devices: Vec::new(),
        offloads: Vec::new(),
        link: Vec::new(),
        queue_changes: None,
        queue_frames: Vec::new(),
        silent_flows: None,
        missed_windows: 0,
        turns: Vec::new(),
        guest_steal_ratio: None,
        datapath: None,
        guest: None,
        endpoints: None,
        tracking: None,
        connections: None,
        backlog_drops: None,
        way: PathProof {
            proved: true,
            problems: Vec::new(),
        },
    }
}

/// A device that dropped nothing.
/// So many round trips in a window. `varied` moves the 99th percentile a little, since blocks that are equal have no interval.
pub fn round_trips(count: u64, varied: u64) -> Latency {
    Latency {
        count,
        min_ns: 500,
        mean_ns: 1000.0,
        max_ns: 9000,
        quantiles: vec![(0.5, 1000), (0.99, 5000 + varied)],
        histogram: Vec::new(),
    }
}

pub fn device() -> DeviceCount {
    DeviceCount::new("a", "eth0", [1, 1, 1, 1])
}

pub fn push(run: &mut Run, block: u32, attempt: u32, cell: usize, outcome: Outcome) {
    let order = u32::try_from(run.samples.len()).unwrap();
    run.samples.push(Sample {
        block,
        attempt,
        cell,
        order,
        started_ns: 0,
        took_ns: 0,
        outcome,
    });
}

/// Eight blocks of the base with some spread, and of a second path `factor` times as fast.
pub fn compared(factor: f64) -> Run {
    compared_over(8, factor)
}

pub fn compared_over(blocks: u32, factor: f64) -> Run {
    let mut run = run(&["veth", "bridge"]);
    for block in 0..blocks {
        let base = 4e8 * (1.0 + 0.002 * f64::from(block % 4));
        let wobble = 1.0 + 0.001 * f64::from((block + 1) % 3);
        push(
            &mut run,
            block,
            0,
            0,
            Outcome::Measured(Box::new(measured(base as u64))),
        );
        let other = base * factor * wobble;
        push(
            &mut run,
            block,
            0,
            1,
            Outcome::Measured(Box::new(measured(other as u64))),
        );
    }
    run
}

/// A search that found this rate, and that one as too high.
#[must_use]
pub fn searched(rate_per_s: f64, too_high_per_s: Option<f64>) -> Searched {
    Searched {
        goal: Goal {
            loss_ratio: 0.0,
            exceed_ratio: 0.0,
            width_ratio: 0.01,
            initial_trial_s: 0.1,
            final_trial_s: 0.1,
            duration_sum_s: 0.1,
        },
        result: GoalResult {
            regular: too_high_per_s.is_some(),
            lower_per_s: Some(rate_per_s),
            upper_per_s: too_high_per_s,
            throughput_per_s: Some(rate_per_s),
        },
        trials: Vec::new(),
    }
}
