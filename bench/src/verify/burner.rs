//! A process that burns a known share of one CPU, and reports by its own clock how much it was.

use std::io::{BufRead, BufReader, Write};
use std::os::unix::process::CommandExt;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;

use hopyard_net::{clock, cpu, end_within};
use serde::{Deserialize, Serialize};

use crate::experiment::Failure;

/// What to burn, and when.
#[derive(Debug, Clone, Copy, PartialEq, clap::Args)]
pub(crate) struct Plan {
    /// CPU.
    #[arg(long)]
    pub(crate) cpu: usize,
    /// First burn, `CLOCK_MONOTONIC`, ns.
    #[arg(long)]
    pub(crate) start_ns: u64,
    /// From one burn to the next, ns.
    #[arg(long)]
    pub(crate) period_ns: u64,
    /// Share of the period to burn, at first.
    #[arg(long)]
    pub(crate) duty: f64,
    /// Share to burn from `ramp_ns` on; it rises evenly until then.
    #[arg(long)]
    pub(crate) duty_at_last: f64,
    /// How long the duty rises, ns.
    #[arg(long, default_value_t = 0)]
    pub(crate) ramp_ns: u64,
    /// Number of burns; after them it waits for the end of its input.
    #[arg(long)]
    pub(crate) periods: u64,
}

/// What was burnt.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Burnt {
    /// CPU time of the burning thread by its own clock, from the first burn on, ns.
    pub(crate) cpu_ns: u64,
    /// Wall time from the first burn to the end of the last period, ns.
    pub(crate) elapsed_ns: u64,
    /// Burns made.
    pub(crate) burns: u64,
}

impl Burnt {
    /// Its share of one CPU.
    pub(crate) fn share(&self) -> f64 {
        self.cpu_ns as f64 / self.elapsed_ns.max(1) as f64
    }
}

impl Plan {
    /// Burns from 30 ms from now on until it is told to stop, in periods of 4 ms, with a share that rises from the
    /// first value to the second.
    pub(crate) fn from_now(cpu: usize, (duty, duty_at_last): (f64, f64), ramp: Duration) -> Self {
        const LEAD_NS: u64 = 30_000_000;
        const PERIOD_NS: u64 = 4_000_000;
        Self {
            cpu,
            start_ns: (clock::monotonic_ns() + LEAD_NS).next_multiple_of(PERIOD_NS),
            period_ns: PERIOD_NS,
            duty,
            duty_at_last,
            ramp_ns: u64::try_from(ramp.as_nanos()).unwrap_or(u64::MAX),
            periods: u64::MAX / PERIOD_NS / 2,
        }
    }

    /// The share to burn at a time after the start.
    fn duty_at(&self, since_start_ns: u64) -> f64 {
        if since_start_ns >= self.ramp_ns {
            return self.duty_at_last;
        }
        let way = since_start_ns as f64 / self.ramp_ns as f64;
        self.duty + way * (self.duty_at_last - self.duty)
    }

    fn arguments(&self) -> Vec<String> {
        let mut words = vec!["burner".to_owned()];
        for (name, value) in [
            ("cpu", self.cpu.to_string()),
            ("start-ns", self.start_ns.to_string()),
            ("period-ns", self.period_ns.to_string()),
            ("duty", self.duty.to_string()),
            ("duty-at-last", self.duty_at_last.to_string()),
            ("ramp-ns", self.ramp_ns.to_string()),
            ("periods", self.periods.to_string()),
        ] {
            words.push(format!("--{name}"));
            words.push(value);
        }
        words
    }
}

/// The burner's own process: burns by plan or until its input ends, and reports how much. It stays until its input has
/// ended, so that a reader of the CPU clocks of living processes still finds it.
pub(crate) fn main(plan: &Plan) -> Result<(), Failure> {
    static STOP: AtomicBool = AtomicBool::new(false);
    cpu::pin_current_thread(&[plan.cpu])?;
    clock::sharp_timers()?;
    let plan = *plan;
    let thread = std::thread::spawn(move || burn(&plan, &STOP));
    let mut input = std::io::stdin().lock();
    let mut line = String::new();
    // `stop` or the end of input: both end the burning.
    input.read_line(&mut line)?;
    STOP.store(true, Relaxed);
    let burnt = thread
        .join()
        .map_err(|_| Failure::Burner("panicked".to_owned()))??;
    let mut out = std::io::stdout().lock();
    serde_json::to_writer(&mut out, &burnt)?;
    writeln!(out)?;
    out.flush()?;
    line.clear();
    input.read_line(&mut line)?;
    Ok(())
}

fn burn(plan: &Plan, stop: &AtomicBool) -> std::io::Result<Burnt> {
    clock::sharp_timers()?;
    clock::sleep_until_monotonic_ns(plan.start_ns)?;
    let began_ns = clock::monotonic_ns();
    let own_ns = clock::thread_cpu_ns();
    let mut burns = 0;
    let mut last_ns = own_ns;
    for period in 0..plan.periods {
        if stop.load(Relaxed) {
            break;
        }
        let due_ns = plan.start_ns + period * plan.period_ns;
        clock::sleep_until_monotonic_ns(due_ns)?;
        let span = plan.duty_at(period * plan.period_ns) * plan.period_ns as f64;
        let until = clock::monotonic_ns() + span as u64;
        while clock::monotonic_ns() < until {
            for _ in 0..8 {
                std::hint::spin_loop();
            }
        }
        burns += 1;
        last_ns = clock::thread_cpu_ns();
    }
    let planned = plan.start_ns + burns * plan.period_ns;
    clock::sleep_until_monotonic_ns(planned)?;
    Ok(Burnt {
        cpu_ns: last_ns - own_ns,
        elapsed_ns: clock::monotonic_ns().saturating_sub(began_ns),
        burns,
    })
}

/// A running burner. Dropping it ends the process.
#[derive(Debug)]
pub(crate) struct Burner {
    child: Child,
    stdin: Option<ChildStdin>,
    stdout: Option<BufReader<ChildStdout>>,
}

impl Burner {
    pub(crate) fn start(plan: &Plan) -> Result<Self, Failure> {
        let mut child = Command::new(std::env::current_exe()?)
            .args(plan.arguments())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            // Ctrl-C at the terminal is for the controller, which ends its burners.
            .process_group(0)
            .spawn()?;
        let stdin = child.stdin.take();
        let stdout = child.stdout.take().map(BufReader::new);
        Ok(Self {
            child,
            stdin,
            stdout,
        })
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Stops burning and reads the report; the process stays until this value is dropped.
    pub(crate) fn stop(&mut self) -> Result<Burnt, Failure> {
        let gone = || Failure::Burner("ended before it was told to".to_owned());
        let stdin = self.stdin.as_mut().ok_or_else(gone)?;
        stdin.write_all(b"stop\n")?;
        let mut line = String::new();
        self.stdout
            .as_mut()
            .ok_or_else(gone)?
            .read_line(&mut line)?;
        if line.is_empty() {
            return Err(gone());
        }
        Ok(serde_json::from_str(&line)?)
    }
}

impl Drop for Burner {
    fn drop(&mut self) {
        self.stdin = None;
        let _ = end_within(&mut self.child, Duration::from_millis(200));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_duty_rises_evenly_and_stays() {
        let plan = Plan {
            cpu: 0,
            start_ns: 0,
            period_ns: 1000,
            duty: 0.2,
            duty_at_last: 0.6,
            ramp_ns: 100,
            periods: 1,
        };
        assert!((plan.duty_at(0) - 0.2).abs() < 1e-12);
        assert!((plan.duty_at(50) - 0.4).abs() < 1e-12);
        assert!((plan.duty_at(100) - 0.6).abs() < 1e-12);
        assert!((plan.duty_at(9999) - 0.6).abs() < 1e-12);
    }
}
