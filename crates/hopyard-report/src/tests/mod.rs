//! Every format as its readers see it.

mod answers;
mod assessed;
mod curves;
mod datagrams;
mod doubts;
mod html;
mod loads;
mod names;
mod offloads;
mod people;
mod profiles;
mod recommendations;
mod scripts;
mod sweeps;

use super::{export, fixture};
use crate::model::RunReport;

/// A report without single samples.
fn page(report: &RunReport, format: &str) -> String {
    String::from_utf8(export(format).unwrap().render(report, &[]).unwrap()).unwrap()
}

/// The text of a report, checked for trailing blanks and for the width of a terminal.
fn text(report: &RunReport) -> String {
    let text = page(report, "text");
    assert!(text.ends_with('\n') && !text.ends_with("\n\n"));
    for line in text.lines() {
        assert_eq!(line, line.trim_end());
        assert!(line.chars().count() <= 100, "{line}");
    }
    text
}

/// The text from the first heading that begins with these words.
fn from<'a>(text: &'a str, words: &str) -> &'a str {
    &text[text.find(&format!("\n{words}")).unwrap() + 1..]
}
