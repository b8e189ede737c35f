//! Programs that forward for a lab: started so that they end when they should, and found when they do not.

mod home;
mod left;
mod said;
mod service;

use std::fs::File;
use std::io;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use hopyard_net::{Cgroup, NetNs, end_with_starter};

use crate::Result;
pub use crate::error::daemon::Error;
use crate::load::remote;
pub(crate) use home::Home;
pub(crate) use said::shown;
pub(crate) use service::Service;

/// How long a program may take to start. They take some ms; a loaded machine multiplies that.
pub(crate) const PATIENCE: Duration = Duration::from_secs(10);

/// How a lab has its daemons run.
#[derive(Debug)]
struct Household {
    /// The namespace they live in.
    hub: NetNs,
    /// The group that counts their CPU time with the load's.
    cgroup: Option<Cgroup>,
    /// Do they outlive this process?
    keep: bool,
}

/// A thread that starts processes and lives as long as they shall: the kernel kills them when the
/// thread that started them ends, which it does at the latest with this process, however that ends.
#[derive(Debug)]
struct Starter {
    orders: Option<Sender<Order>>,
    thread: Option<JoinHandle<()>>,
}

struct Order {
    command: Command,
    started: Sender<io::Result<Child>>,
}

impl Starter {
    fn new() -> io::Result<Self> {
        let (orders, taken) = channel();
        let thread = thread::Builder::new()
            .name("lab starter".into())
            .spawn(move || serve(&taken))?;
        Ok(Self {
            orders: Some(orders),
            thread: Some(thread),
        })
    }

    fn start(&self, command: Command) -> io::Result<Child> {
        let (started, child) = channel();
        let order = Order { command, started };
        self.orders
            .as_ref()
            .and_then(|orders| orders.send(order).ok())
            .and_then(|()| child.recv().ok())
            .unwrap_or_else(|| Err(io::ErrorKind::BrokenPipe.into()))
    }
}

fn serve(orders: &Receiver<Order>) {
    for mut order in orders {
        let child = order.command.spawn();
        if let Err(unheard) = order.started.send(child) {
            // Whoever ordered it is gone; so must be the process.
            if let Ok(mut child) = unheard.0 {
                let _ = child.kill();
                let _ = child.wait();
            }
        }
    }
}

impl Drop for Starter {
    fn drop(&mut self) {
        self.orders = None;
        if let Some(thread) = self.thread.take() {
            // It cannot panic: it passes commands on.
            let _ = thread.join();
        }
    }
}

/// A program that is a daemon of labs.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Program {
    /// Its file, and that of its log.
    pub(crate) name: &'static str,
    /// What it is, for people.
    pub(crate) called: &'static str,
    /// What to do where it does not run.
    pub(crate) remedy: &'static str,
}

/// What shows that a daemon is ready.
#[derive(Debug)]
pub(crate) enum Ready {
    /// It listens on this socket.
    Socket(PathBuf),
    /// It has written to this file.
    File(PathBuf),
}

impl Ready {
    fn shows(&self) -> bool {
        match self {
            Self::Socket(socket) => UnixStream::connect(socket).is_ok(),
            Self::File(file) => std::fs::metadata(file).is_ok_and(|file| file.len() > 0),
        }
    }

    /// What is not so yet, of a daemon.
    fn lacks(&self) -> String {
        match self {
            Self::Socket(socket) => format!("does not listen on {}", socket.display()),
            Self::File(file) => format!("has not written {}", file.display()),
        }
    }
}

/// A running daemon. It ends when told to, with its starter, or never where the lab is kept.
#[derive(Debug)]
struct Daemon {
    program: &'static Program,
    child: Mutex<Child>,
    log: PathBuf,
}

impl Daemon {
    /// Starts it with `home/NAME.log` for what it has to say.
    fn start(
        program: &'static Program,
        mut command: Command,
        home: &Path,
        starter: &Starter,
        household: &Household,
    ) -> Result<Self> {
        let log = home.join(format!("{}.log", program.name));
        // Several of one program share it.
        let file = File::options()
            .create(true)
            .append(true)
            .open(&log)
            .map_err(|source| Error::Home {
                what: format!("make file {}", log.display()),
                source,
            })?;
        command
            .current_dir("/")
            .stdout(Stdio::null())
            .stderr(file)
            // Ctrl-C at the terminal is for hopyard, which ends its daemons.
            .process_group(0);
        if !household.keep {
            end_with_starter(&mut command);
        }
        if let Some(cgroup) = &household.cgroup {
            cgroup.adopt(&mut command)?;
        }
        let child = starter.start(command).map_err(|source| Error::Start {
            program: program.name,
            remedy: program.remedy,
            source,
        })?;
        Ok(Self {
            program,
            child: Mutex::new(child),
            log,
        })
    }

    fn pid(&self) -> u32 {
        self.child().id()
    }

    /// How it ended, if it did.
    fn death(&self) -> Option<Error> {
        let how = self.child().try_wait().ok()??;
        Some(Error::Died {
            daemon: self.program.called,
            how,
            said: self.said(),
        })
    }

    /// Waits until it is ready, as the switch `of` has it show.
    fn is_ready(&self, of: &'static str, ready: &Ready) -> Result<()> {
        let deadline = Instant::now() + PATIENCE;
        while !ready.shows() {
            if let Some(death) = self.death() {
                return Err(death.into());
            }
            if crate::signals::interrupted() {
                return Err(crate::Error::Worker(remote::Error::Interrupted));
            }
            if Instant::now() > deadline {
                return Err(Error::Deaf {
                    of,
                    daemon: self.program.name,
                    lacks: ready.lacks(),
                    after: PATIENCE,
                    said: self.said(),
                }
                .into());
            }
            thread::sleep(Duration::from_micros(500));
        }
        Ok(())
    }

    /// Ends it, whatever it is doing; its state goes with it.
    fn end(&self) {
        let mut child = self.child();
        // Fails only if it ended by itself.
        let _ = child.kill();
        let _ = child.wait();
    }

    fn said(&self) -> String {
        std::fs::read_to_string(&self.log).map_or_else(
            |error| format!("{} cannot be read: {error}", self.log.display()),
            |log| shown(&log),
        )
    }

    fn child(&self) -> MutexGuard<'_, Child> {
        self.child.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
