//! CPU time of processes that are not the load's own, by their own CPU clocks (scheduler time, not ticks).

use std::collections::{HashMap, HashSet};
use std::fs;
use std::time::{Duration, Instant};

use hopyard_net::{clock, name_and_flags};

use super::Error;
use super::stat::Stat;

/// `PF_KTHREAD` (include/linux/sched.h): kernel threads work for the network as often as not
/// (`ksoftirqd`, `kworker`, `napi`, `vhost`, `rcu`), so they are not foreign but for those below.
const KERNEL_THREAD: u64 = 0x0020_0000;

/// Beginnings of the names of kernel threads that look after memory and file systems. They run in
/// bursts, which a baseline read in another window cannot take out.
const NEVER_NETWORK: &[&str] = &[
    "jbd2/",
    "kcompactd",
    "kdamond",
    "khugepaged",
    "ksmd",
    "kswapd",
    "xfsaild/",
];

/// More processes and threads than these are not started in a few milliseconds where nobody but the kernel starts any.
const FEW: u64 = 3;

/// CPU time of processes, by their own clocks: pid → ns.
#[derive(Debug, Clone, Default)]
pub struct Clocks(HashMap<i32, u64>);

impl Clocks {
    /// Of every process that is not among `ours` and cannot be at work for the load.
    pub(super) fn foreign(ours: &HashSet<i32>) -> Result<Self, Error> {
        Self::read(|pid| !ours.contains(&pid) && kind_of(pid, never_ours))
    }

    /// Of the kernel threads that count as the load's, because they may work for the network.
    ///
    /// # Errors
    /// /proc cannot be read.
    pub fn kernel_threads() -> Result<Self, Error> {
        Self::read(|pid| kind_of(pid, |name, flags| !never_ours(name, flags)))
    }

    /// Of one process.
    #[cfg(test)]
    pub(super) fn of(pid: i32, ns: u64) -> Self {
        Self([(pid, ns)].into())
    }

    fn read(wanted: impl Fn(i32) -> bool) -> Result<Self, Error> {
        Ok(Self::of_each(processes()?.filter(|pid| wanted(*pid))))
    }

    /// Of processes known by their ids; one that has ended has no clock any more and is left out.
    pub(super) fn of_each(pids: impl Iterator<Item = i32>) -> Self {
        let clock = |pid| Some((pid, clock::process_cpu_ns(pid).ok()?));
        Self(pids.filter_map(clock).collect())
    }

    /// ns used since an earlier reading. A process that was not there then has used all of its time
    /// since; one that has ended takes its last stretch with it.
    #[must_use]
    pub fn since(&self, start: &Self) -> u64 {
        self.0
            .iter()
            .map(|(pid, now)| now.saturating_sub(start.0.get(pid).copied().unwrap_or(0)))
            .sum()
    }
}

/// Whether any thread of a process runs or waits for a CPU. The kernel shows this at once, but adds CPU time only at a tick or when the
/// thread stops. A process that has ended does not run.
#[must_use]
pub fn is_running(pid: u32) -> bool {
    /// At most so many threads are looked at, since each takes some µs.
    const MOST: usize = 32;
    let threads = fs::read_dir(format!("/proc/{pid}/task"));
    let mut threads = threads.into_iter().flatten().flatten().take(MOST);
    threads.any(|thread| {
        let stat = fs::read_to_string(thread.path().join("stat")).unwrap_or_default();
        // The state follows the name, which may have any characters.
        let after = stat.rsplit_once(") ").map(|(_, after)| after);
        after.is_some_and(|after| after.starts_with('R'))
    })
}

/// Is the kernel taking down network namespaces? It does so in the background, one after another. A worker's name tells what
/// it is at (`wq_worker_comm` in kernel/workqueue.c, Linux 4.18); on older kernels the answer is no.
///
/// # Errors
/// /proc cannot be read.
pub fn namespaces_are_going() -> Result<bool, Error> {
    let at_it = |name: &str, _| name.starts_with("kworker/") && name.ends_with("+netns");
    Ok(processes()?.any(|pid| kind_of(pid, at_it)))
}

/// Waits until the kernel has removed no network namespace for the time `clear`: it may pause in between. `pause` sleeps for the time that it
/// is given; its error ends the wait. False after 10 s, since other programs may make and remove namespaces all the time.
///
/// # Errors
/// /proc cannot be read, or those of `pause`.
pub fn let_namespaces_go<E: From<Error>>(
    clear: Duration,
    pause: impl FnMut(Duration) -> Result<(), E>,
) -> Result<bool, E> {
    const MOST: Duration = Duration::from_secs(10);
    let began = Instant::now();
    clear_for(clear, pause, || {
        Ok((began.elapsed() < MOST).then_some(namespaces_are_going()?))
    })
}

/// True once `look` has answered no four times in a row, spread over the time `clear`. False if it answers `None`: the time is over.
fn clear_for<E: From<Error>>(
    clear: Duration,
    mut pause: impl FnMut(Duration) -> Result<(), E>,
    mut look: impl FnMut() -> Result<Option<bool>, Error>,
) -> Result<bool, E> {
    const LOOKS: u32 = 4;
    let mut looks = 0;
    while looks < LOOKS {
        pause(clear / LOOKS)?;
        match look()? {
            None => return Ok(false),
            Some(true) => looks = 0,
            Some(false) => looks += 1,
        }
    }
    Ok(true)
}

/// The processes that can be foreign to some load: finding them takes milliseconds, reading their clocks takes less than one.
#[derive(Debug)]
pub struct PossiblyForeign {
    /// Their ids.
    pub pids: Vec<i32>,
    /// So many processes and threads had been started when they were listed.
    forks: u64,
}

impl PossiblyForeign {
    /// Lists the processes of now that can be foreign.
    ///
    /// # Errors
    /// /proc cannot be read.
    pub fn list() -> Result<Self, Error> {
        // Before the list: what starts meanwhile may be missing in it.
        let forks = Stat::read()?.forks;
        let all = processes()?.filter(|pid| kind_of(*pid, never_ours));
        Ok(Self {
            pids: all.collect(),
            forks,
        })
    }

    /// Lists them again if any process or thread was started since. True if that may have taken CPU time that was not read: the list has a
    /// new process, or more than a few were started and may have ended. A few alone are mostly threads of the kernel.
    ///
    /// # Errors
    /// As [`PossiblyForeign::list`].
    pub fn renew(&mut self) -> Result<bool, Error> {
        if Stat::read()?.forks == self.forks {
            return Ok(false);
        }
        let now = Self::list()?;
        let started = now.forks.saturating_sub(self.forks);
        let known: HashSet<i32> = self.pids.iter().copied().collect();
        let is_new = now.pids.iter().any(|pid| !known.contains(pid));
        *self = now;
        Ok(is_new || started > FEW)
    }
}

/// Every process there is.
fn processes() -> Result<impl Iterator<Item = i32>, Error> {
    let entries = std::fs::read_dir("/proc").map_err(|source| Error::Read {
        file: "/proc".to_owned(),
        source,
    })?;
    Ok(entries
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok()))
}

/// Whose work a process does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Whose {
    /// A kernel thread that may work for the network, by its name.
    Kernel(String),
    /// Other people's, or of a process that has ended.
    Foreign,
}

/// Whose work does a process do that is none of the load's own? As CPU time is told apart.
#[must_use]
pub fn whose(pid: i32) -> Whose {
    match name_and_flags(pid) {
        Some((name, flags)) if !never_ours(&name, flags) => Whose::Kernel(name),
        _ => Whose::Foreign,
    }
}

/// Is the process of the kind wanted, by its name and flags?
fn kind_of(pid: i32, wanted: impl Fn(&str, u64) -> bool) -> bool {
    name_and_flags(pid).is_some_and(|(name, flags)| wanted(&name, flags))
}

fn never_ours(name: &str, flags: u64) -> bool {
    flags & KERNEL_THREAD == 0 || NEVER_NETWORK.iter().any(|start| name.starts_with(start))
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    #[test]
    fn busy_processes_run_and_sleeping_ones_do_not() {
        let start = |script: &str| {
            let shell = Command::new("sh").args(["-c", script]).spawn();
            shell.unwrap()
        };
        let mut both = [start("while :; do :; done"), start("exec sleep 100")];
        std::thread::sleep(Duration::from_millis(200));
        // For a moment, who sleeps may run.
        let always = |pid| (0..20).all(|_| is_running(pid));
        let [busy, asleep] = both.each_ref().map(|child| always(child.id()));
        for child in &mut both {
            child.kill().unwrap();
            child.wait().unwrap();
        }
        assert!(busy && !asleep);
        assert!(!both.iter().any(|child| is_running(child.id())), "ended");
    }

    #[test]
    fn it_is_clear_when_it_stays_so() {
        let looked = |seen: &[bool]| {
            let mut seen = seen.iter().copied();
            let mut waited = Duration::ZERO;
            let pause = |time| {
                waited += time;
                Ok::<_, Error>(())
            };
            let clear = clear_for(Duration::from_millis(100), pause, || Ok(seen.next()));
            (clear.unwrap(), waited.as_millis(), seen.count())
        };
        let (yes, no) = (true, false);
        assert_eq!(looked(&[no, no, no, no, yes]), (true, 100, 1));
        assert_eq!(looked(&[yes, no, no, yes, no, no, no, no]), (true, 200, 0));
        assert_eq!(looked(&[no, yes, no]), (false, 100, 0));
    }

    #[test]
    fn kernel_threads_that_may_work_for_the_network_are_not_foreign() {
        assert!(never_ours("kworker/imitator", 4_194_560));
        for (name, foreign) in [
            ("kworker/0:1-events", false),
            ("ksoftirqd/1", false),
            ("napi/eth0-8193", false),
            ("kdamond.0", true),
            ("kswapd0", true),
        ] {
            assert_eq!(never_ours(name, 69_238_880), foreign, "{name}");
        }
    }

    #[test]
    fn a_process_that_came_later_counts_whole() {
        let start = Clocks([(1, 100), (2, 50)].into());
        let end = Clocks([(1, 150), (3, 30)].into());
        assert_eq!(end.since(&start), 80);
    }
}
