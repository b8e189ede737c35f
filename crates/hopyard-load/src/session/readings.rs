//! What is read of a session's sockets at the edges of a window.

use std::os::fd::AsFd;
use std::sync::PoisonError;

use hopyard_model::{Counted, Scheduling, TcpSummary};
use hopyard_net::tcp_info;

use super::Session;
use crate::receiver::Effort;
use crate::tally::{Reading, Tally};

/// What is read at an edge of the window, by flow.
#[derive(Default)]
pub(super) struct Edge {
    pub(super) flows: Vec<Reading>,
    pub(super) tcp: Vec<TcpSummary>,
    pub(super) scheduling: Scheduling,
}

impl Session {
    /// What is read at the window's two edges alone.
    pub(super) fn edge(&mut self) -> Result<Edge, String> {
        Ok(Edge {
            flows: self.tallies().map(Tally::read).collect(),
            tcp: self.tcp_summaries()?,
            scheduling: self.watch.read(),
        })
    }

    /// What each flow took in; of a TCP stream what its kernel did, since a program that was behind when the
    /// window opened reads what had come before. Numbered datagrams share their sockets, and are in the order in which
    /// their senders came: none.
    pub(super) fn taken_in(&self, opened: &Edge, closed: &Edge) -> Vec<Counted> {
        if self.spec.kind.is_numbered() {
            return Vec::new();
        }
        let flows = closed.flows.iter().zip(&opened.flows);
        let mut flows: Vec<Counted> = flows
            .map(|(end, start)| end.since(*start).received)
            .collect();
        if self.spec.kind.is_stream() {
            let tcp = closed.tcp.iter().zip(&opened.tcp);
            for (flow, (end, start)) in flows.iter_mut().zip(tcp) {
                flow.bytes = end.bytes_received - start.bytes_received;
            }
        }
        flows
    }

    /// What a receiver of numbered datagrams has spent and lost so far.
    pub(super) fn effort(&self) -> Result<Option<Effort>, String> {
        // Its flows are those with a listener: they are sockets of several flows.
        if !self.spec.kind.is_numbered() || self.flows.iter().any(|flow| flow.listener.is_none()) {
            return Ok(None);
        }
        let sockets = self.flows.iter().map(|flow| &flow.socket);
        Effort::read(sockets, self.threads.iter().map(|thread| &thread.tid)).map(Some)
    }

    /// The `tcp_info` of each flow; none where there are no standing connections of TCP.
    fn tcp_summaries(&self) -> Result<Vec<TcpSummary>, String> {
        let mut summaries = Vec::new();
        if !self.spec.has_tcp_info() {
            return Ok(summaries);
        }
        for flow in &self.flows {
            let socket = flow.socket.lock().unwrap_or_else(PoisonError::into_inner);
            let socket = socket
                .as_ref()
                .ok_or("a flow had no connection when the window opened")?;
            let info =
                tcp_info::read(socket.as_fd()).map_err(|e| format!("cannot read TCP_INFO: {e}"))?;
            summaries.push(TcpSummary {
                retransmits: u64::from(info.total_retransmits),
                bytes_received: info.bytes_received,
                busy_ns: info.busy_time_us * 1000,
                receive_window_limited_ns: info.receive_window_limited_us * 1000,
                send_buffer_limited_ns: info.send_buffer_limited_us * 1000,
            });
        }
        Ok(summaries)
    }
}
