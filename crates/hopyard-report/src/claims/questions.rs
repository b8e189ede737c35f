//! Open questions with the figures that answer them.

use super::{Detail, Page, alone, brief, of_run, of_warnings, quoted};
use crate::document::{Block, Cell, Column, Part, Row, Table};
use crate::model::{AnswerFigure, Answered, ClaimsReport, QuestionReport, ReportOfClaims};
use crate::number::ABSENT;
use crate::plain;

/// The questions of each report with their answers; with all points if they are requested.
pub(super) fn compose(report: &ClaimsReport, detail: Detail, page: Page) -> Vec<Block> {
    if detail == Detail::Brief {
        return in_brief(report, page);
    }
    let mut blocks = vec![
        Block::Title("hopyard claims --questions".to_owned()),
        Block::Facts(vec![tally(report)]),
    ];
    let machine = report.machine.as_deref().map(plain::line);
    blocks.extend(machine.map(|line| Block::Facts(vec![line])));
    let plans = report.runs.iter().map(of_run);
    blocks.extend(plans.map(|line| Block::Facts(vec![line])));
    for one in with_questions(report) {
        blocks.extend(of_report(one, detail));
    }
    blocks.extend(of_warnings(report));
    blocks
}

/// Each question in one row. A terminal is too narrow for such rows and gets the sentences.
fn in_brief(report: &ClaimsReport, page: Page) -> Vec<Block> {
    let mut blocks = brief::opening(report, &tally(report));
    for one in with_questions(report) {
        blocks.push(Block::Subheading(format!("{} ({})", one.title, one.report)));
        blocks.push(match page {
            Page::Terminal => Block::List(one.questions.iter().map(said).collect()),
            Page::Wide => Block::Table(in_rows(&one.questions)),
        });
    }
    blocks
}

fn with_questions(report: &ClaimsReport) -> impl Iterator<Item = &ReportOfClaims> {
    let reports = report.reports.iter();
    reports.filter(|one| !one.questions.is_empty())
}

fn in_rows(questions: &[QuestionReport]) -> Table {
    let row = |one: &QuestionReport| {
        let texts = [
            one.id.as_str(),
            &one.question,
            one.answered.words(),
            &one.answer,
        ];
        Row::Cells(texts.map(|text| Cell::lone(plain::line(text))).into())
    };
    Table {
        columns: vec![
            Column::left(&["question"]),
            Column::left(&["what is asked"]),
            Column::left(&["here"]),
            Column::left(&["what this machine says"]),
        ],
        keys: 1,
        rows: questions.iter().map(row).collect(),
    }
}

/// `29 open questions: 9 answered, 11 partly answered, 9 open`.
fn tally(report: &ClaimsReport) -> String {
    let all: Vec<&QuestionReport> = report.reports.iter().flat_map(|r| &r.questions).collect();
    let count = |answered| all.iter().filter(|one| one.answered == answered).count();
    let states = [Answered::Whole, Answered::Partly, Answered::Open];
    let states = states.map(|state| format!("{} {}", count(state), state.words()));
    format!(
        "{}: {}",
        crate::units::counted(all.len(), "open question"),
        states.join(", ")
    )
}

fn of_report(report: &ReportOfClaims, detail: Detail) -> Vec<Block> {
    let mut blocks = vec![
        Block::Heading(format!("{} ({})", report.title, report.report)),
        Block::List(report.questions.iter().map(said).collect()),
    ];
    if detail == Detail::Points {
        blocks.push(Block::Table(table(&report.questions)));
    }
    let stand_in = report.stand_in.as_deref();
    let stand_in = stand_in.map(|text| format!("Stand-in: {}", plain::line(text)));
    blocks.extend(stand_in.map(Block::Paragraph));
    blocks
}

fn said(question: &QuestionReport) -> String {
    format!(
        "{} {} {}: {}",
        question.id,
        plain::line(&question.question),
        question.answered.words(),
        plain::line(&question.answer)
    )
}

fn table(questions: &[QuestionReport]) -> Table {
    let rows = questions.iter().flat_map(|question| {
        let of_figure = |figure: &'_ AnswerFigure| rows(&question.id, figure);
        question
            .figures
            .iter()
            .flat_map(of_figure)
            .collect::<Vec<Row>>()
    });
    Table {
        columns: vec![
            Column::left(&["question"]),
            Column::left(&["what is measured"]),
            Column::left(&["where"]),
            Column::left(&["published"]),
            Column::left(&["measured"]),
        ],
        keys: 1,
        rows: rows.collect(),
    }
}

fn rows(id: &str, figure: &AnswerFigure) -> Vec<Row> {
    let quantity = figure.quantity.as_deref();
    let row = |point: &crate::model::AnswerPoint| {
        let published = point.published.map(|value| alone(quantity, value));
        Row::Cells(vec![
            Cell::lone(id),
            Cell::lone(plain::line(&figure.what)),
            Cell::lone(plain::line(&point.at)),
            published.map_or_else(|| Cell::lone(ABSENT), |text| Cell(vec![Part::Point(text)])),
            Cell(vec![Part::Left(quoted(quantity, &point.measured))]),
        ])
    };
    figure.points.iter().map(row).collect()
}
