//! What kept a guest's CPUs from running: the time for which their threads were ready and waited for a CPU of the host
//! (`run_delay`, `kernel/sched/stats.h`). KVM reports the same to the guest as steal (`record_steal_time`,
//! `arch/x86/kvm/x86.c`); an emulated guest has no steal to read.

use std::fs;

use super::{Error, read};

/// QEMU's name for the threads of a guest's CPUs, followed by a number (`-name debug-threads=on`).
const NAME: &str = "CPU ";

/// Over all CPUs of the guests, since each began.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Waited {
    /// Time waited, ns, summed over the CPUs.
    pub ns: u64,
    /// Number of CPUs.
    pub vcpus: u32,
}

/// For the guests with these processes; `None` if there is none, or the kernel does not count (`CONFIG_SCHED_INFO`).
///
/// # Errors
/// A process is gone.
pub(crate) fn waited(guests: &[u32]) -> Result<Option<Waited>, Error> {
    let mut waited = Waited { ns: 0, vcpus: 0 };
    if !fs::exists("/proc/self/schedstat").unwrap_or(false) {
        return Ok(None);
    }
    for pid in guests {
        let threads = format!("/proc/{pid}/task");
        let entries = fs::read_dir(&threads).map_err(|source| Error::Read {
            file: threads.clone(),
            source,
        })?;
        for thread in entries.flatten() {
            let thread = thread.path();
            let of = |file: &str| read(&thread.join(file).to_string_lossy());
            // QEMU's threads for file access come and go.
            if of("comm").is_ok_and(|name| name.starts_with(NAME)) {
                waited.ns += run_delay(&of("schedstat")?)?;
                waited.vcpus += 1;
            }
        }
    }
    Ok((waited.vcpus > 0).then_some(waited))
}

/// The second number of `schedstat`: ns (Documentation/scheduler/sched-stats.rst).
fn run_delay(text: &str) -> Result<u64, Error> {
    let second = text.split_ascii_whitespace().nth(1);
    second
        .and_then(|number| number.parse().ok())
        .ok_or_else(|| Error::Parse {
            file: "schedstat of a thread",
            what: format!("`{}` has no second number", text.trim_end()),
        })
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;
    use std::sync::{Arc, Barrier};
    use std::thread;

    use hopyard_net::clock::thread_cpu_ns;

    use super::*;

    #[test]
    fn the_second_number_counts() {
        assert_eq!(run_delay("1213731 8046089 3\n").unwrap(), 8_046_089);
        assert!(run_delay("1213731\n").is_err());
        assert!(run_delay("0 x 3\n").is_err());
    }

    #[test]
    fn without_guests_there_is_nothing() {
        assert_eq!(waited(&[]).unwrap(), None);
        let gone = waited(&[u32::MAX / 2]);
        assert!(gone.is_err() || !fs::exists("/proc/self/schedstat").unwrap());
    }

    /// Two threads named like a guest's CPUs, on one CPU: each waits while the other runs.
    #[test]
    fn two_that_share_a_cpu_wait_for_each_other() {
        /// Measured on each thread's own CPU clock, which stops when the machine does.
        const SPIN_NS: u64 = 200_000_000;
        let cpu = hopyard_net::cpu::current_affinity().unwrap()[0];
        let (said, heard) = channel();
        let both = Arc::new(Barrier::new(2));
        let spawn = |number: u32| {
            let (said, both) = (said.clone(), both.clone());
            let (go, stay) = channel::<()>();
            let vcpu = move || {
                hopyard_net::cpu::pin_current_thread(&[cpu]).unwrap();
                both.wait();
                let until_ns = thread_cpu_ns() + SPIN_NS;
                while thread_cpu_ns() < until_ns {
                    std::hint::spin_loop();
                }
                said.send(number).unwrap();
                // Keeps them alive for the reading.
                stay.iter().for_each(drop);
            };
            let name = format!("{NAME}{number}/TCG");
            let thread = thread::Builder::new().name(name);
            (go, thread.spawn(vcpu).unwrap())
        };
        let threads = [spawn(0), spawn(1)];
        heard.iter().take(2).for_each(drop);
        let waited = waited(&[std::process::id()]).unwrap();
        for (go, thread) in threads {
            drop(go);
            thread.join().unwrap();
        }
        let waited = waited.unwrap();
        assert_eq!(waited.vcpus, 2);
        assert!(waited.ns > 150_000_000, "{waited:?}");
    }
}
