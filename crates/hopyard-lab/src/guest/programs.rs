//! Programs for a guest, with the shared libraries they are linked to.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use goblin::elf::Elf;
use goblin::elf::program_header::PT_LOAD;

use super::{Error, Result};

/// A program, and what it cannot start without.
#[derive(Debug)]
pub(super) struct Program {
    /// The part of its file that is ever loaded: without symbols for debuggers.
    pub(super) image: Vec<u8>,
    /// Shared libraries and the loader, by the names under which they are looked for.
    pub(super) libraries: Vec<PathBuf>,
}

/// Reads a program.
///
/// # Errors
/// It cannot be read, is no ELF file, or lacks a library.
pub(super) fn read(file: &Path) -> Result<Program> {
    let mut image = fs::read(file).map_err(|source| Error::Read {
        file: file.to_owned(),
        source,
    })?;
    let wrong = |why: String| Error::Program {
        file: file.to_owned(),
        why,
    };
    let elf = Elf::parse(&image).map_err(|e| wrong(e.to_string()))?;
    let libraries = match elf.interpreter {
        Some(loader) => libraries(loader, file).map_err(wrong)?,
        None => Vec::new(),
    };
    let loaded = elf
        .program_headers
        .iter()
        .filter(|part| part.p_type == PT_LOAD)
        .map(|part| part.file_range().end)
        .max();
    image.truncate(loaded.unwrap_or(image.len()));
    Ok(Program { image, libraries })
}

/// The libraries of a program, as its own loader finds them: it knows the paths, the cache and the
/// environment better than we could (ld.so(8), `--list`).
fn libraries(loader: &str, program: &Path) -> std::result::Result<Vec<PathBuf>, String> {
    let output = Command::new(loader)
        .arg("--list")
        .arg(program)
        .output()
        .map_err(|e| format!("its loader {loader} cannot be run: {e}"))?;
    let said = String::from_utf8_lossy(&output.stdout);
    if !output.status.success() {
        let why = String::from_utf8_lossy(&output.stderr);
        return Err(format!("its loader {loader} says: {}", why.trim()));
    }
    let mut libraries = parse(&said)?;
    libraries.push(loader.into());
    Ok(libraries)
}

/// `name => /path (0x…)`, `/path (0x…)`; what has no path comes from the kernel.
fn parse(said: &str) -> std::result::Result<Vec<PathBuf>, String> {
    let mut libraries = Vec::new();
    for line in said.lines() {
        let (name, found) = line.split_once("=>").unwrap_or((line, line));
        let found = found.trim();
        if found.starts_with("not found") {
            return Err(format!("its library {} is not found", name.trim()));
        }
        if found.starts_with('/') {
            let end = found.rfind(" (").unwrap_or(found.len());
            libraries.push(PathBuf::from(&found[..end]));
        }
    }
    Ok(libraries)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_loader_says() {
        let said = "\tlinux-vdso.so.1 (0x00007ffd)\n\tlibm.so.6 => /lib/x/libm.so.6 (0x00007f)\n\t/lib64/ld.so (0x0)\n";
        let found = parse(said).unwrap();
        assert_eq!(
            found,
            [Path::new("/lib/x/libm.so.6"), Path::new("/lib64/ld.so")]
        );
        let error = parse("\tlibodd.so.1 => not found\n").unwrap_err();
        assert!(error.contains("libodd.so.1"), "{error}");
    }

    #[test]
    fn this_program_is_one() {
        let own = std::env::current_exe().unwrap();
        let program = read(&own).unwrap();
        assert!(program.image.starts_with(b"\x7fELF"));
        assert!(program.image.len() as u64 <= fs::metadata(&own).unwrap().len());
        assert!(program.libraries.iter().all(|library| library.is_file()));
        let error = read(Path::new("/etc/passwd")).unwrap_err().to_string();
        assert!(error.contains("/etc/passwd"), "{error}");
    }
}
