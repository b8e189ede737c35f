//! A hub for switches, with guests behind it, for tests that run apart.

use std::path::Path;
use std::process::Command;
use std::thread;

use aya::programs::{SchedClassifier, TcAttachType};
use hopyard_net::{Handle, LinkKind, NetNs, NewLink};
use nix::mount::{MsFlags, mount};
use nix::sched::{CloneFlags, unshare};
use serde_json::Value;

use super::apart::{empty_places, is_bpffs_mounted};
use super::cli::{Running, Said, hopyard};
use super::icmp::ping;

/// Every switch of these tests, which run apart and do not see each other's.
pub(crate) const NAME: &str = "lan";

/// Runs `f` on a thread with mounts of its own: an empty `/run` and no BPF file system, as after a boot. What `f` pins there goes
/// with the thread.
pub(crate) fn with_own_mounts<T: Send>(f: impl FnOnce() -> T + Send) -> T {
    thread::scope(|scope| {
        let thread = scope.spawn(|| {
            unshare(CloneFlags::CLONE_NEWNS).unwrap();
            let private = MsFlags::MS_REC | MsFlags::MS_PRIVATE;
            mount(None::<&str>, "/", None::<&str>, private, None::<&str>).unwrap();
            empty_places();
            f()
        });
        thread
            .join()
            .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}

/// A namespace with an uplink `up0` and devices `p0`, `p1`, `p2`, each with a guest behind it.
pub(crate) struct Site {
    pub(crate) hub: NetNs,
    pub(crate) guests: Vec<NetNs>,
    _far: NetNs,
}

impl Site {
    pub(crate) fn new() -> Self {
        let hub = NetNs::create().unwrap();
        let far = NetNs::create().unwrap();
        let handle = Handle::new(&hub).unwrap();
        handle.quiet_ipv6().unwrap();
        pair(&handle, "up0", &far);
        let guests: Vec<NetNs> = (0..3).map(|_| NetNs::create().unwrap()).collect();
        for (n, guest) in guests.iter().enumerate() {
            let inside = pair(&handle, &format!("p{n}"), guest);
            inside
                .add_address("eth0", format!("192.0.2.{}", n + 1).parse().unwrap(), 24)
                .unwrap();
        }
        Self {
            hub,
            guests,
            _far: far,
        }
    }

    /// Another device to a wire of its own, `up1`.
    pub(crate) fn second_uplink(&self) -> NetNs {
        let far = NetNs::create().unwrap();
        pair(&Handle::new(&self.hub).unwrap(), "up1", &far);
        far
    }

    /// Runs `hopyard switch …` in the hub.
    pub(crate) fn switch(&self, words: &[&str]) -> Said {
        let mut all = vec!["switch"];
        all.extend(words);
        self.run(hopyard(&all))
    }

    pub(crate) fn run(&self, command: Command) -> Said {
        self.hub.run(|| Running::start(command).wait()).unwrap()
    }

    /// A switch with the uplink and the first ports.
    pub(crate) fn furnish(&self, ports: usize) {
        self.switch(&["create", NAME, "--uplink", "up0"]).exits(0);
        for n in 0..ports {
            self.switch(&["port", "add", NAME, &format!("p{n}")])
                .exits(0);
        }
    }

    /// All switches as the program shows them; nothing may be wrong with any.
    pub(crate) fn shown(&self) -> Value {
        let mut all = self.switch(&["show", "--json"]).exits(0).json();
        for switch in all["switches"].as_array_mut().unwrap() {
            let warnings = switch["warnings"].as_array_mut().unwrap();
            warnings.retain(|w| !w.as_str().unwrap().contains("packet filter"));
            assert!(warnings.is_empty(), "{switch:#}");
        }
        all["switches"].take()
    }

    /// The programs of switches at each hook of each device.
    pub(crate) fn programs(&self) -> Vec<(String, Vec<u32>)> {
        let mut found = Vec::new();
        let handle = Handle::new(&self.hub).unwrap();
        let there = |device: &&str| handle.index(device).is_ok();
        for device in ["up0", "up1", "p0", "p1", "p2"].into_iter().filter(there) {
            for (way, hook) in [("in", TcAttachType::Ingress), ("out", TcAttachType::Egress)] {
                let (_, programs) = self
                    .hub
                    .run(|| SchedClassifier::query_tcx(device, hook).unwrap())
                    .unwrap();
                let ids = programs.iter().map(aya::programs::ProgramInfo::id);
                found.push((format!("{device} {way}"), ids.collect()));
            }
        }
        found
    }

    /// The first two guests reach each other.
    #[track_caller]
    pub(crate) fn talks(&self) {
        ping(&self.guests[0], [192, 0, 2, 2].into()).unwrap();
    }
}

fn pair(hub: &Handle, name: &str, ns: &NetNs) -> Handle {
    let kind = LinkKind::veth("eth0", Some(ns));
    hub.add_link(&NewLink {
        up: true,
        ..NewLink::new(name, kind)
    })
    .unwrap();
    let inside = Handle::new(ns).unwrap();
    inside.quiet_ipv6().unwrap();
    inside.set_up("eth0").unwrap();
    inside
}

/// Neither a mount, nor a lock, nor anything pinned is left.
#[track_caller]
pub(crate) fn nothing_stands() {
    assert!(!is_bpffs_mounted(), "the BPF file system is still mounted");
    assert!(!Path::new("/run/hopyard-switch.lock").exists());
}
