//! A real card as the end of a lab's wire: moved into the lab's namespace, and put back as it was.
//!
//! Only the card that the user names is touched. What is configured of it is written to disk first, since the kernel forgets all of
//! that when a device changes its namespace; and the lab's namespace is mounted on a file, since a virtual device would go with it.
//! So whoever ends, and however, `hopyard clean` finds both and puts the card back.

mod tcx;

use std::collections::BTreeMap;
use std::io;
use std::net::IpAddr;
use std::time::{Duration, Instant};

use hopyard_net::{DeviceConfig, Handle, Link, NetNs, Offload};
use serde::{Deserialize, Serialize};

use super::daemon::Home;
use super::error::Cable;
use super::part::{Kind, Names, Part, Undone};
use super::{Error, LabId, Result};
use crate::bounded;
use crate::load::remote;

/// A directory for each card that a lab has.
const HOME: Home = Home::new("card", "/run/hopyard-cards", &[]);
const RECORD: &str = "record.json";
/// The lab's namespace, which the card is in.
const NAMESPACE: &str = "namespace";
/// A cable needs some seconds until both ends have agreed on a speed.
const CARRIER: Duration = Duration::from_secs(15);

pub(super) static CARDS: Cards = Cards;

pub(super) struct Cards;

/// A card that a lab has.
#[derive(Debug)]
pub(super) struct Card {
    lab: String,
}

/// What it takes to put a card back.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Record {
    /// For whoever reads it.
    what: String,
    /// Its name where it belongs.
    card: String,
    /// Its index where it belongs; records of earlier versions have none.
    #[serde(default)]
    index: Option<u32>,
    /// Its Ethernet address.
    #[serde(default)]
    mac: Option<[u8; 6]>,
    /// Its name in the lab.
    within: String,
    /// Inode number of the namespace where it belongs.
    home: u64,
    mtu: u32,
    is_up: bool,
    /// Messages of rtnetlink(7), without their headers.
    addresses: Vec<Vec<u8>>,
    routes: Vec<Vec<u8>>,
    sysctls: BTreeMap<String, String>,
    /// Single features of offloads that can be changed, by the kernel's names.
    offloads: BTreeMap<String, bool>,
    /// Had its administrator have it take frames to every station?
    #[serde(default)]
    takes_all: bool,
}

/// Takes a card of the namespace that this process is in, and brings it up as `within` in that of the lab. There is a carrier only
/// once both ends are up ([`wait_for_carrier`]).
pub(super) fn take(lab: LabId, card: &str, into: &Handle, within: &str, mtu: u32) -> Result<Card> {
    let home = Handle::here()?;
    // It may be an altname (`ip link property`): the kernel finds the device by it, and would not give it that name again.
    let link = home.link(card)?;
    let card = &*link.name;
    check(&home, card)?;
    check_is_back(&home, card)?;
    let config = home.device_config(card)?;
    let record = Record {
        what: format!(
            "`{card}` is `{within}` of a lab of hopyard; `hopyard clean` puts it back when that lab has ended"
        ),
        card: card.to_owned(),
        index: Some(link.index),
        mac: link.mac,
        within: within.to_owned(),
        home: home.ns().inode()?,
        mtu: config.mtu,
        is_up: config.is_up,
        addresses: config.addresses,
        routes: config.routes,
        sysctls: config.sysctls,
        offloads: home.offload_features(card)?,
        takes_all: link.takes_all,
    };
    let name = lab.to_string();
    let directory = HOME.make(&name)?;
    let taken = Card { lab: name };
    let made = write(&directory, &record).and_then(|()| {
        into.ns().bind(&directory.join(NAMESPACE))?;
        home.move_to(card, into.ns())?;
        if card != within {
            into.rename(card, within)?;
        }
        into.set_mtu(within, mtu)?;
        Ok(into.set_up(within)?)
    });
    match made {
        Ok(()) => Ok(taken),
        Err(error) => {
            for problem in put_back(&taken.lab).unwrap_or_else(|e| vec![crate::chain(&e)]) {
                crate::note(format_args!("{problem}"));
            }
            Err(error)
        }
    }
}

fn write(directory: &std::path::Path, record: &Record) -> Result<()> {
    let file = directory.join(RECORD);
    let text = serde_json::to_string_pretty(record).map_err(io::Error::from);
    text.and_then(|text| bounded::replace(&file, text.as_bytes()))
        .map_err(|source| Error::File {
            what: format!("write {}", file.display()),
            source,
        })
}

/// What keeps a card from being a lab's: it is in use for something else, or could not be put back as it is.
fn check(home: &Handle, card: &str) -> Result<()> {
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
fn check_is_back(home: &Handle, card: &str) -> Result<()> {
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

/// Has a card bring frames to stations behind it that the kernel does not know, as the direct switch has them: each as it came.
pub(super) fn serve_stations_behind(lab: &Handle, within: &str) -> Result<()> {
    /// By the kernel's name.
    const LRO: &str = "rx-lro";
    lab.take_all_frames(within)?;
    if lab.offload_features(within)?.get(LRO) == Some(&true) {
        let off = BTreeMap::from([(LRO.to_owned(), false)]);
        lab.restore_offload_features(within, &off)?;
    }
    Ok(())
}

/// Waits until the card `card`, which is called `within`, has a carrier.
pub(super) fn wait_for_carrier(handle: &Handle, card: &str, within: &str) -> Result<()> {
    let deadline = Instant::now() + CARRIER;
    while !handle.settle(within)? {
        if crate::signals::interrupted() {
            return Err(Error::Worker(remote::Error::Interrupted));
        }
        if Instant::now() > deadline {
            return Err(Error::Cable(Cable::Card {
                card: card.to_owned(),
                why: format!(
                    "no carrier within {} s: is the other end connected and up?",
                    CARRIER.as_secs()
                ),
            }));
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    Ok(())
}

/// Puts the card of a lab back, with all that was configured of it. Gives what could not be.
fn put_back(lab: &str) -> Result<Vec<String>> {
    let directory = HOME.directory(lab);
    let file = directory.join(RECORD);
    let text = match bounded::read(&file) {
        Ok(text) => text,
        // Killed before anything was changed.
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            HOME.remove_files(lab)?;
            return Ok(Vec::new());
        }
        Err(source) => {
            return Err(Error::File {
                what: format!("read {}", file.display()),
                source,
            });
        }
    };
    let record: Record = serde_json::from_slice(&text).map_err(|source| {
        Error::Cable(Cable::Record {
            directory: directory.clone(),
            source,
        })
    })?;
    let home = Handle::here()?;
    if home.ns().inode()? != record.home {
        return Err(Error::Cable(Cable::Card {
            card: record.card,
            why: "it belongs to another network namespace than this one: run `hopyard clean` there"
                .to_owned(),
        }));
    }
    let namespace = directory.join(NAMESPACE);
    if namespace.exists() {
        match NetNs::open(&namespace) {
            Ok(lab) => bring_home(&record, &Handle::new(&lab)?, &home)?,
            // It was mounted for one process alone, which has ended. The kernel gave the card back by itself, with the lab's name.
            Err(hopyard_net::Error::Invalid { .. }) => rename_back(&record, &home)?,
            Err(error) => return Err(error.into()),
        }
    }
    let mut problems = Vec::new();
    // Records of earlier versions have flags by their names.
    for flag in Offload::ALL {
        if let Some(on) = record.offloads.get(flag.name()) {
            let set = home.set_offload(&record.card, flag, *on);
            problems.extend(set.err().map(|error| crate::chain(&error)));
        }
    }
    let restored = home.restore_offload_features(&record.card, &record.offloads);
    problems.extend(restored.err().map(|error| crate::chain(&error)));
    let config = DeviceConfig {
        mtu: record.mtu,
        is_up: record.is_up,
        addresses: record.addresses,
        routes: record.routes,
        sysctls: record.sysctls,
    };
    if !record.takes_all {
        let back = home.take_own_frames(&record.card);
        problems.extend(back.err().map(|error| crate::chain(&error)));
    }
    let refused = home.configure_device(&record.card, &config)?;
    problems.extend(
        refused
            .iter()
            .map(|error| format!("`{}`: {}", record.card, crate::chain(error))),
    );
    if namespace.exists() {
        hopyard_net::unbind(&namespace)?;
    }
    if problems.is_empty() {
        HOME.remove_files(lab)?;
    } else {
        problems.push(format!(
            "the configuration of `{}` is in {}: `hopyard clean` tries again; if that cannot restore it, do so by hand and remove that \
             directory",
            record.card,
            file.display()
        ));
    }
    Ok(problems)
}

/// Gives a card its name that the kernel took out of the lab's namespace when that ended.
fn rename_back(record: &Record, home: &Handle) -> Result<()> {
    if record.within == record.card || home.link(&record.card).is_ok() {
        return Ok(());
    }
    // Its index may be another one since.
    let has_its_address = |link: Link| link.mac.is_some() && link.mac == record.mac;
    if home.link(&record.within).is_ok_and(has_its_address) {
        home.set_down(&record.within)?;
        home.rename(&record.within, &record.card)?;
    }
    Ok(())
}

/// Moves the card out of the lab, if it is there.
fn bring_home(record: &Record, lab: &Handle, home: &Handle) -> Result<()> {
    let card = &record.card;
    let is_at_home = home.link(card).is_ok();
    // Killed between the move and the new name, it has the old one there.
    let has_its_name_there = lab.link(&record.within).is_ok();
    if !has_its_name_there && (is_at_home || lab.link(card).is_err()) {
        return Ok(());
    }
    if is_at_home {
        return Err(Error::Cable(Cable::Card {
            card: card.clone(),
            why: "another device has its name now: rename that, then run `hopyard clean`"
                .to_owned(),
        }));
    }
    if has_its_name_there {
        lab.set_down(&record.within)?;
        if record.within != *card {
            lab.rename(&record.within, card)?;
        }
    }
    match record.index {
        Some(index) => lab.move_as(card, home.ns(), index)?,
        None => lab.move_to(card, home.ns())?,
    }
    Ok(())
}

impl Part for Card {
    fn undo(&mut self) -> Undone {
        match put_back(&self.lab) {
            Ok(problems) => Undone {
                removed: Some(format!(
                    "the card of lab {} from it; it is where it was",
                    self.lab
                )),
                problems,
            },
            Err(error) => Undone::failed(&error),
        }
    }
}

impl Kind for Cards {
    fn names(&self) -> Result<Names> {
        Ok(Names::Of(HOME.names()?))
    }

    fn is_kept(&self) -> bool {
        false
    }

    fn effect(&self) -> &'static str {
        "a card of this host is away: it is in the namespace of a lab"
    }

    fn left(&'static self, name: String) -> Box<dyn Part> {
        Box::new(Card { lab: name })
    }
}
