//! Turns: labs side by side, short windows, disturbed ones taken again.

use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};

use hopyard::measure::turns;
use hopyard::model::{Cell, Counted, Disturbance, LoadKind, Measurement, Peer, Turn};
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;

use crate::support::cli::{hopyard, run};
use crate::support::host::unharmed;
use crate::support::plan::Room;
use crate::support::{alone, beside, cell, float, mostly, sampler};

fn generation(paths: &[&str], load: LoadKind, rounds: u32) -> Vec<Result<Measurement, String>> {
    let cells = paths.iter().map(|path| cell(path, Peer::Local, load, &[]));
    generation_of(&cells.collect::<Vec<_>>(), rounds)
}

fn generation_of(cells: &[Cell], rounds: u32) -> Vec<Result<Measurement, String>> {
    assert!(cells.iter().all(turns::takes_turns));
    let cells: Vec<turns::Participant<'_>> = cells.iter().map(Into::into).collect();
    let mut order = ChaCha8Rng::seed_from_u64(1);
    let measured = sampler(100, 20)
        .generation(
            &cells,
            rounds_of(rounds),
            0.0,
            &mut order,
            None,
            &mut turns::Labs::default(),
        )
        .unwrap();
    measured
        .into_iter()
        .map(|one| one.map_err(|e| hopyard::chain(&e)))
        .collect()
}

fn rounds_of(wanted: u32) -> turns::Rounds {
    turns::Rounds {
        wanted,
        deadline: None,
    }
}

/// What a machine that takes the CPUs away cannot change: the way is proved by all of the traffic, and the sample is the sum of
/// the turns that it says it is made of.
#[test]
fn every_load_takes_turns_with_others() {
    let _beside = beside();
    for load in LoadKind::ALL.into_iter().filter(|load| load.pauses()) {
        for measured in generation(&["veth", "bridge", "native"], load, 4) {
            let measured = measured.unwrap_or_else(|why| panic!("{load}: {why}"));
            assert!(measured.way.proved, "{load}: {:?}", measured.way.problems);
            let turns = &measured.turns;
            assert!(
                (4..=12).contains(&turns.len()),
                "{load}: {} turns",
                turns.len()
            );
            let kept = hopyard::model::kept(turns.clone(), Turn::is_quiet);
            let received = kept
                .iter()
                .map(|turn| turn.received)
                .fold(Counted::default(), Counted::plus);
            assert_eq!(measured.received, received, "{load}");
            assert_eq!(
                measured.window_ns,
                kept.iter().map(|turn| turn.window_ns).sum::<u64>(),
                "{load}"
            );
            let units = received.bytes.max(received.transactions);
            assert!(units > 0, "{load}: {received:?}");
            let latency = measured.latency.as_ref().map_or(0, |latency| latency.count);
            assert_eq!(
                latency > 0,
                !load.is_stream(),
                "{load}: {latency} round trips"
            );
            // Workers tell by their own clocks which round trips are in the window, and counters are read some time after its
            // edges: with the warm-ups there would be twice as many.
            assert!(
                latency * 10 <= received.transactions * 12,
                "{load}: {latency} of {received:?}"
            );
            if load.is_tcp() && load != LoadKind::TcpCrr {
                assert!(measured.tcp.is_some(), "{load}");
            }
        }
    }
}

/// A turn begins with an empty wire and fills it before the window: most windows are at the wire's rate.
#[test]
fn turns_over_a_wire_that_pauses_are_at_its_rate() {
    let _beside = beside();
    let set = [("rate", "200mbit"), ("wire_pause", "1ms")];
    for load in [LoadKind::TcpMaerts, LoadKind::UdpStream] {
        let cells = ["native", "macvlan"].map(|path| cell(path, Peer::Far, load, &set));
        mostly(|| {
            for measured in generation_of(&cells, 6) {
                let measured = measured?;
                assert!(measured.way.proved, "{load}: {:?}", measured.way.problems);
                let turns = &measured.turns;
                let mbit =
                    |turn: &Turn| float(turn.received.bytes) * 8000.0 / float(turn.window_ns);
                let mut rates: Vec<f64> = turns.iter().map(mbit).collect();
                rates.sort_by(f64::total_cmp);
                let said = format!("{load}: {rates:.0?} Mbit/s of payload at 200mbit");
                // A window is 25 pauses long, and may have one more at an edge.
                let within = |rate: &&f64| (170.0..208.0).contains(*rate);
                if rates.iter().filter(within).count() * 2 <= rates.len() {
                    return Err(said);
                }
            }
            Ok(())
        })
        .unwrap();
    }
}

/// One that fails does not take the others along.
#[test]
fn a_cell_that_fails_leaves_the_others() {
    let _beside = beside();
    let load = LoadKind::UdpStream;
    let sound = cell("veth", Peer::Local, load, &[]);
    let wrong = cell(
        "veth",
        Peer::Local,
        LoadKind::TcpRr,
        &[("congestion", "nonesuch")],
    );
    let cells = [(&wrong).into(), (&sound).into()];
    let mut order = ChaCha8Rng::seed_from_u64(1);
    let measured = sampler(100, 20)
        .generation(
            &cells,
            rounds_of(4),
            0.0,
            &mut order,
            None,
            &mut turns::Labs::default(),
        )
        .unwrap();
    let why = measured[0]
        .as_ref()
        .expect_err("there is no such congestion control");
    assert!(
        hopyard::chain(why).contains("nonesuch"),
        "{}",
        hopyard::chain(why)
    );
    assert!(
        measured[1].as_ref().is_ok_and(|m| m.way.proved),
        "{:?}",
        measured[1]
    );
}

/// The loads of a path follow one another in one lab, and each proves its way by its own traffic.
#[test]
fn loads_follow_one_another_in_the_same_labs() {
    let _beside = beside();
    let mut labs = turns::Labs::default();
    let mut order = ChaCha8Rng::seed_from_u64(1);
    for load in [
        LoadKind::TcpStream,
        LoadKind::UdpRr,
        LoadKind::TcpCrr,
        LoadKind::TcpRr,
    ] {
        let cells = ["veth", "bridge"].map(|path| cell(path, Peer::Local, load, &[]));
        let cells: Vec<turns::Participant<'_>> = cells.iter().map(Into::into).collect();
        let measured = sampler(100, 20)
            .generation(&cells, rounds_of(4), 0.0, &mut order, None, &mut labs)
            .unwrap();
        for measured in measured {
            let measured =
                measured.unwrap_or_else(|why| panic!("{load}: {}", hopyard::chain(&why)));
            assert!(measured.way.proved, "{load}: {:?}", measured.way.problems);
        }
        assert_eq!(labs.len(), 2, "{load}");
    }
    // A lab is there for those cells alone that need it.
    let other = cell("macvlan", Peer::Local, LoadKind::UdpRr, &[]);
    let measured = sampler(100, 20).generation(
        &[(&other).into()],
        rounds_of(4),
        0.0,
        &mut order,
        None,
        &mut labs,
    );
    assert!(measured.unwrap()[0].is_ok());
    assert_eq!(labs.len(), 1);
}

/// Twice the time would be needed for all rounds: there are fewer in each block then, and as many blocks as verdicts need. With few
/// cells a block has time for some rounds also beside other tests.
#[test]
fn a_time_limit_is_shared_by_the_blocks_that_verdicts_need() {
    let _beside = beside();
    let room = Room::new();
    let out = room.name("run");
    let report = run(&[
        "run",
        "--paths",
        "veth,bridge",
        "--loads",
        "tcp_stream,tcp_rr",
        "--window",
        "600ms",
        "--time-limit",
        "20s",
        "--json",
        "--out",
        &out,
    ])
    .exits(0)
    .json();
    assert!(
        report["run"]["blocks"].as_u64() >= Some(8),
        "{}",
        report["run"]
    );
    let taken = report["run"]["turns"]["taken"].as_u64().unwrap();
    assert!(
        taken < 8 * 2 * (24 + 60),
        "{taken} turns are what the window asks for"
    );
    assert!(report["run"]["measured_s"].as_f64().unwrap() < 22.0);
}

fn disturbed_by_others(turns: &[Turn]) -> usize {
    let foreign = |turn: &&Turn| turn.disturbance == Some(Disturbance::Foreign);
    turns.iter().filter(foreign).count()
}

/// Another process on the CPUs is told by its own CPU time, turn by turn, and those turns are taken again.
#[test]
fn turns_that_others_disturb_are_taken_again() {
    let _alone = alone();
    let mut hog = hopyard_hog();
    let ended = AtomicBool::new(false);
    let measured = std::thread::scope(|scope| {
        scope.spawn(|| {
            // Half of the time, in pieces longer than a turn.
            let until = Instant::now() + Duration::from_secs(30);
            while !ended.load(Relaxed) && Instant::now() < until {
                hog.let_run(Duration::from_millis(150));
                std::thread::sleep(Duration::from_millis(150));
            }
        });
        let measured = generation(&["veth", "bridge"], LoadKind::TcpRr, 8);
        ended.store(true, Relaxed);
        measured
    });
    for measured in measured {
        let turns = measured.unwrap().turns;
        let foreign = disturbed_by_others(&turns);
        assert!(foreign > 0, "{turns:#?}");
        assert!(turns.len() > 8, "{} turns", turns.len());
    }
}

/// Processes that come and go, as of a build, live for less than a round. What was listed when that began has none of them.
#[test]
fn turns_in_which_others_start_processes_are_taken_again() {
    let _alone = alone();
    let ended = AtomicBool::new(false);
    let measured = std::thread::scope(|scope| {
        scope.spawn(|| {
            let until = Instant::now() + Duration::from_secs(30);
            while !ended.load(Relaxed) && Instant::now() < until {
                let mut short = Command::new("timeout");
                short.args(["0.04", "sh", "-c", "while :; do :; done"]);
                short.status().unwrap();
                std::thread::sleep(Duration::from_millis(20));
            }
        });
        let measured = generation(&["veth", "bridge", "macvlan"], LoadKind::TcpRr, 8);
        ended.store(true, Relaxed);
        measured
    });
    for measured in measured {
        let turns = measured.unwrap().turns;
        let foreign = disturbed_by_others(&turns);
        let all = turns.len();
        assert!(foreign * 3 >= all, "{foreign} of {all} turns: {turns:#?}");
    }
}

/// A switch that is a program has a queue of datagrams to carry when its turn ends. It carries them before the next lab's turn:
/// else most turns of `veth` here would be disturbed by another lab's switch and worker.
#[test]
fn a_lab_comes_to_rest_before_the_turn_of_the_next() {
    let _alone = alone();
    let measured = generation(&["tap-vde", "veth"], LoadKind::UdpStream, 12);
    let turns = &measured[1].as_ref().unwrap().turns;
    let foreign = disturbed_by_others(turns);
    let all = turns.len();
    assert!(foreign * 3 <= all, "{foreign} of {all} turns: {turns:#?}");
}

/// A cell that several others are compared with has more turns than they, in the same rounds.
#[test]
fn the_base_of_many_has_several_turns_in_each_round() {
    let _alone = alone();
    let room = Room::new();
    let out = room.name("run");
    let paths = ["veth", "bridge", "bridge-nf", "veth-route", "macvlan"];
    run(&[
        "run",
        "--paths",
        &paths.join(","),
        "--loads",
        "tcp_rr",
        "--window",
        "50ms",
        "--blocks",
        "2",
        "--quick",
        "--out",
        &out,
    ])
    .exits(0);
    let samples = std::fs::read_to_string(format!("{out}/samples.jsonl")).unwrap();
    let mut seen = std::collections::BTreeMap::new();
    for line in samples.lines() {
        let sample: serde_json::Value = serde_json::from_str(line).unwrap();
        let turns = sample["outcome"]["measured"]["turns"].as_array().unwrap();
        let rounds: std::collections::BTreeSet<u64> = turns
            .iter()
            .map(|turn| turn["round"].as_u64().unwrap())
            .collect();
        let each = turns.len() / rounds.len();
        seen.entry(sample["cell"].as_u64().unwrap())
            .or_insert_with(Vec::new)
            .push((each, rounds));
    }
    assert_eq!(seen.len(), paths.len(), "{seen:?}");
    let base: Vec<_> = seen[&0].iter().map(|(_, rounds)| rounds.clone()).collect();
    for (cell, blocks) in &seen {
        let rounds: Vec<_> = blocks.iter().map(|(_, rounds)| rounds.clone()).collect();
        assert_eq!(rounds, base, "cell {cell}");
        let each: Vec<usize> = blocks.iter().map(|(each, _)| *each).collect();
        // Four are compared with it: √4. Disturbed turns come on top.
        let least = if *cell == 0 { 2 } else { 1 };
        assert!(
            each.iter().all(|each| *each >= least),
            "cell {cell}: {each:?}"
        );
        assert!(*cell == 0 || each.contains(&1), "cell {cell}: {each:?}");
    }
}

/// Another program that burns a CPU when it is let to.
struct Hog(std::process::Child);

fn hopyard_hog() -> Hog {
    let child = std::process::Command::new("sh")
        .args(["-c", "while :; do :; done"])
        .spawn()
        .unwrap();
    let hog = Hog(child);
    hog.signal(nix::sys::signal::Signal::SIGSTOP);
    hog
}

impl Hog {
    fn signal(&self, signal: nix::sys::signal::Signal) {
        let pid = nix::unistd::Pid::from_raw(i32::try_from(self.0.id()).unwrap());
        nix::sys::signal::kill(pid, signal).unwrap();
    }

    fn let_run(&mut self, span: Duration) {
        self.signal(nix::sys::signal::Signal::SIGCONT);
        std::thread::sleep(span);
        self.signal(nix::sys::signal::Signal::SIGSTOP);
    }
}

impl Drop for Hog {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The run says that it was measured in turns, and how many something disturbed; `--turns off` measures one after another.
#[test]
fn a_run_tells_of_its_turns() {
    let _beside = beside();
    unharmed(|| {
        let room = Room::new();
        let of = |turns: &str| {
            let out = room.name(turns);
            run(&[
                "run",
                "--paths",
                "veth,bridge",
                "--loads",
                "udp_rr,tcp_stream",
                "--window",
                "100ms",
                "--blocks",
                "2",
                "--turns",
                turns,
                "--json",
                "--out",
                &out,
            ])
            .exits(0)
            .json()
        };
        let on = of("on");
        assert_eq!(on["run"]["turns"]["window_s"], 0.025);
        let taken = on["run"]["turns"]["taken"].as_u64().unwrap();
        assert_eq!(on["run"]["turns"]["shortest_window_s"], 0.01);
        // Two cells of each load in two blocks: ten rounds of 10 ms, and four of 25 ms; three times as many at most.
        assert!((56..=168).contains(&taken), "{taken}");
        assert!(of("off")["run"].get("turns").is_none());
        let text = run(&["report", &room.name("on")]).exits(0).stdout.clone();
        assert!(
            text.contains("measured in turns of 10 to 25 ms, side by side"),
            "{text}"
        );
    });
    let wrong = hopyard(&["run", "--turns", "perhaps"]).output().unwrap();
    assert_eq!(wrong.status.code(), Some(2));
    run(&["run", "--turns", "on", "--warm-up", "0s"])
        .exits(2)
        .says(&["--turns on", "--warm-up 0s has none"]);
    run(&["run", "planetlab-settling-2007", "--turns", "on"])
        .exits(2)
        .says(&["plan planetlab-settling-2007 (`warm_up = \"0s\"`) has none"]);
}
