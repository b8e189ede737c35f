//! Netlink sockets: one request, all its answers.

use std::cell::Cell;
use std::io;
use std::thread;
use std::time::Duration;

use netlink_packet_core::{
    NLM_F_ACK, NLM_F_DUMP, NLM_F_DUMP_INTR, NLM_F_REQUEST, NetlinkHeader, NetlinkMessage,
    NetlinkPayload, NetlinkSerializable,
};
use netlink_sys::{Socket, SocketAddr};

use crate::attrs::{attribute, text, u16_at, u32_at};

const HEADER: usize = 16;
const NLMSG_ERROR: u16 = 2;
const NLMSG_DONE: u16 = 3;
const NLM_F_CAPPED: u16 = 0x100;
const NLM_F_ACK_TLVS: u16 = 0x200;
const NLMSGERR_ATTR_MSG: u16 = 1;
/// The kernel's largest dump buffer is 32 KiB (`netlink_recvmsg`).
const BUFFER: usize = 64 * 1024;
thread_local! {
    /// Where answers are read into. One for each thread: a thousand namespaces have a socket each, and to take memory for every
    /// answer costs more than to read it.
    static ANSWER: Cell<Vec<u8>> = const { Cell::new(Vec::new()) };
}

/// How often a dump that was overtaken by a change is taken again.
const DUMP_ATTEMPTS: u64 = 16;

/// A refusal of the kernel: its error number and, where it gave one, its text.
#[derive(Debug)]
pub(crate) struct Refusal {
    pub(crate) error: io::Error,
    pub(crate) detail: Option<String>,
}

impl Refusal {
    pub(crate) fn errno(&self) -> i32 {
        self.error.raw_os_error().unwrap_or(0)
    }
}

impl From<io::Error> for Refusal {
    fn from(error: io::Error) -> Self {
        Self {
            error,
            detail: None,
        }
    }
}

/// A socket bound to the namespace of the thread that opened it, usable from any thread.
pub(crate) struct Netlink {
    socket: Socket,
    sequence: u32,
}

impl Netlink {
    /// Opens the socket in the namespace of the calling thread.
    ///
    /// `protocol` is of [`netlink_sys::protocols`].
    pub(crate) fn open(protocol: isize) -> io::Result<Self> {
        let mut socket = Socket::new(protocol)?;
        socket.bind_auto()?;
        socket.connect(&SocketAddr::new(0, 0))?;
        socket.set_ext_ack(true)?;
        socket.set_cap_ack(true)?;
        Ok(Self {
            socket,
            sequence: 0,
        })
    }

    /// Sends one request, waits for its acknowledgement and returns what came before it.
    pub(crate) fn request(
        &mut self,
        message: impl NetlinkSerializable,
        flags: u16,
    ) -> Result<Vec<Vec<u8>>, Refusal> {
        self.send(message, flags | NLM_F_ACK)?;
        let mut replies = Vec::new();
        self.receive(|one| replies.push(one.to_vec()))?;
        Ok(replies)
    }

    /// Sends one dump request and returns a consistent list of answers.
    pub(crate) fn dump<M: NetlinkSerializable + Clone>(
        &mut self,
        message: &M,
    ) -> Result<Vec<Vec<u8>>, Refusal> {
        self.dump_into(message, |all: &mut Vec<Vec<u8>>, one| {
            all.push(one.to_vec());
        })
    }

    /// Sends one dump request and `add`s up its answers, which are consistent.
    fn dump_into<M: NetlinkSerializable + Clone, A: Default>(
        &mut self,
        message: &M,
        add: impl Fn(&mut A, &[u8]),
    ) -> Result<A, Refusal> {
        for attempt in 0..DUMP_ATTEMPTS {
            self.send(message.clone(), NLM_F_DUMP)?;
            let mut sum = A::default();
            let interrupted = self.receive(|one| add(&mut sum, one))?;
            if !interrupted {
                return Ok(sum);
            }
            // Others change what is listed, and may do so for a while.
            thread::sleep(Duration::from_millis(attempt));
        }
        Err(io::Error::from_raw_os_error(libc::EAGAIN).into())
    }

    /// As [`Self::dump_into`], of what header and attributes of the message say (`NETLINK_GET_STRICT_CHK`, Linux 4.20). An older kernel
    /// gives all.
    pub(crate) fn dump_filtered_into<M: NetlinkSerializable + Clone, A: Default>(
        &mut self,
        message: &M,
        add: impl Fn(&mut A, &[u8]),
    ) -> Result<A, Refusal> {
        let is_strict = self.socket.set_netlink_get_strict_chk(true).is_ok();
        let sum = self.dump_into(message, add);
        // Other lists are asked for with headers that the kernel refuses then.
        if is_strict {
            self.socket.set_netlink_get_strict_chk(false)?;
        }
        sum
    }

    fn send(&mut self, message: impl NetlinkSerializable, flags: u16) -> io::Result<()> {
        self.sequence = self.sequence.wrapping_add(1).max(1);
        let payload = NetlinkPayload::InnerMessage(message);
        let mut packet = NetlinkMessage::new(NetlinkHeader::default(), payload);
        packet.header.flags = flags | NLM_F_REQUEST;
        packet.header.sequence_number = self.sequence;
        packet.finalize();
        let mut bytes = vec![0; packet.buffer_len()];
        packet.serialize(&mut bytes);
        retry(|| self.socket.send(&bytes, 0))?;
        Ok(())
    }

    /// Gives each answer to `take`, and says whether somebody changed meanwhile what is listed.
    fn receive(&mut self, take: impl FnMut(&[u8])) -> Result<bool, Refusal> {
        let mut buffer = ANSWER.take();
        buffer.reserve(BUFFER);
        let received = self.receive_into(&mut buffer, take);
        buffer.clear();
        ANSWER.set(buffer);
        received
    }

    fn receive_into(
        &mut self,
        buffer: &mut Vec<u8>,
        mut take: impl FnMut(&[u8]),
    ) -> Result<bool, Refusal> {
        let mut interrupted = false;
        loop {
            buffer.clear();
            let length = retry(|| self.socket.recv(buffer, libc::MSG_TRUNC))?;
            if length > buffer.len() {
                return Err(io::Error::from_raw_os_error(libc::EMSGSIZE).into());
            }
            let mut rest = buffer.as_slice();
            while let Some(message) = Message::first(rest) {
                rest = rest
                    .get(message.length.next_multiple_of(4)..)
                    .unwrap_or_default();
                if message.sequence != self.sequence {
                    continue;
                }
                interrupted |= message.flags & NLM_F_DUMP_INTR != 0 && message.kind != NLMSG_ERROR;
                match message.kind {
                    NLMSG_ERROR | NLMSG_DONE => {
                        return match message.refusal() {
                            Some(refusal) => Err(refusal),
                            None => Ok(interrupted),
                        };
                    }
                    _ => take(message.payload),
                }
            }
        }
    }
}

struct Message<'a> {
    length: usize,
    kind: u16,
    flags: u16,
    sequence: u32,
    payload: &'a [u8],
}

impl<'a> Message<'a> {
    fn first(bytes: &'a [u8]) -> Option<Self> {
        let length = usize::try_from(u32_at(bytes, 0)?).ok()?;
        Some(Self {
            length,
            kind: u16_at(bytes, 4)?,
            flags: u16_at(bytes, 6)?,
            sequence: u32_at(bytes, 8)?,
            payload: bytes.get(HEADER..length)?,
        })
    }

    /// The error in an `NLMSG_ERROR` or `NLMSG_DONE`, `None` when it is an acknowledgement.
    fn refusal(&self) -> Option<Refusal> {
        let code = u32_at(self.payload, 0).map_or(0, u32::cast_signed);
        if code == 0 {
            return None;
        }
        let tlvs = match (self.kind, self.flags & NLM_F_CAPPED != 0) {
            (NLMSG_DONE, _) => 4,
            (_, true) => 4 + HEADER,
            (_, false) => {
                4 + usize::try_from(u32_at(self.payload, 4)?)
                    .ok()?
                    .next_multiple_of(4)
            }
        };
        let detail = (self.flags & NLM_F_ACK_TLVS != 0)
            .then(|| attribute(self.payload, tlvs, NLMSGERR_ATTR_MSG).map(text))
            .flatten();
        Some(Refusal {
            error: io::Error::from_raw_os_error(code.saturating_neg()),
            detail,
        })
    }
}

fn retry<T>(mut call: impl FnMut() -> io::Result<T>) -> io::Result<T> {
    loop {
        match call() {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            other => return other,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_message_yields_number_and_text() {
        let mut bytes = Vec::new();
        let tlv = b"no way\0\0";
        let length = u32::try_from(HEADER + 4 + HEADER + 4 + tlv.len()).unwrap();
        bytes.extend(length.to_ne_bytes());
        bytes.extend(NLMSG_ERROR.to_ne_bytes());
        bytes.extend((NLM_F_CAPPED | NLM_F_ACK_TLVS).to_ne_bytes());
        bytes.extend(9u32.to_ne_bytes());
        bytes.extend(0u32.to_ne_bytes());
        bytes.extend((-libc::EBUSY).to_ne_bytes());
        bytes.extend([0; HEADER]);
        bytes.extend(12u16.to_ne_bytes());
        bytes.extend(NLMSGERR_ATTR_MSG.to_ne_bytes());
        bytes.extend(tlv);
        let refusal = Message::first(&bytes)
            .and_then(|message| message.refusal())
            .unwrap();
        assert_eq!(refusal.errno(), libc::EBUSY);
        assert_eq!(refusal.detail.as_deref(), Some("no way"));
        assert!(Message::first(&bytes[..20]).is_none());
    }
}
