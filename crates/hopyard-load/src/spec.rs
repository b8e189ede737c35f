//! What one load does, as both ends are told.

use std::thread;

use serde::{Deserialize, Serialize};

use super::sockets::Sockets;
use hopyard_model::units::ns;
use hopyard_model::{
    Api, Axes, Distribution, LoadKind, MOST_FLOWS, MOST_OUTSTANDING, Rate, Replay, Scheduler,
    Switch, Trace,
};

/// Everything the two ends of a load must agree on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
// An older worker must not pass over what it does not know.
#[serde(deny_unknown_fields)]
pub struct LoadSpec {
    /// The traffic.
    pub kind: LoadKind,
    /// What connects the two ends.
    #[serde(default)]
    pub sockets: Sockets,
    /// Flows. The streams of one CPU share a thread, as do the receiving ends of numbered datagrams; all
    /// others have one each.
    pub flows: u32,
    /// Bytes per message of a stream: of a send call, or of a datagram.
    pub message_size: u32,
    /// Payload of a request, bytes.
    pub request_size: u32,
    /// Payload of a response, bytes.
    pub response_size: u32,
    /// Requests of each flow in flight.
    #[serde(default = "one")]
    pub outstanding: u32,
    /// By which calls both ends send and receive.
    #[serde(default)]
    pub api: Api,
    /// Does the sender of a stream ask the kernel to send from its memory?
    #[serde(default)]
    pub zero_copy: bool,
    /// `SO_SNDBUF` and `SO_RCVBUF`; `None` leaves the kernel's own sizing.
    pub socket_buffer: Option<u32>,
    /// `SO_SNDBUF` where it is to be another.
    #[serde(default)]
    pub send_buffer: Option<u32>,
    /// Bits per second that the sender of a stream offers, all flows together; `None` is as fast as it can.
    #[serde(default)]
    pub pace_bps: Option<u64>,
    /// How long a paced sender sleeps at a time; 0 is until its next message is due.
    #[serde(default)]
    pub pace_pause_ns: u64,
    /// The datagrams that `udp_trace` sends.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replay: Option<Replay>,
    /// Connections that `tcp_conns` opens per second, all flows together.
    #[serde(default)]
    pub connections_per_s: Option<u32>,
    /// How the times between the messages of `udp_paced`, or connections of `tcp_conns`, are spread.
    #[serde(default)]
    pub distribution: Distribution,
    /// The first flow begins at the start, each next one so many ns after the one before.
    #[serde(default)]
    pub stagger_ns: u64,
    /// Of all flows, the place of the first of these.
    #[serde(default)]
    pub first_flow: u32,
    /// Flows of the whole load, of which these may be some; 0 if these are all.
    #[serde(default)]
    pub all_flows: u32,
    /// TCP congestion control that every connection must have.
    pub congestion: Option<String>,
    /// Must every connection be one of Multipath TCP?
    #[serde(default)]
    pub mptcp: bool,
    /// The client's flows take turns of fixed length on their CPU, before everything else (`SCHED_RR`).
    #[serde(default)]
    pub round_robin: bool,
    /// Do more senders than the controller may use CPUs wait for one? If so, the thread that reads counters is real-time
    /// for the whole window; if not, only while it waits for an edge and reads the tallies. A worker may have fewer CPUs
    /// (`is_crowded_on`).
    #[serde(default)]
    pub crowded: bool,
    /// Count the cache misses of its threads?
    #[serde(default)]
    pub cache_misses: bool,
    /// Self-timed work, ns (a known answer for `verify`): of the responder before each response; of a sender of
    /// numbered datagrams between the time it writes into every other one and the call that sends it.
    #[serde(default)]
    pub service_time_ns: u64,
    /// Self-timed work of a requester before each request, outside the round trip, ns (for `verify`).
    #[serde(default)]
    pub pause_ns: u64,
}

/// How many CPUs this process may use.
pub(crate) fn allowed_cpus() -> usize {
    thread::available_parallelism().map_or(1, usize::from)
}

fn one() -> u32 {
    1
}

/// Longest time between two messages or connections of a paced flow, ns: traffic ends within it.
const LONGEST_INTERVAL_NS: u64 = 50_000_000;

/// Latest start of a flow after that of the first, ns.
const LATEST_START_NS: u64 = 600_000_000_000;

/// Longest message of sockets that keep them apart, bytes: a longer one would be cut by the receive call of a stream.
pub(crate) const MOST_MESSAGE: u32 = 128 * 1024;
/// What the kernel takes of a send buffer besides such a message (`unix_dgram_sendmsg`), bytes.
const BESIDE_MESSAGE: u32 = 32;

/// Largest UDP payload over IPv4 (RFC 768, RFC 791).
pub(crate) const MAX_DATAGRAM: u32 = 65507;

impl LoadSpec {
    /// The same with a trace to replay.
    #[must_use]
    pub fn replaying(self, replay: Replay) -> Self {
        Self {
            message_size: replay.largest_bytes(),
            replay: Some(replay),
            ..self
        }
    }

    /// The load of a cell; that of a trace in a file lacks it ([`LoadSpec::replaying`]).
    #[must_use]
    pub fn new(kind: LoadKind, axes: &Axes) -> Self {
        let cpus = allowed_cpus();
        let has_senders = kind.is_numbered() || axes.containers.is_some();
        let spec = Self {
            kind,
            sockets: Sockets::default(),
            flows: axes.flows,
            message_size: axes.message_size_bytes.unwrap_or(1),
            request_size: axes.request_size_bytes.unwrap_or(1),
            response_size: axes.response_size_bytes.unwrap_or(1),
            outstanding: axes.outstanding.unwrap_or(1),
            api: axes.api.unwrap_or_default(),
            zero_copy: axes.zerocopy == Some(Switch::On),
            socket_buffer: axes.socket_buffer_bytes,
            send_buffer: axes.send_buffer_bytes,
            pace_bps: axes.pace_bps.and_then(|Rate(pace)| pace),
            pace_pause_ns: axes.pace_pause_ns.map_or(0, |pause| ns(pause.time())),
            connections_per_s: axes.connections_per_s.or(kind.default_connections_per_s()),
            replay: None,
            distribution: axes.distribution.unwrap_or_default(),
            stagger_ns: axes.start.map_or(0, |start| ns(start.apart())),
            first_flow: 0,
            all_flows: 0,
            congestion: axes.congestion.clone(),
            mptcp: axes.mptcp == Some(Switch::On),
            crowded: has_senders && axes.flows as usize > cpus,
            cache_misses: axes.containers.is_some(),
            round_robin: axes.scheduler == Some(Scheduler::RoundRobin),
            service_time_ns: 0,
            pause_ns: 0,
        };
        match axes.trace {
            Some(Trace::Sample) if kind.replays() => spec.replaying(Replay::sample()),
            _ => spec,
        }
    }

    /// The same load over sockets of another kind.
    #[must_use]
    pub fn over(self, sockets: Sockets) -> Self {
        Self { sockets, ..self }
    }

    /// Has each flow one connection for as long as the traffic, of which TCP gives account?
    pub(crate) fn has_tcp_info(&self) -> bool {
        self.kind.has_standing_connections() && self.sockets == Sockets::Internet
    }

    /// The same load with some of its flows, each as it is among all, from the `first` on.
    #[must_use]
    pub fn part(&self, first: usize, flows: usize) -> Self {
        let of = |count: usize| u32::try_from(count).unwrap_or(u32::MAX);
        Self {
            flows: of(flows),
            first_flow: of(first),
            all_flows: self.all_flows(),
            ..self.clone()
        }
    }

    /// Flows of the whole load.
    #[must_use]
    pub(crate) fn all_flows(&self) -> u32 {
        self.all_flows.max(self.flows)
    }

    /// The same as `crowded` where an end may use so many CPUs: it may be on another machine than the controller.
    pub(crate) fn is_crowded_on(&self, cpus: usize) -> bool {
        let is_of_several_processes = self.all_flows() > self.flows;
        let has_senders = self.kind.is_numbered() || is_of_several_processes;
        self.crowded || has_senders && self.all_flows() as usize > cpus
    }

    /// How long after the start one of these flows begins, ns.
    #[must_use]
    pub(crate) fn begins_after_ns(&self, flow: usize) -> u64 {
        self.stagger_ns * (u64::from(self.first_flow) + flow as u64)
    }

    /// Time between two messages or connections of a flow, ps, where it is paced: in ns, a million messages a second would be
    /// wrong by up to one in a thousand.
    #[must_use]
    pub(crate) fn interval_ps(&self) -> Option<u64> {
        if let Some(rate) = self.connections_per_s {
            let each = 1_000_000_000_000 / u64::from(rate.max(1));
            return Some(each * u64::from(self.all_flows()));
        }
        let pace = u128::from(self.pace_bps?.max(1));
        let bits = u128::from(self.message_size) * 8 * u128::from(self.all_flows());
        Some(u64::try_from(bits * 1_000_000_000_000 / pace).unwrap_or(u64::MAX))
    }

    /// What of it its sockets cannot do, if anything.
    fn check_sockets(&self) -> Result<(), String> {
        let carried = self.sockets.carry(self.kind);
        carried.map_err(|why| format!("a Unix socket {why}"))?;
        if self.sockets != Sockets::UnixSeqpacket {
            return Ok(());
        }
        // Asked for n bytes, the kernel gives twice as many (socket(7)).
        let buffer = self
            .socket_buffer
            .map(|bytes| bytes.saturating_mul(2).saturating_sub(BESIDE_MESSAGE));
        let most = buffer.unwrap_or(MOST_MESSAGE).min(MOST_MESSAGE);
        let sizes = [
            ("message_size", self.message_size),
            ("request_size", self.request_size),
            ("response_size", self.response_size),
        ];
        match sizes.into_iter().find(|(_, size)| *size > most) {
            Some((name, size)) => Err(format!(
                "{name} {size} is too large for sockets that keep messages apart: at most {most} bytes"
            )),
            None => Ok(()),
        }
    }

    /// What the calls it is to be made by cannot do, if anything.
    fn check_calls(&self) -> Result<(), String> {
        if self.api != Api::Sockets && !self.kind.has_event_loops() {
            return Err(format!("{} has no api `{}`", self.kind, self.api));
        }
        if self.api != Api::Sockets && self.pace_pause_ns > 0 {
            return Err(format!(
                "api={} and pace_pause: an event loop wakes for each message that is due; leave one of them out",
                self.api
            ));
        }
        if self.zero_copy && !self.kind.sends_without_copies() {
            return Err(format!("{} has no sends without a copy", self.kind));
        }
        if self.zero_copy && self.mptcp {
            return Err(
                "zerocopy=on and mptcp=on: the kernel's Multipath TCP copies whatever it is asked, and does not say so; leave \
                 one of them out"
                    .to_owned(),
            );
        }
        Ok(())
    }

    /// What is wrong with it, if anything: the bounds that hold for all loads.
    ///
    /// # Errors
    /// A sentence naming the value and its bound.
    pub(crate) fn check_bounds(&self) -> Result<(), String> {
        self.check_sockets()?;
        let sizes = [
            ("message_size", self.message_size),
            ("request_size", self.request_size),
            ("response_size", self.response_size),
        ];
        for (name, size) in sizes {
            if size == 0 {
                return Err(format!("{name} is 0: a message has at least one byte"));
            }
            if !self.kind.is_tcp() && size > MAX_DATAGRAM {
                return Err(format!(
                    "{name} {size} is too large for {}: a datagram holds at most {MAX_DATAGRAM} bytes",
                    self.kind
                ));
            }
        }
        self.check_calls()?;
        let interval_ns = self.interval_ps().map(|ps| ps / 1000);
        if let Some(rate) = self.connections_per_s
            && interval_ns > Some(LONGEST_INTERVAL_NS)
        {
            return Err(format!(
                "{rate} connections per second over {} flows are too seldom: at least one of each flow in {} ms, with a \
                 greater connection_rate or fewer flows",
                self.all_flows(),
                LONGEST_INTERVAL_NS / 1_000_000
            ));
        }
        if self.pace_pause_ns > 0 && self.pace_bps.is_none() {
            return Err(
                "a sender without a pace has nothing to rest for: set `pace`, or leave `pace_pause` out"
                    .to_owned(),
            );
        }
        if let Some(interval_ns) = interval_ns.filter(|ns| *ns > LONGEST_INTERVAL_NS) {
            return Err(format!(
                "a message of {} bytes every {} ms is too seldom: at most {} ms, with a greater pace or a \
                 smaller message_size",
                self.message_size,
                interval_ns / 1_000_000,
                LONGEST_INTERVAL_NS / 1_000_000
            ));
        }
        let last_ns = self.begins_after_ns((self.flows as usize).saturating_sub(1));
        if last_ns > LATEST_START_NS {
            return Err(format!(
                "the last of {} flows would begin {} s after the first: at most {} s, with fewer flows or less time \
                 between them",
                self.first_flow + self.flows,
                last_ns / 1_000_000_000,
                LATEST_START_NS / 1_000_000_000
            ));
        }
        if self.outstanding == 0 || self.outstanding > MOST_OUTSTANDING {
            return Err(format!(
                "{} requests in flight: between 1 and {MOST_OUTSTANDING}",
                self.outstanding
            ));
        }
        if self.flows == 0 || self.flows > MOST_FLOWS {
            return Err(format!("{} flows: between 1 and {MOST_FLOWS}", self.flows));
        }
        Ok(())
    }
}

/// The least load that a search tries, messages per second of all flows: enough for a short trial to tell a loss
/// from chance, and no more seldom than a flow may send.
#[must_use]
pub fn least_load(axes: &Axes) -> f64 {
    const LEAST: f64 = 1000.0;
    const LEAST_EACH: f64 = 25.0;
    LEAST.max(LEAST_EACH * f64::from(axes.flows))
}

/// The pace, bit/s of payload, at which so many messages of these axes' size go per second.
#[must_use]
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "loads are positive, and below what 2^63 bit/s carry"
)]
pub fn pace_of(axes: &Axes, messages_per_s: f64) -> u64 {
    let bits = f64::from(axes.message_size_bytes.unwrap_or(1)) * 8.0;
    (messages_per_s * bits).ceil() as u64
}

#[cfg(test)]
mod tests;
