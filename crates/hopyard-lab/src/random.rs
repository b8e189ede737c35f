//! Keys of labs, which live as long as the lab.

use std::fs::File;
use std::io::Read;

use super::{Error, Result};

/// Random bytes.
pub(super) fn key<const BYTES: usize>() -> Result<[u8; BYTES]> {
    const RANDOM: &str = "/dev/urandom";
    let mut key = [0; BYTES];
    let read = File::open(RANDOM).and_then(|mut file| file.read_exact(&mut key));
    read.map_err(|source| Error::File {
        what: format!("read a key from {RANDOM}"),
        source,
    })?;
    Ok(key)
}
