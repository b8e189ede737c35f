//! Statistics: pure functions on slices.
//!
//! Every figure has its interval, and no function returns NaN: the answer is `None` if there is none. Each function
//! names the paper or book of its method, and its tests repeat that source's own example if it has one.
//!
//! The replicate within a run is one fresh lab (a block). Samples from inside one run of a flow are correlated and must
//! be reduced to one number first. Between runs, the replicate is the run ([`compare_runs`]).

mod autocorrelation;
mod binomial;
mod changes;
mod coverage;
mod curve;
mod distribution;
mod estimate;
mod fdr;
mod interval;
mod jackknife;
mod knee;
mod location;
mod moderated;
mod modes;
mod moments;
mod power;
#[cfg(test)]
mod properties;
mod ratio;
mod replication;
mod runs;
mod samples;
mod saturation;
pub mod search;
mod settling;
mod simulation;
mod slope;
mod step;
mod stopping;
mod synthetic;
mod verdict;
mod welch;

pub use autocorrelation::{Dependence, dependence, drift};
pub use binomial::binomial_interval;
pub use changes::{Change, changes};
pub use coverage::{Coverage, simulate_coverage};
pub use curve::Curve;
pub use estimate::{Estimate, settled_width};
pub use fdr::benjamini_hochberg;
pub use interval::{log_mean_interval, log_moments_interval, mean_interval};
pub use jackknife::jackknife;
pub use knee::{Knee, Slopes, knee, slopes_around};
pub use location::{hodges_lehmann, median};
pub use moderated::moderated;
pub use modes::two_modes;
pub use moments::{geometric_mean, mean, sd};
pub use power::{blocks_needed, one_sided_detectable, smallest_detectable};
pub use ratio::{paired_ratio, ratio_of_sums};
pub use replication::{Spread, spread};
pub use runs::{
    RUNS_FOR_A_SCATTER, RunsCompared, compare_runs, ratio_within_runs, runs_needed, se_log_within,
};
pub use samples::{NotFinite, Samples};
pub use saturation::{Reached, ReachedInterval, reached};
pub use settling::{before_end, settles, unsettled};
pub use simulation::{FalseAlarms, Order, Power, Setup, simulate_false_alarms, simulate_power};
pub use slope::{Straight, exponent, linear_slope, straight};
pub use step::{Step, largest_step};
pub use stopping::{enough_for_quantile, frequent_looks, looks};
pub use synthetic::{Synthetic, normal as standard_normal};
pub use verdict::{Comparison, Judged, POWER, Verdict, compare, judge};
