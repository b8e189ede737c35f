//! The registry of quantities.

use super::arrivals::{busiest, dropped, duplicated, median_run, of, reordered, smoothed, times};
use super::{
    Kind, Quantity, first_packet, float, has_latency, lost_ratio, per_second, quantile, window_s,
};
use crate::model::{EndsOn, LoadKind};

/// Every quantity.
pub static QUANTITIES: &[Quantity] = &[
    Quantity {
        name: "goodput_bps",
        kind: Kind::Value(|m, _| Some(float(m.received.bytes) * 8.0 / window_s(m))),
        loads: LoadKind::is_stream,
        compared: true,
    },
    Quantity {
        name: "sent_bps",
        kind: Kind::Value(|m, _| Some(float(m.sent.bytes) * 8.0 / window_s(m))),
        loads: LoadKind::is_udp_stream,
        compared: false,
    },
    // Calls that the sender's kernel refused for want of buffers.
    Quantity {
        name: "send_errors_per_s",
        kind: Kind::Value(|m, _| per_second(m, Some(m.send_errors))),
        loads: LoadKind::is_udp_stream,
        compared: false,
    },
    Quantity {
        name: "packets_per_s",
        kind: Kind::Value(|m, _| Some(float(m.received.messages) / window_s(m))),
        loads: LoadKind::is_udp_stream,
        compared: true,
    },
    Quantity {
        name: "throughput_packets_per_s",
        kind: Kind::Value(|m, _| m.search.as_ref()?.result.throughput_per_s),
        loads: LoadKind::is_open_loop,
        compared: true,
    },
    Quantity {
        name: "throughput_bps",
        kind: Kind::Value(|m, _| {
            let bytes_each = float(m.received.bytes) / float(m.received.messages);
            Some(m.search.as_ref()?.result.throughput_per_s? * bytes_each * 8.0)
        }),
        loads: LoadKind::is_open_loop,
        compared: false,
    },
    Quantity {
        name: "throughput_lower_packets_per_s",
        kind: Kind::Value(|m, _| m.search.as_ref()?.result.lower_per_s),
        loads: LoadKind::is_open_loop,
        compared: false,
    },
    Quantity {
        name: "throughput_upper_packets_per_s",
        kind: Kind::Value(|m, _| m.search.as_ref()?.result.upper_per_s),
        loads: LoadKind::is_open_loop,
        compared: false,
    },
    Quantity {
        name: "search_trials",
        kind: Kind::Value(|m, _| Some(float(m.search.as_ref()?.trials.len() as u64))),
        loads: LoadKind::is_open_loop,
        compared: false,
    },
    Quantity {
        name: "transactions_per_s",
        kind: Kind::Value(|m, _| Some(float(m.received.transactions) / window_s(m))),
        loads: |load| !load.is_stream(),
        compared: true,
    },
    Quantity {
        name: "cpu_ns_per_byte",
        kind: Kind::Demand(|m, net_ns| [net_ns, float(m.received.bytes)]),
        loads: LoadKind::is_stream,
        compared: true,
    },
    Quantity {
        name: "efficiency_bps_per_core",
        kind: Kind::Demand(|m, net_ns| [float(m.received.bytes) * 8.0, net_ns / 1e9]),
        loads: LoadKind::is_stream,
        compared: false,
    },
    Quantity {
        name: "normalized_bps_per_cpu_percent",
        kind: Kind::Demand(|m, net_ns| {
            let percent = net_ns / 1e9 / f64::from(m.cpu.cpus) * 100.0;
            [float(m.received.bytes) * 8.0, percent]
        }),
        loads: LoadKind::is_stream,
        compared: false,
    },
    Quantity {
        name: "skbs_per_s",
        kind: Kind::Value(|m, _| Some(float(m.arrived?.skbs) / window_s(m))),
        loads: LoadKind::is_stream,
        compared: false,
    },
    Quantity {
        name: "cpu_ns_per_packet",
        kind: Kind::Demand(|m, net_ns| [net_ns, float(m.received.messages)]),
        loads: LoadKind::is_udp_stream,
        compared: true,
    },
    Quantity {
        name: "cpu_ns_per_transaction",
        kind: Kind::Demand(|m, net_ns| [net_ns, float(m.received.transactions)]),
        loads: |load| !load.is_stream(),
        compared: true,
    },
    Quantity {
        name: "busy_cores",
        kind: Kind::Cpu(|m, net_ns| Some(net_ns / float(m.window_ns))),
        loads: |_| true,
        compared: false,
    },
    // Of each end's machine, where they are two: what netperf calls local and remote.
    Quantity {
        name: "client_cpu_ns_per_byte",
        kind: Kind::DemandOf(EndsOn::Client, |m, net_ns| {
            [net_ns, float(m.received.bytes)]
        }),
        loads: LoadKind::is_stream,
        compared: false,
    },
    Quantity {
        name: "client_cpu_ns_per_packet",
        kind: Kind::DemandOf(EndsOn::Client, |m, net_ns| {
            [net_ns, float(m.received.messages)]
        }),
        loads: LoadKind::is_udp_stream,
        compared: false,
    },
    Quantity {
        name: "client_cpu_ns_per_transaction",
        kind: Kind::DemandOf(EndsOn::Client, |m, net_ns| {
            [net_ns, float(m.received.transactions)]
        }),
        loads: |load| !load.is_stream(),
        compared: false,
    },
    Quantity {
        name: "client_busy_cores",
        kind: Kind::CpuOf(EndsOn::Client, |m, net_ns| {
            Some(net_ns / float(m.window_ns))
        }),
        loads: |_| true,
        compared: false,
    },
    Quantity {
        name: "server_cpu_ns_per_byte",
        kind: Kind::DemandOf(EndsOn::Server, |m, net_ns| {
            [net_ns, float(m.received.bytes)]
        }),
        loads: LoadKind::is_stream,
        compared: false,
    },
    Quantity {
        name: "server_cpu_ns_per_packet",
        kind: Kind::DemandOf(EndsOn::Server, |m, net_ns| {
            [net_ns, float(m.received.messages)]
        }),
        loads: LoadKind::is_udp_stream,
        compared: false,
    },
    Quantity {
        name: "server_cpu_ns_per_transaction",
        kind: Kind::DemandOf(EndsOn::Server, |m, net_ns| {
            [net_ns, float(m.received.transactions)]
        }),
        loads: |load| !load.is_stream(),
        compared: false,
    },
    Quantity {
        name: "server_busy_cores",
        kind: Kind::CpuOf(EndsOn::Server, |m, net_ns| {
            Some(net_ns / float(m.window_ns))
        }),
        loads: |_| true,
        compared: false,
    },
    Quantity {
        name: "client_cpu_busy_ratio",
        kind: Kind::Value(|m, _| Some(m.client_cpus?.busy_ratio)),
        loads: |_| true,
        compared: false,
    },
    Quantity {
        name: "cpu_busy_ratio",
        kind: Kind::Value(|m, _| Some(m.allowed_cpus?.busy_ratio)),
        loads: |_| true,
        compared: false,
    },
    Quantity {
        name: "client_context_switches_per_s",
        kind: Kind::Value(|m, _| per_second(m, m.client_scheduling.switches())),
        loads: |_| true,
        compared: false,
    },
    // Of senders that are always ready it is their time slice; of round trips, what one and the switch to it take. Where much of
    // the time was stolen, what was not idle was not used either.
    Quantity {
        name: "client_cpu_ns_per_switch",
        kind: Kind::Cpu(|m, _| {
            let busy = m.client_cpus?;
            let switches = m.client_scheduling.switches().filter(|n| *n > 0)?;
            Some(busy.busy_ratio * f64::from(busy.cpus) * float(m.window_ns) / float(switches))
        }),
        loads: |_| true,
        compared: false,
    },
    Quantity {
        name: "client_migrations_per_s",
        kind: Kind::Value(|m, _| per_second(m, m.client_scheduling.migrations)),
        loads: |_| true,
        compared: false,
    },
    Quantity {
        name: "client_cache_misses_per_s",
        kind: Kind::Value(|m, _| per_second(m, m.client_scheduling.cache_misses)),
        loads: |_| true,
        compared: false,
    },
    Quantity {
        name: "latency_p50_ns",
        kind: Kind::Value(|m, _| quantile(m, 0.5)),
        loads: has_latency,
        compared: true,
    },
    Quantity {
        name: "latency_p99_ns",
        kind: Kind::Value(|m, _| quantile(m, 0.99)),
        loads: has_latency,
        compared: true,
    },
    Quantity {
        name: "latency_p999_ns",
        kind: Kind::Value(|m, _| quantile(m, 0.999)),
        loads: has_latency,
        compared: false,
    },
    Quantity {
        name: "latency_max_ns",
        kind: Kind::Value(|m, _| Some(float(m.latency.as_ref()?.max_ns))),
        loads: has_latency,
        compared: false,
    },
    Quantity {
        name: "connect_p50_ns",
        kind: Kind::Value(|m, _| first_packet(m, 0.5)),
        loads: LoadKind::connects_anew,
        compared: true,
    },
    Quantity {
        name: "connect_p99_ns",
        kind: Kind::Value(|m, _| first_packet(m, 0.99)),
        loads: LoadKind::connects_anew,
        compared: false,
    },
    // A few for each lab: too few to be judged beside what a window counts.
    Quantity {
        name: "first_exchange_p50_ns",
        kind: Kind::Value(|m, _| first_packet(m, 0.5)),
        loads: LoadKind::times_first_exchanges,
        compared: false,
    },
    // The very first packet of a fresh lab is among them.
    Quantity {
        name: "first_exchange_max_ns",
        kind: Kind::Value(|m, _| Some(float(m.first_packet.as_ref()?.max_ns))),
        loads: LoadKind::times_first_exchanges,
        compared: false,
    },
    Quantity {
        name: "jitter_pdv_ns",
        kind: Kind::Value(|m, _| of(m, |a| times(a.pdv.as_ref(), 0.999))),
        loads: LoadKind::is_numbered,
        compared: true,
    },
    Quantity {
        name: "jitter_pdv_p99_ns",
        kind: Kind::Value(|m, _| of(m, |a| times(a.pdv.as_ref(), 0.99))),
        loads: LoadKind::is_numbered,
        compared: false,
    },
    Quantity {
        name: "jitter_ipdv_ns",
        kind: Kind::Value(|m, _| of(m, |a| times(a.ipdv.as_ref(), 0.999))),
        loads: LoadKind::is_numbered,
        compared: false,
    },
    Quantity {
        name: "jitter_rfc3550_ns",
        kind: Kind::Value(|m, _| of(m, smoothed)),
        loads: LoadKind::is_numbered,
        compared: true,
    },
    Quantity {
        name: "interarrival_p50_ns",
        kind: Kind::Value(|m, _| of(m, |a| times(a.interarrival.as_ref(), 0.5))),
        loads: LoadKind::is_numbered,
        compared: false,
    },
    Quantity {
        name: "interarrival_p99_ns",
        kind: Kind::Value(|m, _| of(m, |a| times(a.interarrival.as_ref(), 0.99))),
        loads: LoadKind::is_numbered,
        compared: false,
    },
    Quantity {
        name: "interarrival_sd_ns",
        kind: Kind::Value(|m, _| of(m, |a| a.interarrival_sd_ns)),
        loads: LoadKind::is_numbered,
        compared: false,
    },
    Quantity {
        name: "run_length_p50_packets",
        kind: Kind::Value(|m, _| of(m, median_run)),
        loads: LoadKind::is_numbered,
        compared: false,
    },
    Quantity {
        name: "run_length_mean_packets",
        kind: Kind::Value(|m, _| of(m, |a| a.runs.as_ref().map(|runs| runs.mean))),
        loads: LoadKind::is_numbered,
        compared: false,
    },
    Quantity {
        name: "sender_late_p99_ns",
        kind: Kind::Value(|m, _| of(m, |a| times(a.lateness.as_ref(), 0.99))),
        loads: LoadKind::is_open_loop,
        compared: false,
    },
    Quantity {
        name: "reordered_ratio",
        kind: Kind::Value(|m, _| of(m, reordered)),
        loads: LoadKind::is_numbered,
        compared: false,
    },
    Quantity {
        name: "duplicated_ratio",
        kind: Kind::Value(|m, _| of(m, duplicated)),
        loads: LoadKind::is_numbered,
        compared: false,
    },
    Quantity {
        name: "receiver_dropped_ratio",
        kind: Kind::Value(|m, _| of(m, dropped)),
        loads: LoadKind::is_numbered,
        compared: false,
    },
    Quantity {
        name: "receiver_busy_ratio",
        kind: Kind::Value(|m, _| of(m, |a| busiest(a, m.window_ns))),
        loads: LoadKind::is_numbered,
        compared: false,
    },
    Quantity {
        name: "lost_ratio",
        kind: Kind::Value(lost_ratio),
        loads: |load| !load.is_tcp(),
        compared: false,
    },
    Quantity {
        name: "unfinished_ratio",
        kind: Kind::Value(|m, _| m.open_loop?.loss_ratio()),
        loads: |load| load.default_connections_per_s().is_some(),
        compared: false,
    },
    Quantity {
        name: "bytes_per_skb",
        kind: Kind::Value(|m, _| {
            let arrived = m.arrived.filter(|a| a.skbs > 0)?;
            Some(float(arrived.bytes) / float(arrived.skbs))
        }),
        loads: LoadKind::is_stream,
        compared: false,
    },
    Quantity {
        name: "queue_changes_per_flow_per_s",
        kind: Kind::Value(|m, _| {
            let changes = m.queue_changes?;
            let flow_seconds = float(changes.span_ns) / 1e9 * f64::from(changes.flows);
            Some(float(changes.count) / flow_seconds)
        }),
        loads: |load| !load.connects_anew(),
        compared: false,
    },
    Quantity {
        name: "silent_flows",
        kind: Kind::Value(|m, _| m.silent_flows.map(f64::from)),
        loads: |_| true,
        compared: false,
    },
    Quantity {
        name: "guest_steal_ratio",
        kind: Kind::Value(|m, _| m.guest_steal_ratio),
        loads: |_| true,
        compared: false,
    },
    Quantity {
        name: "retransmits",
        kind: Kind::Value(|m, _| m.tcp.map(|tcp| float(tcp.retransmits))),
        loads: LoadKind::has_standing_connections,
        compared: false,
    },
];
