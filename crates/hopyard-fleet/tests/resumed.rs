//! Pairs whose samples went with the session that measured them are measured again.

use std::collections::BTreeSet;
use std::time::Duration;

use hopyard_fleet::{
    End, Ended, Endpoint, Engine, Job, Outcome, Plan, Result, Sample, Settings, State, Store, drive,
};
use hopyard_model::LoadKind;

/// Measures at once, and has samples of some of these pairs alone.
struct Model {
    has: BTreeSet<usize>,
    /// It fails.
    fails: Option<usize>,
    begun: Vec<Job>,
    running: Vec<Job>,
}

impl Model {
    fn with(has: impl IntoIterator<Item = usize>) -> Self {
        Self {
            has: has.into_iter().collect(),
            fails: None,
            begun: Vec::new(),
            running: Vec::new(),
        }
    }
}

impl Engine for Model {
    fn start(&mut self, _: &Store, job: Job) -> Result<()> {
        self.begun.push(job);
        self.running.push(job);
        Ok(())
    }

    fn ended(&mut self, _: &Store) -> Result<Vec<Ended>> {
        let ended = self.running.drain(..).map(|job| Ended {
            place: job.place,
            outcome: Some(Outcome {
                state: if self.fails == Some(job.place) {
                    State::Failed
                } else {
                    State::Measured
                },
                attempt: job.attempt,
                began_ms: 0,
                took_ms: 1,
                cause: None,
                figures: Vec::new(),
            }),
            answers: [None, None],
        });
        Ok(ended.collect())
    }

    fn samples(&self, _: &Store, job: Job) -> std::result::Result<Vec<Sample>, String> {
        let sample = Sample {
            load: LoadKind::TcpRr,
            block: job.attempt,
            attempt: 0,
            started_ms: 0,
            window_ns: Some(500_000_000),
            counted: true,
            cause: None,
            values: Vec::new(),
        };
        let is_own = self.begun.iter().any(|own| own.place == job.place);
        let found = (is_own && self.has.contains(&job.place)).then(|| vec![sample]);
        found.ok_or("they are gone".to_owned())
    }

    fn stop(&mut self) {}

    fn now(&self) -> Duration {
        Duration::ZERO
    }
}

#[test]
fn what_lost_its_samples_is_measured_again_and_nothing_else() {
    let home = tempfile::tempdir().unwrap();
    let directory = home.path().join("out");
    let endpoints = (0..4).map(|n| Endpoint {
        name: format!("n{n}"),
        connect: format!("ssh n{n}"),
        address: None,
        rack: None,
        kind: None,
    });
    let plan = Plan::new(endpoints.collect(), &Settings::default()).unwrap();
    let session = |mut store: Store, mut model: Model| {
        let end = drive(&mut store, &mut model, None, || false, |_| {}).unwrap();
        assert_eq!(end, End::Complete);
        let missing: Vec<usize> = store.missing.iter().map(|(place, _)| *place).collect();
        (model.begun, missing)
    };
    let resumed = || Store::resume(&directory, &plan.endpoints, None).unwrap();

    let store = Store::create(&directory, plan.clone()).unwrap();
    let pairs = store.fleet.pairs.len();
    let (begun, missing) = session(store, Model::with([0, 3]));
    assert_eq!((begun.len(), missing), (pairs, vec![1, 2, 4, 5]));

    let failing = Model {
        fails: Some(5),
        ..Model::with([1, 2, 4])
    };
    let (begun, missing) = session(resumed(), failing);
    let mut again: Vec<(usize, u32)> = begun.iter().map(|job| (job.place, job.attempt)).collect();
    again.sort_unstable();
    assert_eq!(again, [1, 2, 4, 5].map(|place| (place, 2)));
    assert_eq!(missing, [5]);
    // Its figures of the first session are not replaced by a failure.
    let outcomes = resumed().fleet.outcomes;
    assert!(
        outcomes
            .iter()
            .all(|o| o.as_ref().unwrap().state == State::Measured)
    );

    let (begun, missing) = session(resumed(), Model::with(0..pairs));
    let again: Vec<(usize, u32)> = begun.iter().map(|job| (job.place, job.attempt)).collect();
    assert_eq!((again, missing.len()), (vec![(5, 2)], 0));
    let (begun, _) = session(resumed(), Model::with(0..pairs));
    assert!(begun.is_empty());
}
