//! What a sender of a stream sends: the same bytes each time, or numbered ones.

use hopyard_net::clock;

use super::exchange::work_for;
use crate::numbered::Header;

/// A message and what goes into it.
pub(crate) struct Message {
    bytes: Vec<u8>,
    /// How many messages a call sends.
    count: u32,
    flow: Option<u32>,
    hold_ns: u64,
}

impl Message {
    /// So many bytes that say nothing.
    pub(crate) fn plain(size: u32) -> Self {
        Self::several(size, 1)
    }

    /// So many messages of so many bytes each, sent by one call.
    pub(crate) fn several(size: u32, count: u32) -> Self {
        Self {
            bytes: vec![0x5a; size as usize * count as usize],
            count,
            flow: None,
            hold_ns: 0,
        }
    }

    /// How many messages a call sends.
    pub(crate) fn count(&self) -> u32 {
        self.count
    }

    /// A numbered datagram of a flow. Every other one is held for a known time after its own was written into it.
    pub(crate) fn numbered(size: u32, flow: u32, hold_ns: u64) -> Self {
        Self {
            flow: Some(flow),
            hold_ns,
            ..Self::plain(size)
        }
    }

    /// The bytes of the message of that number, to be sent at once; without a time when it is due, that is now.
    #[inline]
    pub(crate) fn ready(&mut self, number: u64, due_ns: Option<u64>) -> &[u8] {
        if let Some(flow) = self.flow {
            let sent_ns = clock::monotonic_ns();
            let header = Header {
                flow,
                number,
                due_ns: due_ns.unwrap_or(sent_ns),
                sent_ns,
            };
            header.write(&mut self.bytes);
            if self.hold_ns > 0 && number % 2 == 1 {
                work_for(self.hold_ns);
            }
        }
        &self.bytes
    }
}
