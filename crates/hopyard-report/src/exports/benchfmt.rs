//! The Go benchmark format (<https://go.dev/design/14313-benchmark-format>), for `benchstat` and similar tools: a line
//! for each sample, so that a reader treats blocks like runs of `go test -count`.
//!
//! Readers attach the keys of a file (`key: value`) to each line, and `benchstat` does not compare lines whose keys
//! differ. So the keys describe the machine; what differs in every run, such as its seed, is a comment.

use std::collections::BTreeSet;

use super::{Export, Writer};
use crate::assess::quantity;
use crate::fields::number;
use crate::model::{CellReport, CellStatus, Observation, RunReport};
use crate::plain;

pub(super) static EXPORT: Export = Export {
    name: "benchfmt",
    title: "the Go benchmark format",
    summary: "A line per cell and block in the Go benchmark format, which benchstat reads",
    extension: "bench",
    ..Export::of_runs(Writer::Text(|report, seen| Ok(render(report, seen))))
};

fn render(report: &RunReport, seen: &[Observation]) -> String {
    let mut text = configuration(report);
    text.push_str(&units(seen));
    for cell in &report.cells {
        let name = format!("BenchmarkHopyard/{}", cell.name());
        text.push_str(&without_figures(&name, cell));
        if cell.is_unproved() {
            continue;
        }
        let own = seen.iter().filter(|o| o.counted && o.is_of(cell));
        for sample in own.filter(|sample| !sample.values.is_empty()) {
            let figures = sample.values.iter().map(|(quantity, value)| {
                let (unit, factor) = unit(quantity);
                format!(" {} {unit}", number(value * factor))
            });
            text.push_str(&format!("{name} 1{}\n", figures.collect::<String>()));
        }
    }
    text
}

/// The keys, which apply to each line below.
fn configuration(report: &RunReport) -> String {
    let (run, machine) = (&report.run, &report.run.environment);
    let mut text = format!(
        "# {}: plan {}, seed {}, windows of {} s, hopyard {}\n",
        plain::line(&run.id),
        plain::line(&run.plan),
        run.seed,
        number(run.window_s),
        plain::line(&machine.hopyard_version),
    );
    for (key, value) in [
        ("goos", "linux"),
        ("goarch", go_name(&machine.architecture)),
        ("cpu", &machine.cpu_model),
        ("cpus", &machine.cpus.to_string()),
        ("kernel", &machine.kernel_release),
    ] {
        let value = plain::line(value);
        // A key without a value would unset the key.
        if !value.is_empty() {
            text.push_str(&format!("{key}: {value}\n"));
        }
    }
    text
}

/// Go's name of the architecture (`go tool dist list`).
fn go_name(architecture: &str) -> &str {
    match architecture {
        "x86_64" => "amd64",
        "i386" | "i486" | "i586" | "i686" => "386",
        "aarch64" => "arm64",
        "loongarch64" => "loong64",
        name if name.starts_with("armv") => "arm",
        name => name,
    }
}

/// Which direction of a unit is better, for those that hopyard compares too.
fn units(seen: &[Observation]) -> String {
    let counted = seen.iter().filter(|sample| sample.counted);
    let names: BTreeSet<&str> = counted.flat_map(|s| s.values.keys().copied()).collect();
    let line = |name: &str| {
        let quantity = quantity(name).ok().filter(|quantity| quantity.compared)?;
        let better = match quantity.more_is_better()? {
            true => "higher",
            false => "lower",
        };
        Some(format!("Unit {} better={better}\n", unit(name).0))
    };
    names.into_iter().filter_map(line).collect()
}

/// The unit of a quantity, and how many of it are one of the quantity's own: bytes for bits, `/` for `per`. Readers
/// convert nanoseconds to seconds themselves.
fn unit(quantity: &str) -> (String, f64) {
    match quantity {
        "goodput_bps" => return ("B/s".to_owned(), 1.0 / 8.0),
        "cpu_ns_per_byte" => return ("cpu-ns/B".to_owned(), 1.0),
        _ => {}
    }
    let unit = quantity.replace("_per_", "/").replace('_', "-");
    match unit.split_once("-bps") {
        Some((what, per)) => (format!("{what}-B/s{per}"), 1.0 / 8.0),
        None => (unit, 1.0),
    }
}

/// The line that `go test` prints for a failed or skipped benchmark; readers of figures ignore it.
fn without_figures(name: &str, cell: &CellReport) -> String {
    let cause = cell.cause.as_deref().map(plain::line).unwrap_or_default();
    let (word, cause) = match cell.status {
        CellStatus::Ok if cell.is_unproved() => ("FAIL", "its path proof failed".into()),
        CellStatus::Ok => return String::new(),
        CellStatus::Failed => ("FAIL", cause),
        CellStatus::Unsupported => ("SKIP", cause),
    };
    format!("--- {word}: {name}\n    {cause}\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::assess::QUANTITIES;
    use crate::fixture;
    use crate::model::{Cell, LoadKind, Peer};

    fn sample(cell: &CellReport, block: u32, values: &[(&'static str, f64)]) -> Observation {
        Observation {
            cell: Cell {
                path: cell.path.clone(),
                peer: cell.peer,
                load: cell.load,
                axes: cell.axes.clone(),
            },
            block,
            attempt: 0,
            order: block,
            started_ns: 0,
            took_ns: 0,
            counted: true,
            cause: None,
            window_ns: None,
            way_proved: None,
            values: values.iter().copied().collect(),
        }
    }

    #[test]
    fn traffic_that_went_another_way_is_a_failure() {
        let mut report = fixture::run();
        let bridge = fixture::cell("bridge", Peer::Local, LoadKind::TcpRr)
            .with(|cell| cell.way.proved = false)
            .build();
        let seen = [sample(&bridge, 0, &[("transactions_per_s", 13_000.0)])];
        report.cells = vec![bridge];
        let text = render(&report, &seen);
        let failure = "--- FAIL: BenchmarkHopyard/path=bridge/load=tcp_rr/peer=local\n    its path proof failed\n";
        assert!(text.ends_with(failure), "{text}");
    }

    #[test]
    fn a_line_for_each_block() {
        let mut report = fixture::run();
        report.run.plan = "mine\nBenchmarkX 1 1 ns/op".to_owned();
        let bridge = fixture::cell("bridge", Peer::Local, LoadKind::TcpRr).build();
        let stream = fixture::cell("veth", Peer::Far, LoadKind::TcpStream)
            .axes(|axes| axes.mtu_bytes = 9000)
            .build();
        let failed = fixture::cell("a b/c", Peer::Local, LoadKind::TcpRr)
            .failed("no\nroute: x")
            .build();
        let mut repeated = sample(&bridge, 1, &[("transactions_per_s", 1.0)]);
        repeated.counted = false;
        let seen = [
            sample(
                &bridge,
                0,
                &[
                    ("transactions_per_s", 13_000.5),
                    ("cpu_ns_per_transaction", 62_900.0),
                    ("latency_p99_ns", 131_800.0),
                ],
            ),
            sample(
                &stream,
                0,
                &[("goodput_bps", 8e9), ("cpu_ns_per_byte", 0.5)],
            ),
            repeated,
            sample(&bridge, 1, &[("transactions_per_s", 12_000.0)]),
            sample(&failed, 0, &[]),
        ];
        report.cells = vec![bridge, stream, failed];
        insta::assert_snapshot!(render(&report, &seen), @"
        # 20260301T101500Z-paths: plan mine BenchmarkX 1 1 ns/op, seed 42, windows of 0.3 s, hopyard 0.1.0
        goos: linux
        goarch: amd64
        cpu: AMD EPYC 7B13
        cpus: 2
        kernel: 6.18.5
        Unit cpu-ns/B better=lower
        Unit cpu-ns/transaction better=lower
        Unit B/s better=higher
        Unit latency-p99-ns better=lower
        Unit transactions/s better=higher
        BenchmarkHopyard/path=bridge/load=tcp_rr/peer=local 1 62900 cpu-ns/transaction 131800 latency-p99-ns 13000.5 transactions/s
        BenchmarkHopyard/path=bridge/load=tcp_rr/peer=local 1 12000 transactions/s
        BenchmarkHopyard/path=veth/load=tcp_stream/mtu=9000/peer=far 1 0.5 cpu-ns/B 1000000000 B/s
        --- FAIL: BenchmarkHopyard/path=a_b_c/load=tcp_rr/peer=local
            no route: x
        ");
    }

    #[test]
    fn units_tell_quantities_apart() {
        let mut units: Vec<String> = QUANTITIES.iter().map(|q| unit(q.name).0).collect();
        for unit in &units {
            let fits = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '/';
            assert!(unit.chars().all(fits), "{unit}");
            assert!(!unit.contains("bps"), "{unit} is in bits");
        }
        units.sort();
        units.dedup();
        assert_eq!(units.len(), QUANTITIES.len());
        for (name, expected, factor) in [
            ("goodput_bps", "B/s", 0.125),
            ("sent_bps", "sent-B/s", 0.125),
            ("efficiency_bps_per_core", "efficiency-B/s/core", 0.125),
            ("transactions_per_s", "transactions/s", 1.0),
            ("cpu_ns_per_transaction", "cpu-ns/transaction", 1.0),
            ("latency_p99_ns", "latency-p99-ns", 1.0),
            ("bytes_per_skb", "bytes/skb", 1.0),
            ("retransmits_per_s", "retransmits/s", 1.0),
        ] {
            assert_eq!(unit(name), (expected.to_owned(), factor));
        }
    }
}
