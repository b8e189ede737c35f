//! Paths that cannot be built here, or whose figures would not count; and machines with too few CPUs.

use crate::lab;

/// Why a path cannot be built here, or why that would not count.
pub(super) fn lacking(name: &str, in_guest: bool) -> Option<String> {
    lab::lacking(name).or_else(|| {
        let is_ovs = name.starts_with("ovs-");
        (is_ovs && !in_guest && !lab::ovs::in_kernel()).then(|| {
            "the openvswitch kernel module is missing, and its userspace datapath does not count; `--kernel` takes one \
             that has it, as Debian's (docs/guests.md)"
                .to_owned()
        })
    })
    .or_else(|| {
        (name == "vm" && !has_kvm()).then(|| {
            "a guest would be emulated for want of KVM (/dev/kvm), and its figures have a shape and no size"
                .to_owned()
        })
    })
}

/// Why a check that takes at `least` so many CPUs cannot be tested on a machine with `cpus`. With it goes what the machine lacks
/// `besides`, each a sentence.
pub(super) fn few_cpus(
    least: Option<u32>,
    cpus: u32,
    besides: impl FnOnce() -> Vec<String>,
) -> Option<Vec<String>> {
    let least = least.filter(|least| *least > cpus)?;
    let mut all = vec![format!(
        "it is about {least} CPUs or more, and this machine has {cpus}"
    )];
    all.extend(besides());
    Some(all)
}

/// May guests use the machine's own CPUs?
#[must_use]
pub fn has_kvm() -> bool {
    let device = std::fs::OpenOptions::new()
        .read(true)
        .write(true)
        .open("/dev/kvm");
    device.is_ok()
}
