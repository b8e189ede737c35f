//! The wire between the hub and the far end.

pub(super) mod pauses;

use super::error::Cable;
use super::topology::{Topology, role};
use super::{Builder, Error, Result, card};
use crate::model::{FlowControl, LinkEnd, Rate, axis};

/// The hub's end of the wire.
pub(super) const UPLINK: &str = "up0";
/// The far end of the wire.
pub(super) const FAR_END: &str = "far0";
/// Axes whose settings a card would keep after the lab has given it back.
const KEPT_BY_CARDS: [&str; 5] = ["gso_max", "napi", "rfs", "rps", "xps"];

/// Is this one of the devices beside the wire, which frames take that have to wait ([`pauses`])? They are no hops of a path.
#[must_use]
pub fn is_beside_the_wire(namespace: &str, device: &str) -> bool {
    [role::HUB, role::FAR].contains(&namespace) && pauses::SIDE.contains(&device)
}

impl Builder {
    /// The wire: a veth pair from the hub's `up0` to `far0` in `far`, shaped both ways where the
    /// axes ask for a rate: frame by frame, or by pauses.
    ///
    /// # Errors
    /// The kernel cannot or will not.
    pub fn wire(&mut self) -> Result<()> {
        if self.has_real_wire() {
            return self.real_wire();
        }
        self.veth((role::HUB, UPLINK), (role::FAR, FAR_END))?;
        let pause = self.axes().wire_pause_ns;
        if let Some(Rate(Some(rate_bps))) = self.axes().rate_bps {
            for (role, device) in [(role::HUB, UPLINK), (role::FAR, FAR_END)] {
                let end = self.space(role)?;
                match pause {
                    Some(pause) => pauses::shape(end, device, rate_bps, pause.time())?,
                    None => end
                        .shape(device, rate_bps)
                        .map(drop)
                        .map_err(|error| error.or("leave the rate out"))?,
                }
            }
        }
        Ok(())
    }

    /// A card of this machine as `up0`.
    fn real_wire(&mut self) -> Result<()> {
        let uplink = self.endpoints.as_ref().and_then(|e| e.uplink.clone());
        let Some(uplink) = uplink else { return Ok(()) };
        if let Some(Rate(Some(_))) = self.axes().rate_bps {
            return Err(Error::Cable(Cable::Card {
                card: uplink.card,
                why: "a real cable has the rate that it has: leave `rate` out".to_owned(),
            }));
        }
        let is_set = |name: &&str| axis(name).is_ok_and(|a| (a.show)(self.axes()).is_some());
        if let Some(axis) = KEPT_BY_CARDS.iter().copied().find(|name| is_set(name)) {
            return Err(Error::Cable(Cable::Card {
                card: uplink.card,
                why: format!("the card would keep what `{axis}` sets of it: leave `{axis}` out"),
            }));
        }
        let (lab, mtu) = (self.id, self.mtu());
        let card = card::take(lab, &uplink.card, self.space(role::HUB)?, UPLINK, mtu)?;
        self.push(card);
        self.note_device(role::HUB, UPLINK);
        Ok(())
    }

    /// Waits until this machine's card has a carrier, if there is one.
    pub(crate) fn wait_for_cable(&mut self) -> Result<()> {
        let uplink = self.endpoints.as_ref().and_then(|e| e.uplink.as_ref());
        let Some(card) = uplink.map(|uplink| uplink.card.clone()) else {
            return Ok(());
        };
        card::wait_for_carrier(self.space(role::HUB)?, &card, UPLINK)
    }

    /// The ends of the wire with their flow control, where a path passes it.
    ///
    /// # Errors
    /// The kernel refused.
    pub(super) fn link_ends(&self, topology: &Topology) -> Result<Vec<LinkEnd>> {
        let mut ends = Vec::new();
        for (role, device) in [(role::HUB, UPLINK), (role::FAR, FAR_END)] {
            let mut hops = topology.hops();
            let is_passed = hops.any(|hop| hop.namespace == role && hop.device == device);
            let Some(handle) = self.handle(role).filter(|_| is_passed) else {
                continue;
            };
            let pause = handle.pause(device)?;
            ends.push(LinkEnd {
                namespace: role.to_owned(),
                name: device.to_owned(),
                flow_control: pause.map_or(FlowControl::None, |p| FlowControl::of(p.rx, p.tx)),
                negotiated: pause.map(|pause| pause.negotiated),
            });
        }
        Ok(ends)
    }
}
