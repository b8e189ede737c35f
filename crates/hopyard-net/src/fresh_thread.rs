//! Threads of their own for what would change its caller's thread, or suffer from what was done on it.

use std::{io, panic, thread};

/// Runs `f` on a thread that nothing else was done on, and ends it. A panic of `f` goes on in the caller.
///
/// # Errors
/// The system has no more threads.
pub fn on_fresh_thread<T: Send>(name: &str, f: impl FnOnce() -> T + Send) -> io::Result<T> {
    thread::scope(|scope| {
        let thread = thread::Builder::new()
            .name(name.to_owned())
            .spawn_scoped(scope, f)?;
        Ok(thread
            .join()
            .unwrap_or_else(|panic| panic::resume_unwind(panic)))
    })
}
