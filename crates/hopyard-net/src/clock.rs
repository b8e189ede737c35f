//! Clocks: all in nanoseconds.

use std::io;

use nix::errno::Errno;
use nix::sys::time::TimeSpec;
use nix::time::{ClockId, ClockNanosleepFlags, clock_gettime, clock_nanosleep};

const NS_PER_S: u64 = 1_000_000_000;
/// `PID_MAX_LIMIT`, `include/linux/threads.h`; the clock id has no room for much more.
const MOST_PIDS: i32 = 4 << 20;

/// Now on `CLOCK_MONOTONIC`, ns. The same clock in every namespace of the host, time namespaces apart.
#[must_use]
pub fn monotonic_ns() -> u64 {
    // The clock always exists, and the kernel has no way to fail here.
    clock_gettime(ClockId::CLOCK_MONOTONIC).map_or(0, to_ns)
}

/// Sleeps until [`monotonic_ns`] reaches `deadline_ns`; signals do not cut it short, a deadline in
/// the past returns at once.
///
/// # Errors
/// None that a valid deadline can cause.
pub fn sleep_until_monotonic_ns(deadline_ns: u64) -> io::Result<()> {
    let seconds = i64::try_from(deadline_ns / NS_PER_S).unwrap_or(i64::MAX);
    let rest = i64::try_from(deadline_ns % NS_PER_S).unwrap_or(0);
    let deadline = TimeSpec::new(seconds as _, rest as _);
    loop {
        match clock_nanosleep(
            ClockId::CLOCK_MONOTONIC,
            ClockNanosleepFlags::TIMER_ABSTIME,
            &deadline,
        ) {
            Ok(_) => return Ok(()),
            Err(Errno::EINTR) => {}
            Err(errno) => return Err(errno.into()),
        }
    }
}

/// CPU time a process has used, user and system, all its threads, ns.
///
/// Reads the process's CPU clock (`MAKE_PROCESS_CPUCLOCK`, `include/linux/posix-timers.h`): exact to
/// the scheduler's clock, where `/proc/PID/stat` counts ticks.
///
/// # Errors
/// `EINVAL` when there is no such process.
pub fn process_cpu_ns(pid: i32) -> io::Result<u64> {
    if !(1..=MOST_PIDS).contains(&pid) {
        return Err(io::Error::from_raw_os_error(libc::EINVAL));
    }
    let clock = ClockId::from_raw((!pid << 3) | 2);
    Ok(to_ns(clock_gettime(clock)?))
}

/// How far `CLOCK_REALTIME` is ahead of [`monotonic_ns`], ns. Both run at the same speed, so it changes only
/// when somebody sets the time.
///
/// Of several looks the quickest counts: nothing came between its readings.
#[must_use]
pub fn realtime_ahead_ns() -> i64 {
    const LOOKS: usize = 8;
    let look = || {
        let before = monotonic_ns();
        let wall = clock_gettime(ClockId::CLOCK_REALTIME).map_or(0, to_ns);
        let took = monotonic_ns() - before;
        (took, wall.wrapping_sub(before + took / 2).cast_signed())
    };
    let looks = std::array::from_fn::<_, LOOKS, _>(|_| look());
    looks.iter().min().map_or(0, |(_, ahead)| *ahead)
}

/// CPU time a thread of this process has used, user and system, ns; see [`process_cpu_ns`].
///
/// # Errors
/// `EINVAL` when there is no such thread.
pub fn cpu_ns_of_thread(tid: i32) -> io::Result<u64> {
    if !(1..=MOST_PIDS).contains(&tid) {
        return Err(io::Error::from_raw_os_error(libc::EINVAL));
    }
    // CPUCLOCK_PERTHREAD_MASK is the bit beside CPUCLOCK_SCHED.
    let clock = ClockId::from_raw((!tid << 3) | 2 | 4);
    Ok(to_ns(clock_gettime(clock)?))
}

/// CPU time the calling thread has used, ns.
#[must_use]
pub fn thread_cpu_ns() -> u64 {
    clock_gettime(ClockId::CLOCK_THREAD_CPUTIME_ID).map_or(0, to_ns)
}

/// Makes the calling thread's timed waits end within a µs of their time instead of the usual 50
/// (`PR_SET_TIMERSLACK`).
///
/// # Errors
/// None on Linux.
pub fn sharp_timers() -> io::Result<()> {
    Ok(nix::sys::prctl::set_timerslack(1)?)
}

fn to_ns(time: TimeSpec) -> u64 {
    let seconds = u64::try_from(time.tv_sec()).unwrap_or(0);
    let rest = u64::try_from(time.tv_nsec()).unwrap_or(0);
    seconds * NS_PER_S + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sleeping_and_cpu_clocks() {
        let start = monotonic_ns();
        sleep_until_monotonic_ns(start + 2_000_000).unwrap();
        assert!(monotonic_ns() >= start + 2_000_000);
        sleep_until_monotonic_ns(1).unwrap();

        let pid = i32::try_from(std::process::id()).unwrap();
        let (process, thread) = (process_cpu_ns(pid).unwrap(), thread_cpu_ns());
        while thread_cpu_ns() < thread + 2_000_000 {}
        assert!(process_cpu_ns(pid).unwrap() >= process + 2_000_000);
        let tid = nix::unistd::gettid().as_raw();
        assert!(cpu_ns_of_thread(tid).unwrap() >= thread + 2_000_000);
        assert!(cpu_ns_of_thread(0).is_err());
        assert!((realtime_ahead_ns() - realtime_ahead_ns()).abs() < 100_000);
        assert!(process_cpu_ns(MOST_PIDS).is_err());
        assert!(process_cpu_ns(0).is_err());
        assert!(process_cpu_ns(i32::MAX).is_err());
    }
}
