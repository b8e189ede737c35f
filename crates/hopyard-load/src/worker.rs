//! `hopyard worker`: an endpoint's side of the protocol, on stdin and stdout.

use std::io::{self, BufRead};
use std::os::fd::AsFd;
use std::time::Duration;

use hopyard_net::{clock, cpu};
use nix::poll::{PollFd, PollFlags, ppoll};
use nix::sys::resource::{Resource, getrlimit, setrlimit};
use nix::sys::time::TimeSpec;

use super::lines;
use super::loops::loops_of;
use super::protocol::{Reply, Request, Tallied, VERSION};
use super::session::Session;
use super::spec::LoadSpec;

/// Serves requests until `quit` or the end of input.
///
/// The worker ends with its controller: when stdin closes, also in mid-window, it is over.
///
/// # Errors
/// stdin or stdout failed.
pub fn main() -> io::Result<()> {
    match serve() {
        // The controller is gone.
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        served => served,
    }
}

fn serve() -> io::Result<()> {
    // A window's edges are only as sharp as the sleep that waits for them.
    clock::sharp_timers()?;
    all_descriptors()?;
    say(&Reply::Hello {
        protocol: VERSION,
        version: env!("CARGO_PKG_VERSION").to_owned(),
    })?;
    let mut session = None;
    for line in io::stdin().lock().split(b'\n') {
        let line = line?;
        let reply = match serde_json::from_slice(&line) {
            Ok(Request::Quit) => return Ok(()),
            Ok(request) => carry_out(request, &mut session),
            Err(e) => Err(format!("not a request of protocol {VERSION}: {e}")),
        };
        say(&reply.unwrap_or_else(|cause| Reply::Failed { cause }))?;
    }
    Ok(())
}

/// Takes all the descriptors that this process may have: a thousand flows need some thousands.
fn all_descriptors() -> io::Result<()> {
    let (_, most) = getrlimit(Resource::RLIMIT_NOFILE)?;
    Ok(setrlimit(Resource::RLIMIT_NOFILE, most, most)?)
}

fn carry_out(request: Request, session: &mut Option<Session>) -> Result<Reply, String> {
    match request {
        Request::Serve {
            spec,
            address,
            cpus,
        } => {
            spec.check()?;
            let (serving, ports) = Session::serve(&spec, address, &cpus)?;
            *session = Some(serving);
            Ok(Reply::Serving { ports })
        }
        Request::Connect {
            spec,
            address,
            ports,
            cpus,
            patience_ms,
        } => {
            spec.check()?;
            if ports.len() != spec.flows as usize {
                return Err(format!("{} flows, but {} ports", spec.flows, ports.len()));
            }
            let patience = Duration::from_millis(patience_ms);
            *session = Some(Session::connect(&spec, address, &ports, &cpus, patience)?);
            Ok(Reply::Connected)
        }
        Request::Accept { patience_ms } => {
            let session = session
                .as_mut()
                .ok_or("accept: `serve` did not come before")?;
            session.accept(Duration::from_millis(patience_ms))?;
            Ok(Reply::Connected)
        }
        Request::Run(timetable) => {
            if timetable.slices == 0 {
                return Err("a window needs at least one slice".to_owned());
            }
            let session = session
                .take()
                .ok_or("run: neither `serve` nor `connect` came before")?;
            session
                .run(timetable, wait_until)
                .map(|tallied| Reply::Done(Box::new(tallied)))
        }
        Request::Turn(timetable) => {
            if timetable.slices == 0 {
                return Err("a window needs at least one slice".to_owned());
            }
            session
                .as_mut()
                .ok_or("turn: neither `serve` nor `connect` came before")?
                .turn(timetable, wait_until)
                .map(|tallied| Reply::Done(Box::new(tallied)))
        }
        Request::Finish => session
            .take()
            .ok_or("finish: neither `serve` nor `connect` came before")?
            .finish()
            .map(|tallied| Reply::Done(Box::new(tallied))),
        Request::Ceiling { spec, span_ms, cpu } => {
            spec.check()?;
            ceiling(&spec, Duration::from_millis(span_ms), cpu)
                .map(|tallied| Reply::Done(Box::new(tallied)))
        }
        Request::Clock => Ok(Reply::Clock {
            monotonic_ns: clock::monotonic_ns(),
        }),
        Request::SetApart => hopyard_net::unshare_mount_and_cgroup()
            .map(|()| Reply::Apart)
            .map_err(|e| hopyard_model::plain::chain(&e)),
        Request::Quit => Err("quit is not carried out here".to_owned()),
    }
}

fn say(reply: &Reply) -> io::Result<()> {
    lines::say(&mut io::stdout().lock(), reply)
}

/// Sleeps until an instant with an eye on stdin: input or its end means that the run is off.
fn wait_until(instant_ns: u64) -> Result<(), String> {
    let stdin = io::stdin();
    loop {
        let now = clock::monotonic_ns();
        if now >= instant_ns {
            return Ok(());
        }
        let left = TimeSpec::from_duration(Duration::from_nanos(instant_ns - now));
        let mut watched = [PollFd::new(stdin.as_fd(), PollFlags::POLLIN)];
        match ppoll(&mut watched, Some(left), None) {
            Ok(0) | Err(nix::errno::Errno::EINTR) => {}
            Ok(_) => return Err("the controller ended the run".to_owned()),
            Err(e) => return Err(format!("cannot wait: {e}")),
        }
    }
}

/// The loops with no path at all: what the generator itself can do at most.
fn ceiling(spec: &LoadSpec, span: Duration, cpu: Option<usize>) -> Result<Tallied, String> {
    if let Some(cpu) = cpu {
        cpu::pin_current_thread(&[cpu]).map_err(|e| format!("cannot run on CPU {cpu}: {e}"))?;
    }
    loops_of(spec.kind).ceiling(spec, span)
}
