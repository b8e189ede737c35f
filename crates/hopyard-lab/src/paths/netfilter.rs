//! What paths need of netfilter beyond rules that filter: each piece is a need of its own, named by its module.

use hopyard_net::{Error, IptablesFamily, NetNs, apply_ruleset, conntrack_stats, restore_iptables};

use super::{Carried, Need};

/// nftables rules that translate addresses.
pub(super) const NAT: Need =
    nft("nft_masq", &["nft_chain_nat", "nft_masq", "nft_nat"]).since("5.2");
/// The choice among endpoints at random.
pub(super) const NUMGEN: Need = nft("nft_numgen", &["nft_numgen"]).since("4.9");
/// Matches on what connection tracking knows.
pub(super) const CT: Need = nft("nft_ct", &["nft_ct", "nf_conntrack"]).since("3.14");
/// Rules that refuse packets with an answer.
pub(super) const REJECT: Need = nft(
    "nft_reject_inet",
    &["nft_reject_inet", "nft_reject_ipv4", "nft_reject_ipv6"],
)
.since("3.14");
/// Flow tables, which forward in software at a device's ingress.
pub(super) const FLOW_TABLE: Need =
    nft("nf_flow_table", &["nf_flow_table", "nf_flow_table_inet"]).since("4.16");
/// Rules that hand connections to a flow table.
pub(super) const FLOW_OFFLOAD: Need =
    nft("nft_flow_offload", &["nft_flow_offload", "nft_objref"]).since("4.16");
/// What lists tracked connections, by which paths that translate addresses are proved.
pub(super) const CONNTRACK: Need = Need {
    carried: Carried::modules(&["nf_conntrack_netlink"]),
    ..Need::new("nf_conntrack_netlink", |_| {
        conntrack_stats(&NetNs::create()?).map(drop)
    })
};
/// Rules of iptables that translate addresses, and the programs that load them.
pub(super) const IPTABLES_NAT: Need = Need {
    carried: Carried {
        programs: &["iptables-restore", "ip6tables-restore"],
        ..Carried::modules(&[
            "iptable_nat",
            "ip6table_nat",
            "iptable_filter",
            "nft_compat",
        ])
    },
    ..iptables("xt_nat", &[])
};
pub(super) const XT_COMMENT: Need = iptables("xt_comment", &["xt_comment"]);
pub(super) const XT_MARK: Need = iptables("xt_mark", &["xt_mark"]);
pub(super) const XT_CONNTRACK: Need = iptables("xt_conntrack", &["xt_conntrack"]);
pub(super) const XT_ADDRTYPE: Need = iptables("xt_addrtype", &["xt_addrtype"]);
/// With `--random-fully` (`NF_NAT_RANGE_PROTO_RANDOM_FULLY`).
pub(super) const XT_MASQUERADE: Need = iptables("xt_MASQUERADE", &["xt_MASQUERADE"]).since("3.14");

/// Tables of ip6tables, with all that a service's rules have in them: that IPv4 has it does not say that IPv6 does.
pub(super) const IP6TABLES_NAT: Need = ip6tables("ip6table_nat", &["ip6table_nat"]);
pub(super) const IP6TABLES_FILTER: Need = ip6tables("ip6table_filter", &["ip6table_filter"]);

/// What each piece lets one write: its need's name, the rules, the kernel's option.
const PIECES: &[(&str, &str, &str)] = &[
    (
        "nft_masq",
        "table inet probe {\nchain c {\ntype nat hook postrouting priority 100\nmasquerade\n}\n}\n",
        "CONFIG_NFT_MASQ and CONFIG_NFT_NAT",
    ),
    (
        "nft_numgen",
        "table inet probe {\nchain c {\nnumgen random mod 1 vmap { 0 : accept }\n}\n}\n",
        "CONFIG_NFT_NUMGEN",
    ),
    (
        "nft_ct",
        "table inet probe {\nchain c {\nct state new accept\n}\n}\n",
        "CONFIG_NFT_CT",
    ),
    (
        "nft_reject_inet",
        "table inet probe {\nchain c {\ntype filter hook forward priority 0\nreject\n}\n}\n",
        "CONFIG_NFT_REJECT_INET",
    ),
    (
        "nf_flow_table",
        "table inet probe {\nflowtable f {\nhook ingress priority 0\ndevices = { lo }\n}\n}\n",
        "CONFIG_NF_FLOW_TABLE and CONFIG_NF_FLOW_TABLE_INET",
    ),
    (
        "nft_flow_offload",
        "table inet probe {\nflowtable f {\nhook ingress priority 0\ndevices = { lo }\n}\nchain c {\n\
         type filter hook forward priority 0\nflow add @f\n}\n}\n",
        "CONFIG_NFT_FLOW_OFFLOAD",
    ),
    (
        "xt_nat",
        "*nat\n-A OUTPUT -p tcp -j DNAT --to-destination 192.0.2.1:80\nCOMMIT\n",
        "CONFIG_NETFILTER_XT_NAT, and CONFIG_NFT_COMPAT or CONFIG_IP_NF_NAT",
    ),
    (
        "xt_comment",
        "*nat\n-A OUTPUT -m comment --comment probe -j ACCEPT\nCOMMIT\n",
        "CONFIG_NETFILTER_XT_MATCH_COMMENT",
    ),
    (
        "xt_mark",
        "*nat\n-A OUTPUT -m mark --mark 0x4000/0x4000 -j MARK --set-xmark 0x4000/0x0\nCOMMIT\n",
        "CONFIG_NETFILTER_XT_MARK",
    ),
    (
        "xt_conntrack",
        "*filter\n-A FORWARD -m conntrack --ctstate NEW -j ACCEPT\nCOMMIT\n",
        "CONFIG_NETFILTER_XT_MATCH_CONNTRACK",
    ),
    (
        "xt_addrtype",
        "*nat\n-A OUTPUT -m addrtype --dst-type LOCAL -j ACCEPT\nCOMMIT\n",
        "CONFIG_NETFILTER_XT_MATCH_ADDRTYPE",
    ),
    (
        "xt_MASQUERADE",
        "*nat\n-A POSTROUTING -j MASQUERADE --random-fully\nCOMMIT\n",
        "CONFIG_NETFILTER_XT_TARGET_MASQUERADE",
    ),
    (
        "ip6table_nat",
        "*nat\n-A OUTPUT -d 2001:db8::1 -p tcp -m comment --comment probe -m tcp --dport 80 -j DNAT --to-destination [2001:db8::2]:80\n\
         -A OUTPUT -m addrtype --dst-type LOCAL -j ACCEPT\n\
         -A POSTROUTING -m mark --mark 0x4000/0x4000 -j MARK --set-xmark 0x4000/0x0\n\
         -A POSTROUTING -j MASQUERADE --random-fully\nCOMMIT\n",
        "CONFIG_NFT_COMPAT or CONFIG_IP6_NF_NAT",
    ),
    (
        "ip6table_filter",
        "*filter\n-A FORWARD -m conntrack --ctstate NEW -m comment --comment probe -m mark --mark 0x4000/0x4000 -j ACCEPT\nCOMMIT\n",
        "CONFIG_NFT_COMPAT or CONFIG_IP6_NF_FILTER",
    ),
];

const fn nft(name: &'static str, modules: &'static [&'static str]) -> Need {
    Need {
        carried: Carried {
            programs: &["nft"],
            ..Carried::modules(modules)
        },
        ..Need::new(name, |name| tried(name, apply_ruleset))
    }
}

const fn iptables(name: &'static str, modules: &'static [&'static str]) -> Need {
    Need {
        carried: Carried::modules(modules),
        ..Need::new(name, |name| {
            tried(name, |ns, rules| {
                restore_iptables(ns, IptablesFamily::V4, rules, false)
            })
        })
    }
}

const fn ip6tables(name: &'static str, modules: &'static [&'static str]) -> Need {
    Need {
        carried: Carried {
            programs: &["ip6tables-restore"],
            ..Carried::modules(modules)
        },
        ..Need::new(name, |name| {
            tried(name, |ns, rules| {
                restore_iptables(ns, IptablesFamily::V6, rules, false)
            })
        })
    }
}

/// Loads the rules of a piece in a throw-away namespace. That they are refused says that the piece is missing: they are
/// right, and each needs what others do not.
fn tried(
    name: &'static str,
    load: impl FnOnce(&NetNs, &str) -> hopyard_net::Result<()>,
) -> hopyard_net::Result<()> {
    let piece = PIECES.iter().find(|(piece, ..)| *piece == name);
    let &(_, rules, option) = piece.unwrap_or_else(|| unreachable!("each need has its piece"));
    load(&NetNs::create()?, rules).map_err(|error| match error {
        Error::Program { what, output, .. } => Error::Unsupported {
            // Beside a missing module it may be a file of iptables that is missing.
            what: format!("{what} ({})", output.lines().next().unwrap_or_default()),
            feature: name.to_owned(),
            remedy: format!(
                "load module `{name}` (kernel option {option}), or choose another path"
            ),
        },
        other => other,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_need_has_its_piece() {
        for need in [
            NAT,
            NUMGEN,
            CT,
            REJECT,
            FLOW_TABLE,
            FLOW_OFFLOAD,
            IPTABLES_NAT,
            XT_COMMENT,
            XT_MARK,
            XT_CONNTRACK,
            XT_ADDRTYPE,
            XT_MASQUERADE,
            IP6TABLES_NAT,
            IP6TABLES_FILTER,
        ] {
            let pieces = PIECES.iter().filter(|(name, ..)| *name == need.name);
            assert_eq!(pieces.count(), 1, "{}", need.name);
        }
    }
}
