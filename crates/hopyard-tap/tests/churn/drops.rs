//! Packets that the kernel dropped, by the function that dropped them.

use aya::maps::{HashMap, MapData};
use aya::programs::BtfTracePoint;
use aya::{Btf, Ebpf, EbpfLoader, include_bytes_aligned};

static OBJECT: &[u8] = include_bytes_aligned!(concat!(env!("OUT_DIR"), "/drops.bpf.o"));

/// Counts until it is dropped.
pub(crate) struct Drops {
    map: HashMap<MapData, u64, u64>,
    _program: Ebpf,
}

impl Drops {
    /// Watches packets with this mark everywhere.
    pub(crate) fn watch(mark: u32) -> Self {
        let mut object = EbpfLoader::new()
            .override_global("mark", &mark, true)
            .load(OBJECT)
            .unwrap();
        let program: &mut BtfTracePoint = object
            .program_mut("count_drop")
            .unwrap()
            .try_into()
            .unwrap();
        program
            .load("kfree_skb", &Btf::from_sys_fs().unwrap())
            .unwrap();
        program.attach().unwrap();
        let map = HashMap::try_from(object.take_map("places").unwrap()).unwrap();
        Self {
            map,
            _program: object,
        }
    }

    pub(crate) fn total(&self) -> u64 {
        self.map.iter().map(|place| place.unwrap().1).sum()
    }

    /// By function, the most drops first.
    pub(crate) fn places(&self) -> Vec<(String, u64)> {
        let symbols = symbols();
        let mut places = std::collections::BTreeMap::new();
        for place in &self.map {
            let (address, count) = place.unwrap();
            let after = symbols.partition_point(|(start, _)| *start <= address);
            let name = symbols[after - 1].1.clone();
            *places.entry(name).or_default() += count;
        }
        places.into_iter().collect()
    }
}

fn symbols() -> Vec<(u64, String)> {
    let text = std::fs::read_to_string("/proc/kallsyms").unwrap();
    let mut symbols: Vec<_> = text
        .lines()
        .filter_map(|line| {
            let mut words = line.split_whitespace();
            let address = u64::from_str_radix(words.next()?, 16).ok()?;
            Some((address, words.nth(1)?.to_owned()))
        })
        .collect();
    symbols.sort();
    symbols
}
