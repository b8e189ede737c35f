//! Fills connection tracking of the hub.

use std::net::IpAddr;

use hopyard_net::{conntrack_stats, fill_conntrack};

use super::OnLab;
use crate::model::Family;
use crate::{Builder, Error, Result, role};

pub(super) struct Conntrack;

/// Addresses that no lab uses, of what labs have: a client of these connections, and their server.
const NOBODYS: [[&str; 2]; 2] = [
    ["198.18.240.1", "198.18.224.1"],
    ["2001:2:0:fffd::1", "2001:2:0:fffc::1"],
];

impl OnLab for Conntrack {
    fn apply(&self, lab: &mut Builder) -> Result<()> {
        let Some(count @ 1..) = lab.axes().conntrack else {
            return Ok(());
        };
        let pair = match lab.axes().family {
            Family::V4 => NOBODYS[0],
            Family::V6 => NOBODYS[1],
        };
        let [Ok(first), Ok(to)] = pair.map(str::parse::<IpAddr>) else {
            unreachable!("they are addresses")
        };
        let hub = lab.space(role::HUB)?.ns();
        let filled = fill_conntrack(hub, count, first, to);
        let stats = conntrack_stats(hub)?;
        if filled.is_ok() && stats.entries >= u64::from(count) {
            return Ok(());
        }
        let why = format!(
            "its table has room for {}, and the kernel took {}{}; set a smaller value, or raise \
             net.netfilter.nf_conntrack_max",
            stats.limit,
            stats.entries,
            filled
                .err()
                .map_or_else(String::new, |error| format!(" ({error})"))
        );
        Err(Error::refused(
            "the hub",
            "conntrack",
            count.to_string(),
            why,
        ))
    }
}

/// What this axis needs is what paths that have it need: connection tracking by netlink.
#[cfg(test)]
mod tests {
    use crate::PATHS;
    use crate::model::{Axes, axis};

    #[test]
    fn who_has_the_axis_lists_what_is_tracked() {
        for path in PATHS.iter().filter(|path| path.axes.contains(&"conntrack")) {
            let needs = path.needs.iter().map(|need| need.name);
            assert!(needs.into_iter().any(|name| name == "nf_conntrack_netlink"));
        }
        let mut axes = Axes::default();
        (axis("conntrack").unwrap().set)(&mut axes, "7").unwrap();
        assert_eq!(axes.conntrack, Some(7));
    }
}
