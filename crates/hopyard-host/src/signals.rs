//! Ctrl-C and similar signals: after the first, the run ends at the next safe point; after the second, at once.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};

use hopyard_net::clock;
use nix::libc;
use nix::sys::signal::{SigSet, SigmaskHow, Signal};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::low_level;

/// Time of the first request, `CLOCK_MONOTONIC`, ns; 0 before.
static ASKED_NS: AtomicU64 = AtomicU64::new(0);
/// Whether a command of the user has changed this host, and another one is to restore it.
static IS_TO_RESTORE: AtomicBool = AtomicBool::new(false);
/// Signals within this time are one request: `timeout` signals its child and then the whole process group.
const ONE_REQUEST_NS: u64 = 300_000_000;

/// Exit status of a program that ended because it was interrupted: 128 + SIGINT.
pub const INTERRUPTED: u8 = 130;

/// Installs the handlers.
///
/// # Errors
/// The handlers cannot be set.
pub fn listen() -> std::io::Result<()> {
    // A signal between the two steps would be lost.
    let signals = SigSet::from_iter([Signal::SIGINT, Signal::SIGTERM, Signal::SIGHUP]);
    let before = signals.thread_swap_mask(SigmaskHow::SIG_BLOCK)?;
    let set = handle();
    before.thread_set_mask()?;
    set
}

fn handle() -> std::io::Result<()> {
    // `nohup` has it ignored, so that what it starts goes on.
    let hangs_up = (!is_ignored(SIGHUP)).then_some(SIGHUP);
    for signal in [SIGINT, SIGTERM].into_iter().chain(hangs_up) {
        // SAFETY: the handler reads a clock and stores a number, or writes a line and ends the process, which is safe in a handler.
        unsafe { low_level::register(signal, asked) }?;
    }
    Ok(())
}

/// Whether whoever started this program has it ignore a signal.
fn is_ignored(signal: i32) -> bool {
    let mut now = std::mem::MaybeUninit::<libc::sigaction>::zeroed();
    // SAFETY: nothing is set, and there is room for what is told.
    let answer = unsafe { libc::sigaction(signal, std::ptr::null(), now.as_mut_ptr()) };
    // SAFETY: zeros are a value of it too.
    let now = unsafe { now.assume_init() };
    answer == 0 && now.sa_sigaction == libc::SIG_IGN
}

/// Records the first request; the second one ends the program at once.
fn asked() {
    let now_ns = clock::monotonic_ns().max(1);
    if let Err(first_ns) = ASKED_NS.compare_exchange(0, now_ns, Relaxed, Relaxed)
        && now_ns.saturating_sub(first_ns) >= ONE_REQUEST_NS
    {
        let told = if IS_TO_RESTORE.load(Relaxed) {
            "hopyard: ended at once, before the command of --restore had succeeded: run it by hand (--resume of a run that has begun does \
             so too); `hopyard clean` removes what is left of labs\n"
        } else {
            "hopyard: ended at once; `hopyard clean` puts back what it left\n"
        };
        // SAFETY: as many bytes as the text has are read from it; write(2) is safe in a handler.
        unsafe { libc::write(libc::STDERR_FILENO, told.as_ptr().cast(), told.len()) };
        low_level::exit(i32::from(INTERRUPTED));
    }
}

/// Notes whether this host is to be restored by a command of the user, who is told so if a second signal ends the program before.
pub fn note_to_restore(is_to_restore: bool) {
    IS_TO_RESTORE.store(is_to_restore, Relaxed);
}

/// Sleeps until an instant of `CLOCK_MONOTONIC`, ns. Looks every 100 ms whether the user asked to stop, and then
/// returns false.
///
/// # Errors
/// The clock cannot be waited for.
pub fn sleep_until(instant_ns: u64) -> std::io::Result<bool> {
    const LOOK_NS: u64 = 100_000_000;
    while !interrupted() {
        let now = clock::monotonic_ns();
        if now >= instant_ns {
            return Ok(true);
        }
        clock::sleep_until_monotonic_ns(instant_ns.min(now + LOOK_NS))?;
    }
    Ok(false)
}

/// Whether the user asked to stop.
#[must_use]
pub fn interrupted() -> bool {
    ASKED_NS.load(Relaxed) != 0
}
