//! Runs made by hand for the tests of this crate.

use std::collections::BTreeMap;

use crate::loads::Unit;
use crate::model::{
    Axes, CellReport, CellStatus, CpuAccounting, EndpointMachine, EndpointUsed, EndpointsUsed,
    Environment, LoadKind, Peer, RunReport, RunSummary, VerdictReport, Warning, WarningCode,
    WayReport,
};
use crate::stats::{Estimate, Verdict};

const BLOCKS: usize = 10;

/// A run with no cells.
pub(super) fn run() -> RunReport {
    RunReport {
        schema: "hopyard/run/1".to_owned(),
        run: RunSummary {
            id: "20260301T101500Z-paths".to_owned(),
            plan: "paths".to_owned(),
            seed: 42,
            started: "2026-03-01T10:15:00Z".to_owned(),
            blocks: 10,
            window_s: 0.3,
            warm_up_s: 0.1,
            measured_s: None,
            confidence: 0.95,
            margin: 0.02,
            half_width: 0.025,
            half_width_reached: true,
            base: Some("veth".to_owned()),
            quick_look: false,
            complete: true,
            elsewhere: None,
            turns: None,
            settings: None,
            traces: Vec::new(),
            environment: environment(),
        },
        published: Vec::new(),
        offloads: None,
        recommendation: None,
        cells: Vec::new(),
        curves: Vec::new(),
        gate: None,
        warnings: Vec::new(),
    }
}

fn environment() -> Environment {
    Environment {
        hopyard_version: "0.1.0".to_owned(),
        hopyard_revision: None,
        hostname: "lab".to_owned(),
        kernel_release: "6.18.5".to_owned(),
        kernel_version: "#1 SMP".to_owned(),
        architecture: "x86_64".to_owned(),
        kernel_command_line: "quiet".to_owned(),
        cpu_model: "AMD EPYC 7B13".to_owned(),
        cpu_hz: None,
        cpus: 2,
        split_cpus: None,
        numa_nodes: 1,
        memory_bytes: 8 << 30,
        hypervisor: Some("KVM".to_owned()),
        clock_source: "kvm-clock".to_owned(),
        frequency_governor: None,
        mitigations: BTreeMap::new(),
        cpu_accounting: CpuAccounting::IdleClock,
        others_hidden: None,
        kernel_options: BTreeMap::new(),
        sysctls: BTreeMap::new(),
        debug_features: Vec::new(),
    }
}

/// Adds a warning.
pub(super) fn warn(report: &mut RunReport, code: WarningCode, message: &str) {
    report.warnings.push(Warning {
        code,
        message: message.to_owned(),
    });
}

/// An estimate with a symmetric interval of that relative half-width.
pub(super) fn estimate(value: f64, half: f64) -> Estimate {
    Estimate {
        value,
        low: value * (1.0 - half),
        high: value * (1.0 + half),
        confidence: 0.95,
        n: BLOCKS,
    }
}

/// A cell being built.
pub(super) struct Builder(CellReport);

/// Ends on two machines with so many CPUs, or on one of as many as the client's.
pub(super) fn ends(client: u32, server: u32, are_one_machine: bool) -> EndpointsUsed {
    let end = |cpus| EndpointUsed {
        connect: "ssh host".to_owned(),
        kernel: "6.1".to_owned(),
        device: "eth0".to_owned(),
        is_on_this_kernel: false,
        round_trip_ns: 100_000,
        machine: Some(EndpointMachine {
            hostname: "host".to_owned(),
            cpu_model: None,
            cpus,
            clock_source: None,
            congestion_control: None,
            cpu_accounting: CpuAccounting::IdleClock,
        }),
        interface: None,
    };
    EndpointsUsed {
        server_address: "192.0.2.2".to_owned(),
        client: end(client),
        server: end(server),
        are_one_machine: Some(are_one_machine),
    }
}

/// A cell without failures, with the default of every axis and no figures yet.
pub(super) fn cell(path: &str, peer: Peer, load: LoadKind) -> Builder {
    Builder(CellReport {
        path: path.to_owned(),
        peer,
        load,
        axes: Axes::default().for_cell(load, peer, &[]),
        status: CellStatus::Ok,
        cause: None,
        estimates: BTreeMap::new(),
        verdicts: BTreeMap::new(),
        two_modes: BTreeMap::new(),
        window_s: None,
        unsettled_samples: 0,
        failed_samples: 0,
        receive_window_limited_ratio: None,
        send_buffer_limited_ratio: None,
        cpu_split_ratio: BTreeMap::new(),
        device_drops: None,
        lost_datagrams: None,
        searches: Vec::new(),
        flows: Vec::new(),
        latency: None,
        series: None,
        offloads: BTreeMap::new(),
        offloads_by_device: Vec::new(),
        link: Vec::new(),
        filter_sees: None,
        chains: None,
        offers: None,
        rules_instead: None,
        datapath: None,
        guest: None,
        endpoints: None,
        clocks: None,
        machine_steal_ratio: BTreeMap::new(),
        way: WayReport {
            proved: true,
            problems: Vec::new(),
            devices: Vec::new(),
        },
        profile: None,
    })
}

impl Builder {
    pub(super) fn axes(mut self, change: impl FnOnce(&mut Axes)) -> Self {
        change(&mut self.0.axes);
        self
    }

    pub(super) fn estimate(mut self, name: &str, value: f64, half: f64) -> Self {
        self.0
            .estimates
            .insert(name.to_owned(), estimate(value, half));
        self
    }

    pub(super) fn verdict(
        mut self,
        name: &str,
        ratio: f64,
        half: f64,
        verdict: Option<Verdict>,
    ) -> Self {
        let report = VerdictReport {
            base: "veth".to_owned(),
            ratio: estimate(ratio, half),
            verdict,
            smallest_detectable: Some(half * 1.4),
            trips_gate: None,
            gate_catches_ratio: None,
        };
        self.0.verdicts.insert(name.to_owned(), report);
        self
    }

    pub(super) fn failed(self, cause: &str) -> Self {
        self.without(CellStatus::Failed, cause)
    }

    pub(super) fn unsupported(self, cause: &str) -> Self {
        self.without(CellStatus::Unsupported, cause)
    }

    fn without(mut self, status: CellStatus, cause: &str) -> Self {
        self.0.status = status;
        self.0.cause = Some(cause.to_owned());
        self.0.way.proved = false;
        self
    }

    pub(super) fn with(mut self, change: impl FnOnce(&mut CellReport)) -> Self {
        change(&mut self.0);
        self
    }

    pub(super) fn build(self) -> CellReport {
        self.0
    }
}

/// (path, its speed over veth, its CPU cost over veth)
const PATHS: [(&str, f64, f64); 6] = [
    ("veth", 1.0, 1.0),
    ("bridge", 0.912, 1.104),
    ("bridge-nf", 0.767, 1.312),
    ("macvlan", 1.121, 0.905),
    ("ipvlan", 1.118, 0.899),
    ("netkit", 1.004, 0.995),
];

/// The verdict for a ratio known to `half`.
fn judge(ratio: f64, half: f64) -> Verdict {
    let off = (ratio - 1.0).abs();
    if off > half {
        Verdict::Different
    } else if off + half < 0.02 {
        Verdict::Equivalent
    } else {
        Verdict::Inconclusive
    }
}

/// Figures of one load on veth: (name, value, what it is proportional to: speed 1, cost −1, neither 0).
fn on_veth(load: LoadKind) -> &'static [(&'static str, f64, i8)] {
    match load.info().unit {
        Unit::Byte => &[
            ("goodput_bps", 21.43e9, 1),
            ("packets_per_s", 41_800.0, 1),
            ("cpu_ns_per_byte", 0.6124, -1),
            ("cpu_ns_per_packet", 39_120.0, -1),
            ("busy_cores", 1.641, 0),
            ("bytes_per_skb", 61_440.0, 0),
            ("retransmits_per_s", 0.0, 0),
        ],
        Unit::Packet => &[
            ("goodput_bps", 4.117e9, 1),
            ("sent_bps", 4.711e9, 1),
            ("packets_per_s", 367_600.0, 1),
            ("lost_ratio", 0.126, 0),
            ("cpu_ns_per_byte", 3.84, -1),
            ("cpu_ns_per_packet", 5376.0, -1),
            ("busy_cores", 1.976, 0),
            ("bytes_per_skb", 1400.0, 0),
        ],
        Unit::Transaction if load.connects_anew() => &[
            ("transactions_per_s", 9_812.0, 1),
            ("cpu_ns_per_transaction", 171_300.0, -1),
            ("latency_p50_ns", 98_300.0, -1),
            ("latency_p99_ns", 161_800.0, -1),
            ("latency_p999_ns", 391_800.0, -1),
            ("busy_cores", 1.681, 0),
        ],
        Unit::Transaction => &[
            ("transactions_per_s", 13_120.0, 1),
            ("cpu_ns_per_transaction", 62_900.0, -1),
            ("latency_p50_ns", 71_900.0, -1),
            ("latency_p99_ns", 131_800.0, -1),
            ("latency_p999_ns", 391_800.0, -1),
            ("busy_cores", 0.826, 0),
        ],
    }
}

/// Six paths under five loads, without failures.
pub(super) fn paths() -> RunReport {
    let mut report = run();
    let loads = [
        LoadKind::TcpStream,
        LoadKind::TcpRr,
        LoadKind::TcpCrr,
        LoadKind::UdpStream,
        LoadKind::UdpRr,
    ];
    for (l, load) in loads.into_iter().enumerate() {
        for (p, (path, speed, cost)) in PATHS.into_iter().enumerate() {
            report
                .cells
                .push(figures(path, load, speed, cost, l * 6 + p));
        }
    }
    warn(
        &mut report,
        WarningCode::CongestionControl,
        "This machine's default congestion control is bbr; the run used cubic, as asked, so \
         programs that choose nothing will see other figures: pass --set congestion=bbr to measure those.",
    );
    warn(
        &mut report,
        WarningCode::Steal,
        "The hypervisor took 1.4 % of the CPU time.",
    );
    report
}

fn figures(path: &str, load: LoadKind, speed: f64, cost: f64, salt: usize) -> CellReport {
    // Widths between 0.4 % and 3.6 %, the same in every test run.
    let half = 0.004 * [1.0, 3.0, 2.0, 9.0, 1.5, 4.0, 2.5][salt % 7];
    on_veth(load)
        .iter()
        .fold(
            cell(path, Peer::Local, load),
            |cell, &(name, value, follows)| {
                let factor = match follows {
                    1 => speed,
                    -1 => cost,
                    _ => 1.0,
                };
                let cell = cell.estimate(name, value * factor, half);
                if path == "veth" || follows == 0 {
                    cell
                } else {
                    cell.verdict(name, factor, half, Some(judge(factor, half)))
                }
            },
        )
        .build()
}
