//! Mounts that are to outlive the process that made them.

use std::fs;
use std::io::ErrorKind;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// The root of the first process of this PID namespace.
const FIRST: &str = "/proc/1/root";

/// Whether the first process sees a file as this one does. What it does not see is mounted in namespaces that end with this process.
pub(super) fn outlives_us(file: &Path) -> bool {
    let of = |file: &Path| fs::metadata(file).map(|found| (found.dev(), found.ino()));
    let first = Path::new(FIRST).join(file.strip_prefix("/").unwrap_or(file));
    match (of(file), of(&first)) {
        (Ok(own), Ok(of_first)) => own == of_first,
        // Where nobody may look, it is believed.
        (Ok(_), Err(error)) => error.kind() == ErrorKind::PermissionDenied,
        (Err(_), _) => false,
    }
}

/// What to do, as the end of a sentence.
pub(super) const INSTEAD: &str = "this process has mounts of its own, with which it would go (`ip netns exec`, PrivateTmp= of a unit): enter a \
     network namespace by `nsenter --net=FILE` instead";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_seen_by_all_and_missing_ones_by_nobody() {
        assert!(outlives_us(Path::new("/proc/version")));
        assert!(!outlives_us(Path::new("/nowhere/at/all")));
    }
}
