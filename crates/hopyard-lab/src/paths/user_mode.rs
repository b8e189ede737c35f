//! What `pasta` and `slirp4netns` have in common: a program in the hub holds the other end of the client's tap.

use super::{Build, Path};
use crate::model::Peer;

const PEERS: &[Peer] = &[Peer::Far, Peer::Host];

/// A path by such a program.
pub(super) const fn by_program(build: Build) -> Path {
    Path {
        peers: PEERS,
        // They see the program's packets, from the host's own address.
        filter_sees: &[],
        rules_instead: |_| "the host, as packets of its own address",
        mtu_owner: "the tap, whose program ends connections",
        // It is made for that.
        unprivileged: Some(PEERS),
        ..Path::new(build)
    }
}
