use super::*;

pub(crate) fn machines(count: usize) -> Vec<Endpoint> {
    let one = |n| Endpoint {
        name: format!("n{n}"),
        connect: format!("ssh n{n}"),
        address: None,
        rack: None,
        kind: None,
    };
    (1..=count).map(one).collect()
}

fn plan(count: usize, settings: &Settings) -> Plan {
    Plan::new(machines(count), settings).unwrap()
}

#[test]
fn time_is_that_of_the_rounds_or_of_what_runs_at_once() {
    let four = plan(4, &Settings::default());
    assert_eq!(four.at_once, 2);
    // Four blocks of two loads of 1.2 s, and one second.
    assert_eq!(four.pair_takes(), [Duration::from_millis(10_600); 2]);
    assert_eq!(four.takes()[0], Duration::from_millis(31_800));
    let one_by_one = Settings {
        at_once: Some(1),
        ..Settings::default()
    };
    assert_eq!(
        plan(4, &one_by_one).takes()[0],
        Duration::from_millis(63_600)
    );
    // An odd number has a round more than it needs: everybody rests once.
    assert_eq!(
        plan(5, &Settings::default()).takes()[0],
        Duration::from_secs(53)
    );
    let many = plan(1000, &Settings::default());
    assert_eq!(many.takes()[0].as_secs(), 10_600 * 9990 / 1000);
}

#[test]
fn each_load_has_its_main_figure_first() {
    let all = Settings {
        loads: Some(LoadKind::ALL.to_vec()),
        ..Settings::default()
    };
    let columns = plan(2, &all).columns();
    for load in LoadKind::ALL {
        let first = columns.iter().find(|c| c.load == load).unwrap();
        assert!(first.is_main(), "{first:?}");
        assert_eq!(
            columns
                .iter()
                .filter(|c| c.load == load && c.is_main())
                .count(),
            1
        );
    }
    assert!(columns.iter().all(|c| c.unit() != "1"), "{columns:?}");
    let of = |quantity| Column {
        load: LoadKind::TcpRr,
        quantity,
    };
    assert!(of("goodput_bps").more_is_better() && !of("latency_p99_ns").more_is_better());
    assert!(!of("cpu_ns_per_byte").more_is_better());
}

#[test]
fn a_load_that_is_named_twice_is_measured_once() {
    let twice = Settings {
        loads: Some(vec![LoadKind::TcpRr, LoadKind::TcpRr]),
        ..Settings::default()
    };
    assert_eq!(plan(2, &twice).loads, [LoadKind::TcpRr]);
}

#[test]
fn what_measures_nothing_is_refused() {
    for settings in [
        Settings {
            at_once: Some(0),
            ..Settings::default()
        },
        Settings {
            blocks: Some(Blocks { min: 1, max: 4 }),
            ..Settings::default()
        },
        Settings {
            loads: Some(Vec::new()),
            ..Settings::default()
        },
        Settings {
            deadline: Some(Duration::MAX),
            ..Settings::default()
        },
        Settings {
            deadline: Some(Duration::ZERO),
            ..Settings::default()
        },
    ] {
        assert!(Plan::new(machines(2), &settings).unwrap_err().is_request());
    }
}
