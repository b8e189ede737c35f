//! Loading the programs, attaching them by links that can be pinned, replacing them in place.

use std::os::fd::AsFd;
use std::path::Path;

use aya::EbpfLoader;
use aya::include_bytes_aligned;
use aya::programs::links::{FdLink, LinkError, PinnedLink};
use aya::programs::tc::{SchedClassifierLink, TcAttachOptions};
use aya::programs::{
    LinkOrder, ProgramError, ProgramFd, ProgramInfo, SchedClassifier, TestRun, TestRunOptions,
    loaded_links,
};
use hopyard_net::Handle;
use nix::errno::Errno;

use crate::error::{Error, Result};
use crate::hook::{DEVICE, GUEST, Hook, Hooks, fresh_file, program_file, programs};
use crate::running::{GONE, at};
use crate::{bpffs, classifier, kernel_function};

/// The compiled programs.
static OBJECT: &[u8] = include_bytes_aligned!(concat!(env!("OUT_DIR"), "/switch.bpf.o"));

/// What the kernel says of a link without a device.
const DEFUNCT: i32 = Errno::ENOLINK as i32;
/// How often a program is opened that somebody replaces at the same time.
const ATTEMPTS: u32 = 16;

/// Loads the programs with the maps pinned in `directory`, made there if they are missing, and pins
/// them beside older ones, for [`install`].
pub(crate) fn load(directory: &Path) -> Result<()> {
    let has_guests = bpffs::is_there(&directory.join(program_file(GUEST)))?;
    load_these(
        directory,
        programs().filter(|name| *name != GUEST || has_guests),
    )
}

/// Loads and installs a program that a switch did not have yet.
pub(crate) fn load_one(directory: &Path, program: &'static str) -> Result<()> {
    load_these(directory, [program])?;
    install(directory)
}

fn load_these(directory: &Path, names: impl IntoIterator<Item = &'static str>) -> Result<()> {
    let object = kernel_function::linked(OBJECT)?;
    let mut object = EbpfLoader::new()
        .default_map_pin_directory(directory)
        .load(&object)
        .map_err(Error::bpf("load the switch's maps"))?;
    for name in names {
        let what = format!("load the program {name}");
        let program: &mut SchedClassifier = object
            .program_mut(name)
            .ok_or_else(|| Error::invalid(what.clone(), "it is not in the object: built wrongly"))?
            .try_into()
            .map_err(Error::bpf(what.clone()))?;
        program.load().map_err(Error::bpf(what.clone()))?;
        let fresh = directory.join(fresh_file(name));
        program.pin(&fresh).map_err(Error::bpf(what))?;
    }
    Ok(())
}

/// Puts the loaded programs in the place of older ones; again, if that was interrupted.
pub(crate) fn install(directory: &Path) -> Result<()> {
    for name in programs() {
        let fresh = directory.join(fresh_file(name));
        bpffs::rename(&fresh, &directory.join(program_file(name)))?;
    }
    Ok(())
}

/// Forgets programs that were loaded and not installed.
pub(crate) fn unload(directory: &Path) -> Result<()> {
    for name in programs() {
        bpffs::remove_file(&directory.join(fresh_file(name)))?;
    }
    Ok(())
}

fn pinned(directory: &Path, hook: Hook) -> Result<SchedClassifier> {
    pinned_program(directory, hook.program())
}

fn pinned_program(directory: &Path, program: &'static str) -> Result<SchedClassifier> {
    open(directory, program, |info| {
        SchedClassifier::from_program_info(info, program.into())
    })
}

/// Opens a pinned program by its identity; again where an upgrade has put another one in its place meanwhile.
fn open<T>(
    directory: &Path,
    program: &str,
    mut by_identity: impl FnMut(ProgramInfo) -> std::result::Result<T, ProgramError>,
) -> Result<T> {
    let mut again = ATTEMPTS;
    loop {
        match by_identity(info(directory, program)?) {
            Err(ProgramError::SyscallError(e))
                if again > 0 && e.io_error.raw_os_error() == Some(GONE) =>
            {
                again -= 1;
            }
            opened => return opened.map_err(Error::bpf(format!("open the program {program}"))),
        }
    }
}

/// What the kernel says of a pinned program. `SchedClassifier::from_pin` asks for the name as well, and to know whether the kernel
/// gives names aya first loads some twenty programs and maps, which takes longer than to attach a program.
fn info(directory: &Path, program: &str) -> Result<ProgramInfo> {
    let file = directory.join(program_file(program));
    let what = format!("open the program {}", file.display());
    ProgramInfo::from_pin(&file).map_err(Error::bpf(what))
}

/// A device as the programs see it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct DeviceSeen {
    /// The address of the kernel's `struct net_device`: there the programs look whether it takes frames.
    pub(crate) address: u64,
    /// The index of the other end of a pair, in whichever namespace; 0: the programs do not see it.
    pub(crate) peer: u32,
}

/// The address of the kernel's `struct net_device` of a device of the calling thread's namespace.
pub(crate) fn net_device(directory: &Path, index: u32) -> Result<u64> {
    see_device(directory, index, false).map(|seen| seen.address)
}

/// How the programs see a device of the calling thread's namespace, which may be an end of a pair.
pub(crate) fn see_device(directory: &Path, index: u32, is_pair: bool) -> Result<DeviceSeen> {
    // `ifindex` of `struct __sk_buff`.
    const IFINDEX: usize = 40;
    let what = || format!("find device {index} in the kernel");
    let mut context = [0; IFINDEX + 4];
    context[IFINDEX..].copy_from_slice(&index.to_ne_bytes());
    let mut asked = [0; 60];
    asked[0] = u8::from(is_pair);
    let mut frame = [0; 60];
    let result = pinned_program(directory, DEVICE)?
        .test_run(TestRunOptions {
            data_in: Some(&asked),
            data_out: Some(&mut frame),
            ctx_in: Some(&context),
            ..TestRunOptions::new()
        })
        .map_err(Error::bpf(what()))?;
    let [a, b, c, d, e, f, g, h, i, j, k, l, ..] = frame;
    let address = u64::from_ne_bytes([a, b, c, d, e, f, g, h]);
    if result.return_value != 0 || address == 0 {
        return Err(Error::invalid(what(), "its address cannot be read"));
    }
    let peer = u32::from_ne_bytes([i, j, k, l]);
    Ok(DeviceSeen { address, peer })
}

/// The kind of hooks in a namespace, which is the calling thread's.
pub(crate) struct Place<'a> {
    pub(crate) handle: &'a Handle,
    pub(crate) hooks: Hooks,
    /// May programs of others come before those of the switch?
    pub(crate) behind: bool,
}

/// Attaches the pinned program of a hook to a device of the calling thread's namespace, and pins the link where there is
/// one. It comes before whatever runs there, or is refused; where others may come before, it comes behind all.
pub(crate) fn attach(
    directory: &Path,
    place: &Place<'_>,
    hook: Hook,
    device: &str,
    link: &str,
) -> Result<()> {
    let what = format!("attach {} to `{device}`", hook.program());
    if place.hooks == Hooks::Clsact {
        let (own, program) = open_classifier(directory, hook)?;
        classifier::attach(place.handle, program.as_fd(), hook, device)?;
        return place
            .check_first(&what, hook, device, own)
            .inspect_err(|_| {
                // The first problem is the one to report.
                let _ = classifier::detach(place.handle, hook, device, own);
            });
    }
    let mut program = pinned(directory, hook)?;
    let own = program.info().map_err(Error::bpf(what.clone()))?.id();
    let order = TcAttachOptions::TcxOrder(if place.behind {
        LinkOrder::last()
    } else {
        LinkOrder::first()
    });
    let id = program
        .attach_with_options(device, hook.attach_type(), order)
        .map_err(Error::bpf(what.clone()))?;
    let attached = program.take_link(id).map_err(Error::bpf(what.clone()))?;
    let fd = FdLink::try_from(attached).map_err(Error::bpf(what.clone()))?;
    // Until it is pinned the link ends with this value, or with this process.
    place.check_first(&what, hook, device, own)?;
    fd.pin(directory.join(link)).map_err(Error::bpf(what))?;
    Ok(())
}

impl Place<'_> {
    /// Refuses a hook where something of others comes before the program of this identity, unless that is meant.
    fn check_first(&self, what: &str, hook: Hook, device: &str, own: u32) -> Result<()> {
        if self.behind {
            return Ok(());
        }
        let there = at(self.handle, device, hook.side())?;
        let mut before = there.iter().take_while(|one| one.program != Some(own));
        let Some(other) = before.find(|one| !one.is_ours()) else {
            return Ok(());
        };
        Err(Error::NotFirst {
            what: what.to_owned(),
            other: other.to_string(),
        })
    }
}

/// Makes the pinned program of a hook run as the classifier of a device in place of the one there.
pub(crate) fn replace_classifier(
    directory: &Path,
    handle: &Handle,
    hook: Hook,
    device: &str,
) -> Result<()> {
    let (_, program) = open_classifier(directory, hook)?;
    classifier::replace(handle, program.as_fd(), hook, device)
}

/// The pinned program of this name.
pub(crate) fn opened(directory: &Path, program: &str) -> Result<ProgramFd> {
    open(directory, program, |info| info.fd())
}

/// The pinned program of a hook, with its identity.
fn open_classifier(directory: &Path, hook: Hook) -> Result<(u32, ProgramFd)> {
    open(directory, hook.program(), |info| {
        Ok((info.id(), info.fd()?))
    })
}

/// Makes a pinned link run the pinned program of its hook; no packet sees neither or both. A link that runs
/// nothing any more, its device being gone, stays so.
pub(crate) fn replace(directory: &Path, hook: Hook, link: &str) -> Result<()> {
    update(directory, hook, link).map(drop)
}

/// The same; is the device of the link there? The kernel says so in every namespace.
pub(crate) fn update(directory: &Path, hook: Hook, link: &str) -> Result<bool> {
    let file = directory.join(link);
    let what = format!("replace the program of {}", file.display());
    let mut program = pinned(directory, hook)?;
    let old = PinnedLink::from_pin(&file).map_err(Error::bpf(what.clone()))?;
    let old = SchedClassifierLink::try_from(FdLink::from(old)).map_err(Error::bpf(what.clone()))?;
    match program.attach_to_link(old) {
        Err(ProgramError::SyscallError(e)) if e.io_error.raw_os_error() == Some(DEFUNCT) => {
            Ok(false)
        }
        replaced => replaced.map(|_| true).map_err(Error::bpf(what)),
    }
}

/// Pins a link that has no file, and makes it run the pinned program of its hook, which may be a newer one.
pub(crate) fn pin(directory: &Path, hook: Hook, link: FdLink, name: &str) -> Result<()> {
    let file = directory.join(name);
    let what = format!("pin {}", file.display());
    link.pin(file).map_err(Error::bpf(what.clone()))?;
    if update(directory, hook, name)? {
        return Ok(());
    }
    Err(Error::invalid(what, "its device is gone"))
}

/// Is there a link that runs a program and that somebody holds, by a file or a descriptor? Of those that nobody
/// holds any more, but the kernel has not detached yet, it lets us open none.
pub(crate) fn is_linked(program: u32) -> Result<bool> {
    for link in loaded_links() {
        match link {
            Ok(link) if link.program_id() == program => return Ok(true),
            Ok(_) => {}
            Err(LinkError::SyscallError(e)) if e.io_error.raw_os_error() == Some(GONE) => {}
            Err(e) => {
                let what = "ask for the links of all programs";
                return Err(Error::bpf(what)(e));
            }
        }
    }
    Ok(false)
}

/// Is a program one of those pinned in `directory`?
pub(crate) fn is_pinned(directory: &Path, program: u32) -> Result<bool> {
    for hook in Hook::ALL {
        if identity(directory, hook)? == program {
            return Ok(true);
        }
    }
    Ok(false)
}

/// The identity of the pinned program of a hook.
pub(crate) fn identity(directory: &Path, hook: Hook) -> Result<u32> {
    info(directory, hook.program()).map(|info| info.id())
}
