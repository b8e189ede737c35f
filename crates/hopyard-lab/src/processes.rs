//! Processes by the namespaces that they are in.

use std::fs;
use std::path::PathBuf;

/// Each process's id and its namespace of a kind (`net`, `mnt`; `/proc/PID/ns`), except of those that may not be seen.
pub(super) fn with_namespace(kind: &str) -> impl Iterator<Item = (u32, PathBuf)> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    entries.filter_map(move |entry| {
        let pid = entry.file_name().to_str()?.parse().ok()?;
        let namespace = fs::read_link(format!("/proc/{pid}/ns/{kind}")).ok()?;
        Some((pid, namespace))
    })
}
