//! sockperf. Debian 12 has 3.7: no option for congestion control (the route sets it).

use super::{Listens, Peer, Printed, Reported, Task, number_after, words};
use crate::scenario::Scenario;

pub(super) struct Sockperf;

const PORT: u16 = 11111;

impl Peer for Sockperf {
    fn server(&self, task: Task<'_>) -> Vec<String> {
        let mut line = words(&["sockperf", "server", "-i"]);
        line.push(task.server.to_string());
        if task.scenario.load.is_tcp() {
            line.push("--tcp".into());
        }
        line
    }

    fn client(&self, task: Task<'_>) -> Vec<String> {
        let mode = if task.scenario.load.is_stream() {
            "throughput"
        } else {
            "ping-pong"
        };
        let mut line = words(&["sockperf", mode, "-i"]);
        line.push(task.server.to_string());
        line.extend(["-m".to_owned(), task.scenario.size.to_string()]);
        line.extend(["-t".to_owned(), task.seconds.to_string()]);
        if task.scenario.load.is_tcp() {
            line.push("--tcp".into());
        }
        line
    }

    fn listens(&self, scenario: &Scenario) -> Listens {
        Listens {
            tcp: scenario.load.is_tcp(),
            port: PORT,
        }
    }

    fn one_shot(&self) -> bool {
        false
    }

    fn reported(&self, scenario: &Scenario, printed: &Printed) -> Result<Reported, String> {
        if scenario.load.is_udp_stream() {
            return Ok(Reported {
                received: number_after(&printed.server, "sockperf: Total ")?,
                sent: Some(number_after(&printed.client, "sockperf: Total of ")?),
                seconds: Some(number_after(&printed.client, "messages sent in ")?),
            });
        }
        let run = printed
            .client
            .lines()
            .find(|line| line.contains("[Total Run]"))
            .ok_or("there is no `[Total Run]` in its output")?;
        Ok(Reported {
            received: number_after(run, "ReceivedMessages=")?,
            sent: None,
            seconds: Some(number_after(run, "RunTime=")?),
        })
    }

    fn version(&self) -> [&'static str; 2] {
        ["sockperf", "--version"]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario::SCENARIOS;

    /// `sockperf ping-pong --tcp -m 14 -t 1` of 3.7.
    const PING_PONG: &str = "\
sockperf: \u{1b}[2;35m== version #3.7-no.git == \u{1b}[0m
sockperf[CLIENT] send on:sockperf: using recvfrom() to block on socket(s)

[ 0] IP = 198.18.0.2      PORT = 11111 # TCP
sockperf: Warmup stage (sending a few dummy messages)...
sockperf: Starting test...
sockperf: Test end (interrupted by timer)
sockperf: Test ended
sockperf: [Total Run] RunTime=1.000 sec; Warm up time=400 msec; SentMessages=18604; ReceivedMessages=18603
sockperf: ========= Printing statistics for Server No: 0
sockperf: [Valid Duration] RunTime=0.550 sec; SentMessages=10140; ReceivedMessages=10140
sockperf: \u{1b}[2;35m====> avg-latency=27.131 (std-dev=8.090)\u{1b}[0m
";
    /// `sockperf throughput -m 64 -t 1` of 3.7.
    const THROUGHPUT: &str = "\
sockperf: \u{1b}[2;35m== version #3.7-no.git == \u{1b}[0m
sockperf: Starting test...
sockperf: Test end (interrupted by timer)
sockperf: Test ended
sockperf: Total of 301629 messages sent in 1.000 sec

sockperf: Summary: Message Rate is 301489 [msg/sec]
";
    /// `sockperf server` of 3.7 after SIGINT.
    const SERVER: &str = "\
sockperf: [SERVER] listen on:
sockperf: [tid 9158] using recvfrom() to block on socket(s)
sockperf: Test end (interrupted by user)
sockperf: Total 301204 messages received and handled
sockperf: cleanupAfterLoop() exit
";

    fn of(name: &str, client: &str, server: &str) -> Result<Reported, String> {
        let scenario = SCENARIOS.iter().find(|s| s.name == name).unwrap();
        Sockperf.reported(
            scenario,
            &Printed {
                client: client.to_owned(),
                server: server.to_owned(),
            },
        )
    }

    #[test]
    fn transactions_of_the_whole_run() {
        let reported = of("tcp_rr", PING_PONG, "").unwrap();
        assert_eq!(reported.received, 18_603.0);
        assert_eq!(reported.seconds, Some(1.0));
        assert!(of("tcp_rr", THROUGHPUT, "").is_err());
    }

    #[test]
    fn datagrams_of_both_ends() {
        assert_eq!(
            of("udp_stream_64", THROUGHPUT, SERVER),
            Ok(Reported {
                received: 301_204.0,
                sent: Some(301_629.0),
                seconds: Some(1.0),
            })
        );
        assert!(of("udp_stream_64", THROUGHPUT, "").is_err());
    }
}
