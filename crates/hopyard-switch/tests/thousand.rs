//! What adding and removing a port costs, and a frame between two, whatever the number of ports.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::path::Path;
use std::time::{Duration, Instant};

use aya::maps::{Array, Map, MapData};
use aya::programs::{SchedClassifier, TestRun, TestRunOptions};
use hopyard_net::{Handle, LinkKind, NetNs, NewLink};
use hopyard_switch::{Mac, NewPort, NewSwitch, Switch};
use nix::time::{ClockId, clock_gettime};

const MANY: u16 = 1000;
const ROUNDS: usize = 15;
/// `TC_ACT_REDIRECT` (linux/pkt_cls.h).
const REDIRECT: u32 = 7;

fn second_mac(n: u16) -> [u8; 6] {
    let [high, low] = n.to_be_bytes();
    [2, 0, 0, 0xff, high, low]
}

/// Both ends in one namespace: some thousand of them would take seconds to make.
fn device(hub: &Handle, n: u16) {
    let kind = LinkKind::veth(format!("q{n}"), None);
    hub.add_link(&NewLink::new(format!("p{n}"), kind)).unwrap();
}

/// Two Ethernet and two IP addresses, as a guest of both families has that has a bridge of its own.
fn add(hub: &Handle, switch: &str, n: u16) {
    let [high, low] = n.to_be_bytes();
    let own = hub.link(&format!("q{n}")).unwrap().mac.unwrap();
    let port = NewPort {
        device: &format!("p{n}"),
        macs: vec![Mac(own), Mac(second_mac(n))],
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
fn costs(hub: &Handle, switch: &str, n: u16) -> [Cost; 2] {
    let add = || add(hub, switch, n);
    let device = format!("p{n}");
    let remove = || Switch::open(switch).unwrap().remove_port(&device).unwrap();
    let added = cost(add, remove);
    add();
    let removed = cost(remove, add);
    remove();
    [added, removed]
}

/// A UDP datagram without contents from the first port to the second, whose addresses the program has remembered: both are
/// their guests' first ones.
fn remembered(hub: &Handle) -> Vec<u8> {
    let mac = |device: &str| hub.link(device).unwrap().mac.unwrap();
    let mut frame = [mac("q1"), mac("q0")].concat();
    frame.extend([
        8, 0, 0x45, 0, 0, 28, 0, 0, 0, 0, 64, 17, 0, 0, 10, 0, 0, 0, 10, 0, 0, 1, 4, 0, 4, 0, 0, 8,
        0, 0,
    ]);
    frame
}

/// One that it looks up in all tables: of IPv6, and to a second address.
fn looked_up(hub: &Handle) -> Vec<u8> {
    let own = hub.link("q0").unwrap().mac.unwrap();
    let mut frame = [second_mac(1), own].concat();
    frame.extend([0x86, 0xdd, 0x60, 0, 0, 0, 0, 8, 17, 64]);
    for n in 0..2 {
        frame.extend([0xfd, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, n]);
    }
    frame.extend([4, 0, 4, 0, 0, 8, 0, 0]);
    frame
}

/// The least time of a frame from the first port, of many rounds: each is so short that some have the CPU to themselves on the
/// busiest machine.
fn frame_time(switch: &str, hub: &Handle, mut frame: Vec<u8>) -> Duration {
    const PROGRAM: &str = "program-hopyard_port_in";
    let path = Path::new("/sys/fs/bpf/hopyard/switch")
        .join(switch)
        .join(PROGRAM);
    let program = SchedClassifier::from_pin(path).unwrap();
    // Frames to a device that is down are dropped.
    for end in ["p1", "q1"] {
        hub.set_up(end).unwrap();
    }
    frame.resize(60.max(frame.len()), 0);
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

/// What it takes to read as many entries of a map as there are ports: kernels and machines differ several times in that.
fn looks(switch: &str) -> Duration {
    /// Octets of `struct port` (bpf/layout.h).
    const PORT: usize = 48;
    let file = Path::new("/sys/fs/bpf/hopyard/switch")
        .join(switch)
        .join("ports");
    let map = Map::Array(MapData::from_pin(file).unwrap());
    let ports: Array<_, [u8; PORT]> = Array::try_from(map).unwrap();
    let round = |_| {
        let before = computed();
        for slot in 0..u32::from(MANY) {
            ports.get(&slot, 0).unwrap();
        }
        computed() - before
    };
    (0..ROUNDS).map(round).min().unwrap()
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
        let looks = looks(&name);
        let times =
            || [remembered, looked_up].map(|frame| frame_time(&name, &handle, frame(&handle)));
        device(&handle, MANY);
        for n in 0..2 {
            device(&handle, n);
            add(&handle, &name, n);
        }
        let few = costs(&handle, &name, MANY);
        let among_few = times();
        for n in 2..MANY {
            device(&handle, n);
            add(&handle, &name, n);
        }
        let many = costs(&handle, &name, MANY);
        let among_many = times();
        switch.delete().unwrap();
        ([few, many], [among_few, among_many], looks)
    });
    let ([few, many], [among_few, among_many], looks) = measured.unwrap();
    eprintln!("{MANY} looks into a map: {looks:?}");
    let kinds = ["remembered", "looked up"];
    for (what, (few, many)) in kinds.iter().zip(among_few.iter().zip(&among_many)) {
        eprintln!("a frame, {what}: {many:?} among {MANY} ports, {few:?} among 2");
        // A walk through the ports would make it some hundred times as long.
        assert!(*many < 3 * *few, "{what}: {many:?}, {few:?}");
    }
    for (what, (few, many)) in ["add", "remove"].iter().zip(few.iter().zip(&many)) {
        let Cost { clock, cpu } = many;
        eprintln!(
            "{what} a port: {clock:?}, of which {cpu:?} computing, among {MANY}; {:?}, {:?} among 2",
            few.clock, few.cpu
        );
        // Whether each is still there is looked at. To do more for each would take as long again for each.
        assert!(*cpu < 3 * few.cpu + 2 * looks, "{what}: {many:?}, {few:?}");
    }
}
