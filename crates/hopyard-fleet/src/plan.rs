//! What is asked for, and how long it will take.

mod check;
mod column;
mod preview;

use std::time::Duration;

use hopyard_model::{Blocks, Family, LoadKind};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::endpoints::Endpoint;
use crate::error::{Error, Result};
use crate::schedule::{Pair, Pairs, rounds};

pub use self::column::Column;
pub use self::preview::Preview;

/// Pairs at once where nobody says otherwise, of this process and of each relay: each is a process with two connections.
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
    /// IP version of the traffic.
    #[serde(default = "v4")]
    pub family: Family,
    /// Most pairs that are measured side by side.
    pub at_once: usize,
    /// A pair that takes longer is ended, s.
    pub deadline_s: u64,
}

/// That of plans that do not say it.
fn v4() -> Family {
    Family::V4
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
    /// See [`Plan::family`]; by default that of the addresses that are given, or IPv4.
    pub family: Option<Family>,
    /// See [`Plan::at_once`].
    pub at_once: Option<usize>,
    /// Relays that run the pairs; 0 where this process does.
    pub relays: usize,
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
        let has_v6 = |endpoint: &Endpoint| endpoint.address.is_some_and(|a| a.is_ipv6());
        let given = if endpoints.iter().any(has_v6) {
            Family::V6
        } else {
            v4()
        };
        let mut plan = Self {
            family: settings.family.unwrap_or(given),
            at_once: settings.at_once.unwrap_or_else(|| {
                (endpoints.len() / 2).clamp(1, AT_ONCE * settings.relays.max(1))
            }),
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

    /// Length of a window.
    #[must_use]
    pub fn window(&self) -> Duration {
        Duration::from_millis(self.window_ms)
    }

    /// Length of the traffic before a window, which is not counted.
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
            column::quantities(load.info())
                .into_iter()
                .map(move |quantity| Column { load, quantity })
        };
        self.loads.iter().flat_map(of).collect()
    }

    /// About how long a pair takes: with the fewest blocks, and with the most.
    #[must_use]
    pub(crate) fn pair_takes(&self) -> [Duration; 2] {
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

#[cfg(test)]
pub(crate) mod tests;
