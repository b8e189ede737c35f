//! CSV for spreadsheets and data frames: a row per cell and quantity, quoted as in RFC 4180, lines ending in LF. A cell
//! without figures has one row, so that it is not lost.

use super::{Export, Writer};
use crate::fields::{axes, axis_columns, line, number};
use crate::model::{CellReport, CellStatus, RunReport};
use crate::stats::{Estimate, Verdict};

pub(super) static EXPORT: Export = Export {
    name: "csv",
    title: "CSV",
    summary: "A row per cell and quantity",
    extension: "csv",
    ..Export::of_runs(Writer::Text(|report, _| Ok(render(report))))
};

const BEFORE: [&str; 4] = ["run", "path", "peer", "load"];
const AFTER: [&str; 15] = [
    "status",
    "cause",
    "way_proved",
    "quantity",
    "value",
    "low",
    "high",
    "confidence",
    "n",
    "base",
    "ratio",
    "ratio_low",
    "ratio_high",
    "verdict",
    "smallest_detectable",
];

/// The header line and all rows.
fn render(report: &RunReport) -> String {
    let header = BEFORE.into_iter().chain(axis_columns()).chain(AFTER);
    let mut text = line(header.map(str::to_owned));
    for cell in &report.cells {
        let mut names: Vec<&String> = cell.estimates.keys().chain(cell.verdicts.keys()).collect();
        names.sort();
        names.dedup();
        let mut start = vec![
            report.run.id.clone(),
            cell.path.clone(),
            cell.peer.to_string(),
            cell.load.to_string(),
        ];
        let axes = axes(&cell.axes);
        start.extend(axes.iter().map(|axis| axis.text().unwrap_or_default()));
        start.push(status(cell.status).to_owned());
        start.push(cell.cause.clone().unwrap_or_default());
        let proved = cell.is_measured().then(|| cell.way.proved.to_string());
        start.push(proved.unwrap_or_default());
        if names.is_empty() {
            let blanks = AFTER.len() - 3;
            let row = start.iter().cloned();
            text.push_str(&line(row.chain(std::iter::repeat_n(String::new(), blanks))));
        }
        for name in names {
            let row = start.iter().cloned().chain(quantity(cell, name));
            text.push_str(&line(row));
        }
    }
    text
}

fn quantity(cell: &CellReport, name: &str) -> Vec<String> {
    let mut fields = vec![name.to_owned()];
    let estimate = cell.estimates.get(name);
    fields.extend(interval(estimate));
    fields.push(estimate.map_or_else(String::new, |e| number(e.confidence)));
    fields.push(estimate.map_or_else(String::new, |e| e.n.to_string()));
    let verdict = cell.verdicts.get(name);
    fields.push(verdict.map_or_else(String::new, |v| v.base.clone()));
    fields.extend(interval(verdict.map(|v| &v.ratio)));
    fields.push(verdict.and_then(|v| v.verdict).map_or("", word).to_owned());
    let detectable = verdict.and_then(|v| v.smallest_detectable);
    fields.push(detectable.map_or_else(String::new, number));
    fields
}

fn interval(estimate: Option<&Estimate>) -> [String; 3] {
    estimate.map_or_else(Default::default, |e| [e.value, e.low, e.high].map(number))
}

fn status(status: CellStatus) -> &'static str {
    match status {
        CellStatus::Ok => "ok",
        CellStatus::Failed => "failed",
        CellStatus::Unsupported => "unsupported",
    }
}

fn word(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Different => "different",
        Verdict::Equivalent => "equivalent",
        Verdict::Inconclusive => "inconclusive",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;
    use crate::model::{LoadKind, Peer};

    #[test]
    fn every_line_has_every_column() {
        let text = render(&fixture::paths());
        let columns = text.lines().next().unwrap().split(',').count();
        assert!(text.lines().count() > 100);
        for line in text.lines() {
            assert_eq!(line.split(',').count(), columns, "{line}");
        }
    }

    #[test]
    fn rows() {
        let mut report = fixture::run();
        report.cells = vec![
            fixture::cell("bridge", Peer::Far, LoadKind::UdpRr)
                .estimate("transactions_per_s", 13_000.5, 0.02)
                .estimate("new_thing", 1.0, 0.0)
                .verdict("transactions_per_s", 1.1, 0.02, Some(Verdict::Different))
                .build(),
            fixture::cell("netkit", Peer::Local, LoadKind::TcpRr)
                .failed("the kernel said \"no\",\ntwice")
                .build(),
        ];
        insta::assert_snapshot!(render(&report), @r#"
        run,path,peer,load,flows,containers,message_size_bytes,request_size_bytes,response_size_bytes,outstanding,api,zerocopy,socket_buffer_bytes,send_buffer_bytes,congestion,mptcp,placement,client_cpus,scheduler,family,mtu_bytes,rate_bps,wire_pause_ns,pace_bps,pace_pause_ns,connections_per_s,distribution,trace,search,start,host_link,ports,rules,ruleset,services,conntrack,chain,segments,routed,guest_cpus,guest_memory_bytes,attach,vhost,queues,queue_threads,steering,queue_length,join,hook,offload,tso,gso,gro,lro,tx_checksum,device_offload,gso_max_bytes,napi,rps,rfs,xps,setting,status,cause,way_proved,quantity,value,low,high,confidence,n,base,ratio,ratio_low,ratio_high,verdict,smallest_detectable
        20260301T101500Z-paths,bridge,far,udp_rr,1,,,1,1,,,,,,,,split,,,4,1500,none,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,ok,,true,new_thing,1,1,1,0.95,10,,,,,,
        20260301T101500Z-paths,bridge,far,udp_rr,1,,,1,1,,,,,,,,split,,,4,1500,none,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,ok,,true,transactions_per_s,13000.5,12740.49,13260.51,0.95,10,veth,1.1,1.078,1.122,different,0.027999999999999997
        20260301T101500Z-paths,netkit,local,tcp_rr,1,,,1,1,,,,,,cubic,,split,,,4,1500,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,failed,"the kernel said ""no"", twice",,,,,,,,,,,,,
        "#);
    }
}
