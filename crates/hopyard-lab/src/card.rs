//! A real card as the end of a lab's wire: moved into the lab's namespace, and put back as it was.
//!
//! Only the card that the user names is touched. What is configured of it is written to disk first, since the kernel forgets all of
//! that when a device changes its namespace; and the lab's namespace is mounted on a file, since a virtual device would go with it.
//! So whoever ends, and however, `hopyard clean` finds both and puts the card back.

mod carrier;
mod check;
mod tcx;

use std::collections::BTreeMap;
use std::io;

use hopyard_net::{DeviceConfig, Handle, Link, NetNs, Offload};
use serde::{Deserialize, Serialize};

pub(super) use self::carrier::wait_for_carrier;
use super::daemon::Home;
use super::error::Cable;
use super::part::{Kind, Names, Part, Undone};
use super::{Error, LabId, Result};
use crate::bounded;

/// A directory for each card that a lab has.
const HOME: Home = Home::new("card", "/run/hopyard-cards", &[]);
const RECORD: &str = "record.json";
/// The lab's namespace, which the card is in.
const NAMESPACE: &str = "namespace";

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
    /// Its Ethernet address, by which it is known where the kernel itself moved it home.
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
    check::is_free(&home, card)?;
    check::is_back(&home, card)?;
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

/// Has a card pass up frames for Ethernet addresses other than its own, as those of the direct switch's ports, and not join them (LRO).
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

/// Gives a card its name back that the kernel itself moved home when the lab's namespace ended.
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
