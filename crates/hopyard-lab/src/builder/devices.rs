//! Devices of a lab.

use hopyard_net::{LinkKind, NetNs, NetkitLayer, NewLink};

use super::Builder;
use crate::error::or_another_path;
use crate::topology::role;
use crate::upper::Upper;
use crate::{Error, Result};

impl Builder {
    /// Makes a device in the namespace of a role, with the lab's MTU unless it says its own, and
    /// brings it up.
    ///
    /// # Errors
    /// The kernel cannot or will not.
    pub fn link(&mut self, role: &'static str, name: &str, kind: LinkKind<'_>) -> Result<()> {
        let mtu = self.mtu();
        self.space(role)?
            .add_link(&NewLink {
                mtu: Some(mtu),
                up: true,
                ..NewLink::new(name, kind)
            })
            .map_err(or_another_path)?;
        self.devices.push((role, name.to_owned()));
        Ok(())
    }

    /// Makes a device over a lower device or underlay in one namespace, to live in another.
    ///
    /// # Errors
    /// The kernel cannot or will not.
    pub(crate) fn link_into(
        &mut self,
        lower: &'static str,
        into: &'static str,
        name: &str,
        kind: LinkKind<'_>,
        mtu: u32,
    ) -> Result<()> {
        self.space(into)?;
        self.space(lower)?;
        let (Some(lower), Some(target)) = (self.find(lower), self.find(into)) else {
            return Err(Error::Kept(format!("namespace `{into}` is gone")));
        };
        let within = (lower.role != target.role).then(|| target.handle.ns());
        lower
            .handle
            .add_link(&NewLink {
                mtu: Some(mtu),
                into: within,
                ..NewLink::new(name, kind)
            })
            .map_err(or_another_path)?;
        target.handle.set_up(name)?;
        let on_card = lower.role == role::HUB && self.has_real_wire();
        let ns = on_card
            .then(|| target.handle.ns().try_clone())
            .transpose()?;
        if let Some(ns) = ns {
            self.push(Upper::new(ns, name));
        }
        self.devices.push((into, name.to_owned()));
        Ok(())
    }

    /// A veth pair between two namespaces, both ends up.
    ///
    /// # Errors
    /// The kernel cannot or will not.
    pub fn veth(&mut self, one: (&'static str, &str), two: (&'static str, &str)) -> Result<()> {
        self.pair(one, two, None, |peer, ns| LinkKind::veth(peer, Some(ns)))
    }

    /// The same with as many queues as the axes ask for.
    ///
    /// # Errors
    /// As [`Builder::veth`].
    pub(crate) fn queued_veth(
        &mut self,
        one: (&'static str, &str),
        two: (&'static str, &str),
    ) -> Result<()> {
        let queues = self.axes.queues;
        self.pair(one, two, queues, |peer, ns| LinkKind::veth(peer, Some(ns)))
    }

    /// A netkit pair between two namespaces, both ends up; the first is the one that programs are attached to.
    ///
    /// # Errors
    /// The kernel cannot or will not.
    pub fn netkit(
        &mut self,
        mode: NetkitLayer,
        one: (&'static str, &str),
        two: (&'static str, &str),
    ) -> Result<()> {
        self.pair(one, two, None, |peer, ns| LinkKind::Netkit {
            mode,
            peer,
            peer_ns: Some(ns),
            peer_mac: None,
        })
    }

    fn pair(
        &mut self,
        (role, name): (&'static str, &str),
        (peer_role, peer): (&'static str, &str),
        queues: Option<u32>,
        kind: impl for<'a> FnOnce(String, &'a NetNs) -> LinkKind<'a>,
    ) -> Result<()> {
        let mtu = self.mtu();
        let peer_ns = self.space(peer_role)?.ns().try_clone()?;
        let handle = self.space(role)?;
        let kind = kind(peer.to_owned(), &peer_ns);
        handle
            .add_link(&NewLink {
                mtu: Some(mtu),
                queues,
                up: true,
                ..NewLink::new(name, kind)
            })
            .map_err(or_another_path)?;
        // The kernel waits once per request to delete, so as many ends as can be are of one namespace.
        let end = if peer_role == role::HUB || role::is_container(role) {
            (peer_role, peer)
        } else {
            (role, name)
        };
        if let Some(space) = self.spaces.iter_mut().find(|space| space.role == end.0) {
            space.pairs.push(end.1.to_owned());
        }
        self.devices.push((role, name.to_owned()));
        self.devices.push((peer_role, peer.to_owned()));
        self.space(peer_role)?.set_up(peer)?;
        Ok(())
    }
}
