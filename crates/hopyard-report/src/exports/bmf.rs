//! Bencher Metric Format (<https://bencher.dev/docs/reference/bencher-metric-format/>): a measure for each estimate of a cell,
//! with the ends of its interval.

use serde_json::{Map, Value};

use super::{Export, Writer};
use crate::model::RunReport;
use crate::stats::Estimate;

pub(super) static EXPORT: Export = Export {
    name: "bmf",
    title: "Bencher Metric Format",
    summary: "Estimates and their intervals in Bencher Metric Format, which Bencher keeps and draws",
    extension: "bmf.json",
    ..Export::of_runs(Writer::Text(|report, _| Ok(render(report))))
};

/// By cell and measure. Cells without estimates are left out, and those whose traffic went another way.
fn render(report: &RunReport) -> String {
    let proved = report.cells.iter().filter(|cell| cell.way.proved);
    let cells = proved.map(|cell| {
        let measures = cell.estimates.iter();
        let measures =
            measures.filter_map(|(name, estimate)| Some((slug(name), metric(estimate)?)));
        (cell.name(), measures.collect::<Map<_, _>>())
    });
    let cells = cells.filter(|(_, measures)| !measures.is_empty());
    let document: Map<String, Value> = cells
        .map(|(name, measures)| (name, Value::Object(measures)))
        .collect();
    format!("{:#}\n", Value::Object(document))
}

/// Bencher's name of a measure, from the quantity and its unit: `goodput-bps`.
fn slug(quantity: &str) -> String {
    quantity.replace('_', "-")
}

/// `None` without a number. An end of the interval without a number is left out.
fn metric(estimate: &Estimate) -> Option<Value> {
    let number = |value: f64| value.is_finite().then(|| Value::from(value));
    let mut metric = Map::new();
    metric.insert("value".to_owned(), number(estimate.value)?);
    for (name, end) in [
        ("lower_value", estimate.low),
        ("upper_value", estimate.high),
    ] {
        metric.extend(number(end).map(|end| (name.to_owned(), end)));
    }
    Some(Value::Object(metric))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use serde::Deserialize;

    use super::*;
    use crate::assess::QUANTITIES;
    use crate::fixture;
    use crate::model::{LoadKind, Peer};

    /// Exactly what Bencher accepts.
    #[derive(Debug, Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Metric {
        value: f64,
        lower_value: Option<f64>,
        upper_value: Option<f64>,
    }

    fn read(report: &RunReport) -> BTreeMap<String, BTreeMap<String, Metric>> {
        serde_json::from_str(&render(report)).unwrap()
    }

    #[test]
    fn what_was_measured_and_nothing_else() {
        let mut report = fixture::run();
        report.cells = vec![
            fixture::cell("bridge", Peer::Far, LoadKind::UdpRr)
                .estimate("transactions_per_s", 13_000.5, 0.02)
                .with(|cell| {
                    let mut unknown = fixture::estimate(1.0, 0.0);
                    unknown.value = f64::NAN;
                    cell.estimates.insert("lost_ratio".to_owned(), unknown);
                })
                .build(),
            fixture::cell("netkit", Peer::Local, LoadKind::TcpRr)
                .failed("no")
                .build(),
        ];
        insta::assert_snapshot!(render(&report), @r#"
        {
          "path=bridge/load=udp_rr/peer=far": {
            "transactions-per-s": {
              "lower_value": 12740.49,
              "upper_value": 13260.51,
              "value": 13000.5
            }
          }
        }
        "#);
        report.cells.clear();
        assert_eq!(render(&report), "{}\n");
    }

    #[test]
    fn traffic_that_went_another_way_is_no_measure() {
        let mut report = fixture::run();
        report.cells = vec![
            fixture::cell("bridge", Peer::Far, LoadKind::UdpRr)
                .estimate("transactions_per_s", 13_000.5, 0.02)
                .with(|cell| cell.way.proved = false)
                .build(),
        ];
        assert_eq!(render(&report), "{}\n");
    }

    #[test]
    fn every_estimate_is_a_measure() {
        let report = fixture::paths();
        let read = read(&report);
        assert_eq!(read.len(), report.cells.len());
        for cell in &report.cells {
            let measures = &read[&cell.name()];
            assert_eq!(measures.len(), cell.estimates.len());
            for (name, estimate) in &cell.estimates {
                let metric = &measures[&slug(name)];
                assert_eq!(metric.value, estimate.value);
                assert_eq!(metric.lower_value, Some(estimate.low));
                assert_eq!(metric.upper_value, Some(estimate.high));
            }
        }
    }

    #[test]
    fn slugs_are_such_as_bencher_takes() {
        for quantity in QUANTITIES {
            let slug = slug(quantity.name);
            let fits = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
            assert!(slug.chars().all(fits) && slug.len() <= 64, "{slug}");
        }
    }
}
