//! Changing what a port may do while frames pass.

use crate::error::{Error, Result};
use crate::here::is_pair;
use crate::layout::{
    Bucket, Config, HOLDS_ADDRESS, HOLDS_STATION, PORT_ANY_SOURCE, PORT_DECLARED, PORT_DHCP,
    PORT_FOLLOW, PORT_ISOLATED, PORT_PEER, PORT_QUEUED, PORT_RATE_IN, PORT_RATE_OUT, PORT_ROUTER,
    PortRecord,
};
use crate::limit::Broadcasts;
use crate::port::{sure_len, way_in};
use crate::programs;
use crate::rate::Rate;
use crate::switch::Switch;

/// What is to change of a port; `None`: it stays as it is.
#[derive(Debug, Clone, Default)]
pub struct PortChange<'a> {
    /// Its device.
    pub device: &'a str,
    /// Does it talk to the uplink and the host only?
    pub isolated: Option<bool>,
    /// May it advertise itself as a router?
    pub router: Option<bool>,
    /// May it answer DHCP?
    pub dhcp_server: Option<bool>,
    /// How many broadcasts may it send?
    pub broadcasts: Option<Broadcasts>,
    /// May it send from any address that is nobody else's?
    pub allow_spoof: Option<bool>,
    /// Does [`apply`](crate::apply) remove it when the description of the switch has it no longer?
    pub declared: Option<bool>,
    /// How fast may it get frames?
    pub rate_in: Option<Rate>,
    /// How fast may it send?
    pub rate_out: Option<Rate>,
}

impl Switch {
    /// Changes what a port may do. No frame is lost.
    ///
    /// # Errors
    /// The device is no port of this switch.
    pub fn set_port(&mut self, change: &PortChange<'_>) -> Result<()> {
        let device = change.device;
        let what = format!("change port `{device}` of switch `{}`", self.name);
        let _lock = self.lock()?;
        self.repair()?;
        let here = self.here(&what)?;
        self.learn_host(&here)?;
        let slot = self.slot_of_port(&what, &here, device)?;
        let link = here.handle.link(device)?;
        let peer = here.handle.lower_of(&link)?.filter(|_| is_pair(&link));
        let record = self.state.port(slot)?;
        let mut flags = record.flags & !(PORT_PEER | PORT_FOLLOW);
        let seen = programs::see_device(&self.directory, link.index, peer.is_some())?;
        let queued = flags & PORT_QUEUED != 0;
        let (direct, follow) = way_in(queued, &link, peer.as_ref(), &seen);
        flags |= if direct { PORT_PEER } else { 0 };
        flags |= if follow { PORT_FOLLOW } else { 0 };
        for (wanted, bit) in [
            (change.isolated, PORT_ISOLATED),
            (change.router, PORT_ROUTER),
            (change.dhcp_server, PORT_DHCP),
            (change.allow_spoof, PORT_ANY_SOURCE),
            (change.declared, PORT_DECLARED),
            (change.rate_in.map(is_limited), PORT_RATE_IN),
            (change.rate_out.map(is_limited), PORT_RATE_OUT),
        ] {
            match wanted {
                Some(true) => flags |= bit,
                Some(false) => flags &= !bit,
                None => {}
            }
        }
        let config = self.state.config()?;
        let changing = u16::try_from(slot).map_err(|_| Error::invalid(&what, "its slot is odd"))?;
        // From here on it is finished, by whoever comes next if not by us.
        self.state.set_config(Config { changing, ..config })?;
        self.set_rates(slot, change)?;
        self.state.set_port(
            slot,
            PortRecord {
                flags,
                // What its devices take may have changed since.
                sure_len: sure_len(&link, peer.as_ref()),
                broadcasts: change
                    .broadcasts
                    .map_or(record.broadcasts, Broadcasts::to_number),
                ..record
            },
        )?;
        self.finish_change(Config { changing, ..config })
    }

    /// Writes what is to change of a port's rates, with full buckets; a rate that the port has keeps its bucket as it is. The flags say
    /// whether they hold: they come after.
    fn set_rates(&mut self, slot: u32, change: &PortChange<'_>) -> Result<()> {
        if change.rate_in.is_none() && change.rate_out.is_none() {
            return Ok(());
        }
        let mut limits = self.state.limits(slot)?;
        let flags = self.state.port(slot)?.flags;
        let has =
            |flag, bucket: &Bucket, rate| flags & flag != 0 && Rate::from_bucket(bucket) == rate;
        // A port with a flag that is about to go needs its bucket until then.
        if let Some(rate) = change.rate_in.filter(|rate| is_limited(*rate))
            && !has(PORT_RATE_IN, &limits.inward, rate)
        {
            limits.inward = rate.to_bucket();
        }
        if let Some(rate) = change.rate_out.filter(|rate| is_limited(*rate))
            && !has(PORT_RATE_OUT, &limits.outward, rate)
        {
            limits.outward = rate.to_bucket();
        }
        self.state.set_limits(slot, limits)
    }

    /// Writes the flags of the port that is being changed wherever frames find them.
    pub(crate) fn finish_change(&mut self, config: Config) -> Result<()> {
        let slot = config.changing.into();
        let record = self.state.port(slot)?;
        for (_, holding) in self.state.holdings(slot, record.holdings)? {
            match holding.kind {
                HOLDS_STATION => {
                    let key = holding.station;
                    if let Ok(mut station) = self.state.stations.get(&key, 0)
                        && station.slot == slot
                    {
                        station.port_flags = record.flags;
                        station.sure_len = record.sure_len;
                        let what = format!("write the stations of port record {slot}");
                        self.state
                            .stations
                            .insert(key, station, 0)
                            .map_err(Error::bpf(what))?;
                    }
                }
                HOLDS_ADDRESS => {
                    let key = holding.address;
                    if let Ok(mut address) = self.state.addresses.get(&key, 0)
                        && address.slot == slot
                    {
                        address.port_flags = record.flags.into();
                        let what = format!("write the addresses of port record {slot}");
                        self.state
                            .addresses
                            .insert(key, address, 0)
                            .map_err(Error::bpf(what))?;
                    }
                }
                _ => {}
            }
        }
        self.state.set_config(Config {
            changing: 0,
            ..self.state.config()?
        })
    }
}

fn is_limited(rate: Rate) -> bool {
    rate != Rate::Unlimited
}
