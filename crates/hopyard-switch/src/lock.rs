//! The lock on the switches of a host. Whoever gets it finishes what a killed one had begun.

use std::fs::{self, File};
use std::io::{ErrorKind, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use hopyard_net::owned;
use nix::fcntl::{Flock, FlockArg, OFlag};
use nix::mount::umount;

use crate::bpffs::{
    BPFFS, HOME, directory, files, has_bpf_file_system, is_directory, is_empty, is_gone,
    is_home_there, is_ours, is_there, names, no_access, prepare, stands_at,
};
use crate::error::{Result, file_error};
use crate::hook::is_file_of_a_program;
use crate::shortcut_files;
use crate::state::{MAPS, Stage, stage};
use crate::teardown;

/// The right to make, change and remove switches, [`HOME`] and the mount: one holder at a time; ends with
/// this value or with the process.
///
/// When it ends after the last switch, the directories go too, and the mount if it was ours and nobody uses
/// it.
#[derive(Debug)]
pub(crate) struct Lock {
    held: Flock<File>,
    /// Did this process make the file?
    is_new: bool,
    keeps_file: Keeps,
}

/// Does the lock's file stay when the lock ends?
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Keeps {
    Never,
    /// As long as there are switches.
    ForSwitches,
    /// There are switches that cannot be seen.
    ForOthers,
}

/// The lock's file, there as long as there are switches, and while somebody holds or awaits it. It is not in the BPF file system, which comes
/// and goes under the lock.
const LOCK: &str = "/run/hopyard-switch.lock";
/// What is in it while there are switches.
const THERE_ARE_SOME: &[u8] = b"there are switches\n";

impl Lock {
    /// Waits for the lock, then makes [`HOME`] where it is missing.
    pub(crate) fn making_home() -> Result<Self> {
        let mut lock = Self::wait()?;
        prepare()?;
        lock.keep_for_switches();
        sweep()?;
        Ok(lock)
    }

    /// Waits for the lock; `None` where there is no switch at all.
    pub(crate) fn at_home() -> Result<Option<Self>> {
        // The lock's file goes last: where it is and `HOME` is not, somebody may have died in between, and
        // what is left goes with the lock.
        if !is_home_there()? && !is_there(Path::new(LOCK))? {
            return Ok(None);
        }
        let mut lock = Self::wait()?;
        // Whoever held it may have removed the last switch. Nobody but root could put anything else there meanwhile.
        lock.keep_if_used();
        if lock.keeps_file != Keeps::ForSwitches {
            return Ok(None);
        }
        sweep()?;
        Ok(Some(lock))
    }

    /// Has the file stay as long as there are switches, and say that there are.
    fn keep_for_switches(&mut self) {
        self.keeps_file = Keeps::ForSwitches;
        // Best effort: without it, whoever cannot see the switches takes them for gone.
        if self.held.metadata().is_ok_and(|file| file.len() == 0) {
            let _ = (&*self.held).write_all(THERE_ARE_SOME);
        }
    }

    fn keep_if_used(&mut self) {
        if is_directory(Path::new(HOME)) {
            self.keep_for_switches();
        } else if !self.is_new && are_hidden() {
            self.keeps_file = Keeps::ForOthers;
        }
    }

    /// Does somebody hold the lock just now?
    pub(crate) fn is_held() -> bool {
        let file = File::options()
            .read(true)
            .custom_flags(OFlag::O_NOFOLLOW.bits())
            .open(LOCK);
        file.is_ok_and(|file| Flock::lock(file, FlockArg::LockSharedNonblock).is_err())
    }

    fn wait() -> Result<Self> {
        let (held, is_new) = wait_for(Path::new(LOCK))?;
        Ok(Self {
            held,
            is_new,
            keeps_file: Keeps::Never,
        })
    }
}

/// Are there switches that the calling process cannot see, since the BPF file system is hidden from it, as `ip netns exec` does? The
/// lock's file, which is elsewhere, tells; that of an earlier version does not.
#[must_use]
pub fn are_hidden() -> bool {
    !has_bpf_file_system() && fs::metadata(LOCK).is_ok_and(|file| file.len() > 0)
}

/// Waits for the lock on a file that only root can open, and says whether this process made it. Whoever holds it may remove the file.
pub(crate) fn wait_for(path: &Path) -> Result<(Flock<File>, bool)> {
    loop {
        let mut options = File::options();
        let options = options
            .write(true)
            .mode(0o600)
            .custom_flags(OFlag::O_NOFOLLOW.bits());
        let (opened, is_new) = match options.open(path) {
            Err(error) if error.kind() == ErrorKind::NotFound => {
                match options.clone().create_new(true).open(path) {
                    Err(error) if error.kind() == ErrorKind::AlreadyExists => continue,
                    made => (made, true),
                }
            }
            opened => (opened, false),
        };
        let file = opened.map_err(no_access(path))?;
        let lock = Flock::lock(file, FlockArg::LockExclusive)
            .map_err(|(_, errno)| file_error("lock", path)(errno.into()))?;
        // Whoever held it before has removed its file, and another one may stand there now.
        if stands_at(&lock, path) {
            return Ok((lock, is_new));
        }
    }
}

impl Drop for Lock {
    /// Best effort: what is still in use stays, and does no harm. The file stays as long as there are switches: those who wait
    /// for it would all wake up to find it gone, and wait again for the next one.
    fn drop(&mut self) {
        if self.keeps_file == Keeps::ForOthers {
            return;
        }
        let home = Path::new(HOME);
        let gone = is_gone(home) && home.parent().is_some_and(is_gone);
        if gone {
            // Before the mount goes: whoever is killed in between leaves a file that says so.
            let _ = self.held.set_len(0);
            if is_ours() && is_empty() {
                let _ = umount(BPFFS);
            }
        }
        if gone || self.keeps_file == Keeps::Never {
            // Still under the lock, so that whoever waits for it finds out.
            let _ = owned::remove_file(Path::new(LOCK));
        }
    }
}

/// Unmounts what was mounted for switches and is used no more.
pub(crate) fn tidy() {
    // Best effort: the next one who takes the lock does it.
    if let Ok(mut lock) = Lock::wait() {
        lock.keep_if_used();
    }
}

/// Takes away the switches whose making or removal was interrupted: whoever held the lock meanwhile is dead.
fn sweep() -> Result<()> {
    for name in names()? {
        // One that cannot be removed is no reason to refuse others. Whoever asks for it by name is told why.
        let _ = finish(&directory(&name));
    }
    Ok(())
}

/// Takes away a switch whose making or removal was interrupted, under the lock. A directory with a file that no switch has is
/// somebody else's, and stays.
pub(crate) fn finish(directory: &Path) -> Result<()> {
    if !is_directory(directory) || stage(directory)? != Stage::Unfinished {
        return Ok(());
    }
    match files(directory)?
        .iter()
        .all(|file| is_file_of_a_switch(file))
    {
        true => teardown::all(directory),
        false => Ok(()),
    }
}

/// Does a switch have a file of this name?
fn is_file_of_a_switch(file: &Path) -> bool {
    let name = file.file_name().unwrap_or_default().to_string_lossy();
    MAPS.contains(&&*name) || is_file_of_a_program(&name) || shortcut_files::is_file(&name)
}
