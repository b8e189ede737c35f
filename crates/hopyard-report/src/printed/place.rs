//! A filled place of a printed table: the printed figure, the measured one, and the verdict.

use super::evidence::{Answer, Evidence, Value};
use super::print::{Print, Rules};
use crate::document::{Cell, Footnotes, Part};
use crate::number::{ABSENT, chosen, percent, significant};
use crate::stats::Estimate;

/// A place of the table: printed, measured, verdict.
pub(super) type Place = [Cell; 3];

/// A filled row: its keys, and a place for each column.
pub(super) struct Filled {
    pub(super) keys: Vec<String>,
    pub(super) places: Vec<Place>,
}

/// A place that the report does not have.
pub(super) fn blank() -> Place {
    ["", "", ""].map(Cell::lone)
}

/// A place that is not measured here, marked with the reason.
pub(super) fn without(print: &Print, why: String, notes: &mut Footnotes) -> Place {
    let mark = notes.shared_mark(why);
    [print.cell(), Cell::lone(ABSENT), Cell::lone(mark)]
}

/// The printed figure, the measured one, and their relation.
pub(super) fn place(
    print: &Print,
    answer: Answer<Value>,
    rules: Rules,
    notes: &mut Footnotes,
) -> Place {
    let value = match answer {
        Ok(value) => value,
        Err(why) => return without(print, why, notes),
    };
    let compared = match &value {
        Value::Set(set) => print.is(*set),
        Value::Measured(here) | Value::Between(here) => print.compared(here, rules),
    };
    let verdict = match (print, compared) {
        (_, Some(compared)) => compared.cell(),
        (Print::Unknown(_), None) => Cell::lone(notes.shared_mark("not measured then".to_owned())),
        (_, None) => Cell::lone(""),
    };
    [print.cell(), value.cell(), verdict]
}

impl Value {
    fn cell(&self) -> Cell {
        match self {
            Self::Set(set) => Cell(vec![Part::Point(chosen(*set)), Part::Right(String::new())]),
            Self::Between(here) if here.low < here.high => {
                Cell::lone(format!("{} to {}", chosen(here.low), chosen(here.high)))
            }
            Self::Between(here) => Cell::lone(chosen(here.value)),
            Self::Measured(here) => Cell(vec![
                Part::Point(significant(here.value)),
                Part::Right(spread(here)),
            ]),
        }
    }
}

/// The half-width as a share; empty for a single sample.
pub(super) fn spread(here: &Estimate) -> String {
    let share = here.half_width_ratio();
    if here.n < 2 || !share.is_finite() {
        return String::new();
    }
    format!("±{}", percent(share))
}

impl Evidence<'_> {
    pub(super) fn rules(&self) -> Rules {
        Rules {
            margin: self.report.run.margin,
            decides: !self.report.run.quick_look,
        }
    }
}
