//! Which CPUs there are and which the calling thread may use.

use std::fs;
use std::marker::PhantomData;

use nix::errno::Errno;

use crate::error::{Error, Result};

/// The CPUs that are online, ascending.
///
/// # Errors
/// [`Error::Kernel`] where `/sys` is not mounted.
pub fn online_cpus() -> Result<Vec<usize>> {
    let path = "/sys/devices/system/cpu/online";
    let what = format!("read `{path}`");
    let text = fs::read_to_string(path).map_err(|error| Error::from_io(&what, error))?;
    parse_list(&text).ok_or(Error::Reply { what, why: text })
}

/// The CPUs the calling thread may run on, ascending.
///
/// # Errors
/// [`Error::Kernel`] where a filter of system calls forbids it.
pub fn current_affinity() -> Result<Vec<usize>> {
    let mut mask = Mask::default();
    // SAFETY: the kernel writes at most as many bytes as it is told that the mask has; 0 is the calling thread.
    let outcome = unsafe { libc::sched_getaffinity(0, size_of::<Mask>(), (&raw mut mask).cast()) };
    Errno::result(outcome).map_err(|errno| Error::from_errno("read the CPU affinity", errno))?;
    Ok(mask.cpus().collect())
}

/// Most CPUs of a kernel (`CONFIG_NR_CPUS`). A `cpu_set_t` has 1,024, and a kernel that may have more refuses to write into one.
const MOST_CPUS: usize = 8192;
const WORD_BITS: usize = libc::c_ulong::BITS as usize;

/// A set of CPUs as the kernel has it (`sched_setaffinity(2)`).
#[derive(Clone)]
#[repr(C)]
struct Mask([libc::c_ulong; MOST_CPUS / WORD_BITS]);

impl Default for Mask {
    fn default() -> Self {
        Self([0; MOST_CPUS / WORD_BITS])
    }
}

impl Mask {
    /// `None` if a CPU is beyond what any kernel has.
    fn of(cpus: &[usize]) -> Option<Self> {
        let mut mask = Self::default();
        for cpu in cpus {
            *mask.0.get_mut(cpu / WORD_BITS)? |= 1 << (cpu % WORD_BITS);
        }
        Some(mask)
    }

    /// Ascending. It is called at each edge of a window, and most words of a mask are 0.
    fn cpus(&self) -> impl Iterator<Item = usize> {
        let words = self.0.iter().enumerate().filter(|(_, word)| **word != 0);
        words.flat_map(|(at, word)| {
            let is_in = move |bit: &usize| word >> bit & 1 == 1;
            (0..WORD_BITS)
                .filter(is_in)
                .map(move |bit| at * WORD_BITS + bit)
        })
    }
}

/// The first of the CPUs that share a core with this one, itself included: the same for all of them. `None` where the kernel does
/// not say.
#[must_use]
pub fn first_sibling(cpu: usize) -> Option<usize> {
    let path = format!("/sys/devices/system/cpu/cpu{cpu}/topology/thread_siblings_list");
    let text = fs::read_to_string(path).ok()?;
    parse_list(&text)?.first().copied()
}

/// How the scheduler treats a thread that has just been woken (`sched(7)`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Policy {
    /// It may interrupt who runs: `SCHED_OTHER`.
    Other,
    /// It waits until who runs waits itself: `SCHED_BATCH`.
    Batch,
    /// It gets 0.3 % of a CPU that others fill, and all of one that nobody else wants: `SCHED_IDLE`. Its CPU time counts as `nice` in
    /// `/proc/stat`.
    Idle,
    /// It goes before all of the above, and takes turns of fixed length with others of its kind: `SCHED_RR` at
    /// the lowest priority.
    RoundRobin,
}

/// Schedules the calling thread, and the threads and processes it starts from now on, by `policy`.
///
/// # Errors
/// [`Error::Kernel`] where a filter of system calls forbids it, [`Error::Denied`] for round robin without
/// `CAP_SYS_NICE`.
pub fn schedule_current_thread(policy: Policy) -> Result<()> {
    let number = match policy {
        Policy::Other => libc::SCHED_OTHER,
        Policy::Batch => libc::SCHED_BATCH,
        Policy::Idle => libc::SCHED_IDLE,
        Policy::RoundRobin => libc::SCHED_RR,
    };
    set_scheduler(number, i32::from(policy == Policy::RoundRobin))
        .and_then(|()| match policy {
            Policy::Idle => be_nice(),
            _ => Ok(()),
        })
        .map_err(|errno| Error::from_errno("set the scheduling policy of a thread", errno))
}

/// By as much as there is.
fn be_nice() -> nix::Result<()> {
    // SAFETY: takes integers; 0 is the calling thread.
    let done = unsafe { libc::setpriority(libc::PRIO_PROCESS, 0, 19) };
    Errno::result(done).map(drop)
}

/// While it lives, the calling thread runs before all that is not real-time, and before [`Policy::RoundRobin`] (`SCHED_FIFO`): for one that reads clocks
/// at given instants, on CPUs that others fill. What it starts is not so.
///
/// It must be dropped by the thread that made it.
#[derive(Debug)]
pub struct RealtimeGuard {
    before: libc::c_int,
    priority_before: libc::c_int,
    _own_thread: PhantomData<*const ()>,
}

impl RealtimeGuard {
    /// Makes the calling thread prompt; `None` where this process may not.
    #[must_use]
    pub fn new() -> Option<Self> {
        // SAFETY: takes and gives back integers; 0 is the calling thread.
        let before = unsafe { libc::sched_getscheduler(0) };
        let mut parameters = no_parameters();
        // SAFETY: the parameters are a valid `sched_param` for the time of the call, and 0 is the calling thread.
        let read = unsafe { libc::sched_getparam(0, &raw mut parameters) };
        if before < 0 || read != 0 {
            return None;
        }
        let prompt = set_scheduler(libc::SCHED_FIFO | libc::SCHED_RESET_ON_FORK, 2);
        prompt.is_ok().then_some(Self {
            before,
            priority_before: parameters.sched_priority,
            _own_thread: PhantomData,
        })
    }
}

impl Drop for RealtimeGuard {
    fn drop(&mut self) {
        if set_scheduler(self.before, self.priority_before).is_err() {
            // Without CAP_SYS_NICE the flag cannot be taken off again (`user_check_sched_setscheduler`); the policy can.
            let policy = self.before | libc::SCHED_RESET_ON_FORK;
            let _ = set_scheduler(policy, self.priority_before);
        }
    }
}

fn no_parameters() -> libc::sched_param {
    // SAFETY: `sched_param` is plain data (integers); all zeroes are valid. musl's has more fields than this one.
    unsafe { std::mem::zeroed() }
}

fn set_scheduler(policy: libc::c_int, sched_priority: libc::c_int) -> nix::Result<()> {
    let mut parameters = no_parameters();
    parameters.sched_priority = sched_priority;
    // SAFETY: the parameters are a valid `sched_param` for the time of the call, and 0 is the calling thread.
    let done = unsafe { libc::sched_setscheduler(0, policy, &raw const parameters) };
    Errno::result(done).map(drop)
}

/// Moves the calling thread to a CPU. It may still run on every CPU that it might run on before, but stays there until the scheduler
/// has a reason to move it.
///
/// # Errors
/// As [`pin_current_thread`].
pub fn move_current_thread(cpu: usize) -> Result<()> {
    let mine = current_affinity()?;
    pin_current_thread(&[cpu])?;
    pin_current_thread(&mine)
}

/// Confines the calling thread, and the threads and processes it starts from now on, to `cpus`.
///
/// # Errors
/// [`Error::Invalid`] for an empty list, a CPU that is not online or that a cpuset forbids.
pub fn pin_current_thread(cpus: &[usize]) -> Result<()> {
    let what = || format!("pin a thread to CPUs {cpus:?}");
    let mask = Mask::of(cpus).ok_or_else(|| no_such_cpu(what()))?;
    // SAFETY: the kernel reads at most as many bytes as it is told that the mask has; 0 is the calling thread.
    let outcome =
        unsafe { libc::sched_setaffinity(0, size_of::<Mask>(), (&raw const mask).cast()) };
    Errno::result(outcome)
        .map(drop)
        .map_err(|errno| match errno {
            Errno::EINVAL => no_such_cpu(what()),
            _ => Error::from_errno(what(), errno),
        })
}

fn no_such_cpu(what: String) -> Error {
    Error::invalid(
        what,
        "none of these CPUs is online and allowed here; see `nproc --all`",
    )
}

/// The kernel's list format: `0-3,8,10-11`.
fn parse_list(text: &str) -> Option<Vec<usize>> {
    let mut cpus = Vec::new();
    for part in text.trim().split(',').filter(|part| !part.is_empty()) {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        cpus.extend(first.parse().ok()?..=last.parse::<usize>().ok()?);
    }
    Some(cpus)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The policy of the calling thread: field 41 of its `stat` (`proc(5)`).
    fn policy() -> i32 {
        let stat = fs::read_to_string("/proc/thread-self/stat").unwrap();
        let (_, fields) = stat.rsplit_once(')').unwrap();
        fields.split_whitespace().nth(38).unwrap().parse().unwrap()
    }

    #[test]
    fn what_a_thread_starts_is_scheduled_as_it_is() {
        let thread = std::thread::spawn(|| {
            schedule_current_thread(Policy::Batch).unwrap();
            assert_eq!(
                std::thread::spawn(policy).join().unwrap(),
                libc::SCHED_BATCH
            );
            schedule_current_thread(Policy::RoundRobin).unwrap();
            assert_eq!(policy(), libc::SCHED_RR);
            schedule_current_thread(Policy::Other).unwrap();
            assert_eq!(policy(), libc::SCHED_OTHER);
        });
        thread.join().unwrap();
    }

    /// Needs root.
    #[test]
    fn a_prompt_thread_is_what_it_was_afterwards() {
        let thread = std::thread::spawn(|| {
            schedule_current_thread(Policy::Batch).unwrap();
            let prompt = RealtimeGuard::new().expect("root may");
            assert_eq!(policy(), libc::SCHED_FIFO);
            assert_eq!(
                std::thread::spawn(policy).join().unwrap(),
                libc::SCHED_OTHER
            );
            drop(prompt);
            assert_eq!(policy(), libc::SCHED_BATCH);
        });
        thread.join().unwrap();
    }

    #[test]
    fn cpu_lists() {
        assert_eq!(
            parse_list("0-3,8,10-11\n"),
            Some(vec![0, 1, 2, 3, 8, 10, 11])
        );
        assert_eq!(parse_list("0"), Some(vec![0]));
        assert_eq!(parse_list("\n"), Some(vec![]));
        assert_eq!(parse_list("0-x"), None);
    }

    #[test]
    fn masks_have_room_for_every_cpu_of_a_kernel() {
        let cpus = [0, 63, 64, 1023, 1024, 2047, 8191];
        let mask = Mask::of(&cpus).unwrap();
        assert_eq!(mask.cpus().collect::<Vec<_>>(), cpus);
        assert!(Mask::of(&[8192]).is_none());
    }

    #[test]
    fn siblings_have_one_first_cpu() {
        for cpu in online_cpus().unwrap() {
            // A sandbox may hide it.
            let Some(first) = first_sibling(cpu) else {
                continue;
            };
            assert!(first <= cpu);
            assert_eq!(first_sibling(first), Some(first));
        }
        assert_eq!(first_sibling(100_000), None);
    }

    #[test]
    fn pinning_holds_for_this_thread_only() {
        let before = current_affinity().unwrap();
        let first = before[0];
        std::thread::spawn(move || {
            pin_current_thread(&[first]).unwrap();
            assert_eq!(current_affinity().unwrap(), [first]);
        })
        .join()
        .unwrap();
        assert_eq!(current_affinity().unwrap(), before);
        assert!(online_cpus().unwrap().contains(&first));
        assert!(matches!(
            pin_current_thread(&[]),
            Err(Error::Invalid { .. })
        ));
        for beyond in [8191, 8192] {
            assert!(matches!(
                pin_current_thread(&[beyond]),
                Err(Error::Invalid { .. })
            ));
        }
    }
}
