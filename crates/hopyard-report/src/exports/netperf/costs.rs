//! netperf's local and remote CPU figures.

use crate::model::{CellReport, EndpointUsed};
use crate::quantity::{
    BUSY_CORES, CLIENT_BUSY_CORES, CLIENT_CPU_PER_BYTE, CLIENT_CPU_PER_TRANSACTION, CPU_PER_BYTE,
    CPU_PER_TRANSACTION, SERVER_BUSY_CORES, SERVER_CPU_PER_BYTE, SERVER_CPU_PER_TRANSACTION,
};

/// CPU figures of a cell by netperf's columns.
pub(super) struct Costs {
    /// Whether they are separate for the two ends.
    pub(super) is_apart: bool,
    pub(super) local: Cost,
    pub(super) remote: Cost,
}

/// The figures of one column.
#[derive(Default)]
pub(super) struct Cost {
    pub(super) cores: Option<f64>,
    pub(super) ns_per_byte: Option<f64>,
    pub(super) ns_per_transaction: Option<f64>,
    /// CPUs of the machine.
    pub(super) cpus: Option<u32>,
}

/// For each end if they are known separately, else for both together.
pub(super) fn costs(cell: &CellReport) -> Costs {
    let of = |cores, byte, transaction, cpus| {
        let value = |name: &str| cell.estimates.get(name).map(|estimate| estimate.value);
        Cost {
            cores: value(cores),
            ns_per_byte: value(byte),
            ns_per_transaction: value(transaction),
            cpus,
        }
    };
    let ends = cell.endpoints.as_ref();
    let cpus = |end: Option<&EndpointUsed>| Some(end?.machine.as_ref()?.cpus);
    let client = of(
        CLIENT_BUSY_CORES,
        CLIENT_CPU_PER_BYTE,
        CLIENT_CPU_PER_TRANSACTION,
        cpus(ends.map(|ends| &ends.client)),
    );
    let server = of(
        SERVER_BUSY_CORES,
        SERVER_CPU_PER_BYTE,
        SERVER_CPU_PER_TRANSACTION,
        cpus(ends.map(|ends| &ends.server)),
    );
    if ends.and_then(|ends| ends.are_one_machine) == Some(false) {
        return Costs {
            is_apart: true,
            local: client,
            remote: server,
        };
    }
    Costs {
        is_apart: false,
        local: of(
            BUSY_CORES,
            CPU_PER_BYTE,
            CPU_PER_TRANSACTION,
            cpus(ends.map(|ends| &ends.client)),
        ),
        remote: Cost::default(),
    }
}

#[cfg(test)]
mod tests {
    use super::super::render;
    use super::*;
    use crate::fixture;
    use crate::model::{LoadKind, Peer};

    /// The client's machine has 8 CPUs, the server's 2; one figure of the server's is missing.
    #[test]
    fn local_and_remote_are_the_machines_of_client_and_server() {
        let line_of = |are_one_machine: bool, load, figures: &[(&str, f64)]| {
            let mut cell = fixture::cell("as-is", Peer::Local, load).build();
            cell.endpoints = Some(fixture::ends(8, 2, are_one_machine));
            for (name, value) in figures {
                let estimate = fixture::estimate(*value, 0.1);
                cell.estimates.insert((*name).to_owned(), estimate);
            }
            let mut report = fixture::run();
            report.cells = vec![cell];
            let text = render(&report);
            assert!(are_one_machine || text.contains("% I"), "{text}");
            assert!(
                are_one_machine || !text.lines().skip(5).any(|line| line.contains("% U")),
                "{text}"
            );
            let lines = text.lines().filter(|line| line.contains("0.30"));
            let fields = lines.flat_map(str::split_whitespace).map(str::to_owned);
            fields.collect::<Vec<_>>()
        };
        let line = |load, figures: &[(&str, f64)]| line_of(false, load, figures);
        let stream = line(
            LoadKind::TcpStream,
            &[
                (CLIENT_BUSY_CORES, 0.8),
                (SERVER_BUSY_CORES, 1.5),
                (CLIENT_CPU_PER_BYTE, 0.5),
                (SERVER_CPU_PER_BYTE, 1.0),
                (CPU_PER_BYTE, 1.5),
            ],
        );
        assert_eq!(stream[5..], ["10.00", "75.00", "0.512", "1.024"]);
        let transactions = line(
            LoadKind::TcpRr,
            &[
                (CLIENT_BUSY_CORES, 0.8),
                (CLIENT_CPU_PER_TRANSACTION, 12_500.0),
            ],
        );
        assert_eq!(transactions[6..], ["10.00", "-1.00", "12.500", "-1.000"]);
        // Both ends on one machine, which is not this one: of its 8 CPUs.
        let whole = [(BUSY_CORES, 1.6), (CPU_PER_BYTE, 0.5)];
        let together = line_of(true, LoadKind::TcpStream, &whole);
        assert_eq!(together[5..7], ["20.00", "-1.00"]);
    }
}
