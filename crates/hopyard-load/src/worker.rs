//! `hopyard worker`: an endpoint's side of the protocol, on stdin and stdout.

use std::io;
use std::time::Duration;

use hopyard_net::{clock, cpu};
use nix::sys::resource::{Resource, getrlimit, setrlimit};
use serde::Serialize;

use super::endpoint::{DeviceMeter, HostFacts, ProcessAt, WayFound};
use super::input::Input;
use super::lines;
use super::meter::MachineMeter;
use super::protocol::{CpuSpan, Numbered, Reply, Request, Tallied, VERSION};
use super::session::{Beside, Session};
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
    let mut worker = Worker {
        input: Input::new(),
        session: None,
        device: None,
        machine: None,
        requests: 0,
    };
    while let Some(line) = worker.input.next()? {
        let (nr, reply) = match serde_json::from_slice::<Numbered<Request>>(&line) {
            Ok(heard) => match heard.message {
                Request::Quit => return Ok(()),
                Request::Beat => continue,
                request => {
                    let in_turn = worker.takes(heard.nr);
                    (heard.nr, in_turn.and_then(|()| worker.carry_out(request)))
                }
            },
            Err(e) => (
                None,
                Err(format!("not a request of protocol {VERSION}: {e}")),
            ),
        };
        let message = reply.unwrap_or_else(|cause| Reply::Failed { cause });
        say(&Numbered { nr, message })?;
    }
    Ok(())
}

/// What lasts from one request to the next.
struct Worker {
    input: Input,
    session: Option<Session>,
    /// The device whose counters are reported with windows.
    device: Option<DeviceMeter>,
    /// What reads the CPU time of this machine, or why nothing does; none where nobody asked.
    machine: Option<Result<MachineMeter, String>>,
    /// Number of the last request.
    requests: u64,
}

/// Takes all the descriptors that this process may have: a thousand flows need some thousands.
fn all_descriptors() -> io::Result<()> {
    let (_, most) = getrlimit(Resource::RLIMIT_NOFILE)?;
    Ok(setrlimit(Resource::RLIMIT_NOFILE, most, most)?)
}

impl Worker {
    /// Is it the next request? One that has no number may come at any time.
    fn takes(&mut self, nr: Option<u64>) -> Result<(), String> {
        let (Some(nr), next) = (nr, self.requests + 1) else {
            return Ok(());
        };
        if nr != next {
            return Err(format!(
                "request {nr} came where request {next} was next: what carries them must pass on each line once"
            ));
        }
        self.requests = nr;
        Ok(())
    }

    /// Begins to read the CPU time of this machine, and says what it uses by itself.
    fn meter(&mut self, others: &[ProcessAt], span: Duration) -> CpuSpan {
        let seen = others.iter().map(|process| process.seen_here());
        let others = seen.collect::<Option<_>>().ok_or(
            "its worker cannot see the process of the other end, which is on the same machine",
        );
        let machine = others.map_err(str::to_owned).and_then(MachineMeter::new);
        let input = &mut self.input;
        let quiet = match &machine {
            Ok(meter) => meter.quiet(span, |instant_ns| input.wait_until(instant_ns)),
            Err(why) => Err(why.clone()),
        };
        self.machine = Some(machine);
        quiet.into()
    }

    fn carry_out(&mut self, request: Request) -> Result<Reply, String> {
        match request {
            Request::Serve {
                spec,
                address,
                cpus,
            } => {
                spec.check()?;
                let (serving, ports) = Session::serve(&spec, &address, &cpus)?;
                self.session = Some(serving);
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
                self.session = Some(Session::connect(&spec, &address, &ports, &cpus, patience)?);
                Ok(Reply::Connected)
            }
            Request::Accept { patience_ms } => {
                let session = self
                    .session
                    .as_mut()
                    .ok_or("accept: `serve` did not come before")?;
                session.accept(Duration::from_millis(patience_ms))?;
                Ok(Reply::Connected)
            }
            Request::Run(timetable) => {
                if timetable.slices == 0 {
                    return Err("a window needs at least one slice".to_owned());
                }
                let session = self
                    .session
                    .take()
                    .ok_or("run: neither `serve` nor `connect` came before")?;
                let input = &mut self.input;
                let beside = Beside {
                    device: self.device.as_ref(),
                    machine: self.machine.as_ref(),
                };
                session
                    .run(timetable, beside, |instant_ns| input.wait_until(instant_ns))
                    .map(|tallied| Reply::Done(Box::new(tallied)))
            }
            Request::Turn(timetable) => {
                if timetable.slices == 0 {
                    return Err("a window needs at least one slice".to_owned());
                }
                let input = &mut self.input;
                self.session
                    .as_mut()
                    .ok_or("turn: neither `serve` nor `connect` came before")?
                    .turn(timetable, |instant_ns| input.wait_until(instant_ns))
                    .map(|tallied| Reply::Done(Box::new(tallied)))
            }
            Request::Finish => self
                .session
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
            Request::Host => HostFacts::of_this_process().map(|facts| Reply::Host(Box::new(facts))),
            Request::Way { to } => {
                let found = WayFound::of_this_process(to)?;
                self.device = Some(DeviceMeter::new(found.device.clone())?);
                Ok(Reply::Way(found))
            }
            Request::Attend(attendance) => self
                .input
                .attend(attendance)
                .map(|()| Reply::Attending)
                .map_err(|e| format!("cannot start a thread: {e}")),
            Request::Meter { others, quiet_ms } => Ok(Reply::Metered {
                quiet: self.meter(&others, Duration::from_millis(quiet_ms)),
            }),
            Request::Quit | Request::Beat => Err("it is not carried out here".to_owned()),
        }
    }
}

fn say(reply: &impl Serialize) -> io::Result<()> {
    lines::say(&mut io::stdout().lock(), reply)
}

/// The loops with no path at all: what the generator itself can do at most.
fn ceiling(spec: &LoadSpec, span: Duration, cpu: Option<usize>) -> Result<Tallied, String> {
    if let Some(cpu) = cpu {
        cpu::pin_current_thread(&[cpu]).map_err(|e| format!("cannot run on CPU {cpu}: {e}"))?;
    }
    spec.loops().ceiling(spec, span)
}
