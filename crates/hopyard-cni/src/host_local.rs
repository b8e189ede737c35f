//! The work of the IPAM plugin `host-local` in this process: no second program is started for it. `ipam.rs` says when.
//!
//! Configuration, order of addresses and store are those of the reference program (1.1.1 to 1.9). Both may work on the same network.
//! What is different:
//!
//! - An unknown key is an error. Without `ipamInProcess` the program is run then.
//! - ADD does not look for earlier reservations of the same container and device. Those of this plugin are in its record, and ADD frees
//!   them before. One that another plugin left stays until a GC with `ipamInProcess`. The reference program would refuse the ADD.
//! - DEL frees the addresses that the record names. Where it names none, DEL looks through all reservations.
//! - GC frees what is of no valid attachment where `ipamInProcess` is true, and STATUS checks the configuration. The reference program does
//!   nothing in either.

use std::collections::BTreeSet;
use std::fs;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use serde_json::{Value, json};

use crate::error::{Error, Result, code};
use crate::outcome::network;
use crate::record::{Attachment, unknown_part};

mod config;
mod ranges;
pub(crate) mod reference;
mod store;

use config::Config;
use ranges::RangeSet;
use store::{Owner, Store};

/// A file that was changed now has the time of the kernel's last tick, which is at most so long ago.
const TICK: Duration = Duration::from_millis(10);

/// One call of the plugin.
pub(crate) struct HostLocal<'a> {
    pub(crate) network: &'a str,
    pub(crate) container: &'a str,
    pub(crate) ifname: &'a str,
    /// `CNI_ARGS`.
    pub(crate) args: &'a str,
    pub(crate) conf: Value,
}

impl HostLocal<'_> {
    /// Does ADD take the configuration, and read it as the reference program does? Reads nothing of the store.
    pub(crate) fn reads_alike(conf: &Value, args: &str) -> bool {
        config::is_read_alike(conf, args)
    }

    fn config(&self) -> Result<Config> {
        Config::of(&self.conf, self.args)
    }

    /// Where the reservations of the network are.
    pub(crate) fn directory(&self) -> Result<PathBuf> {
        config::directory(&self.conf, self.network)
    }

    fn owner(&self) -> Owner {
        Owner::new(self.container, self.ifname)
    }

    /// Says what is wrong with a configuration that ADD does not take.
    pub(crate) fn ready(&self) -> Result<()> {
        self.directory()?;
        self.config().map(drop)
    }

    /// Reserves an address of each range set, and gives the result. Where one fails, none stays reserved.
    pub(crate) fn add(&self) -> Result<Value> {
        let config = self.config()?;
        let dns = config.dns()?;
        let store = Store::make(self.directory()?)?;
        let mut reserved = Vec::new();
        if let Err(mut error) = self.reserve(&store, &config, &mut reserved) {
            let files = reserved.iter().map(|ip| store.file(*ip));
            if let Err(problem) = store.remove(files) {
                error.also(&problem);
            }
            return Err(error);
        }
        let sets = config.sets.iter().zip(&reserved);
        let ips: Vec<Value> = sets.filter_map(|(set, ip)| set.result(*ip)).collect();
        Ok(json!({ "ips": ips, "routes": config.routes, "dns": dns }))
    }

    /// Puts into `reserved` what it reserves, also where it fails.
    fn reserve(&self, store: &Store, config: &Config, reserved: &mut Vec<IpAddr>) -> Result<()> {
        let owner = self.owner();
        for (n, (set, asked)) in config.sets.iter().zip(&config.asked).enumerate() {
            let given = match asked {
                Some(ip) => store.reserve(&owner, [*ip])?,
                None => store.reserve(&owner, set.candidates(store.last(n)))?,
            };
            let ip = given.ok_or_else(|| match asked {
                Some(ip) => taken(store, *ip),
                None => exhausted(set),
            })?;
            reserved.push(ip);
            store.note_last(n, ip)?;
        }
        Ok(())
    }

    /// Frees the container's addresses: those that its record names or, if it names none, all whose file names the container. `None`:
    /// there is no record. Addresses that are free already are fine.
    pub(crate) fn del(&self, recorded: Option<&[IpAddr]>) -> Result<()> {
        let Some(store) = Store::open(self.directory()?)? else {
            return Ok(());
        };
        // The caller saw no record, and there is one: an ADD of this container has begun meanwhile.
        if recorded.is_none() && self.attachment(self.container, self.ifname).is_recorded() {
            return Ok(());
        }
        store.release(&self.owner(), recorded.unwrap_or_default())
    }

    fn attachment(&self, container: &str, ifname: &str) -> Attachment {
        Attachment {
            network: self.network.to_owned(),
            container: container.to_owned(),
            ifname: ifname.to_owned(),
        }
    }

    /// Are the addresses of `prevResult` still reserved, as far as they are in the ranges? If none of them is in the ranges, which may
    /// have changed, any address of the container will do, as with the reference program.
    pub(crate) fn check(&self) -> Result<()> {
        let config = self.config()?;
        let owner = self.owner();
        let Some(store) = Store::open(self.directory()?)? else {
            return Err(self.gone("no address of the network is reserved"));
        };
        let previous = self.conf["prevResult"]["ips"].as_array();
        let addresses = previous.into_iter().flatten();
        let addresses = addresses.filter_map(|ip| Some(network(&ip["address"]).ok()?.0));
        let ours: Vec<IpAddr> = addresses
            .filter(|ip| config.sets.iter().any(|set| set.contains(*ip)))
            .collect();
        for ip in &ours {
            let found = store.owner(*ip)?;
            if !found.is_some_and(|found| found.is_of(&owner)) {
                return Err(self.gone(&format!("{ip} is reserved no longer")));
            }
        }
        if ours.is_empty() && store.files_of(&owner)?.is_empty() {
            return Err(self.gone("no address is reserved"));
        }
        Ok(())
    }

    fn gone(&self, what: &str) -> Error {
        let msg = format!(
            "{what} for container `{}`, `{}`: DEL it, and ADD it again",
            self.container, self.ifname
        );
        Error::new(code::CHANGED, msg)
    }

    /// Frees what is of no valid attachment and was reserved before GC `began`. What was reserved later may be of an ADD that was under way
    /// when the runtime listed what is valid.
    ///
    /// Files that name no container and device stay: those of versions before 0.8, and what somebody wrote by hand to keep an address
    /// free.
    pub(crate) fn collect(
        &self,
        valid: &BTreeSet<(String, String)>,
        began: SystemTime,
    ) -> Result<()> {
        let Some(store) = Store::open(self.directory()?)? else {
            return Ok(());
        };
        let mut all = store.reservations()?;
        all.retain(|(file, owner)| self.is_left(file, owner, valid, began));
        store.remove(all.into_iter().map(|(file, _)| file))
    }

    fn is_left(
        &self,
        file: &Path,
        owner: &Owner,
        valid: &BTreeSet<(String, String)>,
        began: SystemTime,
    ) -> bool {
        let Some((container, ifname)) = owner.attachment() else {
            return false;
        };
        if valid.contains(&(container.to_owned(), ifname.to_owned())) || !Store::is_of_address(file)
        {
            return false;
        }
        let changed = fs::metadata(file).and_then(|data| data.modified());
        // A time that is still to come is from before somebody set the clock back.
        let is_before = |changed| {
            changed + TICK + unknown_part(changed) < began || changed > SystemTime::now() + TICK
        };
        // Whoever has reserved it by this plugin and is still at work has a record: ADD makes it before, DEL removes it afterwards.
        changed.is_ok_and(is_before) && !self.attachment(container, ifname).is_recorded()
    }
}

fn taken(store: &Store, ip: IpAddr) -> Error {
    let whose = match store.owner(ip) {
        Ok(Some(owner)) => format!(" by {owner}"),
        _ => String::new(),
    };
    let msg = format!(
        "the address {ip} that was asked for is reserved already{whose} (`{}`)",
        store.file(ip).display()
    );
    Error::new(code::IPAM, msg)
}

fn exhausted(set: &RangeSet) -> Error {
    let msg = format!(
        "no address of {set} is free: widen the range, or DEL containers; GC frees what those left that are gone"
    );
    Error::new(code::IPAM, msg)
}

#[cfg(test)]
mod tests;
