//! The endpoints of a cell for which nothing was built.

use std::collections::BTreeMap;
use std::fmt;
use std::net::IpAddr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::CpuAccounting;

/// Both endpoints as the user gave them. A record: nothing that reads it runs the commands.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct EndpointsAsked {
    /// The command that reaches the client.
    pub client: String,
    /// The command that reaches the server.
    pub server: String,
    /// The address on which the server was to listen, if it was given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server_address: Option<IpAddr>,
    /// The cards of both machines, where labs are built on the cable between them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cards: Option<[String; 2]>,
}

/// Both endpoints as they were found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct EndpointsUsed {
    /// Where the server listened.
    pub server_address: String,
    /// Who connected.
    pub client: EndpointUsed,
    /// Who listened.
    pub server: EndpointUsed,
    /// Whether both are on one running kernel (by its boot id). Then the CPU time of that machine is counted once.
    /// Absent in runs of older versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub are_one_machine: Option<bool>,
}

/// One endpoint as it was found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct EndpointUsed {
    /// The command that reaches it.
    pub connect: String,
    /// Release of its kernel.
    pub kernel: String,
    /// Its device towards the other endpoint.
    pub device: String,
    /// Whether it is on the same kernel as hopyard itself. Otherwise its worker reads the CPU time of its machine.
    pub is_on_this_kernel: bool,
    /// Least round trip of a message to its worker, ns: its clock is known to half of that.
    pub round_trip_ns: u64,
    /// Its machine; absent in runs of older versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub machine: Option<EndpointMachine>,
    /// Its device with its settings; absent in runs of older versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interface: Option<EndpointInterface>,
}

/// The machine of an endpoint, as its worker found it. What its kernel does not report is absent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct EndpointMachine {
    /// Host name.
    pub hostname: String,
    /// Model name of the CPU, as the kernel prints it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu_model: Option<String>,
    /// Number of online CPUs.
    pub cpus: u32,
    /// Clock source that the kernel uses: `tsc`, `kvm-clock`, …
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clock_source: Option<String>,
    /// Default TCP congestion control of the endpoint's network namespace.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub congestion_control: Option<String>,
    /// Source from which its worker can read busy time.
    pub cpu_accounting: CpuAccounting,
}

/// The device that carries an endpoint's data, as it was found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct EndpointInterface {
    /// Name of its driver (`ethtool -i`); absent if the device has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub driver: Option<String>,
    /// Bytes of network-layer payload.
    pub mtu_bytes: u32,
    /// Offload flag → `on`, `off`, `mixed`.
    pub offloads: BTreeMap<String, String>,
}

impl EndpointsUsed {
    /// Whether all CPU time of the load is spent on hopyard's own machine.
    #[must_use]
    pub fn are_on_this_kernel(&self) -> bool {
        self.client.is_on_this_kernel && self.server.is_on_this_kernel
    }

    /// What differs between the two ends: `kernel 6.1.0 at the client and 6.18.44 at the server`. A fact that one of
    /// them does not report is not a difference.
    #[must_use]
    pub fn differences(&self) -> Vec<String> {
        let [client, server] = [&self.client, &self.server].map(EndpointUsed::facts);
        let both = client.into_iter().zip(server);
        both.filter_map(|((what, here), (_, there))| {
            let (here, there) = (here?, there?);
            (here != there)
                .then(|| format!("{what} {here} at the client and {there} at the server"))
        })
        .collect()
    }
}

impl EndpointUsed {
    /// Facts that may differ between two endpoints, in the same order for each: name, value. `None` if it does not report it.
    #[must_use]
    pub fn facts(&self) -> Vec<(&str, Option<String>)> {
        const FLAGS: [&str; 5] = ["tx_checksum", "tso", "gso", "gro", "lro"];
        let (machine, interface) = (self.machine.as_ref(), self.interface.as_ref());
        let mut facts = vec![
            ("kernel", Some(self.kernel.clone())),
            ("CPU", machine.and_then(|m| m.cpu_model.clone())),
            ("CPUs", machine.map(|m| m.cpus.to_string())),
            ("clock source", machine.and_then(|m| m.clock_source.clone())),
            (
                "congestion control",
                machine.and_then(|m| m.congestion_control.clone()),
            ),
            ("driver", interface.and_then(|i| i.driver.clone())),
            ("MTU", interface.map(|i| i.mtu_bytes.to_string())),
        ];
        let state = |flag: &str| interface.and_then(|i| i.offloads.get(flag).cloned());
        facts.extend(FLAGS.map(|flag| (flag, state(flag))));
        facts
    }
}

impl fmt::Display for EndpointsUsed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            server_address,
            client,
            server,
            are_one_machine,
        } = self;
        write!(f, "client {client}; server {server}, at {server_address}")?;
        match are_one_machine {
            Some(true) => f.write_str("; both on one machine, whose CPU is counted once"),
            Some(false) => f.write_str("; two machines, the CPU of each read there"),
            None => Ok(()),
        }
    }
}

impl fmt::Display for EndpointUsed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            connect,
            kernel,
            device,
            ..
        } = self;
        write!(f, "`{connect}` (Linux {kernel}, {device})")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn end(kernel: &str, tso: &str) -> EndpointUsed {
        EndpointUsed {
            connect: "ssh host".to_owned(),
            kernel: kernel.to_owned(),
            device: "eth0".to_owned(),
            is_on_this_kernel: false,
            round_trip_ns: 100_000,
            machine: Some(EndpointMachine {
                hostname: "host".to_owned(),
                cpu_model: None,
                cpus: 2,
                clock_source: Some("tsc".to_owned()),
                congestion_control: Some("cubic".to_owned()),
                cpu_accounting: CpuAccounting::IdleClock,
            }),
            interface: Some(EndpointInterface {
                driver: Some("veth".to_owned()),
                mtu_bytes: 1500,
                offloads: [("tso".to_owned(), tso.to_owned())].into(),
            }),
        }
    }

    fn used(client: EndpointUsed, server: EndpointUsed) -> EndpointsUsed {
        EndpointsUsed {
            server_address: "192.0.2.2".to_owned(),
            client,
            server,
            are_one_machine: Some(false),
        }
    }

    #[test]
    fn what_differs_is_named_and_what_is_not_told_is_no_difference() {
        assert!(
            used(end("6.1", "on"), end("6.1", "on"))
                .differences()
                .is_empty()
        );
        let mut server = end("6.18", "off");
        if let Some(machine) = &mut server.machine {
            machine.cpu_model = Some("known here alone".to_owned());
        }
        assert_eq!(
            used(end("6.1", "on"), server.clone()).differences(),
            [
                "kernel 6.1 at the client and 6.18 at the server",
                "tso on at the client and off at the server"
            ]
        );
        server.interface = None;
        assert_eq!(used(end("6.18", "on"), server).differences().len(), 0);
    }

    #[test]
    fn what_an_older_version_stored_reads() {
        let text = r#"{"server_address":"192.0.2.2","client":{"connect":"a","kernel":"6.1","device":"eth0",
            "is_on_this_kernel":true,"round_trip_ns":1},"server":{"connect":"b","kernel":"6.2","device":"eth0",
            "is_on_this_kernel":true,"round_trip_ns":1}}"#;
        let used: EndpointsUsed = serde_json::from_str(text).unwrap();
        assert_eq!(used.are_one_machine, None);
        assert_eq!(used.differences().len(), 1);
        let back = serde_json::to_string(&used).unwrap();
        assert!(
            !back.contains("machine") && !back.contains("interface"),
            "{back}"
        );
    }
}
