//! Packet filter rules, by the `nft` program.

use std::io;

use crate::error::{Error, Result};
use crate::fed::fed;
use crate::netns::NetNs;

/// A named counter of the rule set.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct NftCounter {
    /// Address family of its table: `inet`, `bridge`, `ip`.
    pub family: String,
    /// Name of the table that the counter is in.
    pub table: String,
    /// Name of the counter, unique in its table.
    pub name: String,
    /// Packets that passed it.
    pub packets: u64,
    /// Bytes of these packets, from the network layer up.
    pub bytes: u64,
}

/// Loads a rule set, in the language of `nft -f`, in a namespace; all of it or, on an error, nothing.
///
/// # Errors
/// [`Error::Unsupported`] without the program or without nf_tables in the kernel, [`Error::Program`]
/// with its diagnostics for rules it refuses.
pub fn apply_ruleset(ns: &NetNs, ruleset: &str) -> Result<()> {
    run(ns, "load nftables rules", &["-f", "-"], ruleset).map(drop)
}

/// Checks a rule set as [`apply_ruleset`] would load it there, and changes nothing.
///
/// # Errors
/// As [`apply_ruleset`].
pub fn check_ruleset(ns: &NetNs, ruleset: &str) -> Result<()> {
    run(ns, "check nftables rules", &["-c", "-f", "-"], ruleset).map(drop)
}

/// The named counters of a namespace.
///
/// # Errors
/// As [`apply_ruleset`]; [`Error::Reply`] when the list cannot be read.
pub fn nft_counters(ns: &NetNs) -> Result<Vec<NftCounter>> {
    let what = "list nftables counters";
    let text = run(ns, what, &["-j", "list", "counters"], "")?;
    parse(&text).map_err(|why| Error::Reply {
        what: what.into(),
        why,
    })
}

/// A chain with rules that hangs on a hook of netfilter.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct NftChain {
    /// Address family of its table: `inet`, `bridge`, `ip`.
    pub family: String,
    /// Name of the table that the chain is in.
    pub table: String,
    /// Name of the chain, unique in its table.
    pub name: String,
    /// The hook: `prerouting`, `forward`, …
    pub hook: String,
    /// How many rules it has, or 0 if its policy alone drops.
    pub rules: usize,
    /// Does its policy drop what no rule decides about?
    pub drops: bool,
    /// The devices whose frames it sees, where the hook is one of devices (`ingress`, `egress`) and the
    /// program tells (nft 1.0.6 does not).
    pub devices: Vec<String>,
}

/// The chains of a namespace that hang on a hook and have a rule or the policy `drop`.
///
/// Rules of iptables are among them where iptables works on nf_tables, as it does by default; for others
/// see [`legacy_chains`](crate::legacy_chains).
///
/// # Errors
/// As [`nft_counters`].
pub fn nft_chains(ns: &NetNs) -> Result<Vec<NftChain>> {
    let what = "list nftables rules";
    let text = run(ns, what, &["-j", "list", "ruleset"], "")?;
    parse_chains(&text).map_err(|why| Error::Reply {
        what: what.into(),
        why,
    })
}

/// What rules that [`count_chains`] adds are told from others by.
const COUNTS: &str = "hopyard counts";

/// Begins to count the packets that pass chains: adds a rule at the head of each.
///
/// # Errors
/// As [`apply_ruleset`].
pub fn count_chains(ns: &NetNs, chains: &[NftChain]) -> Result<()> {
    let rule = |chain: &NftChain| {
        let NftChain {
            family,
            table,
            name,
            ..
        } = chain;
        format!("insert rule {family} {table} {name} counter comment \"{COUNTS}\"\n")
    };
    let rules: String = chains.iter().map(rule).collect();
    run(ns, "count packets of nftables chains", &["-f", "-"], &rules).map(drop)
}

/// Packets that each of these chains has seen since [`count_chains`].
///
/// # Errors
/// As [`nft_counters`]; [`Error::Reply`] if one of them is not counted.
pub fn counted_chains(ns: &NetNs, chains: &[NftChain]) -> Result<Vec<u64>> {
    let what = "read counters of nftables chains";
    let text = run(ns, what, &["-j", "list", "ruleset"], "")?;
    let failed = |why: String| Error::Reply {
        what: what.into(),
        why,
    };
    let value = serde_json::from_str(&text).map_err(|error| failed(error.to_string()))?;
    let count = |chain: &NftChain| {
        let missing = || failed(format!("chain `{}` has no counter of ours", chain.name));
        counted(&value, chain).ok_or_else(missing)
    };
    chains.iter().map(count).collect()
}

/// The packets of the rule that [`count_chains`] added.
fn counted(value: &serde_json::Value, chain: &NftChain) -> Option<u64> {
    let rules = value["nftables"].as_array()?.iter().map(|it| &it["rule"]);
    let mut own = rules.filter(|rule| {
        rule["family"] == chain.family.as_str()
            && rule["table"] == chain.table.as_str()
            && rule["chain"] == chain.name.as_str()
            && rule["comment"] == COUNTS
    });
    let expressions = own.next()?["expr"].as_array()?;
    let packets = |it: &serde_json::Value| it["counter"]["packets"].as_u64();
    expressions.iter().find_map(packets)
}

fn run(ns: &NetNs, what: &str, arguments: &[&str], input: &str) -> Result<String> {
    // A child of a thread is born in the thread's namespace.
    let output = ns
        .run(|| fed("nft", arguments, &[], input))?
        .map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => Error::Unsupported {
                what: what.into(),
                feature: "nft".into(),
                remedy: "install nftables".into(),
            },
            _ => Error::from_io(what, error),
        })?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    let text = String::from_utf8_lossy(&output.stderr).trim().to_owned();
    if text.contains("cache initialization failed") || text.contains("Protocol not supported") {
        return Err(Error::Unsupported {
            what: what.into(),
            feature: "nf_tables".into(),
            remedy: "load module `nf_tables` (kernel option CONFIG_NF_TABLES)".into(),
        });
    }
    Err(Error::Program {
        what: what.into(),
        program: "nft".into(),
        output: text,
    })
}

/// `{"nftables": [{"metainfo": …}, {"counter": {"family", "name", "table", "packets", "bytes"}}, …]}`,
/// see `libnftables-json(5)`.
fn parse(text: &str) -> std::result::Result<Vec<NftCounter>, String> {
    let value: serde_json::Value = serde_json::from_str(text).map_err(|error| error.to_string())?;
    let objects = value["nftables"].as_array().ok_or("no `nftables` array")?;
    let counters = objects
        .iter()
        .map(|object| &object["counter"])
        .filter(|counter| counter.is_object());
    counters
        .map(|counter| {
            let word = |key: &str| {
                counter[key]
                    .as_str()
                    .map(str::to_owned)
                    .ok_or(format!("a counter without `{key}`"))
            };
            let number = |key: &str| {
                counter[key]
                    .as_u64()
                    .ok_or(format!("a counter without `{key}`"))
            };
            Ok(NftCounter {
                family: word("family")?,
                table: word("table")?,
                name: word("name")?,
                packets: number("packets")?,
                bytes: number("bytes")?,
            })
        })
        .collect()
}

/// Chains come before their rules; a rule names its chain.
fn parse_chains(text: &str) -> std::result::Result<Vec<NftChain>, String> {
    let value: serde_json::Value = serde_json::from_str(text).map_err(|error| error.to_string())?;
    let objects = value["nftables"].as_array().ok_or("no `nftables` array")?;
    let word = |of: &serde_json::Value, key: &str| of[key].as_str().unwrap_or_default().to_owned();
    let mut found = Vec::new();
    for chain in objects.iter().map(|object| &object["chain"]) {
        let Some(hook) = chain["hook"].as_str() else {
            continue;
        };
        let (family, table, name) = (
            word(chain, "family"),
            word(chain, "table"),
            word(chain, "name"),
        );
        let rules = objects
            .iter()
            .map(|object| &object["rule"])
            .filter(|rule| {
                rule["family"] == family.as_str()
                    && rule["table"] == table.as_str()
                    && rule["chain"] == name.as_str()
            })
            .count();
        let drops = chain["policy"] == "drop";
        if rules > 0 || drops {
            found.push(NftChain {
                family,
                table,
                name,
                hook: hook.to_owned(),
                rules,
                drops,
                devices: devices(&chain["dev"]),
            });
        }
    }
    Ok(found)
}

/// One device is a word, several are a list.
fn devices(value: &serde_json::Value) -> Vec<String> {
    let one = std::slice::from_ref(value);
    let all = value.as_array().map_or(one, Vec::as_slice);
    let words = all.iter().filter_map(|device| device.as_str());
    words.map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_are_read_from_json() {
        let text = r#"{"nftables": [{"metainfo": {"version": "1.0.6", "json_schema_version": 1}},
            {"counter": {"family": "inet", "name": "c", "table": "t", "handle": 2, "packets": 3, "bytes": 252}}]}"#;
        let counters = parse(text).unwrap();
        assert_eq!(counters.len(), 1);
        assert_eq!(
            (
                counters[0].name.as_str(),
                counters[0].packets,
                counters[0].bytes
            ),
            ("c", 3, 252)
        );
        assert!(parse("{}").is_err());
        assert!(parse("").is_err());
        assert!(parse(r#"{"nftables": [{"counter": {"family": "inet"}}]}"#).is_err());
    }

    #[test]
    fn chains_with_rules_or_a_dropping_policy_are_found() {
        let text = r#"{"nftables": [{"metainfo": {}}, {"table": {"family": "inet", "name": "t"}},
            {"chain": {"family": "inet", "table": "t", "name": "f", "hook": "forward", "policy": "accept"}},
            {"chain": {"family": "inet", "table": "t", "name": "empty", "hook": "input", "policy": "accept"}},
            {"chain": {"family": "bridge", "table": "b", "name": "d", "hook": "forward", "policy": "drop"}},
            {"chain": {"family": "inet", "table": "t", "name": "plain"}},
            {"rule": {"family": "inet", "table": "t", "chain": "f", "expr": []}},
            {"rule": {"family": "inet", "table": "t", "chain": "plain", "expr": []}}]}"#;
        let chains = parse_chains(text).unwrap();
        let short = chains.iter().map(|c| (c.name.as_str(), c.rules, c.drops));
        let short: Vec<_> = short.collect();
        assert_eq!(short, [("f", 1, false), ("d", 0, true)]);
        assert!(chains.iter().all(|chain| chain.devices.is_empty()));
        assert!(parse_chains("{}").is_err());
    }

    #[test]
    fn what_passed_a_chain_is_read_from_our_own_rule() {
        let text = r#"{"nftables": [
            {"rule": {"family": "inet", "table": "t", "chain": "f", "comment": "hopyard counts", "expr": [{"counter": {"packets": 7, "bytes": 9}}]}},
            {"rule": {"family": "inet", "table": "t", "chain": "f", "expr": [{"counter": {"packets": 99, "bytes": 9}}]}},
            {"rule": {"family": "ip", "table": "t", "chain": "f", "comment": "hopyard counts", "expr": [{"counter": {"packets": 5, "bytes": 9}}]}},
            {"rule": {"family": "inet", "table": "t", "chain": "g", "expr": [{"counter": {"packets": 3, "bytes": 9}}]}}]}"#;
        let value = serde_json::from_str(text).unwrap();
        let chain = |family: &str, name: &str| NftChain {
            family: family.to_owned(),
            table: "t".to_owned(),
            name: name.to_owned(),
            ..NftChain::default()
        };
        assert_eq!(counted(&value, &chain("inet", "f")), Some(7));
        assert_eq!(counted(&value, &chain("ip", "f")), Some(5));
        assert_eq!(counted(&value, &chain("inet", "g")), None);
    }

    #[test]
    fn devices_of_a_chain_are_one_or_several() {
        for (dev, expected) in [
            (r#""a""#, vec!["a"]),
            (r#"["a", "b"]"#, vec!["a", "b"]),
            ("null", vec![]),
        ] {
            assert_eq!(devices(&serde_json::from_str(dev).unwrap()), expected);
        }
    }
}
