//! From samples to ratios, and from ratios to the targets.

use std::collections::BTreeSet;

use hopyard::stats::{self, Comparison, Estimate, Judged, Samples};
use serde::Serialize;

use crate::run::Taken;
use crate::sample::Figures;
use crate::scenario::Scenario;
use crate::tools::Tool;

/// Confidence of every interval.
pub(crate) const CONFIDENCE: f64 = 0.95;
/// Ratios within this of 1 count as equal.
const MARGIN: f64 = 0.02;
/// With fewer blocks there is no verdict.
pub(crate) const LEAST_BLOCKS: usize = 8;

/// A tool in a scenario.
#[derive(Debug, Serialize)]
pub(crate) struct Line {
    pub(crate) tool: Tool,
    /// Units per second.
    pub(crate) rate: Option<Estimate>,
    /// Units per second sent.
    pub(crate) sent: Option<f64>,
    /// ns of CPU per unit.
    pub(crate) cost_ns: Option<f64>,
    /// hopyard over this tool; none for hopyard itself.
    pub(crate) against: Option<Against>,
    pub(crate) blocks: usize,
    pub(crate) failed: usize,
    /// Remarks on single samples, with the number of samples concerned.
    pub(crate) flags: Vec<String>,
}

/// hopyard compared with another tool, paired within blocks.
#[derive(Debug, Serialize)]
pub(crate) struct Against {
    pub(crate) rate: Judged,
    pub(crate) cost: Judged,
}

/// Whether the target is met.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Target {
    Met { best: Tool, why: String },
    Missed { best: Tool, why: String },
    NotJudged { why: String },
}

/// A scenario's table.
#[derive(Debug, Serialize)]
pub(crate) struct Table {
    #[serde(skip)]
    pub(crate) scenario: &'static Scenario,
    pub(crate) name: &'static str,
    pub(crate) lines: Vec<Line>,
    pub(crate) target: Target,
}

/// Makes the tables. Differences are corrected over all of them together.
pub(crate) fn tables(scenarios: &[&'static Scenario], taken: &[Taken]) -> Vec<Table> {
    let mut all: Vec<Comparison> = Vec::new();
    let mut raw = Vec::new();
    for &scenario in scenarios {
        for &tool in scenario.tools {
            let pair = (tool != Tool::Hopyard)
                .then(|| compared(taken, scenario, tool))
                .flatten()
                .map(|(rate, cost)| {
                    all.extend([rate, cost]);
                    all.len() - 2
                });
            raw.push((scenario, tool, pair));
        }
    }
    let judged = stats::judge(&all, MARGIN, CONFIDENCE);
    scenarios
        .iter()
        .map(|&scenario| {
            let lines: Vec<Line> = raw
                .iter()
                .filter(|(of, ..)| of.name == scenario.name)
                .map(|&(_, tool, pair)| {
                    let against = pair.and_then(|first| {
                        Some(Against {
                            rate: judged.get(first)?.clone(),
                            cost: judged.get(first + 1)?.clone(),
                        })
                    });
                    line(taken, scenario, tool, against)
                })
                .collect();
            Table {
                scenario,
                name: scenario.name,
                target: target(&lines),
                lines,
            }
        })
        .collect()
}

fn of<'a>(
    taken: &'a [Taken],
    scenario: &'a Scenario,
    tool: Tool,
) -> impl Iterator<Item = &'a Taken> {
    taken
        .iter()
        .filter(move |t| t.scenario == scenario.name && t.tool == tool)
}

/// (rate, cost) of hopyard over another tool, over the blocks in which both were measured.
fn compared(taken: &[Taken], scenario: &Scenario, tool: Tool) -> Option<(Comparison, Comparison)> {
    let pairs: Vec<(&Figures, &Figures)> = of(taken, scenario, Tool::Hopyard)
        .filter_map(|own| {
            let other = of(taken, scenario, tool).find(|t| t.block == own.block)?;
            Some((own.figures()?, other.figures()?))
        })
        .collect();
    let compare = |figure: fn(&Figures) -> f64| {
        let (own, other): (Vec<f64>, Vec<f64>) =
            pairs.iter().map(|(a, b)| (figure(a), figure(b))).unzip();
        stats::compare(&own, &other, CONFIDENCE)
    };
    Some((compare(|f| f.rate)?, compare(|f| f.cost_ns)?))
}

fn line(taken: &[Taken], scenario: &Scenario, tool: Tool, against: Option<Against>) -> Line {
    let figures: Vec<&Figures> = of(taken, scenario, tool)
        .filter_map(Taken::figures)
        .collect();
    let each = |figure: fn(&Figures) -> f64| figures.iter().map(|f| figure(f)).collect::<Vec<_>>();
    let mean = |figure: fn(&Figures) -> f64| stats::mean(&each(figure));
    let kinds: BTreeSet<String> = figures.iter().flat_map(|f| f.flags.clone()).collect();
    let flagged = figures.iter().filter(|f| !f.flags.is_empty()).count();
    let mut flags = Vec::new();
    if let Some(example) = kinds.first() {
        flags.push(format!(
            "{flagged} of {} samples flagged: {example}{}",
            figures.len(),
            if kinds.len() > 1 { ", …" } else { "" }
        ));
    }
    Line {
        tool,
        rate: Samples::new(&each(|f| f.rate))
            .ok()
            .and_then(|x| stats::mean_interval(&x, CONFIDENCE)),
        sent: mean(|f| f.sent),
        // Ratio of sums: CPU time of all samples over work of all samples.
        cost_ns: mean(|f| f.cores)
            .zip(mean(|f| f.rate))
            .map(|(cores, rate)| cores / rate * 1e9),
        against,
        blocks: figures.len(),
        failed: of(taken, scenario, tool).count() - figures.len(),
        flags,
    }
}

/// The target: not below the best other tool, at no more CPU per unit. It is not met where another tool was measured too
/// seldom, because that one may be the best.
fn target(lines: &[Line]) -> Target {
    let best = lines
        .iter()
        .filter_map(|l| Some((l, l.against.as_ref()?, l.rate.as_ref()?)))
        .max_by(|a, b| a.2.value.total_cmp(&b.2.value));
    let Some((line, against, _)) = best else {
        return Target::NotJudged {
            why: "no peer could be compared".to_owned(),
        };
    };
    let (rate, cost) = (&against.rate.ratio, &against.cost.ratio);
    if rate.n < LEAST_BLOCKS {
        return Target::NotJudged {
            why: format!(
                "a quick look: {} blocks, {LEAST_BLOCKS} make a verdict",
                rate.n
            ),
        };
    }
    let best = line.tool;
    let mut short = Vec::new();
    if rate.high < 1.0 {
        short.push(format!("rate {:.3} to {:.3}", rate.low, rate.high));
    }
    if cost.low > 1.0 {
        short.push(format!("CPU {:.3} to {:.3}", cost.low, cost.high));
    }
    if !short.is_empty() {
        let why = format!("{} of {best}'s, the best peer", short.join(", "));
        return Target::Missed { best, why };
    }
    if let Some(why) = unknown_peer(lines) {
        return Target::NotJudged { why };
    }
    Target::Met {
        best,
        why: format!(
            "rate {:.3} to {:.3}, CPU {:.3} to {:.3} of {best}'s, the best peer",
            rate.low, rate.high, cost.low, cost.high
        ),
    }
}

/// The first other tool that too few blocks compare with hopyard, in words.
fn unknown_peer(lines: &[Line]) -> Option<String> {
    let blocks = |line: &Line| line.against.as_ref().map_or(0, |a| a.rate.ratio.n);
    let mut others = lines.iter().filter(|line| line.tool != Tool::Hopyard);
    let unknown = others.find(|line| blocks(line) < LEAST_BLOCKS)?;
    Some(format!(
        "{} was compared in {} blocks, {LEAST_BLOCKS} make a verdict: it may be the best peer",
        unknown.tool,
        blocks(unknown)
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::Outcome;
    use crate::scenario::SCENARIOS;

    fn scenario(name: &str) -> &'static Scenario {
        SCENARIOS.iter().find(|s| s.name == name).unwrap()
    }

    /// A tool's samples: hopyard's wobble between blocks.
    fn samples(scenario: &'static str, tool: Tool, blocks: u32, figures: (f64, f64)) -> Vec<Taken> {
        let (rate, cost_ns) = figures;
        let one = |block| {
            let is_own = tool == Tool::Hopyard;
            let wobble = 1.0 + f64::from(u8::from(is_own)) * 0.01 * f64::from(block % 3);
            Taken {
                block,
                order: 0,
                scenario,
                tool,
                outcome: Outcome::Measured(Figures {
                    rate: rate * wobble,
                    sent: rate,
                    cost_ns: cost_ns * wobble,
                    cores: rate * cost_ns / 1e9,
                    own_count: 1.0,
                    disturbed: false,
                    flags: Vec::new(),
                }),
            }
        };
        (0..blocks).map(one).collect()
    }

    fn taken(blocks: u32, own: (f64, f64), other: (f64, f64)) -> Vec<Taken> {
        let of = |tool, figures| samples("tcp_rr", tool, blocks, figures);
        let both = [of(Tool::Hopyard, own), of(Tool::Sockperf, other)];
        both.into_iter().flatten().collect()
    }

    fn target_of(taken: &[Taken]) -> Target {
        tables(&[scenario("tcp_rr")], taken).remove(0).target
    }

    #[test]
    fn as_good_as_the_best_is_met() {
        let target = target_of(&taken(10, (1e4, 5e4), (1e4, 5.05e4)));
        assert!(
            matches!(
                target,
                Target::Met {
                    best: Tool::Sockperf,
                    ..
                }
            ),
            "{target:?}"
        );
    }

    #[test]
    fn slower_or_dearer_is_missed() {
        for (own, other) in [((0.9e4, 5e4), (1e4, 5e4)), ((1e4, 6e4), (1e4, 5e4))] {
            let target = target_of(&taken(10, own, other));
            assert!(matches!(target, Target::Missed { .. }), "{target:?}");
        }
    }

    /// hopyard beside iperf2 and nuttcp, and iperf3 in fewer blocks.
    fn beside_iperf3(blocks: u32, own: f64) -> Target {
        let name = "tcp_stream_16k";
        let of = |tool, blocks, rate| samples(name, tool, blocks, (rate, 5.05e4));
        let all = [
            samples(name, Tool::Hopyard, 10, (own, 5e4)),
            of(Tool::Iperf2, 10, 1e4),
            of(Tool::Nuttcp, 10, 0.9e4),
            of(Tool::Iperf3, blocks, 0.8e4),
        ];
        let all: Vec<Taken> = all.into_iter().flatten().collect();
        tables(&[scenario(name)], &all).remove(0).target
    }

    #[test]
    fn nothing_is_met_where_the_best_peer_may_be_one_that_was_not_measured() {
        assert!(matches!(beside_iperf3(10, 1e4), Target::Met { .. }));
        for blocks in [0, 1, 7] {
            let Target::NotJudged { why } = beside_iperf3(blocks, 1e4) else {
                panic!("{blocks} blocks of iperf3 are no comparison");
            };
            assert!(why.starts_with("iperf3 was compared in"), "{why}");
        }
        // Slower than one of them is slower than the best.
        assert!(matches!(beside_iperf3(0, 0.8e4), Target::Missed { .. }));
    }

    #[test]
    fn few_blocks_are_not_judged() {
        assert!(matches!(
            target_of(&taken(3, (1e4, 5e4), (1e4, 5e4))),
            Target::NotJudged { .. }
        ));
        assert!(matches!(target_of(&[]), Target::NotJudged { .. }));
    }
}
