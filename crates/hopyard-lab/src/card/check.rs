//! What keeps a card from being a lab's.

use std::io;
use std::net::IpAddr;

use hopyard_net::Handle;

use super::{HOME, RECORD, Record, tcx};
use crate::bounded;
use crate::error::Cable;
use crate::{Error, Result};

/// Checks that a card is not in use for something else, and could be put back as it is.
pub(super) fn is_free(home: &Handle, card: &str) -> Result<()> {
    let refuse = |why: String| {
        Err(Error::Cable(Cable::Card {
            card: card.to_owned(),
            why,
        }))
    };
    let link = home.link(card)?;
    if card == "lo" {
        return refuse("it is the loopback device".to_owned());
    }
    if link.master.is_some() {
        return refuse("it is a port of a bridge or bond: take it out first".to_owned());
    }
    if link.xdp.is_some() {
        return refuse("it has an XDP program, which would go: remove it first".to_owned());
    }
    let programs = tcx::programs_at(home, card)?;
    if !programs.is_empty() {
        return refuse(format!(
            "it has eBPF programs at its tcx hooks, which would get the frames of the lab ({}): detach them first",
            programs.join(", ")
        ));
    }
    if home.devices_of_default_routes()?.contains(&link.index) {
        return refuse(
            "the default route goes by it, so this machine would be cut off while the lab has it: name a card that the machine \
             can do without"
                .to_owned(),
        );
    }
    if home.devices_of_routes_by_next_hops()?.contains(&link.index) {
        return refuse(
            "a route with several next hops, or with one of `ip nexthop`, goes by it, which could not be put back: remove that first"
                .to_owned(),
        );
    }
    let own: Vec<IpAddr> = home
        .addresses()?
        .into_iter()
        .filter(|(device, ip)| *device == link.index && ip.is_ipv4())
        .map(|(_, ip)| ip)
        .collect();
    let from_it = home.devices_of_routes_from(&own)?;
    if let Some(other) = from_it.into_iter().find(|device| *device != link.index) {
        let links = home.links()?;
        let other = links.iter().find(|known| known.index == other);
        return refuse(format!(
            "a route by `{}` has an address of this card as its source, and the kernel would remove it with the address: remove that \
             route first, or its `src`",
            other.map_or("another device", |other| &other.name)
        ));
    }
    let mut uppers = home
        .links()?
        .into_iter()
        .filter(|other| other.lower == Some(link.index) && other.lower_ns.is_none());
    if let Some(upper) = uppers.find(|other| other.kind.as_deref() != Some("veth")) {
        return refuse(format!(
            "device `{}` is on top of it, and would go: remove that first",
            upper.name
        ));
    }
    let qdiscs = home.qdiscs_of_user(card)?;
    if !qdiscs.is_empty() {
        return refuse(format!(
            "it has queueing disciplines that cannot be put back ({}): remove them first",
            qdiscs.join(", ")
        ));
    }
    let hooks = home.nft_hooks_of(card)?;
    if !hooks.is_empty() {
        return refuse(format!(
            "nftables has it in {}, which would lose it: take it out there first",
            hooks.join(", ")
        ));
    }
    Ok(())
}

/// Checks that no earlier lab left the card without its configuration: the next one would record that as what to restore.
pub(super) fn is_back(home: &Handle, card: &str) -> Result<()> {
    let here = home.ns().inode()?;
    for lab in HOME.names()? {
        let file = HOME.directory(&lab).join(RECORD);
        let text = match bounded::read(&file) {
            // Another program may just be removing it.
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            text => text,
        };
        let record = text.and_then(|text| Ok(serde_json::from_slice::<Record>(&text)?));
        // A record that cannot be read may be of this card.
        let is_of_another = record.is_ok_and(|record| record.card != card || record.home != here);
        if !is_of_another {
            return Err(Error::Cable(Cable::Card {
                card: card.to_owned(),
                why: format!(
                    "an earlier lab did not restore its configuration (see {}): run `hopyard clean` first",
                    file.display()
                ),
            }));
        }
    }
    Ok(())
}
