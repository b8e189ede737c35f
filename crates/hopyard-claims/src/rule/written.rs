//! Parts of rules as they are written: which keys each judge takes.

use serde::Deserialize;

use super::{Check, Given, Grade, Judge, Over, Said, Says, Shape};
use crate::published::Published;
use crate::select::Selection;
use crate::what::What;

/// A part of a rule as it is written.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Raw {
    judge: Kind,
    quantity: Option<What>,
    cells: Option<Selection>,
    to: Option<Vec<String>>,
    to_quantity: Option<What>,
    without: Option<String>,
    base: Option<String>,
    less: Option<String>,
    axis: Option<String>,
    last: Option<u32>,
    shape: Option<Shape>,
    does: Option<String>,
    bench: Option<String>,
    missing: Option<String>,
    plan: Option<String>,
    at_least: Option<f64>,
    at_most: Option<f64>,
    #[serde(default)]
    over: Over,
    #[serde(default)]
    mean_over: Vec<String>,
    #[serde(default)]
    geometric: bool,
    cpus: Option<u32>,
    given: Option<Given>,
    weaker: Option<String>,
    stronger: Option<String>,
    #[serde(default)]
    beyond: bool,
    grade: Option<Grade>,
    says: Option<Says>,
    #[serde(default)]
    published: Published,
}

/// The judges by name.
#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Kind {
    Ratio,
    Level,
    Share,
    Corrected,
    Peak,
    Curve,
    Does,
    Bench,
    Missing,
}

fn need<T>(key: &str, value: Option<T>) -> Result<T, String> {
    value.ok_or_else(|| format!("this judge needs `{key}`"))
}

impl TryFrom<Raw> for Check {
    type Error = String;

    fn try_from(raw: Raw) -> Result<Self, String> {
        let check = Self::read(raw)?;
        check.sound(true)?;
        Ok(check)
    }
}

impl TryFrom<Raw> for Said {
    type Error = String;

    fn try_from(raw: Raw) -> Result<Self, String> {
        let check = Check::read(raw)?;
        check.sound(false)?;
        Ok(Self(check))
    }
}

impl Check {
    fn read(raw: Raw) -> Result<Self, String> {
        if raw.to_quantity.is_some() && !matches!(raw.judge, Kind::Ratio) {
            return Err("this judge takes no `to_quantity`: ratio does".to_owned());
        }
        let quantity = need("quantity", raw.quantity);
        let cells = need("cells", raw.cells);
        let judge = match raw.judge {
            Kind::Ratio => Judge::Ratio {
                quantity: quantity?,
                cells: cells?,
                to: need("to", raw.to)?,
                to_quantity: raw.to_quantity,
            },
            Kind::Level => Judge::Level {
                quantity: quantity?,
                cells: cells?,
            },
            Kind::Share => Judge::Share {
                quantity: quantity?,
                cells: cells?,
                without: need("without", raw.without)?,
                base: need("base", raw.base)?,
            },
            Kind::Corrected => Judge::Corrected {
                quantity: quantity?,
                cells: cells?,
                to: need("to", raw.to.and_then(|to| to.into_iter().next()))?,
                less: need("less", raw.less)?,
            },
            Kind::Peak => Judge::Peak {
                quantity: quantity?,
                cells: cells?,
                axis: need("axis", raw.axis)?,
                last: need("last", raw.last)?,
            },
            Kind::Curve => Judge::Curve {
                shape: need("shape", raw.shape)?,
                quantity: quantity?,
                cells: cells?,
                to: raw.to.and_then(|to| to.into_iter().next()),
            },
            Kind::Does => Judge::Does {
                does: need("does", raw.does)?,
            },
            Kind::Missing => Judge::Missing {
                missing: need("missing", raw.missing)?,
            },
            Kind::Bench => Judge::Bench {
                bench: need("bench", raw.bench)?,
            },
        };
        Ok(Self {
            judge,
            plan: raw.plan,
            at_least: raw.at_least,
            at_most: raw.at_most,
            over: raw.over,
            mean_over: raw.mean_over,
            geometric: raw.geometric,
            cpus: raw.cpus,
            given: raw.given,
            weaker: raw.weaker,
            stronger: raw.stronger,
            beyond: raw.beyond,
            grade: raw.grade,
            says: raw.says,
            published: raw.published,
        })
    }
}
