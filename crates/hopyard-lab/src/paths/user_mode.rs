//! What `pasta` and `slirp4netns` have in common: a program in the hub holds the other end of the client's tap.

use std::process::Command;

use super::{Echo, Need, Path};
use crate::daemon::Ready;
use crate::model::{Axes, Family, Peer};
use crate::usermode::{Place, UserMode};
use crate::{Builder, Result, Topology};

/// A path by such a program.
pub(super) struct ByProgram {
    pub(super) name: &'static str,
    pub(super) summary: &'static str,
    pub(super) needs: &'static [Need],
    pub(super) echo: fn(Family) -> Echo,
    /// The program, its tap and the addresses behind it.
    pub(super) mode: fn() -> UserMode,
    /// How it is started, and what shows that it is ready.
    pub(super) command: fn(&UserMode, &Place) -> (Command, Ready),
}

impl Path for ByProgram {
    fn name(&self) -> &'static str {
        self.name
    }

    fn summary(&self) -> &'static str {
        self.summary
    }

    fn peers(&self) -> &'static [Peer] {
        &[Peer::Far, Peer::Host]
    }

    fn mtu_owner(&self) -> &'static str {
        "the tap, whose program ends connections"
    }

    fn needs(&self) -> &'static [Need] {
        self.needs
    }

    /// They see the program's packets, from the host's own address.
    fn filter_sees(&self, _: Peer) -> bool {
        false
    }

    fn rules_instead(&self, _: Peer) -> &'static str {
        "the host, as packets of its own address"
    }

    /// It is made for that.
    fn is_unprivileged(&self, peer: Peer, _: &Axes) -> bool {
        self.peers().contains(&peer)
    }

    fn echo(&self, family: Family) -> Echo {
        (self.echo)(family)
    }

    fn build(&self, lab: &mut Builder, peer: Peer) -> Result<Topology> {
        let mode = (self.mode)();
        lab.user_mode(&mode, peer, |place| (self.command)(&mode, place))
    }
}
