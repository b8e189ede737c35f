//! `hopyard worker`: an endpoint's side of the protocol, on stdin and stdout.

use std::fs::File;
use std::io::{self, BufRead};
use std::os::fd::{AsFd, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;

use hopyard_net::{clock, cpu};
use nix::poll::{PollFd, PollFlags, ppoll};
use nix::sys::resource::{Resource, getrlimit, setrlimit};
use nix::sys::time::TimeSpec;

use super::flow::{self, Context, Message, Nothing, Responder, Times};
use super::lines;
use super::protocol::{Reply, Request, Tallied, VERSION};
use super::session::Session;
use super::spec::LoadSpec;
use super::tally::Tally;

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
            .map_err(|e| crate::chain(&e)),
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
    let slowest = if spec.kind.is_numbered() {
        // Its receiver takes many datagrams per call, so that it is never the slower end.
        let mut message = Message::numbered(spec.message_size, 0, 0);
        timed(span, |io, context| {
            flow::transmit(io, &mut message, context)
        })?
    } else if spec.kind.is_stream() {
        let mut message = Message::plain(spec.message_size);
        let mut buffer = vec![
            0;
            if spec.kind.is_tcp() {
                flow::RECEIVE_BYTES
            } else {
                spec.message_size as usize
            }
        ];
        let sent = timed(span, |io, context| {
            flow::transmit(io, &mut message, context)
        })?;
        let got = timed(span, |io, context| flow::receive(io, &mut buffer, context))?;
        if rate(&sent) < rate(&got) { sent } else { got }
    } else {
        let mut responder = Responder {
            request: vec![0; spec.request_size as usize],
            response: vec![0; spec.response_size as usize],
            datagrams: false,
            service_time_ns: 0,
            pause_ns: 0,
        };
        let mut times = Times {
            histogram: flow::histogram()?,
            open_ns: 0,
            close_ns: u64::MAX,
        };
        timed(span, |io, context| {
            flow::rr_client(io, &mut responder, &mut times, context)
        })?
    };
    Ok(slowest)
}

#[expect(clippy::cast_precision_loss, reason = "a rate for comparison")]
fn rate(tallied: &Tallied) -> f64 {
    (tallied.received.bytes + tallied.sent.bytes) as f64 / tallied.window_ns as f64
}

/// Runs a loop against nothing for a span.
fn timed(
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
