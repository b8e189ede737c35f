//! Switches whose making, upgrade or removal is killed at each of its steps. One test, since it forks: no other thread of the process may hold
//! a lock then. It needs root.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

#[expect(dead_code, reason = "other tests use the rest")]
mod world;

use std::path::Path;

use hopyard_net::{Handle, LinkKind, NewLink, Side};
use hopyard_switch::{Hooks, NewPort, NewSwitch, NewUplink, Result, Switch};
use nix::sys::ptrace;
use nix::sys::signal::{Signal, kill, raise};
use nix::sys::wait::{WaitStatus, waitpid};
use nix::unistd::{ForkResult, Pid, fork};
use world::{BROADCAST, EXPERIMENT, World, frame, under_another_mount};

/// Of the commands of bpf(2), those that change maps.
const MAP_UPDATE: u64 = 2;
const MAP_DELETE: u64 = 3;
/// What both loops below may need at most.
const STEPS: usize = 1000;
/// The last port's program is at a tcx hook, those of the others are classifiers, as of containers.
const PORTS: usize = 3;

/// Runs `act` in a process of its own, which is killed before it changes anything for the `nth` time. False: it ended before.
fn killed_before(nth: usize, act: impl FnOnce() -> Result<()>) -> bool {
    // SAFETY: the other threads of this process wait for this one, and hold no lock.
    let child = match unsafe { fork() }.unwrap() {
        ForkResult::Parent { child } => child,
        ForkResult::Child => {
            let done = ptrace::traceme()
                .and_then(|()| raise(Signal::SIGSTOP))
                .is_ok()
                && act().is_ok();
            // SAFETY: it ends this process, with nothing of its parent's written or removed.
            unsafe { libc::_exit(i32::from(!done)) }
        }
    };
    assert_eq!(
        waitpid(child, None),
        Ok(WaitStatus::Stopped(child, Signal::SIGSTOP))
    );
    let options = ptrace::Options::PTRACE_O_TRACESYSGOOD | ptrace::Options::PTRACE_O_EXITKILL;
    ptrace::setoptions(child, options).unwrap();
    let mut changes = 0;
    loop {
        ptrace::syscall(child, None).unwrap();
        match waitpid(child, None).unwrap() {
            WaitStatus::PtraceSyscall(_) => changes += usize::from(is_about_to_change(child)),
            WaitStatus::Exited(_, 0) => return false,
            other => panic!("{other:?}"),
        }
        if changes == nth {
            kill(child, Signal::SIGKILL).unwrap();
            let ended = waitpid(child, None).unwrap();
            assert!(
                matches!(ended, WaitStatus::Signaled(_, Signal::SIGKILL, _)),
                "{ended:?}"
            );
            return true;
        }
    }
}

/// Is a process that entered or left a system call about to write a map, remove a file, or send a request about a device?
fn is_about_to_change(child: Pid) -> bool {
    let info = ptrace::syscall_info(child).unwrap();
    if info.op != libc::PTRACE_SYSCALL_INFO_ENTRY {
        return false;
    }
    // SAFETY: the kernel filled in this one, as `op` says.
    let entry = unsafe { info.u.entry };
    let is = |number: libc::c_long| u64::try_from(number) == Ok(entry.nr);
    is(libc::SYS_bpf) && matches!(entry.args[0], MAP_UPDATE | MAP_DELETE)
        || is(libc::SYS_sendto)
        || is(libc::SYS_unlinkat)
}

fn change(n: usize, port: &mut NewPort<'_>) {
    port.classifier = n + 1 < PORTS;
}

fn new(name: &str) -> NewSwitch<'_> {
    NewSwitch {
        name,
        uplink: Some("up0"),
        ..NewSwitch::default()
    }
}

/// Makes the switch again, with all its ports.
fn make(world: &World) {
    let mut switch = Switch::create(&new(world.name())).unwrap();
    for n in 0..PORTS {
        let device = format!("p{n}");
        let mut port = NewPort {
            device: &device,
            ..NewPort::default()
        };
        change(n, &mut port);
        switch.add_port(&port).unwrap();
    }
}

/// Has a device of the switch a classifier?
fn has_classifiers() -> bool {
    let here = Handle::here().unwrap();
    ["up0", "p0", "p1", "p2"].iter().any(|device| {
        [Side::Ingress, Side::Egress]
            .iter()
            .any(|side| !here.classifiers(device, *side).unwrap().is_empty())
    })
}

/// What is left of a switch goes with any of these.
fn ask_again(name: &str, nth: usize) {
    let directory = Path::new("/sys/fs/bpf/hopyard/switch").join(name);
    match nth % 4 {
        // Of one that is gone it says so.
        0 => {
            let is_there = directory.exists();
            assert_eq!(Switch::remove(name).is_ok(), is_there);
        }
        1 => Switch::discard(name).unwrap(),
        2 => assert_eq!(Switch::list().unwrap(), [""; 0]),
        // What `apply` begins with.
        _ => Switch::create(&new(name)).unwrap().delete().unwrap(),
    }
    assert!(!directory.exists() && !has_classifiers());
}

/// Whoever comes next after an uplink was half moved takes over the host's addresses behind the new one, too: no port is to claim them.
fn moves_of_the_uplink_are_finished(name: &str) {
    let here = Handle::here().unwrap();
    let kind = LinkKind::veth("far1", None);
    let link = NewLink {
        up: true,
        ..NewLink::new("up1", kind)
    };
    here.add_link(&link).unwrap();
    here.add_address("up1", [10, 77, 0, 1].into(), 24).unwrap();
    let to = |device| NewUplink {
        device,
        host_macs: None,
    };
    // How many kills were followed by the old and by the new uplink.
    let mut seen = [0; 2];
    let mut nth = 1;
    while killed_before(nth, || Switch::open(name)?.set_uplink(&to("up1"))) {
        let mut switch = Switch::open(name).unwrap();
        let shown = switch.show().unwrap();
        let moved = shown.uplink.unwrap().device == "up1";
        seen[usize::from(moved)] += 1;
        let warnings: Vec<String> = shown.warnings.iter().map(ToString::to_string).collect();
        let odd = |text: &&String| text.contains("10.77.0.1");
        assert_eq!(warnings.iter().find(odd), None, "step {nth}");
        switch.set_uplink(&to("up0")).unwrap();
        nth += 1;
        assert!(nth < STEPS);
    }
    assert!(seen.iter().all(|kills| *kills > 0), "{seen:?}");
    Switch::open(name).unwrap().set_uplink(&to("up0")).unwrap();
    here.delete_link("up1").unwrap();
}

#[test]
fn whatever_is_killed_no_port_talks_to_the_host_while_others_have_a_switch() {
    under_another_mount(|| {
        let world = World::with("killed", PORTS, true, change);
        let name = world.name();
        let host_ends = world.host_ends();
        // Rounds after which ports talked to each other, to nobody, and some to the host.
        let mut seen = [0; 3];
        let mut nth = 1;
        while world.in_hub(|| killed_before(nth, || Switch::remove(name))) {
            for guest in ["g0", "g1", "g2"] {
                let own = world.mac(guest);
                world.send(guest, &frame(BROADCAST, own, EXPERIMENT, b"to all"));
            }
            let forwarded = world.heard();
            let at_host: Vec<String> = host_ends
                .heard()
                .into_iter()
                .map(|(port, _)| port)
                .collect();
            assert!(
                forwarded.is_empty() || at_host.is_empty(),
                "step {nth}: {at_host:?} talk to the host, {forwarded:?}"
            );
            let now = match (forwarded.is_empty(), at_host.is_empty()) {
                (false, _) => 0,
                (true, true) => 1,
                (true, false) => 2,
            };
            seen[now] += 1;
            world.in_hub(|| {
                ask_again(name, nth);
                make(&world);
            });
            nth += 1;
            assert!(nth < STEPS);
        }
        assert!(seen.iter().all(|rounds| *rounds > 0), "{seen:?}");
        world.in_hub(|| {
            make(&world);
            moves_of_the_uplink_are_finished(name);
            Switch::remove(name).unwrap();
        });
        // The classifiers of an uplink do not go with the directory either.
        let create = || {
            Switch::create(&NewSwitch {
                hooks: Hooks::Clsact,
                ..new(name)
            })
            .map(drop)
        };
        let mut left = 0;
        let mut nth = 1;
        while world.in_hub(|| killed_before(nth, create)) {
            left += usize::from(world.in_hub(has_classifiers));
            world.in_hub(|| {
                // At the last steps it is whole.
                if Switch::list().unwrap() == [name] {
                    Switch::open(name).unwrap().delete().unwrap();
                }
                assert!(!has_classifiers());
            });
            nth += 1;
            assert!(nth < STEPS);
        }
        assert!(left > 0);
        // The last of these was not killed. An upgrade that is killed leaves classifiers of two versions.
        let upgrade = || Switch::open(name)?.upgrade();
        let mut nth = 1;
        world.in_hub(|| {
            Switch::discard(name).unwrap();
            make(&world);
        });
        while world.in_hub(|| killed_before(nth, upgrade)) {
            world.in_hub(|| {
                Switch::remove(name).unwrap();
                assert!(!has_classifiers(), "step {nth}");
                make(&world);
            });
            // Each second step is enough, and there are many.
            nth += 2;
            assert!(nth < STEPS);
        }
    });
}
