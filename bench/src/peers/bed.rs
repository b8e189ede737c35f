//! The test bed: a fresh lab in which every connection uses cubic.
//!
//! Tools with an option for congestion control get it as well. For those without one (nuttcp, sockperf) the route's
//! `congctl` sets it on both ends; `ss` reads back what connections really use.

use std::fs;
use std::process::{Command, Stdio};

use hopyard::lab::{self, Endpoint, Lab, Subnet};
use hopyard::measure::{Places, places};
use hopyard::model::Peer;
use hopyard_net::{Handle, cpu};

use crate::error::{Error, Result};
use crate::scenario::Scenario;
use crate::tools::Listens;

/// The congestion control of every connection.
const CONGESTION: &str = "cubic";

/// A lab for one sample.
#[derive(Debug)]
pub(crate) struct Bed {
    pub(crate) lab: Lab,
    pub(crate) places: Places,
}

impl Bed {
    /// Builds it over a veth pair.
    pub(crate) fn build(scenario: &Scenario) -> Result<Self> {
        Self::on("veth", scenario)
    }

    /// Builds it over any path.
    pub(crate) fn on(path: &str, scenario: &Scenario) -> Result<Self> {
        let lab = Lab::build(lab::path(path)?, Peer::Local, &scenario.axes())?;
        let places = places(scenario.placement, &cpu::current_affinity()?)?;
        let bed = Self { lab, places };
        let [(network, prefix), _] = Subnet::LAN.prefixes();
        let subnet = format!("{network}/{prefix}");
        for endpoint in [bed.client(), bed.server()] {
            bed.say_in(
                endpoint,
                "ip",
                &[
                    "route",
                    "change",
                    &subnet,
                    "dev",
                    &endpoint.device,
                    "congctl",
                    CONGESTION,
                ],
            )?;
        }
        Ok(bed)
    }

    pub(crate) fn client(&self) -> &Endpoint {
        &self.lab.topology.client
    }

    pub(crate) fn server(&self) -> &Endpoint {
        &self.lab.topology.server
    }

    /// The handle for an endpoint's namespace.
    pub(crate) fn handle(&self, endpoint: &Endpoint) -> Result<&Handle> {
        Ok(&self.lab.space(endpoint.role)?.handle)
    }

    /// Established connections of the client's namespace: all, and those that use cubic.
    pub(crate) fn connections(&self) -> Result<Connections> {
        let text = self.say_in(self.client(), "ss", &["-H", "-t", "-i", "-n", "-O"])?;
        Ok(connections(&text, CONGESTION))
    }

    /// Whether somebody listens there.
    pub(crate) fn listening(&self, listens: Listens) -> Result<bool> {
        let files = if listens.tcp {
            ["tcp", "tcp6"]
        } else {
            ["udp", "udp6"]
        };
        self.read_in(self.server(), &files)
            .map(|texts| texts.iter().any(|text| has_port(text, listens)))
    }

    /// Datagrams that programs of the endpoint's namespace received and sent since it was made.
    pub(crate) fn datagrams(&self, endpoint: &Endpoint) -> Result<Datagrams> {
        let texts = self.read_in(endpoint, &["snmp"])?;
        let text = texts.first().map_or("", String::as_str);
        datagrams(text).ok_or_else(|| Error::Program {
            program: "/proc/net/snmp".to_owned(),
            what: "has no UDP counters".to_owned(),
        })
    }

    /// Files of `/proc/net` as the endpoint sees them; empty for those that do not exist.
    fn read_in(&self, endpoint: &Endpoint, files: &[&str]) -> Result<Vec<String>> {
        let read = |file: &&str| {
            fs::read_to_string(format!("/proc/thread-self/net/{file}")).unwrap_or_default()
        };
        Ok(self
            .handle(endpoint)?
            .ns()
            .run(|| files.iter().map(read).collect())?)
    }

    /// Runs a command to its end in an endpoint's namespace and returns its output.
    fn say_in(&self, endpoint: &Endpoint, program: &str, arguments: &[&str]) -> Result<String> {
        let mut command = Command::new(program);
        command.args(arguments).stdin(Stdio::null());
        let output = self
            .handle(endpoint)?
            .ns()
            .run(|| command.output())?
            .map_err(|source| Error::Start {
                program: program.to_owned(),
                source,
            })?;
        if output.status.success() {
            return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
        }
        Err(Error::Program {
            program: format!("{program} {}", arguments.join(" ")),
            what: format!("failed: {}", String::from_utf8_lossy(&output.stderr).trim()),
        })
    }
}

impl Drop for Bed {
    fn drop(&mut self) {
        // Remaining children of the tools, however they were started.
        if let Some(group) = self.lab.cgroup()
            && let Err(error) = group.kill()
        {
            hopyard::note(format_args!("{}", hopyard::chain(&error)));
        }
    }
}

/// UDP counters of a namespace (RFC 4113: udpInDatagrams counts datagrams delivered to programs).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Datagrams {
    pub(crate) received: u64,
    pub(crate) sent: u64,
}

/// Established connections.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Connections {
    pub(crate) all: usize,
    /// Those that use the requested congestion control.
    pub(crate) as_asked: usize,
}

/// `/proc/net/{tcp,udp}`: local address and port in hexadecimal, remote ones, state.
fn has_port(text: &str, listens: Listens) -> bool {
    const LISTEN: &str = "0A";
    text.lines().skip(1).any(|line| {
        let mut fields = line.split_ascii_whitespace();
        let port = fields
            .nth(1)
            .and_then(|own| own.rsplit_once(':'))
            .and_then(|(_, port)| u16::from_str_radix(port, 16).ok());
        port == Some(listens.port) && (!listens.tcp || fields.nth(1) == Some(LISTEN))
    })
}

/// From the `Udp:` line of names and the one of values.
fn datagrams(snmp: &str) -> Option<Datagrams> {
    let mut lines = snmp.lines().filter_map(|line| line.strip_prefix("Udp: "));
    let (names, values) = (lines.next()?, lines.next()?);
    let value = |wanted: &str| {
        let index = names.split(' ').position(|name| name == wanted)?;
        values.split(' ').nth(index)?.parse().ok()
    };
    Some(Datagrams {
        received: value("InDatagrams")?,
        sent: value("OutDatagrams")?,
    })
}

/// `ss -HtinO`: a line for each connection, the state first, the congestion control among the words.
fn connections(ss: &str, congestion: &str) -> Connections {
    let established = || ss.lines().filter(|line| line.starts_with("ESTAB"));
    Connections {
        all: established().count(),
        as_asked: established()
            .filter(|line| line.split_ascii_whitespace().any(|word| word == congestion))
            .count(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario::SCENARIOS;

    #[test]
    fn ports_in_proc() {
        let tcp = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid\n   \
                   0: 020012C6:1389 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0\n   \
                   1: 020012C6:1451 010012C6:D4E2 01 00000000:00000000 00:00000000 00000000     0\n";
        let at = |tcp, port| Listens { tcp, port };
        assert!(has_port(tcp, at(true, 5001)));
        assert!(!has_port(tcp, at(true, 5201)));
        assert!(has_port(tcp, at(false, 5201)));
        assert!(!has_port("", at(true, 5001)));
    }

    #[test]
    fn udp_counters() {
        let snmp = "Tcp: RtoAlgorithm\nTcp: 1\nUdp: InDatagrams NoPorts InErrors OutDatagrams RcvbufErrors\n\
                    Udp: 77 1 2 99 2\nUdpLite: InDatagrams\nUdpLite: 0\n";
        assert_eq!(
            datagrams(snmp),
            Some(Datagrams {
                received: 77,
                sent: 99
            })
        );
        assert_eq!(datagrams("Tcp: 1\n"), None);
    }

    #[test]
    fn congestion_control_of_connections() {
        let ss = "ESTAB 0 0 198.18.0.1:44641 198.18.0.2:5001 cubic wscale:10,10 rto:204\n\
                  ESTAB 0 0 198.18.0.1:44642 198.18.0.2:5001 bbr wscale:10,10 rto:204\n\
                  TIME-WAIT 0 0 198.18.0.1:44643 198.18.0.2:5001\n";
        assert_eq!(
            connections(ss, "cubic"),
            Connections {
                all: 2,
                as_asked: 1
            }
        );
    }

    #[test]
    fn a_bed_has_cubic_on_its_routes() {
        let bed = Bed::build(&SCENARIOS[0]).unwrap();
        for endpoint in [bed.client(), bed.server()] {
            let routes = bed.say_in(endpoint, "ip", &["route"]).unwrap();
            assert!(routes.contains("congctl cubic"), "{routes}");
        }
    }
}
