use super::{fixture, page};
use crate::export;
use crate::model::{Cell, LatencyReport, LoadKind, Observation, Peer, RunReport};

/// A complete page that loads nothing.
fn html(report: &RunReport) -> String {
    let text = page(report, "html");
    assert!(text.starts_with("<!DOCTYPE html>") && text.ends_with("</html>"));
    let elsewhere = [
        "http:",
        "https:",
        "//",
        "url(",
        "@import",
        "<img",
        "javascript:",
    ];
    // The name of SVG's namespace is a URL too, but HTML does not need it.
    for fetched in elsewhere.map(|start| format!("=\"{start}")) {
        assert!(!text.contains(&fetched), "{fetched}");
    }
    // The only script is the page's own.
    assert_eq!(text.matches("<script").count(), 1);
    assert!(text.contains("<script>'use strict';"));
    text
}

#[test]
fn figures_signs_and_pictures() {
    let report = fixture::paths();
    let text = html(&report);
    assert_eq!(text.matches("<h1").count(), 1);
    for part in ["Warnings", "Path proof", "Environment", "Raw data"] {
        assert!(text.contains(&format!("{part}</h2>")), "{part}");
    }
    // Better, worse and equivalent differ not only in colour.
    for (class, heard) in [
        ("better", " better"),
        ("worse", " worse"),
        ("open", " inconclusive"),
    ] {
        assert!(
            text.contains(&format!("<span class=\"{class}\">")),
            "{class}"
        );
        assert!(
            text.contains(&format!("<span class=\"heard\">{heard}</span>")),
            "{heard}"
        );
    }
    assert!(text.contains("21.4 ±"), "figures as in text");
    // Rate and cost of the streams; also both latencies of the others.
    assert_eq!(text.matches("role=\"img\"").count(), 2 * 2 + 3 * 4);
    assert!(text.contains("<desc id=\"about-1\">In Gbit/s. veth 21.4 (21.3 to 21.5)"));
    // Pictures use the page's own colours.
    assert!(text.contains("fill=\"currentColor\"") && text.contains("var(--h0)"));
    assert!(
        !text.contains("\"#0001"),
        "a colour that stands for another"
    );
}

#[test]
fn tables_carry_the_numbers_by_which_they_are_sorted() {
    let text = html(&fixture::paths());
    // After the matrix.
    let rows = text[text.find("16 KiB messages").unwrap()..]
        .split("<tr>")
        .skip(2);
    let values = |row: &str| -> Vec<String> {
        let cells = row.split("data-value=\"").skip(1);
        cells
            .map(|cell| cell[..cell.find('"').unwrap()].to_owned())
            .collect()
    };
    let first: Vec<Vec<String>> = rows.take(2).map(values).collect();
    // Figure and ratio of rate and cost, then busy cores and so on; the ratio of the base is 1.
    assert_eq!(first[0][..4], ["21.4", "1", "0.612", "1"]);
    assert_eq!(first[1][..4], ["19.5", "0.912", "0.676", "1.1"]);
    assert!(text.contains("<table class=\"sortable\">"));
}

/// A cell whose round trips are fast or slow.
fn bimodal(path: &str) -> crate::model::CellReport {
    fixture::cell(path, Peer::Local, LoadKind::TcpRr)
        .estimate("transactions_per_s", 20_000.0, 0.01)
        .with(|cell| {
            cell.latency = Some(LatencyReport {
                count: 1000,
                min_ns: 9_900,
                max_ns: 5_000_000,
                quantiles: vec![(0.5, 10_000), (0.99, 91_000)],
                classes: vec![(10_000.0, 600), (94_406.1, 399), (5_011_872.3, 1)],
            });
        })
        .build()
}

#[test]
fn a_distribution_shows_its_modes() {
    let mut report = fixture::run();
    report.cells = vec![bimodal("veth"), bimodal("bridge")];
    let text = html(&report);
    let about = text
        .split("<desc")
        .find(|desc| desc.contains("of transactions"));
    let about = about.unwrap().split("</desc>").next().unwrap();
    // From the class before the first one to the class after the last quantile that is drawn.
    assert!(
        about.contains("veth by µs, logarithmic: from 0 at 9.44, to 0 at 100, highest 60.0 at 10"),
        "{about}"
    );
    assert!(text.contains("<figcaption>latency distribution</figcaption>"));
    let table = text.split("<summary>The figures</summary>").nth(1).unwrap();
    for figure in ["p99<br>µs", ">1000<", ">91.0<", ">5000<"] {
        assert!(table.contains(figure), "{figure}: {table}");
    }
    // No picture without measurements.
    report.cells[0].latency = None;
    report.cells[1].latency = None;
    assert!(!html(&report).contains("latency distribution"));
}

#[test]
fn what_has_no_figures_says_so() {
    let mut report = fixture::paths();
    report.cells[1] = fixture::cell("bridge", Peer::Local, LoadKind::TcpStream)
        .failed("refused & <gone>")
        .build();
    let text = html(&report);
    assert!(text.contains("no figures"));
    assert!(text.contains("refused &amp; &lt;gone&gt;") && !text.contains("<gone>"));
    report.cells.clear();
    assert!(html(&report).contains("There are no figures"));
}

#[test]
fn names_from_outside_are_text() {
    let hostile = "\"><script>x</script>&\u{1b}[31m'`";
    let mut report = fixture::paths();
    report.run.plan = hostile.to_owned();
    report.run.id = format!("../{hostile}");
    report.run.environment.cpu_model = hostile.to_owned();
    for cell in &mut report.cells {
        cell.path = format!("{hostile}{}", cell.path);
    }
    report.warnings[0].message = hostile.to_owned();
    let text = html(&report);
    assert!(text.contains("&lt;script&gt;x&lt;/script&gt;"));
    assert!(!text.contains('\u{1b}') && !text.contains("<script>x"));
}

#[test]
fn a_hundred_cells_are_a_small_file() {
    let mut report = fixture::run();
    let mut observations = Vec::new();
    for (place, path) in ["veth", "bridge", "bridge-nf", "macvlan", "ipvlan"]
        .into_iter()
        .enumerate()
    {
        for cell in fixture::paths()
            .cells
            .into_iter()
            .filter(|cell| cell.path == "veth")
            .take(4)
        {
            for flows in 1..=5 {
                let mut cell = cell.clone();
                (cell.path, cell.axes.flows) = (path.to_owned(), flows);
                if !cell.load.is_stream() {
                    cell.latency = Some(spread());
                }
                observations.extend((0..20).map(|block| observation(&cell, block, place)));
                report.cells.push(cell);
            }
        }
    }
    assert_eq!(report.cells.len(), 100);
    let text = String::from_utf8(
        export("html")
            .unwrap()
            .render(&report, &observations)
            .unwrap(),
    )
    .unwrap();
    assert!(text.len() < 2_000_000, "{} bytes", text.len());
    // Every sample of every quantity with a curve is a dot.
    assert_eq!(text.matches("<circle").count(), 100 * 20 * 2);
}

/// Round trips from 10 µs to 10 ms, in every class.
fn spread() -> LatencyReport {
    let class = |number: u32| {
        let upper = 10_f64.powf(f64::from(number) / LatencyReport::CLASSES);
        (upper, u64::from(280 - number).pow(2))
    };
    let classes: Vec<(f64, u64)> = (160..280).map(class).collect();
    LatencyReport {
        count: classes.iter().map(|(_, count)| count).sum(),
        min_ns: 10_000,
        max_ns: 9_900_000,
        quantiles: [0.01, 0.05, 0.1, 0.25, 0.5, 0.75, 0.9, 0.99, 0.999, 0.9999]
            .map(|q| (q, 100_000))
            .to_vec(),
        classes,
    }
}

fn observation(cell: &crate::model::CellReport, block: u32, place: usize) -> Observation {
    let spread = 1.0 + f64::from(block * 7 % 20) / 100.0;
    let names = crate::assess::QUANTITIES
        .iter()
        .filter(|quantity| quantity.applies(cell.load));
    Observation {
        cell: Cell {
            path: cell.path.clone(),
            peer: cell.peer,
            load: cell.load,
            axes: cell.axes.clone(),
        },
        block,
        attempt: 0,
        order: block * 100,
        started_ns: 123_456_789_012,
        took_ns: 234_567_890,
        counted: true,
        cause: None,
        window_ns: Some(200_012_345),
        way_proved: Some(true),
        values: names
            .map(|q| {
                (
                    q.name,
                    cell.estimates
                        .get(q.name)
                        .map_or(place as f64 / 3.0, |e| e.value * spread),
                )
            })
            .collect(),
    }
}
