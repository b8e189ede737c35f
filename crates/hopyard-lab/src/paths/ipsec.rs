//! `ipsec` and `ipsec-tunnel`: ESP (RFC 4303) with AES-128-GCM (RFC 4106) over a veth pair, without a key daemon.

use hopyard_net::EspMode;

use super::{Need, Path};
use crate::builder::ETH;
use crate::encrypted::End;
use crate::model::{Hop, Peer};
use crate::topology::{host, role};
use crate::{Builder, Error, Result, Subnet, Topology};

/// Least MTU of an IPv6 link (RFC 8200, section 5), bytes.
const LEAST_INSIDE: u32 = 1280;

/// Packets of the endpoints' own addresses are encrypted.
pub(super) static TRANSPORT: Ipsec = Ipsec {
    name: "ipsec",
    summary: "a veth pair between the endpoints, whose packets IPsec encrypts (ESP in transport mode, AES-GCM)",
    mode: EspMode::Transport,
    // Header and number of RFC 4106, 16 bytes, tag of 16, and up to 5 that fill it up.
    most_overhead: 8 + 8 + 16 + 5,
};

/// Whole packets are encrypted, between further addresses of the same devices.
pub(super) static TUNNEL: Ipsec = Ipsec {
    name: "ipsec-tunnel",
    summary: "the same in tunnel mode: whole packets are encrypted and get another IP header",
    mode: EspMode::Tunnel,
    most_overhead: TRANSPORT.most_overhead + 20,
};

pub(super) struct Ipsec {
    name: &'static str,
    summary: &'static str,
    mode: EspMode,
    /// What a packet grows by at most, bytes.
    most_overhead: u32,
}

impl Path for Ipsec {
    fn name(&self) -> &'static str {
        self.name
    }

    fn summary(&self) -> &'static str {
        self.summary
    }

    fn peers(&self) -> &'static [Peer] {
        &[Peer::Local]
    }

    fn mtu_owner(&self) -> &'static str {
        "the pair; TCP takes the room for the headers off"
    }

    fn needs(&self) -> &'static [Need] {
        &[Need::VETH, Need::ESP]
    }

    fn build(&self, lab: &mut Builder, _: Peer) -> Result<Topology> {
        if lab.mtu() < LEAST_INSIDE + self.most_overhead {
            return Err(Error::MtuTooSmall {
                path: self.name,
                least: LEAST_INSIDE + self.most_overhead,
            });
        }
        lab.veth((role::A, ETH), (role::B, ETH))?;
        let end = |role, number| End {
            role,
            inner: Subnet::LAN.host(number),
            outer: match self.mode {
                EspMode::Transport => Subnet::LAN.host(number),
                EspMode::Tunnel => Subnet::UNDERLAY.host(number),
            },
        };
        let ends = [end(role::A, host::A), end(role::B, host::B)];
        if self.mode == EspMode::Tunnel {
            for end in ends {
                lab.address(end.role, ETH, end.outer)?;
            }
        }
        let client = lab.endpoint(role::A, ETH, ends[0].inner)?;
        let server = lab.endpoint(role::B, ETH, ends[1].inner)?;
        let [encrypts, decrypts] = lab.encrypt(self.mode, ends)?;
        Ok(Topology {
            client,
            server,
            way: vec![
                Hop::tx(role::A, ETH),
                encrypts,
                decrypts,
                Hop::rx(role::B, ETH),
            ],
            containers: Vec::new(),
            spliced_at: None,
        })
    }
}
