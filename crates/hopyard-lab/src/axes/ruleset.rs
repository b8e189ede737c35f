//! Loads the user's own packet filter rules into the hub.
//!
//! What they are is seen by the first line: rules as `iptables-save` prints them begin with a table (`*filter`), anything
//! else is for `nft -f`.

use hopyard_net::{
    IptablesFamily, NetNs, apply_ruleset, check_ruleset, nft_chains, restore_iptables,
};
use sha2::{Digest, Sha256};

use super::OnLab;
use crate::bounded;
use crate::model::{Axes, RulesSample, Ruleset, short_digest};
use crate::need::Need;
use crate::own_chains::OwnChains;
use crate::{Builder, Error, Result, role};

pub(super) struct Rules;

/// Larger files are no rules. kube-proxy's, of 30,000 services, have some 10 MB.
const MOST_BYTES: u64 = 64 << 20;

impl OnLab for Rules {
    fn needs(&self, axes: &Axes) -> &'static [Need] {
        match axes.ruleset.as_ref().and_then(Ruleset::name) {
            Some(_) => &[Need::FILTER],
            None => &[],
        }
    }

    fn check(&self, axes: &Axes) -> Result<()> {
        match &axes.ruleset {
            Some(rules @ Ruleset::File { name, .. }) => check_syntax(name, &text(rules)?),
            Some(Ruleset::Sample(_) | Ruleset::None) | None => Ok(()),
        }
    }

    /// Behind the path's own rules: chains of one hook take their turns by priority, whoever was there first.
    fn apply(&self, lab: &mut Builder) -> Result<()> {
        let rules = lab.axes().ruleset.clone().unwrap_or(Ruleset::None);
        let Some(name) = rules.name() else {
            return Ok(());
        };
        let text = text(&rules)?;
        // Without a hub no host is between the endpoints.
        let Some(hub) = lab.handle(role::HUB) else {
            lab.push(OwnChains(Vec::new()));
            return Ok(());
        };
        let hub = hub.ns();
        let of_path = nft_chains(hub)?;
        load(hub, &text).map_err(|source| Error::Rules {
            file: name.to_owned(),
            source,
        })?;
        let mut chains = nft_chains(hub)?;
        chains.retain(|chain| !of_path.contains(chain));
        // A sample may be a chain without a rule, to see what that costs.
        let is_users_own = matches!(rules, Ruleset::File { .. });
        if chains.is_empty() && is_users_own {
            return Err(Error::RulesFile {
                file: name.to_owned(),
                why: "none of its rules hangs on a hook that nf_tables knows of: give it a base chain with rules, and \
                      rules of iptables-legacy in the form of nftables (iptables-restore-translate)"
                    .to_owned(),
            });
        }
        lab.push(OwnChains(chains));
        Ok(())
    }
}

/// The same rules with the digest of what is in their file now.
///
/// # Errors
/// The file cannot be read, or has changed since its digest was taken.
pub fn with_digest(rules: &Ruleset) -> Result<Ruleset> {
    match rules {
        Ruleset::None | Ruleset::Sample(_) => Ok(rules.clone()),
        Ruleset::File { name, .. } => Ok(Ruleset::File {
            name: name.clone(),
            digest: Some(digest(&whole(rules)?)),
        }),
    }
}

/// The rules as they are loaded.
fn text(rules: &Ruleset) -> Result<String> {
    if let Ruleset::Sample(which) = rules {
        return Ok(sample(*which));
    }
    let text = whole(rules)?;
    match (Kind::of(&text), rules) {
        (Kind::Nft, Ruleset::File { name, .. }) => {
            without_flush(&text).map_err(|why| Error::RulesFile {
                file: name.clone(),
                why,
            })
        }
        _ => Ok(text),
    }
}

/// No frame has the address of the rule, which is of the block for documentation (RFC 7042, 2.1.2).
fn sample(which: RulesSample) -> String {
    let rule = match which {
        RulesSample::Bridge => "",
        RulesSample::BridgeRule => "ether daddr 00:00:5e:00:53:01 drop;",
    };
    format!(
        "table bridge sample {{ chain forward {{ type filter hook forward priority filter; policy accept; {rule} }}; }}\n"
    )
}

/// The file, which has not changed since its digest was taken.
fn whole(rules: &Ruleset) -> Result<String> {
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
    let bytes = bounded::read_named(name, MOST_BYTES).map_err(unread)?;
    let bytes = bytes.ok_or_else(|| wrong("it is larger than 64 MiB"))?;
    let text = String::from_utf8(bytes).map_err(|_| wrong("it is no text"))?;
    if known.as_ref().is_some_and(|known| *known != digest(&text)) {
        return Err(wrong(
            "it has changed since the run began: start another run, or put back what it was",
        ));
    }
    Ok(text)
}

fn digest(text: &str) -> String {
    short_digest(&Sha256::digest(text))
}

/// A file as whoever loads it takes it.
enum Kind {
    /// For `nft -f`.
    Nft,
    /// As `iptables-save` or `ip6tables-save` prints it.
    Iptables(IptablesFamily),
}

impl Kind {
    fn of(text: &str) -> Self {
        let mut lines = text.lines().map(str::trim);
        let first = lines.find(|line| !line.is_empty() && !line.starts_with('#'));
        if !first.is_some_and(|line| line.starts_with('*')) {
            return Self::Nft;
        }
        Self::Iptables(if text.contains("# Generated by ip6tables-save") {
            IptablesFamily::V6
        } else {
            IptablesFamily::V4
        })
    }
}

fn load(hub: &NetNs, text: &str) -> hopyard_net::Result<()> {
    match Kind::of(text) {
        Kind::Nft => apply_ruleset(hub, text),
        Kind::Iptables(family) => restore_iptables(hub, family, text, true),
    }
}

/// Without `flush ruleset`, with which most files begin: it would take the path's own rules with it, and a new hub has no
/// others. Lines keep their numbers, by which nft tells of mistakes.
///
/// # Errors
/// It stands on a line with something else, or the file includes others, which its digest does not know.
fn without_flush(text: &str) -> std::result::Result<String, String> {
    let line = |(at, line): (usize, &str)| {
        let code = line.split('#').next().unwrap_or_default();
        let mut words = code.split([' ', '\t', ';']).filter(|word| !word.is_empty());
        let words: Vec<&str> = words.by_ref().collect();
        match words[..] {
            ["include", ..] => Err(format!(
                "line {} includes another file, and a run records what is in this one alone: put both into one file",
                at + 1
            )),
            ["flush", "ruleset"] | ["flush", "ruleset", _] => Ok("\n".to_owned()),
            _ if words.windows(2).any(|two| two == ["flush", "ruleset"]) => Err(format!(
                "line {} has `flush ruleset` beside something else, and would remove the path's own rules: give it a line \
                 of its own, which is left out",
                at + 1
            )),
            _ => Ok(format!("{line}\n")),
        }
    };
    text.lines().enumerate().map(line).collect()
}

/// Refuses rules that are wrong in every lab. Missing devices, and what the kernel refuses, depend on the lab.
fn check_syntax(name: &str, text: &str) -> Result<()> {
    if !matches!(Kind::of(text), Kind::Nft) {
        return Ok(());
    }
    match check_ruleset(&NetNs::create()?, text) {
        Err(hopyard_net::Error::Program { output, .. }) if !is_about_the_lab(&output) => {
            Err(Error::RulesFile {
                file: name.to_owned(),
                why: format!("nft says: {output}"),
            })
        }
        _ => Ok(()),
    }
}

/// Do all errors of nft depend on the lab?
fn is_about_the_lab(output: &str) -> bool {
    let mut errors = output
        .lines()
        .filter_map(|line| line.split_once("Error: "))
        .map(|(_, error)| error)
        .peekable();
    let of_lab = ["Could not process rule", "Interface does not exist"];
    errors.peek().is_some() && errors.all(|error| of_lab.iter().any(|one| error.starts_with(one)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn missing_devices_depend_on_the_lab_and_syntax_errors_do_not() {
        let absent =
            "/dev/stdin:1:20-22: Error: Interface does not exist\niif \"up0\" accept\n    ^^^^^";
        let refused = "/dev/stdin:1:1-9: Error: Could not process rule: No such file or directory";
        let wrong = "/dev/stdin:2:1-5: Error: syntax error, unexpected string";
        assert!(is_about_the_lab(absent) && is_about_the_lab(refused));
        assert!(is_about_the_lab(&format!("{absent}\n{refused}")));
        assert!(!is_about_the_lab(wrong) && !is_about_the_lab(&format!("{absent}\n{wrong}")));
        assert!(!is_about_the_lab("") && !is_about_the_lab("killed"));
    }

    #[test]
    fn a_flush_of_all_rules_is_left_out_and_nothing_else() {
        let text = "#!/usr/sbin/nft -f\nflush ruleset\n  flush  ruleset;\nflush ruleset inet # all\ntable inet t {\n}\nflush table inet t\n# flush ruleset, include\n";
        let expected = "#!/usr/sbin/nft -f\n\n\n\ntable inet t {\n}\nflush table inet t\n# flush ruleset, include\n";
        assert_eq!(without_flush(text).unwrap(), expected);
        for (text, why) in [
            (
                "flush ruleset; table inet t {\n}\n",
                "line 1 has `flush ruleset` beside",
            ),
            (
                "table inet t {\n}\n  include \"/etc/nftables.d/*.nft\"\n",
                "line 3 includes another",
            ),
        ] {
            let error = without_flush(text).unwrap_err();
            assert!(error.starts_with(why), "{error}");
        }
    }

    #[test]
    fn the_file_alone_says_whose_rules_they_are() {
        let of = |text: &str| match Kind::of(text) {
            Kind::Nft => None,
            Kind::Iptables(family) => Some(family),
        };
        assert_eq!(of("#!/usr/sbin/nft -f\n\ntable ip t {\n}\n"), None);
        assert_eq!(
            of("# a comment\n*filter\nCOMMIT\n"),
            Some(IptablesFamily::V4)
        );
        let of_6 = "# Generated by ip6tables-save v1.8.9\n*filter\nCOMMIT\n";
        assert_eq!(of(of_6), Some(IptablesFamily::V6));
        assert_eq!(of(""), None);
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
