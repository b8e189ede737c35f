//! Counts the packets that the kernel throws away, and tells why.

use std::collections::BTreeMap;

use aya::maps::{HashMap, MapData};
use aya::programs::BtfTracePoint;
use aya::{Btf, Ebpf, EbpfLoader, include_bytes_aligned};

use super::{Error, Result};
use crate::profile::Symbols;

static OBJECT: &[u8] = include_bytes_aligned!(concat!(env!("OUT_DIR"), "/drops.bpf.o"));

/// `struct where` of `drops.bpf.c`: the place in the kernel's code, and whether something was not ready.
type Where = [u64; 2];
/// A function of the kernel that threw packets away, and whether it did for want of a device or a queue that is ready.
pub(super) type Dropper = (String, bool);

/// Counts packets of ours that the kernel threw away, by the place in its code.
pub(super) struct Drops {
    places: HashMap<MapData, Where, u64>,
    symbols: Symbols,
    _program: Ebpf,
}

impl Drops {
    /// Of packets with that mark, as long as it lives.
    pub(super) fn watch(mark: u32) -> Result<Self> {
        Self::attached(mark).map_err(|why| {
            Error::Lacking(format!(
                "cannot count the packets that the kernel drops (it takes Linux 5.18 with options CONFIG_DEBUG_INFO_BTF, CONFIG_BPF_EVENTS \
                 and CONFIG_KALLSYMS, and root): {why}"
            ))
        })
    }

    fn attached(mark: u32) -> Result<Self, String> {
        let said = |error: &(dyn std::error::Error + 'static)| crate::chain(error);
        let mut object = EbpfLoader::new()
            .override_global("mark", &mark, true)
            .load(OBJECT)
            .map_err(|e| said(&e))?;
        let program = object
            .program_mut("count_drop")
            .ok_or("a program is missing")?;
        let program: &mut BtfTracePoint = program
            .try_into()
            .map_err(|e: aya::programs::ProgramError| said(&e))?;
        let types = Btf::from_sys_fs().map_err(|e| said(&e))?;
        program.load("kfree_skb", &types).map_err(|e| said(&e))?;
        program.attach().map_err(|e| said(&e))?;
        let places = object.take_map("places").ok_or("a map is missing")?;
        Ok(Self {
            places: HashMap::try_from(places).map_err(|e| said(&e))?,
            symbols: Symbols::read().map_err(|e| said(&e))?,
            _program: object,
        })
    }

    /// How many so far.
    pub(super) fn total(&self) -> u64 {
        self.places.iter().flatten().map(|(_, count)| count).sum()
    }

    /// By function.
    pub(super) fn by_function(&self) -> BTreeMap<Dropper, u64> {
        let mut all = BTreeMap::new();
        for ([address, not_ready], count) in self.places.iter().flatten() {
            let name = self.symbols.name(address);
            *all.entry((name.unwrap_or_default(), not_ready != 0))
                .or_insert(0) += count;
        }
        all
    }
}

/// What becomes of a packet whose queue goes (drivers/net/tun.c).
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Gone {
    /// It was in the queue, and went with it.
    WithItsQueue,
    /// Its queue had been chosen, and was gone when it came.
    BeforeItCame,
    /// It was thrown away for another reason: the queue was full, say.
    Otherwise,
}

impl Gone {
    /// By the function that threw it away.
    pub(super) fn of((function, not_ready): &Dropper) -> Self {
        // A function may be there in parts (`tun_queue_purge.isra.0`).
        let function = function.split('.').next().unwrap_or_default();
        match function.trim_start_matches('_') {
            // Which of them it is depends on what the compiler put into which.
            "tun_queue_purge" | "tun_ptr_free" | "tun_detach" | "tun_detach_all"
            | "tun_set_queue" | "tun_chr_ioctl" | "tun_chr_close" => Self::WithItsQueue,
            "tun_net_xmit" if *not_ready => Self::BeforeItCame,
            _ => Self::Otherwise,
        }
    }
}
