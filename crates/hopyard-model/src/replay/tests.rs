use proptest::prelude::*;

use super::*;

fn wrong(text: &str) -> (usize, usize, String) {
    let error = Replay::parse(text).unwrap_err();
    (error.line, error.column, error.why)
}

#[test]
fn a_trace_is_gaps_and_sizes() {
    let text = "gap_s,bytes\n0.0,1200\n\n# a comment\n 0.000012500 , 160 \n2,65507\n";
    let trace = Replay::parse(text).unwrap();
    let datagrams = [
        Datagram(0, 1200),
        Datagram(12_500, 160),
        Datagram(2_000_000_000, 65_507),
    ];
    assert_eq!(trace.datagrams(), datagrams);
    assert_eq!(trace.span_ns(), 2_000_012_500);
    let summary = trace.summary("a".into());
    assert_eq!((summary.datagrams, summary.bytes), (3, 1200 + 160 + 65_507));
    assert_eq!(
        (summary.smallest_bytes, summary.largest_bytes),
        (160, 65_507)
    );
    let windows = text.replace('\n', "\r\n");
    assert_eq!(Replay::parse(&windows).unwrap(), trace);
}

#[test]
fn what_is_wrong_is_said_with_its_place() {
    for (text, line, column, why) in [
        ("", 1, 1, "no datagram"),
        ("# nothing\n", 1, 1, "no datagram"),
        ("0.1,100\ngap_s,bytes\n", 2, 1, "no time in seconds"),
        ("0.1,100\n0.1\n", 2, 4, "no comma"),
        ("0.1,100\n0.1,\n", 2, 5, "no number of bytes"),
        ("0.1,100,7\n", 1, 5, "`100,7` is no number of bytes"),
        ("0.1,31\n", 1, 5, "at least 32"),
        ("0.1,65508\n", 1, 5, "at most 65507"),
        ("0.1,-1\n", 1, 5, "no number of bytes"),
        ("-0.1,100\n", 1, 1, "no time in seconds"),
        ("1e3,100\n", 1, 1, "no time in seconds"),
        (".5,100\n", 1, 1, "no time in seconds"),
        ("0.1234567891,100\n", 1, 1, "more than 9 digits"),
        ("10.000000001,100\n", 1, 1, "more than 10 s"),
        ("99999999999999999999,100\n", 1, 1, "no time in seconds"),
        ("0,100\n0,100\n", 2, 1, "2 datagrams within 0 ns"),
        ("0.0000001,100\n0,100\n", 2, 1, "at most 10000000 a second"),
        ("\u{1b}[2J,100\n", 1, 1, "no time in seconds"),
    ] {
        let told = wrong(text);
        assert_eq!((told.0, told.1), (line, column), "{text:?}: {told:?}");
        assert!(told.2.contains(why), "{text:?}: {told:?}");
        assert!(!told.2.contains('\u{1b}'), "{told:?}");
    }
}

#[test]
fn a_trace_that_is_too_long_is_refused() {
    let line = "0.001,100\n";
    assert!(Replay::parse(&line.repeat(MOST_DATAGRAMS)).is_ok());
    let told = wrong(&line.repeat(MOST_DATAGRAMS + 1));
    assert_eq!(told.0, MOST_DATAGRAMS + 1);
    assert!(told.2.contains("more than 100000 datagrams"), "{told:?}");
}

#[test]
fn the_sample_is_20_ms_of_52_datagrams() {
    let sample = Replay::sample();
    assert_eq!(Replay::parse(&sample.text()).unwrap(), sample);
    assert_eq!(
        (sample.datagrams().len(), sample.span_ns()),
        (52, 20_000_000)
    );
}

proptest! {
    #[test]
    fn what_is_written_reads_back(
        datagrams in prop::collection::vec((1_000_u64..=10_000_000_000, 32_u32..=65_507), 1..50)
    ) {
        let datagrams: Vec<Datagram> = datagrams.into_iter().map(|(gap, bytes)| Datagram(gap, bytes)).collect();
        let trace = Replay::try_from(datagrams).unwrap();
        prop_assert_eq!(&Replay::parse(&trace.text()).unwrap(), &trace);
        let json = serde_json::to_string(&trace).unwrap();
        prop_assert_eq!(serde_json::from_str::<Replay>(&json).unwrap(), trace);
    }

    #[test]
    fn nothing_panics(text in any::<String>()) {
        if let Ok(trace) = Replay::parse(&text) {
            prop_assert_eq!(Replay::parse(&trace.text()).unwrap(), trace);
        }
    }

    #[test]
    fn a_message_with_a_wrong_trace_is_none(bytes in 0_u32..32) {
        let refused = serde_json::from_str::<Replay>(&format!("[[1000,{bytes}]]"));
        prop_assert!(refused.is_err());
    }
}
