//! The switch there is, in the words of a description.

use hopyard_net::{Handle, Link};

use super::{PortSpec, Present, PresentPort};
use crate::error::Result;
use crate::here::device_name;
use crate::hook::{Hook, Hooks};
use crate::layout::{
    ETHERNET_HEADER, PORT_ANY_SOURCE, PORT_DECLARED, PORT_DHCP, PORT_ISOLATED, PORT_QUEUED,
    PORT_ROUTER, SWITCH_ANSWERS, SWITCH_BEHIND,
};
use crate::limit::Broadcasts;
use crate::running::{self, Running};
use crate::show::WayOut;
use crate::switch::Switch;

impl Switch {
    /// What it is, in the words of a description. The calling thread has to be in its namespace.
    ///
    /// # Errors
    /// The switch is in another namespace, or the kernel's maps or devices cannot be read.
    pub fn described(&self) -> Result<Present> {
        self.present(&format!("describe switch `{}`", self.name))
    }

    pub(super) fn present(&self, what: &str) -> Result<Present> {
        let here = self.here(what)?;
        let config = self.state.config()?;
        let mut present = Present {
            host_macs: self.state.hosts()?,
            answers: config.flags & SWITCH_ANSWERS != 0,
            behind_others: config.flags & SWITCH_BEHIND != 0,
            shortcut: self.shortcut()?,
            ..Present::default()
        };
        if config.uplink == 0 {
            present.uplink_wrong = self
                .knows_a_lost_host()?
                .then(|| "it was being taken away".to_owned());
        } else {
            let name = device_name(config.uplink);
            present.uplink = Some(name.map_or_else(|| self.state.uplink_name(), Ok)?);
            let mended = |warning: &&_| {
                matches!(
                    crate::Warning::way_out(warning),
                    Some(WayOut::SetUplink { .. })
                )
            };
            let shown = self.show()?;
            let warning = shown.warnings.iter().find(mended);
            present.uplink_wrong =
                warning.map(|warning| warning.reword(|_| "setting it again".to_owned()));
        }
        // A classifier comes behind every program at the tcx hooks, added again or not.
        let is_to_be_first = !present.behind_others && config.hooks() == Hooks::Tcx;
        let (macs, ips) = self.addresses();
        for (slot, record) in self.state.ports()? {
            // It goes just now.
            let Some(device) = device_name(record.device) else {
                continue;
            };
            let link = match here.handle.link(&device) {
                Err(hopyard_net::Error::Missing { .. }) => continue,
                link => link?,
            };
            let has = |flag| record.flags & flag != 0;
            let mut macs = macs.get(&slot).cloned().unwrap_or_default();
            macs.sort_by_key(|mac| (mac.to_number() != record.mac, *mac));
            let [rate_in, rate_out] = self.rates(slot, &record)?;
            let mut spec = PortSpec {
                device,
                macs,
                ips: ips.get(&slot).cloned().unwrap_or_default(),
                prefixes: self.prefixes(slot, &record)?,
                vlan: (record.vlan != 0).then_some(record.vlan),
                isolated: has(PORT_ISOLATED),
                allow_spoof: has(PORT_ANY_SOURCE),
                queued: has(PORT_QUEUED),
                router: has(PORT_ROUTER),
                dhcp_server: has(PORT_DHCP),
                broadcasts: Broadcasts::from_number(record.broadcasts),
                rate_in,
                rate_out,
                ..PortSpec::default()
            };
            spec.sort();
            let Some(there) = at_port(&here.handle, &link)? else {
                continue;
            };
            let before = there.first().filter(|one| is_to_be_first && !one.is_ours());
            present.ports.push(PresentPort {
                spec,
                declared: has(PORT_DECLARED),
                shrunk: link.mtu + ETHERNET_HEADER < record.sure_len,
                detached: !there.iter().any(Running::is_ours),
                preceded_by: before.map(ToString::to_string),
            });
        }
        Ok(present)
    }
}

/// What runs at the hook of a port; `None`: its device has gone since it was looked up.
fn at_port(handle: &Handle, link: &Link) -> Result<Option<Vec<Running>>> {
    match running::at(handle, &link.name, Hook::Port.side()) {
        Err(_) if device_name(link.index).is_none() => Ok(None),
        there => there.map(Some),
    }
}

#[cfg(test)]
mod tests {
    use hopyard_net::{LinkKind, NetNs, NewLink};

    use super::*;

    /// Needs root, as it makes a device.
    #[test]
    fn nothing_runs_at_a_device_that_went_just_then() {
        let ns = NetNs::create().unwrap();
        let hub = Handle::new(&ns).unwrap();
        hub.add_link(&NewLink::new("p0", LinkKind::veth("q0", None)))
            .unwrap();
        let link = hub.link("p0").unwrap();
        let at = || ns.run(|| at_port(&hub, &link)).unwrap();
        assert_eq!(at().unwrap(), Some(Vec::new()));
        hub.delete_link("p0").unwrap();
        assert_eq!(at().unwrap(), None);
    }
}
