//! What the process may have.

use std::fs;

use nix::sys::resource::{Resource, getrlimit, setrlimit};

use crate::error::{Error, Result};

/// Sees to it that the process can open `more` files beside those it has open, and raises its own (soft)
/// limit for that as far as it may.
///
/// # Errors
/// [`Error::Invalid`] where the hard limit is lower.
pub fn allow_files(more: u64) -> Result<()> {
    let what = format!("open {more} files");
    let open = fs::read_dir("/proc/self/fd")
        .map_err(|error| Error::from_io("count the open files", error))?
        .count() as u64;
    let needed = open + more;
    let limit = Resource::RLIMIT_NOFILE;
    let (soft, hard) = getrlimit(limit).map_err(|errno| Error::from_errno(&what, errno))?;
    if soft >= needed {
        return Ok(());
    }
    if hard < needed {
        return Err(Error::invalid(
            what,
            format!(
                "this process may have {hard} open, {open} of which are in use: raise `ulimit -Hn` to {needed}"
            ),
        ));
    }
    setrlimit(limit, hard, hard).map_err(|errno| Error::from_errno(what, errno))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_beyond_the_limit_is_said() {
        allow_files(1).unwrap();
        let error = allow_files(1 << 40).unwrap_err().to_string();
        assert!(error.contains("raise `ulimit -Hn`"), "{error}");
    }
}
