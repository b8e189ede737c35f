//! nuttcp. Debian 12 has 6.1.2: all flows in one process and thread, no option for congestion control
//! (the route sets it).

use super::{Listens, Peer, Printed, Reported, Task, number_after, words};
use crate::scenario::Scenario;

pub(super) struct Nuttcp;

impl Peer for Nuttcp {
    fn server(&self, _: Task<'_>) -> Vec<String> {
        words(&["nuttcp", "-1", "--nofork"])
    }

    fn client(&self, task: Task<'_>) -> Vec<String> {
        let mut line = words(&["nuttcp", "-fparse"]);
        line.push(format!("-l{}", task.scenario.size));
        line.push(format!("-T{}", task.seconds));
        if task.scenario.load.is_tcp() {
            line.push(format!("-N{}", task.scenario.flows));
        } else {
            line.extend(words(&["-u", "-Ru"]));
        }
        line.push(task.server.to_string());
        line
    }

    fn listens(&self, _: &Scenario) -> Listens {
        Listens {
            tcp: true,
            port: 5000,
        }
    }

    fn one_shot(&self) -> bool {
        true
    }

    fn reported(&self, scenario: &Scenario, printed: &Printed) -> Result<Reported, String> {
        let bytes = number_after(&printed.client, "megabytes=")? * 1024.0 * 1024.0;
        if scenario.load.is_tcp() {
            return Ok(Reported {
                received: bytes,
                sent: None,
                seconds: None,
            });
        }
        Ok(Reported {
            received: bytes / f64::from(scenario.size),
            sent: Some(number_after(&printed.client, "pkt=")?),
            seconds: None,
        })
    }

    fn version(&self) -> [&'static str; 2] {
        ["nuttcp", "-V"]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario::SCENARIOS;

    /// `nuttcp -l16384 -N1 -T1 -fparse` of 6.1.2.
    const TCP: &str = "megabytes=2142.9062 real_seconds=1.00 rate_Mbps=17976.9533 tx_cpu=98 \
                       rx_cpu=58 retrans=0 rtt_ms=0.07\n";
    /// `nuttcp -u -Ru -l64 -T1 -fparse` of 6.1.2.
    const UDP: &str = "megabytes=16.7067 real_seconds=1.00 rate_Mbps=140.1449 tx_cpu=98 rx_cpu=19 \
                       drop=387 pkt=274109 data_loss=0.14106\n";

    fn of(name: &str, client: &str) -> Result<Reported, String> {
        let scenario = SCENARIOS.iter().find(|s| s.name == name).unwrap();
        Nuttcp.reported(
            scenario,
            &Printed {
                client: client.to_owned(),
                server: String::new(),
            },
        )
    }

    #[test]
    fn megabytes_are_mebibytes() {
        let reported = of("tcp_stream_16k", TCP).unwrap();
        assert!((reported.received / (17_976.953_3e6 / 8.0) - 1.0).abs() < 0.01);
    }

    #[test]
    fn datagrams_from_bytes() {
        let reported = of("udp_stream_64", UDP).unwrap();
        assert!((reported.received - f64::from(274_109 - 387)).abs() < 1.0);
        assert_eq!(reported.sent, Some(274_109.0));
    }

    #[test]
    fn nothing_reported() {
        assert!(of("tcp_stream_16k", "nuttcp-t: connect: Connection refused\n").is_err());
    }
}
