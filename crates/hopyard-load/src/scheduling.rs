//! What the kernel tells a worker of its own threads.

use std::fs;
use std::path::Path;

use perf_event::events::Hardware;
use perf_event::{Builder, Counter};

use hopyard_model::Scheduling;

/// More threads than this are not asked, which takes a file for each.
const MOST_ASKED: usize = 64;

/// Reads how the process's threads are scheduled.
pub(super) struct Watch {
    /// Counts in all threads that are started after it.
    misses: Option<Counter>,
}

impl Watch {
    /// To be made before the threads are. Cache misses only if they are wanted: the counter is taken up and put
    /// down at each switch, which costs. A machine without it, or a kernel that keeps it to itself, has none.
    pub(super) fn new(misses: bool) -> Self {
        let counter = || {
            Builder::new(Hardware::CACHE_MISSES)
                .inherit(true)
                .exclude_kernel(false)
                .exclude_hv(false)
                .enabled(true)
                .build()
                .ok()
        };
        Self {
            misses: misses.then(counter).flatten(),
        }
    }

    pub(super) fn read(&mut self) -> Scheduling {
        Scheduling {
            cache_misses: self.misses.as_mut().and_then(|counter| counter.read().ok()),
            ..of_threads().unwrap_or_default()
        }
    }
}

/// Of all threads but the one that asks, whose work is not the load's; `None` where they are too many.
fn of_threads() -> Option<Scheduling> {
    let me = nix::unistd::gettid().to_string();
    let tasks = fs::read_dir("/proc/self/task").ok()?.flatten();
    let others: Vec<_> = tasks
        .filter(|task| task.file_name() != *me)
        .take(MOST_ASKED + 1)
        .collect();
    if others.len() > MOST_ASKED {
        return None;
    }
    let each = others.iter().map(|task| of_thread(&task.path()));
    each.reduce(Scheduling::plus)
}

/// A thread's `sched` has all of it, where there is one (`CONFIG_SCHED_DEBUG`); `status` tells of switches.
fn of_thread(task: &Path) -> Scheduling {
    let read = |file: &str| fs::read_to_string(task.join(file)).unwrap_or_default();
    let (sched, status) = (read("sched"), read("status"));
    Scheduling {
        voluntary_switches: figure(&status, "voluntary_ctxt_switches"),
        involuntary_switches: figure(&status, "nonvoluntary_ctxt_switches"),
        migrations: figure(&sched, "se.nr_migrations"),
        cache_misses: None,
    }
}

/// The figure on the line `NAME : FIGURE`.
fn figure(text: &str, name: &str) -> Option<u64> {
    let mut lines = text.lines().filter_map(|line| line.split_once(':'));
    let (_, figure) = lines.find(|(of, _)| of.trim_end() == name)?;
    figure.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_by_name() {
        let text =
            "flow-0 (7, #threads: 2)\n-----\nse.nr_migrations                   :       12\n";
        assert_eq!(figure(text, "se.nr_migrations"), Some(12));
        let text = "voluntary_ctxt_switches:\t3\nnonvoluntary_ctxt_switches:\t4\n";
        assert_eq!(figure(text, "voluntary_ctxt_switches"), Some(3));
        assert_eq!(figure(text, "nonvoluntary_ctxt_switches"), Some(4));
        assert_eq!(figure("nothing", "anything"), None);
    }

    #[test]
    fn a_thread_that_sleeps_is_switched_away_from() {
        use std::sync::mpsc::channel;
        let ((go, went), (done, over)) = (channel::<()>(), channel());
        let (tell, told) = channel();
        let sleeper = std::thread::spawn(move || {
            tell.send(nix::unistd::gettid()).unwrap();
            for () in went {
                std::thread::sleep(std::time::Duration::from_millis(1));
                done.send(()).unwrap();
            }
        });
        // Of this thread alone: others of the tests come and go.
        let task = format!("/proc/self/task/{}", told.recv().unwrap());
        let read = || of_thread(Path::new(&task));
        let before = read();
        for _ in 0..5 {
            go.send(()).unwrap();
            over.recv().unwrap();
        }
        let switches = read().since(before).switches().unwrap();
        assert!(switches >= 5, "{switches}");
        // It is among all. They have no sum where one of them ends while it is read.
        let own = read().switches();
        assert!((0..100).any(|_| Watch::new(true).read().switches() >= own));
        drop(go);
        sleeper.join().unwrap();
    }
}
