//! `hopyard report`.

use super::args::ReportArgs;
use super::{Done, deliver};
use crate::assess::assess;
use crate::report::{flame, render};
use crate::store;

pub(super) fn report(args: &ReportArgs) -> Done {
    let run = store::load(&args.run)?;
    if let Some(directory) = &args.flame {
        let pictures = flame::draw(&run, directory)?;
        let shown: Vec<_> = pictures.iter().map(|p| p.display().to_string()).collect();
        crate::note(format_args!("drawn: {}", shown.join(", ")));
    }
    let text = render(&assess(&run), args.format);
    deliver(&text, args.output.as_deref())
}
