//! The header before each frame: what is left to do on it (`struct virtio_net_hdr`,
//! `include/uapi/linux/virtio_net.h`; virtio 1.3, section 5.1.6).

const F_NEEDS_CSUM: u8 = 1;
const F_DATA_VALID: u8 = 2;
const GSO_NONE: u8 = 0;
const GSO_TCPV4: u8 = 1;
const GSO_UDP: u8 = 3;
const GSO_TCPV6: u8 = 4;
const GSO_UDP_L4: u8 = 5;
const GSO_ECN: u8 = 0x80;

/// Length of the header; a property of the device (`TUNSETVNETHDRSZ`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum VnetHeaderSize {
    /// 10 bytes, `struct virtio_net_hdr`.
    Basic,
    /// 12 bytes, `struct virtio_net_hdr_mrg_rxbuf`, as in virtio 1.0 devices.
    Mergeable,
}

impl VnetHeaderSize {
    /// Its length, bytes.
    #[must_use]
    pub const fn bytes(self) -> usize {
        match self {
            Self::Basic => 10,
            Self::Mergeable => 12,
        }
    }
}

/// State of the frame's checksum.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Checksum {
    /// Unknown: the receiver checks it.
    #[default]
    Unchecked,
    /// It was checked, or never left the machine (`VIRTIO_NET_HDR_F_DATA_VALID`).
    Valid,
    /// Still to be computed (`VIRTIO_NET_HDR_F_NEEDS_CSUM`): the ones' complement sum from `start` to the frame's end
    /// goes to `start + offset`, which already contains the pseudo header's sum.
    Partial {
        /// Offset in the frame, bytes.
        start: u16,
        /// Offset from `start`: 16 for TCP, 6 for UDP.
        offset: u16,
    },
}

/// What a frame is cut into.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum SegmentKind {
    /// TCP over IPv4.
    TcpV4,
    /// TCP over IPv6.
    TcpV6,
    /// UDP datagrams (`VIRTIO_NET_HDR_GSO_UDP_L4`, Linux 6.2).
    Udp,
    /// Fragments of one UDP datagram (`VIRTIO_NET_HDR_GSO_UDP`); Linux still accepts them.
    UdpFragments,
}

/// How a frame will be cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Segmentation {
    /// The protocol of the segments.
    pub kind: SegmentKind,
    /// Payload of each segment, bytes; the kernel refuses 0.
    pub size: u16,
    /// TCP with ECN's "congestion window reduced", which only the first segment then carries.
    pub ecn: bool,
}

/// What is left to do on a frame. The default says: nothing.
///
/// ```
/// use hopyard_tap::{VnetHeader, VnetHeaderSize};
///
/// let header = VnetHeader::parse(&[0; 12], VnetHeaderSize::Mergeable)?;
/// assert_eq!(header, VnetHeader::default());
/// # Ok::<(), hopyard_tap::BadVnetHeader>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct VnetHeader {
    /// Is the checksum complete, checked or still to be computed?
    pub checksum: Checksum,
    /// How the frame is to be cut into segments; `None` for one that is sent whole.
    pub segmentation: Option<Segmentation>,
    /// Bytes of all headers of the frame, a hint (`hdr_len`); the kernel gives what lies in one piece.
    pub header_len: u16,
    /// Buffers the frame takes (`num_buffers`), in a header of [`VnetHeaderSize::Mergeable`]; means
    /// nothing on a device without virtio, where the kernel leaves it 0.
    pub buffers: u16,
}

/// Bytes that are not a valid header.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum BadVnetHeader {
    /// Fewer bytes than its size.
    #[error("a virtio-net header has {wanted} bytes, not {got}")]
    Short {
        /// The expected size.
        wanted: usize,
        /// The number of bytes.
        got: usize,
    },
    /// A flag that was not negotiated.
    #[error("unknown flags {0:#04x} in a virtio-net header")]
    Flags(u8),
    /// A kind of segmentation that was not negotiated.
    #[error("unknown segmentation {0:#04x} in a virtio-net header")]
    Segmentation(u8),
}

impl VnetHeader {
    /// Reads a header from the beginning of `bytes`. Numbers are little-endian, to which this crate sets its devices
    /// (`TUNSETVNETLE`).
    ///
    /// # Errors
    /// [`BadVnetHeader`] if it is too short, or uses something that was not negotiated.
    pub fn parse(bytes: &[u8], size: VnetHeaderSize) -> Result<Self, BadVnetHeader> {
        let wanted = size.bytes();
        let Some(head) = bytes.get(..wanted) else {
            let got = bytes.len();
            return Err(BadVnetHeader::Short { wanted, got });
        };
        let word = |at: usize| u16::from_le_bytes([head[at], head[at + 1]]);
        let checksum = match head[0] {
            0 => Checksum::Unchecked,
            F_DATA_VALID => Checksum::Valid,
            F_NEEDS_CSUM => Checksum::Partial {
                start: word(6),
                offset: word(8),
            },
            flags => return Err(BadVnetHeader::Flags(flags)),
        };
        Ok(Self {
            checksum,
            segmentation: segmentation(head[1], word(4))?,
            header_len: word(2),
            buffers: match size {
                VnetHeaderSize::Basic => 0,
                VnetHeaderSize::Mergeable => word(10),
            },
        })
    }

    /// The header as bytes; the first [`VnetHeaderSize::bytes`] of them count.
    #[must_use]
    pub fn emit(&self) -> [u8; 12] {
        let (flags, start, offset) = match self.checksum {
            Checksum::Unchecked => (0, 0, 0),
            Checksum::Valid => (F_DATA_VALID, 0, 0),
            Checksum::Partial { start, offset } => (F_NEEDS_CSUM, start, offset),
        };
        let (kind, size) = self.segmentation.map_or((GSO_NONE, 0), |cut| {
            (
                cut.kind.number() | if cut.ecn { GSO_ECN } else { 0 },
                cut.size,
            )
        });
        let mut bytes = [0; 12];
        bytes[0] = flags;
        bytes[1] = kind;
        let words = [self.header_len, size, start, offset, self.buffers];
        for (place, word) in bytes[2..].chunks_exact_mut(2).zip(words) {
            place.copy_from_slice(&word.to_le_bytes());
        }
        bytes
    }
}

impl SegmentKind {
    fn number(self) -> u8 {
        match self {
            Self::TcpV4 => GSO_TCPV4,
            Self::TcpV6 => GSO_TCPV6,
            Self::Udp => GSO_UDP_L4,
            Self::UdpFragments => GSO_UDP,
        }
    }
}

fn segmentation(kind: u8, size: u16) -> Result<Option<Segmentation>, BadVnetHeader> {
    let ecn = kind & GSO_ECN != 0;
    let kind = match kind & !GSO_ECN {
        GSO_NONE if !ecn => return Ok(None),
        GSO_TCPV4 => SegmentKind::TcpV4,
        GSO_TCPV6 => SegmentKind::TcpV6,
        GSO_UDP => SegmentKind::UdpFragments,
        GSO_UDP_L4 => SegmentKind::Udp,
        _ => return Err(BadVnetHeader::Segmentation(kind)),
    };
    Ok(Some(Segmentation { kind, size, ecn }))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn checksums() -> impl Strategy<Value = Checksum> {
        prop_oneof![
            Just(Checksum::Unchecked),
            Just(Checksum::Valid),
            any::<(u16, u16)>().prop_map(|(start, offset)| Checksum::Partial { start, offset }),
        ]
    }

    fn segmentations() -> impl Strategy<Value = Option<Segmentation>> {
        let kind = prop_oneof![
            Just(SegmentKind::TcpV4),
            Just(SegmentKind::TcpV6),
            Just(SegmentKind::Udp),
            Just(SegmentKind::UdpFragments),
        ];
        let one = (kind, any::<u16>(), any::<bool>());
        prop::option::of(one.prop_map(|(kind, size, ecn)| Segmentation { kind, size, ecn }))
    }

    proptest! {
        #[test]
        fn what_is_emitted_is_parsed_again(
            checksum in checksums(),
            segmentation in segmentations(),
            header_len: u16,
            buffers: u16,
        ) {
            let header = VnetHeader { checksum, segmentation, header_len, buffers };
            prop_assert_eq!(VnetHeader::parse(&header.emit(), VnetHeaderSize::Mergeable), Ok(header));
            let basic = VnetHeader { buffers: 0, ..header };
            let bytes = header.emit();
            prop_assert_eq!(VnetHeader::parse(&bytes[..10], VnetHeaderSize::Basic), Ok(basic));
        }

        #[test]
        fn any_bytes_are_a_header_or_an_error(bytes in prop::collection::vec(any::<u8>(), 0..16)) {
            for size in [VnetHeaderSize::Basic, VnetHeaderSize::Mergeable] {
                match VnetHeader::parse(&bytes, size) {
                    Ok(header) => prop_assert_eq!(VnetHeader::parse(&header.emit(), size), Ok(header)),
                    Err(BadVnetHeader::Short { .. }) => prop_assert!(bytes.len() < size.bytes()),
                    Err(_) => prop_assert!(bytes.len() >= size.bytes()),
                }
            }
        }
    }

    #[test]
    fn the_bytes_are_those_of_the_kernel() {
        // A TSO4 frame of a tap on Linux 6.18: 66 bytes of headers, MSS 1448, checksum at 34 + 16.
        let bytes = [1, 1, 66, 0, 0xa8, 5, 34, 0, 16, 0];
        let header = VnetHeader::parse(&bytes, VnetHeaderSize::Basic).unwrap();
        assert_eq!(
            header.checksum,
            Checksum::Partial {
                start: 34,
                offset: 16
            }
        );
        let cut = Segmentation {
            kind: SegmentKind::TcpV4,
            size: 1448,
            ecn: false,
        };
        assert_eq!(header.segmentation, Some(cut));
        assert_eq!(header.header_len, 66);
        assert_eq!(header.emit()[..10], bytes);
    }
}
