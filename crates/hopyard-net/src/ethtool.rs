//! Device features by the kernel's own names, through `SIOCETHTOOL`
//! (`net/core/dev_ioctl.c`, `net/ethtool/ioctl.c`).

use std::io;
use std::os::fd::BorrowedFd;
use std::sync::OnceLock;

use crate::ifreq;

const ETHTOOL_GDRVINFO: u32 = 0x03;
const ETHTOOL_GLINK: u32 = 0x0a;
const ETHTOOL_GPAUSEPARAM: u32 = 0x12;
const ETHTOOL_GSTRINGS: u32 = 0x1b;
const ETHTOOL_GSSET_INFO: u32 = 0x37;
const ETHTOOL_GFEATURES: u32 = 0x3a;
const ETHTOOL_SFEATURES: u32 = 0x3b;
const ETH_SS_FEATURES: u32 = 4;
/// Bytes of a name, zero-padded.
const STRING: usize = 32;
/// Words of `struct ethtool_drvinfo` (include/uapi/linux/ethtool.h): the command, names, and counts.
const DRVINFO: usize = 49;
/// Far above what any kernel has; bounds the buffer.
const MOST_FEATURES: u32 = 1024;

/// One feature of one device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Feature {
    /// Position in the kernel's list.
    pub(crate) bit: usize,
    /// Its name.
    pub(crate) name: &'static str,
    /// Whether it is on.
    pub(crate) active: bool,
    /// Whether it can be changed.
    pub(crate) changeable: bool,
}

/// Whether a device has a link; pending changes of its state take effect first (`linkwatch_sync_dev`).
pub(crate) fn link_detected(socket: BorrowedFd<'_>, device: &str) -> io::Result<bool> {
    // struct ethtool_value: cmd, data.
    let mut words = [ETHTOOL_GLINK, 0];
    // SAFETY: two words are the whole `struct ethtool_value`.
    unsafe { ifreq::ethtool(socket, device, &mut words) }?;
    Ok(words[1] != 0)
}

/// Whether pause frames are negotiated, heeded and sent.
pub(crate) fn pause(socket: BorrowedFd<'_>, device: &str) -> io::Result<[bool; 3]> {
    // struct ethtool_pauseparam: cmd, autoneg, rx_pause, tx_pause.
    let mut words = [ETHTOOL_GPAUSEPARAM, 0, 0, 0];
    // SAFETY: four words are the whole `struct ethtool_pauseparam`.
    unsafe { ifreq::ethtool(socket, device, &mut words) }?;
    Ok([words[1], words[2], words[3]].map(|word| word != 0))
}

/// The name of a device's driver; `None` of a device that tells of none (`ethtool_get_drvinfo`).
pub(crate) fn driver(socket: BorrowedFd<'_>, device: &str) -> io::Result<Option<String>> {
    let mut words = [0; DRVINFO];
    words[0] = ETHTOOL_GDRVINFO;
    // SAFETY: the buffer is as long as the whole `struct ethtool_drvinfo`.
    match unsafe { ifreq::ethtool(socket, device, &mut words) } {
        Ok(_) => {}
        Err(error) if error.raw_os_error() == Some(libc::EOPNOTSUPP) => return Ok(None),
        Err(error) => return Err(error),
    }
    let name: Vec<u8> = words[1..=STRING / 4]
        .iter()
        .flat_map(|word| word.to_ne_bytes())
        .collect();
    Ok(Some(crate::attrs::text(&name)).filter(|name| !name.is_empty()))
}

/// All features of a device.
pub(crate) fn features(socket: BorrowedFd<'_>, device: &str) -> io::Result<Vec<Feature>> {
    let names = names(socket, device)?;
    let blocks = names.len().div_ceil(32);
    let mut words = vec![0; 2 + blocks * 4];
    words[0] = ETHTOOL_GFEATURES;
    words[1] = count(blocks);
    // SAFETY: the buffer has the number of blocks stated in it, and the kernel writes no more.
    unsafe { ifreq::ethtool(socket, device, &mut words) }?;
    let bit_of = |word: usize, bit: usize| {
        words
            .get(2 + bit / 32 * 4 + word)
            .is_some_and(|bits| bits >> (bit % 32) & 1 == 1)
    };
    // struct ethtool_get_features_block: available, requested, active, never_changed.
    Ok(names
        .iter()
        .enumerate()
        .map(|(bit, name)| Feature {
            bit,
            name,
            active: bit_of(2, bit),
            changeable: bit_of(0, bit) && !bit_of(3, bit),
        })
        .collect())
}

/// Asks for features by position to be on or off. That the kernel answers without an error does not
/// mean that they are: read them back.
pub(crate) fn set(
    socket: BorrowedFd<'_>,
    device: &str,
    bits: &[usize],
    on: bool,
) -> io::Result<()> {
    let blocks = names(socket, device)?.len().div_ceil(32);
    let mut words = vec![0; 2 + blocks * 2];
    words[0] = ETHTOOL_SFEATURES;
    words[1] = count(blocks);
    for bit in bits {
        // struct ethtool_set_features_block: valid, requested.
        let at = 2 + bit / 32 * 2;
        if let Some(valid) = words.get_mut(at) {
            *valid |= 1 << (bit % 32);
        }
        if let (true, Some(requested)) = (on, words.get_mut(at + 1)) {
            *requested |= 1 << (bit % 32);
        }
    }
    // SAFETY: the buffer has the number of blocks stated in it; the kernel only reads them.
    unsafe { ifreq::ethtool(socket, device, &mut words) }.map(drop)
}

/// The names, which are the same for every device as long as the kernel runs.
fn names(socket: BorrowedFd<'_>, device: &str) -> io::Result<&'static [String]> {
    static NAMES: OnceLock<Vec<String>> = OnceLock::new();
    if let Some(names) = NAMES.get() {
        return Ok(names);
    }
    let names = read_names(socket, device)?;
    Ok(NAMES.get_or_init(|| names))
}

fn read_names(socket: BorrowedFd<'_>, device: &str) -> io::Result<Vec<String>> {
    // struct ethtool_sset_info: cmd, reserved, 64-bit mask of sets, then one count per set.
    let mask = (1u64 << ETH_SS_FEATURES).to_ne_bytes();
    let half = |at: usize| u32::from_ne_bytes([mask[at], mask[at + 1], mask[at + 2], mask[at + 3]]);
    let mut info = [ETHTOOL_GSSET_INFO, 0, half(0), half(4), 0];
    // SAFETY: one set is asked for, so one count comes back, into the last word.
    unsafe { ifreq::ethtool(socket, device, &mut info) }?;
    let number = info[4];
    if number == 0 || number > MOST_FEATURES {
        return Err(io::Error::other(format!(
            "the kernel claims {number} features"
        )));
    }
    let number_of_names = usize::try_from(number).map_err(io::Error::other)?;
    // struct ethtool_gstrings: cmd, set, number, then the names.
    let mut words = vec![0; 3 + number_of_names * STRING / 4];
    words[0] = ETHTOOL_GSTRINGS;
    words[1] = ETH_SS_FEATURES;
    words[2] = number;
    // SAFETY: the buffer holds the number of names the kernel just counted, which never changes.
    unsafe { ifreq::ethtool(socket, device, &mut words) }?;
    let bytes: Vec<u8> = words
        .iter()
        .skip(3)
        .flat_map(|word| word.to_ne_bytes())
        .collect();
    Ok(bytes.chunks_exact(STRING).map(crate::attrs::text).collect())
}

fn count(blocks: usize) -> u32 {
    u32::try_from(blocks).unwrap_or(0)
}
