//! CPU time that the hypervisor kept (proc_stat(5)).

/// Ticks that the hypervisor kept, and all, since the start; nothing where the kernel does not say.
pub(crate) fn read() -> [u64; 2] {
    let text = std::fs::read_to_string("/proc/stat").unwrap_or_default();
    ticks(&text)
}

/// The share of all CPU time since then that the hypervisor kept.
pub(crate) fn share_since(before: [u64; 2]) -> f64 {
    let after = read();
    let [steal, all] = [0, 1].map(|at| after[at].saturating_sub(before[at]));
    // Of ten thousand: a short number, which is read as it was written.
    let share = (steal * 10_000 / all.max(1)).min(10_000);
    f64::from(u32::try_from(share).unwrap_or(10_000)) / 10_000.0
}

fn ticks(stat: &str) -> [u64; 2] {
    let line = stat.lines().next().unwrap_or_default();
    let fields = line.split_ascii_whitespace().skip(1).take(8);
    let fields: Vec<u64> = fields.filter_map(|field| field.parse().ok()).collect();
    [fields.get(7).copied().unwrap_or(0), fields.iter().sum()]
}

#[cfg(test)]
mod tests {
    #[test]
    fn steal_is_the_eighth_field() {
        let stat = "cpu  10 20 30 40 50 60 70 80 90 100\ncpu0 1";
        assert_eq!(super::ticks(stat), [80, 360]);
        assert_eq!(super::ticks(""), [0, 0]);
    }
}
