//! Many machines in virtual time, through the real schedule, store and document. A model stands in for what measures. They are
//! 400, or as many as `HOPYARD_FLEET_MACHINES` says: 1,000 take a minute (docs/fleet.md).
//!
//! A test binary of its own, since it looks at the memory of its process.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::cmp::Reverse;
use std::collections::{BTreeSet, BinaryHeap};
use std::sync::LazyLock;
use std::time::{Duration, Instant};

use hopyard_fleet::{
    Answer, End, Ended, Endpoint, Engine, Fleet, Job, Outcome, Plan, Ranks, Result, Sample,
    Settings, State, Store, document, drive, text, write,
};
use hopyard_model::LoadKind;
use hopyard_stats::Estimate;

/// How many there are.
static MACHINES: LazyLock<u16> = LazyLock::new(|| {
    let asked = std::env::var("HOPYARD_FLEET_MACHINES");
    asked.map_or(400, |count| count.parse().unwrap())
});
/// They never answer.
const DEAD: [u16; 3] = [6, 199, 398];
/// It sends at a tenth of what others do.
const SLOW: u16 = 321;
/// A pair takes about so long.
const PAIR_S: f64 = 10.0;
/// One that hangs until its deadline.
const HANGS_S: f64 = 3600.0;
/// Samples of each pair and load: a thousand machines have ten million in all.
const BLOCKS: u32 = 10;
/// The bound for the whole controller of a thousand machines, kB.
const MOST_KB: u64 = 512 << 10;
/// What a process has before it has any pair, kB.
const EMPTY_KB: u64 = 16 << 10;

/// Machines that answer from a model.
#[derive(Default)]
struct Model {
    now_ns: u64,
    ends: BinaryHeap<Reverse<(u64, usize)>>,
    busy: BTreeSet<u16>,
    started: usize,
    most_running: usize,
}

/// A number from 0 to 1 that belongs to a place.
fn any(place: usize) -> f64 {
    let mut x = place as u64 ^ 0x9e37_79b9_7f4a_7c15;
    for _ in 0..3 {
        x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    }
    (x >> 11) as f64 / (1_u64 << 53) as f64
}

fn hangs(place: usize) -> bool {
    any(place + 2) < 2e-5
}

/// One in two hundred fails though its machines answer.
fn fails(place: usize) -> bool {
    any(place + 1) < 0.005
}

fn takes_s(place: usize) -> f64 {
    if hangs(place) {
        HANGS_S
    } else {
        PAIR_S * (0.9 + 0.2 * any(place))
    }
}

impl Engine for Model {
    fn start(&mut self, store: &Store, job: Job) -> Result<()> {
        let pair = store.fleet.pairs[job.place];
        for machine in pair.ends() {
            assert!(self.busy.insert(machine), "machine {machine} is in two");
        }
        let end_ns = self.now_ns + (takes_s(job.place) * 1e9) as u64;
        self.ends.push(Reverse((end_ns, job.place)));
        self.started += 1;
        self.most_running = self.most_running.max(self.ends.len());
        Ok(())
    }

    fn ended(&mut self, store: &Store) -> Result<Vec<Ended>> {
        let Some(Reverse((now_ns, place))) = self.ends.pop() else {
            return Ok(Vec::new());
        };
        self.now_ns = now_ns;
        let pair = store.fleet.pairs[place];
        for machine in pair.ends() {
            self.busy.remove(&machine);
        }
        let is_dead = |machine: u16| DEAD.contains(&machine);
        let failed = hangs(place) || fails(place) || pair.ends().into_iter().any(is_dead);
        let answers = pair.ends().map(|machine| {
            failed.then(|| match is_dead(machine) {
                true => Answer::No("no route to host".to_owned()),
                false => Answer::Yes,
            })
        });
        let rate = if pair.client == SLOW { 1e9 } else { 1e10 } * (0.9 + 0.2 * any(place));
        let figure = |value: f64| Estimate {
            value,
            low: value * 0.98,
            high: value * 1.02,
            confidence: 0.95,
            n: 4,
        };
        let figures = (0..6).map(|column| (column, figure(rate / f64::from(column + 1))));
        let outcome = Outcome {
            state: if failed {
                State::Failed
            } else {
                State::Measured
            },
            attempt: 1,
            began_ms: now_ns / 1_000_000,
            took_ms: 10_000,
            cause: failed.then(|| "the worker at `server` died".into()),
            figures: if failed {
                Vec::new()
            } else {
                figures.collect()
            },
        };
        Ok(vec![Ended {
            place,
            outcome: Some(outcome),
            answers,
        }])
    }

    /// Ten of each load, around what the pair has.
    fn samples(&self, store: &Store, job: Job) -> std::result::Result<Vec<Sample>, String> {
        let client = store.fleet.pairs[job.place].client;
        let rate = if client == SLOW { 1e9 } else { 1e10 } * (0.9 + 0.2 * any(job.place));
        let sample = |(at, load): (u32, LoadKind)| Sample {
            load,
            block: at,
            attempt: 0,
            started_ms: 0,
            window_ns: Some(500_000_000),
            counted: true,
            cause: None,
            values: (0..)
                .zip(&store.fleet.columns)
                .filter(|(_, column)| column.load == load)
                .map(|(column, _)| {
                    (
                        column,
                        rate * (0.98 + 0.04 * any(job.place + at as usize * 7919)),
                    )
                })
                .collect(),
        };
        let loads = [LoadKind::TcpStream, LoadKind::TcpRr];
        let all = loads
            .into_iter()
            .flat_map(|load| (0..BLOCKS).map(move |at| (at, load)));
        Ok(all.map(sample).collect())
    }

    fn stop(&mut self) {}

    fn now(&self) -> Duration {
        Duration::from_nanos(self.now_ns)
    }
}

/// The most memory that this process has had, kB.
fn most_memory_kb() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status
        .lines()
        .find_map(|l| l.strip_prefix("VmHWM:"))
        .unwrap();
    line.trim().trim_end_matches(" kB").parse().unwrap()
}

fn plan(at_once: usize) -> Plan {
    let endpoints = (0..*MACHINES)
        .map(|n| Endpoint {
            name: format!("n{n}"),
            connect: format!("ssh n{n}"),
            address: None,
            rack: Some(format!("r{}", n / 40)),
            kind: None,
        })
        .collect();
    let settings = Settings {
        at_once: Some(at_once),
        ..Settings::default()
    };
    Plan::new(endpoints, &settings).unwrap()
}

fn fleet_failed(fleet: &Fleet) -> usize {
    let outcomes = fleet.outcomes.iter().flatten();
    outcomes.filter(|o| o.state == State::Failed).count()
}

/// The samples of all pairs that were measured are in the table, each once.
fn table(directory: &std::path::Path, pairs: usize) -> String {
    use parquet::file::reader::{FileReader, SerializedFileReader};
    let (mut rows, mut bytes, mut files) = (0, 0, 0);
    let runs = std::fs::read_dir(directory.join("samples")).unwrap();
    for round in runs.flat_map(|run| std::fs::read_dir(run.unwrap().path()).unwrap()) {
        for part in std::fs::read_dir(round.unwrap().path()).unwrap() {
            let file = std::fs::File::open(part.unwrap().path()).unwrap();
            bytes += file.metadata().unwrap().len();
            files += 1;
            let reader = SerializedFileReader::new(file).unwrap();
            rows += usize::try_from(reader.metadata().file_metadata().num_rows()).unwrap();
        }
    }
    assert_eq!(rows, pairs * 2 * BLOCKS as usize);
    format!("{rows} in {files} files of {} MiB", bytes >> 20)
}

#[test]
fn many_machines_are_planned_measured_kept_and_reported_in_bounded_memory() {
    let machines = usize::from(*MACHINES);
    // A thousand machines are for whoever looks at them afterwards, too.
    let home = tempfile::tempdir().unwrap();
    let kept = std::env::var_os("HOPYARD_FLEET_DIR").map(std::path::PathBuf::from);
    let directory = kept.unwrap_or_else(|| home.path().join("out"));
    let begun = Instant::now();
    let plan = plan(machines / 2);
    let pairs = plan.preview().pairs;
    assert_eq!(pairs, machines * (machines - 1) / 2);
    assert_eq!(plan.rounds().len(), machines - 1);
    println!("plan: {:?}", begun.elapsed());

    // Interrupted after a third of it.
    let mut store = Store::create(&directory, plan.clone()).unwrap();
    let mut model = Model::default();
    let third = Duration::from_secs_f64(PAIR_S * f64::from(*MACHINES) / 3.0);
    let end = drive(&mut store, &mut model, Some(third), || false, |_| {}).unwrap();
    assert_eq!((end, model.most_running), (End::TimeLimit, machines / 2));
    let first = model.started;
    drop(store);
    println!(
        "{first} pairs in {:?} of virtual time: {:?}",
        model.now(),
        begun.elapsed()
    );

    // And resumed.
    let mut store = Store::resume(&directory, &plan.endpoints, None).unwrap();
    let measured = store
        .fleet
        .outcomes
        .iter()
        .flatten()
        .filter(|o| o.state == State::Measured);
    let left = pairs - measured.count();
    let own_s = |machine: u16| -> f64 {
        let own = store
            .fleet
            .pairs
            .iter()
            .zip(&store.fleet.outcomes)
            .enumerate();
        let left = own.filter(|(_, (pair, outcome))| {
            let is_measured = outcome.as_ref().is_some_and(|o| o.state == State::Measured);
            pair.ends().contains(&machine) && !is_measured
        });
        left.map(|(place, _)| takes_s(place)).sum()
    };
    let alive = (0..*MACHINES).filter(|m| !DEAD.contains(m));
    let longest_s = alive.map(own_s).fold(0.0, f64::max);
    let mut model = Model::default();
    let mut last = None;
    let watch = |progress| last = Some(progress);
    let end = drive(&mut store, &mut model, None, || false, watch).unwrap();
    assert_eq!(end, End::Complete);
    assert!(model.started <= left);
    println!(
        "{} pairs in {:?} of virtual time: {:?}",
        model.started,
        model.now(),
        begun.elapsed()
    );
    let ideal_s = left as f64 / f64::from(*MACHINES / 2) * PAIR_S;
    let took_s = model.now().as_secs_f64();
    // A pair that hangs for an hour holds up its two machines, which then have their own pairs left; nobody else waits.
    assert!(
        took_s < ideal_s.max(longest_s) * 1.05,
        "{took_s} of {ideal_s} or {longest_s}"
    );

    let fleet = &store.fleet;
    let mut skipped = 0;
    for (place, pair) in fleet.pairs.iter().enumerate() {
        let is_dead = pair.ends().iter().any(|m| DEAD.contains(m));
        match fleet.outcomes[place].as_ref().map(|o| o.state) {
            Some(State::Measured) => assert!(!is_dead && !fails(place) && !hangs(place)),
            Some(State::Failed) => assert!(is_dead || fails(place) || hangs(place)),
            None => {
                assert!(is_dead, "{pair:?}");
                skipped += 1;
            }
        }
    }
    let lost = (0..*MACHINES).filter(|m| fleet.lost[usize::from(*m)].is_some());
    assert_eq!(lost.collect::<Vec<_>>(), DEAD);
    // Two attempts of each in each session.
    assert!(skipped >= 3 * machines - 6 - 12, "{skipped}");
    assert_eq!(last.unwrap().lost, 3);

    let ranks = Ranks::of(fleet);
    let worst: Vec<u16> = ranks.machines.iter().map(|m| m.machine).take(4).collect();
    assert_eq!(worst, [&DEAD[..], &[SLOW]].concat());
    let shown = text(fleet, &ranks);
    assert!(
        shown.lines().count() < 60 && shown.contains("n321"),
        "{shown}"
    );
    write(&document(fleet, &ranks), &directory).unwrap();
    println!("document: {:?}", begun.elapsed());
    drop(store);
    let read = Fleet::read(&directory).unwrap();
    assert_eq!(read.outcomes.iter().flatten().count(), pairs - skipped);
    println!("read again: {:?}", begun.elapsed());
    let told = table(&directory, pairs - fleet_failed(&read) - skipped);
    println!("samples: {told}");
    for file in ["pairs.jsonl", "fleet.json"] {
        let bytes = std::fs::metadata(directory.join(file)).unwrap().len();
        println!("{file}: {} MiB", bytes >> 20);
    }
    let most = most_memory_kb();
    println!("memory: {} MiB at most", most >> 10);
    let share = pairs as f64 / 499_500.0;
    let allowed = EMPTY_KB + ((MOST_KB - EMPTY_KB) as f64 * share) as u64;
    assert!(most < allowed, "{most} kB, {allowed} are allowed");
}
