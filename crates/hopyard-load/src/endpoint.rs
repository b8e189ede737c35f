//! What a worker tells of the endpoint that it was started at, where the lab did not make it.

mod found;
mod process;

use std::fs;
use std::net::IpAddr;

use hopyard_net::{Handle, clock, cpu};
use serde::{Deserialize, Serialize};

pub use self::process::ProcessAt;
use self::process::own_namespace;
use hopyard_model::{DeviceCount, EndpointInterface, EndpointMachine, plain};

/// More CPUs, or addresses, than any machine is believed to have.
const MOST: usize = 8192;
/// Longest text of a worker's, bytes.
const LONGEST: usize = 256;
/// More offload flags than there are.
const MOST_FLAGS: usize = 32;
/// Longest name of a device (`IFNAMSIZ` without the final 0).
const LONGEST_DEVICE: usize = 15;

/// The machine and the namespaces of a worker.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct HostFacts {
    /// `/proc/sys/kernel/random/boot_id`: the same for all processes of one running kernel.
    pub boot_id: String,
    /// Release of its kernel.
    pub kernel: String,
    /// Inode number of its network namespace.
    pub net_ns: u64,
    /// Inode number of its PID namespace.
    pub pid_ns: u64,
    /// Its process id there.
    pub pid: u32,
    /// CPUs that it may use.
    pub cpus: Vec<usize>,
    /// Addresses that others can reach: neither of loopback nor of one link alone.
    pub addresses: Vec<IpAddr>,
    /// The machine itself.
    pub machine: EndpointMachine,
}

/// The way to the other end.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WayFound {
    /// Name of the device.
    pub device: String,
    /// Source address of the packets.
    pub source: Option<IpAddr>,
    /// The device as it is set.
    pub interface: EndpointInterface,
}

/// How long the two ends of a pipe may be silent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Attendance {
    /// After so much silence of the other end each takes the connection for cut, ms.
    pub silence_ms: u64,
    /// Each says that it lives this often, ms.
    pub beat_ms: u64,
}

/// Counters of a device between two readings.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeviceSpan {
    /// Name of the device.
    pub name: String,
    /// Time between the two readings, ns.
    pub span_ns: u64,
    /// Packets received.
    pub rx_packets: u64,
    /// Bytes received.
    pub rx_bytes: u64,
    /// Packets sent.
    pub tx_packets: u64,
    /// Bytes sent.
    pub tx_bytes: u64,
    /// Packets dropped on receipt or sending.
    pub dropped: u64,
}

impl HostFacts {
    /// Those of this process.
    ///
    /// # Errors
    /// A sentence: a file of the kernel's cannot be read.
    pub fn of_this_process() -> Result<Self, String> {
        let text = |file: &str| {
            fs::read_to_string(file)
                .map(|text| text.trim().to_owned())
                .map_err(|e| format!("cannot read {file}: {e}"))
        };
        let here = Handle::here().map_err(|e| plain::chain(&e))?;
        let addresses = here.addresses().map_err(|e| plain::chain(&e))?;
        let mut addresses: Vec<IpAddr> = addresses.into_iter().map(|(_, ip)| ip).collect();
        addresses.retain(is_for_others);
        Ok(Self {
            boot_id: text("/proc/sys/kernel/random/boot_id")?,
            kernel: text("/proc/sys/kernel/osrelease")?,
            net_ns: own_namespace("net")?,
            pid_ns: own_namespace("pid")?,
            pid: std::process::id(),
            cpus: cpu::current_affinity().map_err(|e| plain::chain(&e))?,
            addresses,
            machine: found::machine()?,
        })
    }

    /// Can it be? A worker may be another program, or one gone wrong.
    ///
    /// # Errors
    /// A sentence: which part of it cannot be.
    pub fn check(&self) -> Result<(), String> {
        for (what, text) in [("boot_id", &self.boot_id), ("kernel", &self.kernel)] {
            if text.is_empty() || text.len() > LONGEST {
                return Err(format!("{what} of {} bytes", text.len()));
            }
        }
        let machine = &self.machine;
        let told = [
            &machine.cpu_model,
            &machine.clock_source,
            &machine.congestion_control,
        ];
        for text in told.into_iter().flatten().chain([&machine.hostname]) {
            if text.len() > LONGEST {
                return Err(format!("a text of {} bytes on its machine", text.len()));
            }
        }
        for (what, count) in [
            ("CPUs", self.cpus.len()),
            ("addresses", self.addresses.len()),
        ] {
            if count > MOST {
                return Err(format!("{count} {what}"));
            }
        }
        if self.cpus.is_empty() {
            return Err("no CPU".to_owned());
        }
        Ok(())
    }

    /// The worker's process.
    #[must_use]
    pub fn process(&self) -> ProcessAt {
        ProcessAt {
            pid_ns: self.pid_ns,
            pid: self.pid,
        }
    }

    /// Is it on the same running kernel as another?
    #[must_use]
    pub fn is_with(&self, other: &Self) -> bool {
        self.boot_id == other.boot_id
    }
}

fn is_for_others(address: &IpAddr) -> bool {
    !address.is_loopback()
        && !address.is_unspecified()
        && match address {
            IpAddr::V4(ip) => !ip.is_link_local(),
            IpAddr::V6(ip) => !ip.is_unicast_link_local(),
        }
}

impl WayFound {
    /// That of this process to an address.
    pub(crate) fn of_this_process(to: IpAddr) -> Result<Self, String> {
        let here = Handle::here().map_err(|e| plain::chain(&e))?;
        let way = here.way_to(to).map_err(|e| plain::chain(&e))?;
        Ok(Self {
            interface: found::interface(&here, &way.device)?,
            device: way.device,
            source: way.source,
        })
    }

    /// Can it be?
    ///
    /// # Errors
    /// A sentence: the name is none of a device.
    pub fn check(&self) -> Result<(), String> {
        if self.device.is_empty() || self.device.len() > LONGEST_DEVICE {
            return Err(format!("a device name of {} bytes", self.device.len()));
        }
        let EndpointInterface {
            driver, offloads, ..
        } = &self.interface;
        let flags = offloads.iter().flat_map(|(flag, state)| [flag, state]);
        if offloads.len() > MOST_FLAGS || flags.chain(driver).any(|text| text.len() > LONGEST) {
            return Err("more is said of its device than there is".to_owned());
        }
        Ok(())
    }
}

impl DeviceSpan {
    /// The same as counters of a lab's device.
    #[must_use]
    pub fn count(&self, namespace: &str) -> DeviceCount {
        DeviceCount {
            namespace: namespace.to_owned(),
            name: self.name.clone(),
            rx_packets: self.rx_packets,
            rx_bytes: self.rx_bytes,
            tx_packets: self.tx_packets,
            tx_bytes: self.tx_bytes,
            dropped: self.dropped,
        }
    }

    pub(crate) fn largest(&self) -> u64 {
        let counts = [
            self.span_ns,
            self.rx_packets,
            self.rx_bytes,
            self.tx_packets,
            self.tx_bytes,
            self.dropped,
        ];
        counts.into_iter().max().unwrap_or(0)
    }
}

/// Reads the counters of one device of this namespace.
#[derive(Debug)]
pub(crate) struct DeviceMeter {
    here: Handle,
    name: String,
}

/// Its counters at an instant.
#[derive(Debug, Clone)]
pub(crate) struct DeviceAt {
    at_ns: u64,
    stats: hopyard_net::DeviceStats,
}

impl DeviceMeter {
    pub(crate) fn new(name: String) -> Result<Self, String> {
        let here = Handle::here().map_err(|e| plain::chain(&e))?;
        Ok(Self { here, name })
    }

    pub(crate) fn read(&self) -> Result<DeviceAt, String> {
        let all = self.here.device_stats().map_err(|e| plain::chain(&e))?;
        let stats = all.into_iter().find(|device| device.name == self.name);
        Ok(DeviceAt {
            at_ns: clock::monotonic_ns(),
            stats: stats.ok_or_else(|| format!("device `{}` is gone", self.name))?,
        })
    }
}

impl DeviceAt {
    /// What came since an earlier reading.
    pub(crate) fn since(&self, start: &Self) -> DeviceSpan {
        let (now, then) = (&self.stats, &start.stats);
        let dropped = |stats: &hopyard_net::DeviceStats| stats.rx_dropped + stats.tx_dropped;
        DeviceSpan {
            name: now.name.clone(),
            span_ns: self.at_ns.saturating_sub(start.at_ns),
            rx_packets: now.rx_packets.saturating_sub(then.rx_packets),
            rx_bytes: now.rx_bytes.saturating_sub(then.rx_bytes),
            tx_packets: now.tx_packets.saturating_sub(then.tx_packets),
            tx_bytes: now.tx_bytes.saturating_sub(then.tx_bytes),
            dropped: dropped(now).saturating_sub(dropped(then)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_facts_of_this_process_can_be() {
        let facts = HostFacts::of_this_process().unwrap();
        facts.check().unwrap();
        assert!(facts.is_with(&facts));
        assert_eq!(facts.pid, std::process::id());
        assert!(facts.addresses.iter().all(is_for_others));
        let none = HostFacts {
            cpus: Vec::new(),
            ..facts.clone()
        };
        assert_eq!(none.check().unwrap_err(), "no CPU");
        let long = HostFacts {
            kernel: "x".repeat(LONGEST + 1),
            ..facts
        };
        assert_eq!(long.check().unwrap_err(), "kernel of 257 bytes");
    }

    #[test]
    fn own_addresses_are_reached_by_loopback() {
        let mut way = WayFound::of_this_process([127, 0, 0, 1].into()).unwrap();
        way.check().unwrap();
        assert_eq!(way.device, "lo");
        assert_eq!(way.interface.driver, None);
        assert!(way.interface.mtu_bytes > 0);
        let offloads = &mut way.interface.offloads;
        assert!(offloads.contains_key("tso"), "{offloads:?}");
        offloads.insert("x".repeat(LONGEST + 1), "on".to_owned());
        assert!(way.check().is_err());
        let meter = DeviceMeter::new(way.device).unwrap();
        let (before, after) = (meter.read().unwrap(), meter.read().unwrap());
        assert!(after.since(&before).span_ns > 0);
        assert_eq!(before.since(&after).span_ns, 0);
    }

    #[test]
    fn addresses_of_a_link_alone_are_not_offered() {
        for (address, wanted) in [
            ("127.0.0.1", false),
            ("169.254.1.1", false),
            ("192.0.2.1", true),
            ("::1", false),
            ("fe80::1", false),
            ("2001:db8::1", true),
        ] {
            assert_eq!(
                is_for_others(&address.parse().unwrap()),
                wanted,
                "{address}"
            );
        }
    }
}
