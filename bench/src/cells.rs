//! Cells to measure and the figures taken from a measurement.

use hopyard::lab;
use hopyard::model::{Axes, Cell, LoadKind, Measurement, Peer, Placement};

/// A cell with the default of every axis that `change` does not set.
#[must_use]
pub fn cell(path: &str, peer: Peer, load: LoadKind, change: impl FnOnce(&mut Axes)) -> Cell {
    let mut axes = Axes::default();
    change(&mut axes);
    let own = lab::path(path).map_or(&[][..], |path| path.axes);
    Cell {
        path: path.to_owned(),
        peer,
        load,
        axes: axes.for_cell(load, peer, own),
    }
}

/// Between two endpoints over one veth pair.
#[must_use]
pub fn veth(load: LoadKind, placement: Placement) -> Cell {
    cell("veth", Peer::Local, load, |axes| axes.placement = placement)
}

/// Units of the load's main figure per second: bytes of TCP, datagrams, transactions.
#[must_use]
pub fn throughput(load: LoadKind, m: &Measurement) -> f64 {
    let units = match load {
        LoadKind::TcpStream | LoadKind::TcpMaerts => m.received.bytes,
        _ if load.is_udp_stream() => m.received.messages,
        _ => m.received.transactions,
    };
    units as f64 * 1e9 / m.window_ns as f64
}

/// CPU ns per unit: the middle of the bounds, which are equal without steal. Both sides are rates, because the CPU
/// window and the traffic's window differ slightly in length.
#[must_use]
pub fn demand_ns(load: LoadKind, m: &Measurement) -> f64 {
    (m.cpu.net().middle_ns() / m.cpu.elapsed_ns) * 1e9 / throughput(load, m)
}

/// Bit/s that the receiver received.
#[must_use]
pub fn goodput_bps(m: &Measurement) -> f64 {
    m.received.bytes as f64 * 8e9 / m.window_ns as f64
}

/// A quantile of the round-trip times, µs; it must be one that samples store.
#[must_use]
pub fn latency_us(m: &Measurement, quantile: f64) -> Option<f64> {
    let latency = m.latency.as_ref()?;
    latency
        .quantiles
        .iter()
        .find(|(q, _)| (q - quantile).abs() < 1e-9)
        .map(|(_, ns)| *ns as f64 / 1e3)
}
