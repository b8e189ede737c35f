//! What a tap switch tells about itself.

use std::collections::BTreeMap;

use hopyard_switch::Mac;
use hopyard_tap::switch::{PortState, State};
use serde::{Deserialize, Serialize};

/// Of [`Document`]; fields are only ever added.
pub const SCHEMA: &str = "hopyard/tapswitch/1";

/// What there is of a switch.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Document {
    pub schema: String,
    /// Its name.
    pub switch: String,
    /// Its process.
    pub pid: u32,
    /// Seconds since it began.
    pub uptime_s: f64,
    /// Seconds since the document before; absent in the first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub span_s: Option<f64>,
    pub queues: QueuesDocument,
    /// Who chooses among them.
    pub steering: String,
    /// Which frames are joined: `off`, `packets` or `stream`; absent from switches that cannot.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub join: Option<String>,
    /// MAC addresses known.
    pub addresses: usize,
    pub ports: Vec<PortDocument>,
}

/// Queues of each port.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct QueuesDocument {
    /// What was asked for: `auto` or a number.
    pub asked: String,
    /// Attached now.
    pub attached: usize,
    /// Threads that serve them; absent from switches that do not tell.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub threads: Option<usize>,
    /// How often one was attached or detached since the start.
    pub changes: u64,
    /// Why as many as the load asks for could not be had, the last time; absent where they could.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trouble: Option<String>,
}

/// A port, and what passed it since the start.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PortDocument {
    /// The device, and its network namespace where that is not the switch's own.
    pub port: String,
    /// Is the device still there?
    pub there: bool,
    /// The only addresses that it may send from; absent where it may send from any that is not another port's.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub macs: Vec<String>,
    /// Does nothing pass between it and other isolated ports?
    #[serde(default)]
    pub isolated: bool,
    /// The most addresses that are learnt of it at once; absent from switches that have no such limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub address_quota: Option<u32>,
    /// Frames per second that it may send to several ports; absent where that is not limited.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub broadcasts_per_s: Option<u32>,
    /// Frames that the device sent to the switch.
    pub rx_frames: u64,
    /// Bytes of those.
    pub rx_bytes: u64,
    /// Frames that the device sent to the switch by each queue, by number; absent from switches that do not tell.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rx_frames_by_queue: Vec<u64>,
    /// Frames that the switch sent to the device.
    pub tx_frames: u64,
    /// Bytes of those.
    pub tx_bytes: u64,
    /// Frames from here that went to every other port.
    pub flooded: u64,
    /// Addresses first heard here.
    pub learnt: u64,
    /// Addresses that were at another port before.
    pub moved: u64,
    /// Frames from addresses that the table has no room for.
    pub table_full: u64,
    /// Frames that went to the device as part of the one before them, which `tx_frames` counts.
    #[serde(default)]
    pub joined: u64,
    /// Frames that the device took before an earlier one that waited; absent from switches that do not count them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reordered: Option<u64>,
    /// How often a frame was put off, as the device took no more.
    pub waited: u64,
    /// Frames that the device sent by another queue than the frame of the same flow before.
    pub queue_changes: u64,
    /// Frames lost, by reason, those that happened; `queue_full` the kernel dropped before the switch could read them.
    pub drops: BTreeMap<String, u64>,
}

impl PortDocument {
    pub(crate) fn new(label: &str, state: &PortState) -> Self {
        let (c, rules) = (&state.counters, &state.rules);
        let mut drops: BTreeMap<_, _> = c
            .drops
            .iter()
            .map(|(reason, count)| (reason.name().to_owned(), *count))
            .collect();
        if let Some(unread) = state.unread.filter(|count| *count > 0) {
            drops.insert("queue_full".to_owned(), unread);
        }
        Self {
            port: label.to_owned(),
            there: state.there,
            macs: rules.macs.iter().map(|mac| Mac(*mac).to_string()).collect(),
            isolated: rules.isolated,
            address_quota: Some(rules.addresses),
            broadcasts_per_s: rules.broadcasts,
            rx_frames: c.rx_frames,
            rx_bytes: c.rx_bytes,
            rx_frames_by_queue: state.by_queue.iter().map(|queue| queue.rx_frames).collect(),
            tx_frames: c.tx_frames,
            tx_bytes: c.tx_bytes,
            flooded: c.flooded,
            learnt: c.learnt,
            moved: c.moved,
            table_full: c.table_full,
            joined: c.joined,
            reordered: Some(c.reordered),
            waited: c.waited,
            queue_changes: c.queue_changes,
            drops,
        }
    }
}

impl Document {
    /// Of a running switch, whose ports people know by these labels.
    #[must_use]
    pub fn new(
        name: &str,
        labels: &[String],
        (asked, steering, join): (&str, &str, &str),
        state: &State,
    ) -> Self {
        let ports = labels.iter().zip(&state.ports);
        Self {
            schema: SCHEMA.to_owned(),
            switch: name.to_owned(),
            pid: std::process::id(),
            uptime_s: state.uptime.as_secs_f64(),
            span_s: None,
            queues: QueuesDocument {
                asked: asked.to_owned(),
                attached: state.queues,
                threads: Some(state.threads),
                changes: state.changes,
                trouble: state.trouble.clone(),
            },
            steering: steering.to_owned(),
            join: Some(join.to_owned()),
            addresses: state.addresses,
            ports: ports
                .map(|(label, port)| PortDocument::new(label, port))
                .collect(),
        }
    }
}
