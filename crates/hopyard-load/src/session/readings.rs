//! What is read of a session's flows and sockets in a window, and at its edges.

use std::os::fd::AsFd;
use std::sync::PoisonError;

use hopyard_model::{Counted, Scheduling, TcpSummary};
use hopyard_net::{clock, cpu, tcp_info};

use super::Session;
use crate::protocol::{Tallied, Timetable};
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
    /// Reads the counters at the window's edges and between its slices; `at_edge` does what else is to be done at the
    /// two edges.
    pub(super) fn watch_window(
        &mut self,
        timetable: Timetable,
        wait_until: &mut impl FnMut(u64) -> Result<(), String>,
        mut at_edge: impl FnMut(&mut Self) -> Result<(), String>,
    ) -> Result<Tallied, String> {
        let span = timetable.close_ns.saturating_sub(timetable.open_ns);
        let slices = u64::from(timetable.slices.max(1));
        let mut readings = Vec::with_capacity(timetable.slices as usize + 1);
        for edge in 0..=slices {
            // Flows that fill the CPUs would delay an ordinary thread until their traffic may be over. With up to eight
            // flows on two CPUs and 40 % of steal, one turn in ten was read 19 ms late, and its window has 25 ms.
            let prompt = cpu::RealtimeGuard::new();
            wait_until(timetable.open_ns + span * edge / slices)?;
            readings.push((clock::monotonic_ns(), Reading::total(self.tallies())));
            drop(prompt);
            if edge == 0 || edge == slices {
                at_edge(self)?;
            }
        }
        let ((first_ns, first), (last_ns, last)) = (readings[0], readings[readings.len() - 1]);
        let stream = self.spec.kind.is_stream();
        let parts = readings.windows(2).map(|pair| {
            let part = pair[1].1.since(pair[0].1).received;
            if stream {
                part.bytes
            } else {
                part.transactions
            }
        });
        Ok(Tallied {
            late_ns: timetable.lateness(first_ns, last_ns),
            slices: parts.collect(),
            ..self.counted(last_ns - first_ns, last.since(first))
        })
    }

    /// What the counters say of a span, ns.
    pub(super) fn counted(&self, span_ns: u64, counted: Reading) -> Tallied {
        // The kernel may have answered none of the sends: that is a count, too.
        let sends = self.threads.iter().any(|thread| thread.begins);
        let has_answers = self.spec.zero_copy && sends;
        Tallied {
            zero_copy: has_answers.then_some(counted.zero_copy),
            ..Tallied::counted(span_ns, counted)
        }
    }

    /// Adds what came between two edges to what a window counted.
    pub(super) fn edges_counted(&self, window: Tallied, edges: &[Edge]) -> Tallied {
        let [opened, closed] = edges else {
            return window;
        };
        Tallied {
            tcp: self
                .spec
                .has_tcp_info()
                .then(|| TcpSummary::sum(&closed.tcp).since(TcpSummary::sum(&opened.tcp))),
            flows: self.taken_in(opened, closed),
            scheduling: closed.scheduling.since(opened.scheduling),
            ..window
        }
    }

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
    fn taken_in(&self, opened: &Edge, closed: &Edge) -> Vec<Counted> {
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
                span_ns: 0,
            });
        }
        Ok(summaries)
    }
}

#[cfg(test)]
mod tests {
    use std::net::{IpAddr, Ipv4Addr};
    use std::time::Duration;

    use hopyard_model::{Api, Axes, LoadKind, Peer, ZeroCopied};

    use super::*;
    use crate::session::Beside;
    use crate::spec::LoadSpec;

    fn spec(kind: LoadKind, zero_copy: bool) -> LoadSpec {
        let axes = Axes::default().for_cell(kind, Peer::Local, &[]);
        LoadSpec {
            zero_copy,
            api: Api::Epoll,
            ..LoadSpec::new(kind, &axes)
        }
    }

    /// A server and its client.
    fn ends(spec: &LoadSpec) -> (Session, Session) {
        let here = IpAddr::from(Ipv4Addr::LOCALHOST).into();
        let patience = Duration::from_secs(5);
        let (server, ports) = Session::serve(spec, &here, &[]).unwrap();
        let client = Session::connect(spec, &here, &ports, &[], patience).unwrap();
        (server, client)
    }

    /// What the two ends say of sends without a copy where the kernel answered none.
    fn unanswered(kind: LoadKind, zero_copy: bool) -> [Option<ZeroCopied>; 2] {
        let (server, client) = ends(&spec(kind, zero_copy));
        [client, server].map(|end| end.counted(1, Reading::default()).zero_copy)
    }

    #[test]
    fn the_sender_alone_counts_what_became_of_its_sends_without_a_copy() {
        let none = Some(ZeroCopied::default());
        assert_eq!(unanswered(LoadKind::TcpStream, true), [none, None]);
        assert_eq!(unanswered(LoadKind::TcpMaerts, true), [None, none]);
        assert_eq!(unanswered(LoadKind::TcpStream, false), [None, None]);
    }

    /// A request is given up after a window shorter than its patience, and is that window's all the same.
    #[test]
    fn a_lost_request_is_counted_in_the_window_before_it_was_given_up() {
        const MS: u64 = 1_000_000;
        for api in [Api::Sockets, Api::Epoll] {
            let spec = LoadSpec {
                api,
                ..spec(LoadKind::UdpRr, false)
            };
            // Without a timetable, it answers no request.
            let (_server, client) = ends(&spec);
            let now = clock::monotonic_ns();
            let timetable = Timetable {
                start_ns: now + 10 * MS,
                open_ns: now + 10 * MS,
                close_ns: now + 110 * MS,
                stop_ns: now + 430 * MS,
                slices: 1,
                other_behind_ns: 0,
                edge_ns: 0,
            };
            let wait = |until_ns| {
                let left = u64::saturating_sub(until_ns, clock::monotonic_ns());
                std::thread::sleep(Duration::from_nanos(left));
                Ok(())
            };
            let counted = client.run(timetable, Beside::default(), wait).unwrap();
            let answered = counted.received.transactions;
            assert_eq!((answered, counted.timeouts), (0, 1), "{api}");
        }
    }

    /// The scheduling policy of this thread, as `sched_setscheduler` numbers it.
    fn policy() -> i32 {
        let stat = std::fs::read_to_string("/proc/thread-self/stat").unwrap();
        let (_, fields) = stat.rsplit_once(')').unwrap();
        fields.split_whitespace().nth(38).unwrap().parse().unwrap()
    }

    /// Needs root.
    #[test]
    fn whoever_waits_for_an_edge_goes_before_the_flows() {
        const SCHED_FIFO: i32 = 1;
        let (_server, mut client) = ends(&spec(LoadKind::TcpStream, false));
        let now = clock::monotonic_ns();
        let timetable = Timetable {
            start_ns: now,
            open_ns: now,
            close_ns: now + 2,
            stop_ns: now + 2,
            slices: 2,
            other_behind_ns: 0,
            edge_ns: 0,
        };
        let (mut waiting, mut reading) = (Vec::new(), Vec::new());
        let mut wait = |_| {
            waiting.push(policy());
            Ok(())
        };
        let at_edge = |_: &mut Session| {
            reading.push(policy());
            Ok(())
        };
        client.watch_window(timetable, &mut wait, at_edge).unwrap();
        assert_eq!(waiting, [SCHED_FIFO; 3]);
        assert_eq!(
            reading,
            [policy(); 2],
            "what takes long leaves the CPUs to the flows"
        );
    }
}
