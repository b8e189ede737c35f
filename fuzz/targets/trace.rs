//! Traces of datagrams, as files that users name and as workers are told of them.
#![no_main]

use hopyard::model::Replay;
use hopyard_fuzz::same_again;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    if let Ok(trace) = Replay::parse(text) {
        assert_eq!(Replay::parse(&trace.text()).as_ref(), Ok(&trace));
        assert!(trace.span_ns() > 0);
        same_again(&trace);
        same_again(&trace.summary("trace".to_owned()));
    }
    // What a worker is told is held to the same bounds.
    if let Ok(trace) = serde_json::from_str::<Replay>(text) {
        assert_eq!(Replay::parse(&trace.text()).as_ref(), Ok(&trace));
    }
});
