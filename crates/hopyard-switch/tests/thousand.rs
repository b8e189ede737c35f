//! What adding and removing a port costs, and a frame between two, whatever the number of ports.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::path::Path;
use std::time::{Duration, Instant};

use aya::programs::{SchedClassifier, TestRun, TestRunOptions};
use hopyard_net::{Handle, LinkKind, NetNs, NewLink};
use hopyard_switch::{NewPort, NewSwitch, Switch};
use nix::time::{ClockId, clock_gettime};

const MANY: u16 = 1000;
const ROUNDS: usize = 15;
/// `TC_ACT_REDIRECT` (linux/pkt_cls.h).
const REDIRECT: u32 = 7;

/// Both ends in one namespace: some thousand of them would take seconds to make.
fn device(hub: &Handle, n: u16) -> String {
    let name = format!("p{n}");
    let kind = LinkKind::veth(format!("q{n}"), None);
    hub.add_link(&NewLink::new(&name, kind)).unwrap();
    name
}

/// Two IP addresses, as a guest of both families has.
fn add(switch: &str, device: &str, n: u16) {
    let [high, low] = n.to_be_bytes();
    let port = NewPort {
        device,
        ips: vec![
            [10, 0, high, low].into(),
            [0xfd00, 0, 0, 0, 0, 0, 0, n].into(),
        ],
        ..NewPort::default()
    };
    Switch::open(switch).unwrap().add_port(&port).unwrap();
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort();
    times[times.len() / 2]
}

/// What this thread has computed so far: the kernel waits for a grace period in each attachment (some
/// milliseconds, `tcx_entry_sync`), and a busy machine lets everybody wait.
fn computed() -> Duration {
    let time = clock_gettime(ClockId::CLOCK_THREAD_CPUTIME_ID).unwrap();
    Duration::from(time)
}

/// The median of a command's time by the clock, and the least of what it computed: a thread's account has what the
/// machine below took from its CPU, too.
#[derive(Debug)]
struct Cost {
    clock: Duration,
    cpu: Duration,
}

fn cost(mut command: impl FnMut(), mut undo: impl FnMut()) -> Cost {
    let mut clock = Vec::new();
    let mut cpu = Vec::new();
    for _ in 0..ROUNDS {
        let (began, computed_before) = (Instant::now(), computed());
        command();
        cpu.push(computed() - computed_before);
        clock.push(began.elapsed());
        undo();
    }
    Cost {
        clock: median(clock),
        cpu: cpu.into_iter().min().unwrap(),
    }
}

/// What it takes to find the switch and add a port, and to find it and remove the port.
fn costs(switch: &str, device: &str, n: u16) -> [Cost; 2] {
    let add = || add(switch, device, n);
    let remove = || Switch::open(switch).unwrap().remove_port(device).unwrap();
    let added = cost(add, remove);
    add();
    let removed = cost(remove, add);
    remove();
    [added, removed]
}

/// The least time of a unicast frame from the first port to the second, of many rounds: each is so short that some
/// have the CPU to themselves on the busiest machine.
fn frame_time(switch: &str, hub: &Handle) -> Duration {
    const PROGRAM: &str = "program-hopyard_port_in";
    let path = Path::new("/sys/fs/bpf/hopyard/switch")
        .join(switch)
        .join(PROGRAM);
    let program = SchedClassifier::from_pin(path).unwrap();
    // Frames to a device that is down are dropped.
    for end in ["p1", "q1"] {
        hub.set_up(end).unwrap();
    }
    let mac = |device: &str| hub.link(device).unwrap().mac.unwrap();
    let mut frame = [mac("q1"), mac("q0")].concat();
    // A UDP datagram without contents, between the addresses that the ports are held to.
    frame.extend([
        8, 0, 0x45, 0, 0, 28, 0, 0, 0, 0, 64, 17, 0, 0, 10, 0, 0, 0, 10, 0, 0, 1,
    ]);
    frame.extend([4, 0, 4, 0, 0, 8, 0, 0]);
    frame.resize(60, 0);
    let mut context = [0; 44];
    context[40..].copy_from_slice(&hub.index("p0").unwrap().to_ne_bytes());
    let round = |_| {
        let result = program.test_run(TestRunOptions {
            data_in: Some(&frame),
            ctx_in: Some(&context),
            repeat: 1_000,
            ..TestRunOptions::new()
        });
        let result = result.unwrap();
        assert_eq!(result.return_value, REDIRECT);
        result.duration
    };
    (0..1_000).map(round).min().unwrap()
}

#[test]
fn a_port_is_added_and_removed_as_fast_among_a_thousand() {
    let name = format!("test-{}-costs", std::process::id());
    let hub = NetNs::create().unwrap();
    let handle = Handle::new(&hub).unwrap();
    handle.quiet_ipv6().unwrap();
    let measured = hub.run(|| {
        let switch = Switch::create(&NewSwitch {
            name: &name,
            ..NewSwitch::default()
        })
        .unwrap();
        let last = device(&handle, MANY);
        for n in 0..2 {
            add(&name, &device(&handle, n), n);
        }
        let few = costs(&name, &last, MANY);
        let frame_among_few = frame_time(&name, &handle);
        for n in 2..MANY {
            let device = device(&handle, n);
            add(&name, &device, n);
        }
        let many = costs(&name, &last, MANY);
        let frame = frame_time(&name, &handle);
        switch.delete().unwrap();
        ([few, many], [frame_among_few, frame])
    });
    let ([few, many], frame) = measured.unwrap();
    eprintln!(
        "a frame: {:?} among {MANY} ports, {:?} among 2",
        frame[1], frame[0]
    );
    // A walk through the ports would make it some hundred times as long.
    assert!(frame[1] < 3 * frame[0], "{frame:?}");
    for (what, (few, many)) in ["add", "remove"].iter().zip(few.iter().zip(&many)) {
        let Cost { clock, cpu } = many;
        eprintln!(
            "{what} a port: {clock:?}, of which {cpu:?} computing, among {MANY}; {:?}, {:?} among 2",
            few.clock, few.cpu
        );
        assert!(
            *cpu < Duration::from_millis(10),
            "{what}: {many:?}, {few:?}"
        );
    }
}
