//! Names of the files of a shortcut, beside those of its switch.

pub(crate) const SETTINGS: &str = "shortcut";
pub(crate) const GUESTS: &str = "shortcut_guests";
pub(crate) const LIVES: &str = "shortcut_lives";
pub(crate) const COUNTS: &str = "shortcut_counts";
pub(crate) const SOCKETS: &str = "shortcut_sockets";
/// Its maps.
pub(crate) const OWN: [&str; 7] = [
    SETTINGS,
    GUESTS,
    LIVES,
    COUNTS,
    SOCKETS,
    "shortcut_met",
    "shortcut_ends",
];
/// The pinned program that knows guests.
pub(crate) const GUEST_FILE: &str = "shortcut_guest";
/// The pinned link, the last file to come and the first to go.
pub(crate) const LINK: &str = "link-shortcut";

/// Does a shortcut have a file of this name?
pub(crate) fn is_file(name: &str) -> bool {
    OWN.contains(&name) || name == LINK || name == GUEST_FILE
}
