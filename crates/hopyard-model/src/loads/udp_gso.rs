//! Datagrams, many for each call (`UDP_SEGMENT`, `UDP_GRO`; `load/loops/segments.rs`).

use super::{End, Load, LoopKind, Pace, Packets, Shape, Shown, udp_stream};
use crate::quantity::BYTES_PER_SKB;

pub(super) const LOAD: Load = Load {
    name: "udp_gso",
    summary: "datagrams, many per call (UDP_SEGMENT), joined on arrival (UDP_GRO)",
    shape: Shape::Stream {
        sender: End::Client,
        // As udp_stream, so that the two can be compared.
        message_bytes: 1400,
        // A call is a burst, so single messages cannot keep a pace.
        pace: Pace::Never,
        numbered: false,
    },
    fits,
    shown: Shown {
        grids: &[BYTES_PER_SKB],
        ..udp_stream::LOAD.shown
    },
    loops: LoopKind::Segments,
    ..udp_stream::LOAD
};

/// The kernel does not fragment what it cuts, so a datagram with its headers must fit the MTU.
fn fits(packets: Packets) -> Result<(), String> {
    let Packets {
        message_bytes,
        mtu_bytes,
        is_ipv6,
    } = packets;
    // IPv4 (RFC 791) or IPv6 (RFC 8200), then UDP (RFC 768).
    let (version, headers) = if is_ipv6 { (6, 40 + 8) } else { (4, 20 + 8) };
    let most = mtu_bytes - headers;
    if message_bytes <= most {
        return Ok(());
    }
    Err(format!(
        "message_size {message_bytes} is too large for udp_gso: its datagrams are not fragmented, so at most {most} bytes at mtu \
         {mtu_bytes} over IPv{version}; choose a smaller message_size or a greater mtu, or load udp_stream"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Axes, Family, LoadKind, Peer};

    #[test]
    fn a_datagram_fits_the_mtu() {
        let of = |size, family, mtu| {
            let mut axes = Axes::default().for_cell(LoadKind::UdpGso, Peer::Local, &[]);
            axes.message_size_bytes = Some(size);
            axes.family = family;
            axes.mtu_bytes = mtu;
            fits(axes.packets())
        };
        assert_eq!(of(1472, Family::V4, 1500), Ok(()));
        assert_eq!(of(8952, Family::V6, 9000), Ok(()));
        assert_eq!(
            of(1453, Family::V6, 1500).unwrap_err(),
            "message_size 1453 is too large for udp_gso: its datagrams are not fragmented, so at most 1452 bytes at mtu \
             1500 over IPv6; choose a smaller message_size or a greater mtu, or load udp_stream"
        );
        assert!(of(1473, Family::V4, 1500).is_err());
    }
}
