//! One printed table, filled: the printed figure, the measured one and their comparison, cell by cell; and the same for
//! ratios to the base, which are comparable although the machines are not.

use super::cells::Cells;
use super::evidence::{Answer, Evidence, Value};
use super::file::{Form, Layout, Row, Table as Printed};
use super::functions;
use super::place::{Filled, Place, blank, place, spread, without};
use super::print::{Compared, Print};
use super::spec::Here;
use crate::document::{Block, Cell, Column, Footnotes, Part, Row as Line, Table};
use crate::number::ratio;

impl Evidence<'_> {
    /// A printed table and, if it has any, its ratios to the base.
    pub(super) fn table(&self, printed: &Printed) -> Vec<Block> {
        let Some(form) = self.file.forms.get(&printed.form) else {
            return Vec::new();
        };
        let heading = format!("{} ({})", printed.title, printed.place);
        let mut notes = Footnotes::default();
        let rows = match form.layout {
            Layout::Functions => functions::rows(self, printed, form, &mut notes),
            Layout::Columns | Layout::Lines => self.rows(printed, form, &mut notes),
        };
        let heads: Vec<Vec<String>> = form.columns.iter().map(|c| c.head.clone()).collect();
        let mut blocks = vec![
            Block::Heading(heading),
            Block::Table(form.layout.table(&form.keys, &heads, rows)),
        ];
        let remarks = form.columns.iter().filter_map(|column| column.note.clone());
        let remarks = printed.remark.clone().into_iter().chain(remarks);
        blocks.extend(notes.with(crate::model::distinct(remarks)));
        if form.layout != Layout::Functions {
            blocks.extend(self.ratios(printed, form));
        }
        blocks
    }

    /// The cell that a place of the table needs.
    fn wanted(&self, printed: &Printed, form: &Form, row: &Row, column: usize) -> Cells {
        let own = &form.columns[column].cells;
        self.stand.wanted(&[&printed.cells, own, &row.cells])
    }

    /// The run's figure for a place; none if the place belongs to another plan.
    fn answer(&self, printed: &Printed, form: &Form, row: &Row, column: usize) -> Answer<Value> {
        let here = form.here(row, column);
        if let Some(plan) = row.plan.as_ref().or(printed.plan.as_ref())
            && *plan != self.stand.name
            && !matches!(here, Here::Missing(_))
        {
            return Err(format!("a run of plan {plan} has it"));
        }
        self.value(here, &self.wanted(printed, form, row, column), row)
    }

    fn rows(&self, printed: &Printed, form: &Form, notes: &mut Footnotes) -> Vec<Filled> {
        let place = |row: &Row, column: usize, notes: &mut Footnotes| {
            let print = &row.print[column];
            if *print == Print::Blank {
                return blank();
            }
            let answer = self.answer(printed, form, row, column);
            place(print, answer, self.rules(), notes)
        };
        let rows = printed.rows.iter().map(|row| Filled {
            keys: row.key.clone(),
            places: (0..form.columns.len())
                .map(|column| place(row, column, notes))
                .collect(),
        });
        rows.collect()
    }

    /// Each figure over that of the base, printed and measured.
    fn ratios(&self, printed: &Printed, form: &Form) -> Vec<Block> {
        let compared: Vec<usize> = (0..form.columns.len())
            .filter(|&column| {
                let mut rows = printed.rows.iter();
                rows.any(|row| self.base_print(printed, form, row, column).is_some())
            })
            .collect();
        if compared.is_empty() {
            return Vec::new();
        }
        let mut notes = Footnotes::default();
        let rows = printed.rows.iter().filter_map(|row| {
            let places = compared.iter().map(|&column| {
                let ratio = self.base_print(printed, form, row, column)?;
                Some(self.ratio(printed, form, row, column, &ratio, &mut notes))
            });
            let places: Vec<Option<Place>> = places.collect();
            places.iter().any(Option::is_some).then(|| Filled {
                keys: row.key.clone(),
                places: places
                    .into_iter()
                    .map(|p| p.unwrap_or_else(blank))
                    .collect(),
            })
        });
        let rows: Vec<Filled> = rows.collect();
        let base = self.file.base.name();
        let heads: Vec<Vec<String>> = compared
            .iter()
            .map(|&column| form.columns[column].head.clone())
            .collect();
        let mut blocks = vec![
            Block::Subheading(format!("The same over {base}: {}", printed.title)),
            Block::Table(form.layout.table(&form.keys, &heads, rows)),
        ];
        blocks.extend(notes.block());
        blocks
    }

    /// The printed ratio to the base; `None` for the base itself, or if one of the two is not printed.
    fn base_print(
        &self,
        printed: &Printed,
        form: &Form,
        row: &Row,
        column: usize,
    ) -> Option<Print> {
        if !matches!(form.here(row, column), Here::Figure(_)) {
            return None;
        }
        let own = self.wanted(printed, form, row, column);
        let base = own.clone().with(&self.file.base.cells);
        if own == base {
            return None;
        }
        let group = self
            .file
            .tables
            .iter()
            .filter(|t| t.group == printed.group && t.form == printed.form);
        let mut rows = group.flat_map(|table| table.rows.iter().map(move |row| (table, row)));
        let (_, other) = rows.find(|(table, other)| {
            // Lines of one test belong to one cell.
            (form.layout != Layout::Lines || other.key == row.key)
                && self.wanted(table, form, other, column) == base
        })?;
        row.print[column].over(&other.print[column])
    }

    fn ratio(
        &self,
        printed: &Printed,
        form: &Form,
        row: &Row,
        column: usize,
        print: &Print,
        notes: &mut Footnotes,
    ) -> Place {
        let Here::Figure(figure) = form.here(row, column) else {
            return blank();
        };
        let wanted = self.wanted(printed, form, row, column);
        let here = self.over_base(&figure.of, &wanted, &self.file.base);
        let Some(here) = here else {
            let why = self.answer(printed, form, row, column).err();
            let base = self.file.base.name();
            let why =
                why.unwrap_or_else(|| format!("fewer than two blocks have both it and {base}"));
            return without(print, why, notes);
        };
        let compared = print
            .compared(&here, self.rules())
            .map(|compared| Compared {
                ratio: None,
                ..compared
            });
        let parts = vec![Part::Point(ratio(here.value)), Part::Right(spread(&here))];
        [
            print.cell(),
            Cell(parts),
            compared.map_or_else(|| Cell::lone(""), Compared::cell),
        ]
    }
}

impl Layout {
    /// The rows in this layout.
    pub(super) fn table(self, keys: &[String], heads: &[Vec<String>], rows: Vec<Filled>) -> Table {
        match self {
            Self::Columns | Self::Functions => columns(keys, heads, rows),
            Self::Lines => lines(keys, heads, rows),
        }
    }
}

/// Printed figure, measured one and verdict side by side.
fn columns(keys: &[String], heads: &[Vec<String>], rows: Vec<Filled>) -> Table {
    let mut columns: Vec<Column> = keys.iter().map(|key| Column::left(&[key])).collect();
    for head in heads {
        let above: Vec<&str> = head.iter().map(String::as_str).collect();
        columns.push(Column::right(&["print"]));
        columns.push(Column::right(&[&above[..], &["here"]].concat()).following());
        columns.push(Column::left(&["same?"]).following());
    }
    let rows = rows.into_iter().map(|row| {
        let keys = row.keys.into_iter().map(Cell::lone);
        Line::Cells(keys.chain(row.places.into_iter().flatten()).collect())
    });
    Table {
        keys: keys.len(),
        columns,
        rows: rows.collect(),
    }
}

/// Printed figure, measured one and verdict below each other.
fn lines(keys: &[String], heads: &[Vec<String>], rows: Vec<Filled>) -> Table {
    let mut columns: Vec<Column> = keys.iter().map(|key| Column::left(&[key])).collect();
    columns.push(Column::left(&[""]));
    for head in heads {
        let head: Vec<&str> = head.iter().map(String::as_str).collect();
        columns.push(Column::right(&head));
    }
    let rows = rows.into_iter().flat_map(|row| {
        let Filled { keys, places } = row;
        let line = |which: usize, name: &str| {
            // A row is named once.
            let keys = keys
                .iter()
                .map(|key| if which == 0 { key.as_str() } else { "" });
            let own = keys.chain([name]).map(Cell::lone);
            let cells = places.iter().map(|place| Cell::lone(place[which].plain()));
            Line::Cells(own.chain(cells).collect())
        };
        ["print", "here", "same?"]
            .iter()
            .enumerate()
            .map(|(which, name)| line(which, name))
            .collect::<Vec<_>>()
    });
    Table {
        keys: keys.len() + 1,
        columns,
        rows: rows.collect(),
    }
}
