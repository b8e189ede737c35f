//! Receive packet and flow steering, and transmit packet steering: which CPU works on what a device receives, and by which queue a
//! CPU sends (`Documentation/networking/scaling.rst`).

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::{fs, io};

use crate::error::{Error, Result};
use crate::exec::own_sys;
use crate::handle::Handle;

/// What the names of queues begin with.
const RECEIVE: &str = "rx-";
const TRANSMIT: &str = "tx-";
/// The file of a transmit queue that has its CPUs.
const XPS: &str = "xps_cpus";

/// What a device's receive queues say.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ReceiveSteering {
    /// CPUs that may work on received packets (RPS); none leaves each packet on the CPU that took it.
    pub cpus: Vec<usize>,
    /// Flows of each queue whose packets follow their reader from CPU to CPU (RFS), a power of two; 0 for none.
    pub flows: u32,
}

impl Handle {
    /// Steers what a device receives, on every receive queue that it has.
    ///
    /// # Errors
    /// [`Error::Missing`] if there is no device of that name; [`Error::Unsupported`] on a kernel built without `CONFIG_RPS`;
    /// [`Error::Denied`] without `CAP_SYS_ADMIN` and `CAP_NET_ADMIN`.
    pub fn set_receive_steering(&self, name: &str, steering: &ReceiveSteering) -> Result<()> {
        let what = format!("steer what `{name}` receives");
        self.in_queues(&what, name, RECEIVE, |_, queue| {
            let write = |file: &str, text: String| {
                fs::write(queue.join(file), text).map_err(|error| no_rps(&what, error))
            };
            write("rps_cpus", mask(&steering.cpus))?;
            write("rps_flow_cnt", steering.flows.to_string())
        })?;
        Ok(())
    }

    /// How what a device receives is steered, queue by queue.
    ///
    /// # Errors
    /// As [`Handle::set_receive_steering`].
    pub fn receive_steering(&self, name: &str) -> Result<Vec<ReceiveSteering>> {
        let what = format!("read how what `{name}` receives is steered");
        self.in_queues(&what, name, RECEIVE, |_, queue| {
            let read = |file: &str| {
                fs::read_to_string(queue.join(file)).map_err(|error| no_rps(&what, error))
            };
            let cpus = read("rps_cpus")?;
            let flows = read("rps_flow_cnt")?;
            Ok(ReceiveSteering {
                cpus: cpus_of(cpus.trim()).ok_or_else(|| unclear(&what, &cpus))?,
                flows: flows.trim().parse().map_err(|_| unclear(&what, &flows))?,
            })
        })
    }

    /// Has each CPU send by queues of its own (XPS): the CPUs of each transmit queue of a device, in order. None of a queue
    /// leaves it to a hash of the flow.
    ///
    /// # Errors
    /// [`Error::Missing`] if there is no device of that name; [`Error::Invalid`] if it has another number of queues;
    /// [`Error::Unsupported`] for a device with room for one queue alone, and on a kernel built without `CONFIG_XPS`;
    /// [`Error::Denied`] without `CAP_SYS_ADMIN` and `CAP_NET_ADMIN`.
    pub fn set_transmit_steering(&self, name: &str, cpus: &[Vec<usize>]) -> Result<()> {
        let what = format!("choose the CPUs of the transmit queues of `{name}`");
        let set = self.in_queues(&what, name, TRANSMIT, |nth, queue| {
            let Some(cpus) = cpus.get(nth) else {
                return Ok(());
            };
            fs::write(queue.join(XPS), mask(cpus)).map_err(|error| no_xps(&what, error))
        })?;
        if set.len() != cpus.len() {
            let why = format!("it has {} of them, and not {}", set.len(), cpus.len());
            return Err(Error::invalid(what, why));
        }
        Ok(())
    }

    /// The CPUs of each transmit queue of a device, in order; none of any queue where it never has more than one, which leaves
    /// nothing to choose.
    ///
    /// # Errors
    /// As [`Handle::set_transmit_steering`].
    pub fn transmit_steering(&self, name: &str) -> Result<Vec<Vec<usize>>> {
        let what = format!("read the CPUs of the transmit queues of `{name}`");
        let queues = self.in_queues(&what, name, TRANSMIT, |_, queue| Ok(queue.to_owned()))?;
        if queues.len() < 2 {
            return Ok(vec![Vec::new(); queues.len()]);
        }
        self.in_queues(&what, name, TRANSMIT, |_, queue| {
            let cpus = fs::read_to_string(queue.join(XPS)).map_err(|error| no_xps(&what, error))?;
            cpus_of(cpus.trim()).ok_or_else(|| unclear(&what, &cpus))
        })
    }

    /// Does something with the number and the directory of each queue of a device of this kind, in `/sys` of its namespace.
    fn in_queues<T: Send>(
        &self,
        what: &str,
        name: &str,
        kind: &str,
        each: impl Fn(usize, &Path) -> Result<T> + Sync,
    ) -> Result<Vec<T>> {
        self.index_for(what, name)?;
        let directory = format!("/sys/class/net/{name}/queues");
        self.ns().run(|| {
            own_sys()?;
            let entries = fs::read_dir(directory).map_err(|error| Error::from_io(what, error))?;
            let paths = entries.flatten().map(|entry| entry.path());
            let numbered = paths.filter_map(|path| Some((number_of(&path, kind)?, path)));
            let queues: BTreeMap<usize, PathBuf> = numbered.collect();
            queues
                .iter()
                .map(|(nth, queue)| each(*nth, queue))
                .collect()
        })?
    }
}

/// The number of a queue of that kind.
fn number_of(path: &Path, kind: &str) -> Option<usize> {
    let name = path.file_name()?.to_str()?;
    name.strip_prefix(kind)?.parse().ok()
}

fn no_rps(what: &str, error: io::Error) -> Error {
    missing(what, error, ("receive", "CONFIG_RPS"))
}

fn no_xps(what: &str, error: io::Error) -> Error {
    missing(what, error, ("transmit", "CONFIG_XPS"))
}

fn missing(what: &str, error: io::Error, (of, option): (&str, &str)) -> Error {
    match error.kind() {
        io::ErrorKind::NotFound => Error::Unsupported {
            what: what.to_owned(),
            feature: format!("{of} packet steering"),
            remedy: format!("use a kernel that was built with {option}"),
        },
        _ => Error::from_io(what, error),
    }
}

fn unclear(what: &str, text: &str) -> Error {
    Error::invalid(what, format!("the kernel says `{text}`"))
}

/// CPUs as the kernel reads and writes a set of them: 32 in each word, the highest first.
fn mask(cpus: &[usize]) -> String {
    let words = cpus.iter().max().map_or(1, |most| most / 32 + 1);
    let mut bits = vec![0_u32; words];
    for cpu in cpus {
        bits[cpu / 32] |= 1 << (cpu % 32);
    }
    let words: Vec<String> = bits
        .iter()
        .rev()
        .map(|word| format!("{word:08x}"))
        .collect();
    words.join(",")
}

/// `None` where the text is no such set.
fn cpus_of(text: &str) -> Option<Vec<usize>> {
    let words: Option<Vec<u32>> = text
        .rsplit(',')
        .map(|word| u32::from_str_radix(word, 16).ok())
        .collect();
    let words = words?;
    let is_set = |cpu: &usize| words[cpu / 32] >> (cpu % 32) & 1 == 1;
    Some((0..32 * words.len()).filter(is_set).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sets_of_cpus_are_written_as_the_kernel_reads_them() {
        assert_eq!(mask(&[]), "00000000");
        assert_eq!(mask(&[0, 1]), "00000003");
        assert_eq!(mask(&[0, 33, 63]), "80000002,00000001");
        for cpus in [vec![], vec![0, 1], vec![5, 31, 32, 100]] {
            assert_eq!(cpus_of(&mask(&cpus)), Some(cpus));
        }
        assert_eq!(cpus_of("3"), Some(vec![0, 1]));
        assert_eq!(cpus_of("x"), None);
        assert_eq!(cpus_of(""), None);
    }
}
