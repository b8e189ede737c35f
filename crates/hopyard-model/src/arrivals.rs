//! How numbered datagrams arrived: the record of the receiving end of `udp_flood` and `udp_paced`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::counted::{Latency, largest, size};
use super::units::float;

/// Numbered datagrams that the receiving kernel took in during the window.
///
/// Arrival is the kernel's own time stamp (`SO_TIMESTAMPNS`), one-way delay the time from the call that sent a datagram
/// to it. If the two ends have no common clock, everything that needs a delay is absent; if their clocks were compared, but
/// not closely enough, what needs only differences of delays is there.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Arrivals {
    /// Each flow by itself.
    pub flows: Vec<FlowArrivals>,
    /// PDV (RFC 5481): one-way delay minus the least of its flow, all flows together.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pdv: Option<Latency>,
    /// Absolute IPDV (RFC 3393): difference of one-way delay between datagrams with consecutive numbers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ipdv: Option<Latency>,
    /// Time between two arrivals of the same flow.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interarrival: Option<Latency>,
    /// Its standard deviation, ns.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interarrival_sd_ns: Option<f64>,
    /// Rate and jitter over time; absent in samples of older versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub series: Option<ArrivalSeries>,
    /// How late the sender itself was: from when a datagram was due to when it was sent (`udp_paced`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lateness: Option<Latency>,
    /// Runs of consecutive datagrams of one flow in the receiver's queue, if there are several flows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub runs: Option<RunLengths>,
    /// Datagrams for which the receiving sockets had no room.
    pub socket_drops: u64,
    /// CPU time of each of the receiver's threads, ns.
    pub receiver_cpu_ns: Vec<u64>,
}

/// The datagrams that an open loop had to send in the window, or the connections that it had to open, by when they were
/// due.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct OpenLoop {
    /// Datagrams or connections that were due in the window, begun or not.
    pub due: u64,
    /// Those of them that were sent by 5 ms after its end, and arrived before traffic stopped. For connections: those
    /// that ended before it.
    pub arrived: u64,
}

impl OpenLoop {
    /// Share of what was due that did not arrive; `None` if nothing was due. Below 0 where more arrived that was under way when the
    /// window opened.
    #[must_use]
    pub fn loss_ratio(self) -> Option<f64> {
        (self.due > 0).then(|| 1.0 - float(self.arrived) / float(self.due))
    }
}

/// One flow's numbered datagrams.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FlowArrivals {
    /// Datagrams that arrived in the window, each counted once (duplicates not).
    pub packets: u64,
    /// Payload of `packets`, bytes.
    pub bytes: u64,
    /// Numbers below the highest that did not arrive within the window; absent if none arrived, because then nobody knows
    /// what was sent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lost: Option<u64>,
    /// Datagrams that arrived again after their first copy.
    pub duplicates: u64,
    /// Datagrams with a number below one that arrived before (Type-P-Reordered, RFC 4737).
    pub reordered: u64,
    /// When its first datagram arrived, ns before the window opened.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first_before_window_ns: Option<u64>,
    /// Longest time between two arrivals, ns.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub longest_gap_ns: Option<u64>,
    /// Least one-way delay, ns.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delay_min_ns: Option<u64>,
    /// Mean one-way delay, ns.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delay_mean_ns: Option<f64>,
    /// Greatest one-way delay, ns.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delay_max_ns: Option<u64>,
    /// Smallest inter-packet delay variation (RFC 3393), ns; negative if a datagram was faster than the previous one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ipdv_min_ns: Option<i64>,
    /// Largest inter-packet delay variation (RFC 3393), ns.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ipdv_max_ns: Option<i64>,
    /// Smoothed interarrival jitter of RFC 3550, its mean over the window's datagrams, ns.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub jitter_rfc3550_ns: Option<f64>,
}

/// Rate and jitter over the window: equal intervals from its opening on.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ArrivalSeries {
    /// Length of each, ns.
    pub interval_ns: u64,
    /// Traffic before the first interval, ns; 0 if the window opened with the traffic.
    pub before_ns: u64,
    /// Consecutive intervals; a remainder of the window is left out.
    pub intervals: Vec<ArrivalInterval>,
}

/// Datagrams of one interval, all flows together.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ArrivalInterval {
    /// Datagrams that arrived in the interval, each counted once.
    pub packets: u64,
    /// Standard deviation of the time between two arrivals of the same flow, ns.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interarrival_sd_ns: Option<f64>,
    /// Smoothed interarrival jitter of RFC 3550, its mean over the datagrams, ns.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub jitter_rfc3550_ns: Option<f64>,
}

/// A distribution of run lengths, datagrams.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RunLengths {
    /// Runs that ended in the window.
    pub count: u64,
    /// Arithmetic mean, datagrams.
    pub mean: f64,
    /// Longest run, datagrams.
    pub max: u64,
    /// (quantile, datagrams) in rising order.
    pub quantiles: Vec<(f64, u64)>,
}

impl Arrivals {
    /// First copies of all flows.
    #[must_use]
    pub fn packets(&self) -> u64 {
        self.flows.iter().map(|flow| flow.packets).sum()
    }

    /// Payload of [`Arrivals::packets`], bytes.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.flows.iter().map(|flow| flow.bytes).sum()
    }

    /// Mean time from when a datagram was given to the sender's kernel to when the receiver's kernel had it, all flows
    /// together.
    pub(super) fn mean_delay_ns(&self) -> Option<f64> {
        let mut sum = (0.0, 0.0);
        for flow in &self.flows {
            let packets = float(flow.packets);
            if let Some(mean_ns) = flow.delay_mean_ns {
                sum = (sum.0 + mean_ns * packets, sum.1 + packets);
            }
        }
        (sum.1 > 0.0).then(|| sum.0 / sum.1)
    }

    /// Removes the figures that need to know how far the clocks of both ends are apart.
    pub(super) fn forget_delays(&mut self) {
        self.pdv = None;
        for flow in &mut self.flows {
            flow.delay_min_ns = None;
            flow.delay_mean_ns = None;
            flow.delay_max_ns = None;
        }
    }

    /// Removes these, and those that need both clocks to run at the same rate or the sender's times converted to the receiver's clock.
    pub(super) fn forget_instants(&mut self) {
        self.forget_delays();
        self.ipdv = None;
        self.lateness = None;
        for interval in self.series.iter_mut().flat_map(|s| &mut s.intervals) {
            interval.jitter_rfc3550_ns = None;
        }
        for flow in &mut self.flows {
            flow.ipdv_min_ns = None;
            flow.ipdv_max_ns = None;
            flow.jitter_rfc3550_ns = None;
        }
    }

    /// Its lists: name, length, and more than any window has.
    #[must_use]
    pub fn lists(&self) -> [(&'static str, usize, usize); 3] {
        const MOST_CPUS: usize = 8192;
        const MOST_INTERVALS: usize = 1000;
        let series = self.series.as_ref();
        let intervals = series.map_or(0, |series| series.intervals.len());
        [
            ("arrivals", self.flows.len(), crate::MOST_FLOWS as usize),
            ("receiver_cpu_ns", self.receiver_cpu_ns.len(), MOST_CPUS),
            ("series", intervals, MOST_INTERVALS),
        ]
    }

    /// The largest of its counts, to be compared with what is possible.
    #[must_use]
    pub fn largest(&self) -> u64 {
        let flows = self.flows.iter().map(FlowArrivals::largest);
        let times = [&self.pdv, &self.ipdv, &self.interarrival, &self.lateness];
        let counts = times.into_iter().flatten().map(Latency::largest);
        let series = self.series.iter().flat_map(|series| &series.intervals);
        let all = flows
            .chain(counts)
            .chain(series.map(|interval| interval.packets))
            .chain(self.receiver_cpu_ns.iter().copied());
        all.chain([
            self.socket_drops,
            self.runs.as_ref().map_or(0, RunLengths::largest),
        ])
        .max()
        .unwrap_or(0)
    }
}

impl FlowArrivals {
    /// Two windows of a flow combined. Means are weighted by datagrams.
    #[must_use]
    pub fn plus(&self, other: &Self) -> Self {
        let mean = |of: fn(&Self) -> Option<f64>| match (of(self), of(other)) {
            (Some(one), Some(two)) => Some(weighted(one, self.packets, two, other.packets)),
            (one, two) => one.or(two),
        };
        let least = |one: Option<u64>, two: Option<u64>| one.into_iter().chain(two).min();
        let sum =
            |one: Option<u64>, two: Option<u64>| one.into_iter().chain(two).reduce(|a, b| a + b);
        Self {
            packets: self.packets + other.packets,
            bytes: self.bytes + other.bytes,
            lost: sum(self.lost, other.lost),
            duplicates: self.duplicates + other.duplicates,
            reordered: self.reordered + other.reordered,
            first_before_window_ns: least(
                self.first_before_window_ns,
                other.first_before_window_ns,
            ),
            longest_gap_ns: self.longest_gap_ns.max(other.longest_gap_ns),
            delay_min_ns: least(self.delay_min_ns, other.delay_min_ns),
            delay_mean_ns: mean(|flow| flow.delay_mean_ns),
            delay_max_ns: self.delay_max_ns.max(other.delay_max_ns),
            ipdv_min_ns: self.ipdv_min_ns.into_iter().chain(other.ipdv_min_ns).min(),
            ipdv_max_ns: self.ipdv_max_ns.max(other.ipdv_max_ns),
            jitter_rfc3550_ns: mean(|flow| flow.jitter_rfc3550_ns),
        }
    }

    fn largest(&self) -> u64 {
        largest(&[
            self.packets,
            self.bytes,
            self.lost.unwrap_or(0),
            self.duplicates,
            self.reordered,
        ])
    }
}

impl RunLengths {
    fn largest(&self) -> u64 {
        let quantiles = self.quantiles.iter().map(|(_, length)| *length);
        let rest = [self.count, self.max, size([self.mean])];
        rest.into_iter().chain(quantiles).max().unwrap_or(0)
    }
}

fn weighted(one: f64, ones: u64, two: f64, twos: u64) -> f64 {
    let all = float(ones + twos);
    (one * float(ones) + two * float(twos)) / all.max(1.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_windows_of_a_flow() {
        let one = FlowArrivals {
            packets: 30,
            lost: Some(1),
            delay_min_ns: Some(5),
            delay_mean_ns: Some(10.0),
            ipdv_min_ns: Some(-7),
            ..FlowArrivals::default()
        };
        let two = FlowArrivals {
            packets: 10,
            lost: Some(2),
            delay_min_ns: Some(4),
            delay_mean_ns: Some(50.0),
            ipdv_min_ns: Some(3),
            ..FlowArrivals::default()
        };
        let both = one.plus(&two);
        assert_eq!((both.packets, both.lost), (40, Some(3)));
        assert_eq!(
            (both.delay_min_ns, both.delay_mean_ns),
            (Some(4), Some(20.0))
        );
        assert_eq!((both.ipdv_min_ns, both.ipdv_max_ns), (Some(-7), None));
        // What neither window measured stays absent, and a silent window removes nothing.
        assert_eq!(both.jitter_rfc3550_ns, None);
        let silent = FlowArrivals::default();
        assert_eq!(silent.plus(&two), two);
        assert_eq!(silent.plus(&silent).lost, None);
    }
}
