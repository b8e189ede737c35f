//! A process that takes CPUs from all others in random bursts, half of the time.

use std::io::{Read, Write};
use std::process::Command;
use std::sync::mpsc;
use std::time::Duration;

use hopyard_bench::Helper;
use hopyard_net::{clock, cpu};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use crate::bench::Bench;
use crate::experiment::Failure;

/// What disturbs the machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Pattern {
    /// A real-time thread takes one CPU for 0.2 to 3 s at a time, as a hypervisor does.
    RealTime,
    /// An ordinary thread on each of two CPUs for 20 to 300 ms at a time, as another program does.
    Ordinary,
}

impl Pattern {
    pub(crate) const ALL: [Self; 2] = [Self::RealTime, Self::Ordinary];

    /// In a word, for names of files.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::RealTime => "real-time",
            Self::Ordinary => "ordinary",
        }
    }

    /// In words.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::RealTime => "a real-time hog of one CPU, bursts of 0.2 to 3 s",
            Self::Ordinary => "ordinary hogs of two CPUs, bursts of 20 to 300 ms",
        }
    }
}

/// Which CPUs to take, and for how long.
#[derive(Debug, Clone, PartialEq, clap::Args)]
pub(crate) struct Plan {
    /// CPUs, one thread each.
    #[arg(long, value_delimiter = ',')]
    cpus: Vec<usize>,
    /// Run before all others (`SCHED_FIFO`).
    #[arg(long)]
    real_time: bool,
    /// Shortest burst and pause, ms.
    #[arg(long)]
    least_ms: u64,
    /// Longest burst and pause, ms.
    #[arg(long)]
    most_ms: u64,
    /// Seed of the lengths.
    #[arg(long)]
    seed: u64,
}

impl Plan {
    fn of(pattern: Pattern, (first, last): (usize, usize), seed: u64) -> Self {
        match pattern {
            // The last CPU has the server of every cell, and both ends if they share one.
            Pattern::RealTime => Self {
                cpus: vec![last],
                real_time: true,
                least_ms: 200,
                most_ms: 3000,
                seed,
            },
            Pattern::Ordinary => Self {
                cpus: vec![first, last],
                real_time: false,
                least_ms: 20,
                most_ms: 300,
                seed,
            },
        }
    }

    fn arguments(&self) -> Vec<String> {
        let cpus: Vec<String> = self.cpus.iter().map(ToString::to_string).collect();
        let mut words = vec!["hog".to_owned()];
        for (name, value) in [
            ("--cpus", cpus.join(",")),
            ("--least-ms", self.least_ms.to_string()),
            ("--most-ms", self.most_ms.to_string()),
            ("--seed", self.seed.to_string()),
        ] {
            words.extend([name.to_owned(), value]);
        }
        if self.real_time {
            words.push("--real-time".to_owned());
        }
        words
    }

    /// The length of a burst or a pause.
    fn length(&self, random: &mut ChaCha8Rng) -> Duration {
        Duration::from_millis(random.random_range(self.least_ms..=self.most_ms))
    }
}

/// The hog's own process: reports when all its threads are ready, and ends with its input.
pub(crate) fn main(plan: &Plan) -> Result<(), Failure> {
    let (tell, ready) = mpsc::channel();
    for (stream, &cpu) in (0..).zip(&plan.cpus) {
        let (plan, tell) = (plan.clone(), tell.clone());
        std::thread::spawn(move || hog(&plan, cpu, stream, &tell));
    }
    for _ in &plan.cpus {
        let ended = |_| Failure::Burner("hog ended before it began".to_owned());
        ready.recv().map_err(ended)??;
    }
    let mut out = std::io::stdout().lock();
    writeln!(out, "ready")?;
    out.flush()?;
    // Nothing is written to it; the threads end with the process.
    std::io::stdin().lock().read_to_end(&mut Vec::new())?;
    Ok(())
}

fn hog(plan: &Plan, cpu: usize, stream: u64, ready: &mpsc::Sender<Result<(), Failure>>) {
    let placed = cpu::pin_current_thread(&[cpu]).map_err(Failure::from);
    let prompt = plan.real_time.then(cpu::RealtimeGuard::new);
    let may = match prompt {
        Some(None) => Err(Failure::Burner(
            "hog may not run in real time: that takes CAP_SYS_NICE".to_owned(),
        )),
        _ => Ok(()),
    };
    let placed = placed.and(may);
    let is_placed = placed.is_ok();
    // The receiver waits for exactly one answer of each thread, so this cannot fail.
    let _ = ready.send(placed);
    if !is_placed {
        return;
    }
    let mut random = ChaCha8Rng::seed_from_u64(plan.seed);
    random.set_stream(stream);
    loop {
        std::thread::sleep(plan.length(&mut random));
        let burst = hopyard::units::ns(plan.length(&mut random));
        let until = clock::monotonic_ns() + burst;
        while clock::monotonic_ns() < until {
            std::hint::spin_loop();
        }
    }
}

/// Starts a hog and waits until it is ready. The same seed gives the same bursts.
pub(crate) fn start(bench: &Bench, pattern: Pattern, seed: u64) -> Result<Helper, Failure> {
    let plan = Plan::of(pattern, bench.two_cpus()?, seed);
    let mut command = Command::new(std::env::current_exe()?);
    Helper::start(command.args(plan.arguments()))?
        .ok_or_else(|| Failure::Burner("hog did not start".to_owned()))
}

/// Checks that the hog still runs.
pub(crate) fn check_still_runs(hog: &mut Helper) -> Result<(), Failure> {
    if hog.has_ended()? {
        return Err(Failure::Burner("hog ended before the table did".to_owned()));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bursts_are_as_long_as_pauses_and_within_their_bounds() {
        for pattern in Pattern::ALL {
            let plan = Plan::of(pattern, (0, 1), 3);
            let random = &mut ChaCha8Rng::seed_from_u64(plan.seed);
            let lengths: Vec<u128> = (0..2000).map(|_| plan.length(random).as_millis()).collect();
            let bounds = u128::from(plan.least_ms)..=u128::from(plan.most_ms);
            assert!(lengths.iter().all(|length| bounds.contains(length)));
            let half = |skip| lengths.iter().skip(skip).step_by(2).sum::<u128>() as f64;
            let share = half(1) / (half(0) + half(1));
            assert!((share - 0.5).abs() < 0.03, "{share}");
        }
    }
}
