//! Evidence made for a rule: cells of the report's own plans whose samples put each part within its bounds, wholly
//! outside them, or across one.

use std::collections::BTreeMap;

use super::*;
use crate::claims::rule::Shape;
use crate::model::{
    ArrivalInterval, ArrivalSeries, Arrivals, BusyCpus, Cell, Counted, FlowArrivals, Measurement,
    ProfileWindow, QueueChanges, RunLengths, Scheduling, Stack,
};

/// How a part of a rule is to lie.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Aim {
    Inside,
    Outside,
    Across,
}

pub(super) const BLOCKS: u32 = 10;
/// As many as the machines of the reports had.
const CPUS: u32 = 4;

/// How a value differs between blocks.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Noise {
    /// By a thousandth, up and down.
    Little,
    /// By a tenth, all cells together.
    Wide,
    /// By up to a twentieth, each cell by itself.
    Rough,
    /// 0 but for one block.
    Once,
}

/// What a cell shows of a quantity.
#[derive(Debug, Clone, Copy)]
struct Shown {
    mean: f64,
    noise: Noise,
}

impl Shown {
    fn in_block(self, block: u32, cell: usize) -> f64 {
        let side = |odd: bool| if odd { -1.0 } else { 1.0 };
        let together = side(block % 2 == 1);
        // Neighbouring cells go different ways, so that ratios have a spread too.
        let apart = side((block as usize + cell) % 2 == 1);
        match self.noise {
            Noise::Little => self.mean * (1.0 + 0.001 * apart),
            Noise::Wide => self.mean * (1.0 + 0.1 * together),
            Noise::Rough => {
                let salt = (block as usize * 7 + cell * 3) % 11;
                self.mean * (1.0 + 0.01 * (salt as f64 - 5.0))
            }
            Noise::Once => f64::from(u8::from(block == 0)) * 0.01,
        }
    }
}

/// Cells of a plan with what they show, by quantity.
struct Made {
    plan: plan::Plan,
    cells: Vec<(Cell, BTreeMap<String, Shown>)>,
}

/// Everything that a claim is judged by.
#[derive(Default)]
pub(super) struct World {
    plans: BTreeMap<String, Made>,
    evidence: Evidence,
}

impl World {
    /// Has a part of a rule lie like that. Later parts build on what earlier ones made of their cells.
    pub(super) fn aim(&mut self, chosen: Chosen<'_>, check: &Check, aim: Aim) {
        match &check.judge {
            Judge::Does { does } => {
                let deed = bench::Deed {
                    passed: aim == Aim::Inside,
                    seen: "seen".to_owned(),
                };
                self.evidence.done.insert(does.clone(), Ok(deed));
            }
            Judge::Bench { bench } => {
                let series = |shown: Shown, place| -> Vec<f64> {
                    let in_block = |block| shown.in_block(block, place);
                    (0..BLOCKS).map(in_block).collect()
                };
                let is_level = bench.starts_with("copies");
                let timed = bench::Timed {
                    what: bench.clone(),
                    values: series(target(check, aim), 0),
                    base: (!is_level).then(|| series(little(1.0), 1)),
                };
                self.evidence.benched.insert(bench.clone(), Ok(timed));
            }
            _ => self.aim_cells(chosen.plan_of(check), check, aim),
        }
    }

    fn aim_cells(&mut self, plan: &str, check: &Check, aim: Aim) {
        let made = self.plans.entry(plan.to_owned()).or_insert_with(|| {
            let plan = plan::find(plan).unwrap();
            let mut cells: Vec<(Cell, _)> = Vec::new();
            for cell in cells_without_a_host(&plan) {
                if !cells.iter().any(|(known, _)| *known == cell) {
                    cells.push((cell, BTreeMap::new()));
                }
            }
            Made { plan, cells }
        });
        made.aim(check, aim);
    }

    pub(super) fn evidence(mut self) -> Evidence {
        self.evidence.runs = self.plans.into_values().map(Made::run).collect();
        self.evidence
    }
}

fn little(mean: f64) -> Shown {
    Shown {
        mean,
        noise: Noise::Little,
    }
}

/// The figure that lies like that.
fn target(check: &Check, aim: Aim) -> Shown {
    let bound = check.at_least.or(check.at_most).unwrap();
    let mean = match (aim, check.at_least, check.at_most) {
        (Aim::Inside, Some(low), Some(high)) => f64::midpoint(low, high),
        (Aim::Inside, Some(low), None) => low * 1.05,
        (Aim::Inside, ..) => bound * 0.95,
        (Aim::Outside, Some(low), _) => low * 0.5,
        (Aim::Outside, _, Some(0.0)) => 0.5,
        (Aim::Outside, ..) => bound * 1.5,
        (Aim::Across, ..) => bound,
    };
    let noise = match aim {
        Aim::Across if bound == 0.0 => Noise::Once,
        Aim::Across => Noise::Wide,
        _ => Noise::Little,
    };
    Shown { mean, noise }
}

/// What a cell shows of a quantity that no rule binds.
fn usual(name: &str) -> f64 {
    match name {
        "goodput_bps" => 1e9,
        "efficiency_bps_per_core" => 4e9,
        "normalized_bps_per_cpu_percent" => 4e7,
        "cpu_ns_per_byte" | "busy_cores" => 1.0,
        "softirq_ratio" => 0.2,
        "settling_s" => 200.0,
        // Of more subsystems it is more.
        name if name.ends_with("share_ratio") => {
            0.02 * 3.0_f64.powi(i32::try_from(name.split('+').count()).unwrap())
        }
        _ => 1e5,
    }
}

impl Made {
    fn aim(&mut self, check: &Check, aim: Aim) {
        let cells: Vec<Cell> = self.cells.iter().map(|(cell, _)| cell.clone()).collect();
        let (what, _) = check.of_cells().unwrap();
        let place = |cell: &Cell| cells.iter().position(|known| known == cell).unwrap();
        let figure = target(check, aim);
        for (own, others) in demand::pairs(check, &cells) {
            let name = what.name(own.load);
            let mut base = |other: &Cell| {
                let shown = &mut self.cells[place(other)].1;
                shown
                    .entry(name.clone())
                    .or_insert(little(usual(&name)))
                    .mean
            };
            let mut set: Vec<(&Cell, Shown)> = Vec::new();
            match &check.judge {
                Judge::Ratio { .. } => set.extend(others.iter().copied().map(|other| {
                    let mean = figure.mean * base(other);
                    (own, Shown { mean, ..figure })
                })),
                Judge::Level { .. } => set.push((own, figure)),
                Judge::Share { .. } => {
                    let unit = base(others[1]);
                    let mean = (2.0 - figure.mean) * unit;
                    set.push((own, little(2.0 * unit)));
                    set.push((others[0], Shown { mean, ..figure }));
                }
                Judge::Peak { last, .. } => {
                    let mean = 1e9 * figure.mean;
                    let shown = match own.axes.flows {
                        2 => little(1e9),
                        n if n == *last => Shown { mean, ..figure },
                        _ => little(0.9e9),
                    };
                    set.push((own, shown));
                }
                Judge::Curve { shape, .. } => {
                    let of = |cell, is_base| (cell, along(*shape, aim, is_base, cell));
                    set.push(of(own, false));
                    set.extend(others.iter().copied().map(|other| of(other, true)));
                }
                Judge::Does { .. } | Judge::Bench { .. } => {}
            }
            for (cell, shown) in set {
                self.cells[place(cell)].1.insert(name.clone(), shown);
            }
        }
    }

    fn run(self) -> Run {
        let mut run = hand_made(&["veth"]);
        run.header.plan.clone_from(&self.plan.name);
        run.header.confidence = self.plan.confidence;
        run.header.environment.cpus = CPUS;
        let planned = run.header.cells.remove(0);
        let kept = self
            .cells
            .into_iter()
            .filter(|(_, shown)| !shown.is_empty());
        for (place, (cell, shown)) in kept.enumerate() {
            for block in 0..BLOCKS {
                let values: BTreeMap<&str, f64> = shown
                    .iter()
                    .map(|(name, shown)| (name.as_str(), shown.in_block(block, place)))
                    .collect();
                let outcome = Outcome::Measured(Box::new(sample(&values)));
                push(&mut run, block, 0, place, outcome);
                run.profiles.extend(profile(&values, block, place));
            }
            let mut planned = planned.clone();
            planned.cell = cell;
            run.header.cells.push(planned);
        }
        run
    }
}

/// A curve of a shape at a cell's number of flows; a rule's curve has it and its base has not, or the other way round.
fn along(shape: Shape, aim: Aim, is_base: bool, cell: &Cell) -> Shown {
    let n = f64::from(cell.axes.flows);
    let bends = |at: f64| 1e6 * (10.0 + n + 9.0 * (n - at).max(0.0));
    let wide = |mean| Shown {
        mean,
        noise: Noise::Wide,
    };
    // The greater count of the two.
    let is_late = is_base != (aim == Aim::Inside);
    match (shape, aim) {
        // Full at 16 in some blocks and not in others: 16 or 20 of the mean.
        (Shape::Fullness, Aim::Across) if n == 16.0 && !is_base => wide(0.99),
        (Shape::Fullness, Aim::Across) => little(if n >= 16.0 { 1.1 } else { 0.6 }),
        (Shape::Fullness, _) => {
            let full = if is_late { 20.0 } else { 4.0 };
            little(if n >= full { 1.0 } else { 0.6 })
        }
        (Shape::Leap, Aim::Inside) => little(if n >= 20.0 { 1.0 } else { 0.45 }),
        (Shape::Leap, Aim::Outside) => little(0.45 + 0.01 * n),
        (Shape::Leap, Aim::Across) if n >= 20.0 => wide(0.9),
        (Shape::Leap, Aim::Across) => little(0.5),
        (Shape::Slopes, Aim::Inside) => little(bends(20.0)),
        (Shape::Slopes, Aim::Across) if n > 20.0 => wide(1e6 * (10.0 + n + (n - 20.0))),
        (Shape::Slopes, _) => little(1e6 * (10.0 + n)),
        (Shape::Knee, Aim::Across) => Shown {
            mean: bends(16.0),
            noise: Noise::Rough,
        },
        (Shape::Knee, _) => little(bends(if is_late { 8.0 } else { 20.0 })),
        (Shape::Line, Aim::Inside) => little(1e6 * n),
        // A zigzag; with that of 0.66 about the line, R² is 0.95.
        (Shape::Line, aim) => {
            let size = if aim == Aim::Outside { 50.0 } else { 0.66 };
            let side = if (n / 2.0) % 2.0 == 1.0 { 1.0 } else { -1.0 };
            little(1e6 * (n + 100.0 + size * side))
        }
    }
}

/// A window that shows these values.
fn sample(values: &BTreeMap<&str, f64>) -> Measurement {
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
    m.client_cpus = has("client_cpu_busy_ratio").map(|busy_ratio| BusyCpus {
        cpus: 1,
        busy_ratio,
    });
    let counted = |name: &str| has(name).map(|v| count(v * window_s));
    m.client_scheduling = Scheduling {
        voluntary_switches: Some(0),
        involuntary_switches: counted("client_context_switches_per_s"),
        migrations: None,
        cache_misses: counted("client_cache_misses_per_s"),
    };
    m.arrivals = Some(arrivals(values, m.window_ns as f64));
    m
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

/// Samples of which these shares fell into subsystems; what more of them have went into the last one named.
fn profile(values: &BTreeMap<&str, f64>, block: u32, cell: usize) -> Option<ProfileWindow> {
    let mut shares: Vec<(Vec<&str>, f64)> = Vec::new();
    for (name, share) in values {
        if let Some(names) = name.strip_suffix(" share_ratio") {
            shares.push((names.split('+').collect(), *share));
        }
    }
    shares.sort_by_key(|(names, _)| names.len());
    shares.first()?;
    let mut stacks = Vec::new();
    let mut given = 0.0;
    for (names, share) in &shares {
        let function = FUNCTIONS
            .iter()
            .position(|(name, _)| Some(name) == names.last());
        assert!(*share >= given, "{shares:?}");
        stacks.push(Stack {
            frames: vec![0, u32::try_from(function.unwrap()).unwrap() + 1],
            samples: ((share - given) * 1e6) as u64,
        });
        given = *share;
    }
    assert!(given < 1.0, "{shares:?}");
    let user = u32::try_from(FUNCTIONS.len()).unwrap() + 1;
    stacks.push(Stack {
        frames: vec![0, user],
        samples: ((1.0 - given) * 1e6) as u64,
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
        stacks,
    })
}
