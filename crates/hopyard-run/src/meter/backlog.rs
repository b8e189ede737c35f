//! Packets that were dropped because a CPU's queue of received packets was full.

use std::fs;

/// Drops of all CPUs since the machine started; `None` if the kernel does not report them. The second number of each
/// line counts packets beyond `net.core.netdev_max_backlog` (net/core/net-procfs.c), which all namespaces share.
#[must_use]
pub fn drops() -> Option<u64> {
    sum(&fs::read_to_string("/proc/net/softnet_stat").ok()?)
}

fn sum(text: &str) -> Option<u64> {
    let of_line = |line: &str| {
        let dropped = line.split_whitespace().nth(1)?;
        u64::from_str_radix(dropped, 16).ok()
    };
    text.lines().map(of_line).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_second_number_of_every_cpu_counts() {
        assert_eq!(
            sum("00000011 0000000a 00000000\n00000002 00000001 0\n"),
            Some(11)
        );
        assert_eq!(sum("rubbish\n"), None);
        assert!(drops().is_some());
    }
}
