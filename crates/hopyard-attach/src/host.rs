//! A host of its own for the plugins of one network, and its containers.

mod at_once;

use std::collections::BTreeMap;
use std::fs;
use std::net::{IpAddr, UdpSocket};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError, mpsc};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use hopyard_model::units::ns;
use hopyard_net::{Handle, LinkKind, NetNs, NewLink};
use nix::errno::Errno;
use nix::mount::{MsFlags, mount};
use nix::sched::{CloneFlags, unshare};
use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::signal::{Signal, kill};
use nix::sys::time::TimeValLike;
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::Pid;
use serde_json::Value;

use self::at_once::{at_once, side_by_side};
use crate::conflist::{COVERED, Network};
use crate::error::{Error, Result};
use crate::plan::Plan;
use crate::plugin::{Caller, Container};
use crate::probe::{self, Answers};

/// Where plugins find namespaces by name, as runtimes put them.
const NAMES: &str = "/run/netns";
const FILES: &str = "/run/hopyard-attach";
const FAR: &str = "far0";
/// Processes that go on for longer after a call are daemons, and nobody waits for them.
const REST: Duration = Duration::from_secs(5);

type Task = Box<dyn FnOnce(&mut Site) + Send>;

/// The thread that is in the namespaces of a host. They end with it.
pub(crate) struct Host {
    tasks: Option<mpsc::Sender<Task>>,
    thread: Option<JoinHandle<()>>,
}

impl Host {
    /// Makes a host without containers.
    pub(crate) fn make(plan: &Plan, network: &Network) -> Result<Self> {
        let (tasks, received) = mpsc::channel::<Task>();
        let (made, ready) = mpsc::channel();
        let (plan, network) = (plan.clone(), network.clone());
        let thread = thread::spawn(move || match Site::make(&plan, network) {
            Ok(mut site) => {
                let _heard = made.send(Ok(()));
                for task in received {
                    task(&mut site);
                }
            }
            Err(error) => {
                let _heard = made.send(Err(error));
            }
        });
        let made = ready.recv();
        let made = made.map_err(|error| Error::host("make a host for plugins", error))?;
        made.map(|()| Self {
            tasks: Some(tasks),
            thread: Some(thread),
        })
    }

    /// Has something done in the host, and waits for it.
    pub(crate) fn run<T: Send + 'static>(
        &self,
        task: impl FnOnce(&mut Site) -> std::result::Result<T, String> + Send + 'static,
    ) -> std::result::Result<T, String> {
        let (done, result) = mpsc::channel();
        let task: Task = Box::new(move |site: &mut Site| {
            let _heard = done.send(task(site));
        });
        let sent = self
            .tasks
            .as_ref()
            .is_some_and(|tasks| tasks.send(task).is_ok());
        let result = result.recv().ok().filter(|_| sent);
        result.unwrap_or_else(|| Err("its host has ended".to_owned()))
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        drop(self.tasks.take());
        if let Some(thread) = self.thread.take() {
            // A panic of it has been told by whoever waited for its answer.
            let _ended = thread.join();
        }
    }
}

/// A namespace that a container could be in.
struct Place {
    path: PathBuf,
    netns: NetNs,
}

/// A container that stays.
struct Standing {
    id: String,
    path: PathBuf,
    result: Value,
}

/// What a visit saw; ns.
#[derive(Debug, Default)]
pub(crate) struct Times {
    pub(crate) add: Vec<u64>,
    pub(crate) answer: Vec<u64>,
    pub(crate) del: Vec<u64>,
    pub(crate) cpu: u64,
    pub(crate) rest: u64,
}

/// What is in a host.
pub(crate) struct Site {
    network: Network,
    cni_path: Vec<PathBuf>,
    /// Namespace of the other end of the uplink.
    _far: NetNs,
    standing: Vec<Standing>,
    peer: Option<IpAddr>,
    /// The peer's.
    answers: Option<Answers>,
    places: Vec<(Place, UdpSocket)>,
    visits: u64,
}

impl Site {
    fn make(plan: &Plan, network: Network) -> Result<Self> {
        apart()?;
        let step = |what: &'static str| move |error: hopyard_net::Error| Error::host(what, error);
        let here = Handle::here().map_err(step("open the host's namespace"))?;
        let far = NetNs::create().map_err(step("make the far end of the uplink"))?;
        let far_handle = Handle::new(&far).map_err(step("open the far end of the uplink"))?;
        let kind = LinkKind::veth(FAR, Some(&far));
        let uplink = NewLink {
            up: true,
            ..NewLink::new(plan.uplink.as_str(), kind)
        };
        let link = here.set_up("lo").and_then(|()| here.add_link(&uplink));
        link.and_then(|()| far_handle.set_up(FAR))
            .and_then(|()| here.settle(&plan.uplink).map(drop))
            .map_err(step("make the uplink"))?;
        Ok(Self {
            network,
            cni_path: plan.cni_path.clone(),
            _far: far,
            standing: Vec::new(),
            peer: None,
            answers: None,
            places: Vec::new(),
            visits: 0,
        })
    }

    fn caller(&self) -> Caller<'_> {
        Caller {
            network: &self.network,
            cni_path: &self.cni_path,
            files: Path::new(FILES),
        }
    }

    /// Adds containers that stay; the first one answers those that come.
    pub(crate) fn stand(&mut self, count: u32) -> std::result::Result<(), String> {
        let places = (0..count).map(|n| place(&format!("s{n}")));
        let places: Vec<Place> = places.collect::<std::result::Result<_, _>>()?;
        let caller = self.caller();
        let add = |n: usize, place: &Place| {
            let id = format!("standing-{n}");
            let container = Container {
                id: &id,
                netns: &place.path,
            };
            let result = caller.add(&container)?;
            Ok::<_, String>(Standing {
                path: place.path.clone(),
                result,
                id,
            })
        };
        let Some((first, others)) = places.split_first() else {
            return Err("no container is to be there that could answer".to_owned());
        };
        let answers = Answers::start(&first.netns).map_err(|error| error.to_string())?;
        // Alone: it makes the bridge or the switch.
        let first = add(0, first)?;
        let address = probe::address(&first.result);
        let no_address = "ADD gave the container no address, so that nobody can answer it";
        let peer = address.ok_or(no_address)?;
        let mut standing = vec![Ok(first)];
        standing.extend(side_by_side(others, |n, place| add(n + 1, place)));
        let standing = standing
            .into_iter()
            .collect::<std::result::Result<_, _>>()?;
        let _daemons_go_on = reap();
        self.standing = standing;
        self.peer = Some(peer);
        self.answers = Some(answers);
        Ok(())
    }

    /// What the plugins say of themselves.
    pub(crate) fn about(&self) -> BTreeMap<String, String> {
        self.caller().about()
    }

    /// Removes all containers that stay; how long that took, ns.
    pub(crate) fn clear(&mut self) -> std::result::Result<u64, String> {
        let standing = std::mem::take(&mut self.standing);
        let caller = self.caller();
        let began = Instant::now();
        let done = side_by_side(&standing, |_, one| {
            let container = Container {
                id: &one.id,
                netns: &one.path,
            };
            caller.del(&container, Some(&one.result))
        });
        let took = ns(began.elapsed());
        let _daemons_go_on = reap();
        done.into_iter().collect::<std::result::Result<(), _>>()?;
        Ok(took)
    }

    /// Connects so many containers side by side, has each ask its peer, and disconnects them.
    pub(crate) fn visit(&mut self, beside: u32) -> std::result::Result<Times, String> {
        let count = beside as usize;
        let peer = self.peer.ok_or("no container is there that could answer")?;
        while self.places.len() < count {
            let place = place(&format!("v{}", self.places.len()))?;
            let socket = probe::socket(&place.netns, peer.is_ipv6());
            let socket = socket.map_err(|error| format!("cannot make a socket: {error}"))?;
            self.places.push((place, socket));
        }
        self.visits += 1;
        let before = cpu()?;
        let caller = self.caller();
        let visits = self.visits;
        let name = |n: usize| format!("visit-{visits}-{n}");
        let results: Vec<Mutex<Option<Value>>> = (0..count).map(|_| Mutex::new(None)).collect();
        let added = at_once(count, |n| {
            let (place, socket) = &self.places[n];
            let id = name(n);
            let container = Container {
                id: &id,
                netns: &place.path,
            };
            let began = Instant::now();
            let result = caller.add(&container)?;
            let added = began.elapsed();
            *results[n].lock().unwrap_or_else(PoisonError::into_inner) = Some(result);
            probe::ask(socket, peer, (visits << 16) | n as u64)?;
            Ok((ns(added), ns(began.elapsed())))
        });
        let _daemons_go_on = reap();
        let deleted = at_once(count, |n| {
            let id = name(n);
            let container = Container {
                id: &id,
                netns: &self.places[n].0.path,
            };
            let result = results[n]
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .clone();
            let began = Instant::now();
            caller.del(&container, result.as_ref())?;
            Ok(ns(began.elapsed()))
        });
        let ended = Instant::now();
        let all_ended = reap();
        let rest = ns(ended.elapsed());
        if !all_ended {
            // They would count as the next network's.
            end_others();
        }
        let added = added
            .into_iter()
            .collect::<std::result::Result<Vec<_>, String>>()?;
        let del = deleted
            .into_iter()
            .collect::<std::result::Result<_, String>>()?;
        let (add, answer) = added.into_iter().unzip();
        if !all_ended {
            return Err(format!(
                "processes that it left behind go on for more than {} s after DEL",
                REST.as_secs()
            ));
        }
        Ok(Times {
            add,
            answer,
            del,
            cpu: cpu()?.saturating_sub(before),
            rest,
        })
    }
}

/// Moves the calling thread, and those that it starts, into a host of its own.
fn apart() -> Result<()> {
    let step = |what: &str| {
        let what = what.to_owned();
        move |errno: Errno| Error::host(what, errno)
    };
    unshare(CloneFlags::CLONE_NEWNS | CloneFlags::CLONE_NEWNET)
        .map_err(step("make namespaces for a host"))?;
    let none = None::<&str>;
    mount(none, "/", none, MsFlags::MS_PRIVATE | MsFlags::MS_REC, none)
        .map_err(step("make the mounts below `/` private"))?;
    for covered in COVERED.map(Path::new) {
        if covered.is_dir() && !covered.is_symlink() {
            mount(
                Some("tmpfs"),
                covered,
                Some("tmpfs"),
                MsFlags::empty(),
                none,
            )
            .map_err(step(&format!("mount an empty {}", covered.display())))?;
        }
    }
    let pins = Path::new("/sys/fs/bpf");
    if pins.is_dir() {
        mount(Some("bpf"), pins, Some("bpf"), MsFlags::empty(), none)
            .map_err(step("mount a BPF file system"))?;
    }
    for directory in [FILES, NAMES] {
        fs::create_dir_all(directory)
            .map_err(|error| Error::host(format!("make {directory}"), error))?;
    }
    Ok(())
}

fn place(name: &str) -> std::result::Result<Place, String> {
    let path = Path::new(NAMES).join(name);
    let made = NetNs::create().and_then(|netns| {
        // As a runtime does.
        Handle::new(&netns)?.set_up("lo")?;
        netns.bind(&path)?;
        Ok(netns)
    });
    let netns = made.map_err(|error| error.to_string())?;
    Ok(Place { path, netns })
}

/// Collects what plugins left running: orphans are children of this process, the first of its PID namespace. Nothing else may
/// be running that somebody waits for. False if some go on.
fn reap() -> bool {
    let began = Instant::now();
    loop {
        match waitpid(Pid::from_raw(-1), Some(WaitPidFlag::WNOHANG)) {
            Ok(WaitStatus::StillAlive) => {
                if began.elapsed() > REST {
                    return false;
                }
                thread::sleep(Duration::from_micros(200));
            }
            Err(Errno::EINTR) | Ok(_) => {}
            Err(_) => return true,
        }
    }
}

/// Ends every other process of this PID namespace, whose first this one is, and collects them.
fn end_others() {
    if nix::unistd::getpid() == Pid::from_raw(1) {
        // None may be left by now.
        let _none = kill(Pid::from_raw(-1), Signal::SIGKILL);
        let _all_ended = reap();
    }
}

/// CPU time of all processes that have been collected.
fn cpu() -> std::result::Result<u64, String> {
    let usage = getrusage(UsageWho::RUSAGE_CHILDREN).map_err(|error| error.to_string())?;
    let micros = usage.user_time().num_microseconds() + usage.system_time().num_microseconds();
    Ok(u64::try_from(micros).unwrap_or(0) * 1000)
}
