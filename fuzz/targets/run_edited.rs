//! A good run directory that somebody edited: it is refused, or it can be shown.
#![no_main]

use hopyard_fuzz::{Edit, edited, load, show};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|made: (u8, Vec<Edit>)| {
    let (which, edits) = made;
    if let Some(run) = load(edited(&edits).path()) {
        show(&run, which);
    }
});
