//! Who has the machine, of which there is one. Each test says one of these things first:
//!
//! - [`alone`]: it judges speed, CPU time or delays more closely than others beside it would allow, or looks at what is everybody's
//!   (all processes of the first PID namespace, what the kernel counts for the whole machine). Nothing else runs.
//! - [`apart`](super::apart): it looks at everything of some kind (leftovers, labs by name, processes, descriptors, mounts), or
//!   calls `hopyard clean`, or keeps a lab. It has a process and namespaces of its own, in which all of that is its own.
//! - [`beside`]: it looks at what is its own by name: exit statuses, outputs, files of its room, labs that it holds; or at figures
//!   that others beside it seldom spoil. If they do, `scripts/unit` runs it again when all others are done.
//! - [`waiting`]: the same, and it waits for most of its time, such as for a program that hangs. It may run beside those that fill
//!   the CPUs.
//!
//! What is `apart` runs beside others too. All that run beside others come first (`scripts/test-program` has all tests wait at
//! once), then the others one by one.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use super::{need_root, tell};

/// So many tests run beside each other. They fill two CPUs; more would make each other late and end no sooner.
const BESIDE: usize = 6;
/// A test that has the machine for longer is told by name, for whoever wants the tests faster.
const LONG: Duration = Duration::from_secs(10);

struct Machine {
    alone: bool,
    beside: usize,
    /// Those that are to run beside others go before those that want it alone, so that several of them run where there are several.
    queued: usize,
    /// Those that go before all others.
    first: usize,
    waiting: usize,
}

static MACHINE: Mutex<Machine> = Mutex::new(Machine {
    alone: false,
    beside: 0,
    queued: 0,
    first: 0,
    waiting: 0,
});
static CHANGED: Condvar = Condvar::new();

fn machine() -> MutexGuard<'static, Machine> {
    MACHINE.lock().unwrap_or_else(PoisonError::into_inner)
}

fn wait_while(
    machine: MutexGuard<'static, Machine>,
    so: impl Fn(&Machine) -> bool,
) -> MutexGuard<'static, Machine> {
    CHANGED
        .wait_while(machine, |machine| so(machine))
        .unwrap_or_else(PoisonError::into_inner)
}

/// Nothing else runs until this is dropped.
pub(crate) struct Alone(Instant);

/// Others that do not mind may run.
pub(crate) struct Beside(Instant);

/// The same, and as many of the others as fill the CPUs.
pub(crate) struct Waiting(Instant);

pub(crate) fn alone() -> Alone {
    need_root();
    let is_taken = |m: &Machine| m.alone || m.beside + m.queued + m.first + m.waiting > 0;
    let mut machine = wait_while(machine(), is_taken);
    machine.alone = true;
    Alone(Instant::now())
}

pub(crate) fn beside() -> Beside {
    need_root();
    let mut machine = machine();
    machine.queued += 1;
    let is_full = |m: &Machine| m.alone || m.beside >= BESIDE || m.first > 0;
    let mut machine = wait_while(machine, is_full);
    machine.queued -= 1;
    machine.beside += 1;
    Beside(Instant::now())
}

/// The same before all others, for the longest test: started last, it would run with nothing beside it.
pub(crate) fn beside_first() -> Beside {
    need_root();
    let mut machine = machine();
    machine.first += 1;
    let mut machine = wait_while(machine, |m| m.alone || m.beside >= BESIDE);
    machine.first -= 1;
    machine.beside += 1;
    CHANGED.notify_all();
    Beside(Instant::now())
}

pub(crate) fn waiting() -> Waiting {
    need_root();
    let mut machine = wait_while(machine(), |m| m.alone);
    machine.waiting += 1;
    Waiting(Instant::now())
}

impl Drop for Alone {
    fn drop(&mut self) {
        machine().alone = false;
        given_back(self.0);
    }
}

impl Drop for Beside {
    fn drop(&mut self) {
        machine().beside -= 1;
        given_back(self.0);
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        machine().waiting -= 1;
        given_back(self.0);
    }
}

fn given_back(since: Instant) {
    CHANGED.notify_all();
    let took = since.elapsed();
    if took > LONG {
        let name = thread::current().name().unwrap_or("a test").to_owned();
        tell(&format!("{name} took {:.0} s", took.as_secs_f64()));
    }
}
