//! Quantities: the text for a name like `goodput_bps`, and its unit for people.
//!
//! Units follow from the suffix, so a quantity that is not listed here is still printed correctly.

use super::number::{ABSENT, rough, rounded, significant};
use crate::model::LoadKind;
use crate::stats::Verdict;

pub(crate) use crate::model::quantity::{
    BUSY_CORES, BYTES_PER_SKB, CLIENT_BUSY_CORES, CLIENT_CPU, CLIENT_CPU_PER_BYTE,
    CLIENT_CPU_PER_PACKET, CLIENT_CPU_PER_TRANSACTION, CONNECT_P50, CONNECT_P99, CPU_PER_BYTE,
    CPU_PER_PACKET, CPU_PER_TRANSACTION, EFFICIENCY, FIRST_EXCHANGE_MAX, FIRST_EXCHANGE_P50,
    GAP_SD, GOODPUT, GUEST_STEAL, LATENCY_MAX, LATENCY_P50, LATENCY_P99, LATENCY_P999, LOST,
    NORMALIZED, PACKETS, PDV, PDV_P99, QUEUE_CHANGES, QUEUES_IN_USE, RECEIVER_BUSY,
    RECEIVER_DROPPED, REORDERED, RETRANSMITS, RUN_LENGTH, SEND_ERRORS, SENDER_LATE, SENT,
    SERVER_BUSY_CORES, SERVER_CPU, SERVER_CPU_PER_BYTE, SERVER_CPU_PER_PACKET,
    SERVER_CPU_PER_TRANSACTION, THROUGHPUT, THROUGHPUT_BITS, THROUGHPUT_LOWER, THROUGHPUT_UPPER,
    TRANSACTIONS, TRIALS, ZERO_COPY_COPIED,
};

pub(super) use crate::assess::{cost as cpu_cost, main_figure};

/// The CPU costs of the machines of client and server for a load, if they are different machines.
pub(super) fn costs_of_ends(load: LoadKind) -> [&'static str; 2] {
    match cpu_cost(load) {
        CPU_PER_BYTE => [CLIENT_CPU_PER_BYTE, SERVER_CPU_PER_BYTE],
        CPU_PER_PACKET => [CLIENT_CPU_PER_PACKET, SERVER_CPU_PER_PACKET],
        _ => [CLIENT_CPU_PER_TRANSACTION, SERVER_CPU_PER_TRANSACTION],
    }
}

/// A unit, and how many base units it has.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Scale {
    size: f64,
    pub(super) unit: &'static str,
}

impl Scale {
    /// The value in this unit.
    pub(super) fn of(self, value: f64) -> f64 {
        value / self.size
    }

    /// The number in this unit, without the unit.
    pub(super) fn show(self, value: f64) -> String {
        significant(self.of(value))
    }

    /// A half-width in this unit, with two digits.
    pub(super) fn show_roughly(self, half_width: f64) -> String {
        rough(self.of(half_width))
    }
}

/// The units of a quantity, largest first, each with its size in base units. The first that the greatest value reaches is used, else
/// the last.
fn family(name: &str) -> &'static [(f64, &'static str)] {
    match name {
        CPU_PER_TRANSACTION | CLIENT_CPU_PER_TRANSACTION | SERVER_CPU_PER_TRANSACTION => {
            &[(1e3, "µs/transaction")]
        }
        CPU_PER_PACKET | CLIENT_CPU_PER_PACKET | SERVER_CPU_PER_PACKET => &[(1.0, "ns/packet")],
        CPU_PER_BYTE | CLIENT_CPU_PER_BYTE | SERVER_CPU_PER_BYTE => &[(1.0, "ns/byte")],
        EFFICIENCY => &[(1e9, "Gbit/s/core")],
        crate::assess::PER_GHZ => &[(1e9, "Gbit/s/GHz")],
        NORMALIZED => &[(1e6, "Mbit/s/%")],
        BUSY_CORES | CLIENT_BUSY_CORES | SERVER_BUSY_CORES => &[(1.0, "cores")],
        BYTES_PER_SKB => &[(1.0, "bytes/skb")],
        RETRANSMITS => &[(1.0, "per second")],
        _ if name.ends_with("_packets") => &[(1.0, "packets")],
        _ if name.ends_with("_bps") => &[
            (1e9, "Gbit/s"),
            (1e6, "Mbit/s"),
            (1e3, "kbit/s"),
            (1.0, "bit/s"),
        ],
        _ if name.ends_with("_per_s") => &[(1e6, "M/s"), (1e3, "k/s"), (1.0, "/s")],
        _ if name.ends_with("_ns") => &[(1e9, "s"), (1e6, "ms"), (1e3, "µs"), (1.0, "ns")],
        _ if name.ends_with("_ratio") => &[(0.01, "%")],
        _ => &[(1.0, "")],
    }
}

/// The best unit for values up to `greatest`.
pub(super) fn scale(name: &str, greatest: f64) -> Scale {
    let family = family(name);
    let reached = family
        .iter()
        .find(|(size, _)| rounded(greatest.abs()) >= *size);
    let &(size, unit) = reached.or(family.last()).unwrap_or(&(1.0, ""));
    Scale { size, unit }
}

/// Several values in one unit: `12.1 and 18.3 Gbit/s`.
pub(super) fn show_all(name: &str, values: &[f64]) -> String {
    let finite = values.iter().copied().filter(|v| v.is_finite());
    let scale = scale(name, finite.map(f64::abs).fold(0.0, f64::max));
    let numbers: Vec<_> = values.iter().map(|&v| scale.show(v)).collect();
    match numbers.as_slice() {
        [] => ABSENT.to_owned(),
        _ => format!("{} {}", numbers.join(" and "), scale.unit)
            .trim_end()
            .to_owned(),
    }
}

/// A text that begins with a capital letter.
pub(super) fn capital(text: &str) -> String {
    let mut chars = text.chars();
    let first = chars.next().map(char::to_uppercase);
    first.into_iter().flatten().chain(chars).collect()
}

/// The name as text, without its unit.
pub(super) fn words(name: &str) -> String {
    match name {
        GOODPUT => "goodput".to_owned(),
        SENT => "sending rate".to_owned(),
        PACKETS => "packets".to_owned(),
        THROUGHPUT | THROUGHPUT_BITS => "throughput".to_owned(),
        TRANSACTIONS => "transactions".to_owned(),
        CPU_PER_BYTE | CPU_PER_PACKET | CPU_PER_TRANSACTION => "CPU cost".to_owned(),
        CLIENT_CPU_PER_BYTE | CLIENT_CPU_PER_PACKET | CLIENT_CPU_PER_TRANSACTION => {
            "client's CPU".to_owned()
        }
        SERVER_CPU_PER_BYTE | SERVER_CPU_PER_PACKET | SERVER_CPU_PER_TRANSACTION => {
            "server's CPU".to_owned()
        }
        EFFICIENCY | crate::assess::PER_GHZ => "efficiency".to_owned(),
        NORMALIZED => "normalized".to_owned(),
        LOST => "loss".to_owned(),
        PDV => "PDV (p99.9)".to_owned(),
        PDV_P99 => "PDV (p99)".to_owned(),
        GAP_SD => "jitter (sd of gaps)".to_owned(),
        CLIENT_CPU => "client's CPUs busy".to_owned(),
        SERVER_CPU => "server's CPUs busy".to_owned(),
        RUN_LENGTH => "run length (median)".to_owned(),
        REORDERED => "reordered".to_owned(),
        QUEUE_CHANGES => "queue changes of a flow".to_owned(),
        ZERO_COPY_COPIED => "copied all the same".to_owned(),
        _ => ["_bps", "_per_s", "_ns", "_ratio", "_packets"]
            .iter()
            .find_map(|suffix| name.strip_suffix(suffix))
            .unwrap_or(name)
            .replace('_', " "),
    }
}

/// The verdict in one character.
pub(super) fn symbol(verdict: Option<Verdict>) -> &'static str {
    match verdict {
        Some(Verdict::Different) => "≠",
        Some(Verdict::Equivalent) => "=",
        Some(Verdict::Inconclusive) => "?",
        None => "",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_suffix_chooses_the_unit() {
        for (name, value, text) in [
            (GOODPUT, 21.43e9, "21.4 Gbit/s"),
            (GOODPUT, 999.96e6, "1.00 Gbit/s"),
            (SENT, 95.7e6, "95.7 Mbit/s"),
            (GOODPUT, 0.0, "0 bit/s"),
            (TRANSACTIONS, 181_300.0, "181 k/s"),
            (LATENCY_P99, 45_210.0, "45.2 µs"),
            ("jitter_pdv_ns", 1.5e6, "1.50 ms"),
            (CPU_PER_TRANSACTION, 11_250.0, "11.2 µs/transaction"),
            (CPU_PER_BYTE, 0.413, "0.413 ns/byte"),
            (LOST, 0.1234, "12.3 %"),
            ("something_new", 7.0, "7.00"),
            ("something_new", -1.796e308, "-1.80e308"),
            (BUSY_CORES, f64::NAN, "– cores"),
        ] {
            assert_eq!(show_all(name, &[value]), text);
        }
        assert_eq!(show_all(GOODPUT, &[12.1e9, 0.9e9]), "12.1 and 0.900 Gbit/s");
    }

    #[test]
    fn names_lose_their_unit() {
        assert_eq!(words("jitter_ipdv_ns"), "jitter ipdv");
        assert_eq!(words("something_new"), "something new");
        assert_eq!(words(QUEUES_IN_USE), "queues in use");
    }

    proptest! {
        #[test]
        fn any_value_of_any_name_prints(bits in any::<u64>(), name in "[a-z]{0,8}(_bps|_ns|_per_s|_ratio|)") {
            let text = show_all(&name, &[f64::from_bits(bits)]);
            prop_assert!(!text.contains("NaN") && !text.contains("inf"), "{text}");
            prop_assert!(text.chars().count() <= 20, "{text}");
        }
    }
}
