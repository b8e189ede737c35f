//! The text of a plan, read in such a way that every error names file, line and key.

use std::ops::Range;

use toml::Spanned;

use crate::lab;

/// An error in a plan's text.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// There is neither a plan nor a file with that name.
    #[error("there is no plan `{name}`: choose {choices}, or name a .toml file")]
    Unknown {
        /// The given name.
        name: String,
        /// Names of all plans, as text for people.
        choices: String,
    },
    /// The file cannot be read.
    #[error("cannot read the plan {file}")]
    Read {
        file: String,
        #[source]
        source: std::io::Error,
    },
    /// It is not TOML, or has a key that plans do not have.
    #[error("{file}: {message}")]
    Toml {
        /// Name of the file or plan.
        file: String,
        /// The parser's message, with line, column and key.
        message: String,
    },
    /// A value is not valid.
    #[error("{file}:{line}: {key}: {why}")]
    Value {
        /// Name of the file or plan.
        file: String,
        /// The line, from 1.
        line: usize,
        /// Key whose value is wrong.
        key: String,
        /// Why it is wrong, and what is valid.
        why: String,
    },
}

/// The text of a plan, with its name in errors.
pub(super) struct Source<'a> {
    pub(super) file: &'a str,
    pub(super) text: &'a str,
}

impl Source<'_> {
    pub(super) fn line(&self, span: &Range<usize>) -> usize {
        self.text
            .as_bytes()
            .iter()
            .take(span.start)
            .filter(|b| **b == b'\n')
            .count()
            + 1
    }

    pub(super) fn read<T, E: std::fmt::Display>(
        &self,
        key: &str,
        value: &Spanned<String>,
        reader: impl FnOnce(&str) -> Result<T, E>,
    ) -> Result<T, Error> {
        reader(value.get_ref())
            .map_err(|e| self.wrong(key, self.line(&value.span()), e.to_string()))
    }

    pub(super) fn read_all<T, E: std::fmt::Display>(
        &self,
        key: &str,
        values: &Spanned<Vec<Spanned<String>>>,
        reader: impl Fn(&str) -> Result<T, E>,
    ) -> Result<Vec<T>, Error> {
        if values.get_ref().is_empty() {
            return Err(self.wrong(key, self.line(&values.span()), "an empty list".to_owned()));
        }
        values
            .get_ref()
            .iter()
            .map(|value| self.read(key, value, &reader))
            .collect()
    }

    pub(super) fn wrong(&self, key: &str, line: usize, why: String) -> Error {
        Error::Value {
            file: self.file.to_owned(),
            line,
            key: key.to_owned(),
            why,
        }
    }
}

/// A path's name, or `all`.
pub(super) fn path_name(text: &str) -> Result<String, crate::model::UnknownName> {
    if text == "all" {
        Ok(text.to_owned())
    } else {
        lab::path(text).map(|p| p.name.to_owned())
    }
}

/// A number or text of TOML, in the form that axes read.
pub(super) fn plain(value: &toml::Value) -> Option<String> {
    match value {
        toml::Value::String(text) => Some(text.clone()),
        toml::Value::Integer(number) => Some(number.to_string()),
        _ => None,
    }
}
