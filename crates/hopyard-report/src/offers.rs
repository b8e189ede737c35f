//! What each path offers besides its speed, and so what a change to another path would lose.

use super::document::{Block, Cell, Column, Row, Table};
use super::group::with_peer;
use crate::model::{CellReport, Feature, RunReport, distinct};
use crate::plain;

const YES: &str = "yes";
const NO: &str = "–";
const HOST: &str = "the host";

/// A heading and a table, if several paths have figures.
pub(super) fn blocks(report: &RunReport) -> Vec<Block> {
    let cells = report.cells.iter();
    let known = cells.filter(|cell| cell.is_measured() && cell.offers.is_some());
    let rows = distinct(known.map(row));
    if rows.len() < 2 {
        return Vec::new();
    }
    let columns = [
        ["", "path"],
        ["", "VLANs"],
        ["reaches", "the host"],
        ["without", "root"],
        ["", "learns"],
        ["", "who filters and tracks connections"],
    ];
    let table = Table {
        columns: columns
            .iter()
            .map(|header| Column::left(&header[usize::from(header[0].is_empty())..]))
            .collect(),
        keys: 1,
        rows: rows.into_iter().map(Row::Cells).collect(),
    };
    let heading = "What each path offers beside its speed".to_owned();
    vec![Block::Heading(heading), Block::Table(table)]
}

fn row(cell: &CellReport) -> Vec<Cell> {
    let offers = cell.offers.as_deref().unwrap_or_default();
    let has = |feature| if offers.contains(&feature) { YES } else { NO };
    let path = with_peer(&cell.path, cell.peer);
    let others = cell.rules_instead.as_deref().map(plain::line);
    let filters = if offers.contains(&Feature::Filter) {
        HOST.to_owned()
    } else {
        others.unwrap_or_else(|| NO.to_owned())
    };
    vec![
        Cell::lone(path),
        Cell::lone(has(Feature::Vlan)),
        Cell::lone(has(Feature::HostAccess)),
        Cell::lone(has(Feature::Unprivileged)),
        Cell::lone(has(Feature::Learning)),
        Cell::lone(filters),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;
    use crate::model::{LoadKind, Peer};

    fn with(path: &str, peer: Peer, offers: &[Feature], instead: Option<&str>) -> CellReport {
        let mut cell = fixture::cell(path, peer, LoadKind::TcpRr).build();
        cell.offers = Some(offers.to_vec());
        cell.rules_instead = instead.map(str::to_owned);
        cell
    }

    fn said(cells: Vec<CellReport>) -> Vec<String> {
        let mut report = fixture::run();
        report.cells = cells;
        let rows = |block| match block {
            Block::Heading(text) => vec![text],
            Block::Table(table) => table.rows.iter().map(line).collect(),
            other => panic!("{other:?}"),
        };
        blocks(&report).into_iter().flat_map(rows).collect()
    }

    fn line(row: &Row) -> String {
        let Row::Cells(cells) = row else {
            panic!("{row:?}")
        };
        cells.iter().map(Cell::plain).collect::<Vec<_>>().join("|")
    }

    #[test]
    fn a_row_for_each_path_and_peer() {
        let veth = with(
            "veth",
            Peer::Local,
            &[Feature::Unprivileged, Feature::Learning],
            Some("the endpoints"),
        );
        let nf = [Feature::Filter, Feature::HostAccess];
        let nf = with("bridge-nf", Peer::Local, &nf, None);
        let far = with(
            "bridge-nf",
            Peer::Far,
            &[Feature::Filter, Feature::Vlan],
            None,
        );
        let failed = fixture::cell("direct", Peer::Local, LoadKind::TcpRr)
            .failed("it fell")
            .build();
        insta::assert_snapshot!(said(vec![veth.clone(), nf, far, veth.clone(), failed]).join("\n"), @r"
        What each path offers beside its speed
        veth (local)|–|–|yes|yes|the endpoints
        bridge-nf (local)|–|yes|–|–|the host
        bridge-nf (far)|yes|–|–|–|the host
        ");
        assert!(
            said(vec![veth.clone(), veth]).is_empty(),
            "nothing to choose from"
        );
    }
}
