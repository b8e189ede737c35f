//! One self-contained HTML page that loads nothing, for screens of any width, light or dark, for paper, for a keyboard
//! and for screen readers. Its one script sorts tables; without it the page is complete, in the order of the plan.

mod downloads;
mod facts;
mod svg;
mod tables;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use maud::{DOCTYPE, Markup, PreEscaped, html};
use sha2::{Digest, Sha256};

use super::{Export, Writer};
use crate::document::{Block, harmless};
use crate::model::{CellReport, Observation, RunReport};
use crate::plain;
use crate::plot::Plot;
use crate::{Chapters, Error, number};

const STYLE: &str = include_str!("style.css");
const SORT: &str = include_str!("sort.js");

pub(super) static EXPORT: Export = Export {
    name: "html",
    title: "HTML",
    summary: "A page for a browser, with pictures: one file that needs nothing else",
    extension: "html",
    published: Some(page),
    ..Export::of_runs(Writer::Text(|report, seen| {
        render(&Chapters::of(report, seen).harmless(), report, seen)
    }))
};

/// The page.
///
/// # Errors
/// A picture cannot be drawn.
fn render(
    chapters: &Chapters,
    report: &RunReport,
    observations: &[Observation],
) -> Result<String, Error> {
    let mut page = Page::default();
    let title = page.blocks(&chapters.title, 2)?;
    let answer = page.blocks(&chapters.answer, 2)?;
    let matrix = page.blocks(&chapters.matrix, 2)?;
    let opening = page.blocks(&chapters.opening, 2)?;
    let recommendation = page.blocks(&chapters.recommendation, 2)?;
    let doubts = page.blocks(&chapters.doubts, 2)?;
    let legend = page.blocks(&chapters.legend, 2)?;
    let legend =
        html! { @if !report.cells.is_empty() { div.legend { (legend) (reading(report)) } } };
    let figures = page.blocks(&chapters.figures, 2)?;
    let summary = page.blocks(&chapters.conclusion, 2)?;
    let conditions = page.blocks(&chapters.conditions, 2)?;
    let heading = page.heading("Path proof", 2);
    let proof = page.blocks(&chapters.proof, 3)?;
    let devices = facts::devices(report);
    let environment = page.heading("Environment", 2);
    let raw = page.heading("Raw data", 2);
    let name = format!("hopyard run: {}", plain::line(&report.run.plan));
    let body = html! {
        header {
            (title)
        }
        main #content {
            (answer)
            @if !chapters.matrix.is_empty() { section.matrix { (matrix) (legend) } }
            (opening)
            nav aria-label="Contents" { ul { @for (index, title) in page.contents.iter().enumerate() {
                li { a href=(format!("#{}", anchor(index))) { (title) } }
            } } }
            // The findings are what a sweep of offloads is about.
            @if report.offloads.is_some() { (summary) }
            (recommendation)
            (doubts)
            @if chapters.matrix.is_empty() { (legend) }
            (figures)
            @if report.offloads.is_none() { (summary) }
            (conditions)
            (heading) (proof) (devices)
            (environment) (facts::environment(&report.run.environment))
            (raw) (downloads::links(report, observations))
        }
    };
    Ok(whole(&name, &body).into_string())
}

/// A page with a title and blocks only.
///
/// # Errors
/// A picture cannot be drawn.
fn page(title: &str, blocks: Vec<Block>) -> Result<String, Error> {
    let mut page = Page::default();
    let inside = page.blocks(&harmless(blocks), 2)?;
    let title = plain::line(title);
    let body = html! {
        header { h1 { (title) } }
        main #content {
            nav aria-label="Contents" { ul { @for (index, title) in page.contents.iter().enumerate() {
                li { a href=(format!("#{}", anchor(index))) { (title) } }
            } } }
            (inside)
        }
    };
    Ok(whole(&title, &body).into_string())
}

/// A page of somebody else's contents, in the style of all.
#[must_use]
pub fn page_of(title: &str, body: &Markup) -> String {
    let title = plain::line(title);
    let body = html! {
        header { h1 { (title) } }
        main #content { (body) }
    };
    whole(&title, &body).into_string()
}

fn whole(title: &str, body: &Markup) -> Markup {
    html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta http-equiv="Content-Security-Policy" content=(policy());
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="referrer" content="no-referrer";
                link rel="icon" href="data:,";
                title { (title) }
                style { (PreEscaped(STYLE)) }
            }
            body {
                a.skip href="#content" { "Skip to the results" }
                (body)
                script { (PreEscaped(SORT)) }
            }
        }
    }
}

/// Nothing is fetched. The one style sheet and the one script are allowed by their hashes, and nothing else runs.
fn policy() -> String {
    let [style, script] = [STYLE, SORT].map(|text| STANDARD.encode(Sha256::digest(text)));
    format!(
        "default-src 'none'; img-src data:; style-src 'sha256-{style}'; script-src 'sha256-{script}'; \
         base-uri 'none'; form-action 'none'"
    )
}

/// How to read pictures and colours.
fn reading(report: &RunReport) -> Markup {
    let confidence = number::chosen_percent(report.run.confidence);
    let settling = |cell: &CellReport| cell.series.as_ref().is_some_and(|s| s.settling.is_some());
    let is_marked = !report.curves.is_empty() || report.cells.iter().any(settling);
    html! {
        p.notes {
            "In tables " span.better { "≠" } " is better and " span.worse { "≠" } " worse than the base. In pictures a sign is "
            "the figure, the line or band around it its " (confidence) " interval, each dot a sample."
            @if is_marked {
                " Above a curve stands what was found along it: a thick line from where to where it is, a thin one its interval."
            }
        }
    }
}

fn anchor(index: usize) -> String {
    format!("part-{}", index + 1)
}

/// A page being written.
#[derive(Default)]
struct Page {
    /// Headings of the second level.
    contents: Vec<String>,
    /// Pictures so far.
    plots: usize,
}

impl Page {
    fn heading(&mut self, text: &str, level: u8) -> Markup {
        if level > 2 {
            return html! { h3 { (marked(text)) } };
        }
        let id = anchor(self.contents.len());
        self.contents.push(text.to_owned());
        html! { h2 id=(id) { (marked(text)) } }
    }

    /// Blocks whose headings have this level.
    fn blocks(&mut self, blocks: &[Block], level: u8) -> Result<Markup, Error> {
        let mut caption = "figures";
        let mut parts = Vec::new();
        // Consecutive tables are side by side if there is room.
        let both_tables =
            |one: &Block, next: &Block| matches!((one, next), (Block::Table(_), Block::Table(_)));
        for together in blocks.chunk_by(both_tables) {
            if let [Block::Heading(text) | Block::Subheading(text)] = together {
                caption = text;
            }
            let inside = together
                .iter()
                .map(|block| self.block(block, level, caption));
            let inside = inside.collect::<Result<Vec<_>, _>>()?;
            parts.push(html! {
                @if inside.len() > 1 { div.tables { @for one in inside { (one) } } }
                @else { @for one in inside { (one) } }
            });
        }
        Ok(html! { @for part in parts { (part) } })
    }

    fn block(&mut self, block: &Block, level: u8, caption: &str) -> Result<Markup, Error> {
        Ok(match block {
            Block::Title(text) => html! { h1 { (text) } },
            Block::Answer(text) => html! { p.answer { (marked(text)) } },
            Block::Heading(text) => self.heading(text, level),
            Block::Subheading(text) => self.heading(text, 3),
            Block::Paragraph(text) => html! { p { (marked(text)) } },
            Block::Facts(facts) => {
                html! { ul.facts { @for fact in facts { li { (marked(fact)) } } } }
            }
            Block::Notes(notes) => {
                html! { ul.notes { @for note in notes { li { (marked(note)) } } } }
            }
            Block::List(items) => html! { ul { @for item in items { li { (marked(item)) } } } },
            Block::Folds(folds) => html! { @for (name, items) in folds { details.fold {
                summary { (name) " (" (items.len()) ")" }
                ul { @for item in items { li { (marked(item)) } } }
            } } },
            Block::Table(table) => tables::table(table, caption),
            Block::Plots(plots) => self.plots(plots)?,
        })
    }

    fn plots(&mut self, plots: &[Plot]) -> Result<Markup, Error> {
        let figures = plots.iter().map(|plot| self.figure(plot));
        let figures = figures.collect::<Result<Vec<_>, _>>()?;
        Ok(html! { @if !figures.is_empty() { div.plots { @for figure in figures { (figure) } } } })
    }

    fn figure(&mut self, plot: &Plot) -> Result<Markup, Error> {
        let picture = svg::draw(plot).map_err(|e| Error::Drawing {
            title: plot.title.clone(),
            reason: e.to_string(),
        })?;
        self.plots += 1;
        let (title, about) = (
            format!("plot-{}", self.plots),
            format!("about-{}", self.plots),
        );
        let (width, height) = (picture.width, picture.height);
        Ok(html! {
            figure {
                figcaption { (plot.title) }
                svg viewBox=(format!("0 0 {width} {height}")) role="img" aria-labelledby=(title) aria-describedby=(about) {
                    title id=(title) { (plot.title) }
                    desc id=(about) { (plot.in_words()) }
                    (PreEscaped(picture.inside))
                }
                @if let Some(table) = &plot.table {
                    details { summary { "The figures" } (tables::table(table, &plot.title)) }
                }
            }
        })
    }
}

/// Text in which back-ticks mark literal input.
fn marked(text: &str) -> Markup {
    let pieces: Vec<&str> = text.split('`').collect();
    // A back-tick without a partner is a plain character.
    if pieces.len().is_multiple_of(2) {
        return html! { (text) };
    }
    html! {
        @for (index, piece) in pieces.iter().enumerate() {
            @if index % 2 == 1 { code { (piece) } } @else { (piece) }
        }
    }
}
