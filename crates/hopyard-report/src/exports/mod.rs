//! The formats of reports: a file each, and a line each in [`EXPORTS`].

mod benchfmt;
mod bmf;
mod comment;
pub(super) mod csv;
mod html;
mod json;
mod markdown;
mod markup;
mod netperf;
mod openmetrics;
mod parquet;
pub(super) mod text;

use super::Error;
use super::claims::Detail;
use super::document::Block;
use crate::model::{ClaimsReport, DiffReport, Observation, RunReport, UnknownName};
use crate::plain;
use crate::tidy::Column;

pub use html::page_of;
pub use json::EXPORT as JSON;
pub use text::EXPORT as TEXT;

/// A format.
#[derive(Debug)]
pub struct Export {
    /// Its name on the command line.
    pub name: &'static str,
    /// Its name in a sentence.
    pub title: &'static str,
    /// Its contents and readers, as a sentence without its full stop: help prints it.
    pub summary: &'static str,
    /// The ending of its file names, without the dot.
    pub extension: &'static str,
    /// Writes the report of a run.
    pub run: Writer,
    /// Writes the report of a run for a terminal that shows colours.
    pub coloured: Option<fn(&RunReport) -> String>,
    /// Writes a comparison, sanitized, ending with a newline; `None` if the format is for runs only.
    pub diff: Option<fn(&DiffReport) -> String>,
    /// Writes claims with their verdicts, likewise.
    pub claims: Option<fn(&ClaimsReport, Detail) -> String>,
    /// Writes published tables beside a run, below its title, sanitized.
    pub(crate) published: Option<Blocks>,
}

/// Writes a run from its report, and from its samples if the format shows single ones. Reads nothing else.
#[derive(Debug)]
pub enum Writer {
    /// As text, which [`Export::render`] sanitizes.
    Text(fn(&RunReport, &[Observation]) -> Result<String, Error>),
    /// As bytes that a terminal cannot show.
    Binary(fn(&RunReport, &[Observation]) -> Result<Vec<u8>, Error>),
}

/// Writes blocks below a title.
pub(crate) type Blocks = fn(&str, Vec<Block>) -> Result<String, Error>;

/// Every format, in the order in which help lists them.
pub static EXPORTS: &[&Export] = &[
    &text::EXPORT,
    &markdown::EXPORT,
    &html::EXPORT,
    &json::EXPORT,
    &csv::EXPORT,
    &netperf::EXPORT,
    &parquet::EXPORT,
    &openmetrics::EXPORT,
    &benchfmt::EXPORT,
    &bmf::EXPORT,
    &comment::EXPORT,
];

/// A table as a Parquet file, with keys and values that say what it came from.
///
/// # Errors
/// A column cannot be written.
pub fn parquet_file(about: &[(&str, &str)], columns: &[Column]) -> Result<Vec<u8>, Error> {
    Ok(parquet::write(about, columns)?)
}

/// The format of that name.
///
/// # Errors
/// There is none; the error lists them all.
pub fn export(name: &str) -> Result<&'static Export, UnknownName> {
    let found = EXPORTS.iter().copied().find(|export| export.name == name);
    found.ok_or_else(|| UnknownName::new("format", name, EXPORTS.iter().map(|export| export.name)))
}

impl Export {
    /// A format for the reports of runs alone. Its names are set upon this, and what else it can write.
    const fn of_runs(run: Writer) -> Self {
        Self {
            name: "",
            title: "",
            summary: "",
            extension: "",
            run,
            coloured: None,
            diff: None,
            claims: None,
            published: None,
        }
    }

    /// Whether a terminal cannot show it.
    #[must_use]
    pub fn is_binary(&self) -> bool {
        matches!(self.run, Writer::Binary(_))
    }

    /// The report of a run.
    ///
    /// # Errors
    /// A picture cannot be drawn, or a table cannot be written.
    pub fn render(
        &self,
        report: &RunReport,
        observations: &[Observation],
    ) -> Result<Vec<u8>, Error> {
        match self.run {
            Writer::Text(write) => {
                let text = write(report, observations)?;
                Ok(plain::document(&text).into_owned().into_bytes())
            }
            Writer::Binary(write) => write(report, observations),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;

    #[test]
    fn names_and_file_names_tell_formats_apart() {
        for of in [
            (|export| export.name) as fn(&Export) -> &str,
            |export| export.title,
            |export| export.summary,
            |export| export.extension,
        ] {
            let mut all: Vec<_> = EXPORTS.iter().map(|export| of(export)).collect();
            all.sort_unstable();
            all.dedup();
            assert_eq!(all.len(), EXPORTS.len(), "{all:?}");
        }
        for export in EXPORTS {
            let plain = |text: &str| text.chars().all(|c| c.is_ascii_lowercase() || c == '-');
            assert!(plain(export.name), "{}", export.name);
            let is_extension = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '.';
            assert!(
                export.extension.chars().all(is_extension) && !export.extension.starts_with('.'),
                "{}",
                export.name
            );
            assert!(
                export.summary.len() > 10 && !export.summary.ends_with('.'),
                "{}",
                export.name
            );
        }
    }

    #[test]
    fn an_unknown_format_lists_the_known() {
        let error = export("papyrus").unwrap_err().to_string();
        assert!(
            error.starts_with("there is no format `papyrus`: choose text, markdown,"),
            "{error}"
        );
    }

    #[test]
    fn every_format_writes_a_run_and_one_without_cells() {
        for report in [fixture::paths(), fixture::run()] {
            for export in EXPORTS {
                let written = export.render(&report, &[]).unwrap();
                assert!(!written.is_empty(), "{}", export.name);
                if export.is_binary() {
                    continue;
                }
                let text = String::from_utf8(written).unwrap();
                assert!(
                    text.ends_with('\n') || text.ends_with("</html>"),
                    "{}",
                    export.name
                );
                for unknown in ["NaN", "inf,", "-inf"] {
                    assert!(!text.contains(unknown), "{}: {unknown}", export.name);
                }
            }
        }
    }

    #[test]
    fn every_format_is_in_the_docs() {
        let home = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/report.md");
        let page = std::fs::read_to_string(home).unwrap();
        for export in EXPORTS {
            let row = format!("| `{}` | `.{}` |", export.name, export.extension);
            assert!(page.contains(&row), "docs/report.md lacks `{row}`");
        }
    }
}
