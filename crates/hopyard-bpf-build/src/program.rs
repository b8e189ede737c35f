//! One eBPF program: its source, the object that travels with it, and the record of what that was made from.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::compiler::{self, Endian, FLAGS, With};
use crate::digest::Digest;
use crate::error::Error;

/// Whether an object is what its source gives.
#[derive(Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Check {
    /// Compiling the source here gives the same object, byte for byte.
    Same,
    /// It is not what the source gives, for the reason here.
    Stale(String),
    /// The source is the recorded one and compiles, but another compiler or other headers of the system give another object here.
    OtherCompiler(String),
}

/// A source `NAME.bpf.c` with its object `NAME.bpf.o` and the record `NAME.bpf.txt` beside it.
///
/// What a program includes from its own crate lies in its directory.
#[derive(Debug)]
pub struct Program {
    source: PathBuf,
}

/// What the record says.
struct Record {
    sources: String,
    object: String,
    with: With,
}

impl Program {
    /// The program of a source.
    pub fn new(source: impl Into<PathBuf>) -> Self {
        Self {
            source: source.into(),
        }
    }

    /// Where its object is.
    #[must_use]
    pub fn object(&self) -> PathBuf {
        self.source.with_extension("o")
    }

    fn record(&self) -> PathBuf {
        self.source.with_extension("txt")
    }

    /// Why the object cannot be taken for the source's, where it cannot. This takes no compiler.
    ///
    /// # Errors
    /// [`Error::File`] if the source cannot be read.
    pub fn stale(&self) -> Result<Option<String>, Error> {
        let sources = self.sources()?;
        let object = fs::read(self.object());
        Ok(match (self.read_record(), object) {
            (Some(record), _) if record.sources != sources => Some(format!(
                "{} or a header beside it was changed after its object was made",
                self.source.display()
            )),
            (Some(record), Ok(object)) if record.object == Digest::of(&object) => None,
            _ => Some(format!(
                "{} is not the object of {}",
                self.object().display(),
                self.record().display()
            )),
        })
    }

    /// Compiles the source, in a temporary directory, and compares.
    ///
    /// # Errors
    /// [`Error::Compiler`] without a compiler, or where it refuses the source; [`Error::File`] where a file cannot be read or written.
    pub fn check(&self) -> Result<Check, Error> {
        if let Some(stale) = self.stale()? {
            return Ok(Check::Stale(stale));
        }
        let (with, made) = self.make()?;
        let object = self.object();
        if fs::read(&object).map_err(|error| Error::file(&object, error))? == made {
            return Ok(Check::Same);
        }
        let recorded = self.read_record().map(|record| record.with);
        let object = object.display();
        Ok(match recorded {
            Some(recorded) if recorded != with => Check::OtherCompiler(format!(
                "{object} is of {} with headers {}, here are {} with headers {}",
                recorded.compiler, recorded.headers, with.compiler, with.headers
            )),
            _ => Check::Stale(format!(
                "{object} is not what {} gives",
                self.source.display()
            )),
        })
    }

    /// Writes object and record anew.
    ///
    /// # Errors
    /// As [`check`](Self::check).
    pub fn renew(&self) -> Result<(), Error> {
        let (with, made) = self.make()?;
        let object = self.object();
        let record = format!(
            "# What {} was compiled from and with: digests (FNV-1a), and the compiler. `make bpf` writes both anew.\n\
             sources {}\nobject {}\nheaders {}\ncompiler {}\n",
            object.file_name().unwrap_or_default().display(),
            self.sources()?,
            Digest::of(&made),
            with.headers,
            with.compiler,
        );
        fs::write(&object, made).map_err(|error| Error::file(&object, error))?;
        let path = self.record();
        fs::write(&path, record).map_err(|error| Error::file(&path, error))
    }

    /// Compiles the source to a file.
    ///
    /// # Errors
    /// As [`check`](Self::check).
    pub fn compile(&self, endian: Endian, object: &Path) -> Result<(), Error> {
        compiler::compile(&self.source, endian, object).map(drop)
    }

    /// Copies the object that travels with the source.
    pub(crate) fn copy(&self, to: &Path) -> Result<(), Error> {
        fs::copy(self.object(), to)
            .map(drop)
            .map_err(|error| Error::file(to, error))
    }

    /// The object as the source gives it now.
    fn make(&self) -> Result<(With, Vec<u8>), Error> {
        static MADE: AtomicUsize = AtomicUsize::new(0);
        let n = MADE.fetch_add(1, Ordering::Relaxed);
        let directory =
            std::env::temp_dir().join(format!("hopyard-bpf-{}-{n}", std::process::id()));
        // Never one that somebody else made before.
        fs::create_dir(&directory).map_err(|error| Error::file(&directory, error))?;
        let file = directory.join("made.o");
        let made = compiler::compile(&self.source, Endian::Little, &file).and_then(|with| {
            let bytes = fs::read(&file).map_err(|error| Error::file(&file, error))?;
            Ok((with, bytes))
        });
        let _ = fs::remove_dir_all(&directory);
        made
    }

    /// Digest of the source, of everything that it may include from its directory, and of how it is compiled.
    fn sources(&self) -> Result<String, Error> {
        let directory = self.source.parent().unwrap_or(Path::new("."));
        let failed = |error| Error::file(directory, error);
        let mut files = vec![self.source.clone()];
        for entry in fs::read_dir(directory).map_err(failed)? {
            let path = entry.map_err(failed)?.path();
            files.extend((path.extension() == Some("h".as_ref())).then_some(path));
        }
        files.sort();
        let mut digest = Digest::new();
        digest.add(FLAGS.join(" ").as_bytes());
        for file in files {
            digest.add(file.file_name().unwrap_or_default().as_encoded_bytes());
            digest.add(&[0]);
            digest.add(&fs::read(&file).map_err(|error| Error::file(&file, error))?);
        }
        Ok(digest.text())
    }

    /// What the record says; nothing where it is missing or unreadable.
    fn read_record(&self) -> Option<Record> {
        let text = fs::read_to_string(self.record()).ok()?;
        let value = |name: &str| {
            let mut values = text.lines().filter_map(|line| line.strip_prefix(name));
            Some(values.next()?.strip_prefix(' ')?.to_owned())
        };
        Some(Record {
            sources: value("sources")?,
            object: value("object")?,
            with: With {
                compiler: value("compiler")?,
                headers: value("headers")?,
            },
        })
    }
}
