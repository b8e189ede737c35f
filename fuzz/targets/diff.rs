//! Two runs, both edited: they are refused, or compared.
#![no_main]

use hopyard::assess::diff::{Ask, diff};
use hopyard::model::DiffReport;
use hopyard::report::Form;
use hopyard::report::diff::render;
use hopyard_fuzz::{Edit, edited, load, plain};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|made: (bool, Option<u8>, [Vec<Edit>; 2])| {
    let (relative, loss, edits) = made;
    let [Some(a), Some(mut b)] = edits.map(|edits| load(edited(&edits).path())) else {
        return;
    };
    b.header.id.push_str("-b");
    let ask = Ask {
        relative,
        fail_on: loss.map(|loss| f64::from(loss) / 256.0),
    };
    match diff(&a, &b, &ask) {
        Ok(report) => {
            plain(render(&report, Form::Text).as_bytes());
            plain(render(&report, Form::Markdown).as_bytes());
            let document = render(&report, Form::Json);
            // A figure that is no number would be null, and not read back.
            serde_json::from_str::<DiffReport>(&document).expect("a document");
        }
        Err(why) => assert!(!why.to_string().is_empty()),
    }
});
