//! MACsec devices: keys, and what was encrypted, by generic netlink (`include/uapi/linux/if_macsec.h`).

use netlink_packet_core::{DefaultNla, Emitable};
use netlink_packet_generic::GenlFamily;

use crate::attrs::{attribute, attributes, nested, u32_at, u64_at};
use crate::error::{Error, Result};
use crate::genl::GENLMSGHDR;
use crate::handle::{Handle, missing_device};
use crate::kind::{LinkKind, NewLink};
use crate::netns::NetNs;

/// A key of AES-128.
pub type MacsecKey = [u8; 16];

const FAMILY: &str = "macsec";

/// Commands.
const GET_TXSC: u8 = 0;
const ADD_RXSC: u8 = 1;
const ADD_TXSA: u8 = 4;
const ADD_RXSA: u8 = 7;

/// Attributes of a message, of a receiving channel, of an association, and what is counted.
const IFINDEX: u16 = 1;
const RXSC: u16 = 2;
const SA: u16 = 3;
const RXSC_LIST: u16 = 6;
const TXSC_STATS: u16 = 7;
const RXSC_SCI: u16 = 1;
const RXSC_ACTIVE: u16 = 2;
const RXSC_STATS: u16 = 4;
const SA_AN: u16 = 1;
const SA_ACTIVE: u16 = 2;
const SA_PN: u16 = 3;
const SA_KEY: u16 = 4;
const SA_KEYID: u16 = 5;
const OUT_PACKETS_ENCRYPTED: u16 = 2;
const OUT_BYTES_ENCRYPTED: u16 = 4;
const IN_BYTES_DECRYPTED: u16 = 2;
const IN_PACKETS_OK: u16 = 5;

/// The port of a device's only channel.
const PORT: u16 = 1;
/// The only association of a channel, and the number of its first packet.
const ASSOCIATION: u8 = 0;
const FIRST_PACKET: u32 = 1;

/// What a MACsec device has encrypted and decrypted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct MacsecTraffic {
    /// Frames that were sent encrypted.
    pub encrypted_packets: u64,
    /// Their bytes.
    pub encrypted_bytes: u64,
    /// Frames that were received, decrypted and found unchanged.
    pub decrypted_packets: u64,
    /// Their bytes.
    pub decrypted_bytes: u64,
}

impl Handle {
    /// Gives a MACsec device the key that it encrypts with, and that of another station, by its Ethernet address.
    ///
    /// # Errors
    /// [`Error::Missing`] if there is no such device, [`Error::Unsupported`] if the kernel has no MACsec.
    pub fn key_macsec(
        &self,
        device: &str,
        own: MacsecKey,
        (other, others): ([u8; 6], MacsecKey),
    ) -> Result<()> {
        let what = format!("give `{device}` a key");
        let index = self.index_for(&what, device)?;
        let channel = DefaultNla::new(RXSC_SCI, channel_of(other).to_vec());
        let opened = nested(RXSC, &[channel.clone(), byte(RXSC_ACTIVE, 1)]);
        let requests = [
            (ADD_TXSA, vec![association(own)]),
            (ADD_RXSC, vec![opened]),
            (
                ADD_RXSA,
                vec![nested(RXSC, &[channel]), association(others)],
            ),
        ];
        for (command, attributes) in requests {
            let message = Message::of(command, index, attributes);
            self.with_family(FAMILY, &what, device, |family| family.request(message))?;
        }
        Ok(())
    }

    /// What a MACsec device has encrypted and decrypted.
    ///
    /// # Errors
    /// As [`Handle::key_macsec`].
    pub fn macsec_traffic(&self, device: &str) -> Result<MacsecTraffic> {
        let what = format!("read what `{device}` has encrypted");
        let index = self.index_for(&what, device)?;
        let message = Message::of(GET_TXSC, index, Vec::new());
        let answers = self.with_family(FAMILY, &what, device, |family| family.dump(message))?;
        let mut answers = answers.iter().filter_map(|answer| answer.get(GENLMSGHDR..));
        let own = |answer: &&[u8]| {
            attribute(answer, 0, IFINDEX).and_then(|value| u32_at(value, 0)) == Some(index)
        };
        let found = answers.find(own).map(traffic);
        found.ok_or_else(|| missing_device(&what, device))
    }
}

/// Whether this kernel has MACsec and takes keys for it from this process: makes a device in a throw-away namespace and
/// gives it a key. To make one, root of a user namespace is enough; for keys it is not.
///
/// # Errors
/// [`Error::Unsupported`] if it has not, or does not; [`Error::Denied`] for one that cannot make namespaces at all.
pub fn probe_macsec() -> Result<()> {
    const DEVICE: &str = "probe";
    let handle = Handle::new(&NetNs::create()?)?;
    let lower = "lower".to_owned();
    handle.add_link(&NewLink::new(&lower, LinkKind::veth("other", None)))?;
    handle.add_link(&NewLink::new(
        DEVICE,
        LinkKind::Macsec {
            lower: lower.clone(),
        },
    ))?;
    let other = [2, 0, 0, 0, 0, 1];
    handle
        .key_macsec(DEVICE, [1; 16], (other, [2; 16]))
        .map_err(no_keys)
}

/// Why a device takes no key, where this host or this process lacks something for it.
fn no_keys(error: Error) -> Error {
    match error {
        // The commands that change something are of `GENL_ADMIN_PERM`.
        Error::Denied { what } => Error::Unsupported {
            what,
            feature: "unprivileged MACsec".to_owned(),
            remedy: "run as root of the first user namespace, since the kernel takes keys of MACsec from nobody else"
                .to_owned(),
        },
        // No such cipher (`macsec_alloc_tfm`).
        Error::Kernel { what, source, .. } if source.raw_os_error() == Some(libc::ENOENT) => {
            Error::Unsupported {
                what,
                feature: "AES-GCM".to_owned(),
                remedy: "load module `gcm` (kernel option CONFIG_CRYPTO_GCM)".to_owned(),
            }
        }
        other => other,
    }
}

/// The identifier of the channel that a station sends by: its address and the port.
fn channel_of(address: [u8; 6]) -> [u8; 8] {
    let [a, b, c, d, e, f] = address;
    let [high, low] = PORT.to_be_bytes();
    [a, b, c, d, e, f, high, low]
}

fn association(key: MacsecKey) -> DefaultNla {
    let number = DefaultNla::new(SA_PN, FIRST_PACKET.to_ne_bytes().to_vec());
    // The identifier tells keys apart for who exchanges them, which nobody does here.
    let identifier = DefaultNla::new(SA_KEYID, vec![0; 16]);
    let key = DefaultNla::new(SA_KEY, key.to_vec());
    let of_sa = [
        byte(SA_AN, ASSOCIATION),
        byte(SA_ACTIVE, 1),
        number,
        key,
        identifier,
    ];
    nested(SA, &of_sa)
}

fn byte(kind: u16, value: u8) -> DefaultNla {
    DefaultNla::new(kind, vec![value])
}

/// What the attributes of an answer say of one device.
fn traffic(answer: &[u8]) -> MacsecTraffic {
    let count = |stats: &[u8], kind| {
        let value = attribute(stats, 0, kind);
        value.and_then(|value| u64_at(value, 0)).unwrap_or(0)
    };
    let out = attribute(answer, 0, TXSC_STATS).unwrap_or_default();
    let mut traffic = MacsecTraffic {
        encrypted_packets: count(out, OUT_PACKETS_ENCRYPTED),
        encrypted_bytes: count(out, OUT_BYTES_ENCRYPTED),
        ..MacsecTraffic::default()
    };
    let channels = attribute(answer, 0, RXSC_LIST).unwrap_or_default();
    for (_, channel) in attributes(channels, 0) {
        let stats = attribute(channel, 0, RXSC_STATS).unwrap_or_default();
        traffic.decrypted_packets += count(stats, IN_PACKETS_OK);
        traffic.decrypted_bytes += count(stats, IN_BYTES_DECRYPTED);
    }
    traffic
}

/// A request about a device.
#[derive(Debug, Clone)]
struct Message {
    command: u8,
    attributes: Vec<DefaultNla>,
}

impl Message {
    fn of(command: u8, index: u32, mut attributes: Vec<DefaultNla>) -> Self {
        attributes.insert(0, DefaultNla::new(IFINDEX, index.to_ne_bytes().to_vec()));
        Self {
            command,
            attributes,
        }
    }
}

impl GenlFamily for Message {
    fn family_name() -> &'static str {
        FAMILY
    }

    fn command(&self) -> u8 {
        self.command
    }

    fn version(&self) -> u8 {
        1
    }
}

impl Emitable for Message {
    fn buffer_len(&self) -> usize {
        self.attributes.as_slice().buffer_len()
    }

    fn emit(&self, buffer: &mut [u8]) {
        self.attributes.as_slice().emit(buffer);
    }
}

#[cfg(test)]
mod tests {
    use std::io;

    use super::*;

    /// Either this kernel takes keys, or the error says what it lacks.
    #[test]
    fn a_kernel_takes_keys_or_says_what_it_lacks() {
        if let Err(error) = probe_macsec() {
            assert!(error.is_unsupported(), "{error}");
        }
    }

    #[test]
    fn a_refused_key_is_something_that_is_lacking() {
        let refused = |errno| {
            let error = Error::from_io("give `x` a key", io::Error::from_raw_os_error(errno));
            no_keys(error)
        };
        for (errno, reason) in [
            (libc::EPERM, "first user namespace"),
            (libc::ENOENT, "CONFIG_CRYPTO_GCM"),
        ] {
            let error = refused(errno);
            assert!(error.is_unsupported(), "{error}");
            assert!(error.to_string().contains(reason), "{error}");
        }
        assert_eq!(refused(libc::EBUSY).errno(), Some(libc::EBUSY));
    }

    #[test]
    fn an_association_holds_its_key() {
        let message = Message::of(ADD_TXSA, 7, vec![association([9; 16])]);
        let mut bytes = vec![0; message.buffer_len()];
        message.emit(&mut bytes);
        let index = attribute(&bytes, 0, IFINDEX).unwrap();
        assert_eq!(u32_at(index, 0), Some(7));
        let association = attribute(&bytes, 0, SA).unwrap();
        assert_eq!(attribute(association, 0, SA_KEY), Some(&[9; 16][..]));
        assert_eq!(attribute(association, 0, SA_ACTIVE), Some(&[1][..]));
        let first = attribute(association, 0, SA_PN).unwrap();
        assert_eq!(u32_at(first, 0), Some(1));
    }

    #[test]
    fn a_channel_is_an_address_and_a_port() {
        assert_eq!(channel_of([2, 3, 4, 5, 6, 7]), [2, 3, 4, 5, 6, 7, 0, 1]);
    }

    #[test]
    fn what_was_encrypted_is_added_up_over_channels() {
        let count = |kind: u16, value: u64| DefaultNla::new(kind, value.to_ne_bytes().to_vec());
        let channel = |packets| {
            let stats = nested(
                RXSC_STATS,
                &[
                    count(IN_PACKETS_OK, packets),
                    count(IN_BYTES_DECRYPTED, 100),
                ],
            );
            nested(1, &[stats])
        };
        let answer = [
            nested(
                TXSC_STATS,
                &[
                    count(OUT_PACKETS_ENCRYPTED, 5),
                    count(OUT_BYTES_ENCRYPTED, 500),
                ],
            ),
            nested(RXSC_LIST, &[channel(2), channel(3)]),
        ];
        let mut bytes = vec![0; answer.as_slice().buffer_len()];
        answer.as_slice().emit(&mut bytes);
        let expected = MacsecTraffic {
            encrypted_packets: 5,
            encrypted_bytes: 500,
            decrypted_packets: 5,
            decrypted_bytes: 200,
        };
        assert_eq!(traffic(&bytes), expected);
        assert_eq!(traffic(&bytes[..9]), MacsecTraffic::default());
    }
}
