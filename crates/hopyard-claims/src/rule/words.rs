//! Rules in words.

use super::{Check, Judge, Over};

impl Check {
    /// What is measured of what, in words; empty where it is no measurement of cells.
    #[must_use]
    pub fn in_words(&self) -> String {
        let Some((what, _)) = self.of_cells() else {
            return String::new();
        };
        let what = format!("{what:?}").replace('_', " ");
        let over = match self.over {
            Over::Every => "every one",
            Over::Most => "most",
        };
        let mean = match self.mean_over.as_slice() {
            [] => String::new(),
            axes => format!(", geometric mean over {}", axes.join(", ")),
        };
        match &self.judge {
            Judge::Ratio { to, .. } => {
                let that = self.of_base().map_or_else(
                    || "that".to_owned(),
                    |base| format!("{base:?}").replace('_', " "),
                );
                format!("{what} over {that} of {}{mean}, {over}", to.join(", "))
            }
            Judge::Share { without, base, .. } => {
                format!("share of {what} above {base} that goes with what {without} lacks, {over}")
            }
            Judge::Corrected { to, less, .. } => {
                format!("{what} over that of {to}, without what they differ by at {less}, {over}")
            }
            Judge::Curve { shape, to, .. } => {
                let over = to.iter().map(|to| format!(" over that of {to}"));
                format!("{} of {what}{}", shape.words(), over.collect::<String>())
            }
            Judge::Peak { axis, last, .. } => format!(
                "{what} at {axis} {last} over its peak, which is at a value below the number of CPUs"
            ),
            _ => format!("{what}{mean}, {over}"),
        }
    }

    /// `0.95 to 1.05`, `at least 2`.
    #[must_use]
    pub fn bounds_in_words(&self) -> String {
        if let (true, Some(low), Some(high)) = (self.beyond, self.at_least, self.at_most) {
            return format!("below {low} or above {high}");
        }
        match (self.at_least, self.at_most) {
            (Some(low), Some(high)) => format!("{low} to {high}"),
            (Some(low), None) => format!("at least {low}"),
            (None, Some(high)) => format!("at most {high}"),
            (None, None) => "that it does".to_owned(),
        }
    }
}
