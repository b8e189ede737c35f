//! Generic netlink: which families the kernel speaks, requests of them, and one about wireless devices.

use std::fmt::Debug;
use std::io;

use netlink_packet_core::{DefaultNla, Emitable};
use netlink_packet_generic::ctrl::nlas::GenlCtrlAttrs;
use netlink_packet_generic::ctrl::{GenlCtrl, GenlCtrlCmd};
use netlink_packet_generic::{GenlFamily, GenlMessage};
use netlink_sys::protocols::NETLINK_GENERIC;

use crate::attrs::{attribute, u16_at, u32_at};
use crate::error::{Error, Result};
use crate::handle::{Handle, missing_device, refused};
use crate::netlink::{Netlink, Refusal};

/// The family that knows the others, and what it says of one (include/uapi/linux/genetlink.h).
const GENL_ID_CTRL: u16 = 0x10;
const CTRL_ATTR_FAMILY_ID: u16 = 1;
/// `struct genlmsghdr`, before the attributes of an answer.
pub(crate) const GENLMSGHDR: usize = 4;
/// The family of wireless devices, its request for one, and what it says of it (include/uapi/linux/nl80211.h).
const NL80211: &str = "nl80211";
const NL80211_CMD_GET_INTERFACE: u8 = 5;
const NL80211_ATTR_IFINDEX: u16 = 3;
const NL80211_ATTR_IFTYPE: u16 = 5;
const NL80211_IFTYPE_STATION: u32 = 2;
const NL80211_IFTYPE_P2P_CLIENT: u32 = 8;

/// A family of generic netlink, spoken in the namespace of the thread that looked it up.
pub(crate) struct Genl {
    socket: Netlink,
    family: u16,
}

impl Handle {
    /// Asks a family, whose module has its name, about a device. A family answers for devices of the namespace in which its
    /// socket was opened.
    ///
    /// # Errors
    /// [`Error::Unsupported`] without the family, [`Error::Missing`] for the device.
    pub(crate) fn with_family<T: Send>(
        &self,
        name: &str,
        what: &str,
        device: &str,
        ask: impl FnOnce(&mut Genl) -> std::result::Result<T, Refusal> + Send,
    ) -> Result<T> {
        let asked = self.ns().run(|| match Genl::find(name)? {
            Some(mut family) => ask(&mut family).map(Some),
            None => Ok(None),
        })?;
        match asked {
            Ok(Some(answer)) => Ok(answer),
            Ok(None) => Err(Error::Unsupported {
                what: what.to_owned(),
                feature: name.to_owned(),
                remedy: format!(
                    "load module `{name}` (kernel option CONFIG_{})",
                    name.to_uppercase()
                ),
            }),
            Err(refusal) if refusal.errno() == libc::ENODEV => Err(missing_device(what, device)),
            Err(refusal) => Err(refused(what, refusal)),
        }
    }
}

impl Genl {
    /// Looks a family up; `None` where the kernel has none of that name. Asking for it loads its module, if the kernel can.
    pub(crate) fn find(name: &str) -> std::result::Result<Option<Self>, Refusal> {
        let mut controller = Self {
            socket: Netlink::open(NETLINK_GENERIC)?,
            family: GENL_ID_CTRL,
        };
        let answers = controller.request(GenlCtrl {
            cmd: GenlCtrlCmd::GetFamily,
            nlas: vec![GenlCtrlAttrs::FamilyName(name.to_owned())],
        });
        let answers = match answers {
            Err(refusal) if refusal.errno() == libc::ENOENT => return Ok(None),
            answers => answers?,
        };
        let number = answers
            .iter()
            .find_map(|answer| attribute(answer, GENLMSGHDR, CTRL_ATTR_FAMILY_ID));
        match number.and_then(|number| u16_at(number, 0)) {
            Some(family) => Ok(Some(Self {
                family,
                ..controller
            })),
            None => Err(io::Error::other(format!("family `{name}` has no number")).into()),
        }
    }

    /// Sends a request and returns the answers, each from its `struct genlmsghdr` on.
    pub(crate) fn request<F>(&mut self, payload: F) -> std::result::Result<Vec<Vec<u8>>, Refusal>
    where
        F: GenlFamily + Emitable + Debug,
    {
        let message = self.message(payload);
        self.socket.request(message, 0)
    }

    /// Sends a request for a list; the answers as those of [`request`](Self::request).
    pub(crate) fn dump<F>(&mut self, payload: F) -> std::result::Result<Vec<Vec<u8>>, Refusal>
    where
        F: GenlFamily + Emitable + Debug + Clone,
    {
        let message = self.message(payload);
        self.socket.dump(&message)
    }

    fn message<F: GenlFamily + Debug>(&self, payload: F) -> GenlMessage<F> {
        let mut message = GenlMessage::from_payload(payload);
        message.set_resolved_family_id(self.family);
        message
    }
}

/// Whether the kernel speaks this family of generic netlink. Asking for it loads its module, if the
/// kernel can.
///
/// # Errors
/// [`Error::Kernel`](crate::Error::Kernel) where generic netlink itself does not answer.
pub fn has_genl_family(name: &str) -> Result<bool> {
    let found = Genl::find(name);
    let found = found.map_err(|r| refused(&format!("look for netlink family `{name}`"), r))?;
    Ok(found.is_some())
}

/// Whether a device of the calling thread's namespace is a client of a wireless access point, which gets no frames but
/// those to its own address.
///
/// # Errors
/// [`Error::Kernel`](crate::Error::Kernel) where generic netlink itself does not answer.
pub fn is_wireless_client(index: u32) -> Result<bool> {
    let cannot = |refusal| refused(&format!("ask whether device {index} is wireless"), refusal);
    let Some(mut family) = Genl::find(NL80211).map_err(cannot)? else {
        return Ok(false);
    };
    match family.request(GetInterface(index)) {
        Ok(answers) => Ok(answers.iter().any(|answer| is_client(answer))),
        // The kernel says either of a device that is not wireless.
        Err(refusal) if [libc::ENODEV, libc::EINVAL].contains(&refusal.errno()) => Ok(false),
        Err(refusal) => Err(cannot(refusal)),
    }
}

/// Asks for the wireless device of that index.
#[derive(Debug)]
struct GetInterface(u32);

impl GetInterface {
    fn attributes(&self) -> [DefaultNla; 1] {
        [DefaultNla::new(
            NL80211_ATTR_IFINDEX,
            self.0.to_ne_bytes().to_vec(),
        )]
    }
}

impl GenlFamily for GetInterface {
    fn family_name() -> &'static str {
        NL80211
    }

    fn command(&self) -> u8 {
        NL80211_CMD_GET_INTERFACE
    }

    fn version(&self) -> u8 {
        1
    }
}

impl Emitable for GetInterface {
    fn buffer_len(&self) -> usize {
        self.attributes().as_slice().buffer_len()
    }

    fn emit(&self, buffer: &mut [u8]) {
        self.attributes().as_slice().emit(buffer);
    }
}

/// Is the device that is described a client of an access point?
fn is_client(answer: &[u8]) -> bool {
    let kind = attribute(answer, GENLMSGHDR, NL80211_ATTR_IFTYPE).and_then(|v| u32_at(v, 0));
    matches!(
        kind,
        Some(NL80211_IFTYPE_STATION | NL80211_IFTYPE_P2P_CLIENT)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_controller_is_known_and_a_stranger_is_not() {
        assert!(has_genl_family("nlctrl").unwrap());
        assert!(!has_genl_family("no-such-family").unwrap());
    }

    #[test]
    fn loopback_is_no_wireless_client_and_a_station_is_one() {
        assert!(!is_wireless_client(1).unwrap());
        let described = |kind: u32| {
            let attributes = [DefaultNla::new(
                NL80211_ATTR_IFTYPE,
                kind.to_ne_bytes().to_vec(),
            )];
            let mut bytes = vec![0; GENLMSGHDR + attributes.as_slice().buffer_len()];
            attributes.as_slice().emit(&mut bytes[GENLMSGHDR..]);
            bytes
        };
        assert!(is_client(&described(NL80211_IFTYPE_STATION)));
        // An access point (3) forwards for its stations.
        assert!(!is_client(&described(3)) && !is_client(&[]));
    }

    #[test]
    fn a_request_names_the_device() {
        let mut bytes = [0; 8];
        GetInterface(7).emit(&mut bytes);
        let index = attribute(&bytes, 0, NL80211_ATTR_IFINDEX).unwrap();
        assert_eq!(u32_at(index, 0), Some(7));
    }
}
