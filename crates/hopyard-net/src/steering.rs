//! Receive packet and flow steering: which CPU works on what a device receives (`Documentation/networking/scaling.rst`).

use std::fs;
use std::path::{Path, PathBuf};

use crate::error::{Error, Result};
use crate::exec::own_sys;
use crate::handle::Handle;

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
        self.in_queues(&what, name, |queue| {
            let write = |file: &str, text: String| {
                fs::write(queue.join(file), text).map_err(|error| explain(&what, error))
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
        self.in_queues(&what, name, |queue| {
            let read = |file: &str| {
                fs::read_to_string(queue.join(file)).map_err(|error| explain(&what, error))
            };
            let unclear = |text: &str| Error::invalid(&what, format!("the kernel says `{text}`"));
            let cpus = read("rps_cpus")?;
            let flows = read("rps_flow_cnt")?;
            Ok(ReceiveSteering {
                cpus: cpus_of(cpus.trim()).ok_or_else(|| unclear(&cpus))?,
                flows: flows.trim().parse().map_err(|_| unclear(&flows))?,
            })
        })
    }

    /// Does something with the directory of each receive queue of a device, in `/sys` of its namespace.
    fn in_queues<T: Send>(
        &self,
        what: &str,
        name: &str,
        each: impl Fn(&Path) -> Result<T> + Sync,
    ) -> Result<Vec<T>> {
        self.index_for(what, name)?;
        let directory = format!("/sys/class/net/{name}/queues");
        self.ns().run(|| {
            own_sys()?;
            let entries = fs::read_dir(directory).map_err(|error| Error::from_io(what, error))?;
            let paths = entries.flatten().map(|entry| entry.path());
            let mut queues: Vec<PathBuf> = paths.filter(|path| is_receive_queue(path)).collect();
            queues.sort();
            queues.iter().map(|queue| each(queue)).collect()
        })?
    }
}

fn is_receive_queue(path: &Path) -> bool {
    let name = path.file_name().and_then(|name| name.to_str());
    name.is_some_and(|name| name.starts_with("rx-"))
}

fn explain(what: &str, error: std::io::Error) -> Error {
    match error.kind() {
        std::io::ErrorKind::NotFound => Error::Unsupported {
            what: what.to_owned(),
            feature: "receive packet steering".to_owned(),
            remedy: "use a kernel that was built with CONFIG_RPS".to_owned(),
        },
        _ => Error::from_io(what, error),
    }
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
