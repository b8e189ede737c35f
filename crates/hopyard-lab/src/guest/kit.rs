//! What guests of paths boot with: one kernel for a process, and a file system for its workers.

use std::fs::OpenOptions;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use super::{Contents, Error, Initramfs, Kernel, Result, fetch, qemu};

/// Where taps come from.
const TUN: &str = "/dev/net/tun";

static CHOSEN: OnceLock<PathBuf> = OnceLock::new();

/// Has guests of paths boot this kernel from now on.
///
/// # Errors
/// It is none, or another was chosen before.
pub fn choose_kernel(image: &Path) -> Result<()> {
    Kernel::open(image, None)?;
    let chosen = CHOSEN.get_or_init(|| image.to_owned());
    if chosen == image {
        Ok(())
    } else {
        Err(Error::Chosen(chosen.clone()))
    }
}

/// The kernel that guests of paths boot: the chosen one, else the newest that was fetched.
fn kernel() -> Option<PathBuf> {
    let newest = || fetch::fetched(&fetch::home()).into_iter().next();
    CHOSEN.get().cloned().or_else(newest)
}

/// The kernel that was chosen for guests of paths.
#[must_use]
pub fn chosen_kernel() -> Option<&'static Path> {
    CHOSEN.get().map(PathBuf::as_path)
}

/// Release of the kernel that guests of paths boot; `None` without one.
///
/// # Errors
/// It cannot be read.
pub fn release_of_kernel() -> Result<Option<String>> {
    let kernel = kernel().map(|image| Kernel::open(&image, None));
    Ok(kernel.transpose()?.map(|kernel| kernel.release))
}

/// A kernel with the file system for a worker.
#[derive(Debug)]
pub(crate) struct Kit {
    pub(super) kernel: Kernel,
    pub(super) initramfs: Initramfs,
    program: PathBuf,
}

impl Kit {
    /// Packs it once per process and program.
    pub(crate) fn for_worker(program: &Path) -> Result<Arc<Self>> {
        static PACKED: Mutex<Vec<Arc<Kit>>> = Mutex::new(Vec::new());
        let mut packed = PACKED.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(kit) = packed.iter().find(|kit| kit.program == program) {
            return Ok(kit.clone());
        }
        let kernel = Kernel::open(&kernel().ok_or(Error::NoneChosen)?, None)?;
        let kit = Arc::new(Self {
            initramfs: Initramfs::build(&kernel, program, Contents::Worker)?,
            kernel,
            program: program.to_owned(),
        });
        packed.push(kit.clone());
        Ok(kit)
    }
}

/// Can this host boot a guest for a path?
pub(crate) fn probe() -> hopyard_net::Result<()> {
    let unsupported = |feature: &str, remedy: String| hopyard_net::Error::Unsupported {
        what: "boot a guest".to_owned(),
        feature: feature.to_owned(),
        remedy,
    };
    let opened = OpenOptions::new().read(true).write(true).open(TUN);
    opened.map_err(|error| {
        unsupported(
            "tun",
            format!("load module `tun`, which gives {TUN} ({error}), or choose another path"),
        )
    })?;
    qemu::program().map_err(|_| {
        let remedy = "install package `qemu-system-x86` (Debian, Ubuntu), or choose another path";
        unsupported("QEMU", remedy.to_owned())
    })?;
    kernel().map(drop).ok_or_else(|| {
        let remedy =
            "run `hopyard kernel fetch` or give one with --guest-kernel, or choose another path";
        unsupported("guest kernel", remedy.to_owned())
    })
}
