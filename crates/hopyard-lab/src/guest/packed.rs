//! What gzip, xz or zstd packed: modules, and the kernel in its image.

use std::io::Read;

use flate2::read::GzDecoder;
use lzma_rust2::XzReader;
use ruzstd::decoding::StreamingDecoder;

/// The most that unpacking may keep of what came before, KiB: as much as zstd keeps of a kernel (`scripts/Makefile.lib`).
const DICTIONARY_KIB: u32 = 128 << 10;

/// Who packed it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Packing {
    Gzip,
    Xz,
    Zstd,
}

impl Packing {
    /// As its first bytes say; `None` if it is plain, or packed by something else.
    pub(super) fn of(bytes: &[u8]) -> Option<Self> {
        let begins = |magic: &[u8]| bytes.starts_with(magic);
        if begins(b"\x1f\x8b\x08") {
            Some(Self::Gzip)
        } else if begins(b"\xfd7zXZ\0") {
            Some(Self::Xz)
        } else if begins(b"\x28\xb5\x2f\xfd") {
            Some(Self::Zstd)
        } else {
            None
        }
    }

    /// What was packed, of less than `largest` bytes.
    ///
    /// # Errors
    /// It is damaged, or larger.
    pub(super) fn unpack(self, packed: &[u8], largest: u64) -> Result<Vec<u8>, String> {
        let decoder: Box<dyn Read + '_> = match self {
            Self::Gzip => Box::new(GzDecoder::new(packed)),
            Self::Xz => Box::new(XzReader::new_mem_limit(packed, false, DICTIONARY_KIB)),
            Self::Zstd => Box::new(StreamingDecoder::new(packed).map_err(|e| e.to_string())?),
        };
        let mut plain = Vec::new();
        let read = decoder.take(largest).read_to_end(&mut plain);
        match read.map_err(|e| e.to_string())? as u64 {
            all if all == largest => Err(format!("it has more than {} MiB", largest >> 20)),
            _ => Ok(plain),
        }
    }
}
