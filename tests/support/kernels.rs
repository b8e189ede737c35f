//! A kernel for guests.

use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use hopyard::guest::{choose_kernel, fetch};

use super::cli::run;

/// Debian's kernel 6.1 for virtual machines, fetched once.
pub(crate) fn kernel() -> PathBuf {
    fetched_kernel("6.1", "/vmlinuz-6.1.")
}

/// The newest of the backports, whose release alone has a `+`.
pub(crate) fn backported_kernel() -> PathBuf {
    fetched_kernel("backports", "+")
}

fn fetched_kernel(which: &str, part_of_its_name: &str) -> PathBuf {
    static FETCHING: Mutex<()> = Mutex::new(());
    let _one_at_a_time = FETCHING.lock().unwrap_or_else(PoisonError::into_inner);
    let into = Path::new(env!("CARGO_TARGET_TMPDIR")).join("kernels");
    let is_it = |image: &PathBuf| image.to_string_lossy().contains(part_of_its_name);
    let known = || fetch::fetched(&into).into_iter().find(is_it);
    known().unwrap_or_else(|| {
        let into = into.to_str().unwrap();
        let said = run(&["kernel", "fetch", which, "--into", into]);
        said.exits(0).prints(&["--kernel ", "--modules "]);
        known().unwrap_or_else(|| panic!("no kernel came: {said}"))
    })
}

/// What looks like a kernel without modules, for what boots none.
pub(crate) fn no_kernel(release: &str) -> Vec<u8> {
    // The magic, and the place of the release less 0x200 (kernel Documentation/arch/x86/boot.rst).
    let mut image = vec![0; 0x400];
    image[0x202..0x206].copy_from_slice(b"HdrS");
    image[0x20e..0x210].copy_from_slice(&0x100_u16.to_le_bytes());
    image[0x300..0x300 + release.len()].copy_from_slice(release.as_bytes());
    image
}

/// Has guests of this process boot it.
pub(crate) fn guests_boot_one() {
    choose_kernel(&kernel()).unwrap();
}
