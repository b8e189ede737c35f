//! Starting daemons so that they end when they should.

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

use super::{Error, control};
use crate::lab::Result;

/// How a lab has its daemons run.
pub(super) struct Household<'a> {
    /// The namespace they live in.
    pub(super) hub: &'a NetNs,
    /// The group that counts their CPU time with the load's.
    pub(super) cgroup: Option<&'a Cgroup>,
    /// Do they outlive this process?
    pub(super) keep: bool,
}

/// A thread that starts processes and lives as long as they shall: the kernel kills them when the
/// thread that started them ends, which it does at the latest with this process, however that ends.
#[derive(Debug)]
pub(super) struct Starter {
    orders: Option<Sender<Order>>,
    thread: Option<JoinHandle<()>>,
}

struct Order {
    command: Command,
    started: Sender<io::Result<Child>>,
}

impl Starter {
    pub(super) fn new() -> io::Result<Self> {
        let (orders, taken) = channel();
        let thread = thread::Builder::new()
            .name("ovs starter".into())
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

/// A running daemon. It ends when told to, with its starter, or never where the lab is kept.
#[derive(Debug)]
pub(super) struct Daemon {
    name: &'static str,
    child: Mutex<Child>,
    log: PathBuf,
}

impl Daemon {
    /// Starts it with `home/NAME.log` for what it has to say.
    pub(super) fn start(
        name: &'static str,
        mut command: Command,
        home: &Path,
        starter: &Starter,
        household: &Household<'_>,
    ) -> Result<Self> {
        let log = home.join(format!("{name}.log"));
        let file = File::create(&log).map_err(|source| Error::Home {
            what: format!("make file {}", log.display()),
            source,
        })?;
        command
            .current_dir("/")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(file)
            // Ctrl-C at the terminal is for hopyard, which ends its daemons.
            .process_group(0);
        household.hub.adopt(&mut command)?;
        if !household.keep {
            end_with_starter(&mut command);
        }
        if let Some(cgroup) = household.cgroup {
            cgroup.adopt(&mut command)?;
        }
        let child = starter.start(command).map_err(|source| Error::Start {
            program: name.to_owned(),
            source,
        })?;
        Ok(Self {
            name,
            child: Mutex::new(child),
            log,
        })
    }

    pub(super) fn pid(&self) -> u32 {
        self.child().id()
    }

    /// How it ended, if it did.
    pub(super) fn death(&self) -> Option<Error> {
        let how = self.child().try_wait().ok()??;
        Some(Error::Died {
            daemon: self.name,
            how,
            said: self.said(),
        })
    }

    /// Waits until it listens on its socket.
    pub(super) fn listens(&self, what: &'static str, socket: &Path) -> Result<()> {
        let deadline = Instant::now() + control::PATIENCE;
        while UnixStream::connect(socket).is_err() {
            if let Some(death) = self.death() {
                return Err(death.into());
            }
            if Instant::now() > deadline {
                return Err(Error::Deaf {
                    what,
                    daemon: self.name,
                    socket: socket.display().to_string(),
                    after: control::PATIENCE,
                    said: self.said(),
                }
                .into());
            }
            thread::sleep(Duration::from_micros(500));
        }
        Ok(())
    }

    /// Ends it, whatever it is doing; its state goes with it.
    pub(super) fn end(&self) {
        let mut child = self.child();
        // Fails only if it ended by itself.
        let _ = child.kill();
        let _ = child.wait();
    }

    fn said(&self) -> String {
        std::fs::read_to_string(&self.log).map_or_else(
            |error| format!("{} cannot be read: {error}", self.log.display()),
            |log| control::shown(&log),
        )
    }

    fn child(&self) -> MutexGuard<'_, Child> {
        self.child.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
