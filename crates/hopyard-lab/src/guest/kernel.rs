//! A kernel to boot: its image, its release, its modules.

use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use super::memory::file_in_memory;
use super::{Error, Result, vmlinux};

/// A kernel to boot.
#[derive(Debug)]
pub struct Kernel {
    /// A bzImage, or an ELF vmlinux.
    pub image: PathBuf,
    /// As `uname -r` will say.
    pub release: String,
    /// The directory that modules.builtin is in; none for a kernel that has everything built in.
    pub modules: Option<PathBuf>,
    /// Filled by the first call of [`Kernel::unpacked`].
    unpacked: OnceLock<Option<File>>,
}

impl Kernel {
    /// Looks at an image, and for its modules: in `modules`, else beside the image, else where the host
    /// has them.
    ///
    /// # Errors
    /// The image is none, or `modules` has none for its release.
    pub fn open(image: &Path, modules: Option<&Path>) -> Result<Self> {
        let bytes = fs::read(image).map_err(|source| Error::Read {
            file: image.to_owned(),
            source,
        })?;
        let release = release(&bytes).ok_or_else(|| Error::NoKernel(image.to_owned()))?;
        let found = match modules {
            Some(directory) => {
                let found = modules_below(directory, &release);
                Some(found.ok_or_else(|| Error::NoModules {
                    directory: directory.to_owned(),
                    release: release.clone(),
                })?)
            }
            None => modules_near(image, &release),
        };
        Ok(Self {
            image: image.to_owned(),
            release,
            modules: found,
            unpacked: OnceLock::new(),
        })
    }

    /// The decompressed kernel, in memory. `None` if QEMU could not boot that: it boots the image as it is then.
    pub(super) fn unpacked(&self) -> Option<&File> {
        self.unpacked.get_or_init(|| unpack(&self.image)).as_ref()
    }

    /// The options it was built with, where they lie beside the image or among the modules.
    pub(super) fn options(&self) -> Option<PathBuf> {
        let beside = self.image.parent()?;
        let named = beside.join(format!("config-{}", self.release));
        let among = self.modules.as_ref().map(|m| m.join("config"));
        [Some(named), among]
            .into_iter()
            .flatten()
            .find(|f| f.is_file())
    }
}

fn unpack(image: &Path) -> Option<File> {
    let kernel = vmlinux::unpacked(&fs::read(image).ok()?)?;
    let mut file = file_in_memory("hopyard-kernel").ok()?;
    file.write_all(&kernel).ok()?;
    Some(file)
}

/// The release that an image says it is.
fn release(image: &[u8]) -> Option<String> {
    /// Where a bzImage has its magic, and the offset of its version less 0x200 (kernel
    /// `Documentation/arch/x86/boot.rst`).
    const MAGIC: usize = 0x202;
    const VERSION: usize = 0x20e;
    const BANNER: &[u8] = b"Linux version ";
    let text = if image.get(MAGIC..MAGIC + 4) == Some(b"HdrS") {
        let low = *image.get(VERSION)?;
        let high = *image.get(VERSION + 1)?;
        image.get(usize::from(u16::from_le_bytes([low, high])) + 0x200..)?
    } else if image.starts_with(b"\x7fELF") {
        let at = image.windows(BANNER.len()).position(|w| w == BANNER)?;
        image.get(at + BANNER.len()..)?
    } else {
        return None;
    };
    let end = text.iter().position(|b| !b.is_ascii_graphic())?;
    let release = std::str::from_utf8(&text[..end]).ok()?;
    // It is part of the names of files.
    let plain = release.starts_with(|c: char| c.is_ascii_digit()) && !release.contains('/');
    plain.then(|| release.to_owned())
}

/// The modules of a release in a directory that somebody named: itself, or where packages put them.
fn modules_below(directory: &Path, release: &str) -> Option<PathBuf> {
    let at = [
        directory.to_owned(),
        directory.join(release),
        directory.join("lib/modules").join(release),
        directory.join("usr/lib/modules").join(release),
    ];
    at.into_iter().find(|d| has_modules(d, release))
}

/// The modules beside an image: of a package that was unpacked, or of the host.
fn modules_near(image: &Path, release: &str) -> Option<PathBuf> {
    let beside = image.parent()?;
    let unpacked = [beside, &beside.join("..")].map(|d| modules_below(d, release));
    unpacked
        .into_iter()
        .flatten()
        .next()
        .or_else(|| modules_below(Path::new("/"), release))
}

/// A kernel's build tree has such names too (lists of modules, `kernel`), but also `include/config`.
fn has_modules(directory: &Path, release: &str) -> bool {
    let own = directory.file_name().is_some_and(|name| name == release);
    let listed = ["modules.builtin", "modules.order"];
    let is_listed = listed.iter().any(|f| directory.join(f).is_file())
        && !directory.join("include/config").is_dir();
    (own || is_listed) && directory.join("kernel").is_dir()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bzimage(version: &str) -> Vec<u8> {
        let mut image = vec![0; 0x400];
        image[0x202..0x206].copy_from_slice(b"HdrS");
        image[0x20e..0x210].copy_from_slice(&0x100_u16.to_le_bytes());
        image[0x300..0x300 + version.len()].copy_from_slice(version.as_bytes());
        image
    }

    #[test]
    fn an_image_tells_its_release() {
        let image = bzimage("6.1.0-9-cloud-amd64 (debian-kernel) #1 SMP");
        assert_eq!(release(&image).as_deref(), Some("6.1.0-9-cloud-amd64"));
        let vmlinux = b"\x7fELF....Linux version 6.9.0-rc1+ (me@here)";
        assert_eq!(release(vmlinux).as_deref(), Some("6.9.0-rc1+"));
        for none in [
            &b""[..],
            b"#!/bin/sh",
            b"\x7fELF",
            &bzimage(""),
            &bzimage("../6.1 (me)"),
            &bzimage("6.1/.. (me)"),
        ] {
            assert_eq!(release(none), None, "{none:?}");
        }
    }

    #[test]
    fn modules_are_found_beside_the_image_or_where_somebody_says() {
        let home = tempfile::tempdir().unwrap();
        let modules = home.path().join("lib/modules/6.1-x");
        fs::create_dir_all(modules.join("kernel")).unwrap();
        fs::create_dir(home.path().join("boot")).unwrap();
        let image = home.path().join("boot/vmlinuz-6.1-x");
        fs::write(&image, bzimage("6.1-x (me)")).unwrap();
        let near = Kernel::open(&image, None).unwrap();
        let near = near.modules.unwrap().canonicalize().unwrap();
        assert_eq!(near, modules.canonicalize().unwrap());
        for named in [home.path(), &home.path().join("lib/modules"), &modules] {
            let kernel = Kernel::open(&image, Some(named)).unwrap();
            assert_eq!(kernel.modules.unwrap(), modules);
        }
        let error = Kernel::open(&image, Some(&home.path().join("boot"))).unwrap_err();
        assert!(error.to_string().contains("6.1-x"), "{error}");
    }

    #[test]
    fn a_kernel_build_tree_is_no_module_directory() {
        let tree = tempfile::tempdir().unwrap();
        for directory in ["kernel", "include/config"] {
            fs::create_dir_all(tree.path().join(directory)).unwrap();
        }
        for file in ["modules.order", "modules.builtin"] {
            fs::write(tree.path().join(file), "").unwrap();
        }
        assert_eq!(modules_below(tree.path(), "6.1-x"), None);
        let installed = tree.path().join("lib/modules/6.1-x");
        fs::create_dir_all(installed.join("kernel")).unwrap();
        assert_eq!(modules_below(tree.path(), "6.1-x"), Some(installed));
    }
}
