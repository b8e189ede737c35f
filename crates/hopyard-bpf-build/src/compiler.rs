//! Clang for BPF, so that the same source gives the same object in every directory.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::digest::Digest;
use crate::error::Error;

/// Debug information is what BTF is made of.
pub(crate) const FLAGS: &[&str] = &["-mcpu=v3", "-O2", "-g", "-Wall", "-Wextra", "-Werror", "-c"];

/// The order of bytes of the machine that is to run a program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Endian {
    /// As x86-64 and most others.
    Little,
    /// As s390x.
    Big,
}

/// What a source was compiled with, beside what lies in its directory.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct With {
    /// The compiler's name and version.
    pub(crate) compiler: String,
    /// Digest of all headers of the system that were read.
    pub(crate) headers: String,
}

/// Compiles a source to an object with BTF and without DWARF.
pub(crate) fn compile(source: &Path, endian: Endian, object: &Path) -> Result<With, Error> {
    let clang = std::env::var("BPF_CLANG").unwrap_or_else(|_| "clang".into());
    let directory = source.parent().unwrap_or(Path::new("."));
    // The one part of the directory that gets into the object.
    let name = fs::canonicalize(directory)
        .ok()
        .and_then(|path| path.file_name().map(OsStr::to_owned));
    let mut map = std::ffi::OsString::from("-fdebug-compilation-dir=");
    map.push(name.unwrap_or_default());
    let object = std::path::absolute(object).map_err(|error| Error::file(object, error))?;
    let list = object.with_extension("d");
    let target = match endian {
        Endian::Little => "bpfel",
        Endian::Big => "bpfeb",
    };
    // Debian keeps <asm/types.h> in a directory of the machine's name; others do without it.
    let machine = format!("/usr/include/{}-linux-gnu", std::env::consts::ARCH);
    let mut command = Command::new(&clang);
    command
        .current_dir(if directory.as_os_str().is_empty() {
            Path::new(".")
        } else {
            directory
        })
        .args(["-target", target])
        .args(FLAGS)
        .arg(map)
        .args(["-idirafter", &machine])
        .arg("-MD")
        .arg("-MF")
        .arg(&list)
        .arg(source.file_name().unwrap_or_default())
        .arg("-o")
        .arg(&object);
    output(&mut command)?;
    let headers = headers(&list)?;
    let _ = fs::remove_file(&list);
    // The one that belongs to this compiler. It removes DWARF, which says where headers lie on this machine.
    let strip = output(Command::new(&clang).arg("-print-prog-name=llvm-strip"))?;
    output(Command::new(strip.trim()).arg("-g").arg(&object))?;
    Ok(With {
        compiler: version(&clang)?,
        headers,
    })
}

fn version(clang: &str) -> Result<String, Error> {
    let text = output(Command::new(clang).arg("--version"))?;
    Ok(text.lines().next().unwrap_or_default().trim().to_owned())
}

/// Digest of the headers outside the source's directory, in the order of the list that clang wrote (`-MD`).
fn headers(list: &Path) -> Result<String, Error> {
    let text = fs::read_to_string(list).map_err(|error| Error::file(list, error))?;
    let mut digest = Digest::new();
    let files = text.split_whitespace().map(PathBuf::from);
    for file in files.filter(|file| file.is_absolute() && file.extension() == Some("h".as_ref())) {
        digest.add(&fs::read(&file).map_err(|error| Error::file(&file, error))?);
    }
    Ok(digest.text())
}

/// Runs a program that has to succeed, and gives back what it printed.
fn output(command: &mut Command) -> Result<String, Error> {
    let name = command.get_program().to_string_lossy().into_owned();
    let trouble = match command.output() {
        Ok(done) if done.status.success() => {
            return Ok(String::from_utf8_lossy(&done.stdout).into_owned());
        }
        Ok(done) => String::from_utf8_lossy(&done.stderr).into_owned(),
        Err(error) => error.to_string(),
    };
    Err(Error::Compiler(format!("{name}: {trouble}")))
}
