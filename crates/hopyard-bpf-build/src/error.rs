//! What can go wrong.

use std::path::{Path, PathBuf};
use std::{fmt, io};

/// What stops a program from being compiled, or its object from being had.
#[derive(Debug)]
#[non_exhaustive]
pub enum Error {
    /// A file cannot be read or written.
    File(PathBuf, io::Error),
    /// The compiler, or what belongs to it, is missing or refused the source.
    Compiler(String),
}

impl Error {
    pub(crate) fn file(path: &Path, error: io::Error) -> Self {
        Self::File(path.to_owned(), error)
    }

    /// The same, for a build script: who needs the compiler, and why there is need of one.
    pub(crate) fn needed_for(self, what: &str, why: &str) -> Self {
        match self {
            Self::Compiler(trouble) => Self::Compiler(format!(
                "{what} needs clang, llvm and libbpf's headers: apt-get install clang llvm libbpf-dev\n({why})\n{trouble}"
            )),
            other => other,
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File(path, error) => write!(f, "{}: {error}", path.display()),
            Self::Compiler(trouble) => f.write_str(trouble),
        }
    }
}

impl std::error::Error for Error {}
