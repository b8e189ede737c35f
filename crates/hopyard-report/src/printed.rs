//! The tables and figures that a report of 2006 to 2014 printed, in its own layout and units, filled with the figures
//! of a run of its plan: `hopyard report RUN --published`.

mod cells;
mod curves;
mod evidence;
mod file;
mod functions;
mod here;
mod picture;
mod pictures;
mod place;
mod print;
mod spec;
mod table;

use super::document::Block;
use super::number::{chosen, chosen_percent};
use super::{Error as Unwritten, Export};
use crate::model::stored::Run;
use crate::model::{Observation, RunReport};
use evidence::Evidence;
use file::File;

/// Why there is nothing to print.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// No report has such a plan.
    #[error("plan `{plan}` belongs to none of the reports; those of {choices} do")]
    NoReport {
        /// The plan of the run.
        plan: String,
        /// The plans that belong to a report.
        choices: String,
    },
    /// A format without tables.
    #[error("published tables are not written as {title}: choose {choices}")]
    Format {
        /// Its name in a sentence.
        title: &'static str,
        /// The formats with tables.
        choices: String,
    },
    /// The built-in data files are damaged.
    #[error(transparent)]
    File(#[from] file::BadFile),
    /// The output could not be written.
    #[error(transparent)]
    Unwritten(#[from] Unwritten),
}

impl Error {
    /// Whether the error is about what the user asked for.
    #[must_use]
    pub fn is_request(&self) -> bool {
        matches!(self, Self::NoReport { .. } | Self::Format { .. })
    }
}

/// The published tables of the report that a run's plan belongs to, in a format for people.
///
/// # Errors
/// The plan belongs to no report, the format has no tables, or a picture cannot be drawn.
pub fn render(
    format: &Export,
    run: &Run,
    report: &RunReport,
    seen: &[Observation],
) -> Result<Vec<u8>, Error> {
    let Some(write) = format.published else {
        let able = super::EXPORTS.iter().filter(|e| e.published.is_some());
        let names: Vec<&str> = able.map(|export| export.name).collect();
        return Err(Error::Format {
            title: format.title,
            choices: names.join(", "),
        });
    };
    let plan = &report.run.plan;
    let file = File::of_plan(plan)?;
    let found = file
        .as_ref()
        .and_then(|file| Some((file, file.stand(plan)?)));
    let Some((file, stand)) = found else {
        return Err(Error::NoReport {
            plan: crate::plain::line(plan),
            choices: File::plans()?.join(", "),
        });
    };
    let evidence = Evidence {
        file,
        stand,
        report,
        run,
        seen,
    };
    let title = format!("As printed, and here: {}", file.title);
    Ok(write(&title, evidence.blocks())?.into_bytes())
}

impl Evidence<'_> {
    fn blocks(&self) -> Vec<Block> {
        let run = &self.report.run;
        let machine = &run.environment;
        let mut blocks = vec![
            Block::Paragraph(format!("{}: {}", self.file.report, self.file.source)),
            Block::Paragraph(format!("Then: {}", self.file.setting)),
            Block::Paragraph(format!(
                "Here: {}, {} CPUs, Linux {}; run {}, {} blocks of {} s.",
                machine.cpu_model,
                machine.cpus,
                machine.kernel_release,
                run.id,
                run.blocks,
                chosen(run.window_s)
            )),
            Block::Notes(self.legend()),
        ];
        blocks.extend(self.file.tables.iter().flat_map(|table| self.table(table)));
        let pictures = self.pictures();
        if !pictures.is_empty() {
            blocks.push(Block::Heading(
                "The curves, with the printed points".to_owned(),
            ));
            blocks.push(Block::Paragraph(
                "Print gives single points of these curves; a page (`--format html`) draws both."
                    .to_owned(),
            ));
            blocks.push(Block::Plots(pictures));
        }
        blocks
    }

    fn legend(&self) -> Vec<String> {
        let run = &self.report.run;
        let margin = chosen_percent(run.margin);
        let confidence = chosen_percent(run.confidence);
        let mut notes = vec![format!(
            "= same as print within {margin}, ≠ different, ? neither is shown; intervals are of {confidence} confidence, each by itself. 1.31× is \
             what is measured here over print: of other machines it says what machines have become. Ratios to {} compare. \"about\" in \
             print is taken as within a tenth.",
            self.file.base.name()
        )];
        if run.quick_look {
            notes.push("Too few blocks for verdicts: the run is a quick look.".to_owned());
        }
        notes
    }
}

#[cfg(test)]
mod tests;
