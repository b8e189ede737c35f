//! The tools: hopyard itself and others, each with its command lines and the parser of its report.

mod iperf2;
mod iperf3;
mod nuttcp;
mod sockperf;

use std::fmt;
use std::net::IpAddr;

use serde::Serialize;

use crate::scenario::Scenario;

/// What makes the load.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Tool {
    Hopyard,
    Iperf3,
    Iperf2,
    Nuttcp,
    Sockperf,
}

/// The task of a tool.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Task<'a> {
    pub(crate) scenario: &'a Scenario,
    /// The server's address.
    pub(crate) server: IpAddr,
    /// How long the client sends, s.
    pub(crate) seconds: u64,
}

/// Output of a tool's two programs.
#[derive(Debug, Default)]
pub(crate) struct Printed {
    pub(crate) client: String,
    pub(crate) server: String,
}

/// What a tool reports for its whole run.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Reported {
    /// Bytes, transactions or datagrams that arrived.
    pub(crate) received: f64,
    /// Datagrams that were sent, if it reports them.
    pub(crate) sent: Option<f64>,
    /// Length of the run, s, if it reports that.
    pub(crate) seconds: Option<f64>,
}

/// Where a server listens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Listens {
    pub(crate) tcp: bool,
    pub(crate) port: u16,
}

/// A program to compare with.
pub(crate) trait Peer: Sync {
    /// The server's command line.
    fn server(&self, task: Task<'_>) -> Vec<String>;
    /// The client's command line.
    fn client(&self, task: Task<'_>) -> Vec<String>;
    /// Where its server listens when it is ready.
    fn listens(&self, scenario: &Scenario) -> Listens;
    /// Whether its server ends by itself after one client. Otherwise SIGINT ends it.
    fn one_shot(&self) -> bool;
    /// What it reports.
    ///
    /// # Errors
    /// A sentence: what could not be found in its output.
    fn reported(&self, scenario: &Scenario, printed: &Printed) -> Result<Reported, String>;
    /// The command that prints its version.
    fn version(&self) -> [&'static str; 2];
}

impl Tool {
    /// The other tool; `None` for hopyard itself.
    pub(crate) fn peer(self) -> Option<&'static dyn Peer> {
        match self {
            Self::Hopyard => None,
            Self::Iperf3 => Some(&iperf3::Iperf3),
            Self::Iperf2 => Some(&iperf2::Iperf2),
            Self::Nuttcp => Some(&nuttcp::Nuttcp),
            Self::Sockperf => Some(&sockperf::Sockperf),
        }
    }
}

impl fmt::Display for Tool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Hopyard => "hopyard",
            Self::Iperf3 => "iperf3",
            Self::Iperf2 => "iperf2",
            Self::Nuttcp => "nuttcp",
            Self::Sockperf => "sockperf",
        })
    }
}

/// A command line from words.
fn words(words: &[&str]) -> Vec<String> {
    words.iter().map(|&word| word.to_owned()).collect()
}

/// The number after `key`.
fn number_after(text: &str, key: &str) -> Result<f64, String> {
    let missing = || format!("there is no number after `{key}` in its output");
    let (_, rest) = text.rsplit_once(key).ok_or_else(missing)?;
    let rest = rest.trim_start();
    let end = rest
        .find(|c: char| !c.is_ascii_digit() && c != '.')
        .unwrap_or(rest.len());
    rest[..end].parse().map_err(|_| missing())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_after_keys() {
        assert_eq!(number_after("a=1.5 b=2\n", "a="), Ok(1.5));
        assert_eq!(number_after("a=1.5 b=2", "b="), Ok(2.0));
        assert!(number_after("a=x", "a=").is_err());
        assert!(number_after("a=1", "c=").is_err());
    }
}
