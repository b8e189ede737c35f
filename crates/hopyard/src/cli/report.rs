//! `hopyard report`.

use std::process::ExitCode;

use super::args::ReportArgs;
use super::{Done, Failure, print};
use crate::assess::assess;
use crate::report::render;
use crate::store;

pub(super) fn report(args: &ReportArgs) -> Done {
    let run = store::load(&args.run)?;
    let text = render(&assess(&run), args.format);
    match &args.output {
        None => print(&text),
        Some(file) => std::fs::write(file, text)
            .map(|()| ExitCode::SUCCESS)
            .map_err(|e| Failure::request(format!("cannot write {}: {e}", file.display()))),
    }
}
