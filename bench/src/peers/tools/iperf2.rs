//! iperf (version 2). Debian 12 has 2.1.8.

use super::{Listens, Peer, Printed, Reported, Task, words};
use crate::scenario::Scenario;
use hopyard::model::LoadKind;

pub(super) struct Iperf2;

impl Peer for Iperf2 {
    fn server(&self, task: Task<'_>) -> Vec<String> {
        // By default the server reads 128 KiB at a time, which is its best.
        let mut line = words(&["iperf", "-s", "-y", "C"]);
        line.extend(match task.scenario.load {
            LoadKind::UdpStream | LoadKind::UdpFlood => {
                vec!["-u".into(), "-l".into(), task.scenario.size.to_string()]
            }
            _ => words(&["-Z", "cubic"]),
        });
        line
    }

    fn client(&self, task: Task<'_>) -> Vec<String> {
        let mut line = words(&["iperf", "-c"]);
        line.push(task.server.to_string());
        line.extend(["-t".to_owned(), task.seconds.to_string()]);
        line.extend(["-l".to_owned(), task.scenario.size.to_string()]);
        line.extend(match task.scenario.load {
            // `-b 0` is refused for datagrams, so the target rate is out of reach instead.
            LoadKind::UdpStream | LoadKind::UdpFlood => words(&["-u", "-b", "100G", "-y", "C"]),
            LoadKind::TcpRr => words(&[
                "-e",
                "--bounceback",
                "--bounceback-period=0",
                "--bounceback-no-quickack",
                "-Z",
                "cubic",
            ]),
            // `-C`: one way, as for the others. Without it the server answers once; then Linux treats the connection as
            // interactive and acknowledges less often (docs/method.md).
            _ => vec![
                "-C".into(),
                "-P".into(),
                task.scenario.flows.to_string(),
                "-Z".into(),
                "cubic".into(),
            ],
        });
        line
    }

    fn listens(&self, scenario: &Scenario) -> Listens {
        Listens {
            tcp: scenario.load.is_tcp(),
            port: 5001,
        }
    }

    fn one_shot(&self) -> bool {
        false
    }

    fn reported(&self, scenario: &Scenario, printed: &Printed) -> Result<Reported, String> {
        match scenario.load {
            LoadKind::UdpStream | LoadKind::UdpFlood => datagrams(&printed.server),
            LoadKind::TcpRr => Ok(Reported {
                received: transactions(&printed.client)?,
                sent: None,
                seconds: None,
            }),
            _ => Ok(Reported {
                received: stream_bytes(&printed.server, scenario.flows)?,
                sent: None,
                seconds: None,
            }),
        }
    }

    fn version(&self) -> [&'static str; 2] {
        ["iperf", "--version"]
    }
}

/// A line of `-y C`: time, local address and port, remote ones, stream, interval, bytes, bit/s.
fn fields(line: &str) -> Vec<&str> {
    line.split(',').collect()
}

/// The server's lines, one for each flow; a line for their sum would have stream -1.
fn stream_bytes(server: &str, flows: u32) -> Result<f64, String> {
    let mut sum = 0.0;
    let mut lines = 0;
    for line in server.lines() {
        let fields = fields(line);
        if fields.len() < 9 || fields[5] == "-1" {
            continue;
        }
        sum += fields[7]
            .parse::<f64>()
            .map_err(|_| format!("`{}` is no count of bytes", fields[7]))?;
        lines += 1;
    }
    if lines == flows {
        Ok(sum)
    } else {
        Err(format!("its server reported {lines} flows, not {flows}"))
    }
}

/// The server's line for datagrams has more fields: jitter, lost, total, per cent, out of order.
fn datagrams(server: &str) -> Result<Reported, String> {
    let count = |text: &str| text.parse::<f64>().ok().filter(|n| *n >= 0.0);
    server
        .lines()
        .map(fields)
        .filter(|fields| fields.len() == 14)
        .find_map(|fields| {
            let (lost, total) = (count(fields[10])?, count(fields[11])?);
            Some(Reported {
                received: total - lost,
                sent: Some(total),
                seconds: None,
            })
        })
        .ok_or_else(|| "there is no count of datagrams in its server's output".to_owned())
}

/// `BB cnt=avg/min/max/stdev`: the count is before the first equals sign.
fn transactions(client: &str) -> Result<f64, String> {
    client
        .lines()
        .find(|line| line.trim_end().ends_with(" rps"))
        .and_then(|line| {
            line.split_ascii_whitespace()
                .find_map(|word| word.split_once('=')?.0.parse().ok())
        })
        .ok_or_else(|| "there is no count of bouncebacks in its output".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `iperf -s -Z cubic -y C` of 2.1.8, a client with `-P 4`.
    const FOUR: &str = "\
19700101000000,198.18.0.1,59922,198.18.0.2,5001,1,0.0-1.0,672202812,5374274323
19700101000000,198.18.0.1,59940,198.18.0.2,5001,3,0.0-1.0,683343932,5468408383
19700101000000,198.18.0.1,59924,198.18.0.2,5001,2,0.0-1.0,672546876,5381951919
19700101000000,198.18.0.1,59956,198.18.0.2,5001,4,0.0-1.0,685998140,5490648084
";
    /// `iperf -u -b 100G -l 64 -t 1 -y C` of 2.1.8, the client's line and the server's.
    const UDP_CLIENT: &str = "\
19700101000000,198.18.0.1,59963,198.18.0.2,5001,1,0.0-1.0,17933004,143462740,0.000,0,-1,-0.000,0
";
    const UDP_SERVER: &str = "\
19700101000000,198.18.0.1,59963,198.18.0.2,5001,1,0.0-1.0,17852032,142817969,0.001,1265,280203,0.451,0
";
    /// `iperf --bounceback --bounceback-period=0 --bounceback-no-quickack -l 100 -t 1 -e` of 2.1.8.
    const BOUNCE: &str = "\
------------------------------------------------------------
Client connecting to 198.18.0.2, TCP port 5001 with pid 8099 (1 flows)
Write buffer size:  100 Byte
Bounce-back test (size= 100 Byte) (server hold req=0 usecs)
TCP congestion control set to cubic
TOS set to 0x0 and nodelay (Nagle off)
TCP window size: 16.0 KByte (default)
------------------------------------------------------------
[  1] local 198.18.0.1%eth0 port 56804 connected with 198.18.0.2 port 5001 (bb len/hold=100/0) (sock=4) (icwnd/mss/irtt=14/1448/36) (ct=0.09 ms) on 2026-11-21 02:09:24 (UTC)
[ ID] Interval            Transfer    Bandwidth         BB cnt=avg/min/max/stdev         Rtry  Cwnd/RTT    RPS
[  1] 0.0000-1.0140 sec  3.79 MBytes  31.3 Mbits/sec    19864=0.049/0.017/2.755/0.023 ms    0   14K/1766 us    20297 rps
[  1] 0.0000-1.0140 sec BB8(f)-PDF: bin(w=100us):cnt(19864)=1:19838,2:20,3:2,8:1,9:1,11:1,28:1 (5.00/95.00/99.7%=1/1/1,Outliers=0,obl/obu=0/0)
";

    #[test]
    fn bytes_of_four_flows() {
        assert_eq!(stream_bytes(FOUR, 4), Ok(2_714_091_760.0));
        assert!(stream_bytes(FOUR, 1).is_err());
        assert!(stream_bytes("", 1).is_err());
    }

    #[test]
    fn the_servers_count_of_datagrams() {
        assert_eq!(
            datagrams(UDP_SERVER),
            Ok(Reported {
                received: 278_938.0,
                sent: Some(280_203.0),
                seconds: None,
            })
        );
        assert!(datagrams(UDP_CLIENT).is_err());
    }

    #[test]
    fn bouncebacks() {
        assert_eq!(transactions(BOUNCE), Ok(19_864.0));
        assert!(transactions("connect failed: Connection refused\n").is_err());
    }
}
