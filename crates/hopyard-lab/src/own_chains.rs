//! The chains of the user's own packet filter rules, as a part of a lab.

use hopyard_net::NftChain;

use super::part::{Part, Undone};

/// Those in the hub; none where the path has no hub.
#[derive(Debug)]
pub(super) struct OwnChains(pub(super) Vec<NftChain>);

impl Part for OwnChains {
    /// They end with the hub.
    fn undo(&mut self) -> Undone {
        Undone::default()
    }
}
