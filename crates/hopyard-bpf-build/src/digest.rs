//! A digest that shows that something was changed by mistake. Nobody is to be kept from forging it.

/// FNV-1a with 64 bits (draft-eastlake-fnv): a build script should need no other crate.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Digest(u64);

impl Digest {
    pub(crate) const fn new() -> Self {
        Self(0xcbf2_9ce4_8422_2325)
    }

    pub(crate) fn add(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.0 = (self.0 ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        }
    }

    pub(crate) fn of(bytes: &[u8]) -> String {
        let mut digest = Self::new();
        digest.add(bytes);
        digest.text()
    }

    pub(crate) fn text(self) -> String {
        format!("{:016x}", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digests_are_those_of_the_draft() {
        assert_eq!(Digest::of(b""), "cbf29ce484222325");
        assert_eq!(Digest::of(b"a"), "af63dc4c8601ec8c");
        assert_eq!(Digest::of(b"foobar"), "85944171f73967e8");
    }
}
