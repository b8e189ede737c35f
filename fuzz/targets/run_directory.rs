//! A run directory of any bytes: its files one after the other, a zero byte between them.
#![no_main]

use hopyard_fuzz::{FILES, directory, load, show};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let (which, bytes) = bytes.split_last().unwrap_or((&0, bytes));
    let home = directory(FILES.into_iter().zip(bytes.split(|byte| *byte == 0)));
    if let Some(run) = load(home.path()) {
        show(&run, *which);
    }
});
