//! Evidence made for a rule: all cells of the report's own plans, each with a value of its own of what the rule asks for. Each point
//! of a part lies within its bounds, wholly outside them, or across one, at a figure of its own; of what a mean is taken, no
//! member lies there.

use std::collections::BTreeMap;

use super::oracle::{Part, Planned, Point};
use super::sample::{profile, sample};
use super::*;
use crate::model::Cell;
use crate::rule::{Over, Shape};
use crate::what::What;

/// How a part of a rule is to lie.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Aim {
    Inside,
    Outside,
    Across,
}

pub(super) const BLOCKS: u32 = 10;
/// As many as the largest machine that a rule is about.
pub(super) const CPUS: u32 = 8;

/// How a value differs between blocks.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Noise {
    /// By a thousandth, up and down.
    Little,
    /// By a twentieth, all cells together.
    Wide,
    /// By up to a twentieth, each cell by itself.
    Rough,
    /// 0 but for one block, which the hypervisor disturbed.
    Once,
}

/// What a cell shows of a quantity.
#[derive(Debug, Clone, Copy)]
struct Shown {
    mean: f64,
    noise: Noise,
}

impl Shown {
    fn in_block(self, block: u32, cell: usize) -> f64 {
        let side = |odd: bool| if odd { -1.0 } else { 1.0 };
        let together = side(block % 2 == 1);
        // Neighbouring cells go different ways, so that ratios have a spread too.
        let apart = side((block as usize + cell) % 2 == 1);
        match self.noise {
            Noise::Little => self.mean * (1.0 + 0.001 * apart),
            Noise::Wide => self.mean * (1.0 + 0.05 * together),
            Noise::Rough => {
                let salt = (block as usize * 7 + cell * 3) % 11;
                self.mean * (1.0 + 0.01 * (salt as f64 - 5.0))
            }
            Noise::Once => f64::from(u8::from(block == 0)) * 0.01,
        }
    }
}

/// A part of a rule, and how its points are to lie.
#[derive(Clone, Copy)]
pub(super) struct Aimed<'a> {
    pub(super) part: &'a Part<'a>,
    pub(super) aim: Aim,
    /// The first of the points that lie like that; all others are inside.
    pub(super) from: usize,
}

impl Aimed<'_> {
    /// How one of `all` points is to lie. Where most decide, half of them are aimed, and all where one does.
    fn at(&self, place: usize, all: usize) -> Aim {
        let many = match self.part.check.over {
            Over::Every => 1,
            Over::Most => all.div_ceil(2),
        };
        if (place + all - self.from % all) % all < many {
            self.aim
        } else {
            Aim::Inside
        }
    }
}

/// Cells of a plan with what they show, by quantity.
struct Made {
    planned: &'static Planned,
    shown: Vec<BTreeMap<String, Shown>>,
    /// What rules ask for: cells that no rule is about show it too.
    asked: Vec<What>,
}

/// Everything that a claim is judged by.
#[derive(Default)]
pub(super) struct World {
    plans: BTreeMap<String, Made>,
    evidence: Evidence,
}

impl World {
    /// Has a part of a rule lie like that. Later parts build on what earlier ones made of their cells.
    pub(super) fn aim(&mut self, aimed: Aimed<'_>) {
        let check = aimed.part.check;
        match (&check.judge, aimed.part.planned) {
            (Judge::Does { does }, _) => {
                let deed = bench::FunctionalCheck {
                    passed: aimed.aim == Aim::Inside,
                    seen: "seen".to_owned(),
                };
                self.evidence.done.insert(does.clone(), Ok(deed));
            }
            (Judge::Bench { bench }, _) => {
                let series = |shown: Shown, place| -> Vec<f64> {
                    let in_block = |block| shown.in_block(block, place);
                    (0..BLOCKS).map(in_block).collect()
                };
                let is_level = bench.starts_with("copies");
                let timed = bench::Timed {
                    what: bench.clone(),
                    values: series(target(check, aimed.aim, (0, 1)), 0),
                    base: (!is_level).then(|| series(little(1.0), 1)),
                };
                self.evidence.benched.insert(bench.clone(), Ok(timed));
            }
            (_, Some(planned)) => {
                let made = self.plans.entry(planned.plan.name.clone());
                let made = made.or_insert_with(|| Made {
                    planned,
                    shown: vec![BTreeMap::new(); planned.cells.len()],
                    asked: Vec::new(),
                });
                made.aim(aimed);
            }
            (_, None) => {}
        }
    }

    /// The figure of each point of a part that is about cells, where it is known beforehand.
    pub(super) fn figures(&self, part: &Part<'_>) -> Vec<Option<f64>> {
        let made = part.planned.and_then(|p| self.plans.get(&p.plan.name));
        let of = |made: &Made| {
            part.points
                .iter()
                .map(|p| made.figure(part.check, p))
                .collect()
        };
        made.map_or_else(Vec::new, of)
    }

    pub(super) fn evidence(mut self) -> Evidence {
        self.evidence.runs = self.plans.into_values().map(Made::run).collect();
        self.evidence
    }
}

fn little(mean: f64) -> Shown {
    Shown {
        mean,
        noise: Noise::Little,
    }
}

/// The figure that lies like that: another one for each of so many points.
fn target(check: &Check, aim: Aim, (place, all): (usize, usize)) -> Shown {
    let bound = check.at_least.or(check.at_most).unwrap();
    // Above 0 and below 1.
    let part = (place as f64 + 1.0) / (all as f64 + 1.0);
    if let (true, Some(low), Some(high)) = (check.beyond, check.at_least, check.at_most) {
        return match aim {
            Aim::Inside if place % 2 == 0 => little(low * (0.7 + 0.04 * part)),
            Aim::Inside => little(high * (1.1 + 0.04 * part)),
            Aim::Outside => little(low + (high - low) * (0.3 + 0.4 * part)),
            Aim::Across => Shown {
                mean: bound,
                noise: Noise::Wide,
            },
        };
    }
    let mean = match (aim, check.at_least, check.at_most) {
        (Aim::Inside, Some(low), Some(high)) => low + (high - low) * (0.3 + 0.4 * part),
        (Aim::Inside, Some(low), None) => low * (1.02 + 0.04 * part),
        (Aim::Inside, ..) => bound * (0.98 - 0.04 * part),
        (Aim::Outside, Some(low), _) => low * (0.5 + 0.04 * part),
        (Aim::Outside, _, Some(0.0)) => 0.5,
        (Aim::Outside, ..) => bound * (1.5 + 0.04 * part),
        (Aim::Across, ..) => bound,
    };
    let noise = match aim {
        Aim::Across if bound == 0.0 => Noise::Once,
        Aim::Across => Noise::Wide,
        _ => Noise::Little,
    };
    Shown { mean, noise }
}

/// By how much a member of a mean is above or below it; all of them together are at 1.
fn skew(member: usize, place: usize, all: usize) -> f64 {
    if all == 1 {
        return 1.0;
    }
    let skewed = |at: usize| [6.0, 0.7, 0.3, 1.9_f64][at % 4];
    let logs: f64 = (0..all).map(|at| skewed(at).ln()).sum();
    // The greatest is not the first everywhere.
    skewed((member + place) % all) / (logs / all as f64).exp()
}

/// What a cell shows of a quantity that no rule binds: another value for each cell.
fn usual(name: &str, cell: usize) -> f64 {
    // Every number below 101 once, in no order.
    let part = ((cell * 37) % 101) as f64 / 101.0;
    let spread = if name.ends_with("_ratio") {
        0.9 + 0.2 * part
    } else {
        0.6 + part
    };
    spread
        * match name {
            "goodput_bps" => 1e9,
            "efficiency_bps_per_core" => 4e9,
            "normalized_bps_per_cpu_percent" => 2e8,
            "cpu_ns_per_byte" | "busy_cores" => 1.0,
            "cpu_ns_per_packet" => 50.0,
            "cpu_ns_per_transaction" | "client_cpu_ns_per_switch" => 5e3,
            "softirq_ratio" => 0.2,
            "settling_s" => 300.0,
            // Of more subsystems it is more.
            name if name.starts_with("cost of ") => {
                0.01 * 3.0_f64.powi(i32::try_from(name.split('+').count()).unwrap())
            }
            name if name.ends_with("share_ratio") => {
                0.02 * 3.0_f64.powi(i32::try_from(name.split('+').count()).unwrap())
            }
            name if name.ends_with("_ratio") => 0.4,
            "bytes_per_skb" => 3000.0,
            "run_length_p50_packets" => 5.0,
            _ => 1e5,
        }
}

impl Made {
    fn aim(&mut self, aimed: Aimed<'_>) {
        if let Some(premise) = aimed.part.premise() {
            self.aim(Aimed {
                part: &premise,
                aim: Aim::Inside,
                from: 0,
            });
        }
        let Part { check, points, .. } = aimed.part;
        let (what, _) = check.of_cells().unwrap();
        self.asked.push(what.clone());
        let all = points.len();
        for (place, point) in points.iter().enumerate() {
            let aim = aimed.at(place, all);
            let figure = target(check, aim, (place, all));
            match &check.judge {
                Judge::Peak { last, .. } => self.peak(what, point, figure, *last),
                Judge::Curve { shape, .. } => self.curve(what, point, (*shape, aim)),
                _ => {
                    for (at, member) in point.iter().enumerate() {
                        let mean = figure.mean * skew(at, place, point.len());
                        self.member(check, member, Shown { mean, ..figure });
                    }
                }
            }
        }
    }

    /// What cells show of a point in the end; `None` of the shape of a curve.
    fn figure(&self, check: &Check, point: &Point) -> Option<f64> {
        let (what, _) = check.of_cells()?;
        let mean_of = |what: &What, cell: usize| self.shown[cell][&self.name(what, cell)].mean;
        let mean = |cell: usize| mean_of(what, cell);
        let of_base = check.of_base().unwrap_or(what);
        let of_member = |member: &Vec<usize>| match (&check.judge, member.as_slice()) {
            (Judge::Ratio { .. }, &[own, other]) => mean(own) / mean_of(of_base, other),
            (Judge::Share { .. }, &[with, without, base]) => {
                (mean(with) - mean(without)) / (mean(with) - mean(base))
            }
            (Judge::Corrected { .. }, &[own, base, less, base_less]) => {
                (mean(own) - (mean(less) - mean(base_less))) / mean(base)
            }
            (_, member) => mean(member[0]),
        };
        match &check.judge {
            Judge::Curve { .. } => None,
            Judge::Peak { last, .. } => {
                let flows = |cell: usize| self.planned.cells[cell].axes.flows;
                let at = |n: u32| point.iter().map(|m| m[0]).find(|cell| flows(*cell) == n);
                Some(mean(at(*last)?) / mean(at(2)?))
            }
            _ => {
                let all: Vec<f64> = point.iter().map(of_member).collect();
                let product: f64 = all.iter().product();
                Some(if all.len() > 1 {
                    product.powf(1.0 / all.len() as f64)
                } else {
                    product
                })
            }
        }
    }

    fn name(&self, what: &What, cell: usize) -> String {
        what.name(self.planned.cells[cell].load)
    }

    /// What a cell shows, as far as no part said otherwise.
    fn known(&mut self, what: &What, cell: usize) -> f64 {
        let name = self.name(what, cell);
        let usual = little(usual(&name, cell));
        self.shown[cell].entry(name).or_insert(usual).mean
    }

    fn set(&mut self, what: &What, cell: usize, shown: Shown) {
        let name = self.name(what, cell);
        self.shown[cell].insert(name, shown);
    }

    /// A cell beside what it is compared with.
    fn member(&mut self, check: &Check, member: &[usize], figure: Shown) {
        let (what, _) = check.of_cells().unwrap();
        let mean = figure.mean;
        match (&check.judge, member) {
            (Judge::Ratio { to, .. }, &[own, other]) if to.len() == 1 => {
                let mean = mean * self.known(check.of_base().unwrap_or(what), other);
                self.set(what, own, Shown { mean, ..figure });
            }
            // Compared with several, it has to be the same for all of them.
            (Judge::Ratio { .. }, &[own, other]) => {
                let mean = self.known(what, own) / mean;
                self.set(what, other, Shown { mean, ..figure });
            }
            (Judge::Share { .. }, &[with, without, base]) => {
                let unit = self.known(what, base);
                let mean = (2.0 - mean) * unit;
                self.set(what, with, little(2.0 * unit));
                self.set(what, without, Shown { mean, ..figure });
            }
            // Where little else shows they differ by a tenth.
            (Judge::Corrected { .. }, &[own, base, less, base_less]) => {
                let without = self.known(what, base_less);
                let mean = mean * self.known(what, base) + 0.1 * without;
                self.set(what, less, little(1.1 * without));
                self.set(what, own, Shown { mean, ..figure });
            }
            (_, &[own, ..]) => self.set(what, own, figure),
            (_, []) => {}
        }
    }

    /// The best is at 2 flows.
    fn peak(&mut self, what: &What, point: &Point, figure: Shown, last: u32) {
        for cell in point.iter().map(|member| member[0]) {
            let shown = match self.planned.cells[cell].axes.flows {
                2 => little(1e9),
                n if n == last => Shown {
                    mean: 1e9 * figure.mean,
                    ..figure
                },
                n => little(1e9 * (0.9 - 0.01 * f64::from(n))),
            };
            self.set(what, cell, shown);
        }
    }

    fn curve(&mut self, what: &What, point: &Point, (shape, aim): (Shape, Aim)) {
        for member in point {
            for (at, cell) in member.iter().enumerate() {
                let shown = along(shape, aim, at > 0, &self.planned.cells[*cell]);
                self.set(what, *cell, shown);
            }
        }
    }

    fn run(mut self) -> Run {
        for what in std::mem::take(&mut self.asked) {
            for cell in 0..self.planned.cells.len() {
                self.known(&what, cell);
            }
        }
        let mut run = hand_made(&["veth"]);
        run.header.plan.clone_from(&self.planned.plan.name);
        run.header.confidence = self.planned.plan.confidence;
        run.header
            .published
            .clone_from(&self.planned.plan.published);
        run.header.environment.cpus = CPUS;
        let planned = run.header.cells.remove(0);
        for (place, (cell, shown)) in self.planned.cells.iter().zip(self.shown).enumerate() {
            for block in 0..BLOCKS {
                let mut values: BTreeMap<&str, f64> = shown
                    .iter()
                    .map(|(name, shown)| (name.as_str(), shown.in_block(block, place)))
                    .collect();
                if values.keys().any(|name| name.starts_with("cost of ")) {
                    values.entry("cpu_ns_per_byte").or_insert(1.0);
                }
                let mut m = sample(&values);
                if block == 0 && shown.values().any(|shown| shown.noise == Noise::Once) {
                    m.cpu.steal_ns = 0.02 * m.cpu.elapsed_ns * f64::from(CPUS);
                }
                push(&mut run, block, 0, place, Outcome::Measured(Box::new(m)));
                run.profiles.extend(profile(&values, block, place));
            }
            let mut planned = planned.clone();
            planned.cell.clone_from(cell);
            run.header.cells.push(planned);
        }
        run
    }
}

/// A curve of a shape at a cell's number of flows; a rule's curve has it and its base has not, or the other way round.
fn along(shape: Shape, aim: Aim, is_base: bool, cell: &Cell) -> Shown {
    let n = f64::from(cell.axes.flows);
    let bends = |at: f64| 1e6 * (10.0 + n + 9.0 * (n - at).max(0.0));
    let wide = |mean| Shown {
        mean,
        noise: Noise::Wide,
    };
    // The greater count of the two.
    let is_late = is_base != (aim == Aim::Inside);
    match (shape, aim) {
        // Full at 16 in some blocks and not in others: 16 or 20 of the mean.
        (Shape::Fullness, Aim::Across) if n == 16.0 && is_base => wide(0.99),
        (Shape::Fullness, Aim::Across) => little(if n >= 16.0 { 1.1 } else { 0.6 }),
        (Shape::Fullness, _) => {
            let full = if is_late { 4.0 } else { 20.0 };
            little(if n >= full { 1.0 } else { 0.6 })
        }
        (Shape::Leap, Aim::Inside) => little(if n >= 21.0 { 1.0 } else { 0.45 }),
        (Shape::Leap, Aim::Outside) => little(0.45 + 0.01 * n),
        (Shape::Leap, Aim::Across) if n >= 21.0 => wide(0.9),
        (Shape::Leap, Aim::Across) => little(0.5),
        (Shape::Slopes, Aim::Inside) => little(bends(20.0)),
        (Shape::Slopes, Aim::Across) if n > 20.0 => wide(1e6 * (10.0 + n + (n - 20.0))),
        (Shape::Slopes, _) => little(1e6 * (10.0 + n)),
        (Shape::Knee, Aim::Across) => Shown {
            mean: bends(16.0),
            noise: Noise::Rough,
        },
        (Shape::Knee, _) => little(bends(if is_late { 8.0 } else { 20.0 })),
        (Shape::Line, Aim::Inside) => little(1e6 * n),
        // A zigzag; with that of 0.66 about the line, R² is 0.95.
        (Shape::Line, aim) => {
            let size = if aim == Aim::Outside { 50.0 } else { 0.66 };
            let side = if (n / 2.0) % 2.0 == 1.0 { 1.0 } else { -1.0 };
            little(1e6 * (n + 100.0 + size * side))
        }
    }
}
