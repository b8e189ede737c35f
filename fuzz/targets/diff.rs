//! Runs, all edited: they are refused, or compared, one of each side or several.
#![no_main]

use hopyard::assess::diff::{Ask, diff};
use hopyard::model::DiffReport;
use hopyard::report::EXPORTS;
use hopyard::store::Run;
use hopyard_fuzz::{Edit, edited, load, plain};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|made: (bool, Option<u8>, bool, [Vec<Edit>; 2])| {
    let (relative, loss, several, edits) = made;
    let [Some(a), Some(b)] = edits.map(|edits| load(edited(&edits).path())) else {
        return;
    };
    let ask = Ask {
        relative,
        fail_on: loss.map(|loss| f64::from(loss) / 256.0),
    };
    let side = |run: &Run, name: &str| {
        let copies = (0..if several { 3 } else { 1 }).map(|nth| {
            let mut copy = run.clone();
            copy.header.id = format!("{}-{name}{nth}", copy.header.id);
            copy
        });
        copies.collect::<Vec<_>>()
    };
    match diff(&side(&a, "a"), &side(&b, "b"), &[], &ask) {
        Ok(report) => {
            for export in EXPORTS {
                let Some(write) = export.diff else { continue };
                let text = write(&report);
                plain(text.as_bytes());
                if export.name == "json" {
                    // A figure that is no number would be null, and not read back.
                    serde_json::from_str::<DiffReport>(&text).expect("a document");
                }
            }
        }
        Err(why) => assert!(!why.to_string().is_empty()),
    }
});
