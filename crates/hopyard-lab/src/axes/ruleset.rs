//! Loads the user's own packet filter rules into the hub, and tells which of their chains see the traffic.
//!
//! What they are is seen by the first line: rules as `iptables-save` prints them begin with a table (`*filter`), anything
//! else is for `nft -f`.

use std::fs::File;
use std::io::Read;

use hopyard_net::{
    IptablesFamily, NetNs, NftChain, apply_ruleset, count_chains, counted_chains, nft_chains,
    restore_iptables,
};
use sha2::{Digest, Sha256};

use super::OnLab;
use crate::model::{Axes, Family, FilterChain, Ruleset, Sees};
use crate::need::Need;
use crate::part::{Part, Undone};
use crate::{Builder, Error, Lab, Result, role};

pub(super) struct Rules;

/// Larger files are no rules. kube-proxy's, of 30,000 services, have some 10 MB.
const MOST_BYTES: u64 = 64 << 20;

/// The user's chains in the hub of a lab.
#[derive(Debug)]
struct Chains(Vec<NftChain>);

/// They end with the hub.
impl Part for Chains {
    fn undo(&mut self) -> Undone {
        Undone::default()
    }
}

impl OnLab for Rules {
    fn needs(&self, axes: &Axes) -> &'static [Need] {
        match axes.ruleset {
            Some(Ruleset::File { .. }) => &[Need::FILTER],
            Some(Ruleset::None) | None => &[],
        }
    }

    fn check(&self, axes: &Axes) -> Result<()> {
        axes.ruleset
            .as_ref()
            .map_or(Ok(()), |rules| text(rules).map(drop))
    }

    /// Behind the path's own rules: chains of one hook take their turns by priority, whoever was there first.
    fn apply(&self, lab: &mut Builder) -> Result<()> {
        let rules = lab.axes().ruleset.clone();
        let Some(rules @ Ruleset::File { name, .. }) = &rules else {
            return Ok(());
        };
        let text = text(rules)?;
        let family = lab.axes().family;
        // Without a hub no host is between the endpoints.
        let Some(hub) = lab.handle(role::HUB) else {
            lab.push(Chains(Vec::new()));
            return Ok(());
        };
        let hub = hub.ns();
        let of_path = nft_chains(hub)?;
        load(hub, &text, family).map_err(|source| Error::Rules {
            file: name.clone(),
            source,
        })?;
        let mut chains = nft_chains(hub)?;
        chains.retain(|chain| !of_path.contains(chain));
        if chains.is_empty() {
            return Err(Error::RulesFile {
                file: name.clone(),
                why: "none of its rules hangs on a hook that nf_tables knows of: give it a base chain with rules, and \
                      rules of iptables-legacy in the form of nftables (iptables-restore-translate)"
                    .to_owned(),
            });
        }
        lab.push(Chains(chains));
        Ok(())
    }
}

impl Lab {
    /// Begins to count what passes the user's chains, by a rule more in each: for labs that are measured no more.
    ///
    /// # Errors
    /// `nft` fails.
    pub fn count_chains(&self) -> Result<()> {
        match self.chains() {
            Some(chains) if !chains.is_empty() => {
                Ok(count_chains(self.space(role::HUB)?.handle.ns(), chains)?)
            }
            _ => Ok(()),
        }
    }

    /// The user's chains, with the packets that passed them since [`count_chains`](Self::count_chains), and what of the traffic these
    /// are if the receiver counted so many transactions, or so many times 64 KiB. `None` without rules of the user's, empty
    /// where the path has no hub.
    ///
    /// # Errors
    /// `nft` fails.
    pub fn counted_chains(&self, units: u64) -> Result<Option<Vec<FilterChain>>> {
        let Some(chains) = self.chains() else {
            return Ok(None);
        };
        if chains.is_empty() {
            return Ok(Some(Vec::new()));
        }
        let counts = counted_chains(self.space(role::HUB)?.handle.ns(), chains)?;
        let chains = chains
            .iter()
            .zip(counts)
            .map(|(chain, packets)| FilterChain {
                family: chain.family.clone(),
                table: chain.table.clone(),
                name: chain.name.clone(),
                hook: chain.hook.clone(),
                drops: chain.drops,
                packets,
                sees: Sees::of(packets, units),
            });
        Ok(Some(chains.collect()))
    }

    fn chains(&self) -> Option<&[NftChain]> {
        let chains = self.builder.parts::<Chains>().next();
        chains.map(|Chains(chains)| &chains[..])
    }
}

/// The same rules with the digest of what is in their file now.
///
/// # Errors
/// The file cannot be read, or has changed since its digest was taken.
pub fn with_digest(rules: &Ruleset) -> Result<Ruleset> {
    match rules {
        Ruleset::None => Ok(Ruleset::None),
        Ruleset::File { name, .. } => Ok(Ruleset::File {
            name: name.clone(),
            digest: Some(digest(&text(rules)?)),
        }),
    }
}

/// What is in the file.
fn text(rules: &Ruleset) -> Result<String> {
    let Ruleset::File {
        name,
        digest: known,
    } = rules
    else {
        return Ok(String::new());
    };
    let wrong = |why: &str| Error::RulesFile {
        file: name.clone(),
        why: why.to_owned(),
    };
    let unread = |source| Error::File {
        what: format!("read the rules in {name}"),
        source,
    };
    let file = File::open(name).map_err(unread)?;
    let mut bytes = Vec::new();
    let mut most = file.take(MOST_BYTES + 1);
    most.read_to_end(&mut bytes).map_err(unread)?;
    if bytes.len() as u64 > MOST_BYTES {
        return Err(wrong("it is larger than 64 MiB"));
    }
    let text = String::from_utf8(bytes).map_err(|_| wrong("it is no text"))?;
    if known.as_ref().is_some_and(|known| *known != digest(&text)) {
        return Err(wrong(
            "it has changed since the run began: start another run, or put back what it was",
        ));
    }
    Ok(text)
}

fn digest(text: &str) -> String {
    let hash = Sha256::digest(text);
    let mut digits: String = hash.iter().map(|byte| format!("{byte:02x}")).collect();
    digits.truncate(Ruleset::DIGEST);
    digits
}

fn load(hub: &NetNs, text: &str, family: Family) -> hopyard_net::Result<()> {
    let mut lines = text.lines().map(str::trim);
    let first = lines.find(|line| !line.is_empty() && !line.starts_with('#'));
    if !first.is_some_and(|line| line.starts_with('*')) {
        return apply_ruleset(hub, &without_flush(text));
    }
    let of_6 = text.contains("# Generated by ip6tables-save");
    let family = match family {
        _ if of_6 => IptablesFamily::V6,
        Family::V4 => IptablesFamily::V4,
        Family::V6 => IptablesFamily::V6,
    };
    restore_iptables(hub, family, text, true)
}

/// Most files begin with `flush ruleset`, which would take the path's own rules with it. A new hub has no others.
fn without_flush(text: &str) -> String {
    let is_flush = |line: &str| line.trim().trim_end_matches(';').trim_end() == "flush ruleset";
    // Lines keep their numbers, by which nft tells of mistakes.
    let lines = text.lines().map(|line| match line {
        line if is_flush(line) => "\n".to_owned(),
        line => format!("{line}\n"),
    });
    lines.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flush_of_all_rules_is_left_out_and_nothing_else() {
        let text = "#!/usr/sbin/nft -f\nflush ruleset\n  flush  ruleset;\nflush ruleset ;\ntable inet t {\n}\nflush table inet t\n";
        let expected =
            "#!/usr/sbin/nft -f\n\n  flush  ruleset;\n\ntable inet t {\n}\nflush table inet t\n";
        assert_eq!(without_flush(text), expected);
    }

    #[test]
    fn a_file_that_changed_is_refused() {
        let home = tempfile::tempdir().unwrap();
        let file = home.path().join("fw.nft");
        std::fs::write(&file, "table inet t {\n}\n").unwrap();
        let named: Ruleset = file.to_str().unwrap().parse().unwrap();
        let known = with_digest(&named).unwrap();
        // printf 'table inet t {\n}\n' | sha256sum
        assert!(known.to_string().ends_with("#16a368a24e86"), "{known}");
        assert_eq!(with_digest(&known).unwrap(), known);
        std::fs::write(&file, "table inet u {\n}\n").unwrap();
        let error = text(&known).unwrap_err().to_string();
        assert!(error.contains("has changed since the run began"), "{error}");
        assert_ne!(with_digest(&named).unwrap(), known);
        std::fs::write(&file, [0xff]).unwrap();
        let error = text(&named).unwrap_err().to_string();
        assert!(error.contains("it is no text"), "{error}");
        std::fs::remove_file(&file).unwrap();
        let error = text(&named).unwrap_err().to_string();
        assert!(error.starts_with("cannot read the rules in /"), "{error}");
        assert_eq!(with_digest(&Ruleset::None).unwrap(), Ruleset::None);
    }
}
