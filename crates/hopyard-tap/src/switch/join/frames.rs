//! Test frames to join, and checks of the result.

#![expect(clippy::unwrap_used, reason = "what was made here is as it was made")]

use etherparse::{
    Ethernet2Header, IpHeaders, IpNumber, Ipv4Header, Ipv6Header, PacketBuilder, PacketHeaders,
    TcpHeader, TcpOptionElement, TransportHeader,
};

use crate::switch::join::*;

/// A frame to make.
#[derive(Debug, Clone)]
pub(in crate::switch) struct New {
    pub(in crate::switch) v6: bool,
    pub(in crate::switch) id: u16,
    pub(in crate::switch) tcp: TcpHeader,
    pub(in crate::switch) cut: Option<u16>,
    pub(in crate::switch) payload: Vec<u8>,
}

/// A flow whose first frame has 3000 bytes in packets of 1000.
pub(in crate::switch) fn new(v6: bool) -> New {
    let mut tcp = TcpHeader::new(5001, 40_000, 0xffff_fc00, 512);
    tcp.ack = true;
    tcp.acknowledgment_number = 7;
    let times = TcpOptionElement::Timestamp(1, 2);
    tcp.set_options(&[TcpOptionElement::Noop, TcpOptionElement::Noop, times])
        .unwrap();
    New {
        v6,
        id: 65_534,
        tcp,
        cut: Some(1000),
        payload: (0..3000).map(|at: u16| at.to_be_bytes()[1]).collect(),
    }
}

/// Bytes with complete headers and checksums, as a kernel makes them.
fn whole(ip: IpHeaders, tcp: TcpHeader, payload: &[u8]) -> Vec<u8> {
    let builder = PacketBuilder::ethernet2([2; 6], [4; 6]).ip(ip);
    let mut bytes = Vec::new();
    builder.tcp_header(tcp).write(&mut bytes, payload).unwrap();
    bytes
}

/// The ones' complement sum of 16-bit words (RFC 1071).
pub(in crate::switch) fn sum(bytes: &[u8]) -> u16 {
    let words = bytes.chunks(2).map(|pair| {
        let low = pair.get(1).copied().unwrap_or(0);
        u64::from(u16::from_be_bytes([pair[0], low]))
    });
    let mut sum: u64 = words.sum();
    while sum > 0xffff {
        sum = (sum >> 16) + (sum & 0xffff);
    }
    sum as u16
}

impl New {
    /// The next frame of the flow, of the same length.
    pub(in crate::switch) fn next(&self) -> Self {
        let mut next = self.clone();
        next.tcp.sequence_number = self
            .tcp
            .sequence_number
            .wrapping_add(self.payload.len() as u32);
        let unit = self.cut.map_or(self.payload.len(), usize::from);
        next.id = self
            .id
            .wrapping_add(self.payload.len().div_ceil(unit) as u16);
        next
    }

    fn ip(&self) -> IpHeaders {
        if self.v6 {
            let header = Ipv6Header {
                next_header: IpNumber::TCP,
                hop_limit: 64,
                source: [3; 16],
                destination: [5; 16],
                ..Ipv6Header::default()
            };
            return IpHeaders::Ipv6(header, Default::default());
        }
        let mut header =
            Ipv4Header::new(0, 64, IpNumber::TCP, [10, 0, 0, 1], [10, 0, 0, 2]).unwrap();
        header.identification = self.id;
        header.dont_fragment = true;
        IpHeaders::Ipv4(header, Default::default())
    }

    /// The frame as read from a tap.
    pub(in crate::switch) fn frame(&self) -> Vec<u8> {
        let mut bytes = whole(self.ip(), self.tcp.clone(), &self.payload);
        let tcp = if self.v6 { 54 } else { 34 };
        let addresses = if self.v6 { 22..54 } else { 26..34 };
        let length = (bytes.len() - tcp) as u32;
        let pseudo = [&bytes[addresses], &length.to_be_bytes(), &[0, 6]].concat();
        bytes[tcp + 16..tcp + 18].copy_from_slice(&sum(&pseudo).to_be_bytes());
        let header = VnetHeader {
            checksum: Checksum::Partial {
                start: tcp as u16,
                offset: 16,
            },
            segmentation: self.cut.map(|size| Segmentation {
                kind: if self.v6 {
                    SegmentKind::TcpV6
                } else {
                    SegmentKind::TcpV4
                },
                size,
                ecn: false,
            }),
            ..VnetHeader::default()
        };
        [&header.emit()[..], &bytes].concat()
    }
}

/// What a worker writes to a port if it finds these frames together.
pub(in crate::switch) fn joined(frames: &[Vec<u8>], join: Join) -> Vec<Vec<u8>> {
    let mut written: Vec<Vec<u8>> = Vec::new();
    let mut open: Option<(Joint, Vec<u8>, Vec<u8>)> = None;
    let close = |open: &mut Option<(Joint, Vec<u8>, Vec<u8>)>, written: &mut Vec<Vec<u8>>| {
        if let Some((joint, mut first, rest)) = open.take() {
            if !rest.is_empty() {
                joint.seal(&mut first);
            }
            written.push([first, rest].concat());
        }
    };
    for frame in frames {
        let Some(segment) = Segment::parse(frame) else {
            close(&mut open, &mut written);
            written.push(frame.clone());
            continue;
        };
        if let Some((joint, first, rest)) = &mut open
            && joint.add(first, &segment, frame)
        {
            rest.extend(&frame[joint.payload()..]);
            continue;
        }
        close(&mut open, &mut written);
        open = Some((Joint::new(segment, join), frame.clone(), Vec::new()));
    }
    close(&mut open, &mut written);
    written
}

/// The packets that a frame becomes on a wire, cut as `tcp_gso_segment` does, with their checksums. Its headers must be
/// right.
fn packets(frame: &[u8]) -> Vec<Vec<u8>> {
    let (head, bytes) = frame.split_at(HEADER.bytes());
    let header = VnetHeader::parse(head, HEADER).unwrap();
    let parsed = PacketHeaders::from_ethernet_slice(bytes).unwrap();
    let Some(TransportHeader::Tcp(tcp)) = parsed.transport else {
        panic!("no TCP: {parsed:?}");
    };
    let ip: IpHeaders = match parsed.net.unwrap() {
        etherparse::NetHeaders::Ipv4(ip, extensions) => IpHeaders::Ipv4(ip, extensions),
        etherparse::NetHeaders::Ipv6(ip, extensions) => IpHeaders::Ipv6(ip, extensions),
        etherparse::NetHeaders::Arp(_) => panic!("no IP"),
    };
    let payload = parsed.payload.slice();
    let Checksum::Partial { start, offset } = header.checksum else {
        panic!("a checksum that is done");
    };
    let mut done = bytes.to_vec();
    let at = usize::from(start + offset);
    let checksum = !sum(&done[usize::from(start)..]);
    done[at..at + 2].copy_from_slice(&checksum.to_be_bytes());
    assert_eq!(
        done,
        as_sent(&ip, &tcp, &done, payload),
        "lengths and checksums"
    );

    let unit = header
        .segmentation
        .map_or(payload.len(), |cut| usize::from(cut.size));
    let mut pieces = Vec::new();
    for (number, piece) in payload.chunks(unit).enumerate() {
        let (mut ip, mut tcp) = (ip.clone(), tcp.clone());
        if let IpHeaders::Ipv4(ip, _) = &mut ip {
            ip.identification = ip.identification.wrapping_add(number as u16);
        }
        let offset = number * unit;
        tcp.sequence_number = tcp.sequence_number.wrapping_add(offset as u32);
        let last = offset + piece.len() == payload.len();
        (tcp.psh, tcp.fin) = (tcp.psh && last, tcp.fin && last);
        pieces.push(as_sent(&ip, &tcp, bytes, piece));
    }
    pieces
}

fn as_sent(ip: &IpHeaders, tcp: &TcpHeader, bytes: &[u8], payload: &[u8]) -> Vec<u8> {
    let mut whole = whole(ip.clone(), tcp.clone(), payload);
    let ethernet = Ethernet2Header::LEN;
    whole[..ethernet].copy_from_slice(&bytes[..ethernet]);
    whole
}

fn payload(packet: &[u8]) -> &[u8] {
    let parsed = PacketHeaders::from_ethernet_slice(packet).unwrap();
    let length = parsed.payload.slice().len();
    &packet[packet.len() - length..]
}

fn stream(packets: &[Vec<u8>]) -> Vec<u8> {
    packets
        .iter()
        .flat_map(|packet| payload(packet))
        .copied()
        .collect()
}

/// Joins frames, and checks that nothing else changed. Returns how many are left, as packets and as a stream.
pub(in crate::switch) fn check(frames: &[Vec<u8>]) -> [usize; 2] {
    [Join::Packets, Join::Stream].map(|join| check_one(frames, join))
}

fn check_one(frames: &[Vec<u8>], join: Join) -> usize {
    let written = joined(frames, join);
    // A joined frame must equal the originals; every other frame must be unchanged.
    let mut rest = frames;
    for frame in &written {
        if rest.first() == Some(frame) {
            rest = &rest[1..];
            continue;
        }
        let wanted = packets(frame);
        let bytes = stream(&wanted);
        let mut there = Vec::new();
        while stream(&there).len() < bytes.len() {
            there.extend(packets(&rest[0]));
            rest = &rest[1..];
        }
        if join == Join::Packets {
            assert_eq!(there, wanted);
        }
        assert_eq!(stream(&there), bytes);
        let head = |packet: &[u8]| {
            let parsed = PacketHeaders::from_ethernet_slice(packet).unwrap();
            parsed.transport.unwrap().tcp().unwrap()
        };
        let begins = |packets: &[Vec<u8>]| head(&packets[0]).sequence_number;
        assert_eq!(begins(&there), begins(&wanted));
        let longest = |packets: &[Vec<u8>]| packets.iter().map(Vec::len).max();
        assert!(longest(&wanted) <= longest(&there));
        let marks = |mark: fn(&TcpHeader) -> bool| {
            let pushed = there.iter().any(|packet| mark(&head(packet)));
            assert_eq!(pushed, mark(&head(wanted.last().unwrap())));
        };
        marks(|tcp| tcp.psh);
        marks(|tcp| tcp.fin);
    }
    assert!(rest.is_empty());
    written.len()
}
