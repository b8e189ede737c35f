//! Statistics: pure functions on slices.
//!
//! No figure leaves this module without its interval, and no NaN leaves it at all: what cannot be
//! answered is `None`. Each function names the paper or book its method is from, and its tests
//! repeat that source's own example where there is one.
//!
//! The replicate everywhere is one fresh lab (a block); samples taken inside one run of a flow are
//! correlated and must be reduced to one number first.

mod bootstrap;
mod distribution;
mod estimate;
mod interval;
mod moments;
mod ratio;
mod samples;

pub use bootstrap::{LEAST as BOOTSTRAP_LEAST, bootstrap_mean, bootstrap_ratio};
pub use estimate::{Estimate, settled_width};
pub use interval::{log_mean_interval, mean_interval};
pub use moments::{geometric_mean, mean, sd};
pub use ratio::{paired_ratio, ratio_of_sums, unpaired_ratio};
pub use samples::{NotFinite, Samples};
