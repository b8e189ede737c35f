use super::*;

#[derive(Debug, clap::Parser)]
struct Words {
    #[command(flatten)]
    decide: Decide,
}

fn options(words: &[&str]) -> Decide {
    let words = ["decide"].iter().chain(words);
    <Words as clap::Parser>::try_parse_from(words)
        .unwrap()
        .decide
}

#[test]
fn choosing() {
    assert_eq!(chosen(&options(&[])).unwrap().len(), QUESTIONS.len());
    assert_eq!(chosen(&options(&["--quick"])).unwrap().len(), 2);
    let only = options(&["--quick", "--only", "udp_stream_equal"]);
    assert_eq!(chosen(&only).unwrap()[0].name, "udp_stream_equal");
    let error = chosen(&options(&["--only", "sctp"])).unwrap_err();
    assert!(error.to_string().contains("tcp_rr_known"), "{error}");
}

/// A table has this time, plus 3 s in which a program starts and ends its last block.
#[test]
fn it_takes_as_long_as_it_says() {
    for (words, minutes) in [(&["--quick"][..], 5.0), (&[][..], 40.0)] {
        let options = options(words);
        let seconds = if options.quick {
            QUICK_PER_CELL_S
        } else {
            PER_CELL_S
        };
        let questions = chosen(&options).unwrap();
        let cells: usize = questions.iter().map(|q| q.cells().len()).sum();
        let each = options.methods().len() * 2;
        let time = (cells * each) as u64 * seconds + (3 * questions.len() * each) as u64;
        assert!(time as f64 / 60.0 <= minutes, "{time} s");
    }
}

#[test]
fn a_failed_table_of_either_hopyard_is_no_success() {
    let good_without = |way: Way| {
        let tally = Tally::of(&[tally::tests::failed(way, true)], way, true);
        is_good(&[tally], &[])
    };
    assert!(is_good(&[], &[]));
    assert!(!good_without(Way::Turns));
    assert!(!good_without(Way::Windows));
    assert!(good_without(Way::Netperf));
    let quiet = tally::tests::decided(Way::Windows, false, 1, 2);
    let records = [tally::tests::failed(Way::Windows, true), quiet];
    assert!(is_good(&[Tally::of(&records, Way::Windows, true)], &[]));
}

#[test]
fn turns_are_always_asked() {
    let methods = |words: &[&str]| options(words).methods();
    let twice = methods(&["--against", "netperf,windows,netperf"]);
    assert_eq!(twice, [Way::Windows, Way::Netperf, Way::Turns]);
    let words = ["decide", "--against", "turns"];
    assert!(<Words as clap::Parser>::try_parse_from(words).is_err());
}

#[test]
fn every_way_is_asked_alike_and_in_no_order_of_its_own() {
    let questions: Vec<_> = QUESTIONS.iter().collect();
    let methods = options(&[]).methods();
    assert_eq!(methods.len(), 4);
    let tasks = tasks(&questions, &methods, 2, 1);
    for way in methods {
        for hog in [false, true] {
            let some = tasks.iter().filter(|t| t.way == way && t.hog == hog);
            assert_eq!(some.count(), 2 * QUESTIONS.len());
        }
    }
    let half = tasks.len() / 2;
    assert!(tasks[..half].iter().all(|task| task.repetition == 0));
    let first: Vec<Way> = tasks[..4].iter().map(|task| task.way).collect();
    assert!(
        tasks
            .windows(2)
            .any(|pair| pair[0].question.name != pair[1].question.name),
        "{first:?}"
    );
}
