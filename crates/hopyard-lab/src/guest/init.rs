//! `hopyard init`: the first process of a guest.
//!
//! It mounts what the kernel offers, loads the modules that came along, starts what speaks to the host
//! over the port, waits for its end and restarts the machine, which QEMU takes for its end
//! (`-no-reboot`): that works without ACPI too. What goes wrong is said on the console.

use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::io;
use std::net::IpAddr;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use hopyard_net::Handle;
use nix::errno::Errno;
use nix::kmod::{ModuleInitFlags, finit_module};
use nix::mount::{MsFlags, mount};
use nix::sys::reboot::{RebootMode, reboot};
use nix::sys::wait::{WaitStatus, wait};
use nix::unistd::{Pid, getpid};

use super::PORT;
use super::initramfs::{MODULES, PROGRAM, SEARCHED};

/// What the host wants done.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Job {
    /// Carry out a plan: `hopyard runner`.
    Runner,
    /// Be an endpoint: [`worker`](crate::load::worker).
    Worker,
}

/// The network card of a guest that is an endpoint.
#[derive(Debug, Clone, PartialEq, Eq, clap::Args)]
pub struct Interface {
    /// Its addresses, with the lengths of their prefixes
    #[arg(long, value_name = "A/N", value_parser = address)]
    pub address: Vec<(IpAddr, u8)>,
    /// MTU of the interface, bytes.
    #[arg(long)]
    pub mtu: Option<u32>,
}

/// The only one that a guest has.
pub(super) const CARD: &str = "eth0";

impl Interface {
    /// As words for `hopyard init`.
    pub(super) fn words(&self) -> Vec<String> {
        let mut words: Vec<String> = self.mtu.iter().map(|mtu| format!("--mtu={mtu}")).collect();
        words.extend(
            self.address
                .iter()
                .map(|(a, length)| format!("--address={a}/{length}")),
        );
        words
    }

    fn set_up(&self, here: &Handle) -> hopyard_net::Result<()> {
        if let Some(mtu) = self.mtu {
            here.set_mtu(CARD, mtu)?;
        }
        here.set_up(CARD)?;
        for (address, length) in &self.address {
            here.add_address(CARD, *address, *length)?;
        }
        here.settle(CARD).map(drop)
    }
}

fn address(text: &str) -> Result<(IpAddr, u8), String> {
    let wrong = || format!("`{text}` is not of the form ADDRESS/LENGTH");
    let (address, length) = text.split_once('/').ok_or_else(wrong)?;
    let address = address.parse().map_err(|_| wrong())?;
    Ok((address, length.parse().map_err(|_| wrong())?))
}

impl Job {
    pub fn word(self) -> &'static str {
        match self {
            Self::Runner => "runner",
            Self::Worker => "worker",
        }
    }
}

/// What the kernel offers, and where programs look for it; the first ones are needed.
const MOUNTS: [(&str, &str); 8] = [
    ("proc", "/proc"),
    ("sysfs", "/sys"),
    ("devtmpfs", "/dev"),
    ("tmpfs", "/run"),
    ("tmpfs", "/tmp"),
    ("cgroup2", "/sys/fs/cgroup"),
    ("bpf", "/sys/fs/bpf"),
    ("tracefs", "/sys/kernel/tracing"),
];
const NEEDED_MOUNTS: usize = 5;
/// Where the runner finds which modules were refused.
const REFUSED: &str = "/run/hopyard-refused-modules";
/// Between a module that is loaded and the port that it shows.
const PATIENCE: Duration = Duration::from_secs(10);

/// Serves as the first process. Comes back only where it is none.
///
/// # Errors
/// It is not the first process of a machine.
pub fn main(job: Job, interface: &Interface) -> io::Result<()> {
    if getpid() != Pid::from_raw(1) {
        return Err(io::Error::other(
            "`hopyard init` is the first process of a guest, and nothing else",
        ));
    }
    if let Err(why) = serve(job, interface) {
        crate::note(format_args!("{why}"));
    }
    let Err(error) = reboot(RebootMode::RB_AUTOBOOT);
    Err(error.into())
}

fn serve(job: Job, interface: &Interface) -> Result<(), String> {
    mount_all()?;
    hand_down_cpu();
    let here = Handle::here().map_err(|e| crate::chain(&e))?;
    // Devices take this over when they appear.
    here.quiet_ipv6().map_err(|e| crate::chain(&e))?;
    load_modules();
    fs::write("/proc/sys/kernel/hostname", "guest")
        .map_err(|e| format!("cannot set the host's name: {e}"))?;
    here.set_up("lo").map_err(|e| crate::chain(&e))?;
    if job == Job::Worker {
        interface.set_up(&here).map_err(|e| crate::chain(&e))?;
    }
    let port = open_port()?;
    let back = port.try_clone().map_err(|e| {
        format!("cannot duplicate the file descriptor of virtio port `{PORT}`: {e}")
    })?;
    let child = Command::new(PROGRAM)
        .arg(job.word())
        .env("PATH", SEARCHED.join(":"))
        .stdin(Stdio::from(OwnedFd::from(port)))
        .stdout(Stdio::from(OwnedFd::from(back)))
        .spawn()
        .map_err(|e| format!("cannot start {PROGRAM}: {e}"))?;
    reap_until(child.id())
}

/// Lets groups have shares of the guest's CPUs, which nobody else is there to allow. A kernel without the controller
/// refuses; who asks for shares is told then.
fn hand_down_cpu() {
    let _ = fs::write("/sys/fs/cgroup/cgroup.subtree_control", "+cpu");
}

fn mount_all() -> Result<(), String> {
    for (number, (kind, at)) in MOUNTS.iter().enumerate() {
        let mounted = mount(
            Some(*kind),
            *at,
            Some(*kind),
            MsFlags::empty(),
            None::<&str>,
        );
        match mounted {
            // The kernel may have mounted /dev itself.
            Ok(()) | Err(Errno::EBUSY) => {}
            Err(error) if number < NEEDED_MOUNTS => {
                return Err(format!("cannot mount {kind} at {at}: {error}"));
            }
            Err(error) => crate::note(format_args!("no {kind} at {at}: {error}")),
        }
    }
    Ok(())
}

/// Goes on past modules that are refused, and leaves word of them for the runner.
fn load_modules() {
    let mut files: Vec<PathBuf> = fs::read_dir(MODULES)
        .into_iter()
        .flatten()
        .flatten()
        .map(|entry| entry.path())
        .collect();
    files.sort();
    let mut refused = Vec::new();
    for file in files {
        let loaded = File::open(&file)
            .map_err(|e| Errno::try_from(e).unwrap_or(Errno::EIO))
            .and_then(|module| finit_module(&module, c"", ModuleInitFlags::empty()));
        if let Err(error) = loaded
            && error != Errno::EEXIST
        {
            crate::note(format_args!(
                "cannot load module {}: {error}",
                file.display()
            ));
            refused.push((loaded_name(&file), error));
        }
    }
    let told = fs::write(REFUSED, refusals(&refused).join("\n"));
    if let Err(error) = told {
        crate::note(format_args!("cannot write {REFUSED}: {error}"));
    }
}

/// The name of a module, by its file in the guest.
fn loaded_name(file: &Path) -> String {
    let stem = file.file_stem().unwrap_or_default().to_string_lossy();
    stem.split_once('-')
        .map_or(&*stem, |(_number, name)| name)
        .to_owned()
}

/// A sentence for each reason that modules were refused for.
fn refusals(refused: &[(String, Errno)]) -> Vec<String> {
    let mut by_reason: BTreeMap<i32, (Errno, Vec<&str>)> = BTreeMap::new();
    for (name, error) in refused {
        // Drivers of other CPUs say it, and are not missed.
        if *error != Errno::ENODEV {
            let (_, names) = by_reason
                .entry(*error as i32)
                .or_insert((*error, Vec::new()));
            names.push(name);
        }
    }
    let told = by_reason.into_values().map(|(error, names)| {
        let hint = match error {
            Errno::ENOEXEC => "; built for another kernel (see `modinfo -F vermagic`)",
            Errno::ENOENT => "; this kernel lacks symbols that they need",
            _ => "",
        };
        let names = names.join(", ");
        format!("the guest's kernel refuses modules ({names}): {error}{hint}")
    });
    told.collect()
}

/// The modules that the kernel of this guest refused: a sentence for each reason. None outside of guests.
#[must_use]
pub fn refused_modules() -> Vec<String> {
    let text = fs::read_to_string(REFUSED).unwrap_or_default();
    text.lines().map(str::to_owned).collect()
}

/// Opens the port to the host, which has no other name without udev.
fn open_port() -> Result<File, String> {
    let deadline = Instant::now() + PATIENCE;
    let device = loop {
        if let Some(device) = find_port(Path::new("/sys/class/virtio-ports")) {
            break device;
        }
        if Instant::now() > deadline {
            return Err(format!(
                "there is no virtio port `{PORT}`: the kernel needs CONFIG_VIRTIO_PCI and \
                 CONFIG_VIRTIO_CONSOLE, built in or as modules (--modules)"
            ));
        }
        std::thread::sleep(Duration::from_millis(5));
    };
    OpenOptions::new()
        .read(true)
        .write(true)
        .open(&device)
        .map_err(|e| format!("cannot open {}: {e}", device.display()))
}

fn find_port(class: &Path) -> Option<PathBuf> {
    fs::read_dir(class).ok()?.flatten().find_map(|entry| {
        let name = fs::read_to_string(entry.path().join("name")).ok()?;
        (name.trim() == PORT).then(|| Path::new("/dev").join(entry.file_name()))
    })
}

/// Waits for a process, and for every orphan that ends meanwhile.
fn reap_until(pid: u32) -> Result<(), String> {
    let ours = |ended: Pid| u32::try_from(ended.as_raw()) == Ok(pid);
    loop {
        match wait() {
            Ok(WaitStatus::Exited(ended, 0)) if ours(ended) => return Ok(()),
            Ok(WaitStatus::Exited(ended, status)) if ours(ended) => {
                return Err(format!("{PROGRAM} ended with status {status}"));
            }
            Ok(WaitStatus::Signaled(ended, signal, _)) if ours(ended) => {
                return Err(format!("{PROGRAM} was ended by {signal}"));
            }
            Ok(_) | Err(Errno::EINTR) => {}
            Err(error) => return Err(format!("cannot wait for {PROGRAM}: {error}")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modules_that_were_refused_are_told_by_reason() {
        let name = |file: &str| loaded_name(Path::new(file));
        let refused = [
            (name("/modules/001-aesni_intel.ko"), Errno::ENODEV),
            (name("/modules/002-veth.ko"), Errno::ENOEXEC),
            (name("/modules/003-vrf.ko"), Errno::ENOEXEC),
            (name("/modules/004-macsec.ko"), Errno::ENOENT),
        ];
        let told = refusals(&refused);
        assert_eq!(told.len(), 2, "{told:?}");
        assert!(told[0].contains("(macsec): ENOENT"), "{told:?}");
        assert!(told[1].contains("(veth, vrf): ENOEXEC"), "{told:?}");
        assert!(told[1].contains("vermagic"), "{told:?}");
        assert!(refusals(&refused[..1]).is_empty());
    }
}
