//! Records of the kernel's ring buffer (`perf_event_open(2)`, "Reading results"), in the layout that
//! [`super::Profiler`] requests: thread, time, call chain.
//!
//! perf-event2's own parser refuses a chain without entries, which a sample in user space has if user chains are left
//! out. The layout used here is only a few words.

/// `PERF_RECORD_MISC_CPUMODE_MASK` and `PERF_RECORD_MISC_USER` (include/uapi/linux/perf_event.h).
const MODE: u16 = 7;
const USER: u16 = 2;
/// `PERF_CONTEXT_MAX`: entries from here on are not addresses but say what follows.
const CONTEXT: u64 = (-4095_i64).cast_unsigned();

/// One sample.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RawSample {
    /// Process; 0 is the idle task of a CPU, or one that this PID namespace does not see.
    pub pid: i32,
    /// Its thread.
    pub tid: i32,
    /// `CLOCK_MONOTONIC`, ns.
    pub at_ns: u64,
    /// Whether it was in user space. Then there is no chain.
    pub user: bool,
    /// Kernel addresses, the innermost first.
    pub chain: Vec<u64>,
}

/// A `PERF_RECORD_SAMPLE` without its header; `None` if its layout is not the requested one.
pub(super) fn sample(misc: u16, bytes: &[u8]) -> Option<RawSample> {
    let mut words = words(bytes);
    let ids = words.next()?.to_ne_bytes();
    let pid = i32::from_ne_bytes(ids[..4].try_into().ok()?);
    let tid = i32::from_ne_bytes(ids[4..].try_into().ok()?);
    let at_ns = words.next()?;
    let entries = usize::try_from(words.next()?).ok()?;
    let chain: Vec<u64> = words.take(entries).collect();
    (chain.len() == entries).then(|| RawSample {
        pid,
        tid,
        at_ns,
        user: misc & MODE == USER,
        chain: chain.into_iter().filter(|word| *word < CONTEXT).collect(),
    })
}

/// A `PERF_RECORD_LOST` without its header: how many.
pub(super) fn lost(bytes: &[u8]) -> Option<u64> {
    words(bytes).nth(1)
}

fn words(bytes: &[u8]) -> impl Iterator<Item = u64> {
    let (words, _) = bytes.as_chunks::<8>();
    words.iter().copied().map(u64::from_ne_bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(words: &[u64]) -> Vec<u8> {
        words.iter().flat_map(|word| word.to_ne_bytes()).collect()
    }

    /// pid 7, tid 8 as the kernel lays them out.
    fn ids() -> u64 {
        let mut word = [0; 8];
        word[..4].copy_from_slice(&7_i32.to_ne_bytes());
        word[4..].copy_from_slice(&8_i32.to_ne_bytes());
        u64::from_ne_bytes(word)
    }

    #[test]
    fn a_kernel_sample_has_its_chain_without_markers() {
        let kernel_marker = (-128_i64).cast_unsigned();
        let record = bytes(&[ids(), 99, 3, kernel_marker, 0xffff_ffff_8100_0000, 0x10]);
        let expected = RawSample {
            pid: 7,
            tid: 8,
            at_ns: 99,
            user: false,
            chain: vec![0xffff_ffff_8100_0000, 0x10],
        };
        assert_eq!(sample(1, &record), Some(expected));
    }

    #[test]
    fn a_user_sample_has_none() {
        let sample = sample(2, &bytes(&[ids(), 99, 0])).unwrap();
        assert!(sample.user && sample.chain.is_empty());
    }

    #[test]
    fn what_is_cut_off_is_no_sample() {
        for cut in [&[ids()][..], &[ids(), 99], &[ids(), 99, 2, 1]] {
            assert_eq!(sample(1, &bytes(cut)), None);
        }
        assert_eq!(sample(1, &bytes(&[ids(), 99, u64::MAX])), None);
        assert_eq!(lost(&bytes(&[5, 17])), Some(17));
        assert_eq!(lost(&[]), None);
    }
}
