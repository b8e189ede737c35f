//! Asking which families of generic netlink the kernel speaks, and one of them about wireless devices.

use std::io;

use netlink_sys::{Socket, SocketAddr, protocols::NETLINK_GENERIC};

use crate::attrs::{attribute, u16_at, u32_at};
use crate::error::{Error, Result};

/// The family that knows the others, and its request for one by name (include/uapi/linux/genetlink.h).
const GENL_ID_CTRL: u16 = 0x10;
const CTRL_CMD_GETFAMILY: u8 = 3;
const CTRL_ATTR_FAMILY_ID: u16 = 1;
const CTRL_ATTR_FAMILY_NAME: u16 = 2;
/// The family of wireless devices, its request for one, and what it says of it (include/uapi/linux/nl80211.h).
const NL80211: &str = "nl80211";
const NL80211_CMD_GET_INTERFACE: u8 = 5;
const NL80211_ATTR_IFINDEX: u16 = 3;
const NL80211_ATTR_IFTYPE: u16 = 5;
const NL80211_IFTYPE_STATION: u32 = 2;
const NL80211_IFTYPE_P2P_CLIENT: u32 = 8;
const NLM_F_REQUEST: u16 = 1;
const NLMSG_ERROR: u16 = 2;
/// Of a message and of an attribute.
const HEADER: usize = 16;
const ATTRIBUTE: usize = 4;
/// `struct genlmsghdr`, between the two.
const GENL: usize = 4;
/// Answers about one family take some hundred bytes.
const BUFFER: usize = 16 * 1024;

/// Whether the kernel speaks this family of generic netlink. Asking for it loads its module, if the
/// kernel can.
///
/// # Errors
/// [`Error::Kernel`] where generic netlink itself does not answer, [`Error::Reply`] for an answer that
/// is none.
pub fn has_genl_family(name: &str) -> Result<bool> {
    let what = || format!("look for netlink family `{name}`");
    describe(&what(), &family(name), &[libc::ENOENT]).map(|reply| reply.is_some())
}

/// Whether a device of the calling thread's namespace is a client of a wireless access point, which gets no frames but
/// those to its own address.
///
/// # Errors
/// [`Error::Kernel`] where generic netlink itself does not answer, [`Error::Reply`] for an answer that
/// is none.
pub fn is_wireless_client(index: u32) -> Result<bool> {
    let what = format!("ask whether device {index} is wireless");
    let Some(reply) = describe(&what, &family(NL80211), &[libc::ENOENT])? else {
        return Ok(false);
    };
    let id = attribute(&reply, HEADER + GENL, CTRL_ATTR_FAMILY_ID).and_then(|id| u16_at(id, 0));
    let Some(id) = id else {
        return Err(Error::Reply {
            what,
            why: format!("family `{NL80211}` has no number"),
        });
    };
    let ask = request(
        id,
        NL80211_CMD_GET_INTERFACE,
        NL80211_ATTR_IFINDEX,
        &index.to_ne_bytes(),
    );
    // The kernel says either of a device that is not wireless.
    let reply = describe(&what, &ask, &[libc::ENODEV, libc::EINVAL])?;
    Ok(reply.is_some_and(|reply| is_client(&reply)))
}

/// Is the device that is described a client of an access point?
fn is_client(reply: &[u8]) -> bool {
    let kind = attribute(reply, HEADER + GENL, NL80211_ATTR_IFTYPE).and_then(|v| u32_at(v, 0));
    matches!(
        kind,
        Some(NL80211_IFTYPE_STATION | NL80211_IFTYPE_P2P_CLIENT)
    )
}

/// The answer to a request; `None` where the kernel says with one of these errors that there is no such thing.
fn describe(what: &str, request: &[u8], absent: &[i32]) -> Result<Option<Vec<u8>>> {
    let reply = ask(request).map_err(|error| Error::from_io(what, error))?;
    match errno_of(&reply) {
        Some(0) => Ok(Some(reply)),
        Some(errno) if absent.contains(&errno) => Ok(None),
        Some(errno) => Err(Error::from_io(what, io::Error::from_raw_os_error(errno))),
        None => Err(Error::Reply {
            what: what.to_owned(),
            why: format!("{} bytes are no netlink message", reply.len()),
        }),
    }
}

fn ask(request: &[u8]) -> io::Result<Vec<u8>> {
    let mut socket = Socket::new(NETLINK_GENERIC)?;
    socket.bind_auto()?;
    socket.connect(&SocketAddr::new(0, 0))?;
    socket.send(request, 0)?;
    let mut reply = Vec::with_capacity(BUFFER);
    socket.recv(&mut reply, 0)?;
    Ok(reply)
}

/// Asks for a family by name.
fn family(name: &str) -> Vec<u8> {
    let mut value = name.as_bytes().to_vec();
    value.push(0);
    request(
        GENL_ID_CTRL,
        CTRL_CMD_GETFAMILY,
        CTRL_ATTR_FAMILY_NAME,
        &value,
    )
}

/// nlmsghdr, genlmsghdr and one attribute.
fn request(family: u16, command: u8, kind: u16, content: &[u8]) -> Vec<u8> {
    let value = ATTRIBUTE + content.len();
    let length = HEADER + GENL + value.next_multiple_of(4);
    let mut bytes = Vec::with_capacity(length);
    bytes.extend(u32::try_from(length).unwrap_or(0).to_ne_bytes());
    bytes.extend(family.to_ne_bytes());
    bytes.extend(NLM_F_REQUEST.to_ne_bytes());
    // Sequence number and port: one request, one answer, and the kernel fills in the port.
    bytes.extend([0; 8]);
    bytes.extend([command, 1, 0, 0]);
    bytes.extend(u16::try_from(value).unwrap_or(0).to_ne_bytes());
    bytes.extend(kind.to_ne_bytes());
    bytes.extend(content);
    bytes.resize(length, 0);
    bytes
}

/// The error number of an answer; 0 where it is a family's description.
fn errno_of(reply: &[u8]) -> Option<i32> {
    let kind = u16::from_ne_bytes(reply.get(4..6)?.try_into().ok()?);
    if kind != NLMSG_ERROR {
        return Some(0);
    }
    let code = reply.get(HEADER..HEADER + 4)?.try_into().ok()?;
    i32::from_ne_bytes(code).checked_neg()
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
        let described = |kind: u32| request(99, 7, NL80211_ATTR_IFTYPE, &kind.to_ne_bytes());
        assert!(is_client(&described(NL80211_IFTYPE_STATION)));
        // An access point (3) forwards for its stations.
        assert!(!is_client(&described(3)) && !is_client(&[]));
    }

    #[test]
    fn answers_that_are_none() {
        assert_eq!(errno_of(&[]), None);
        assert_eq!(errno_of(&[0; 6]), Some(0));
        let mut error = vec![0; HEADER];
        error[4..6].copy_from_slice(&NLMSG_ERROR.to_ne_bytes());
        assert_eq!(errno_of(&error), None);
        error.extend((-2i32).to_ne_bytes());
        assert_eq!(errno_of(&error), Some(2));
    }
}
