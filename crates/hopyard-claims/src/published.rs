//! Published figures that a rule names itself, each with the cells that it is of.

use std::fmt;

use serde::de::{SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};

use super::select::Selection;
use crate::model::Cell;

/// Published figures of a check.
#[derive(Debug, Clone, Default, PartialEq)]
pub enum Published {
    /// Those of the plan, as far as it has any.
    #[default]
    OfPlan,
    /// One for every point.
    One(f64),
    /// Figures of some points.
    Of(Vec<Figure>),
}

/// A published figure.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Figure {
    /// The cells that it is of.
    pub cells: Selection,
    /// The figure.
    pub value: f64,
}

impl Published {
    pub(super) fn is_of_plan(&self) -> bool {
        *self == Self::OfPlan
    }

    /// What the rule says of a point: a figure that is of all its cells.
    pub(super) fn of(&self, cells: &[&Cell]) -> Option<f64> {
        match self {
            Self::OfPlan => None,
            Self::One(figure) => Some(*figure),
            Self::Of(figures) => figures
                .iter()
                .find(|figure| cells.iter().all(|cell| figure.cells.has(cell)))
                .map(|figure| figure.value),
        }
    }

    /// Every figure.
    pub(super) fn figures(&self) -> Vec<f64> {
        match self {
            Self::OfPlan => Vec::new(),
            Self::One(figure) => vec![*figure],
            Self::Of(figures) => figures.iter().map(|figure| figure.value).collect(),
        }
    }
}

/// By hand, since an untagged enum would not say which key is wrong.
impl<'de> Deserialize<'de> for Published {
    fn deserialize<D: Deserializer<'de>>(input: D) -> Result<Self, D::Error> {
        struct Figures;
        impl<'de> Visitor<'de> for Figures {
            type Value = Published;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a figure, or a list of { cells = { … }, value = … }")
            }

            fn visit_f64<E>(self, figure: f64) -> Result<Published, E> {
                Ok(Published::One(figure))
            }

            fn visit_i64<E: serde::de::Error>(self, figure: i64) -> Result<Published, E> {
                let figure = i32::try_from(figure).map_err(E::custom)?;
                Ok(Published::One(figure.into()))
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Published, A::Error> {
                let mut figures = Vec::new();
                while let Some(figure) = list.next_element()? {
                    figures.push(figure);
                }
                Ok(Published::Of(figures))
            }
        }
        input.deserialize_any(Figures)
    }
}
