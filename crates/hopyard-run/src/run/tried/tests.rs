use super::*;
use crate::model::{AXES, Axis, Containers, Peer};

/// Axes of the traffic alone: a lab is the same at all their values.
const OF_THE_TRAFFIC: [&str; 19] = [
    "message_size",
    "outstanding",
    "api",
    "zerocopy",
    "connection_rate",
    "request_size",
    "response_size",
    "socket_buffer",
    "send_buffer",
    "congestion",
    "mptcp",
    "client_cpus",
    "pace",
    "pace_pause",
    "distribution",
    "trace",
    "search",
    "start",
    "setting",
];

/// Axes by which the generator's loops differ where there is no path at all.
const OF_THE_LOOPS: [&str; 5] = [
    "message_size",
    "request_size",
    "response_size",
    "api",
    "trace",
];

fn cell(axes: Axes) -> Cell {
    Cell {
        path: "bridge".to_owned(),
        peer: Peer::Far,
        load: LoadKind::TcpStream,
        axes,
    }
}

/// Axes whose other value gives another key, by the registry.
fn telling<Key: PartialEq>(key: impl Fn(&Cell) -> Key) -> Vec<&'static str> {
    // With a process for each flow, the number of flows is the number of processes or containers.
    let plain = Axes {
        containers: Some(Containers::Native),
        ..Axes::default()
    };
    let tells = |axis: &&Axis| {
        let mut other = plain.clone();
        (axis.set)(&mut other, axis.other).unwrap();
        key(&cell(other)) != key(&cell(plain.clone()))
    };
    AXES.iter().filter(tells).map(|axis| axis.name).collect()
}

#[test]
fn a_lab_is_tried_at_every_value_of_what_it_is_built_by() {
    let of_a_lab: Vec<&str> = AXES
        .iter()
        .map(|axis| axis.name)
        .filter(|name| !OF_THE_TRAFFIC.contains(name))
        .collect();
    let mut told = telling(LabKey::of);
    told.sort_by_key(|name| AXES.iter().position(|axis| axis.name == *name));
    assert_eq!(told, of_a_lab);
}

#[test]
fn the_generators_ceiling_is_tried_at_every_size_of_a_message() {
    assert_eq!(telling(LoopKey::of), OF_THE_LOOPS);
}
