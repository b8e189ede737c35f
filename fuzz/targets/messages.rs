//! What workers and guests say, and what is said to them: a line each, over a pipe or a serial port.
#![no_main]

use hopyard::load::heard;
use hopyard::load::protocol::{Numbered, Reply, Request};
use hopyard::run::guest::protocol::{Order, Said};
use hopyard_fuzz::same_again;
use libfuzzer_sys::fuzz_target;
use serde::Serialize;
use serde::de::DeserializeOwned;

fuzz_target!(|bytes: &[u8]| {
    all::<Numbered<Request>>(bytes);
    for reply in all::<Numbered<Reply>>(bytes) {
        if let Reply::Done(tallied) = reply.message {
            let _ = tallied.check();
        }
    }
    all::<Order>(bytes);
    all::<Said>(bytes);
});

/// What is heard says the same when it is said again; whatever is no message is the last.
fn all<T: Serialize + DeserializeOwned + PartialEq + std::fmt::Debug + Send + 'static>(
    bytes: &[u8],
) -> Vec<T> {
    let mut heard = heard::<T>(bytes.to_vec()).expect("a thread");
    if heard.last().is_some_and(Result::is_err) {
        heard.pop();
    }
    let messages: Vec<T> = heard
        .into_iter()
        .map(|message| message.expect("the last alone is none"))
        .collect();
    messages.iter().for_each(same_again);
    messages
}
