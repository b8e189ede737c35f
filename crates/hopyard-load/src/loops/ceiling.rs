//! Loops with no path at all.

use std::fs::File;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;

use hopyard_model::units::float;
use hopyard_net::clock;

use crate::flow::{self, Context, Nothing, Responder, Times};
use crate::protocol::Tallied;
use crate::spec::LoadSpec;
use crate::tally::Tally;

/// The client of transactions, whose messages keep no bounds here.
pub(super) fn of_transactions(spec: &LoadSpec, span: Duration) -> Result<Tallied, String> {
    let mut responder = Responder {
        datagrams: false,
        service_time_ns: 0,
        pause_ns: 0,
        ..Responder::of(spec)
    };
    let mut times = Times::new(0, u64::MAX)?;
    timed(span, |io, context| {
        flow::rr_client(io, &mut responder, &mut times, context)
    })
}

/// The slower end.
pub(super) fn slower(one: Tallied, other: Tallied) -> Tallied {
    if rate(&one) < rate(&other) {
        one
    } else {
        other
    }
}

fn rate(tallied: &Tallied) -> f64 {
    float(tallied.received.bytes + tallied.sent.bytes) / float(tallied.window_ns)
}

/// Runs a loop against nothing for a span.
pub(super) fn timed(
    span: Duration,
    run: impl FnOnce(&Nothing, Context<'_>) -> Result<(), String>,
) -> Result<Tallied, String> {
    let open = |path: &str, write: bool| -> Result<OwnedFd, String> {
        File::options()
            .read(!write)
            .write(write)
            .open(path)
            .map(Into::into)
            .map_err(|e| format!("cannot open {path}: {e}"))
    };
    let io = Nothing {
        null: open("/dev/null", true)?,
        zero: open("/dev/zero", false)?,
    };
    let (tally, stop) = (Tally::default(), AtomicBool::new(false));
    let began = clock::monotonic_ns();
    std::thread::scope(|scope| {
        let timer = scope.spawn(|| {
            std::thread::sleep(span);
            stop.store(true, Relaxed);
        });
        let context = Context {
            tally: &tally,
            stop: &stop,
            close_ns: u64::MAX,
        };
        let outcome = run(&io, context);
        if timer.join().is_err() {
            return Err("the timer's thread panicked".to_owned());
        }
        outcome
    })?;
    let window_ns = clock::monotonic_ns() - began;
    let reading = tally.read();
    Ok(Tallied {
        flows: vec![reading.received],
        ..Tallied::counted(window_ns, reading)
    })
}
