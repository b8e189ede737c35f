//! From samples to what is stored: their owners, the names of their functions, and the count of each call chain.

use std::collections::{BTreeMap, HashMap};

use super::{FREQUENCY_HZ, RawSample, Symbols, Taken};
use crate::meter::{Whose, whose};
use crate::model::{ProfileWindow, Stack};

/// Root frame of samples on an idle CPU, and of idling itself.
pub const IDLE: &str = "idle";
/// Frame of everything in user space.
pub const USER: &str = "[user]";
/// Functions of the kernel's idle loop (kernel/sched/idle.c), which are in every chain of an idle CPU, also in those of an interrupt
/// that it serves.
const IDLE_LOOP: &[&str] = &["do_idle", "cpu_startup_entry"];
/// Frame of a thread that keeps a CPU awake, which is idleness.
const KEEPS_AWAKE: &str = "[awake]";
/// Frame of an address without a name.
pub const UNKNOWN: &str = "[unknown]";

/// The load's own processes: (process, its name in profiles).
pub(crate) type Roots<'a> = &'a [(u32, &'a str)];

/// When and where samples were taken.
#[derive(Debug, Clone, Copy)]
pub struct Span {
    /// From, `CLOCK_MONOTONIC`, ns.
    pub open_ns: u64,
    /// To.
    pub close_ns: u64,
    /// CPUs watched.
    pub cpus: u32,
}

/// Combines samples. Reads /proc for their processes, so call it while those run. `keepers` are the threads that keep CPUs awake.
///
/// The caller fills in block, attempt and cell.
#[must_use]
pub fn fold(
    taken: &Taken,
    span: Span,
    (roots, keepers): (Roots<'_>, &[i32]),
    symbols: &Symbols,
) -> ProfileWindow {
    let names = |address| symbols.name(address);
    let mut owners = Owners::new(roots, whose);
    owners.keepers = keepers;
    fold_with(taken, span, &names, &mut owners)
}

fn fold_with(
    taken: &Taken,
    span: Span,
    names: &dyn Fn(u64) -> Option<String>,
    owners: &mut Owners<'_>,
) -> ProfileWindow {
    let mut frames = Frames::default();
    let mut idle_loop = IdleLoop::new(names);
    let mut counts: BTreeMap<Vec<u32>, u64> = BTreeMap::new();
    let mut elsewhere = 0;
    let within = span.open_ns..=span.close_ns;
    // The order to stop may be late on a busy machine, when the load may have ended.
    for sample in taken.samples.iter().filter(|s| within.contains(&s.at_ns)) {
        let root = match sample.pid {
            // A process of another PID namespace has this number too.
            0 => idle_loop.is_in(sample).then_some(IDLE),
            // What interrupts one of these would interrupt an idle CPU.
            _ if owners.keepers.contains(&sample.tid) => Some(IDLE),
            pid => owners.root(pid),
        };
        let Some(root) = root else {
            elsewhere += 1;
            continue;
        };
        let mut stack = vec![frames.place(root)];
        if sample.user {
            let is_load = root != IDLE;
            stack.push(frames.place(if is_load { USER } else { KEEPS_AWAKE }));
        }
        let outermost_first = sample.chain.iter().rev();
        stack.extend(outermost_first.map(|address| frames.place_of(*address, names)));
        *counts.entry(stack).or_default() += 1;
    }
    ProfileWindow {
        block: 0,
        attempt: 0,
        cell: 0,
        span_ns: span.close_ns.saturating_sub(span.open_ns),
        frequency_hz: FREQUENCY_HZ,
        cpus: span.cpus,
        elsewhere,
        lost: taken.lost,
        frames: frames.names,
        stacks: counts
            .into_iter()
            .map(|(frames, samples)| Stack { frames, samples })
            .collect(),
    }
}

/// Which addresses are in the kernel's idle loop.
struct IdleLoop<'a> {
    known: HashMap<u64, bool>,
    names: &'a dyn Fn(u64) -> Option<String>,
}

impl<'a> IdleLoop<'a> {
    fn new(names: &'a dyn Fn(u64) -> Option<String>) -> Self {
        Self {
            known: HashMap::new(),
            names,
        }
    }

    fn is_in(&mut self, sample: &RawSample) -> bool {
        let mut outermost_first = sample.chain.iter().rev();
        !sample.user && outermost_first.any(|address| self.has(*address))
    }

    fn has(&mut self, address: u64) -> bool {
        *self.known.entry(address).or_insert_with(|| {
            let name = (self.names)(address).unwrap_or_default();
            // A compiler adds a suffix to a copy that it made: `do_idle.constprop.0`.
            let name = name.split('.').next().unwrap_or_default();
            IDLE_LOOP.contains(&name)
        })
    }
}

/// Names, each once.
#[derive(Default)]
struct Frames {
    names: Vec<String>,
    places: HashMap<String, u32>,
    addresses: HashMap<u64, u32>,
}

impl Frames {
    fn place(&mut self, name: &str) -> u32 {
        if let Some(place) = self.places.get(name) {
            return *place;
        }
        let place = u32::try_from(self.names.len()).unwrap_or(u32::MAX);
        self.names.push(name.to_owned());
        self.places.insert(name.to_owned(), place);
        place
    }

    fn place_of(&mut self, address: u64, names: &dyn Fn(u64) -> Option<String>) -> u32 {
        if let Some(place) = self.addresses.get(&address) {
            return *place;
        }
        let name = names(address);
        let place = self.place(name.as_deref().unwrap_or(UNKNOWN));
        self.addresses.insert(address, place);
        place
    }
}

/// Who ran, by process; `None` if it was not for the load.
struct Owners<'a> {
    known: HashMap<i32, Option<String>>,
    whose: Box<dyn Fn(i32) -> Whose + 'a>,
    /// Threads that keep CPUs awake.
    keepers: &'a [i32],
}

impl<'a> Owners<'a> {
    fn new(roots: Roots<'_>, whose: impl Fn(i32) -> Whose + 'a) -> Self {
        let named = roots.iter().filter_map(|(pid, name)| {
            let pid = i32::try_from(*pid).ok()?;
            Some((pid, Some((*name).to_owned())))
        });
        let mut known: HashMap<i32, Option<String>> = named.collect();
        let own = i32::try_from(std::process::id()).ok();
        known.extend(own.map(|pid| (pid, None)));
        Self {
            known,
            whose: Box::new(whose),
            keepers: &[],
        }
    }

    fn root(&mut self, pid: i32) -> Option<&str> {
        let whose = &self.whose;
        self.known
            .entry(pid)
            .or_insert_with(|| match whose(pid) {
                Whose::Kernel(name) => Some(name),
                Whose::Foreign => None,
            })
            .as_deref()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(pid: i32, at_ns: u64, chain: &[u64]) -> RawSample {
        RawSample {
            pid,
            tid: pid,
            at_ns,
            user: chain.is_empty(),
            chain: chain.to_vec(),
        }
    }

    fn folded(samples: Vec<RawSample>) -> ProfileWindow {
        let names = |address| match address {
            1 => Some("udp_sendmsg".to_owned()),
            2 => Some("do_syscall_64".to_owned()),
            3 => Some("default_idle".to_owned()),
            4 => Some("do_idle.constprop.0".to_owned()),
            5 => Some("cpu_startup_entry".to_owned()),
            6 => Some("handle_softirqs".to_owned()),
            _ => None,
        };
        let whose = |pid| match pid {
            20 => Whose::Kernel("ksoftirqd/0".to_owned()),
            _ => Whose::Foreign,
        };
        let span = Span {
            open_ns: 100,
            close_ns: 200,
            cpus: 2,
        };
        let taken = Taken { samples, lost: 3 };
        let mut owners = Owners::new(&[(10, "client"), (11, "server")], whose);
        owners.keepers = &[30];
        fold_with(&taken, span, &names, &mut owners)
    }

    #[test]
    fn equal_chains_are_counted_together_the_outermost_first() {
        let window = folded(vec![
            sample(10, 100, &[1, 2]),
            sample(10, 150, &[1, 2]),
            sample(11, 200, &[]),
            sample(0, 150, &[9, 5, 8]),
            sample(20, 150, &[2]),
        ]);
        window.check().unwrap();
        let mut stacks: Vec<_> = window
            .stacks()
            .map(|(frames, n)| (frames.join(";"), n))
            .collect();
        stacks.sort();
        let expected = [
            ("client;do_syscall_64;udp_sendmsg", 2),
            ("idle;[unknown];cpu_startup_entry;[unknown]", 1),
            ("ksoftirqd/0;do_syscall_64", 1),
            ("server;[user]", 1),
        ];
        let seen: Vec<_> = stacks.iter().map(|(s, n)| (s.as_str(), *n)).collect();
        assert_eq!(seen, expected);
        assert_eq!((window.lost, window.elsewhere, window.span_ns), (3, 0, 100));
    }

    /// perf gives number 0 to every task that the PID namespace of hopyard does not see.
    #[test]
    fn number_0_is_idle_only_in_the_idle_loop() {
        let window = folded(vec![
            sample(0, 150, &[3, 4, 5]),
            sample(0, 150, &[1, 6, 3, 4]),
            sample(0, 150, &[1, 2]),
            sample(0, 150, &[]),
            RawSample {
                user: true,
                ..sample(0, 150, &[3, 4, 5])
            },
        ]);
        let mut stacks: Vec<_> = window
            .stacks()
            .map(|(frames, n)| (frames.join(";"), n))
            .collect();
        stacks.sort();
        let idle = "idle;cpu_startup_entry;do_idle.constprop.0;default_idle";
        let interrupted = "idle;do_idle.constprop.0;default_idle;handle_softirqs;udp_sendmsg";
        assert_eq!(stacks, [(idle.to_owned(), 1), (interrupted.to_owned(), 1)]);
        assert_eq!(window.elsewhere, 3);
    }

    /// A sample of the thread itself is idle; one of an interrupt of it is work, as on a CPU that halts.
    #[test]
    fn a_cpu_that_is_kept_awake_is_idle() {
        let own = i32::try_from(std::process::id()).unwrap();
        let keeper = |chain: &[u64]| RawSample {
            tid: 30,
            ..sample(own, 150, chain)
        };
        let window = folded(vec![keeper(&[]), keeper(&[1, 6]), sample(own, 150, &[])]);
        let mut stacks: Vec<_> = window
            .stacks()
            .map(|(frames, _)| frames.join(";"))
            .collect();
        stacks.sort();
        assert_eq!(stacks, ["idle;[awake]", "idle;handle_softirqs;udp_sendmsg"]);
        assert_eq!(window.elsewhere, 1);
    }

    #[test]
    fn others_and_the_controller_are_elsewhere_and_late_samples_are_dropped() {
        let own = i32::try_from(std::process::id()).unwrap();
        let window = folded(vec![
            sample(own, 150, &[1]),
            sample(999, 150, &[1]),
            sample(10, 99, &[1]),
            sample(10, 201, &[1]),
        ]);
        assert_eq!(window.elsewhere, 2);
        assert!(window.stacks.is_empty());
    }
}
