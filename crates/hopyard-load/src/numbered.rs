//! Numbered datagrams: what each of them says about itself, ahead of its filling.

/// Bytes of the header: mark, flow, number, due, sent.
pub(crate) const HEADER_BYTES: usize = 32;
/// Tells our datagrams from strays.
const MARK: [u8; 4] = *b"hpyd";

/// What a datagram says about itself. Instants are `CLOCK_MONOTONIC`, ns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Header {
    /// Its flow, as the receiver numbers them.
    pub(crate) flow: u32,
    /// Its place among the datagrams that its flow sent, from 0.
    pub(crate) number: u64,
    /// When it was to be sent.
    pub(crate) due_ns: u64,
    /// When it was handed to the kernel.
    pub(crate) sent_ns: u64,
}

impl Header {
    /// Writes it over the beginning of a message of at least [`HEADER_BYTES`].
    #[inline]
    pub(crate) fn write(&self, message: &mut [u8]) {
        message[..4].copy_from_slice(&MARK);
        message[4..8].copy_from_slice(&self.flow.to_le_bytes());
        message[8..16].copy_from_slice(&self.number.to_le_bytes());
        message[16..24].copy_from_slice(&self.due_ns.to_le_bytes());
        message[24..32].copy_from_slice(&self.sent_ns.to_le_bytes());
    }

    /// The same by a clock that is so many ns ahead.
    #[inline]
    pub(crate) fn later_by(&self, ns: i64) -> Self {
        Self {
            due_ns: self.due_ns.wrapping_add_signed(ns),
            sent_ns: self.sent_ns.wrapping_add_signed(ns),
            ..*self
        }
    }

    /// Reads it back; `None` of anything else.
    #[inline]
    pub(crate) fn read(message: &[u8]) -> Option<Self> {
        let (header, _) = message.split_first_chunk::<HEADER_BYTES>()?;
        let word = |at: usize| {
            let mut bytes = [0; 8];
            bytes.copy_from_slice(&header[at..at + 8]);
            u64::from_le_bytes(bytes)
        };
        let flow = u32::from_le_bytes([header[4], header[5], header[6], header[7]]);
        (header[..4] == MARK).then(|| Self {
            flow,
            number: word(8),
            due_ns: word(16),
            sent_ns: word(24),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_header_reads_back(flow: u32, number: u64, due_ns: u64, sent_ns: u64, size in HEADER_BYTES..100) {
            let header = Header { flow, number, due_ns, sent_ns };
            let mut message = vec![0x5a; size];
            header.write(&mut message);
            prop_assert_eq!(Header::read(&message), Some(header));
            prop_assert_eq!(Header::read(&message[..HEADER_BYTES - 1]), None);
        }

        #[test]
        fn strays_are_none_of_ours(message in proptest::collection::vec(any::<u8>(), 0..64)) {
            prop_assume!(!message.starts_with(&MARK));
            prop_assert_eq!(Header::read(&message), None);
        }
    }
}
