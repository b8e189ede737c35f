//! IPsec without a key daemon: states and policies of ESP as `ip xfrm` makes them (`include/uapi/linux/xfrm.h`).

use std::net::IpAddr;

use netlink_packet_core::{NLM_F_CREATE, NLM_F_EXCL};
use netlink_packet_xfrm::policy::ModifyMessage as PolicyMessage;
use netlink_packet_xfrm::state::{GetDumpMessage, ModifyMessage as StateMessage};
use netlink_packet_xfrm::{
    Address, AlgAead, IPPROTO_ESP, UserPolicyInfo, UserSaInfo, UserTemplate,
    XFRM_ALG_AEAD_NAME_LEN, XFRM_MODE_TRANSPORT, XFRM_MODE_TUNNEL, XFRM_POLICY_IN, XFRM_POLICY_OUT,
    XfrmAttrs, XfrmMessage,
};
use netlink_sys::protocols::NETLINK_XFRM;

use crate::error::{Error, Result};
use crate::handle::{Handle, refused};
use crate::netlink::{Netlink, Refusal};
use crate::netns::NetNs;

/// AES-128-GCM as RFC 4106 has it: its name in the kernel, and the length of its tag, bits.
const CIPHER: &str = "rfc4106(gcm(aes))";
const TAG_BITS: u32 = 128;
/// Packets that may come late; what key daemons ask for.
const REPLAY_WINDOW: u8 = 32;
/// The state is for packets of both IP versions (`XFRM_STATE_AF_UNSPEC`).
const ANY_FAMILY: u8 = 32;

/// A key of AES-128, and the salt of RFC 4106.
pub type EspKey = [u8; 20];

/// What ESP (RFC 4303) encrypts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EspMode {
    /// What follows the IP header.
    Transport,
    /// Whole packets, which get another IP header.
    Tunnel,
}

impl EspMode {
    fn number(self) -> u8 {
        match self {
            Self::Transport => XFRM_MODE_TRANSPORT,
            Self::Tunnel => XFRM_MODE_TUNNEL,
        }
    }
}

/// How packets are encrypted in one direction. Both hosts have it.
#[derive(Debug, Clone, Copy)]
pub struct EspState {
    /// Source address of what is sent.
    pub from: IpAddr,
    /// Destination address of what is sent.
    pub to: IpAddr,
    /// Number by which the receiver finds it.
    pub spi: u32,
    /// The key.
    pub key: EspKey,
    /// What is encrypted.
    pub mode: EspMode,
}

/// Which packets a policy is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EspDirection {
    /// Those that this host gets: others than encrypted ones are dropped.
    In,
    /// Those that it sends.
    Out,
}

/// What a state has encrypted or decrypted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EspTraffic {
    /// See [`EspState::to`].
    pub to: IpAddr,
    /// Packets since it was made.
    pub packets: u64,
    /// Their bytes.
    pub bytes: u64,
}

impl Handle {
    /// Makes a state.
    ///
    /// # Errors
    /// [`Error::Unsupported`] if the kernel has no ESP or lacks the cipher; [`Error::Kernel`] (`EEXIST`) if there is one.
    pub fn add_esp_state(&self, state: &EspState) -> Result<()> {
        let mut info = UserSaInfo {
            mode: state.mode.number(),
            replay_window: REPLAY_WINDOW,
            ..UserSaInfo::default()
        };
        if state.mode == EspMode::Tunnel {
            info.flags = ANY_FAMILY;
        }
        info.source(&state.from);
        info.destination(&state.to);
        info.id.spi = state.spi;
        info.id.proto = IPPROTO_ESP;
        let mut name = [0; XFRM_ALG_AEAD_NAME_LEN];
        name[..CIPHER.len()].copy_from_slice(CIPHER.as_bytes());
        let cipher = AlgAead {
            alg_name: name,
            alg_key_len: u32::try_from(8 * state.key.len()).unwrap_or(0),
            alg_icv_len: TAG_BITS,
            alg_key: state.key.to_vec(),
        };
        let what = format!("encrypt from {} to {}", state.from, state.to);
        let message = XfrmMessage::AddSa(StateMessage {
            user_sa_info: info,
            nlas: vec![XfrmAttrs::EncryptionAlgAead(cipher)],
        });
        self.with_xfrm(&what, |socket| {
            socket.request(message, NLM_F_CREATE | NLM_F_EXCL)
        })
        .map(drop)
    }

    /// Has packets between two networks pass a state.
    ///
    /// # Errors
    /// As [`Handle::add_esp_state`].
    pub fn add_esp_policy(
        &self,
        direction: EspDirection,
        state: &EspState,
        [from, to]: [(IpAddr, u8); 2],
    ) -> Result<()> {
        let mut info = UserPolicyInfo {
            direction: match direction {
                EspDirection::In => XFRM_POLICY_IN,
                EspDirection::Out => XFRM_POLICY_OUT,
            },
            ..UserPolicyInfo::default()
        };
        info.selector.source_prefix(&from.0, from.1);
        info.selector.destination_prefix(&to.0, to.1);
        let mut template = UserTemplate {
            family: family(state.to),
            saddr: Address::from_ip(&state.from),
            mode: state.mode.number(),
            ..UserTemplate::default()
        };
        template.id.daddr = Address::from_ip(&state.to);
        template.id.proto = IPPROTO_ESP;
        let what = format!("have packets from {} to {} encrypted", from.0, to.0);
        let message = XfrmMessage::AddPolicy(PolicyMessage {
            user_policy_info: info,
            nlas: vec![XfrmAttrs::Template(vec![template])],
        });
        self.with_xfrm(&what, |socket| {
            socket.request(message, NLM_F_CREATE | NLM_F_EXCL)
        })
        .map(drop)
    }

    /// What each state of this namespace has encrypted or decrypted.
    ///
    /// # Errors
    /// [`Error::Unsupported`] if the kernel has no IPsec; [`Error::Reply`] for an answer that is none.
    pub fn esp_traffic(&self) -> Result<Vec<EspTraffic>> {
        let what = "read what was encrypted";
        let message = XfrmMessage::GetDumpSa(GetDumpMessage::default());
        let answers = self.with_xfrm(what, |socket| socket.dump(&message))?;
        let traffic = |answer: &Vec<u8>| {
            let state = UserSaInfo::parse(answer).map_err(|e| Error::Reply {
                what: what.to_owned(),
                why: e.to_string(),
            })?;
            Ok(EspTraffic {
                to: match i32::from(state.family) {
                    libc::AF_INET => state.id.daddr.to_ipv4().into(),
                    _ => state.id.daddr.to_ipv6().into(),
                },
                packets: state.lifetime_cur.packets,
                bytes: state.lifetime_cur.bytes,
            })
        };
        answers.iter().map(traffic).collect()
    }

    /// States and policies are those of the namespace in which the socket was opened.
    fn with_xfrm<T: Send>(
        &self,
        what: &str,
        ask: impl FnOnce(&mut Netlink) -> std::result::Result<T, Refusal> + Send,
    ) -> Result<T> {
        let asked = self.ns().run(|| {
            let mut socket = Netlink::open(NETLINK_XFRM)?;
            ask(&mut socket)
        })?;
        asked.map_err(|refusal| match refusal.errno() {
            // No IPsec, no ESP, no such cipher (`xfrm_add_sa`).
            libc::EPROTONOSUPPORT | libc::ENOENT | libc::ENOSYS => Error::Unsupported {
                what: what.to_owned(),
                feature: "IPsec (ESP with AES-GCM)".to_owned(),
                remedy:
                    "load modules `xfrm_user`, `esp4`, `esp6` and `gcm` (kernel options CONFIG_XFRM_USER, CONFIG_INET_ESP, \
                         CONFIG_INET6_ESP, CONFIG_CRYPTO_GCM)"
                        .to_owned(),
            },
            _ => refused(what, refusal),
        })
    }
}

/// Whether this kernel can encrypt by ESP with AES-GCM, over both IP versions: makes a state of each in a throw-away namespace.
///
/// # Errors
/// [`Error::Unsupported`] if it cannot, [`Error::Denied`] without root.
pub fn probe_esp() -> Result<()> {
    let handle = Handle::new(&NetNs::create()?)?;
    let ends: [[IpAddr; 2]; 2] = [
        [[192, 0, 2, 1].into(), [192, 0, 2, 2].into()],
        [
            [0x2001, 0xdb8, 0, 0, 0, 0, 0, 1].into(),
            [0x2001, 0xdb8, 0, 0, 0, 0, 0, 2].into(),
        ],
    ];
    for [from, to] in ends {
        handle.add_esp_state(&EspState {
            from,
            to,
            spi: 0x100,
            key: [1; 20],
            mode: EspMode::Transport,
        })?;
    }
    Ok(())
}

fn family(ip: IpAddr) -> u16 {
    let family = match ip {
        IpAddr::V4(_) => libc::AF_INET,
        IpAddr::V6(_) => libc::AF_INET6,
    };
    u16::try_from(family).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Either this kernel can, and then its states count nothing yet, or the error says what it lacks.
    #[test]
    fn a_kernel_encrypts_or_says_what_it_lacks() {
        let handle = Handle::new(&NetNs::create().unwrap()).unwrap();
        match probe_esp() {
            Ok(()) => assert_eq!(handle.esp_traffic().unwrap(), []),
            Err(error) => assert!(error.is_unsupported(), "{error}"),
        }
    }
}
