//! The idle clock of every CPU, in ns.
//!
//! `/proc/timer_list` prints each CPU's `idle_sleeptime` and `iowait_sleeptime` (kernel/time/tick-sched.c,
//! kernel/time/timer_list.c), the clock from which `/proc/stat` makes its 10 ms steps. It moves when a CPU
//! leaves idle; a stretch of idleness that is still open is not in it, and the file does not tell
//! whether one is. So each CPU is visited first: the meter's thread runs there for a moment, which closes the
//! stretch, and the CPU's figure is taken as of that visit.

use hopyard_net::{clock, cpu};

use super::{Error, read};

const FILE: &str = "/proc/timer_list";

/// One CPU's idle clock as of an instant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct IdleClock {
    pub(super) cpu: usize,
    /// `CLOCK_MONOTONIC`, ns.
    pub(super) at_ns: u64,
    /// Idle and waiting for I/O since boot, ns.
    pub(super) idle_ns: u64,
}

/// Is the clock there for us: root, a kernel that stops the tick (`nohz=off` and CONFIG_HZ_PERIODIC leave the clocks at 0), and leave to
/// run on these CPUs? In a cpuset others are out of reach, whose idleness would count as work.
pub(super) fn available(cpus: &[usize]) -> bool {
    let moves = |clocks: Vec<(usize, u64)>| clocks.iter().any(|(_, ns)| *ns > 0);
    read(FILE).and_then(|text| parse(&text)).is_ok_and(moves) && can_visit(cpus).unwrap_or(false)
}

/// May this thread run on each of them?
fn can_visit(cpus: &[usize]) -> Result<bool, Error> {
    let mine = cpu::current_affinity()?;
    let can = cpus
        .iter()
        .all(|cpu| cpu::pin_current_thread(&[*cpu]).is_ok());
    cpu::pin_current_thread(&mine)?;
    Ok(can)
}

/// Reads every CPU's idle clock. `free_ns` tells for how long a CPU had nothing to do without halting.
///
/// # Errors
/// The file cannot be read or understood.
pub(super) fn read_all(
    cpus: &[usize],
    free_ns: impl Fn(usize) -> u64,
) -> Result<Vec<IdleClock>, Error> {
    let mine = cpu::current_affinity()?;
    let mut visits = Vec::with_capacity(cpus.len());
    // The first CPU comes last, so the file is read there: a load that fills one CPU has the last one (placement `same`).
    for &cpu in cpus.iter().rev() {
        // A CPU that went offline since is left out by the caller: its clock stands still.
        if cpu::pin_current_thread(&[cpu]).is_ok() {
            visits.push((cpu, clock::monotonic_ns(), free_ns(cpu)));
        }
    }
    let text = read(FILE);
    cpu::pin_current_thread(&mine)?;
    let idle = parse(&text?)?;
    visits
        .into_iter()
        .map(|(cpu, at_ns, free_ns)| {
            let idle_ns = idle
                .iter()
                .find(|(n, _)| *n == cpu)
                .map(|(_, ns)| *ns)
                .ok_or_else(|| Error::Parse {
                    file: FILE,
                    what: format!("CPU {cpu} is not in it"),
                })?;
            Ok(IdleClock {
                cpu,
                at_ns,
                idle_ns: idle_ns + free_ns,
            })
        })
        .collect()
}

/// (CPU, idle + iowait ns) of every CPU in the text.
fn parse(text: &str) -> Result<Vec<(usize, u64)>, Error> {
    let mut clocks: Vec<(usize, u64)> = Vec::new();
    for line in text.lines() {
        if let Some(number) = line.strip_prefix("cpu: ") {
            let cpu = number.trim().parse().map_err(|_| Error::Parse {
                file: FILE,
                what: format!("`{line}` names no CPU"),
            })?;
            clocks.push((cpu, 0));
        } else if let Some((name, value)) = line.trim_start().split_once(':')
            && matches!(name.trim(), ".idle_sleeptime" | ".iowait_sleeptime")
        {
            let ns: u64 = value
                .trim()
                .trim_end_matches(" nsecs")
                .parse()
                .map_err(|_| Error::Parse {
                    file: FILE,
                    what: format!("`{line}` is no time"),
                })?;
            if let Some((_, sum)) = clocks.last_mut() {
                *sum += ns;
            }
        }
    }
    Ok(clocks)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn idle_and_iowait_are_summed_per_cpu() {
        let text = "Timer List Version: v0.10\ncpu: 0\n clock 0:\n  .nohz           : 1\n  \
                    .idle_entrytime : 427182303589 nsecs\n  .idle_sleeptime : 419684894712 nsecs\n  \
                    .iowait_sleeptime: 55042164 nsecs\ncpu: 1\n  .idle_sleeptime : 7 nsecs\n  \
                    .iowait_sleeptime: 5 nsecs\n";
        assert_eq!(parse(text).unwrap(), [(0, 419_739_936_876), (1, 12)]);
        assert!(parse("cpu: x\n").is_err());
        assert!(parse("cpu: 0\n .idle_sleeptime : many nsecs\n").is_err());
    }

    proptest! {
        #[test]
        fn any_text_is_read_or_refused(text in "(cpu: [0-9a]{1,3}\n| \\.idle_sleeptime : [0-9x]{0,5}.{0,6}\n|.{0,9}\n){0,6}") {
            let _ = parse(&text);
        }
    }
}
