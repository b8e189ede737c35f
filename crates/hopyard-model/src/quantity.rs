//! Names of quantities in documents, in claims and in loads. The unit is the suffix.

/// Payload that arrived, bit/s.
pub const GOODPUT: &str = "goodput_bps";
/// The rate that a search found, datagrams/s.
pub const THROUGHPUT: &str = "throughput_packets_per_s";
/// The same, bit/s of payload.
pub const THROUGHPUT_BITS: &str = "throughput_bps";
/// Highest rate at which a search found its goal met, datagrams/s.
pub const THROUGHPUT_LOWER: &str = "throughput_lower_packets_per_s";
/// Lowest rate at which a search found its goal missed, datagrams/s.
pub const THROUGHPUT_UPPER: &str = "throughput_upper_packets_per_s";
/// Trials that a search made.
pub const TRIALS: &str = "search_trials";
/// Payload that the sender gave to its kernel, bit/s.
pub const SENT: &str = "sent_bps";
/// Send calls that the kernel refused.
pub const SEND_ERRORS: &str = "send_errors_per_s";
/// Datagrams that arrived.
pub const PACKETS: &str = "packets_per_s";
/// Completed transactions.
pub const TRANSACTIONS: &str = "transactions_per_s";
/// CPU time beyond that of the idle machine, for each byte that arrived.
pub const CPU_PER_BYTE: &str = "cpu_ns_per_byte";
/// CPU time beyond that of the idle machine, for each datagram that arrived.
pub const CPU_PER_PACKET: &str = "cpu_ns_per_packet";
/// CPU time beyond that of the idle machine, for each transaction.
pub const CPU_PER_TRANSACTION: &str = "cpu_ns_per_transaction";
/// CPU time per byte on the client's machine, if the ends are on different machines.
pub const CLIENT_CPU_PER_BYTE: &str = "client_cpu_ns_per_byte";
/// The same for each datagram that arrived.
pub const CLIENT_CPU_PER_PACKET: &str = "client_cpu_ns_per_packet";
/// The same for each transaction.
pub const CLIENT_CPU_PER_TRANSACTION: &str = "client_cpu_ns_per_transaction";
/// CPUs that the load keeps busy on the client's machine.
pub const CLIENT_BUSY_CORES: &str = "client_busy_cores";
/// CPU time per byte on the server's machine, if the ends are on different machines.
pub const SERVER_CPU_PER_BYTE: &str = "server_cpu_ns_per_byte";
/// The same for each datagram that arrived.
pub const SERVER_CPU_PER_PACKET: &str = "server_cpu_ns_per_packet";
/// The same for each transaction.
pub const SERVER_CPU_PER_TRANSACTION: &str = "server_cpu_ns_per_transaction";
/// CPUs that the load keeps busy on the server's machine.
pub const SERVER_BUSY_CORES: &str = "server_busy_cores";
/// CPUs that the load keeps busy.
pub const BUSY_CORES: &str = "busy_cores";
/// Goodput per busy CPU.
pub const EFFICIENCY: &str = "efficiency_bps_per_core";
/// Goodput per percent of a CPU.
pub const NORMALIZED: &str = "normalized_bps_per_cpu_percent";
/// Median of the times.
pub const LATENCY_P50: &str = "latency_p50_ns";
/// 99th percentile of the times.
pub const LATENCY_P99: &str = "latency_p99_ns";
/// 99.9th percentile of the times.
pub const LATENCY_P999: &str = "latency_p999_ns";
/// The longest of the times.
pub const LATENCY_MAX: &str = "latency_max_ns";
/// Median of the times to connect, from SYN to established.
pub const CONNECT_P50: &str = "connect_p50_ns";
/// 99th percentile of these times.
pub const CONNECT_P99: &str = "connect_p99_ns";
/// Median round trip of the first datagram of a fresh socket.
pub const FIRST_EXCHANGE_P50: &str = "first_exchange_p50_ns";
/// The longest of these round trips.
pub const FIRST_EXCHANGE_MAX: &str = "first_exchange_max_ns";
/// How late the sender itself was, of 99 % of the datagrams no more.
pub const SENDER_LATE: &str = "sender_late_p99_ns";
/// Packet delay variation (RFC 5481) at p99.9.
pub const PDV: &str = "jitter_pdv_ns";
/// Packet delay variation (RFC 5481) at p99.
pub const PDV_P99: &str = "jitter_pdv_p99_ns";
/// Standard deviation of the times between arrivals.
pub const GAP_SD: &str = "interarrival_sd_ns";
/// Share of the client's CPUs that is busy.
pub const CLIENT_CPU: &str = "client_cpu_busy_ratio";
/// Share of the server's CPUs that is busy.
pub const SERVER_CPU: &str = "server_cpu_busy_ratio";
/// Context switches of the client's threads.
pub(crate) const CLIENT_SWITCHES: &str = "client_context_switches_per_s";
/// Median number of consecutive datagrams of one flow on arrival.
pub const RUN_LENGTH: &str = "run_length_p50_packets";
/// Share of datagrams that arrive after one with a later number (RFC 4737).
pub const REORDERED: &str = "reordered_ratio";
/// Share of datagrams that the receiving socket had no room for.
pub const RECEIVER_DROPPED: &str = "receiver_dropped_ratio";
/// Share of the window that the receiving threads spent on a CPU.
pub const RECEIVER_BUSY: &str = "receiver_busy_ratio";
/// Share of datagrams that did not arrive.
pub const LOST: &str = "lost_ratio";
/// Share of the due connections that had not ended when traffic stopped.
pub const UNFINISHED: &str = "unfinished_ratio";
/// Mean size of the packets that devices of the path handle.
pub const BYTES_PER_SKB: &str = "bytes_per_skb";
/// How often a flow's packets came by another queue of the tap than before.
pub const QUEUE_CHANGES: &str = "queue_changes_per_flow_per_s";
/// How many queues of the tap the frames of the data spread over, as if by equal shares.
pub const QUEUES_IN_USE: &str = "queues_in_use";
/// Share of the time that guests' CPUs waited for a CPU of this machine.
pub const GUEST_STEAL: &str = "guest_steal_ratio";
/// Share of the sends without a copy whose bytes the kernel copied all the same.
pub const ZERO_COPY_COPIED: &str = "zerocopy_copied_ratio";
/// TCP segments that were sent again in a window.
pub const RETRANSMITS: &str = "retransmits_per_s";
