//! Where running switches are found by name.

use std::fs::{self, Permissions};
use std::io::{self, ErrorKind, Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::time::Duration;

use hopyard_net::owned::{self, Lock};

use super::Document;
use crate::owner::LabId;

/// Directories of running switches, by their names.
pub const HOME: &str = "/run/hopyard-tapswitch";
/// How long a reader or a switch may take for a document.
const PATIENCE: Duration = Duration::from_secs(2);

/// Why a switch cannot be found, or cannot have its name.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Not a name.
    #[error(
        "`{0}` is no name for a switch: 1 to 48 letters, digits, `-`, `_` and `.`, and no `.` first"
    )]
    Name(String),
    /// Labs have it.
    #[error("`{0}` is reserved for switches of labs: choose another")]
    OfLabs(String),
    /// It is taken.
    #[error("a tap switch `{0}` runs already: choose another name, or end that one")]
    Taken(String),
    /// There is none of that name.
    #[error("there is no tap switch `{name}` ({there})")]
    None {
        /// What was asked for.
        name: String,
        /// Those that run.
        there: String,
    },
    /// A file or socket of it.
    #[error("cannot {what}")]
    File {
        /// Operation and object.
        what: String,
        #[source]
        source: io::Error,
    },
    /// It says what this version does not understand.
    #[error(
        "tap switch `{name}` answers what this program does not understand; is it of another version?"
    )]
    Foreign {
        /// The switch.
        name: String,
        #[source]
        source: serde_json::Error,
    },
}

fn failed(what: String) -> impl FnOnce(io::Error) -> Error {
    move |source| Error::File { what, source }
}

fn check(name: &str) -> Result<(), Error> {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    if name.is_empty() || name.len() > 48 || name.starts_with('.') || !name.chars().all(plain) {
        return Err(Error::Name(name.to_owned()));
    }
    Ok(())
}

/// The socket of the switch of that name.
#[must_use]
pub fn socket(name: &str) -> PathBuf {
    Path::new(HOME).join(name).join("ctl")
}

/// Names of all switches that run.
///
/// # Errors
/// [`HOME`] cannot be read.
pub fn names() -> Result<Vec<String>, Error> {
    let entries = match fs::read_dir(HOME) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries.map_err(failed(format!("read {HOME}")))?,
    };
    let mut names: Vec<String> = entries
        .flatten()
        .filter_map(|entry| entry.file_name().into_string().ok())
        .filter(|name| runs(name))
        .collect();
    names.sort();
    Ok(names)
}

fn runs(name: &str) -> bool {
    !UnixStream::connect(socket(name)).is_err_and(|error| is_gone(&error))
}

/// What a running switch tells.
///
/// # Errors
/// There is none of that name; the error lists those that are.
pub fn read(name: &str) -> Result<Document, Error> {
    check(name)?;
    let text = match ask(name) {
        Ok(text) if text.is_empty() => return Err(none(name)?),
        Err(error) if is_gone(&error) => return Err(none(name)?),
        answer => answer.map_err(failed(format!("ask tap switch `{name}`")))?,
    };
    serde_json::from_str(&text).map_err(|source| Error::Foreign {
        name: name.to_owned(),
        source,
    })
}

/// All that a switch says; nothing where it ends just now.
fn ask(name: &str) -> io::Result<String> {
    let mut stream = UnixStream::connect(socket(name))?;
    let mut text = String::new();
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.read_to_string(&mut text)?;
    Ok(text)
}

fn is_gone(error: &io::Error) -> bool {
    use ErrorKind::{ConnectionRefused, ConnectionReset, NotFound};
    matches!(error.kind(), NotFound | ConnectionRefused | ConnectionReset)
}

fn none(name: &str) -> Result<Error, Error> {
    let there = names()?.join(", ");
    Ok(Error::None {
        name: name.to_owned(),
        there: if there.is_empty() {
            "none runs".to_owned()
        } else {
            format!("running: {there}")
        },
    })
}

/// Is this a name, and nobody's? That of a lab is for the switch that the lab starts.
///
/// # Errors
/// It is taken, or not a name.
pub fn need_free(name: &str) -> Result<(), Error> {
    check(name)?;
    if let Ok(lab) = name.parse::<LabId>()
        && !lab.owner.is_parent()
    {
        return Err(Error::OfLabs(name.to_owned()));
    }
    if runs(name) {
        return Err(Error::Taken(name.to_owned()));
    }
    Ok(())
}

/// A name that is this process's as long as this lives, and the socket that goes with it.
#[derive(Debug)]
pub struct Claim {
    listener: UnixListener,
    directory: PathBuf,
    /// Only one of two switches that start at the same time with the same name gets it.
    lock: Option<Lock>,
}

impl Claim {
    /// Takes a name; one that a dead switch had is free.
    ///
    /// # Errors
    /// It is taken, or not a name, or the directory cannot be written.
    pub fn take(name: &str) -> Result<Self, Error> {
        need_free(name)?;
        let directory = Path::new(HOME).join(name);
        let lock = lock(&directory)?.ok_or_else(|| Error::Taken(name.to_owned()))?;
        let socket = socket(name);
        let what = || format!("listen on {}", socket.display());
        // Nobody answers there, or it would not be free.
        match owned::remove_file(&socket) {
            Err(error) if error.kind() != ErrorKind::NotFound => return Err(failed(what())(error)),
            _ => {}
        }
        let listener = UnixListener::bind(&socket)
            .and_then(|listener| {
                fs::set_permissions(&socket, Permissions::from_mode(0o600))?;
                listener.set_nonblocking(true)?;
                Ok(listener)
            })
            .map_err(failed(what()))?;
        Ok(Self {
            listener,
            directory,
            lock: Some(lock),
        })
    }

    /// Who asks connects here.
    #[must_use]
    pub fn listener(&self) -> &UnixListener {
        &self.listener
    }

    /// Answers everybody who has asked by now.
    pub fn answer(&self, document: impl Fn() -> Document) {
        while let Ok((mut stream, _)) = self.listener.accept() {
            let text = serde_json::to_vec(&document()).unwrap_or_default();
            // Whoever does not listen misses it.
            let _ = stream
                .set_nonblocking(false)
                .and_then(|()| stream.set_write_timeout(Some(PATIENCE)))
                .and_then(|()| stream.write_all(&text));
        }
    }
}

/// Makes the directory of a switch and takes the lock in it; `None` if a switch has the lock. A switch that ends removes the directory, so
/// it may go before the lock is taken: then both are tried again.
fn lock(directory: &Path) -> Result<Option<Lock>, Error> {
    const TRIES: u32 = 10;
    let once = || {
        owned::make_directory(directory, 0o755)?;
        Lock::take(&directory.join("lock"))
    };
    let mut taken = once();
    for _ in 1..TRIES {
        match &taken {
            Err(error) if error.kind() == ErrorKind::NotFound => taken = once(),
            _ => break,
        }
    }
    taken.map_err(failed(format!("lock directory {}", directory.display())))
}

impl Drop for Claim {
    fn drop(&mut self) {
        // What is left of it is nobody's, and the next of that name takes it.
        let _ = owned::remove_file(&self.directory.join("ctl"));
        self.lock = None;
        let _ = owned::remove_directory(&self.directory);
        let _ = owned::remove_directory(Path::new(HOME));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_cannot_leave_the_directory() {
        for name in ["", ".", "..", ".x", "a/b", "ä", &"x".repeat(49)] {
            assert!(matches!(check(name), Err(Error::Name(_))), "{name}");
        }
        assert!(check("12.345.1").is_ok());
    }
}
