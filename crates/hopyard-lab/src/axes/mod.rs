//! Axes that a lab sees to once its path is built, and what they need of the host: a file for each subject, and a line in [`ON_LAB`].
//!
//! Most axes are not here. A path reads [`Builder::axes`] while it builds, offloads are set together (`lab/offloads.rs`), and the worker is told
//! its values in the load's spec.

mod conntrack;
mod cpus;
mod gso_max;
mod napi;
mod rfs;
mod rps;
mod rules;
pub(crate) mod ruleset;
mod wire_pause;
mod xps;

use super::need::Need;
use super::{Builder, Error, Result};
use crate::model::Axes;

/// What an axis asks of the host, and does to a lab.
pub(super) trait OnLab: Sync {
    /// What this host must have for these axes, beside what the path needs.
    fn needs(&self, _: &Axes) -> &'static [Need] {
        &[]
    }

    /// Can this host do it? Asked before a run begins.
    fn check(&self, _: &Axes) -> Result<()> {
        Ok(())
    }

    /// Does to a lab what [`Builder::axes`] say, once every device is there and has its offloads.
    fn apply(&self, _: &mut Builder) -> Result<()> {
        Ok(())
    }
}

/// Refuses a lab with guests, whose cards are not the lab's: `does` says what a card does instead.
fn need_no_guests(lab: &Builder, axis: &'static str, value: &str, does: &str) -> Result<()> {
    if !lab.has_guests() {
        return Ok(());
    }
    let why = format!("a guest's card {does}; leave `{axis}` out, or choose another path");
    Err(Error::refused("eth0 in the guest", axis, value, why))
}

/// In the order in which they are applied.
pub(super) static ON_LAB: &[&dyn OnLab] = &[
    &cpus::ClientCpus,
    &cpus::Scheduling,
    &rules::Rules,
    &ruleset::Rules,
    &conntrack::Conntrack,
    &gso_max::GsoMax,
    &rps::Rps,
    &rfs::Rfs,
    &xps::Xps,
    &napi::Threads,
    &wire_pause::WirePause,
];
