//! Changing what a port may do while frames pass.

use crate::error::{Error, Result};
use crate::layout::{
    Config, HOLDS_ADDRESS, HOLDS_STATION, PORT_DHCP, PORT_ISOLATED, PORT_ROUTER, PortRecord,
};
use crate::limit::Broadcasts;
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
        let record = self.state.port(slot)?;
        let mut flags = record.flags;
        for (wanted, bit) in [
            (change.isolated, PORT_ISOLATED),
            (change.router, PORT_ROUTER),
            (change.dhcp_server, PORT_DHCP),
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
        self.state.set_port(
            slot,
            PortRecord {
                flags,
                broadcasts: change
                    .broadcasts
                    .map_or(record.broadcasts, Broadcasts::to_number),
                ..record
            },
        )?;
        self.finish_change(Config { changing, ..config })
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
