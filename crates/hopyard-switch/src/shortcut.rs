//! The shortcut: TCP between two ports by sockmap, without packets. Experimental, and only for who asks for it.
//!
//! Its files lie beside the switch's. They come in an order that makes it safe to interrupt: the link last, without which
//! the next command takes the rest away; and it goes first.

use std::path::{Path, PathBuf};

use aya::maps::{Array, MapData, PerCpuArray};
use serde::Serialize;

use crate::bpffs;
use crate::error::{Error, Result};
use crate::shortcut_files::{GUEST_FILE, LINK, OWN, SETTINGS};
use crate::state::pinned;

pub(crate) mod layout;
mod loss;
mod pair;
pub(crate) mod programs;
mod self_test;

use layout::Settings;
pub use layout::ShortcutCounters;
pub use loss::{LOSSES, Loss, NotALoss};
pub use pair::PairShortcut;
pub use self_test::{SelfTest, test_shortcut};

/// Longer messages go by frames, bytes: the reader of a joined socket copies while it holds the lock that the next message
/// waits for, so that long ones are faster by the stack.
pub const SHORTCUT_MAX_MESSAGE: u32 = 8192;

/// A shortcut to be.
#[derive(Debug, Clone)]
pub struct NewShortcut<'a> {
    /// Directory of the control group (version 2) whose sockets are joined, and those of groups below.
    pub cgroup: &'a Path,
    /// What joined sockets may lack on this kernel; anything else that [`test_shortcut`] finds is refused.
    pub accept: &'a [Loss],
}

/// The shortcut of a switch.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Shortcut {
    /// The control group whose sockets are joined.
    pub cgroup: PathBuf,
    /// Is that group still there?
    pub has_cgroup: bool,
    /// What joined sockets may lack.
    pub accepted: Vec<Loss>,
}

impl Shortcut {
    pub(crate) fn warnings(&self) -> Vec<String> {
        let path = self.cgroup.display();
        let mut warnings = vec![
            "it has a shortcut, which is experimental: what goes by it is in no capture, packet filter or counter \
             but those of the shortcut"
                .to_owned(),
        ];
        if !self.has_cgroup {
            warnings.push(format!(
                "the control group {path} of the shortcut is gone, and no socket comes to it any more: set it again"
            ));
        }
        warnings
    }
}

/// Ends the shortcut of a switch, where there is one: connections that stand go on by frames, in order, since what went by
/// the shortcut is read first. Sockets keep its programs and maps until they are closed.
pub(crate) fn turn_off(directory: &Path) -> Result<()> {
    if let Ok(mut settings) = settings_map(directory)
        && let Ok(old) = settings.get(&0, 0)
    {
        settings
            .set(0, Settings { on: 0, ..old }, 0)
            .map_err(Error::bpf("turn the shortcut off"))?;
    }
    Ok(())
}

/// Takes the shortcut of a switch away.
pub(crate) fn remove(directory: &Path) -> Result<()> {
    turn_off(directory)?;
    for file in [LINK, GUEST_FILE].into_iter().chain(OWN) {
        bpffs::remove_file(&directory.join(file))?;
    }
    Ok(())
}

/// Takes away what an interrupted command left of a shortcut.
pub(crate) fn repair(directory: &Path) -> Result<()> {
    let is_there = |file: &str| directory.join(file).exists();
    if is_there(LINK) || !OWN.into_iter().chain([GUEST_FILE]).any(is_there) {
        return Ok(());
    }
    remove(directory)
}

pub(crate) fn settings_map(directory: &Path) -> Result<Array<MapData, Settings>> {
    pinned(directory, SETTINGS)
}

/// The counts of all CPUs of a slot.
pub(crate) fn sum_of<T: std::borrow::Borrow<MapData>>(
    counts: &PerCpuArray<T, ShortcutCounters>,
    slot: u32,
) -> Result<ShortcutCounters> {
    let values = counts.get(&slot, 0).map_err(Error::bpf(format!(
        "read the shortcut's counters of slot {slot}"
    )))?;
    let mut sum = ShortcutCounters::default();
    for one in values.iter() {
        sum.add(one);
    }
    Ok(sum)
}
