//! Experiments, their results, and the registry.

use std::ops::RangeInclusive;

use hopyard::stats;
use serde::Serialize;

use crate::bench::Bench;
use crate::{
    v01_shaped_wire, v02_shaped_ratio, v03_burn_by_phase, v04_foreign_burn, v05_known_work,
    v06_equal_cells, v07_coverage, v08_service_time, v09_stopped_receiver, v10_random_drop,
    v11_one_slow_cell, v12_peers, v13_profile_ablation, v14_known_jitter, v15_shaped_search,
    v16_soak, v17_many_endpoints, v18_equal_under_hog, v19_slow_under_hog, v20_printed_coverage,
    v21_wire_cost,
};

/// Every experiment, in the order in which they run.
pub(crate) static EXPERIMENTS: &[&Experiment] = &[
    &v01_shaped_wire::EXPERIMENT,
    &v02_shaped_ratio::EXPERIMENT,
    &v03_burn_by_phase::EXPERIMENT,
    &v04_foreign_burn::EXPERIMENT,
    &v05_known_work::EXPERIMENT,
    &v06_equal_cells::EXPERIMENT,
    &v07_coverage::EXPERIMENT,
    &v08_service_time::EXPERIMENT,
    &v09_stopped_receiver::EXPERIMENT,
    &v10_random_drop::EXPERIMENT,
    &v11_one_slow_cell::EXPERIMENT,
    &v12_peers::EXPERIMENT,
    &v13_profile_ablation::EXPERIMENT,
    &v14_known_jitter::EXPERIMENT,
    &v15_shaped_search::EXPERIMENT,
    &v16_soak::EXPERIMENT,
    &v17_many_endpoints::EXPERIMENT,
    &v18_equal_under_hog::EXPERIMENT,
    &v19_slow_under_hog::EXPERIMENT,
    &v20_printed_coverage::EXPERIMENT,
    &v21_wire_cost::EXPERIMENT,
];

/// An experiment whose answer is known beforehand.
pub(crate) struct Experiment {
    /// Its number in docs/method.md.
    pub(crate) id: &'static str,
    /// What it does, in a line.
    pub(crate) title: &'static str,
    /// Whether it takes so long that it runs only if it is named.
    pub(crate) only_when_named: bool,
    /// Runs it. An error means that it could not run, so its promise is neither kept nor missed.
    pub(crate) run: fn(&Bench) -> Result<Vec<Row>, Failure>,
}

/// One line of the table.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Row {
    /// The experiment.
    pub(crate) id: &'static str,
    /// What was tried.
    pub(crate) what: String,
    /// The promise.
    pub(crate) promised: String,
    /// What was seen.
    pub(crate) seen: String,
    /// Whether the promise was kept.
    pub(crate) verdict: Verdict,
}

impl Row {
    /// A row that has a verdict and nothing else.
    pub(crate) fn without_figures(id: &'static str, what: String, verdict: Verdict) -> Self {
        Self {
            id,
            what,
            promised: String::new(),
            seen: String::new(),
            verdict,
        }
    }

    /// A failed row if fewer tables were measured than asked for, because they show less.
    pub(crate) fn cut_short(
        id: &'static str,
        what: String,
        had: usize,
        asked: usize,
    ) -> Option<Self> {
        let why = format!("{had} of {asked} tables were measured in the time given");
        (had < asked).then(|| Self::without_figures(id, what, Verdict::Failed(why)))
    }

    /// Whether the mean slowdown of slowed cells, by the kernel's account, is what the experiment promises to find. If
    /// not, or if it is not known, its tables prove nothing.
    pub(crate) fn true_slowdown(
        id: &'static str,
        what: String,
        slowdowns: &[f64],
        promised: RangeInclusive<f64>,
    ) -> Self {
        let percent = |share: f64| 100.0 * share;
        let (least, most) = (percent(*promised.start()), percent(*promised.end()));
        let mean = stats::mean(slowdowns);
        let verdict = match mean {
            Some(mean) if promised.contains(&mean) => Verdict::Within,
            Some(_) => Verdict::Failed("the slow cell is not as slow as it was to be made".into()),
            None => Verdict::Failed("no table knows how slow the slow cell was".into()),
        };
        Self {
            id,
            what,
            promised: format!(
                "{least:.1} to {most:.1} % more service demand by the kernel's account"
            ),
            seen: mean.map_or_else(String::new, |mean| format!("{:+.2} %", percent(mean))),
            verdict,
        }
    }

    /// A part of an experiment for which there was no time.
    pub(crate) fn not_measured(id: &'static str, what: String) -> Self {
        let why = "no table was measured in the time given".to_owned();
        Self::without_figures(id, what, Verdict::Failed(why))
    }
}

/// Whether a promise was kept.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Verdict {
    /// It was.
    Within,
    /// It was not.
    Missed,
    /// Nothing is promised; the figure is only reported.
    Stated,
    /// This host lacks something; the reason.
    CannotRun(String),
    /// It failed; the reason.
    Failed(String),
}

impl Verdict {
    pub(crate) fn of(kept: bool) -> Self {
        if kept { Self::Within } else { Self::Missed }
    }
}

/// Why an experiment has no rows.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Failure {
    #[error("there is no experiment `{id}`: choose {choices}")]
    NoSuchExperiment { id: String, choices: String },
    #[error("there is no program `{path}`: build it with `cargo build --release -p hopyard`")]
    NoWorker { path: String },
    #[error("program `{program}` is missing: install {package}")]
    NoProgram {
        program: &'static str,
        package: &'static str,
    },
    #[error("this needs {needed} CPUs and this process may use {found}")]
    Cpus { needed: usize, found: usize },
    #[error("this kernel has no {feature}: it takes Linux {needed} or newer")]
    OldKernel {
        feature: &'static str,
        needed: &'static str,
    },
    #[error("the burner {0}")]
    Burner(String),
    #[error("{0}")]
    Peer(String),
    #[error("the traffic did not take its way: {0}")]
    Way(String),
    #[error("{0} has no figure to compare")]
    NoFigure(&'static str),
    #[error("cannot {what}")]
    Bpf {
        what: &'static str,
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    #[error(transparent)]
    Diff(#[from] hopyard::assess::diff::Refused),
    #[error(transparent)]
    Measure(#[from] hopyard::measure::Error),
    #[error(transparent)]
    Meter(#[from] hopyard::meter::Error),
    #[error(transparent)]
    Lab(#[from] hopyard::lab::Error),
    #[error(transparent)]
    Name(#[from] hopyard::model::UnknownName),
    #[error(transparent)]
    Net(#[from] hopyard_net::Error),
    #[error(transparent)]
    Io(#[from] std::io::Error),
    #[error(transparent)]
    Json(#[from] serde_json::Error),
    #[error("cannot keep or read tables in `{file}`: choose another directory with --keep")]
    Kept {
        file: String,
        source: std::io::Error,
    },
    #[error(
        "`{file}` is of {what} `{there}`, and this is `{here}`: go on with the same {what}, or choose another directory with --keep"
    )]
    OtherTable {
        file: String,
        what: &'static str,
        there: String,
        here: String,
    },
    #[error("interrupted")]
    Interrupted,
}

impl Failure {
    /// Turns the kernel's answer to a BPF call into a failure.
    pub(crate) fn bpf<E>(what: &'static str) -> impl FnOnce(E) -> Self
    where
        E: Into<Box<dyn std::error::Error + Send + Sync>>,
    {
        move |source| Self::Bpf {
            what,
            source: source.into(),
        }
    }

    pub(crate) fn is_interrupt(&self) -> bool {
        match self {
            Self::Interrupted => true,
            Self::Measure(error) => error.is_interrupt(),
            _ => false,
        }
    }

    pub(crate) fn is_unsupported(&self) -> bool {
        match self {
            Self::NoProgram { .. } | Self::Cpus { .. } | Self::OldKernel { .. } => true,
            Self::Measure(error) => error.is_unsupported(),
            Self::Lab(error) => error.is_unsupported(),
            Self::Net(error) => error.is_unsupported(),
            _ => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slowdown_that_is_not_the_one_to_find_proves_nothing() {
        let row = |slowdowns: &[f64]| {
            Row::true_slowdown("V0", "these tables".to_owned(), slowdowns, 0.027..=0.033)
        };
        assert_eq!(row(&[0.026, 0.034]).verdict, Verdict::Within);
        assert_eq!(row(&[0.026, 0.034]).seen, "+3.00 %");
        for slowdowns in [&[][..], &[0.0269], &[0.0331], &[f64::NAN], &[0.03, 0.09]] {
            let verdict = row(slowdowns).verdict;
            assert!(
                matches!(verdict, Verdict::Failed(_)),
                "{slowdowns:?}: {verdict:?}"
            );
        }
    }
}
