//! A kernel's image, and its modules, compressed or not.
#![no_main]

use std::path::Path;

use hopyard::guest::{Kernel, module};
use hopyard_fuzz::directory;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|made: (u8, &[u8])| {
    let (which, bytes) = made;
    if which & 3 == 0 {
        let home = directory([("vmlinuz", bytes)]);
        if let Ok(kernel) = Kernel::open(&home.path().join("vmlinuz"), None) {
            assert!(kernel.release.bytes().all(|byte| byte.is_ascii_graphic()));
        }
        return;
    }
    let name = ["a.ko", "a.ko.xz", "a.ko.zst"][usize::from(which & 3) - 1];
    match module(Path::new(name), bytes.to_vec()) {
        Ok(depends) => assert!(depends.iter().all(|name| !name.is_empty())),
        Err(error) => assert!(error.to_string().contains(name)),
    }
});
