//! The file system that a guest boots into: hopyard itself, what paths need, and the kernel's modules.
//!
//! A `cpio` archive (kernel `Documentation/driver-api/early-userspace/buffer-format.rst`) in memory: nothing
//! is written to a disk, so nothing can stay there.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use cpio::newc;

use super::memory::{file_in_memory, open_name};
use super::{Error, Kernel, Result, modules, programs};
use crate::programs::in_path;

/// Where hopyard is in the guest.
pub(super) const PROGRAM: &str = "/hopyard";
/// Where programs are looked up in the guest.
pub(super) const SEARCHED: [&str; 4] = ["/usr/sbin", "/usr/bin", "/sbin", "/bin"];
/// Where its modules are, in the order in which they are to be loaded.
pub(super) const MODULES: &str = "/modules";

/// Modules that the axes, and deeds of claims, need beside paths; and what others ask the kernel for by another name.
const BESIDE: &[&str] = &[
    "virtio_net",
    "crc32c_generic",
    "sch_tbf",
    "tcp_bbr",
    "tcp_dctcp",
    "nf_tables",
    "vhost_net",
];
/// Where the loader looks libraries up.
const LOADER_CACHE: &str = "/etc/ld.so.cache";

/// What a guest is for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Contents {
    /// An endpoint of a path.
    Worker,
    /// Labs: what their paths need.
    Paths(BTreeSet<Carried>),
}

/// What a machine must carry to meet a need of a path, where its kernel does not have it built in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Carried {
    /// Modules of the kernel; those they depend on come along.
    pub modules: &'static [&'static str],
    /// Programs, as found in PATH.
    pub programs: &'static [&'static str],
    /// Files that the programs read.
    pub files: &'static [&'static str],
}

impl Carried {
    /// Modules alone.
    pub(crate) const fn modules(modules: &'static [&'static str]) -> Self {
        Self {
            modules,
            programs: &[],
            files: &[],
        }
    }
}

/// A finished initramfs in a memfd.
#[derive(Debug)]
pub struct Initramfs {
    file: File,
    /// Size of the archive, bytes.
    pub bytes: u64,
}

impl Initramfs {
    /// Gathers what a guest needs, with hopyard itself as `program`.
    ///
    /// # Errors
    /// The program, a program of a path or a module cannot be read.
    pub fn build(kernel: &Kernel, program: &Path, contents: Contents) -> Result<Self> {
        let mut archive = Archive::new()?;
        for directory in ["/dev", "/proc", "/sys", "/run", "/tmp"] {
            archive.directory(Path::new(directory))?;
        }
        archive.console()?;
        archive.program(program, Path::new(PROGRAM))?;
        let carried = match contents {
            Contents::Worker => BTreeSet::new(),
            Contents::Paths(carried) => carried,
        };
        archive.what_paths_need(&carried)?;
        let modules = wanted(&carried);
        archive.copy(Path::new(LOADER_CACHE))?;
        for (number, module) in modules::gather(kernel, &modules)?.iter().enumerate() {
            let name = format!("{MODULES}/{number:03}-{}.ko", module.name);
            archive.file(Path::new(&name), 0o644, &module.image)?;
        }
        if let Some(options) = kernel.options() {
            // Where the environment of a run looks for them.
            let name = format!("/lib/modules/{}/config", kernel.release);
            archive.file(Path::new(&name), 0o644, &read(&options)?)?;
        }
        archive.finish()
    }

    /// Under which name a process of the same user can open it.
    pub(super) fn path(&self) -> String {
        open_name(&self.file)
    }
}

/// The modules that these ask for, and those beside.
fn wanted(carried: &BTreeSet<Carried>) -> BTreeSet<&'static str> {
    let of_paths = carried.iter().flat_map(|carried| carried.modules);
    of_paths.chain(BESIDE).copied().collect()
}

struct Archive {
    out: BufWriter<File>,
    /// What is in it.
    names: BTreeSet<PathBuf>,
}

impl Archive {
    fn new() -> Result<Self> {
        let file = file_in_memory("hopyard-initramfs").map_err(Error::Initramfs)?;
        Ok(Self {
            out: BufWriter::new(file),
            names: BTreeSet::new(),
        })
    }

    /// A program under a name of its own, with its libraries.
    fn program(&mut self, file: &Path, name: &Path) -> Result<()> {
        let program = programs::read(file)?;
        self.file(name, 0o755, &program.image)?;
        for library in program.libraries {
            if !self.names.contains(&library) {
                let image = read(&library)?;
                self.file(&library, 0o755, &image)?;
            }
        }
        Ok(())
    }

    /// Programs of paths that this host has; for others the guest says what it lacks.
    fn what_paths_need(&mut self, carried: &BTreeSet<Carried>) -> Result<()> {
        for carried in carried {
            for name in carried.programs {
                if let Some(file) = in_path(name) {
                    self.program(&file, &place_of(name, &file))?;
                }
            }
            for file in carried.files {
                self.copy(Path::new(file))?;
            }
        }
        Ok(())
    }

    /// A file of the host under its own name, where there is one.
    fn copy(&mut self, file: &Path) -> Result<()> {
        if !file.is_file() {
            return Ok(());
        }
        let bytes = read(file)?;
        self.file(file, 0o644, &bytes)
    }

    fn file(&mut self, name: &Path, mode: u32, bytes: &[u8]) -> Result<()> {
        const REGULAR: u32 = 0o100_000;
        if let Some(directory) = name.parent() {
            self.directory(directory)?;
        }
        self.entry(name, |entry| entry.mode(REGULAR | mode), bytes)
    }

    fn directory(&mut self, name: &Path) -> Result<()> {
        const DIRECTORY: u32 = 0o040_755;
        let mut missing: Vec<&Path> = name.ancestors().collect();
        missing.retain(|d| d.parent().is_some() && !self.names.contains(*d));
        for directory in missing.into_iter().rev() {
            self.entry(directory, |entry| entry.mode(DIRECTORY), &[])?;
        }
        Ok(())
    }

    /// What the kernel opens as standard input, output and error of the first process.
    fn console(&mut self) -> Result<()> {
        const CHARACTER_DEVICE: u32 = 0o020_600;
        let node = |entry: newc::Builder| {
            let entry = entry.mode(CHARACTER_DEVICE);
            entry.rdev_major(5).rdev_minor(1)
        };
        self.entry(Path::new("/dev/console"), node, &[])
    }

    fn entry(
        &mut self,
        name: &Path,
        set: impl FnOnce(newc::Builder) -> newc::Builder,
        bytes: &[u8],
    ) -> Result<()> {
        if !self.names.insert(name.to_owned()) {
            return Ok(());
        }
        let relative = name.strip_prefix("/").unwrap_or(name);
        let number = u32::try_from(self.names.len()).unwrap_or(u32::MAX);
        let entry = set(newc::Builder::new(&relative.to_string_lossy()).ino(number));
        let written = u32::try_from(bytes.len())
            .map_err(|_| io::Error::from(io::ErrorKind::FileTooLarge))
            .and_then(|size| {
                let mut writer = entry.write(&mut self.out, size);
                writer.write_all(bytes)?;
                writer.finish().map(drop)
            });
        written.map_err(Error::Initramfs)
    }

    fn finish(mut self) -> Result<Initramfs> {
        newc::trailer(&mut self.out).map_err(Error::Initramfs)?;
        let file = self
            .out
            .into_inner()
            .map_err(|e| Error::Initramfs(e.into_error()))?;
        let bytes = file.metadata().map_err(Error::Initramfs)?.len();
        Ok(Initramfs { file, bytes })
    }
}

/// Where the guest finds a program that it looks up by this name: the host may have it where the guest does not look, or where it mounts
/// something else.
fn place_of(name: &str, file: &Path) -> PathBuf {
    let is_searched = |directory: &Path| SEARCHED.iter().any(|one| directory == Path::new(one));
    if name.contains('/') || file.parent().is_some_and(is_searched) {
        return file.to_owned();
    }
    Path::new("/usr/bin").join(name)
}

fn read(file: &Path) -> Result<Vec<u8>> {
    fs::read(file).map_err(|source| Error::Read {
        file: file.to_owned(),
        source,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Seek, SeekFrom};

    #[test]
    fn a_program_is_where_the_guest_looks_it_up() {
        for (name, here, there) in [
            ("nft", "/usr/sbin/nft", "/usr/sbin/nft"),
            ("nft", "/usr/local/sbin/nft", "/usr/bin/nft"),
            (
                "boringtun-cli",
                "/root/.cargo/bin/boringtun-cli",
                "/usr/bin/boringtun-cli",
            ),
            ("/tmp/tests", "/tmp/tests", "/tmp/tests"),
        ] {
            assert_eq!(place_of(name, Path::new(here)), Path::new(there));
        }
    }

    #[test]
    fn every_directory_comes_before_what_is_in_it_and_nothing_twice() {
        let mut archive = Archive::new().unwrap();
        archive.console().unwrap();
        archive.file(Path::new("/a/b/c"), 0o644, b"text").unwrap();
        archive.file(Path::new("/a/b/d"), 0o755, b"").unwrap();
        archive.file(Path::new("/a/b/c"), 0o644, b"again").unwrap();
        let mut file = archive.finish().unwrap().file;
        file.seek(SeekFrom::Start(0)).unwrap();
        let mut names = Vec::new();
        loop {
            let reader = newc::Reader::new(file).unwrap();
            if reader.entry().is_trailer() {
                break;
            }
            let entry = reader.entry();
            names.push((entry.name().to_owned(), entry.mode(), entry.file_size()));
            file = reader.finish().unwrap();
        }
        let names: Vec<_> = names.iter().map(|(n, m, s)| (n.as_str(), *m, *s)).collect();
        let expected = [
            ("dev/console", 0o020_600, 0),
            ("a", 0o040_755, 0),
            ("a/b", 0o040_755, 0),
            ("a/b/c", 0o100_644, 4),
            ("a/b/d", 0o100_755, 0),
        ];
        assert_eq!(names, expected);
    }

    #[test]
    fn modules_of_axes_come_along_with_those_of_paths() {
        let wanted = wanted(&BTreeSet::from([Carried::modules(&["bridge", "veth"])]));
        for module in ["veth", "bridge", "virtio_net"] {
            assert!(wanted.contains(module), "{module}");
        }
    }
}
