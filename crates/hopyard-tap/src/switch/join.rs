//! Joining frames of one TCP flow into one.
//!
//! [`Join::Packets`] has the rules of the kernel's GRO (`tcp_gro_receive` in `net/ipv4/tcp_offload.c`,
//! `inet_gro_receive`, `ipv6_gro_receive`): the result, resegmented as its header says, gives packets identical to the
//! originals. If a sender's messages are no multiple of its segments, each frame ends with a shorter packet with PSH,
//! and GRO stops there. [`Join::Stream`] continues: TCP is a stream of bytes, in which packet boundaries mean nothing,
//! and PSH marks no record (RFC 9293, section 3.9.1.2). Packets are then at most as long as the originals.
//!
//! Only frames that never left the machine are joined: their checksum is still to be computed, so there is no sum over
//! their bytes. Their headers must also be consistent. All other frames pass unchanged.

use std::ops::Range;

use etherparse::TcpHeaderSlice;
use etherparse::checksum::Sum16BitWords;

use super::Join;
use super::shared::HEADER;
use crate::vnet::{Checksum, SegmentKind, Segmentation, VnetHeader};

/// Offsets in a buffer: the virtio-net header, an Ethernet header without tags, IP.
const ETHERNET: usize = HEADER.bytes();
const ETHER_TYPE: usize = ETHERNET + 12;
const IP: usize = ETHERNET + 14;
/// Offsets in a TCP header (RFC 9293, section 3.1).
const SEQUENCE: usize = 4;
const ACKNOWLEDGEMENT: usize = 8;
const OFFSET: usize = 12;
const FLAGS: usize = 13;
const WINDOW: usize = 14;
const CHECKSUM: usize = 16;
const URGENT: usize = 18;

const FIN: u8 = 0x01;
const PSH: u8 = 0x08;
const ACK: u8 = 0x10;
const ECE: u8 = 0x40;
const TCP: u8 = 6;
/// First byte of an IPv4 header without options.
const V4_BARE: u8 = 0x45;
/// Not a fragment, and fragmentation not allowed (RFC 791, section 3.1).
const V4_WHOLE: u16 = 0x4000;
/// Congestion experienced (RFC 3168, section 5): each packet with this mark counts, so none is joined.
const CE: u8 = 3;
/// The most that the length field of either family holds.
const LONGEST: usize = 65_535;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Family {
    V4,
    V6,
}

impl Family {
    /// For a TCP frame with the shortest IP header of its family and a consistent length.
    fn of(bytes: &[u8]) -> Option<Self> {
        let ip = bytes.get(IP..)?;
        let family = match word(bytes, ETHER_TYPE)? {
            0x0800 => Self::V4,
            0x86dd => Self::V6,
            _ => return None,
        };
        let header = ip.get(..family.header())?;
        let (plain, service) = match family {
            Self::V4 => {
                let sum = || Sum16BitWords::new().add_slice(header).ones_complement();
                let plain = header[0] == V4_BARE && header[9] == TCP;
                let whole = word(header, 6) == Some(V4_WHOLE);
                (plain && whole && sum() == 0, header[1])
            }
            Self::V6 => (header[0] >> 4 == 6 && header[6] == TCP, header[1] >> 4),
        };
        let length = usize::from(word(bytes, family.length_at())?);
        let plain = plain && service & CE != CE && length == ip.len() - family.unmeasured();
        plain.then_some(family)
    }

    fn header(self) -> usize {
        match self {
            Self::V4 => 20,
            Self::V6 => 40,
        }
    }

    fn tcp(self) -> usize {
        IP + self.header()
    }

    fn length_at(self) -> usize {
        match self {
            Self::V4 => IP + 2,
            Self::V6 => IP + 4,
        }
    }

    /// Bytes of the IP header that its length field does not count.
    fn unmeasured(self) -> usize {
        match self {
            Self::V4 => 0,
            Self::V6 => 40,
        }
    }

    fn addresses(self) -> Range<usize> {
        match self {
            Self::V4 => IP + 12..IP + 20,
            Self::V6 => IP + 8..IP + 40,
        }
    }

    fn kind(self) -> SegmentKind {
        match self {
            Self::V4 => SegmentKind::TcpV4,
            Self::V6 => SegmentKind::TcpV6,
        }
    }

    /// The header fields that must be equal in frames of one flow: all before the payload, which begins there, except
    /// lengths, identifications, checksums, sequence numbers and flags.
    fn alike(self, payload: usize) -> [Range<usize>; 6] {
        let tcp = self.tcp();
        let (length, rest) = match self {
            Self::V4 => (IP + 2, [IP + 6..IP + 10, IP + 12..tcp + SEQUENCE]),
            Self::V6 => (IP + 4, [IP + 6..IP + 8, IP + 8..tcp + SEQUENCE]),
        };
        let [middle, addresses] = rest;
        [
            ETHERNET..length,
            middle,
            addresses,
            tcp + ACKNOWLEDGEMENT..tcp + FLAGS,
            tcp + WINDOW..tcp + CHECKSUM,
            tcp + URGENT..payload,
        ]
    }

    /// The sum of the pseudo header, which a frame contains if its checksum is still to be computed (RFC 9293, section
    /// 3.1; RFC 8200, section 8.1).
    fn pseudo(self, bytes: &[u8], segment: usize) -> [u8; 2] {
        // Segments are not longer than 65535 here in either family, whatever the width of the field.
        let length = (segment as u32).to_be_bytes();
        let sum = Sum16BitWords::new()
            .add_slice(&bytes[self.addresses()])
            .add_4bytes(length)
            .add_2bytes([0, TCP])
            .ones_complement();
        (!sum).to_ne_bytes()
    }
}

fn word(bytes: &[u8], at: usize) -> Option<u16> {
    let word = bytes.get(at..at + 2)?;
    Some(u16::from_be_bytes([word[0], word[1]]))
}

/// A frame that may be joined with others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Segment {
    family: Family,
    /// Offset of the payload, and its length.
    payload: usize,
    length: usize,
    /// Payload of each packet that it will be cut into; `None` if it is one packet.
    cut: Option<u16>,
    sequence: u32,
    /// IPv4's identification.
    id: u16,
    flags: u8,
}

impl Segment {
    /// Reads a frame with its virtio-net header; `None` if it is never joined.
    pub(super) fn parse(bytes: &[u8]) -> Option<Self> {
        let family = Family::of(bytes)?;
        let tcp = family.tcp();
        let header = VnetHeader::parse(bytes, HEADER).ok()?;
        let whole_sum = Checksum::Partial {
            start: (tcp - ETHERNET) as u16,
            offset: CHECKSUM as u16,
        };
        let cut = match header.segmentation {
            None => None,
            Some(cut) if cut.kind == family.kind() && !cut.ecn && cut.size > 0 => Some(cut.size),
            Some(_) => return None,
        };
        let head = TcpHeaderSlice::from_slice(&bytes[tcp..]).ok()?;
        let payload = tcp + head.slice().len();
        let flags = head.slice()[FLAGS];
        let reserved = head.slice()[OFFSET] & 0x0f;
        let plain = reserved == 0 && flags & !(PSH | FIN | ECE) == ACK;
        let sum = head.slice()[CHECKSUM..URGENT] == family.pseudo(bytes, bytes.len() - tcp);
        let length = bytes.len().checked_sub(payload)?;
        // A frame that claims to be cut into larger packets than it has payload would let others become longer packets
        // than they were.
        let holds = length > 0 && cut.is_none_or(|size| usize::from(size) <= length);
        let joinable = header.checksum == whole_sum && plain && sum && holds;
        joinable.then_some(Self {
            family,
            payload,
            length,
            cut,
            sequence: head.sequence_number(),
            id: word(bytes, IP + 4).unwrap_or_default(),
            flags,
        })
    }

    /// Payload of each packet.
    fn unit(&self) -> usize {
        self.cut.map_or(self.length, usize::from)
    }

    /// The number of packets.
    fn packets(&self) -> u16 {
        self.length.div_ceil(self.unit()) as u16
    }

    /// Whether more frames can follow it, in packets of this size. Never after the end of the stream; for GRO, neither
    /// after a shorter packet nor after PSH.
    fn goes_on(&self, unit: usize, join: Join) -> bool {
        let whole = self.length.is_multiple_of(unit) && self.flags & PSH == 0;
        self.flags & FIN == 0 && (whole || join == Join::Stream)
    }
}

/// Frames that will become one.
#[derive(Debug)]
pub(super) struct Joint {
    join: Join,
    first: Segment,
    /// Payload of each packet that they will be cut into, and whether one of them must be cut there.
    unit: usize,
    cut: bool,
    /// Sequence number of the next frame.
    sequence: u32,
    id: u16,
    /// Payload of all of them.
    length: usize,
    /// Flags of all of them.
    flags: u8,
    goes_on: bool,
}

impl Joint {
    pub(super) fn new(first: Segment, join: Join) -> Self {
        Self {
            join,
            first,
            unit: first.unit(),
            cut: first.cut.is_some(),
            sequence: first.sequence.wrapping_add(first.length as u32),
            id: first.id.wrapping_add(first.packets()),
            length: first.length,
            flags: first.flags,
            goes_on: first.goes_on(first.unit(), join),
        }
    }

    /// Offset of the payload in each of its frames.
    pub(super) fn payload(&self) -> usize {
        self.first.payload
    }

    /// Adds a frame if it continues this; `first` and `bytes` are the first frame and the new one.
    pub(super) fn add(&mut self, first: &[u8], segment: &Segment, bytes: &[u8]) -> bool {
        let fits = self.goes_on
            && segment.sequence == self.sequence
            && self.same_cut(segment)
            && self.first.payload - IP + self.length + segment.length <= LONGEST
            && self.alike(first, segment, bytes);
        if fits {
            self.sequence = segment.sequence.wrapping_add(segment.length as u32);
            self.id = segment.id.wrapping_add(segment.packets());
            self.length += segment.length;
            self.flags |= segment.flags;
            self.unit = self.unit.max(segment.unit());
            self.cut |= segment.cut.is_some();
            self.goes_on = segment.goes_on(self.unit, self.join);
        }
        fits
    }

    /// Whether it is cut into packets of the same size, or is one packet of at most that size. For a stream, also if
    /// all of these are packets of at most the size that it is cut into.
    fn same_cut(&self, segment: &Segment) -> bool {
        let unit = segment.unit();
        let shorter = segment.cut.is_none() && unit < self.unit;
        let longer = self.join == Join::Stream && !self.cut && unit > self.unit;
        unit == self.unit || shorter || longer
    }

    fn alike(&self, first: &[u8], segment: &Segment, bytes: &[u8]) -> bool {
        let head = &self.first;
        // It counts up, or is constant, as for packets that are never fragmented (RFC 6864, section 4.1).
        let id = head.family == Family::V6 || segment.id == self.id || segment.id == head.id;
        let flags = (head.flags ^ segment.flags) & !(PSH | FIN) == 0;
        let same = |range: Range<usize>| first[range.clone()] == bytes[range];
        let begin = (segment.family, segment.payload) == (head.family, head.payload);
        begin && id && flags && head.family.alike(head.payload).into_iter().all(same)
    }

    /// Turns the headers of the first frame into those of all of them.
    pub(super) fn seal(&self, first: &mut [u8]) {
        let head = &self.first;
        let (family, tcp) = (head.family, head.family.tcp());
        let Ok(header) = VnetHeader::parse(first, HEADER) else {
            return;
        };
        let header = VnetHeader {
            segmentation: Some(Segmentation {
                kind: family.kind(),
                size: self.unit as u16,
                ecn: false,
            }),
            header_len: (head.payload - ETHERNET) as u16,
            ..header
        };
        first[..ETHERNET].copy_from_slice(&header.emit());
        let packet = head.payload - IP + self.length;
        let length = (packet - family.unmeasured()) as u16;
        let length_at = family.length_at();
        first[length_at..length_at + 2].copy_from_slice(&length.to_be_bytes());
        if family == Family::V4 {
            first[IP + 10..IP + 12].fill(0);
            let sum = Sum16BitWords::new().add_slice(&first[IP..tcp]);
            first[IP + 10..IP + 12].copy_from_slice(&sum.ones_complement().to_ne_bytes());
        }
        first[tcp + FLAGS] = self.flags;
        let sum = family.pseudo(first, IP + packet - tcp);
        first[tcp + CHECKSUM..tcp + URGENT].copy_from_slice(&sum);
    }
}

#[cfg(any(test, fuzzing))]
pub(super) mod frames;
#[cfg(test)]
mod tests;
