//! CPUs that do not halt while something is measured.
//!
//! A virtual CPU that halts gives its core back, and waits for one when it wakes. Most of what the hypervisor takes from a load that waits
//! and wakes is taken then (docs/method.md, "CPUs that stay awake"). So a thread of the lowest class (`SCHED_IDLE`) stays on each CPU. The
//! time for which it runs is the CPU's idle time: the kernel's idle clock stands still.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{self, Sender};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::thread::{self, JoinHandle};

use hopyard_net::cpu::{self, Policy};
use hopyard_net::{Cgroup, Error as NetError, clock};
use nix::sched::sched_getcpu;
use nix::unistd::gettid;

use super::Error;

/// A longer step between two looks at the clock means that something else ran: an interrupt, another thread, or another guest of the
/// hypervisor. Else a step takes 50 to 100 ns.
const LONGEST_STEP_NS: u64 = 500;
/// So many steps, looked at so often, tell how long one takes.
const STEPS: u64 = 50;
const LOOKS: u64 = 40;

/// All meters of this process have the same: two threads on a CPU would share its idle time.
static SHARED: Mutex<Weak<Awake>> = Mutex::new(Weak::new());

/// Keeps CPUs awake until it is dropped.
#[derive(Debug)]
pub(super) struct Awake {
    keepers: Vec<Keeper>,
    is_over: Arc<AtomicBool>,
}

/// The thread of one CPU.
#[derive(Debug)]
struct Keeper {
    cpu: usize,
    tid: i32,
    free_ns: Arc<AtomicU64>,
    thread: Option<JoinHandle<()>>,
}

impl Awake {
    /// Keeps these CPUs awake, unless this process does so already.
    ///
    /// # Errors
    /// [`check`] refuses; a thread cannot be started, or not put on its CPU and into its class.
    pub(super) fn shared(cpus: &[usize]) -> Result<Arc<Self>, Error> {
        let mut shared = SHARED.lock().unwrap_or_else(PoisonError::into_inner);
        let known = shared.upgrade();
        let keeps = |awake: &Arc<Self>| {
            awake
                .keepers
                .iter()
                .map(|one| one.cpu)
                .eq(cpus.iter().copied())
        };
        if let Some(awake) = known.filter(keeps) {
            return Ok(awake);
        }
        check()?;
        let mut awake = Self {
            keepers: Vec::new(),
            is_over: Arc::new(AtomicBool::new(false)),
        };
        for cpu in cpus {
            let keeper = Keeper::start(*cpu, awake.is_over.clone())?;
            awake.keepers.push(keeper);
        }
        let awake = Arc::new(awake);
        *shared = Arc::downgrade(&awake);
        Ok(awake)
    }

    /// For how long a CPU had nothing to do since it is kept awake, ns.
    pub(super) fn free_ns(&self, cpu: usize) -> u64 {
        let keeper = self.keepers.iter().find(|keeper| keeper.cpu == cpu);
        keeper.map_or(0, |keeper| keeper.free_ns.load(Ordering::Relaxed))
    }

    /// Its threads, which are this process's own.
    pub(super) fn threads(&self) -> impl Iterator<Item = i32> {
        self.keepers.iter().map(|keeper| keeper.tid)
    }

    /// Their CPU time, ns.
    pub(super) fn cpu_ns(&self) -> u64 {
        self.threads().flat_map(clock::cpu_ns_of_thread).sum()
    }
}

impl Drop for Awake {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
        for keeper in &mut self.keepers {
            // One that panicked has ended as well.
            let _ = keeper.thread.take().map(JoinHandle::join);
        }
    }
}

impl Keeper {
    fn start(cpu: usize, is_over: Arc<AtomicBool>) -> Result<Self, Error> {
        let free_ns = Arc::new(AtomicU64::new(0));
        let (say, said) = mpsc::channel();
        let counted = free_ns.clone();
        let thread = thread::Builder::new()
            .name(format!("awake/{cpu}"))
            .spawn(move || stay(cpu, &counted, &is_over, &say))
            .map_err(Error::Awake)?;
        // It says so before anything that could end it.
        let tid = said.recv().map_err(std::io::Error::other);
        let tid = tid.map_err(Error::Awake)??;
        Ok(Self {
            cpu,
            tid,
            free_ns,
            thread: Some(thread),
        })
    }
}

/// Can it be done here?
fn check() -> Result<(), Error> {
    // The shortest of some looks: whoever takes the CPU meanwhile makes others longer.
    let look = |_| {
        let began_ns = clock::monotonic_ns();
        (0..STEPS).fold(began_ns, |_, _| step()) - began_ns
    };
    if (0..LOOKS).map(look).min() > Some(STEPS * LONGEST_STEP_NS / 2) {
        return Err(Error::NotAwake(
            "this machine's clock takes too long to read (clock source tsc or kvm-clock does not)",
        ));
    }
    // The lowest class is the lowest of its group. The load's processes are in a group of their own.
    let groups = std::fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    let is_at_the_top = groups
        .lines()
        .all(|line| !line.starts_with("0::/") || line == "0::/");
    if Cgroup::check_cpu_shares().is_ok() && !is_at_the_top {
        return Err(Error::NotAwake(
            "control groups have shares of the CPUs here, and hopyard has one of its own: start it in the first group (`echo $$ \
             >/sys/fs/cgroup/cgroup.procs`)",
        ));
    }
    Ok(())
}

/// Gives the time after it.
fn step() -> u64 {
    std::hint::spin_loop();
    clock::monotonic_ns()
}

fn stay(
    cpu: usize,
    free_ns: &AtomicU64,
    is_over: &AtomicBool,
    say: &Sender<Result<i32, NetError>>,
) {
    let placed = cpu::pin_current_thread(&[cpu])
        .and_then(|()| cpu::schedule_current_thread(Policy::Idle))
        .map(|()| gettid().as_raw());
    let is_placed = placed.is_ok();
    if say.send(placed).is_err() || !is_placed {
        return;
    }
    let mut before_ns = clock::monotonic_ns();
    while !is_over.load(Ordering::Relaxed) {
        let now_ns = step();
        let step_ns = now_ns - before_ns;
        if step_ns <= LONGEST_STEP_NS {
            // Nobody else writes it.
            free_ns.store(free_ns.load(Ordering::Relaxed) + step_ns, Ordering::Relaxed);
        } else if sched_getcpu() != Ok(cpu) {
            // Its CPU went offline, and it would keep another one awake a second time.
            return;
        }
        before_ns = now_ns;
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    /// What a thread uses on its CPU is what the CPU was not free, and the rest of the time it was.
    #[test]
    fn a_cpu_is_free_while_nothing_else_runs() {
        let cpu = cpu::current_affinity().unwrap()[0];
        let awake = Awake::shared(&[cpu]).unwrap();
        let work = move || {
            cpu::pin_current_thread(&[cpu]).unwrap();
            let until = clock::thread_cpu_ns() + 100_000_000;
            while clock::thread_cpu_ns() < until {
                std::hint::spin_loop();
            }
        };
        let (began, before) = (clock::monotonic_ns(), awake.free_ns(cpu));
        thread::spawn(work).join().unwrap();
        let so_far = || (awake.free_ns(cpu) - before, clock::monotonic_ns() - began);
        // Other tests may use it, too.
        let (mut free, mut passed) = so_far();
        while free <= 1_000_000 && passed < 10_000_000_000 {
            thread::sleep(Duration::from_millis(300));
            (free, passed) = so_far();
        }
        assert!(free + 100_000_000 <= passed, "{free} of {passed}");
        assert!(free > 1_000_000, "{free} of {passed}");
        // What the hypervisor took in small pieces is no CPU time.
        let used = awake.cpu_ns();
        assert!(used >= free / 10 * 9, "{free} of {used}");
        // A second one is the same.
        assert!(Arc::ptr_eq(&awake, &Awake::shared(&[cpu]).unwrap()));
    }
}
