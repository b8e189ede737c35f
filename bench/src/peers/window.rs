//! The window: every tool is measured in the same way.
//!
//! What arrived is read from the kernel's counters and not from the tool: bytes of the receiver's device minus headers
//! (TCP), packets received by the client (request/response), datagrams delivered to programs (UDP; the device also
//! counts those that no program received). CPU time is the whole machine's, by idle subtraction.

use hopyard::meter::{CpuMeter, OwnProcesses, devices};
use hopyard::model::{CpuUse, DeviceCount, LoadKind};
use hopyard::signals;
use hopyard_net::clock;

use crate::bed::{Bed, Datagrams};
use crate::error::{Error, Result};
use crate::scenario::Scenario;

/// Ethernet, IPv4, TCP with timestamps (RFC 7323): headers of a segment, bytes.
const TCP_HEADERS: u64 = 14 + 20 + 20 + 12;

/// All counters of a bed at one instant.
#[derive(Debug, Clone)]
pub(crate) struct Counters {
    at_ns: u64,
    devices: Vec<DeviceCount>,
    at_client: Datagrams,
    at_server: Datagrams,
}

/// Units of work between two readings.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Work {
    /// Bytes, transactions or datagrams that arrived.
    pub(crate) received: f64,
    /// Datagrams sent; otherwise as `received`.
    pub(crate) sent: f64,
}

/// The figures of a window.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Window {
    pub(crate) work: Work,
    pub(crate) span_ns: f64,
    pub(crate) cpu: CpuUse,
}

impl Counters {
    /// Reads them.
    pub(crate) fn read(bed: &Bed) -> Result<Self> {
        let at_ns = clock::monotonic_ns();
        Ok(Self {
            at_ns,
            devices: devices::read(bed.lab.spaces().iter().map(|s| (s.role, &s.handle)))?,
            at_client: bed.datagrams(bed.client())?,
            at_server: bed.datagrams(bed.server())?,
        })
    }

    /// The work since an earlier reading.
    pub(crate) fn since(&self, start: &Self, bed: &Bed, scenario: &Scenario) -> Work {
        let devices = devices::since(&self.devices, &start.devices);
        let of = |role: &str, name: &str| {
            devices
                .iter()
                .find(|d| d.namespace == role && d.name == name)
                .map_or((0, 0), |d| (d.rx_bytes, d.rx_packets))
        };
        let (client, server) = (bed.client(), bed.server());
        let received = match scenario.load {
            LoadKind::TcpStream | LoadKind::TcpMaerts => {
                let (bytes, packets) = of(server.role, &server.device);
                bytes.saturating_sub(packets * TCP_HEADERS)
            }
            load if load.is_udp_stream() => self.at_server.received - start.at_server.received,
            _ => of(client.role, &client.device).1,
        } as f64;
        let sent = match scenario.load {
            load if load.is_udp_stream() => (self.at_client.sent - start.at_client.sent) as f64,
            _ => received,
        };
        Work { received, sent }
    }
}

/// Observes a window that opens at `open_ns` and closes at `close_ns`.
pub(crate) fn observe(
    bed: &Bed,
    scenario: &Scenario,
    meter: &CpuMeter,
    pids: &[u32],
    (open_ns, close_ns): (u64, u64),
) -> Result<Window> {
    wait_until(open_ns)?;
    let pids = everyone(bed, pids);
    let ours = OwnProcesses {
        pids: &pids,
        cgroup: bed.lab.cgroup(),
    };
    let opened = meter.open(ours)?;
    let before = Counters::read(bed)?;
    wait_until(close_ns)?;
    let after = Counters::read(bed)?;
    let closed = meter.close(ours)?;
    Ok(Window {
        work: after.since(&before, bed, scenario),
        span_ns: (after.at_ns - before.at_ns) as f64,
        cpu: closed.since(&opened),
    })
}

/// The processes we started and their descendants.
fn everyone(bed: &Bed, started: &[u32]) -> Vec<u32> {
    let mut pids = started.to_vec();
    if let Some(group) = bed.lab.cgroup()
        && let Ok(more) = group.procs()
    {
        pids.extend(more);
    }
    pids.sort_unstable();
    pids.dedup();
    pids
}

/// Sleeps until an instant, and checks now and then whether the user wants to stop.
pub(crate) fn wait_until(instant_ns: u64) -> Result<()> {
    match signals::sleep_until(instant_ns) {
        Ok(true) => Ok(()),
        Ok(false) => Err(Error::Interrupted),
        Err(source) => Err(Error::Io {
            doing: "cannot wait for the window",
            source,
        }),
    }
}
