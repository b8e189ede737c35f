//! What has to be so for a part of a rule to be tested at all.

use serde::Deserialize;

use super::{Check, Judge, Over};
use crate::published::Published;
use crate::select::Selection;
use crate::what::What;

/// A premise: its figures lie within its bounds. A rule about what happens at a limit says nothing of machines that do not get to it, and
/// one about the cause of a loss says nothing where nothing is lost.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(try_from = "Raw")]
pub struct Given {
    /// Its figures, of the plan of the part that it is of, and their bounds.
    pub check: Box<Check>,
    /// What a reader has to know where it is not so.
    pub otherwise: String,
}

/// A premise as it is written.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Raw {
    quantity: What,
    cells: Selection,
    /// What the cells are compared with; without it each counts by itself.
    #[serde(default)]
    to: Vec<String>,
    #[serde(default)]
    mean_over: Vec<String>,
    at_least: Option<f64>,
    at_most: Option<f64>,
    otherwise: String,
}

impl TryFrom<Raw> for Given {
    type Error = String;

    fn try_from(raw: Raw) -> Result<Self, String> {
        if (raw.at_least, raw.at_most) == (None, None) {
            return Err("`given` has no bound: set `at_least`, `at_most` or both".to_owned());
        }
        let (quantity, cells) = (raw.quantity, raw.cells);
        let judge = if raw.to.is_empty() {
            Judge::Level { quantity, cells }
        } else {
            let to = raw.to;
            Judge::Ratio {
                quantity,
                cells,
                to,
                to_quantity: None,
            }
        };
        let check = Check {
            judge,
            plan: None,
            at_least: raw.at_least,
            at_most: raw.at_most,
            over: Over::Every,
            mean_over: raw.mean_over,
            geometric: false,
            cpus: None,
            given: None,
            weaker: None,
            stronger: None,
            beyond: false,
            grade: None,
            says: None,
            published: Published::OfPlan,
        };
        check.sound(true)?;
        Ok(Self {
            check: Box::new(check),
            otherwise: raw.otherwise,
        })
    }
}
