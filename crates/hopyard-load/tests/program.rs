//! `hopyard-worker` answers as `hopyard worker` does: it passes the tests of the protocol that hopyard passes.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a test fails by panicking"
)]

#[path = "../../../tests/protocol.rs"]
mod protocol;
#[expect(dead_code, reason = "other tests use the rest")]
#[path = "../../../tests/support/skip.rs"]
mod skip;

/// What the tests of the protocol are given.
mod support {
    use std::io::Write;
    use std::process::Command;
    use std::sync::{Mutex, MutexGuard, PoisonError};
    use std::time::{Duration, Instant};

    pub(crate) use crate::skip::skip;

    /// The program under test, ready to be started.
    pub(crate) fn worker() -> Command {
        Command::new(env!("CARGO_BIN_EXE_hopyard-worker"))
    }

    /// One after another: each keeps two processes busy.
    pub(crate) fn beside() -> MutexGuard<'static, ()> {
        static TURN: Mutex<()> = Mutex::new(());
        TURN.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until something is so.
    pub(crate) fn until(what: &str, patience: Duration, mut so: impl FnMut() -> bool) {
        let deadline = Instant::now() + patience;
        while !so() {
            assert!(Instant::now() < deadline, "{what}: not within {patience:?}");
            std::thread::sleep(Duration::from_millis(2));
        }
    }

    /// Says something that is no failure.
    pub(crate) fn tell(text: &str) {
        // A reader that went away is no reason to fail.
        let _ = writeln!(std::io::stderr(), "worker: {text}");
    }
}

#[test]
fn arguments_are_refused() {
    let said = support::worker().arg("--help").output().unwrap();
    assert_eq!(said.status.code(), Some(2));
    assert_eq!(
        String::from_utf8(said.stderr).unwrap(),
        "hopyard-worker: it takes no arguments; requests come on its stdin\n"
    );
}
