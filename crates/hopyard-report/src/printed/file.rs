//! The printed content of a report, as data: `published/*.toml`, a file for each report.

use std::collections::BTreeMap;

use serde::{Deserialize, Deserializer};

use super::cells::{Cells, settings};
use super::picture::Picture;
use super::print::Print;
use super::spec::Here;

/// Files of the folder `published` by these names: (name, text).
macro_rules! reports {
    ($($name:literal),+ $(,)?) => {
        [$(($name, include_str!(concat!("../../../../published/", $name, ".toml")))),+]
    };
}

/// Every report, by its name.
const FILES: [(&str, &str); 5] = reports![
    "netns-macvlan-2007",
    "multiqueue-tap-2011",
    "namespace-switching-2014",
    "netback-direct-2006",
    "planetlab-containers-2007",
];

/// An error in a file.
#[derive(Debug, thiserror::Error)]
#[error("published/{name}.toml: {message}")]
pub struct BadFile {
    name: String,
    /// The message, with the parser's line and key, or the table.
    message: String,
}

/// Everything that one report printed.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct File {
    /// Its name in claims and plans.
    pub(super) report: String,
    pub(super) title: String,
    /// Author, place and date.
    pub(super) source: String,
    /// Its machine, kernel and tool.
    pub(super) setting: String,
    /// What others are compared with.
    pub(super) base: BaseOf,
    /// Its text for "not measured".
    #[serde(default)]
    not_measured: Option<String>,
    /// The plans whose runs can fill it.
    #[serde(rename = "plan")]
    pub(super) plans: Vec<Stand>,
    /// Tables of one kind, by name.
    pub(super) forms: BTreeMap<String, Form>,
    #[serde(rename = "table")]
    pub(super) tables: Vec<Table>,
    #[serde(rename = "picture", default)]
    pub(super) pictures: Vec<Picture>,
}

/// The rows of the base: those on a path, or at a value of an axis.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct BaseOf {
    pub(super) cells: Cells,
    /// Its name in the report, if that is not the path or `AXIS=VALUE`.
    #[serde(default)]
    pub(super) called: Option<String>,
}

/// A plan whose cells correspond to what was measured then.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Stand {
    pub(super) name: String,
    /// The properties of all its cells.
    #[serde(default)]
    path: Option<String>,
    #[serde(default, deserialize_with = "settings")]
    set: BTreeMap<String, String>,
    #[serde(default)]
    pub(super) plays: Option<Plays>,
}

/// An axis that cells of a plan lack, and the one value of it that they represent.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Plays {
    pub(super) axis: String,
    /// The number of CPUs.
    pub(super) value: u32,
    /// The thing that has them: `a guest`.
    pub(super) what: String,
    /// The plan that has the axis itself.
    pub(super) otherwise: String,
}

/// Layout of tables of one kind.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Form {
    pub(super) layout: Layout,
    /// Heads of the columns that name a row.
    pub(super) keys: Vec<String>,
    pub(super) columns: Vec<Column>,
    /// First key of a row → column, from 0 → how it is measured in that row.
    #[serde(default)]
    instead: BTreeMap<String, BTreeMap<String, Here>>,
}

/// Arrangement of printed and measured figures.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Layout {
    /// In columns, side by side.
    Columns,
    /// In lines, below each other: for tables as wide as a page.
    Lines,
    /// As columns, with the functions of a profile as rows.
    Functions,
}

/// A printed column.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Column {
    /// From top to bottom; the unit is last.
    pub(super) head: Vec<String>,
    /// The corresponding figure here.
    pub(super) here: Here,
    #[serde(default)]
    pub(super) cells: Cells,
    /// A remark on the figures here.
    #[serde(default)]
    pub(super) note: Option<String>,
}

/// A printed table.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Table {
    pub(super) form: String,
    pub(super) title: String,
    /// Its place in the source.
    pub(super) place: String,
    #[serde(default)]
    pub(super) remark: Option<String>,
    /// The only plan whose runs have it, if not all do.
    #[serde(default)]
    pub(super) plan: Option<String>,
    /// Rows are compared with those of tables of the same group.
    #[serde(default)]
    pub(super) group: String,
    #[serde(default)]
    pub(super) cells: Cells,
    pub(super) rows: Vec<Row>,
}

/// A printed row.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Row {
    pub(super) key: Vec<String>,
    #[serde(default)]
    pub(super) cells: Cells,
    /// The only plan whose runs have it, if that differs from the table's.
    #[serde(default)]
    pub(super) plan: Option<String>,
    /// The corresponding figure here, if it differs from the column's.
    #[serde(default)]
    pub(super) here: Option<Here>,
    /// Duration of the test then, s.
    #[serde(default)]
    pub(super) seconds: Option<f64>,
    /// The printed content of each column.
    #[serde(deserialize_with = "prints")]
    pub(super) print: Vec<Print>,
}

fn prints<'de, D: Deserializer<'de>>(input: D) -> Result<Vec<Print>, D::Error> {
    let texts = Vec::<String>::deserialize(input)?;
    Ok(texts.into_iter().map(|text| Print::of(&text)).collect())
}

impl File {
    /// The report that a plan belongs to, if any.
    ///
    /// # Errors
    /// Its file is damaged.
    pub(super) fn of_plan(plan: &str) -> Result<Option<Self>, BadFile> {
        for (name, text) in FILES {
            let file = parse(name, text)?;
            if file.stand(plan).is_some() {
                return Ok(Some(file));
            }
        }
        Ok(None)
    }

    /// Every plan that belongs to a report.
    pub(super) fn plans() -> Result<Vec<String>, BadFile> {
        let mut plans = Vec::new();
        for (name, text) in FILES {
            plans.extend(parse(name, text)?.plans.into_iter().map(|plan| plan.name));
        }
        Ok(plans)
    }

    pub(super) fn stand(&self, plan: &str) -> Option<&Stand> {
        self.plans.iter().find(|stand| stand.name == plan)
    }
}

impl Stand {
    /// What a cell of this plan must have.
    pub(super) fn wanted(&self, parts: &[&Cells]) -> Cells {
        let own = Cells {
            path: self.path.clone(),
            set: self.set.clone(),
            ..Cells::default()
        };
        parts.iter().fold(own, |wanted, part| wanted.with(part))
    }
}

impl Form {
    /// How a column is measured in a row.
    pub(super) fn here<'a>(&'a self, row: &'a Row, column: usize) -> &'a Here {
        let instead = row.key.first().and_then(|key| self.instead.get(key));
        let instead = instead.and_then(|columns| columns.get(&column.to_string()));
        let own = row.here.as_ref().or(instead);
        own.unwrap_or(&self.columns[column].here)
    }
}

impl BaseOf {
    /// The name in verdicts: a path, or `AXIS=VALUE`.
    pub(super) fn text(&self) -> String {
        match (&self.cells.path, self.cells.set.iter().next()) {
            (Some(path), _) => path.clone(),
            (None, Some((name, value))) => format!("{name}={value}"),
            (None, None) => String::new(),
        }
    }

    /// The name in the report.
    pub(super) fn name(&self) -> String {
        self.called.clone().unwrap_or_else(|| self.text())
    }
}

/// Reads a file.
///
/// # Errors
/// It is not TOML, has an unknown key or axis, or a row whose length differs from its table's.
pub(super) fn parse(name: &str, text: &str) -> Result<File, BadFile> {
    let wrong = |message: String| BadFile {
        name: name.to_owned(),
        message,
    };
    let mut file: File =
        toml::from_str(text).map_err(|e| wrong(e.to_string().trim_end().to_owned()))?;
    for table in &file.tables {
        let Some(form) = file.forms.get(&table.form) else {
            return Err(wrong(format!("{}: no form `{}`", table.title, table.form)));
        };
        let fits =
            |row: &&Row| row.key.len() == form.keys.len() && row.print.len() == form.columns.len();
        if let Some(row) = table.rows.iter().find(|row| !fits(row)) {
            let key = row.key.join(" ");
            return Err(wrong(format!("{}: row `{key}` does not fit", table.title)));
        }
    }
    if let Some(unknown) = &file.not_measured {
        let rows = file.tables.iter_mut().flat_map(|table| &mut table.rows);
        for print in rows.flat_map(|row| &mut row.print) {
            print.is_unknown_if(unknown);
        }
    }
    Ok(file)
}

#[cfg(test)]
pub(super) fn all() -> Vec<File> {
    let files = FILES.iter();
    files
        .map(|(name, text)| parse(name, text).unwrap())
        .collect()
}
