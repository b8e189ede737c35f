//! Who has the machine, of which there is one.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use super::{need_root, tell};

/// Tests that bear each other run three at a time: they wait most of their time, and more would make each other late on
/// two CPUs.
const BESIDE: usize = 3;
/// A test that has the machine for longer is told by name, for whoever wants the tests faster.
const LONG: Duration = Duration::from_secs(10);

struct Machine {
    alone: bool,
    beside: usize,
    /// Those that wait go before those that want it alone, so that several of them run where there are several.
    waiting_beside: usize,
}

static MACHINE: Mutex<Machine> = Mutex::new(Machine {
    alone: false,
    beside: 0,
    waiting_beside: 0,
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

/// Nothing else runs until this is dropped: for what measures, and for what compares the whole machine.
pub(crate) struct Alone(Instant);

/// Others that do not mind may run.
pub(crate) struct Beside(Instant);

pub(crate) fn alone() -> Alone {
    need_root();
    let is_taken = |m: &Machine| m.alone || m.beside > 0 || m.waiting_beside > 0;
    let mut machine = wait_while(machine(), is_taken);
    machine.alone = true;
    Alone(Instant::now())
}

pub(crate) fn beside() -> Beside {
    need_root();
    let mut machine = machine();
    machine.waiting_beside += 1;
    let mut machine = wait_while(machine, |m| m.alone || m.beside >= BESIDE);
    machine.waiting_beside -= 1;
    machine.beside += 1;
    Beside(Instant::now())
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

fn given_back(since: Instant) {
    CHANGED.notify_all();
    let took = since.elapsed();
    if took > LONG {
        let name = thread::current().name().unwrap_or("a test").to_owned();
        tell(&format!("{name} took {:.0} s", took.as_secs_f64()));
    }
}
