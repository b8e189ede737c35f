//! Adds rules that match nothing to the hub's forward hook.

use hopyard_net::apply_ruleset;

use super::OnLab;
use crate::model::{Axes, Family};
use crate::need::Need;
use crate::{Builder, Result, role};

pub(super) struct Rules;

impl OnLab for Rules {
    fn needs(&self, axes: &Axes) -> &'static [Need] {
        match axes.rules {
            Some(1..) => &[Need::FILTER],
            Some(0) | None => &[],
        }
    }

    /// Their addresses are for documentation (RFC 5737, RFC 3849).
    fn apply(&self, lab: &mut Builder) -> Result<()> {
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
