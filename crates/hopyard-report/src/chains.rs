//! Which chains of the user's packet filter rules see which traffic.

use super::document::{Block, headed};
use super::group::with_peer;
use crate::model::{FilterChain, Ruleset, RunReport, Sees, distinct};
use crate::plain;

/// A heading, and a sentence for each chain, for each file with rules.
pub(super) fn blocks(report: &RunReport) -> Vec<Block> {
    let files = report
        .cells
        .iter()
        .filter_map(|cell| cell.axes.ruleset.as_ref());
    let files = distinct(files.filter(|rules| **rules != Ruleset::None));
    files
        .into_iter()
        .flat_map(|rules| of_file(report, rules))
        .collect()
}

fn of_file(report: &RunReport, rules: &Ruleset) -> Vec<Block> {
    let cells = report
        .cells
        .iter()
        .filter(|cell| cell.axes.ruleset.as_ref() == Some(rules));
    let told: Vec<(String, &[FilterChain])> = cells
        .filter_map(|cell| Some((with_peer(&cell.path, cell.peer), cell.chains.as_deref()?)))
        .collect();
    let chains = distinct(
        told.iter()
            .flat_map(|(_, chains)| *chains)
            .map(ToString::to_string),
    );
    let mut sentences: Vec<String> = chains.iter().map(|chain| of_chain(chain, &told)).collect();
    let without = distinct(
        told.iter()
            .filter(|(_, chains)| chains.is_empty())
            .map(|(name, _)| name.as_str()),
    );
    if !without.is_empty() {
        sentences.push(format!(
            "not tried with {}: there is no hub in these labs",
            without.join(", ")
        ));
    }
    let file = plain::line(&rules.to_string());
    headed(format!("What the rules of {file} see"), sentences)
}

/// Whose traffic reached a chain, and whose did not.
fn of_chain(chain: &str, told: &[(String, &[FilterChain])]) -> String {
    let with = |wanted: Sees| {
        let paths = told.iter().filter(|(_, chains)| {
            let own = chains.iter().find(|own| own.to_string() == chain);
            own.is_some_and(|own| own.sees == wanted)
        });
        distinct(paths.map(|(name, _)| name.as_str())).join(", ")
    };
    let said = [
        ("the traffic of", Sees::Traffic),
        ("a few packets of", Sees::FewPackets),
        ("nothing of", Sees::Nothing),
        ("perhaps (there was too little traffic)", Sees::Unknown),
    ]
    .map(|(what, sees)| (what, with(sees)));
    let said = said.iter().filter(|(_, paths)| !paths.is_empty());
    let said: Vec<String> = said
        .map(|(what, paths)| format!("{what} {paths}"))
        .collect();
    format!("{} sees {}", plain::line(chain), said.join("; "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;
    use crate::model::{LoadKind, Peer};

    #[test]
    fn each_chain_has_its_sentence() {
        let chain = |name: &str, sees| FilterChain {
            family: "inet".to_owned(),
            table: "filter".to_owned(),
            name: name.to_owned(),
            hook: name.to_owned(),
            drops: false,
            packets: 1,
            sees,
        };
        let (all, few, none) = (Sees::Traffic, Sees::FewPackets, Sees::Nothing);
        let with = |path: &str, chains: Option<Vec<FilterChain>>, rules: &str| {
            let mut cell = fixture::cell(path, Peer::Local, LoadKind::TcpRr).build();
            cell.chains = chains;
            cell.axes.ruleset = Some(rules.parse().unwrap());
            cell
        };
        let mut report = fixture::run();
        report.cells = vec![
            with("veth", Some(Vec::new()), "fw.nft"),
            with(
                "veth-route",
                Some(vec![chain("input", few), chain("forward", all)]),
                "fw.nft",
            ),
            with(
                "bridge",
                Some(vec![chain("input", none), chain("forward", none)]),
                "fw.nft",
            ),
            with(
                "bridge-nf",
                Some(vec![chain("input", none), chain("forward", all)]),
                "fw.nft",
            ),
            with("bridge", None, "none"),
            with("bridge", Some(vec![chain("input", all)]), "other.nft"),
            // The file cannot be loaded on that path; its cause says so.
            with("direct", None, "fw.nft"),
        ];
        let text: Vec<_> = blocks(&report)
            .into_iter()
            .map(|block| match block {
                Block::Heading(text) => text,
                Block::List(list) => list.join("\n"),
                other => panic!("{other:?}"),
            })
            .collect();
        insta::assert_snapshot!(text.join("\n"), @r"
        What the rules of fw.nft see
        inet filter input (hook input) sees a few packets of veth-route (local); nothing of bridge (local), bridge-nf (local)
        inet filter forward (hook forward) sees the traffic of veth-route (local), bridge-nf (local); nothing of bridge (local)
        not tried with veth (local): there is no hub in these labs
        What the rules of other.nft see
        inet filter input (hook input) sees the traffic of bridge (local)
        ");
    }
}
