//! The sentence that answers the question of a run: with which network a container gets its network soonest.

use hopyard_model::FOR_A_VERDICT;
use hopyard_model::units::float;
use hopyard_stats::{Verdict, mean};

use crate::document::{Document, Versus};

/// When a container can use its network.
const ANSWER: &str = "answer_p50_ns";
const DEL: &str = "del_p50_ns";

/// How one network compares with the base, with every number of ports and of ADDs side by side.
struct Compared<'a> {
    network: &'a str,
    all: Vec<&'a Versus>,
}

impl<'a> Compared<'a> {
    fn of(document: &'a Document, network: &'a str, quantity: &str) -> Self {
        let cells = document.cells.iter().filter(|c| c.network == network);
        let figures = cells.filter_map(|cell| cell.figures.get(quantity));
        Self {
            network,
            all: figures.filter_map(|f| f.versus.as_ref()).collect(),
        }
    }

    fn are(&self, is: impl Fn(&Versus) -> bool) -> bool {
        !self.all.is_empty() && self.all.iter().all(|versus| is(versus))
    }

    fn is_quicker(&self) -> bool {
        self.are(|versus| versus.verdict == Some(Verdict::Different) && versus.ratio.value < 1.0)
    }

    fn mean_log(&self) -> f64 {
        let logs: Vec<f64> = self.all.iter().map(|v| v.ratio.value.ln()).collect();
        mean(&logs).unwrap_or(f64::INFINITY)
    }

    /// `0.29 to 0.38`
    fn range(&self) -> String {
        let ratios = || self.all.iter().map(|versus| versus.ratio.value);
        let [low, high] = [
            ratios().fold(f64::INFINITY, f64::min),
            ratios().fold(0.0, f64::max),
        ]
        .map(|ratio| format!("{ratio:.2}"));
        if low == high {
            low
        } else {
            format!("{low} to {high}")
        }
    }
}

/// The network that is shown to be quicker than the base with every number, or why none is.
pub(crate) fn answer(document: &Document) -> String {
    let plan = &document.run.plan;
    let others = || {
        let names = plan.networks.iter().map(|network| network.name.as_str());
        names.filter(|name| *name != plan.base)
    };
    let compared: Vec<Compared<'_>> = others()
        .map(|network| Compared::of(document, network, ANSWER))
        .collect();
    let quicker = compared.iter().filter(|one| one.is_quicker());
    if let Some(best) = quicker.min_by(|a, b| a.mean_log().total_cmp(&b.mean_log())) {
        let mut text = format!(
            "With {}, the first packet of a container is answered after {} of the time that it takes with {}",
            best.network,
            best.range(),
            plan.base
        );
        let del = Compared::of(document, best.network, DEL);
        if del.is_quicker() {
            text += &format!("; DEL takes {} of the time", del.range());
        }
        return text + ".";
    }
    let all: Vec<&Versus> = compared.iter().flat_map(|one| &one.all).copied().collect();
    if others().next().is_none() {
        return format!("There is no other network to compare {} with.", plan.base);
    }
    if all.iter().all(|versus| versus.verdict.is_none()) {
        return format!("Nothing is decided yet: a verdict needs at least {FOR_A_VERDICT} blocks.");
    }
    let open: Vec<&&Versus> = all
        .iter()
        .filter(|versus| versus.verdict == Some(Verdict::Inconclusive))
        .collect();
    let unseen = open.iter().filter_map(|versus| versus.smallest_detectable);
    let unseen = unseen.fold(0.0, f64::max);
    let mut text = format!(
        "No network is shown to be quicker than {} with every number of containers",
        plan.base
    );
    if unseen > 0.0 {
        text += &format!(
            ": in {:.0} % of the comparisons a difference of up to {:.0} % could not be seen",
            float(open.len() as u64) / float(all.len() as u64) * 100.0,
            unseen * 100.0
        );
    }
    text + "."
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::assess::assess;
    use crate::assess::tests::{drifting, run};

    #[test]
    fn the_quickest_is_named_with_its_shares() {
        let said = answer(&assess(run(8, drifting)));
        // 10 ms and more for each ADD of `one`, half of that for `two`, and 1 ms until the answer.
        assert!(
            said.starts_with("With two, the first packet of a container is answered after 0.5"),
            "{said}"
        );
        assert!(
            said.contains("that it takes with one; DEL takes 0.50 of the time."),
            "{said}"
        );
    }

    #[test]
    fn without_a_quicker_one_it_says_why() {
        let slower = |network: &str, block, round| {
            let time = drifting("one", block, round);
            if network == "one" { time } else { time * 2 }
        };
        let said = answer(&assess(run(8, slower)));
        assert_eq!(
            said,
            "No network is shown to be quicker than one with every number of containers."
        );
        let said = answer(&assess(run(2, drifting)));
        assert_eq!(
            said,
            "Nothing is decided yet: a verdict needs at least 8 blocks."
        );
        // By half or by twice as much, from block to block.
        let wild = |network: &str, block: u32, round| {
            let time = drifting("one", block, round);
            match (network, block % 2) {
                ("one", _) => time,
                (_, 0) => time * 2,
                _ => time / 2,
            }
        };
        let said = answer(&assess(run(8, wild)));
        assert!(
            said.contains("in 100 % of the comparisons a difference of up to "),
            "{said}"
        );
        let mut alone = run(8, drifting);
        alone.plan.networks.truncate(1);
        assert_eq!(
            answer(&assess(alone)),
            "There is no other network to compare one with."
        );
    }
}
