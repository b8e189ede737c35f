//! What a plan cannot be.

use std::net::IpAddr;

use hopyard_host::bounded;
use hopyard_model::{Blocks, Family, WINDOW};

use super::{LONGEST_PAIR_S, Plan};
use crate::endpoints;
use crate::schedule::Pairs;

impl Plan {
    /// What is wrong with it, if anything.
    pub(crate) fn check(&self) -> std::result::Result<(), String> {
        endpoints::check(&self.endpoints, endpoints::FOR_PAIRS)?;
        self.check_family()?;
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

    /// All pairs have one IP version, since they are compared with each other.
    fn check_family(&self) -> std::result::Result<(), String> {
        let is_other = |address: IpAddr| address.is_ipv6() != (self.family == Family::V6);
        let mut given = self.endpoints.iter().filter_map(|e| Some((e, e.address?)));
        match given.find(|(_, address)| is_other(*address)) {
            None => Ok(()),
            Some((endpoint, address)) => Err(format!(
                "endpoint `{}` has address {address}, and the traffic is IPv{}: give all endpoints addresses of one family (a \
                 new fleet takes --family)",
                endpoint.name, self.family
            )),
        }
    }

    /// Refuses a fleet whose results could not be read again.
    fn check_size(&self) -> std::result::Result<(), String> {
        /// Of a line for a pair, and of each figure in it, bytes.
        const LINE: [u64; 2] = [200, 115];
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
}
