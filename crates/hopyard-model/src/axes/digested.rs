//! Files that are values of an axis: by name and, once they were read, by the digest of what is in them.

use crate::units;

/// Digits of a digest.
const DIGITS: usize = 12;
/// Between a file and its digest.
const MARK: char = '#';

/// The digest of what is in a file: the first digits of its SHA-256, in hexadecimal.
#[must_use]
pub fn short_digest(sha256: &[u8]) -> String {
    let mut digits = units::hex(sha256);
    digits.truncate(DIGITS);
    digits
}

/// A value `FILE` or `FILE#DIGEST`.
pub(super) fn split(text: &str) -> (&str, Option<String>) {
    let is_digest =
        |digest: &&str| digest.len() == DIGITS && digest.bytes().all(|b| b.is_ascii_hexdigit());
    let split = text.rsplit_once(MARK);
    match split.filter(|(_, digest)| is_digest(digest)) {
        Some((name, digest)) => (name, Some(digest.to_owned())),
        None => (text, None),
    }
}

/// The value as text.
pub(super) fn joined(name: &str, digest: Option<&str>) -> String {
    match digest {
        None => name.to_owned(),
        Some(digest) => format!("{name}{MARK}{digest}"),
    }
}
