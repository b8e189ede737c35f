//! WireGuard devices: keys and peers, by generic netlink (`include/uapi/linux/wireguard.h`).

use std::net::{IpAddr, SocketAddr};

use netlink_packet_core::ParseableParametrized;
use netlink_packet_generic::GenlHeader;
use netlink_packet_wireguard::{
    WireguardAddressFamily, WireguardAllowedIp, WireguardAllowedIpAttr, WireguardAttribute,
    WireguardCmd, WireguardMessage, WireguardPeer, WireguardPeerAttribute,
};

use crate::error::{Error, Result};
use crate::genl::GENLMSGHDR;
use crate::handle::Handle;

/// A key of WireGuard, Curve25519.
pub type WireguardKey = [u8; WireguardAttribute::WG_KEY_LEN];

const FAMILY: &str = "wireguard";

impl Handle {
    /// Gives a WireGuard device its private key and the UDP port on which it listens. Gives back the public key.
    ///
    /// # Errors
    /// [`Error::Missing`] if there is no such device, [`Error::Unsupported`] if the kernel has no WireGuard.
    pub fn set_wireguard_key(
        &self,
        device: &str,
        private: WireguardKey,
        port: u16,
    ) -> Result<WireguardKey> {
        let what = format!("give `{device}` a key");
        let key = WireguardAttribute::PrivateKey(private);
        let settings = vec![key, WireguardAttribute::ListenPort(port)];
        self.set_wireguard(&what, device, settings)?;
        let attributes = self.wireguard(&what, device)?;
        attributes
            .into_iter()
            .find_map(|attribute| match attribute {
                WireguardAttribute::PublicKey(key) => Some(key),
                _ => None,
            })
            .ok_or_else(|| Error::Reply {
                what,
                why: "the device has no public key afterwards".to_owned(),
            })
    }

    /// Gives a WireGuard device a further peer, which is at `endpoint`: what is routed to the device for one of these networks
    /// goes there, and what comes from there may be from one of them.
    ///
    /// # Errors
    /// As [`Handle::set_wireguard_key`].
    pub fn add_wireguard_peer(
        &self,
        device: &str,
        peer: WireguardKey,
        endpoint: SocketAddr,
        allowed: &[(IpAddr, u8)],
    ) -> Result<()> {
        let allowed = allowed.iter().map(|(network, length)| {
            WireguardAllowedIp(vec![
                WireguardAllowedIpAttr::Family(match network {
                    IpAddr::V4(_) => WireguardAddressFamily::Ipv4,
                    IpAddr::V6(_) => WireguardAddressFamily::Ipv6,
                }),
                WireguardAllowedIpAttr::IpAddr(*network),
                WireguardAllowedIpAttr::Cidr(*length),
            ])
        });
        let peer = WireguardPeer(vec![
            WireguardPeerAttribute::PublicKey(peer),
            WireguardPeerAttribute::Endpoint(endpoint),
            WireguardPeerAttribute::AllowedIps(allowed.collect()),
        ]);
        let what = format!("give `{device}` the peer at {endpoint}");
        let settings = vec![WireguardAttribute::Peers(vec![peer])];
        self.set_wireguard(&what, device, settings)
    }

    fn set_wireguard(
        &self,
        what: &str,
        device: &str,
        mut settings: Vec<WireguardAttribute>,
    ) -> Result<()> {
        settings.insert(0, WireguardAttribute::IfName(device.to_owned()));
        let message = WireguardMessage {
            cmd: WireguardCmd::SetDevice,
            attributes: settings,
        };
        self.with_family(FAMILY, what, device, |family| family.request(message))
            .map(drop)
    }

    fn wireguard(&self, what: &str, device: &str) -> Result<Vec<WireguardAttribute>> {
        let message = WireguardMessage {
            cmd: WireguardCmd::GetDevice,
            attributes: vec![WireguardAttribute::IfName(device.to_owned())],
        };
        let answers = self.with_family(FAMILY, what, device, |family| family.dump(message))?;
        let mut attributes = Vec::new();
        for answer in answers {
            attributes.extend(parse(&answer).map_err(|why| Error::Reply {
                what: what.to_owned(),
                why,
            })?);
        }
        Ok(attributes)
    }
}

fn parse(answer: &[u8]) -> std::result::Result<Vec<WireguardAttribute>, String> {
    let header = GenlHeader {
        cmd: WireguardCmd::GetDevice.into(),
        version: 1,
    };
    let attributes = answer.get(GENLMSGHDR..).unwrap_or_default();
    WireguardMessage::parse_with_param(attributes, header)
        .map(|message| message.attributes)
        .map_err(|e| e.to_string())
}

#[cfg(test)]
mod tests {
    use netlink_packet_core::Emitable;

    use super::*;
    use crate::NetNs;

    #[test]
    fn a_device_that_is_not_there_is_missing_where_the_kernel_has_wireguard() {
        let handle = Handle::new(&NetNs::create().unwrap()).unwrap();
        let error = handle.set_wireguard_key("wg0", [7; 32], 0).unwrap_err();
        if crate::has_genl_family(FAMILY).unwrap() {
            assert!(matches!(error, Error::Missing { .. }), "{error}");
        } else {
            assert!(error.is_unsupported(), "{error}");
        }
    }

    #[test]
    fn an_answer_is_read_behind_its_header() {
        let key = WireguardAttribute::PublicKey([7; 32]);
        let message = WireguardMessage {
            cmd: WireguardCmd::GetDevice,
            attributes: vec![key.clone()],
        };
        let mut answer = vec![0; GENLMSGHDR + message.buffer_len()];
        message.emit(&mut answer[GENLMSGHDR..]);
        assert_eq!(parse(&answer).unwrap(), [key]);
    }
}
