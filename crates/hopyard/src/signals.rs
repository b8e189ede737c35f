//! Ctrl-C and its kin: asked for once, the run ends at the next safe point; asked twice, at once.

use std::sync::Arc;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use nix::sys::signal::{SigSet, SigmaskHow, Signal};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::flag;

static ASKED: OnceLock<Arc<AtomicBool>> = OnceLock::new();

/// Exit status of a program that ended because it was interrupted: 128 + SIGINT.
pub const INTERRUPTED: u8 = 130;

/// Starts to listen.
///
/// # Errors
/// The handlers cannot be set.
pub fn listen() -> std::io::Result<()> {
    let asked = ASKED.get_or_init(|| Arc::new(AtomicBool::new(false)));
    // One that comes between the two would be taken and not be heard.
    let signals = SigSet::from_iter([Signal::SIGINT, Signal::SIGTERM, Signal::SIGHUP]);
    let before = signals.thread_swap_mask(SigmaskHow::SIG_BLOCK)?;
    let set = handle(asked);
    before.thread_set_mask()?;
    set
}

fn handle(asked: &Arc<AtomicBool>) -> std::io::Result<()> {
    for signal in [SIGINT, SIGTERM, SIGHUP] {
        // The second time the flag is up already, and the program ends there and then.
        flag::register_conditional_shutdown(signal, i32::from(INTERRUPTED), asked.clone())?;
        flag::register(signal, asked.clone())?;
    }
    Ok(())
}

/// Has the user asked to stop?
#[must_use]
pub fn interrupted() -> bool {
    ASKED.get().is_some_and(|asked| asked.load(Relaxed))
}
