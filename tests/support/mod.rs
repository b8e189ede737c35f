//! What the tests share.

pub(crate) mod apart;
pub(crate) mod browser;
pub(crate) mod chance;
pub(crate) mod cli;
pub(crate) mod host;
pub(crate) mod icmp;
pub(crate) mod kernels;
pub(crate) mod machine;
pub(crate) mod ovs;
pub(crate) mod plan;
pub(crate) mod procs;
pub(crate) mod schema;
pub(crate) mod site;
pub(crate) mod skip;
pub(crate) mod ssh;
pub(crate) mod traces;
pub(crate) mod walk;

use std::io::Write;
use std::process::Command;
use std::time::{Duration, Instant};

pub(crate) use apart::{apart, apart_waiting};
pub(crate) use chance::{mostly, unless_disturbed};
pub(crate) use machine::{alone, beside, beside_first, waiting};
pub(crate) use skip::{skip, skip_part};

use hopyard::lab::Lab;
use hopyard::measure::Sampler;
use hopyard::model::{Axes, Cell, LoadKind, Measurement, Peer};

fn need_root() {
    // The program under test is not the one that runs the tests.
    hopyard::lab::tap::set_program(cli::PROGRAM.into());
    assert!(
        nix::unistd::geteuid().is_root(),
        "these tests make network namespaces: run them as root, \
         `sudo -E cargo test -p hopyard --test lab`"
    );
}

/// Says something that is seen also where a test passes.
pub(crate) fn tell(text: &str) {
    // A reader that went away is no reason to fail.
    let _ = writeln!(std::io::stderr(), "lab: {text}");
}

/// The program as a worker.
pub(crate) fn worker() -> Command {
    cli::hopyard(&["worker"])
}

/// Waits until something is so.
pub(crate) fn until(what: &str, patience: Duration, mut so: impl FnMut() -> bool) {
    let deadline = Instant::now() + patience;
    loop {
        let began = Instant::now();
        if so() {
            return;
        }
        assert!(began < deadline, "{what}: not within {patience:?}");
        pause_after(began.elapsed());
    }
}

/// The pause after a look that took this long, before the next one: some looks are at every process, and other tests run beside.
pub(crate) fn pause_after(look: Duration) {
    let [least, most] = [5, 25].map(Duration::from_millis);
    std::thread::sleep((4 * look).clamp(least, most));
}

/// An environment variable: windows are so many times longer, because the CPU is emulated.
pub(crate) const SLOWER: &str = "HOPYARD_TEST_SLOWER";

/// What it says, else 1.
pub(crate) fn slower() -> u64 {
    std::env::var(SLOWER).map_or(1, |times| times.parse().expect("a number"))
}

/// A sampler whose workers are the program under test.
pub(crate) fn sampler(window_ms: u64, warm_up_ms: u64) -> Sampler {
    let slower = slower();
    let mut sampler = Sampler::new(
        Duration::from_millis(window_ms * slower),
        Duration::from_millis(warm_up_ms * slower),
    )
    .expect("the CPUs can be read");
    sampler.program = cli::PROGRAM.into();
    sampler
}

/// Measures a cell in a lab and holds the way to be proved, at once: a second try would hide a proof that
/// holds only now and then.
pub(crate) fn proved(lab: &Lab, cell: &Cell, window_ms: u64) -> Result<Measurement, String> {
    let measured = sampler(window_ms, window_ms / 3)
        .measure_in(lab, cell, 0.0)
        .map_err(|e| format!("{}: {}", cell.load, hopyard::chain(&e)))?;
    if measured.way.proved {
        return Ok(measured);
    }
    let ratio = measured.cpu.elapsed_ns * 1000.0 / float(measured.window_ns);
    Err(format!(
        "{}: path proof fails: {:?} (CPUs were read over {ratio:.0} ‰ of the window)",
        cell.load, measured.way.problems
    ))
}

/// A cell with some axes set.
pub(crate) fn cell(path: &str, peer: Peer, load: LoadKind, set: &[(&str, &str)]) -> Cell {
    let mut axes = Axes::default();
    for (name, value) in set {
        let axis = hopyard::model::axis(name).unwrap();
        (axis.set)(&mut axes, value).unwrap();
    }
    Cell {
        path: path.to_owned(),
        peer,
        load,
        axes: hopyard::lab::path(path).unwrap().axes_of(&axes, load, peer),
    }
}

#[expect(clippy::cast_precision_loss, reason = "to be looked at")]
pub(crate) fn float(n: u64) -> f64 {
    n as f64
}
