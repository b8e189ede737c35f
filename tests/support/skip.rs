//! Skipped tests, recorded so that `scripts/unit` counts them as skipped and not as passed.

use std::fs::OpenOptions;
use std::io::Write;
use std::panic::Location;

/// Records that the running test is skipped: the machine lacks a feature. `present` is what something other than the
/// code under test says of that feature: skipping what the machine has is a failure.
#[track_caller]
pub(crate) fn skip(feature: &str, present: bool, reason: &str) {
    record("skipped", feature, present, reason);
}

/// The same of a part of the running test: the rest of it counts.
#[track_caller]
pub(crate) fn skip_part(feature: &str, present: bool, reason: &str) {
    record("skipped in part", feature, present, reason);
}

#[track_caller]
fn record(what: &str, feature: &str, present: bool, reason: &str) {
    assert!(
        !present,
        "{what} for want of {feature}, which this machine has: {reason}"
    );
    let thread = std::thread::current();
    let place = Location::caller();
    let test = match thread.name() {
        // The runner's own thread, where tests run one at a time.
        None | Some("main") => format!("{}:{}", place.file(), place.line()),
        Some(name) => name.to_owned(),
    };
    let line = format!(
        "{what}: {}::{test}: no {feature}: {}\n",
        env!("CARGO_CRATE_NAME"),
        reason.replace('\n', " ")
    );
    // Not `eprint!`, which the runner hides where the test passes. A closed output is no failure.
    let _ = std::io::stderr().write_all(line.as_bytes());
    if let Some(file) = std::env::var_os("HOPYARD_SKIPPED") {
        let opened = OpenOptions::new().append(true).open(file);
        let written = opened.and_then(|mut file| file.write_all(line.as_bytes()));
        assert!(written.is_ok(), "HOPYARD_SKIPPED: {written:?}");
    }
}
