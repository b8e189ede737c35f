//! The registry of quantities.

use super::arrivals::{busiest, dropped, duplicated, median_run, of, reordered, smoothed, times};
use super::{
    Kind, Quantity, first_packet, float, has_latency, lost_ratio, per_second, quantile, queues,
    retransmits_per_s, window_s,
};
use crate::model::{EndsOn, LoadKind, Measurement};

/// Every quantity.
pub static QUANTITIES: &[Quantity] = &[
    compared(
        "goodput_bps",
        Kind::Value(|m, _| Some(float(m.received.bytes) * 8.0 / window_s(m))),
        LoadKind::is_stream,
    ),
    shown(
        "sent_bps",
        Kind::Value(|m, _| Some(float(m.sent.bytes) * 8.0 / window_s(m))),
        LoadKind::is_udp_stream,
    ),
    // Calls that the sender's kernel refused for want of buffers.
    shown(
        "send_errors_per_s",
        Kind::Value(|m, _| per_second(m, Some(m.send_errors))),
        LoadKind::is_udp_stream,
    ),
    compared(
        "packets_per_s",
        Kind::Value(|m, _| Some(float(m.received.messages) / window_s(m))),
        LoadKind::is_udp_stream,
    ),
    compared(
        "throughput_packets_per_s",
        Kind::Value(|m, _| m.search.as_ref()?.result.throughput_per_s),
        LoadKind::is_open_loop,
    ),
    shown(
        "throughput_bps",
        Kind::Value(|m, _| {
            let bytes_each = float(m.received.bytes) / float(m.received.messages);
            Some(m.search.as_ref()?.result.throughput_per_s? * bytes_each * 8.0)
        }),
        LoadKind::is_open_loop,
    ),
    shown(
        "throughput_lower_packets_per_s",
        Kind::Value(|m, _| m.search.as_ref()?.result.lower_per_s),
        LoadKind::is_open_loop,
    ),
    shown(
        "throughput_upper_packets_per_s",
        Kind::Value(|m, _| m.search.as_ref()?.result.upper_per_s),
        LoadKind::is_open_loop,
    ),
    shown(
        "search_trials",
        Kind::Value(|m, _| Some(float(m.search.as_ref()?.trials.len() as u64))),
        LoadKind::is_open_loop,
    ),
    compared(
        "transactions_per_s",
        Kind::Value(|m, _| Some(float(m.received.transactions) / window_s(m))),
        |load| !load.is_stream(),
    ),
    compared(
        "cpu_ns_per_byte",
        Kind::Demand(per_byte),
        LoadKind::is_stream,
    ),
    shown(
        "efficiency_bps_per_core",
        Kind::Demand(|m, net_ns| [float(m.received.bytes) * 8.0, net_ns / 1e9]),
        LoadKind::is_stream,
    ),
    shown(
        "normalized_bps_per_cpu_percent",
        Kind::Demand(|m, net_ns| {
            let percent = net_ns / 1e9 / f64::from(m.cpu.cpus) * 100.0;
            [float(m.received.bytes) * 8.0, percent]
        }),
        LoadKind::is_stream,
    ),
    shown(
        "skbs_per_s",
        Kind::Value(|m, _| Some(float(m.arrived?.skbs) / window_s(m))),
        LoadKind::is_stream,
    ),
    compared(
        "cpu_ns_per_packet",
        Kind::Demand(per_packet),
        LoadKind::is_udp_stream,
    ),
    compared(
        "cpu_ns_per_transaction",
        Kind::Demand(per_transaction),
        |load| !load.is_stream(),
    ),
    shown("busy_cores", Kind::Cpu(busy_cores), |_| true),
    // For the machine of each end, if the ends are on different ones: netperf's local and remote CPU.
    shown(
        "client_cpu_ns_per_byte",
        Kind::DemandOf(EndsOn::Client, per_byte),
        LoadKind::is_stream,
    ),
    shown(
        "client_cpu_ns_per_packet",
        Kind::DemandOf(EndsOn::Client, per_packet),
        LoadKind::is_udp_stream,
    ),
    shown(
        "client_cpu_ns_per_transaction",
        Kind::DemandOf(EndsOn::Client, per_transaction),
        |load| !load.is_stream(),
    ),
    shown(
        "client_busy_cores",
        Kind::CpuOf(EndsOn::Client, busy_cores),
        |_| true,
    ),
    shown(
        "server_cpu_ns_per_byte",
        Kind::DemandOf(EndsOn::Server, per_byte),
        LoadKind::is_stream,
    ),
    shown(
        "server_cpu_ns_per_packet",
        Kind::DemandOf(EndsOn::Server, per_packet),
        LoadKind::is_udp_stream,
    ),
    shown(
        "server_cpu_ns_per_transaction",
        Kind::DemandOf(EndsOn::Server, per_transaction),
        |load| !load.is_stream(),
    ),
    shown(
        "server_busy_cores",
        Kind::CpuOf(EndsOn::Server, busy_cores),
        |_| true,
    ),
    shown(
        "client_cpu_busy_ratio",
        Kind::Value(|m, _| Some(m.client_cpus?.busy_ratio)),
        |_| true,
    ),
    shown(
        "server_cpu_busy_ratio",
        Kind::Value(|m, _| Some(m.server_cpus?.busy_ratio)),
        |_| true,
    ),
    shown(
        "cpu_busy_ratio",
        Kind::Value(|m, _| Some(m.allowed_cpus?.busy_ratio)),
        |_| true,
    ),
    shown(
        "client_context_switches_per_s",
        Kind::Value(|m, _| per_second(m, m.client_scheduling.switches())),
        |_| true,
    ),
    // For senders that are always ready it is their time slice; for round trips, one of them with the switch to it.
    // Under heavy steal it is too high, because stolen time counts as busy.
    shown(
        "client_cpu_ns_per_switch",
        Kind::Cpu(|m, _| {
            let busy = m.client_cpus?;
            let switches = m.client_scheduling.switches().filter(|n| *n > 0)?;
            Some(busy.busy_ratio * f64::from(busy.cpus) * float(m.window_ns) / float(switches))
        }),
        |_| true,
    ),
    shown(
        "client_migrations_per_s",
        Kind::Value(|m, _| per_second(m, m.client_scheduling.migrations)),
        |_| true,
    ),
    shown(
        "client_cache_misses_per_s",
        Kind::Value(|m, _| per_second(m, m.client_scheduling.cache_misses)),
        |_| true,
    ),
    compared(
        "latency_p50_ns",
        Kind::Quantile(|m| quantile(m, 0.5)),
        has_latency,
    ),
    compared(
        "latency_p99_ns",
        Kind::Quantile(|m| quantile(m, 0.99)),
        has_latency,
    ),
    shown(
        "latency_p999_ns",
        Kind::Quantile(|m| quantile(m, 0.999)),
        has_latency,
    ),
    shown(
        "latency_max_ns",
        Kind::Value(|m, _| Some(float(m.latency.as_ref()?.max_ns))),
        has_latency,
    ),
    compared(
        "connect_p50_ns",
        Kind::Quantile(|m| first_packet(m, 0.5)),
        LoadKind::connects_anew,
    ),
    shown(
        "connect_p99_ns",
        Kind::Quantile(|m| first_packet(m, 0.99)),
        LoadKind::connects_anew,
    ),
    // A few for each lab: too few for verdicts.
    shown(
        "first_exchange_p50_ns",
        Kind::Quantile(|m| first_packet(m, 0.5)),
        LoadKind::times_first_exchanges,
    ),
    // Includes the very first packet of a fresh lab.
    shown(
        "first_exchange_max_ns",
        Kind::Value(|m, _| Some(float(m.first_packet.as_ref()?.max_ns))),
        LoadKind::times_first_exchanges,
    ),
    compared(
        "jitter_pdv_ns",
        Kind::Quantile(|m| of(m, |a| times(a.pdv.as_ref(), 0.999))),
        LoadKind::is_numbered,
    ),
    shown(
        "jitter_pdv_p99_ns",
        Kind::Quantile(|m| of(m, |a| times(a.pdv.as_ref(), 0.99))),
        LoadKind::is_numbered,
    ),
    shown(
        "jitter_ipdv_ns",
        Kind::Quantile(|m| of(m, |a| times(a.ipdv.as_ref(), 0.999))),
        LoadKind::is_numbered,
    ),
    compared(
        "jitter_rfc3550_ns",
        Kind::Value(|m, _| of(m, smoothed)),
        LoadKind::is_numbered,
    ),
    shown(
        "interarrival_p50_ns",
        Kind::Quantile(|m| of(m, |a| times(a.interarrival.as_ref(), 0.5))),
        LoadKind::is_numbered,
    ),
    shown(
        "interarrival_p99_ns",
        Kind::Quantile(|m| of(m, |a| times(a.interarrival.as_ref(), 0.99))),
        LoadKind::is_numbered,
    ),
    shown(
        "interarrival_sd_ns",
        Kind::Value(|m, _| of(m, |a| a.interarrival_sd_ns)),
        LoadKind::is_numbered,
    ),
    shown(
        "run_length_p50_packets",
        Kind::Quantile(|m| of(m, median_run)),
        LoadKind::is_numbered,
    ),
    shown(
        "run_length_mean_packets",
        Kind::Value(|m, _| of(m, |a| a.runs.as_ref().map(|runs| runs.mean))),
        LoadKind::is_numbered,
    ),
    shown(
        "sender_late_p99_ns",
        Kind::Quantile(|m| of(m, |a| times(a.lateness.as_ref(), 0.99))),
        LoadKind::is_open_loop,
    ),
    shown(
        "reordered_ratio",
        Kind::Value(|m, _| of(m, reordered)),
        LoadKind::is_numbered,
    ),
    shown(
        "duplicated_ratio",
        Kind::Value(|m, _| of(m, duplicated)),
        LoadKind::is_numbered,
    ),
    shown(
        "receiver_dropped_ratio",
        Kind::Value(|m, _| of(m, dropped)),
        LoadKind::is_numbered,
    ),
    shown(
        "receiver_busy_ratio",
        Kind::Value(|m, _| of(m, |a| busiest(a, m.window_ns))),
        LoadKind::is_numbered,
    ),
    shown("lost_ratio", Kind::Share(lost_ratio), |load| !load.is_tcp()),
    shown(
        "unfinished_ratio",
        Kind::Share(|m, _| m.open_loop?.loss_ratio()),
        |load| load.default_connections_per_s().is_some(),
    ),
    shown(
        "bytes_per_skb",
        Kind::Value(|m, _| {
            let arrived = m.arrived.filter(|a| a.skbs > 0)?;
            Some(float(arrived.bytes) / float(arrived.skbs))
        }),
        LoadKind::is_stream,
    ),
    shown(
        "zerocopy_copied_ratio",
        Kind::Value(|m, _| {
            let sends = m.zero_copy.filter(|sends| sends.answered > 0)?;
            Some(float(sends.copied) / float(sends.answered))
        }),
        LoadKind::sends_without_copies,
    ),
    shown(
        "queue_changes_per_flow_per_s",
        Kind::Value(|m, _| {
            let changes = m.queue_changes?;
            let flow_seconds = float(changes.span_ns) / 1e9 * f64::from(changes.flows);
            Some(float(changes.count) / flow_seconds)
        }),
        |load| !load.connects_anew(),
    ),
    shown(
        "queues_in_use",
        Kind::Value(|m, _| queues::in_use(m)),
        |_| true,
    ),
    shown(
        "silent_flows",
        Kind::Value(|m, _| m.silent_flows.map(f64::from)),
        |_| true,
    ),
    shown(
        "guest_steal_ratio",
        Kind::Value(|m, _| m.guest_steal_ratio),
        |_| true,
    ),
    shown(
        "retransmits_per_s",
        Kind::Value(|m, _| retransmits_per_s(m)),
        LoadKind::has_standing_connections,
    ),
];

/// A quantity that paths are compared by.
const fn compared(name: &'static str, kind: Kind, loads: fn(LoadKind) -> bool) -> Quantity {
    Quantity {
        name,
        kind,
        loads,
        compared: true,
    }
}

/// A quantity that is shown without a verdict.
const fn shown(name: &'static str, kind: Kind, loads: fn(LoadKind) -> bool) -> Quantity {
    Quantity {
        name,
        kind,
        loads,
        compared: false,
    }
}

fn per_byte(m: &Measurement, net_ns: f64) -> [f64; 2] {
    [net_ns, float(m.received.bytes)]
}

fn per_packet(m: &Measurement, net_ns: f64) -> [f64; 2] {
    [net_ns, float(m.received.messages)]
}

fn per_transaction(m: &Measurement, net_ns: f64) -> [f64; 2] {
    [net_ns, float(m.received.transactions)]
}

fn busy_cores(m: &Measurement, net_ns: f64) -> Option<f64> {
    Some(net_ns / float(m.window_ns))
}
