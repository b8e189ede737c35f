//! A guest that is an endpoint: a kernel, a network card on a tap, and `hopyard worker` at the port.

use std::fs::OpenOptions;
use std::os::fd::{AsRawFd, OwnedFd};
use std::process::Command;
use std::time::Duration;

use hopyard_net::inherit;
use hopyard_switch::Mac;

use super::init::{Interface, Job};
use super::machine::{accelerator, patience};
use super::qemu::{Accelerator, Console, Guest};
use super::{Kit, Result};
use crate::model::GuestUsed;

/// Where the kernel takes over a card's queues from QEMU.
const VHOST: &str = "/dev/vhost-net";
/// Everything that a card leaves to the other side, or takes unfinished from it.
const OFFLOADS: &str = "csum=off,gso=off,host_tso4=off,host_tso6=off,host_ecn=off,host_ufo=off,guest_csum=off,\
                        guest_tso4=off,guest_tso6=off,guest_ecn=off,guest_ufo=off";

/// Where frames of a guest's card come from and go to. It has as many queues as the card.
#[derive(Debug)]
pub(crate) enum Backend<'a> {
    /// A tap, in the namespace that QEMU is started in.
    Tap(&'a str),
    /// Queues of a macvtap, open.
    Queues(Vec<OwnedFd>),
}

/// A guest with a card.
#[derive(Debug)]
pub(crate) struct WorkerGuest<'a> {
    /// The host's end of its card.
    pub(crate) backend: Backend<'a>,
    /// MAC address of its card.
    pub(crate) mac: [u8; 6],
    pub(crate) cpus: u32,
    /// Of its card; the guest uses one for each of its CPUs at most.
    pub(crate) queues: u32,
    pub(crate) memory_mib: u32,
    /// Does vhost-net carry the card's frames?
    pub(crate) vhost: bool,
    /// Does its card leave checksums and segments to the host?
    pub(crate) offload: bool,
    /// What its card is to have.
    pub(crate) interface: Interface,
}

/// A guest about to boot.
#[derive(Debug)]
pub(crate) struct Bootable {
    /// Becomes its worker.
    pub(crate) command: Command,
    /// Where its console goes; to be kept until it has started.
    pub(crate) console: Console,
    /// How long that may take.
    pub(crate) patience: Duration,
    /// For results.
    pub(crate) used: GuestUsed,
}

impl Backend<'_> {
    /// Words for QEMU's `-netdev tap`.
    fn words(&self, queues: u32) -> String {
        match self {
            Self::Tap(name) if queues > 1 => {
                format!("ifname={name},script=no,downscript=no,queues={queues}")
            }
            Self::Tap(name) => format!("ifname={name},script=no,downscript=no"),
            Self::Queues(files) => {
                let numbers = files.iter().map(|queue| queue.as_raw_fd().to_string());
                let numbers: Vec<_> = numbers.collect();
                // `fds` makes a card of many queues, also of one.
                let key = if queues > 1 { "fds" } else { "fd" };
                format!("{key}={}", numbers.join(":"))
            }
        }
    }
}

/// Can guests use vhost-net?
pub(crate) fn has_vhost() -> bool {
    let device = OpenOptions::new().read(true).write(true).open(VHOST);
    device.is_ok()
}

impl WorkerGuest<'_> {
    /// How to boot it.
    ///
    /// # Errors
    /// There is no QEMU, or KVM cannot be tried.
    pub(crate) fn command(self, kit: &Kit) -> Result<Bootable> {
        let mut job = vec![Job::Worker.word().to_owned()];
        job.extend(self.interface.words());
        let guest = Guest {
            kernel: &kit.kernel,
            initramfs: &kit.initramfs,
            cpus: self.cpus as usize,
            memory_mib: self.memory_mib,
            append: "quiet",
            job,
            devices: self.card(),
        };
        let accelerator = accelerator(&guest)?;
        let (mut command, console) = guest.command(accelerator)?;
        if let Backend::Queues(queues) = self.backend {
            for queue in queues {
                inherit(&mut command, queue);
            }
        }
        Ok(Bootable {
            command,
            console,
            patience: patience(accelerator),
            used: GuestUsed {
                kernel: kit.kernel.release.clone(),
                cpus: self.cpus,
                emulated: accelerator == Accelerator::Tcg,
            },
        })
    }

    fn card(&self) -> Vec<String> {
        let mut backend = format!("tap,id=card,{}", self.backend.words(self.queues));
        let mac = Mac(self.mac);
        let mut card = format!("virtio-net-pci,netdev=card,mac={mac}");
        if self.queues > 1 {
            // Two for each queue, one for control, one for changes.
            card.push_str(&format!(",mq=on,vectors={}", 2 * self.queues + 2));
        }
        if self.vhost {
            backend.push_str(",vhost=on");
        }
        if !self.offload {
            card.push(',');
            card.push_str(OFFLOADS);
        }
        ["-netdev", &backend, "-device", &card]
            .map(str::to_owned)
            .into()
    }
}
