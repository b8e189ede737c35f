//! Keys for an sshd of the test's own.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::Command;

use super::plan::Room;

/// In the room: `host`, the daemon's key; `own`, the user's; `authorized`, who may log in. Keys that are there stay.
pub(crate) fn make_keys(room: &Room) {
    for name in ["host", "own"] {
        let key = room.name(name);
        if room.at(name).exists() {
            continue;
        }
        let words = ["-q", "-t", "ed25519", "-N", "", "-f", &key];
        let made = Command::new("ssh-keygen").args(words).status().unwrap();
        assert!(made.success(), "ssh-keygen of {key}: {made}");
    }
    fs::copy(room.at("own.pub"), room.at("authorized")).unwrap();
    let of_user = fs::Permissions::from_mode(0o700);
    fs::set_permissions(room.path(), of_user).unwrap();
}
