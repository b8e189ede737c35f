//! The CPU time of the machine that a worker runs on.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::time::Duration;

use hopyard_model::units::ns;
use hopyard_model::{CpuUse, plain};
use hopyard_net::clock;

use super::{CpuMeter, CpuReading, OwnProcesses};

/// Inode number of the first PID namespace (`PROC_PID_INIT_INO`, include/linux/proc_ns.h).
const FIRST_PID_NS: u64 = 0xEFFF_FFFC;

/// Reads it, with what other processes there use told apart from the load.
#[derive(Debug)]
pub(crate) struct MachineMeter {
    meter: CpuMeter,
    /// Processes of the load beside this one.
    others: Vec<u32>,
}

impl MachineMeter {
    /// `others` are further processes of the load on this machine, by their ids here.
    ///
    /// # Errors
    /// A sentence: other processes cannot be seen from here, or the CPUs cannot be read.
    pub(crate) fn new(others: Vec<u32>) -> Result<Self, String> {
        sees_all_processes().map_err(|why| format!("{why}, and cannot be told from the load"))?;
        let meter = CpuMeter::of_load().map_err(|e| plain::chain(&e))?;
        Ok(Self { meter, others })
    }

    fn ours(&self) -> OwnProcesses<'_> {
        OwnProcesses {
            pids: &self.others,
            cgroup: None,
        }
    }

    /// Opens a window.
    ///
    /// # Errors
    /// A sentence: a file of the kernel's cannot be read.
    pub(crate) fn open(&self) -> Result<CpuReading, String> {
        self.meter.open(self.ours()).map_err(|e| plain::chain(&e))
    }

    /// What the machine used since `opened`.
    ///
    /// # Errors
    /// A sentence: a file of the kernel's cannot be read, or a CPU cannot be visited.
    pub(crate) fn close(&self, opened: &CpuReading) -> Result<CpuUse, String> {
        let closed = self.meter.close(self.ours());
        let used = closed.map_err(|e| plain::chain(&e))?.since(opened);
        let (seen, online) = (used.cpus as usize, self.meter.cpus().len());
        if seen < online {
            return Err(format!(
                "its worker may visit {seen} of its {online} CPUs (cpuset), and their idle clocks tell by a visit alone"
            ));
        }
        Ok(used)
    }

    /// What the machine uses by itself, over a span that `wait_until` waits for.
    ///
    /// # Errors
    /// As [`MachineMeter::close`]; what `wait_until` says.
    pub(crate) fn quiet(
        &self,
        span: Duration,
        wait_until: impl FnOnce(u64) -> Result<(), String>,
    ) -> Result<CpuUse, String> {
        let opened = self.open()?;
        wait_until(clock::monotonic_ns() + ns(span))?;
        self.close(&opened)
    }
}

/// Foreign processes are subtracted, so all of them have to be seen.
///
/// # Errors
/// They cannot, and why, as a sentence without its end.
pub fn sees_all_processes() -> Result<(), String> {
    let file = "/proc/self/ns/pid";
    let namespace = fs::metadata(file).map_err(|e| format!("cannot read {file}: {e}"))?;
    if namespace.ino() != FIRST_PID_NS {
        return Err(
            "other processes of the machine are not seen from within a PID namespace (a container)"
                .to_owned(),
        );
    }
    if !fs::exists("/proc/1/stat").unwrap_or(false) {
        return Err("other users' processes are hidden (hidepid)".to_owned());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One that reads wherever it is: what the load itself uses is seen in a container, too.
    fn meter() -> MachineMeter {
        MachineMeter {
            meter: CpuMeter::of_load().unwrap(),
            others: Vec::new(),
        }
    }

    #[test]
    fn what_this_process_uses_is_the_loads() {
        let meter = meter();
        let opened = meter.open().unwrap();
        let until = clock::thread_cpu_ns() + 50_000_000;
        while clock::thread_cpu_ns() < until {
            std::hint::spin_loop();
        }
        // Some of the CPUs may be out of reach there, which `close` refuses.
        let closed = meter.meter.close(meter.ours()).unwrap();
        let used = closed.since(&opened);
        assert!(used.workers_ns >= Some(50e6), "{used:?}");
        assert!(used.controller_ns.abs() < 1.0, "{used:?}");
        assert!(used.elapsed_ns > 0.0 && used.cpus > 0);
    }

    #[test]
    fn a_wait_that_is_cut_short_is_no_reading() {
        let off = |_| Err("off".to_owned());
        assert_eq!(meter().quiet(Duration::ZERO, off).unwrap_err(), "off");
    }
}
