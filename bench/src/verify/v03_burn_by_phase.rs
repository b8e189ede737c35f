//! V3: the CPU time that a process burns is measured correctly at every phase of the tick.
//!
//! The burner plays the load: the meter's cost of the load is compared with the burning thread's own clock. A second
//! burner that wakes as often and burns nothing shows the machine's cost of waking, which only the meter's figure
//! contains.

use hopyard::meter::{Clocks, CpuMeter, OwnProcesses, environment};
use hopyard::model::CpuUse;
use hopyard_net::clock;
use rand::seq::SliceRandom;

use crate::bench::{Bench, median, wait_until};
use crate::burner::{Burner, Burnt, Plan};
use crate::experiment::{Experiment, Failure, Row, Verdict};

pub(crate) static EXPERIMENT: Experiment = Experiment {
    id: "V3",
    title: "burn of 25 % of a CPU in periods of the tick, at 8 phases of it, against its own clock",
    only_when_named: false,
    run,
};

const PHASES: u64 = 8;
const DUTY: f64 = 0.25;
const TOLERANCE: f64 = 0.01;
/// A window is disturbed if kernel threads use more than this share of a CPU; at rest it is half of that.
const BURST: f64 = 0.001;
/// From the order to burn to the first burn: time for the process to start.
const LEAD_NS: u64 = 60_000_000;

/// One window with a burner, or with a burner that only wakes.
struct Seen {
    used: CpuUse,
    burnt: Burnt,
    /// CPU time in the window of kernel threads that may work for a load, ns; a burner causes them no work.
    kernel_ns: f64,
}

fn run(bench: &Bench) -> Result<Vec<Row>, Failure> {
    let meter = CpuMeter::new()?;
    let hz = tick_hz(&meter);
    let period_ns = 1_000_000_000 / hz;
    let (_, cpu) = bench.two_cpus()?;
    let window_ns = bench.pick(3_000_000_000, 2_000_000_000);
    let mut order: Vec<u64> = (0..PHASES).collect();
    order.shuffle(&mut bench.rng(3));
    let mut quiets = Vec::new();
    let mut windows = Vec::new();
    for phase in order {
        // The tick fires at multiples of its period of CLOCK_MONOTONIC (tick_setup_sched_timer).
        let offset_ns = period_ns * phase / PHASES;
        let run = |duty| burn(&meter, cpu, period_ns, offset_ns, duty, window_ns);
        quiets.push(quiet(&meter, window_ns)?);
        let seen = undisturbed(|| run(DUTY))?;
        let waking = undisturbed(|| run(0.0))?;
        windows.push((phase, seen, waking));
    }
    let quiet_cores = median(quiets.into_iter());
    windows.sort_by_key(|(phase, ..)| *phase);
    Ok(windows
        .iter()
        .map(|(phase, seen, waking)| row(*phase, hz, quiet_cores, seen, waking))
        .collect())
}

fn tick_hz(meter: &CpuMeter) -> u64 {
    const USUAL: u64 = 250;
    environment::capture(meter)
        .kernel_options
        .get("CONFIG_HZ")
        .and_then(|hz| hz.parse().ok())
        .filter(|hz| (24..=10_000).contains(hz))
        .unwrap_or(USUAL)
}

/// CPUs' worth of time that the idle machine uses, over a window as long as those with a burner.
fn quiet(meter: &CpuMeter, window_ns: u64) -> Result<f64, Failure> {
    let opened = meter.open(OwnProcesses::default())?;
    wait_until(clock::monotonic_ns() + window_ns)?;
    let used = meter.close(OwnProcesses::default())?.since(&opened);
    Ok((used.net().middle_ns() / used.elapsed_ns).max(0.0))
}

/// Repeats a window in which other programs started processes, the hypervisor took time, or kernel threads ran. A
/// process that ends within the window takes its clock with it, and the meter cannot tell a `kworker`'s burst (up to 18
/// ms seen) from work for the load.
fn undisturbed(mut window: impl FnMut() -> Result<Seen, Failure>) -> Result<Seen, Failure> {
    const TRIES: usize = 5;
    let mut seen = window()?;
    for _ in 1..TRIES {
        if seen.used.forks == 0
            && seen.used.steal_ns < 0.01 * seen.used.elapsed_ns
            && seen.kernel_ns < BURST * seen.used.elapsed_ns
        {
            break;
        }
        seen = window()?;
    }
    Ok(seen)
}

fn burn(
    meter: &CpuMeter,
    cpu: usize,
    period_ns: u64,
    offset_ns: u64,
    duty: f64,
    window_ns: u64,
) -> Result<Seen, Failure> {
    let start_ns = (clock::monotonic_ns() + LEAD_NS).next_multiple_of(period_ns) + offset_ns;
    let periods = window_ns / period_ns;
    let mut burner = Burner::start(&Plan {
        cpu,
        start_ns,
        period_ns,
        duty,
        duty_at_last: duty,
        ramp_ns: 0,
        periods,
    })?;
    let pids = [burner.pid()];
    let ours = OwnProcesses {
        pids: &pids,
        cgroup: None,
    };
    // The window contains all of the burning, but not the start of the process.
    wait_until(start_ns - LEAD_NS / 6)?;
    let kernel = Clocks::kernel_threads()?;
    let opened = meter.open(ours)?;
    wait_until(start_ns + (periods + 1) * period_ns)?;
    let used = meter.close(ours)?.since(&opened);
    let kernel_ns = Clocks::kernel_threads()?.since(&kernel) as f64;
    let burnt = burner.stop()?;
    Ok(Seen {
        used,
        burnt,
        kernel_ns,
    })
}

fn row(phase: u64, hz: u64, quiet_cores: f64, seen: &Seen, waking: &Seen) -> Row {
    let own = seen.burnt.cpu_ns as f64;
    let accounted = cost(&seen.used, quiet_cores);
    let wake_ns = cost(&waking.used, quiet_cores) - waking.burnt.cpu_ns as f64;
    let split = seen.used.split;
    let ticks = split.user_ns + split.system_ns + split.irq_ns + split.softirq_ns;
    let off = accounted / own - 1.0;
    let percent = |ns: f64| 100.0 * (ns / own - 1.0);
    Row {
        id: "V3",
        what: format!("phase {phase}/{PHASES} of the {hz} Hz tick"),
        promised: format!("{:.1} ms by its own clock ± 1 %", own / 1e6),
        seen: format!(
            "{:.1} ms, {:+.2} %; less {} wake-ups' cost {:+.2} %; by ticks {:+.0} %; steal {:.0} ms, forks {}, kernel threads {:.1} ms",
            accounted / 1e6,
            100.0 * off,
            waking.burnt.burns,
            percent(accounted - wake_ns),
            percent(ticks),
            seen.used.steal_ns / 1e6,
            seen.used.forks,
            seen.kernel_ns / 1e6,
        ),
        verdict: Verdict::of(off.abs() <= TOLERANCE),
    }
}

/// The cost of the load as the meter computes it.
fn cost(used: &CpuUse, quiet_cores: f64) -> f64 {
    used.net().middle_ns() - quiet_cores * used.elapsed_ns
}
