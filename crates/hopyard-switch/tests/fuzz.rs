//! A million frames at random through the programs as they are pinned (`BPF_PROG_TEST_RUN`), each
//! compared with a model of `docs/switch.md`: the verdict, the frame afterwards, and who is credited with
//! what. They need root.
//!
//! `HOPYARD_FUZZ_SEED` repeats a run, `HOPYARD_FUZZ_FRAMES` changes its length.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]
#![expect(
    clippy::print_stdout,
    reason = "whoever reads a test's output wants the seed"
)]

#[path = "fuzz/live.rs"]
mod live;
#[path = "fuzz/make.rs"]
mod make;
#[path = "fuzz/model.rs"]
mod model;
mod packet;
#[path = "fuzz/too_big.rs"]
mod too_big;
#[expect(dead_code, reason = "other tests use the rest")]
mod world;

use std::io::Read;
use std::net::IpAddr;
use std::path::Path;
use std::time::{Instant, SystemTime};

use aya::programs::{ProgramError, SchedClassifier, TestRun, TestRunOptions};
use hopyard_net::{Handle, LinkKind, MacvlanMode, NewLink};
use hopyard_switch::{Broadcasts, Counters, DROP_REASONS, Mac, NewPort, Prefix, Switch};
use make::Maker;
use model::{Outcome, Party, Port, Rules, Verdict};
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use world::{Kind, World};

/// Frames of all tests together: a million, and as many as the kernel's test refuses to run.
const FRAMES: usize = 1_020_000;
/// Frames that are sent for real.
const LIVE: usize = 25_600;
/// Frames between two looks at the counters.
const BATCH: usize = 64;
/// Where `struct __sk_buff` has its `ifindex`, with all fields up to it.
const CONTEXT: usize = 44;

fn setting(name: &str) -> Option<u64> {
    let value = std::env::var(name).ok()?;
    Some(value.parse().unwrap())
}

fn seed() -> u64 {
    setting("HOPYARD_FUZZ_SEED").unwrap_or_else(|| {
        let now = SystemTime::UNIX_EPOCH.elapsed().unwrap();
        now.as_secs() << 20 | u64::from(now.subsec_micros())
    })
}

/// Ports with every option, and with several together.
fn ports() -> Vec<Port> {
    let ip = |text: &str| text.parse().unwrap();
    let own = |n: u8| vec![[2, 0, 0, 0, 0, n + 1]];
    let mut ports: Vec<Port> = (0..18)
        .map(|n| Port {
            macs: own(n),
            ..Port::default()
        })
        .collect();
    ports[1].macs.push([2, 0, 0, 0, 0, 0x81]);
    ports[2].ips = vec![ip("192.0.2.12"), ip("2001:db8::12")];
    ports[3].isolated = true;
    ports[3].ips = vec![ip("192.0.2.13"), ip("2001:db8::13")];
    ports[4].vlan = 1;
    ports[4].ips = vec![ip("192.0.2.12"), ip("2001:db8::14")];
    ports[5].vlan = 7;
    ports[5].ips = vec![ip("192.0.2.15"), ip("2001:db8::15")];
    ports[6].allow_spoof = true;
    ports[7].allow_spoof = true;
    ports[7].ips = vec![ip("192.0.2.17"), ip("2001:db8::17"), ip("192.0.2.27")];
    ports[8].vlan = 7;
    ports[8].isolated = true;
    ports[8].macs.push([2, 0, 0, 0, 0, 0x88]);
    ports[9].vlan = 7;
    ports[9].allow_spoof = true;
    ports[10].kind = Kind::Tap;
    ports[11].kind = Kind::Tap;
    ports[11].isolated = true;
    ports[12].kind = Kind::Late;
    ports[13].kind = Kind::Late;
    ports[13].vlan = 7;
    ports[13].isolated = true;
    ports[14].prefixes = vec![(ip("192.0.2.64"), 26), (ip("2001:db8:0:1::"), 64)];
    ports[14].ips = vec![ip("192.0.2.24")];
    ports[15].router = true;
    ports[15].dhcp_server = true;
    ports[15].ips = vec![ip("2001:db8::15"), ip("192.0.2.25")];
    ports[16].router = true;
    ports[16].allow_spoof = true;
    ports[17].mute = true;
    ports[17].dhcp_server = true;
    ports[17].prefixes = vec![(ip("::"), 0)];
    ports
}

/// The host's own addresses. They are at a device that is down, and the host answers no questions for them. The last is the
/// link-local address of the stranger's Ethernet address, which some ports may send from.
const OF_HOST: [&str; 3] = ["192.0.2.50", "2001:db8::50", "fe80::ff:fe00:aabb"];

fn give_addresses_to_host(name: &str) {
    let handle = Handle::here().unwrap();
    let kind = LinkKind::Macvlan {
        lower: "up0".to_owned(),
        mode: MacvlanMode::Bridge,
    };
    handle.add_link(&NewLink::new("alias", kind)).unwrap();
    for (ip, prefix) in OF_HOST.into_iter().zip([32, 128, 128]) {
        handle
            .add_address("alias", ip.parse().unwrap(), prefix)
            .unwrap();
    }
    handle
        .set_sysctl("net/ipv4/conf/all/arp_ignore", "8")
        .unwrap();
    Switch::open(name).unwrap().upgrade().unwrap();
}

/// A switch in namespaces of its own, and what it should do.
fn build(name: &str, uplink: bool, answers: bool) -> (World, Rules) {
    let mut ports = ports();
    let kinds: Vec<Kind> = ports.iter().map(|port| port.kind).collect();
    let world = World::of_kinds(name, &kinds, uplink, answers, |n, new: &mut NewPort<'_>| {
        let port = &ports[n];
        new.macs = port.macs.iter().map(|mac| Mac(*mac)).collect();
        new.ips.clone_from(&port.ips);
        new.vlan = (port.vlan > 0).then_some(port.vlan);
        new.isolated = port.isolated;
        new.allow_spoof = port.allow_spoof;
        let prefix = |(ip, bits): &(IpAddr, u8)| Prefix::new(*ip, *bits).unwrap();
        new.prefixes = port.prefixes.iter().map(prefix).collect();
        new.router = port.router;
        new.dhcp_server = port.dhcp_server;
        new.broadcasts = if port.mute {
            Broadcasts::PerSecond(0)
        } else {
            Broadcasts::Unlimited
        };
    });
    if uplink {
        world.in_hub(|| give_addresses_to_host(world.name()));
    }
    for (n, port) in ports.iter_mut().enumerate() {
        port.ifindex = world.in_hub(|| nix::net::if_::if_nametoindex(&*format!("p{n}")).unwrap());
    }
    let rules = Rules {
        host: uplink.then(|| world.mac("host")),
        answers,
        of_host: OF_HOST
            .iter()
            .filter(|_| uplink)
            .map(|ip| ip.parse().unwrap())
            .collect(),
        ports,
    };
    (world, rules)
}

/// A frame, whose it is, and what should become of it.
struct Case {
    origin: Party,
    frame: Vec<u8>,
    expected: Outcome,
}

/// What the kernel's test did with a frame.
enum Ran {
    /// It takes no such frame.
    Refused,
    AsExpected,
    /// Its sender was told that it is too long, rather than not.
    Told,
}

struct Bench<'a> {
    rules: &'a Rules,
    switch: Switch,
    port_in: SchedClassifier,
    up_in: SchedClassifier,
    up_out: SchedClassifier,
    uplink: u32,
    out: Vec<u8>,
    refused: usize,
}

impl<'a> Bench<'a> {
    /// In the namespace of the switch.
    fn open(name: &str, rules: &'a Rules) -> Self {
        let program = |program: &str| {
            let file = Path::new("/sys/fs/bpf/hopyard/switch").join(name);
            SchedClassifier::from_pin(file.join(format!("program-{program}"))).unwrap()
        };
        Self {
            rules,
            switch: Switch::open(name).unwrap(),
            port_in: program("hopyard_port_in"),
            up_in: program("hopyard_up_in"),
            up_out: program("hopyard_up_out"),
            uplink: nix::net::if_::if_nametoindex("up0").unwrap_or(0),
            out: vec![0; 4096],
            refused: 0,
        }
    }

    fn counters(&self) -> Vec<Counters> {
        let stats = self.switch.stats().unwrap();
        stats.into_iter().map(|party| party.counters).collect()
    }

    /// Runs the program of the frame's hook. The error says how verdict or frame differ.
    fn run(&mut self, case: &Case) -> Result<Ran, String> {
        let (program, ifindex) = match case.origin {
            Party::Port(n) => (&self.port_in, self.rules.ports[n].ifindex),
            Party::Nobody => (&self.port_in, self.uplink),
            Party::Wire => (&self.up_in, self.uplink),
            Party::Host => (&self.up_out, self.uplink),
        };
        let mut context = [0; CONTEXT];
        context[CONTEXT - 4..].copy_from_slice(&ifindex.to_ne_bytes());
        let result = match program.test_run(TestRunOptions {
            data_in: Some(&case.frame),
            data_out: Some(&mut self.out),
            ctx_in: Some(&context),
            ..TestRunOptions::new()
        }) {
            Ok(result) => result,
            // The test's own demand: an IP header where the type says so.
            Err(ProgramError::SyscallError(error))
                if error.io_error.raw_os_error() == Some(libc::EINVAL) =>
            {
                self.refused += 1;
                return Ok(Ran::Refused);
            }
            Err(error) => return Err(error.to_string()),
        };
        let verdict = result.return_value as i32;
        let expected = &case.expected;
        let after = &self.out[..result.data_size_out as usize];
        let is_redirected = verdict == Verdict::Redirected.code();
        if is_redirected && expected.told.as_deref() == Some(after) {
            return Ok(Ran::Told);
        }
        if verdict != expected.verdict.code() {
            let after = hex(after);
            let (expected, told) = (expected.verdict, expected.told.as_deref().map(hex));
            return Err(format!(
                "verdict {verdict} and {after}, not {expected:?} or {told:?}"
            ));
        }
        if after != expected.frame {
            let expected = hex(&expected.frame);
            return Err(format!("afterwards {}, not {expected}", hex(after)));
        }
        Ok(Ran::AsExpected)
    }

    /// Runs frames one after the other and says how the counters moved, and how they should have.
    fn moves(&mut self, cases: &[Case], start: usize, seed: u64) -> [Vec<Counters>; 2] {
        let before = self.counters();
        let mut expected = before.clone();
        for (n, case) in cases.iter().enumerate() {
            let ran = match self.run(case) {
                Ok(Ran::Refused) => continue,
                Ok(ran) => ran,
                Err(why) => fail(case, start + n, seed, &why),
            };
            let of = |party| index(self.rules, party);
            case.expected.count(&mut expected, of);
            if let Ran::Told = ran {
                expected[of(case.origin)].too_big += 1;
            }
        }
        [self.counters(), expected]
    }

    fn check(&mut self, cases: &[Case], start: usize, seed: u64) {
        let [counted, expected] = self.moves(cases, start, seed);
        if counted == expected {
            return;
        }
        // Once more, one at a time, to find out which.
        for (n, case) in cases.iter().enumerate() {
            let [counted, expected] = self.moves(std::slice::from_ref(case), start + n, seed);
            if counted != expected {
                let differ: Vec<_> = counted.iter().zip(&expected).enumerate().collect();
                let differ: Vec<_> = differ.iter().filter(|(_, (is, be))| is != be).collect();
                fail(
                    case,
                    start + n,
                    seed,
                    &format!("counters (party, (is, should be)): {differ:?}"),
                );
            }
        }
        panic!(
            "counters differ for frames {start} to {} of seed {seed}, not again one by one: {counted:?}, {expected:?}",
            start + cases.len()
        );
    }
}

/// Nobody else takes the frames that the taps got.
fn empty_taps(world: &World, rules: &Rules) {
    let mut buffer = [0; 2048];
    for n in 0..rules.ports.len() {
        if let Some(tap) = world.tap(&format!("g{n}")) {
            while (&tap.0).read(&mut buffer).is_ok() {}
        }
    }
}

/// Where a party is among the counters.
fn index(rules: &Rules, party: Party) -> usize {
    let ports = if rules.host.is_some() { 2 } else { 0 };
    match party {
        Party::Wire | Party::Nobody => 0,
        Party::Host => 1,
        Party::Port(n) => ports + n,
    }
}

fn hex(octets: &[u8]) -> String {
    octets.iter().map(|octet| format!("{octet:02x}")).collect()
}

fn fail(case: &Case, index: usize, seed: u64, why: &str) -> ! {
    panic!(
        "HOPYARD_FUZZ_SEED={seed}, frame {index} from {:?}: {}\n{why}",
        case.origin,
        hex(&case.frame)
    );
}

/// Runs this share of the frames; says what each party counted.
fn fuzz(name: &str, uplink: bool, answers: bool, percent: usize) -> Vec<Counters> {
    let (world, rules) = build(name, uplink, answers);
    let seed = seed();
    let frames = setting("HOPYARD_FUZZ_FRAMES").map_or(FRAMES, |frames| frames as usize);
    let frames = frames * percent / 100;
    println!("{name}: HOPYARD_FUZZ_SEED={seed}, {frames} frames");
    let started = Instant::now();
    let (counters, refused) = world.in_hub(|| {
        let mut bench = Bench::open(world.name(), &rules);
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        // Each test makes others.
        rng.set_stream(u64::from(uplink) << 1 | u64::from(answers));
        let mut maker = Maker { rules: &rules, rng };
        for start in (0..frames).step_by(BATCH) {
            let cases: Vec<Case> = (0..BATCH.min(frames - start))
                .map(|_| {
                    let origin = maker.origin();
                    let frame = maker.frame(origin);
                    let expected = rules.judge(origin, None, &frame);
                    Case {
                        origin,
                        frame,
                        expected,
                    }
                })
                .collect();
            bench.check(&cases, start, seed);
            empty_taps(&world, &rules);
        }
        (bench.counters(), bench.refused)
    });
    let took = started.elapsed().as_secs_f64();
    println!("{name}: {took:.1} s; the kernel refused {refused}");
    let mut all = [0; DROP_REASONS.len()];
    for party in &counters {
        for (sum, drops) in all.iter_mut().zip(party.drops) {
            *sum += drops;
        }
    }
    for ((reason, _), count) in DROP_REASONS.iter().zip(all) {
        println!("{name}: dropped as {reason}: {count}");
    }
    let told: u64 = counters.iter().map(|party| party.too_big).sum();
    println!("{name}: told that it is too big: {told}");
    assert!(told > 0);
    assert!(refused < frames / 20 + 1, "{refused} of {frames} refused");
    counters
}

/// A fuzzer that does not get to a rule says nothing about it. Rates are a matter of time: `tests/ports/rates.rs`.
fn assert_reached(counters: &[Counters], but: &[&str]) {
    for (n, (reason, _)) in DROP_REASONS.iter().enumerate() {
        let count: u64 = counters.iter().map(|party| party.drops[n]).sum();
        assert_eq!(count == 0, but.contains(reason), "{reason}: {count}");
    }
}

#[test]
fn with_an_uplink() {
    let counters = fuzz("fuzz-up", true, false, 40);
    assert_reached(
        &counters,
        &[
            "unknown", "rate_out", "rate_in", "down", "device", "checksum",
        ],
    );
    assert!(counters.iter().all(|party| party.answered == 0));
}

#[test]
fn with_an_uplink_and_answers() {
    let counters = fuzz("fuzz-answers", true, true, 40);
    assert_reached(
        &counters,
        &[
            "unknown", "rate_out", "rate_in", "down", "device", "checksum",
        ],
    );
    // Wire, host, and the ports that know of somebody: not themselves, not isolated.
    let answered: Vec<bool> = counters.iter().map(|party| party.answered > 0).collect();
    assert!(answered.contains(&true));
    for n in [5, 6, 7, 10] {
        assert!(!answered[n], "party {n}");
    }
}

#[test]
fn without_an_uplink() {
    let counters = fuzz("fuzz-alone", false, true, 20);
    assert_reached(
        &counters,
        &[
            "no_port", "rate_out", "rate_in", "down", "device", "checksum",
        ],
    );
}

#[test]
fn real_frames_reach_whom_they_should() {
    let (world, rules) = build("fuzz-live", true, true);
    let seed = seed();
    println!("live: HOPYARD_FUZZ_SEED={seed}, {LIVE} frames");
    let live = live::Live::open(&world, &rules);
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    rng.set_stream(4);
    let mut maker = Maker { rules: &rules, rng };
    for _ in (0..LIVE).step_by(BATCH) {
        let frames: Vec<(Party, Vec<u8>)> = (0..BATCH)
            .map(|_| {
                let origin = match maker.origin() {
                    Party::Nobody => Party::Wire,
                    other => other,
                };
                (origin, maker.frame(origin))
            })
            .collect();
        live.check(&frames, seed);
    }
}
