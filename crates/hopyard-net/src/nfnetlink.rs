//! Messages of nfnetlink, the netlink of packet filters and connection tracking (include/uapi/linux/netfilter/nfnetlink.h).

use std::io;

use netlink_sys::{Socket, SocketAddr, protocols::NETLINK_NETFILTER};

pub(crate) const REQUEST: u16 = 1;
pub(crate) const ACK: u16 = 4;
pub(crate) const EXCLUSIVE: u16 = 0x200;
pub(crate) const CREATE: u16 = 0x400;
pub(crate) const DUMP: u16 = 0x300;
/// `struct nlmsghdr` and `struct nfgenmsg`, after which attributes begin.
pub(crate) const HEADER: usize = 16 + 4;

const NLMSG_HEADER: usize = 16;
const NLMSG_ERROR: u16 = 2;
const NLMSG_DONE: u16 = 3;
const NLA_NESTED: u16 = 0x8000;
/// `NLM_F_DUMP_INTR`.
const DUMP_INTERRUPTED: u16 = 0x10;
/// How often a dump is begun that others interrupt.
const ATTEMPTS: u32 = 16;
/// The kernel writes at most 32 KiB of a dump at once (net/netlink/af_netlink.c).
const BUFFER: usize = 64 * 1024;

/// A message in the making.
pub(crate) struct Message(Vec<u8>);

impl Message {
    /// A command of a subsystem, about an address family (`AF_INET`, `AF_INET6`; 0 for all).
    pub(crate) fn new(subsystem: u8, command: u8, flags: u16, family: u8) -> Self {
        let mut bytes = vec![0; HEADER];
        let kind = u16::from(subsystem) << 8 | u16::from(command);
        bytes[4..6].copy_from_slice(&kind.to_ne_bytes());
        bytes[6..8].copy_from_slice(&(flags | REQUEST).to_ne_bytes());
        bytes[NLMSG_HEADER] = family;
        Self(bytes)
    }

    pub(crate) fn put(&mut self, kind: u16, value: &[u8]) -> &mut Self {
        let length = u16::try_from(4 + value.len()).unwrap_or(u16::MAX);
        self.0.extend(length.to_ne_bytes());
        self.0.extend(kind.to_ne_bytes());
        self.0.extend(value);
        self.0.resize(self.0.len().next_multiple_of(4), 0);
        self
    }

    /// An attribute that is made of others.
    pub(crate) fn nest(&mut self, kind: u16, fill: impl FnOnce(&mut Self)) -> &mut Self {
        let start = self.0.len();
        self.put(kind | NLA_NESTED, &[]);
        fill(self);
        let length = u16::try_from(self.0.len() - start).unwrap_or(u16::MAX);
        self.0[start..start + 2].copy_from_slice(&length.to_ne_bytes());
        self
    }

    pub(crate) fn done(mut self) -> Vec<u8> {
        let length = u32::try_from(self.0.len()).unwrap_or(u32::MAX);
        self.0[..4].copy_from_slice(&length.to_ne_bytes());
        self.0
    }
}

/// A socket in the namespace of the calling thread.
pub(crate) fn connect() -> io::Result<Socket> {
    let mut socket = Socket::new(NETLINK_NETFILTER)?;
    socket.bind_auto()?;
    socket.connect(&SocketAddr::new(0, 0))?;
    Ok(socket)
}

/// Asks, and hands over each message of the answer, headers included, when the kernel has said which was the last. Asks again where the
/// tables changed meanwhile, so that some of it may be missing.
pub(crate) fn ask(socket: &Socket, request: &[u8], mut each: impl FnMut(&[u8])) -> io::Result<()> {
    for _ in 0..ATTEMPTS {
        let (messages, is_interrupted) = answer(socket, request)?;
        if !is_interrupted {
            messages.iter().for_each(|message| each(message));
            return Ok(());
        }
    }
    Err(io::Error::other(format!(
        "the tables changed during each of {ATTEMPTS} dumps"
    )))
}

/// The messages of an answer; did what they are about change meanwhile?
fn answer(socket: &Socket, request: &[u8]) -> io::Result<(Vec<Vec<u8>>, bool)> {
    socket.send(request, 0)?;
    let mut buffer = Vec::with_capacity(BUFFER);
    let (mut messages, mut is_interrupted) = (Vec::new(), false);
    loop {
        buffer.clear();
        match socket.recv(&mut buffer, 0) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            received => received?,
        };
        let mut rest = &buffer[..];
        while let Some((message, after)) = split(rest) {
            rest = after;
            let of = |at: usize| u16::from_ne_bytes([message[at], message[at + 1]]);
            let kind = of(4);
            is_interrupted |= kind != NLMSG_ERROR && of(6) & DUMP_INTERRUPTED != 0;
            match kind {
                // It has the outcome of the dump, if anything.
                NLMSG_DONE if message.len() < NLMSG_HEADER + 4 => {
                    return Ok((messages, is_interrupted));
                }
                NLMSG_ERROR | NLMSG_DONE => {
                    return outcome(message).map(|()| (messages, is_interrupted));
                }
                _ => messages.push(message.to_vec()),
            }
        }
    }
}

/// The first message of some, and what comes after it.
fn split(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let length = u32::from_ne_bytes(bytes.get(..4)?.try_into().ok()?) as usize;
    let message = bytes.get(..length).filter(|m| m.len() >= NLMSG_HEADER)?;
    let after = bytes.get(length.next_multiple_of(4)..);
    Some((message, after.unwrap_or_default()))
}

/// What an error message says; that there is none is an acknowledgement.
fn outcome(message: &[u8]) -> io::Result<()> {
    let code = message.get(NLMSG_HEADER..NLMSG_HEADER + 4);
    let code = code.and_then(|code| Some(i32::from_ne_bytes(code.try_into().ok()?)));
    match code {
        Some(0) => Ok(()),
        Some(code) => Err(io::Error::from_raw_os_error(code.saturating_neg())),
        None => Err(io::ErrorKind::InvalidData.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::attrs::{attribute, u32_at};

    #[test]
    fn what_is_nested_reads_back() {
        let mut message = Message::new(1, 2, DUMP, 10);
        message.put(3, b"abc").nest(7, |inner| {
            inner.put(9, &5u32.to_ne_bytes());
        });
        let bytes = message.done();
        assert_eq!(bytes.len(), HEADER + 8 + 12);
        assert_eq!(split(&bytes), Some((&bytes[..], &[][..])));
        assert_eq!(bytes[4..6], 0x0102u16.to_ne_bytes());
        assert_eq!(attribute(&bytes, HEADER, 3), Some(&b"abc"[..]));
        let inner = attribute(&bytes, HEADER, 7).unwrap();
        let value = attribute(inner, 0, 9).and_then(|value| u32_at(value, 0));
        assert_eq!(value, Some(5));
    }

    #[test]
    fn what_is_cut_off_is_no_message() {
        assert_eq!(split(&[]), None);
        assert_eq!(split(&[40, 0, 0, 0, 1]), None);
        assert_eq!(split(&[4, 0, 0, 0]), None);
        assert!(outcome(&[0; NLMSG_HEADER]).is_err());
    }
}
