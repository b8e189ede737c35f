//! A kernel for guests.

use std::path::{Path, PathBuf};

use hopyard::guest::{choose_kernel, fetch};

use super::cli::run;

/// Debian's kernel 6.1 for virtual machines, fetched once.
pub(crate) fn kernel() -> PathBuf {
    let into = Path::new(env!("CARGO_TARGET_TMPDIR")).join("kernels");
    let is_it = |image: &PathBuf| image.to_string_lossy().contains("/vmlinuz-6.1.");
    let known = || fetch::fetched(&into).into_iter().find(is_it);
    known().unwrap_or_else(|| {
        let into = into.to_str().unwrap();
        let said = run(&["kernel", "fetch", "6.1", "--into", into]);
        said.exits(0).prints(&["--kernel ", "--modules "]);
        known().unwrap_or_else(|| panic!("no kernel came: {said}"))
    })
}

/// Has guests of this process boot it.
pub(crate) fn guests_boot_one() {
    choose_kernel(&kernel()).unwrap();
}
