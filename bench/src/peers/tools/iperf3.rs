//! iperf3. Debian 12 has 3.12, which serves all flows of a test from one thread (3.16 changed that).

use serde::Deserialize;

use super::{Listens, Peer, Printed, Reported, Task, words};
use crate::scenario::Scenario;

pub(super) struct Iperf3;

impl Peer for Iperf3 {
    fn server(&self, _: Task<'_>) -> Vec<String> {
        words(&["iperf3", "-s", "-1"])
    }

    fn client(&self, task: Task<'_>) -> Vec<String> {
        let mut line = words(&["iperf3", "-J", "-i", "0", "-c"]);
        line.push(task.server.to_string());
        line.extend(["-t".to_owned(), task.seconds.to_string()]);
        line.extend(["-l".to_owned(), task.scenario.size.to_string()]);
        line.extend(["-P".to_owned(), task.scenario.flows.to_string()]);
        line.extend(if task.scenario.load.is_tcp() {
            words(&["-C", "cubic"])
        } else {
            words(&["-u", "-b", "0"])
        });
        line
    }

    fn listens(&self, _: &Scenario) -> Listens {
        Listens {
            tcp: true,
            port: 5201,
        }
    }

    fn one_shot(&self) -> bool {
        true
    }

    fn reported(&self, scenario: &Scenario, printed: &Printed) -> Result<Reported, String> {
        let report: Report = serde_json::from_str(&printed.client)
            .map_err(|e| format!("its JSON is not as expected: {e}"))?;
        let unit = if scenario.load.is_tcp() {
            1.0
        } else {
            f64::from(scenario.size)
        };
        Ok(Reported {
            received: report.end.sum_received.bytes / unit,
            sent: (!scenario.load.is_tcp()).then_some(report.end.sum_sent.bytes / unit),
            seconds: Some(report.end.sum_received.seconds),
        })
    }

    fn version(&self) -> [&'static str; 2] {
        ["iperf3", "--version"]
    }
}

#[derive(Deserialize)]
struct Report {
    end: End,
}

#[derive(Deserialize)]
struct End {
    sum_sent: Sum,
    sum_received: Sum,
}

#[derive(Deserialize)]
struct Sum {
    bytes: f64,
    seconds: f64,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario::SCENARIOS;

    /// `iperf3 -J -i 0 -l 131072 -C cubic -t 1` of iperf 3.12, without `start` and `intervals`.
    const TCP: &str = r#"{"start":{"version":"iperf 3.12"},"intervals":[],"end":{"streams":[{"sender":{"socket":6,"start":0,"end":1.000055,"seconds":1.000055,"bytes":8879603712,"bits_per_second":71032922885.2413,"retransmits":0,"max_snd_cwnd":1206184,"max_snd_wnd":29660160,"max_rtt":16,"min_rtt":16,"mean_rtt":16,"sender":true},"receiver":{"socket":6,"start":0,"end":1.000075,"seconds":1.000055,"bytes":8879472640,"bits_per_second":71030453835.9623,"sender":true}}],"sum_sent":{"start":0,"end":1.000055,"seconds":1.000055,"bytes":8879603712,"bits_per_second":71032922885.2413,"retransmits":0,"sender":true},"sum_received":{"start":0,"end":1.000075,"seconds":1.000075,"bytes":8879472640,"bits_per_second":71030453835.9623,"sender":true},"cpu_utilization_percent":{"host_total":97.907238067651178,"host_user":1.0256051699769768,"host_system":96.8816328976742,"remote_total":71.9601273094333,"remote_user":1.8681449439696505,"remote_system":70.091982365463664},"sender_tcp_congestion":"cubic","receiver_tcp_congestion":"cubic"}}"#;

    /// `iperf3 -u -b 0 -l 64 -t 1 -J -i 0` of iperf 3.12, shortened likewise.
    const UDP: &str = r#"{"end":{"streams":[],"sum":{"start":0,"end":1.00005,"seconds":1.00005,"bytes":18429440,"bits_per_second":147433161.0694229,"jitter_ms":0.003844735230664937,"lost_packets":729,"packets":287960,"lost_percent":0.25316016113349077,"sender":true},"sum_sent":{"start":0,"end":1.000016,"seconds":1.000016,"bytes":18429440,"bits_per_second":147433161.0694229,"jitter_ms":0,"lost_packets":0,"packets":287960,"lost_percent":0,"sender":true},"sum_received":{"start":0,"end":1.00005,"seconds":1.00005,"bytes":18382720,"bits_per_second":147054407.279636,"jitter_ms":0.003844735230664937,"lost_packets":729,"packets":287959,"lost_percent":0.25316016113349077,"sender":false}}}"#;

    fn of(name: &str, client: &str) -> Result<Reported, String> {
        let scenario = SCENARIOS.iter().find(|s| s.name == name).unwrap();
        Iperf3.reported(
            scenario,
            &Printed {
                client: client.to_owned(),
                server: String::new(),
            },
        )
    }

    #[test]
    fn bytes_of_a_stream() {
        let reported = of("tcp_stream_128k", TCP).unwrap();
        assert_eq!(reported.received, 8_879_472_640.0);
        assert_eq!(reported.sent, None);
        assert_eq!(reported.seconds, Some(1.000_075));
    }

    #[test]
    fn datagrams() {
        let reported = of("udp_stream_64", UDP).unwrap();
        assert_eq!(reported.received, 287_230.0);
        assert_eq!(reported.sent, Some(287_960.0));
    }

    #[test]
    fn an_error_is_no_report() {
        assert!(of("tcp_stream_128k", r#"{"error":"unable to connect"}"#).is_err());
    }
}
