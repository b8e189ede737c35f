//! What a worker finds of its machine and of a device there, for people who compare two of them.

use hopyard_model::{CpuAccounting, EndpointInterface, EndpointMachine, plain};
use hopyard_net::{Handle, Offload, OffloadState, cpu};

use crate::kernel_files;
use crate::meter::CpuMeter;

/// The machine of this process.
///
/// # Errors
/// A sentence: the kernel does not say which CPUs there are.
pub(super) fn machine() -> Result<EndpointMachine, String> {
    let cpus = cpu::online_cpus().map_err(|e| plain::chain(&e))?;
    let cpuinfo = kernel_files::text("/proc/cpuinfo").unwrap_or_default();
    let meter = CpuMeter::of_load().map(|meter| meter.accounting());
    Ok(EndpointMachine {
        hostname: kernel_files::hostname().unwrap_or_default(),
        cpu_model: kernel_files::cpu_model(&cpuinfo),
        cpus: u32::try_from(cpus.len()).unwrap_or(u32::MAX),
        clock_source: kernel_files::clock_source(),
        congestion_control: kernel_files::line("/proc/sys/net/ipv4/tcp_congestion_control"),
        cpu_accounting: meter.unwrap_or(CpuAccounting::ProcStat),
    })
}

/// A device of this process's namespace.
///
/// # Errors
/// A sentence: there is no such device, or the kernel does not tell of it.
pub(super) fn interface(here: &Handle, device: &str) -> Result<EndpointInterface, String> {
    let of = || -> hopyard_net::Result<_> {
        Ok((
            here.driver(device)?,
            here.link(device)?.mtu,
            here.offloads(device)?,
        ))
    };
    let (driver, mtu_bytes, offloads) = of().map_err(|e| plain::chain(&e))?;
    let flags = Offload::ALL.map(|offload| {
        let state = words(offloads.get(offload));
        (offload.name().to_owned(), state.to_owned())
    });
    Ok(EndpointInterface {
        driver,
        mtu_bytes,
        offloads: flags.into(),
    })
}

/// A state in a word.
fn words(state: OffloadState) -> &'static str {
    match state.is_on() {
        Some(true) => "on",
        Some(false) => "off",
        None => "mixed",
    }
}
