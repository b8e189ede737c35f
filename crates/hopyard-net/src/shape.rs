//! Shaping a device to a rate with a token bucket (`net/sched/sch_tbf.c`).

mod pauses;

use netlink_packet_core::{DefaultNla, NLM_F_CREATE, NLM_F_REPLACE};
use netlink_packet_route::RouteNetlinkMessage;
use netlink_packet_route::tc::{TcAttribute, TcHandle, TcOption};

use crate::error::{Error, Result};
use crate::handle::{Handle, refused};

pub use pauses::Pauses;

const TCA_TBF_PARMS: u16 = 1;
const TCA_TBF_RATE64: u16 = 4;
const TCA_TBF_PRATE64: u16 = 5;
const TCA_TBF_BURST: u16 = 6;
const TCA_TBF_PBURST: u16 = 7;
const TC_LINKLAYER_ETHERNET: u8 = 1;
/// Bytes of an Ethernet header; with the MTU, the largest frame the bucket must pass.
const ETHERNET_HEADER: u64 = 14;
/// Bytes per second that stand for "at once".
const PEAK: u64 = 1 << 40;

/// The parameters of a token bucket, all in bytes but the rate.
///
/// The rate is kept in the mean over any time; what a window can see too much is one bucket, when it
/// begins after idleness. The bucket holds 1.5 ms of the rate, so a window of 0.3 s is exact to 0.5 %.
/// It cannot be much smaller either: while a packet waits for tokens, a timer that fires late loses
/// what does not fit. Therefore a packet may fill at most half of the bucket, the rest is what late
/// timers may spill into; larger GSO packets are cut to frames first (`tbf_segment`). From 786 Mbit/s
/// upwards a 64 KiB GSO packet with all its headers passes whole.
///
/// Bytes are the qdisc's: each Ethernet frame with its header and without FCS, preamble and gap; a
/// GSO packet counts as its frames (`qdisc_pkt_len_segs_init`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Shape {
    /// Rate of the shaper, bit/s.
    pub rate_bps: u64,
    /// Size of the token bucket, bytes: what may be sent at once after a pause.
    pub burst_bytes: u32,
    /// The largest packet that passes whole.
    pub largest_packet_bytes: u32,
    /// The queue: 15 ms of the rate, at least 256 KiB; what exceeds it is dropped.
    pub limit_bytes: u32,
}

impl Shape {
    /// The bucket for a rate in bit/s on a device with an MTU. At least two frames fit it, so below
    /// 16 Mbit/s (at MTU 1500) windows must be longer than 0.3 s for the same exactness.
    #[must_use]
    pub fn new(rate_bps: u64, mtu: u32) -> Self {
        let rate = rate_bps / 8;
        let frame = u64::from(mtu) + ETHERNET_HEADER;
        let burst = (rate.saturating_mul(3) / 2000).max(2 * frame);
        let limit = (rate.saturating_mul(15) / 1000).max(256 * 1024).max(burst);
        let clamp = |value: u64| u32::try_from(value).unwrap_or(u32::MAX);
        Self {
            rate_bps,
            burst_bytes: clamp(burst),
            largest_packet_bytes: clamp(burst / 2),
            limit_bytes: clamp(limit),
        }
    }
}

impl Handle {
    /// Limits what a device sends to `rate_bps` bit/s, counted as [`Shape`] says, with a root tbf;
    /// replaces a rate set before.
    ///
    /// # Errors
    /// [`Error::Unsupported`] without `sch_tbf`, [`Error::Missing`] for the device,
    /// [`Error::Invalid`] for a rate outside 8 kbit/s to 4 Tbit/s.
    pub fn shape(&self, name: &str, rate_bps: u64) -> Result<Shape> {
        let what = format!("shape `{name}` to {rate_bps} bit/s");
        if !(8_000..=4_000_000_000_000).contains(&rate_bps) {
            return Err(Error::invalid(
                what,
                "the rate must be between 8 kbit/s and 4 Tbit/s",
            ));
        }
        let link = self.link(name)?;
        let shape = Shape::new(rate_bps, link.mtu);
        self.set_tbf(what, name, &shape, None)?;
        Ok(shape)
    }

    /// Makes a token bucket the root queueing discipline, with a size table if one is given.
    fn set_tbf(
        &self,
        what: String,
        name: &str,
        shape: &Shape,
        table: Option<TcAttribute>,
    ) -> Result<()> {
        let mut message = self.tc_message(&what, name, TcHandle::ROOT)?;
        message.header.handle = TcHandle { major: 1, minor: 0 };
        message.attributes = vec![
            TcAttribute::Kind("tbf".into()),
            TcAttribute::Options(options(shape)),
        ];
        message.attributes.extend(table);
        let message = RouteNetlinkMessage::NewQueueDiscipline(message);
        match self.request(message, NLM_F_CREATE | NLM_F_REPLACE) {
            Ok(_) => Ok(()),
            Err(refusal) if refusal.errno() == libc::ENOENT => Err(Error::Unsupported {
                what,
                feature: "tbf".into(),
                remedy: "load module `sch_tbf` (kernel option CONFIG_NET_SCH_TBF)".into(),
            }),
            Err(refusal) => Err(refused(&what, refusal)),
        }
    }

    /// Removes the root queueing discipline; the device's default takes its place.
    ///
    /// # Errors
    /// [`Error::Missing`] for the device, [`Error::Kernel`] (`ENOENT`) where there is nothing to remove.
    pub fn unshape(&self, name: &str) -> Result<()> {
        let what = format!("remove the rate of `{name}`");
        let message = self.tc_message(&what, name, TcHandle::ROOT)?;
        self.ask(
            &what,
            name,
            RouteNetlinkMessage::DelQueueDiscipline(message),
            0,
        )
        .map(drop)
    }
}

/// Rate and bucket go in the 64-bit attributes; `struct tc_tbf_qopt` carries the limit. Stating the
/// link layer spares the rate table, which the kernel only reads to guess it. A peak rate is set for
/// its side effect: its bucket limits the packets that pass whole, apart from the bucket itself. None is set where no packet is
/// to be cut.
fn options(shape: &Shape) -> Vec<TcOption> {
    let rate = shape.rate_bps / 8;
    let narrow = |rate: u64| u32::try_from(rate).unwrap_or(u32::MAX);
    let mut parms = Vec::with_capacity(36);
    let peak = if shape.largest_packet_bytes > 0 {
        PEAK
    } else {
        0
    };
    parms.extend(ratespec(narrow(rate)));
    parms.extend(ratespec(narrow(peak)));
    parms.extend(shape.limit_bytes.to_ne_bytes());
    parms.extend([0; 8]);
    let option = |kind: u16, value: Vec<u8>| TcOption::Other(DefaultNla::new(kind, value));
    let mut options = vec![
        option(TCA_TBF_PARMS, parms),
        option(TCA_TBF_BURST, shape.burst_bytes.to_ne_bytes().to_vec()),
        option(TCA_TBF_RATE64, rate.to_ne_bytes().to_vec()),
    ];
    if peak > 0 {
        let largest = shape.largest_packet_bytes.to_ne_bytes();
        options.push(option(TCA_TBF_PBURST, largest.to_vec()));
        options.push(option(TCA_TBF_PRATE64, peak.to_ne_bytes().to_vec()));
    }
    options
}

/// `struct tc_ratespec`: cell_log, linklayer, overhead, cell_align, mpu, rate.
fn ratespec(rate: u32) -> [u8; 12] {
    let mut spec = [0; 12];
    spec[1] = TC_LINKLAYER_ETHERNET;
    spec[8..].copy_from_slice(&rate.to_ne_bytes());
    spec
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_are_exact_and_pass_what_they_can() {
        for rate_bps in [
            20_000_000,
            100_000_000,
            1_000_000_000,
            10_000_000_000,
            100_000_000_000,
        ] {
            let shape = Shape::new(rate_bps, 1500);
            let window_bytes = rate_bps / 8 * 3 / 10;
            assert!(
                u64::from(shape.burst_bytes) * 200 <= window_bytes,
                "{shape:?}"
            );
            assert!(shape.largest_packet_bytes >= 1514 && shape.limit_bytes >= 256 * 1024);
        }
        // 45 segments of 1448 bytes with 66 bytes of headers each.
        assert!(Shape::new(1_000_000_000, 1500).largest_packet_bytes > 45 * (1448 + 66));
        assert_eq!(Shape::new(1_000_000, 1500).burst_bytes, 2 * 1514);
        assert!(Shape::new(100_000_000, 9000).largest_packet_bytes >= 9014);
    }
}
