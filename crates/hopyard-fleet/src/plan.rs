//! What is asked for, and how long it will take.

use std::time::Duration;

use hopyard_host::bounded;
use hopyard_model::loads::Load;
use hopyard_model::{Blocks, LoadKind, WINDOW, quantity};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::endpoints::{self, Endpoint};
use crate::error::{Error, Result};
use crate::schedule::{Pair, Pairs, rounds};

/// Pairs at once where nobody says otherwise: each is a process of this host with two connections.
pub const AT_ONCE: usize = 50;
/// What a pair takes beside its blocks: two connections, a look at both ends, the windows in which nothing runs.
const START: Duration = Duration::from_secs(1);
/// What a sample takes beside its window and warm-up: connecting, and the other way round.
const SAMPLE: Duration = Duration::from_millis(500);
/// Blocks are measured again where the machine was disturbed, and connections may be slow.
const PATIENCE: u32 = 3;
const LEAST_PATIENCE: Duration = Duration::from_secs(60);
/// No pair takes longer, even with all loads and a thousand blocks of the longest windows: 30 days.
const LONGEST_PAIR_S: u64 = 30 * 24 * 3600;

/// Everything that is decided before anything is measured.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Plan {
    /// The machines.
    pub endpoints: Vec<Endpoint>,
    /// Which pairs of them.
    pub pairs: Pairs,
    /// What is measured of each pair.
    pub loads: Vec<LoadKind>,
    /// Length of a window, ms.
    pub window_ms: u64,
    /// Traffic before a window, ms.
    pub warm_up_ms: u64,
    /// Least number of blocks of a pair.
    pub blocks_min: u32,
    /// Greatest number of blocks of a pair.
    pub blocks_max: u32,
    /// Most pairs that are measured side by side.
    pub at_once: usize,
    /// A pair that takes longer is ended, s.
    pub deadline_s: u64,
}

/// A figure that each pair has of a load.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Column {
    /// The load.
    pub load: LoadKind,
    /// Name of the quantity, with its unit.
    pub quantity: &'static str,
}

/// What can be set of a plan; `None` is the default.
#[derive(Debug, Clone, Default)]
pub struct Settings {
    /// See [`Plan::pairs`].
    pub pairs: Option<Pairs>,
    /// See [`Plan::loads`].
    pub loads: Option<Vec<LoadKind>>,
    /// See [`Plan::window_ms`].
    pub window: Option<Duration>,
    /// See [`Plan::warm_up_ms`].
    pub warm_up: Option<Duration>,
    /// See [`Plan::blocks_min`].
    pub blocks: Option<Blocks>,
    /// See [`Plan::at_once`].
    pub at_once: Option<usize>,
    /// See [`Plan::deadline_s`].
    pub deadline: Option<Duration>,
}

impl Plan {
    /// The plan for these machines.
    ///
    /// # Errors
    /// A setting is out of bounds, or the endpoints are not two or more different ones.
    pub fn new(endpoints: Vec<Endpoint>, settings: &Settings) -> Result<Self> {
        let blocks = settings.blocks.unwrap_or(Blocks { min: 4, max: 4 });
        let ms = |time: Duration| u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
        let mut loads = settings
            .loads
            .clone()
            .unwrap_or_else(|| vec![LoadKind::TcpStream, LoadKind::TcpRr]);
        let mut seen = Vec::new();
        loads.retain(|load| {
            let is_new = !seen.contains(load);
            seen.push(*load);
            is_new
        });
        let mut plan = Self {
            at_once: settings
                .at_once
                .unwrap_or_else(|| (endpoints.len() / 2).clamp(1, AT_ONCE)),
            endpoints,
            pairs: settings.pairs.unwrap_or(Pairs::All),
            loads,
            window_ms: ms(settings.window.unwrap_or(Duration::from_millis(500))),
            warm_up_ms: ms(settings.warm_up.unwrap_or(Duration::from_millis(200))),
            blocks_min: blocks.min,
            blocks_max: blocks.max,
            deadline_s: 0,
        };
        let deadline = settings
            .deadline
            .unwrap_or_else(|| LEAST_PATIENCE + plan.pair_takes()[1] * PATIENCE);
        plan.deadline_s = match settings.deadline {
            Some(_) => deadline.as_secs_f64().ceil() as u64,
            None => deadline.as_secs().min(LONGEST_PAIR_S),
        };
        plan.check().map_err(Error::Wrong)?;
        Ok(plan)
    }

    /// What is wrong with it, if anything.
    pub(crate) fn check(&self) -> std::result::Result<(), String> {
        endpoints::check(&self.endpoints)?;
        let blocks = Blocks {
            min: self.blocks_min,
            max: self.blocks_max,
        };
        if self.loads.is_empty() {
            Err("no load is named".to_owned())
        } else if !blocks.are_possible() {
            Err(format!(
                "{}..{} is no range of blocks",
                blocks.min, blocks.max
            ))
        } else if blocks.min < 2 {
            Err("one block gives no interval, so no figure: --blocks is 2 or more".to_owned())
        } else if !WINDOW.contains(&self.window()) || self.warm_up() > *WINDOW.end() {
            Err("the window or the warm-up is out of bounds".to_owned())
        } else if self.at_once == 0 {
            Err("no pair at once measures nothing: --at-once is 1 or more".to_owned())
        } else if self.deadline_s == 0 || self.deadline_s > LONGEST_PAIR_S {
            Err(format!(
                "{} s for a pair are out of bounds: --pair-limit is from 1s to 30 days",
                self.deadline_s
            ))
        } else {
            self.check_size()
        }
    }

    /// Refuses a fleet whose results could not be read again.
    fn check_size(&self) -> std::result::Result<(), String> {
        /// Of a line for a pair, and of each figure in it, bytes.
        const LINE: [u64; 2] = [200, 90];
        let machines = self.endpoints.len() as u64;
        let pairs = match self.pairs {
            Pairs::All => machines * (machines - 1) / 2,
            Pairs::BothWays => machines * (machines - 1),
            Pairs::Ring => machines,
        };
        let bytes = pairs * (LINE[0] + LINE[1] * self.columns().len() as u64);
        if bytes <= bounded::MOST_OF_LINES {
            return Ok(());
        }
        Err(format!(
            "{pairs} pairs with {} figures each would be {} MiB of results, and at most {} MiB are read again: name fewer \
             --loads, or split the fleet",
            self.columns().len(),
            bytes >> 20,
            bounded::MOST_OF_LINES >> 20
        ))
    }

    /// Length of a window.
    #[must_use]
    pub fn window(&self) -> Duration {
        Duration::from_millis(self.window_ms)
    }

    /// Traffic before it.
    #[must_use]
    pub fn warm_up(&self) -> Duration {
        Duration::from_millis(self.warm_up_ms)
    }

    /// The pairs, round by round.
    #[must_use]
    pub fn rounds(&self) -> Vec<Vec<Pair>> {
        // A plan has no more endpoints than `MOST_ENDPOINTS`.
        rounds(
            self.pairs,
            u16::try_from(self.endpoints.len()).unwrap_or(u16::MAX),
        )
    }

    /// What is kept of each pair.
    #[must_use]
    pub fn columns(&self) -> Vec<Column> {
        let of = |load: &LoadKind| {
            let load = *load;
            quantities(load.info())
                .into_iter()
                .map(move |quantity| Column { load, quantity })
        };
        self.loads.iter().flat_map(of).collect()
    }

    /// About how long a pair takes: with the fewest blocks, and with the most.
    #[must_use]
    pub fn pair_takes(&self) -> [Duration; 2] {
        let samples = u32::try_from(self.loads.len()).unwrap_or(u32::MAX);
        let block = (self.window() + self.warm_up() + SAMPLE).saturating_mul(samples);
        [self.blocks_min, self.blocks_max].map(|blocks| START + block.saturating_mul(blocks))
    }

    /// About how long all of it takes: with the fewest blocks, and with the most. Waves of pairs that take equally long.
    #[must_use]
    pub fn takes(&self) -> [Duration; 2] {
        let rounds = self.rounds();
        let pairs: usize = rounds.iter().map(Vec::len).sum();
        let waves = pairs.div_ceil(self.at_once).max(rounds.len());
        let waves = u32::try_from(waves).unwrap_or(u32::MAX);
        self.pair_takes().map(|pair| pair.saturating_mul(waves))
    }
}

/// The main figure of a load first, then what it costs, then its latency.
fn quantities(load: &Load) -> Vec<&'static str> {
    let latency = [quantity::LATENCY_P50, quantity::LATENCY_P99];
    let mut all = vec![load.main_figure, load.unit.cost()];
    if load.timed.is_some() {
        all.extend(latency.iter().filter(|name| **name != load.main_figure));
    }
    all
}

impl Column {
    /// Is it what pairs and machines are ranked by?
    #[must_use]
    pub fn is_main(&self) -> bool {
        self.quantity == self.load.info().main_figure
    }

    /// Is more of it better?
    #[must_use]
    pub fn more_is_better(&self) -> bool {
        !(self.quantity.contains("_ns") || self.quantity.ends_with("_ratio"))
    }

    /// The unit, which the name ends with.
    #[must_use]
    pub fn unit(&self) -> &'static str {
        const UNITS: [(&str, &str); 7] = [
            ("_packets_per_s", "packets/s"),
            ("_bps", "bit/s"),
            ("transactions_per_s", "transactions/s"),
            ("_ns_per_byte", "ns/byte"),
            ("_ns_per_packet", "ns/packet"),
            ("_ns_per_transaction", "ns/transaction"),
            ("_ns", "ns"),
        ];
        let found = UNITS.iter().find(|(end, _)| self.quantity.ends_with(end));
        found.map_or("1", |(_, unit)| unit)
    }
}

/// A plan in a few words, for `hopyard fleet plan`.
#[derive(Debug, Serialize)]
pub struct Preview<'a> {
    /// Name and version of the document.
    pub schema: &'static str,
    /// The plan.
    pub plan: &'a Plan,
    /// Number of pairs.
    pub pairs: usize,
    /// Names of client and server of each pair, by round.
    pub rounds: Vec<Vec<[&'a str; 2]>>,
    /// About how long it takes with the fewest blocks and with the most, s.
    pub takes_s: [f64; 2],
}

/// Name and version of [`Preview`].
pub(crate) const PLAN_SCHEMA: &str = "hopyard/fleet-plan/1";

impl Plan {
    /// What would be done.
    #[must_use]
    pub fn preview(&self) -> Preview<'_> {
        let name = |machine: u16| &self.endpoints[usize::from(machine)].name[..];
        let named = |round: Vec<Pair>| round.iter().map(|pair| pair.ends().map(name)).collect();
        let rounds: Vec<Vec<[&str; 2]>> = self.rounds().into_iter().map(named).collect();
        Preview {
            schema: PLAN_SCHEMA,
            plan: self,
            pairs: rounds.iter().map(Vec::len).sum(),
            rounds,
            takes_s: self.takes().map(|time| time.as_secs_f64()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    pub(crate) fn machines(count: usize) -> Vec<Endpoint> {
        let one = |n| Endpoint {
            name: format!("n{n}"),
            connect: format!("ssh n{n}"),
            address: None,
            rack: None,
        };
        (1..=count).map(one).collect()
    }

    fn plan(count: usize, settings: &Settings) -> Plan {
        Plan::new(machines(count), settings).unwrap()
    }

    #[test]
    fn time_is_that_of_the_rounds_or_of_what_runs_at_once() {
        let four = plan(4, &Settings::default());
        assert_eq!(four.at_once, 2);
        // Four blocks of two loads of 1.2 s, and one second.
        assert_eq!(four.pair_takes(), [Duration::from_millis(10_600); 2]);
        assert_eq!(four.takes()[0], Duration::from_millis(31_800));
        let one_by_one = Settings {
            at_once: Some(1),
            ..Settings::default()
        };
        assert_eq!(
            plan(4, &one_by_one).takes()[0],
            Duration::from_millis(63_600)
        );
        // An odd number has a round more than it needs: everybody rests once.
        assert_eq!(
            plan(5, &Settings::default()).takes()[0],
            Duration::from_secs(53)
        );
        let many = plan(1000, &Settings::default());
        assert_eq!(many.takes()[0].as_secs(), 10_600 * 9990 / 1000);
    }

    #[test]
    fn each_load_has_its_main_figure_first() {
        let all = Settings {
            loads: Some(LoadKind::ALL.to_vec()),
            ..Settings::default()
        };
        let columns = plan(2, &all).columns();
        for load in LoadKind::ALL {
            let first = columns.iter().find(|c| c.load == load).unwrap();
            assert!(first.is_main(), "{first:?}");
            assert_eq!(
                columns
                    .iter()
                    .filter(|c| c.load == load && c.is_main())
                    .count(),
                1
            );
        }
        assert!(columns.iter().all(|c| c.unit() != "1"), "{columns:?}");
        let of = |quantity| Column {
            load: LoadKind::TcpRr,
            quantity,
        };
        assert!(of("goodput_bps").more_is_better() && !of("latency_p99_ns").more_is_better());
        assert!(!of("cpu_ns_per_byte").more_is_better());
    }

    #[test]
    fn a_load_that_is_named_twice_is_measured_once() {
        let twice = Settings {
            loads: Some(vec![LoadKind::TcpRr, LoadKind::TcpRr]),
            ..Settings::default()
        };
        assert_eq!(plan(2, &twice).loads, [LoadKind::TcpRr]);
    }

    #[test]
    fn what_measures_nothing_is_refused() {
        for settings in [
            Settings {
                at_once: Some(0),
                ..Settings::default()
            },
            Settings {
                blocks: Some(Blocks { min: 1, max: 4 }),
                ..Settings::default()
            },
            Settings {
                loads: Some(Vec::new()),
                ..Settings::default()
            },
            Settings {
                deadline: Some(Duration::MAX),
                ..Settings::default()
            },
            Settings {
                deadline: Some(Duration::ZERO),
                ..Settings::default()
            },
        ] {
            assert!(Plan::new(machines(2), &settings).unwrap_err().is_request());
        }
    }
}
