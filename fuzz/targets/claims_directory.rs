//! What `hopyard claims` keeps, with a run that was edited beside it.
#![no_main]

use hopyard::claims::{self, kept};
use hopyard::report::EXPORTS;
use hopyard::report::claims::Detail;
use hopyard_fuzz::{Edit, FILES, directory, edited, plain};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|made: (Vec<Edit>, &[u8])| {
    let (edits, asked) = made;
    let run = edited(&edits);
    let texts = FILES.map(|file| std::fs::read(run.path().join(file)).expect("as it was written"));
    let names = FILES.map(|file| format!("plan/{file}"));
    let files = names
        .iter()
        .map(String::as_str)
        .zip(texts.iter().map(Vec::as_slice));
    let home = directory(files.chain([("claims.json", asked)]));
    let reports = claims::reports().expect("they come along");
    let chosen = claims::choose(reports, &[]).expect("all of them");
    match kept::evidence_from(&[home.path().to_owned()]) {
        Ok(evidence) => {
            let document = claims::document(&chosen, &evidence);
            for write in EXPORTS.iter().filter_map(|export| export.claims) {
                plain(write(&document, Detail::Points).as_bytes());
                plain(write(&document, Detail::Brief).as_bytes());
            }
        }
        Err(error) => assert!(hopyard::chain(&error).contains(&*home.path().to_string_lossy())),
    }
});
