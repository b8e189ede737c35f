//! `/proc/self/mountinfo`, as far as it is needed to find a file system.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;

/// The mount points of a file system type, in the order of the file. See `proc_pid_mountinfo(5)`.
pub(crate) fn mount_points(mountinfo: &str, filesystem: &str) -> Vec<PathBuf> {
    mountinfo
        .lines()
        .filter_map(|line| {
            // The optional fields before " - " vary in number.
            let (mount, source) = line.split_once(" - ")?;
            let point = mount.split(' ').nth(4)?;
            (source.split(' ').next()? == filesystem).then(|| unescape(point))
        })
        .collect()
}

/// Blanks and backslashes are written as three octal digits.
fn unescape(text: &str) -> PathBuf {
    let bytes = text.as_bytes();
    let mut out = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while let Some(&byte) = bytes.get(at) {
        let code = (byte == b'\\')
            .then(|| text.get(at + 1..at + 4))
            .flatten()
            .and_then(|digits| u8::from_str_radix(digits, 8).ok());
        out.push(code.unwrap_or(byte));
        at += if code.is_some() { 4 } else { 1 };
    }
    PathBuf::from(OsString::from_vec(out))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_cgroup2_among_the_mounts() {
        let text = "\
22 1 0:21 / /sys rw,nosuid shared:7 - sysfs sysfs rw
29 22 0:26 / /sys/fs/cgroup/cpu rw shared:9 - cgroup cgroup rw,cpu
30 22 0:27 / /sys/fs/cgroup/uni\\040fied rw shared:10 master:2 - cgroup2 cgroup2 rw
31 22 0:28 / /other rw - cgroup2 none rw
rubbish";
        let points = mount_points(text, "cgroup2");
        assert_eq!(
            points,
            [
                PathBuf::from("/sys/fs/cgroup/uni fied"),
                PathBuf::from("/other")
            ]
        );
        assert!(mount_points(text, "ext4").is_empty());
    }

    #[test]
    fn odd_escapes_stay_as_they_are() {
        assert_eq!(unescape("/a\\134b\\9\\"), PathBuf::from("/a\\b\\9\\"));
    }
}
