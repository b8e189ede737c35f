//! What the hub has besides: idle ports, and rules.

use hopyard_net::apply_ruleset;

use super::Axes;
use super::axis::{AxisError, Decides, Descriptor, bounded, shown};
use super::ip::Family;
use crate::lab::paths::Need;
use crate::lab::{Builder, Result as LabResult, role};

/// Devices attached to the hub's switch.
pub(super) struct Ports;

impl Descriptor for Ports {
    type Value = Option<u32>;
    const NAME: &'static str = "ports";
    const SUMMARY: &'static str =
        "devices attached to the hub's switch; beyond those in use, they are idle";
    const VALUES: &'static str = "2 to 1000 (default: those in use)";
    const OTHER: &'static str = "1000";
    const ABSENT: Self::Value = None;
    const DECIDES: Decides = Decides::Lab;
    const OF_PATH: bool = true;
    const COUNTS: bool = true;

    fn parse(text: &str) -> Result<Self::Value, AxisError> {
        Ok(Some(bounded(Self::NAME, text, 2, 1000)?))
    }

    fn print(value: &Self::Value) -> Option<String> {
        shown(value)
    }
}

/// Rules that match nothing.
pub(super) struct Rules;

impl Descriptor for Rules {
    type Value = Option<u32>;
    const NAME: &'static str = "rules";
    const SUMMARY: &'static str = "nftables rules that match nothing, in the hub's forward hook";
    const VALUES: &'static str = "0 to 10000 (default 0)";
    const OTHER: &'static str = "100";
    const ABSENT: Self::Value = None;
    const DECIDES: Decides = Decides::Lab;
    const OF_PATH: bool = true;
    const COUNTS: bool = true;

    fn parse(text: &str) -> Result<Self::Value, AxisError> {
        Ok(Some(bounded(Self::NAME, text, 0, 10_000)?))
    }

    fn print(value: &Self::Value) -> Option<String> {
        shown(value)
    }

    fn needs(axes: &Axes) -> &'static [Need] {
        match axes.rules {
            Some(1..) => &[Need::FILTER],
            Some(0) | None => &[],
        }
    }

    /// Their addresses are for documentation (RFC 5737, RFC 3849).
    fn apply(lab: &mut Builder) -> LabResult<()> {
        let rules = lab.axes().rules.unwrap_or(0);
        if rules == 0 {
            return Ok(());
        }
        let rule = match lab.axes().family {
            Family::V4 => "ip saddr 192.0.2.1 drop\n",
            Family::V6 => "ip6 saddr 2001:db8::1 drop\n",
        };
        let rules = rule.repeat(rules as usize);
        let ruleset = format!(
            "table inet lab {{ chain forward {{ type filter hook forward priority filter; policy accept;\n{rules}}}\n}}\n"
        );
        Ok(apply_ruleset(lab.space(role::HUB)?.ns(), &ruleset)?)
    }
}
