//! Asking which families of generic netlink the kernel speaks.

use std::io;

use netlink_sys::{Socket, SocketAddr, protocols::NETLINK_GENERIC};

use crate::error::{Error, Result};

/// The family that knows the others, and its request for one by name (include/uapi/linux/genetlink.h).
const GENL_ID_CTRL: u16 = 0x10;
const CTRL_CMD_GETFAMILY: u8 = 3;
const CTRL_ATTR_FAMILY_NAME: u16 = 2;
const NLM_F_REQUEST: u16 = 1;
const NLMSG_ERROR: u16 = 2;
/// Of a message and of an attribute.
const HEADER: usize = 16;
const ATTRIBUTE: usize = 4;
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
    let reply = ask(&request(name)).map_err(|error| Error::from_io(what(), error))?;
    match errno_of(&reply) {
        Some(0) => Ok(true),
        Some(libc::ENOENT) => Ok(false),
        Some(errno) => Err(Error::from_io(what(), io::Error::from_raw_os_error(errno))),
        None => Err(Error::Reply {
            what: what(),
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

/// nlmsghdr, genlmsghdr and the name as the one attribute.
fn request(name: &str) -> Vec<u8> {
    let value = ATTRIBUTE + name.len() + 1;
    let length = HEADER + 4 + value.next_multiple_of(4);
    let mut bytes = Vec::with_capacity(length);
    bytes.extend(u32::try_from(length).unwrap_or(0).to_ne_bytes());
    bytes.extend(GENL_ID_CTRL.to_ne_bytes());
    bytes.extend(NLM_F_REQUEST.to_ne_bytes());
    // Sequence number and port: one request, one answer, and the kernel fills in the port.
    bytes.extend([0; 8]);
    bytes.extend([CTRL_CMD_GETFAMILY, 1, 0, 0]);
    bytes.extend(u16::try_from(value).unwrap_or(0).to_ne_bytes());
    bytes.extend(CTRL_ATTR_FAMILY_NAME.to_ne_bytes());
    bytes.extend(name.as_bytes());
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
