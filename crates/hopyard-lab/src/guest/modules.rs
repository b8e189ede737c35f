//! The modules of a kernel that a guest needs, with those they depend on.
//!
//! What a module depends on stands in the module itself (`.modinfo`), so `depmod` need not have run:
//! an unpacked package or a build tree will do.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use goblin::elf::Elf;

use super::packed::Packing;
use super::{Error, Kernel, Result};

/// Without these a guest cannot be spoken to.
const ESSENTIAL: [&str; 2] = ["virtio_pci", "virtio_console"];

/// More than any module that a guest is given has, bytes, with all that a debugger wants.
const LARGEST: u64 = 256 << 20;

/// A module, ready to be loaded.
#[derive(Debug)]
pub(super) struct Module {
    pub(super) name: String,
    pub(super) image: Vec<u8>,
}

/// The essential modules, the wanted ones that the kernel has, and what they depend on, each after what
/// it depends on.
///
/// # Errors
/// A module cannot be read, or one is missing that no guest can do without.
pub(super) fn gather(kernel: &Kernel, wanted: &BTreeSet<&str>) -> Result<Vec<Module>> {
    let Some(directory) = &kernel.modules else {
        return Ok(Vec::new());
    };
    let mut gathering = Gathering {
        files: files(directory)?,
        seen: BTreeSet::new(),
        modules: Vec::new(),
    };
    let builtin = builtin(directory);
    for name in ESSENTIAL {
        let known = gathering.files.contains_key(name);
        if !known && builtin.as_ref().is_some_and(|b| !b.contains(name)) {
            return Err(Error::Essential {
                module: name,
                release: kernel.release.clone(),
                directory: directory.clone(),
            });
        }
        gathering.add(name)?;
    }
    for name in wanted {
        gathering.add(name)?;
    }
    Ok(gathering.modules)
}

struct Gathering {
    files: BTreeMap<String, PathBuf>,
    seen: BTreeSet<String>,
    modules: Vec<Module>,
}

impl Gathering {
    /// One that is no file is built in, or the kernel does not have it: the guest will see.
    fn add(&mut self, name: &str) -> Result<()> {
        let Some(file) = self.files.get(name).cloned() else {
            return Ok(());
        };
        if !self.seen.insert(name.to_owned()) {
            return Ok(());
        }
        let bytes = fs::read(&file).map_err(|source| Error::Read {
            file: file.clone(),
            source,
        })?;
        let (image, depends) = read(&file, bytes)?;
        for other in depends {
            self.add(&other)?;
        }
        self.modules.push(Module {
            name: name.to_owned(),
            image,
        });
        Ok(())
    }
}

/// As the kernel names modules: file names have either of the two signs.
fn module_name(file: &Path) -> Option<String> {
    let name = file.file_name()?.to_str()?;
    let (stem, ending) = name.split_once(".ko")?;
    ["", ".gz", ".xz", ".zst"]
        .contains(&ending)
        .then(|| stem.replace('-', "_"))
}

/// Where a release keeps its modules, each before what takes its place. `updates` has patched ones, before others for depmod
/// too unless it is told otherwise. Its other entries, `build` and `source`, lead to whole trees.
const PLACES: [&str; 3] = ["kernel", "extra", "updates"];

/// Every module of a release, by name.
fn files(directory: &Path) -> Result<BTreeMap<String, PathBuf>> {
    let mut files = BTreeMap::new();
    for place in PLACES {
        let place = directory.join(place);
        if place.is_dir() {
            add_files(place, &mut files)?;
        }
    }
    Ok(files)
}

/// Every module of a directory and below.
fn add_files(directory: PathBuf, files: &mut BTreeMap<String, PathBuf>) -> Result<()> {
    let mut left = vec![directory];
    while let Some(directory) = left.pop() {
        let error = |source| Error::Read {
            file: directory.clone(),
            source,
        };
        for entry in fs::read_dir(&directory).map_err(error)? {
            let path = entry.map_err(error)?.path();
            if path.is_dir() {
                left.push(path);
            } else if let Some(name) = module_name(&path) {
                files.insert(name, path);
            }
        }
    }
    Ok(())
}

/// The modules that are part of the kernel, where a file tells.
fn builtin(directory: &Path) -> Option<BTreeSet<String>> {
    let text = fs::read_to_string(directory.join("modules.builtin")).ok()?;
    Some(
        text.lines()
            .filter_map(|l| module_name(Path::new(l)))
            .collect(),
    )
}

/// A module as the kernel takes it, from its file, and what it depends on.
///
/// # Errors
/// It is damaged, or none.
pub(super) fn read(file: &Path, bytes: Vec<u8>) -> Result<(Vec<u8>, Vec<String>)> {
    let wrong = |why: String| Error::Module {
        file: file.to_owned(),
        why,
    };
    // Not every kernel decompresses (`CONFIG_MODULE_DECOMPRESS`).
    let image = match Packing::of(&bytes) {
        Some(packing) => packing.unpack(&bytes, LARGEST).map_err(wrong)?,
        None => bytes,
    };
    let depends = depends(&image).map_err(wrong)?;
    Ok((image, depends))
}

/// What a module says that it depends on.
fn depends(image: &[u8]) -> std::result::Result<Vec<String>, String> {
    let elf = Elf::parse(image).map_err(|e| e.to_string())?;
    let info = elf
        .section_headers
        .iter()
        .find(|section| elf.shdr_strtab.get_at(section.sh_name) == Some(".modinfo"))
        .and_then(|section| image.get(section.file_range()?))
        .ok_or("it has no section .modinfo")?;
    Ok(info
        .split(|byte| *byte == 0)
        .filter_map(|entry| std::str::from_utf8(entry).ok()?.strip_prefix("depends="))
        .flat_map(|names| names.split(','))
        .filter(|name| !name.is_empty())
        .map(|name| name.replace('-', "_"))
        .collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_modules() {
        let of = |file: &str| module_name(Path::new(file));
        assert_eq!(of("/m/nf-tables.ko").as_deref(), Some("nf_tables"));
        for packed in ["veth.ko.gz", "veth.ko.xz", "veth.ko.zst"] {
            assert_eq!(of(packed).as_deref(), Some("veth"), "{packed}");
        }
        for none in ["modules.order", "veth.ko.bz2", "veth.o"] {
            assert_eq!(of(none), None, "{none}");
        }
    }

    #[test]
    fn a_patched_module_takes_the_place_of_the_kernels() {
        let home = tempfile::tempdir().unwrap();
        let modules = home.path();
        let put = |file: &str| {
            let file = modules.join(file);
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            fs::write(&file, b"").unwrap();
            file
        };
        let veth = put("kernel/drivers/net/veth.ko.xz");
        let vrf = put("kernel/drivers/net/vrf.ko");
        put("build/drivers/net/dummy.ko");
        let found = files(modules).unwrap();
        let of =
            |all: [(&str, &PathBuf); 2]| all.map(|(name, file)| (name.to_owned(), file.clone()));
        assert_eq!(found, of([("veth", &veth), ("vrf", &vrf)]).into());
        put("extra/veth.ko");
        let patched = put("updates/dkms/veth.ko");
        let found = files(modules).unwrap();
        assert_eq!(found, of([("veth", &patched), ("vrf", &vrf)]).into());
    }

    #[test]
    fn what_is_no_module_is_refused() {
        for name in ["a.ko", "a.ko.gz", "a.ko.xz", "a.ko.zst"] {
            let error = read(Path::new(name), b"no module".to_vec()).unwrap_err();
            assert!(error.to_string().contains(name), "{error}");
        }
    }

    #[test]
    fn a_kernel_without_a_port_is_refused() {
        let home = tempfile::tempdir().unwrap();
        let modules = home.path().join("6.1-x");
        fs::create_dir_all(modules.join("kernel")).unwrap();
        let image = home.path().join("vmlinux");
        fs::write(&image, b"\x7fELF Linux version 6.1-x (me)").unwrap();
        let kernel = Kernel::open(&image, Some(&modules)).unwrap();
        let none = BTreeSet::from(["veth"]);
        assert!(
            gather(&kernel, &none).unwrap().is_empty(),
            "nothing is known"
        );
        let builtin = "kernel/drivers/virtio/virtio_pci.ko\n";
        fs::write(modules.join("modules.builtin"), builtin).unwrap();
        let error = gather(&kernel, &none).unwrap_err().to_string();
        assert!(error.contains("virtio_console"), "{error}");
    }
}
