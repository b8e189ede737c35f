//! Which chains of the user's own packet filter rules see a lab's traffic.

use hopyard_net::{NftChain, count_chains, counted_chains};

use super::own_chains::OwnChains;
use super::{Lab, Result, role};
use crate::model::{FilterChain, Sees};

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

    /// The user's chains, with the packets that passed them since [`count_chains`](Self::count_chains); what of the traffic these are
    /// is for whoever made it to say. `None` without rules of the user's, empty where the path has no hub.
    ///
    /// # Errors
    /// `nft` fails.
    pub fn counted_chains(&self) -> Result<Option<Vec<FilterChain>>> {
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
                sees: Sees::Unknown,
            });
        Ok(Some(chains.collect()))
    }

    fn chains(&self) -> Option<&[NftChain]> {
        let chains = self.builder.parts::<OwnChains>().next();
        chains.map(|OwnChains(chains)| &chains[..])
    }
}
