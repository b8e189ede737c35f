//! netperf 2's classic layout, column for column, for its users and their scripts.
//!
//! If both ends are on one machine, hopyard's CPU figures cover both and cannot be separated. So they are in the local
//! column, and the remote one says unknown (`U`, -1), which is netperf's own convention. If each end has a machine of
//! its own whose worker reads it (path `as-is`), local is the client's and remote the server's. Unknown values are -1,
//! never 0.

mod costs;

use self::costs::{Costs, costs};
use super::{Export, Writer};
use crate::loads::Layout;
use crate::model::{CellReport, CellStatus, Family, LoadKind, RunReport};
use crate::plain;
use crate::quantity::{GOODPUT, PACKETS, SEND_ERRORS, SENT, TRANSACTIONS};
use crate::units;

pub(super) static EXPORT: Export = Export {
    name: "netperf",
    title: "netperf's layout",
    summary: "The classic layout of netperf 2, with hopyard's figures",
    extension: "netperf",
    ..Export::of_runs(Writer::Text(|report, _| Ok(render(report))))
};

const UNKNOWN: f64 = -1.0;

const PREAMBLE: &str = "\
# hopyard in netperf's layout. CPU figures are hopyard's, not those of netperf's method S:
# method I, wall clock minus idle of the whole machine, without other processes and background.
# Of two ends on one machine they are of both together: the local column holds them and the remote one is
# unknown (U). Where each end has a machine of its own, local is the client's and remote the server's (I).
# From and to are path and peer; -1 is what is not known. Socket sizes are those asked for, -1 where the kernel chose.
";

const STREAM_HEADER: &str = "\
Recv   Send    Send                          Utilization       Service Demand
Socket Socket  Message  Elapsed              Send     Recv     Send    Recv
Size   Size    Size     Time     Throughput  local    remote   local   remote
bytes  bytes   bytes    secs.    10^6bits/s  % I      % {R}      us/KB   us/KB
";

const MAERTS_HEADER: &str = "\
Recv   Send    Send                          Utilization       Service Demand
Socket Socket  Message  Elapsed              Recv     Send     Recv    Send
Size   Size    Size     Time     Throughput  local    remote   local   remote
bytes  bytes   bytes    secs.    10^6bits/s  % I      % {R}      us/KB   us/KB
";

const RR_HEADER: &str = "\
Local /Remote
Socket Size   Request Resp.  Elapsed Trans.   CPU    CPU    S.dem   S.dem
Send   Recv   Size    Size   Time    Rate     local  remote local   remote
bytes  bytes  bytes   bytes  secs.   per sec  % I    % {R}    us/Tr   us/Tr
";

const UDP_HEADER: &str = "\
Socket  Message  Elapsed      Messages                   CPU      Service
Size    Size     Time         Okay Errors   Throughput   Util     Demand
bytes   bytes    secs            #      #   10^6bits/sec % I{R}     us/KB
";

/// All cells, one after the other.
fn render(report: &RunReport) -> String {
    let mut text = PREAMBLE.to_owned();
    for cell in &report.cells {
        text.push('\n');
        for comment in comments(cell) {
            text.push_str(&format!("# {comment}\n"));
        }
        if cell.is_measured() && !cell.is_unproved() {
            text.push_str(&banner(report, cell));
            let remote = if costs(cell).is_apart { "I" } else { "U" };
            text.push_str(&header(cell.load).replace("{R}", remote));
            text.push('\n');
            for line in figures(report, cell) {
                text.push_str(line.trim_end());
                text.push('\n');
            }
        }
    }
    text
}

/// Facts that netperf's own layout has no place for.
fn comments(cell: &CellReport) -> Vec<String> {
    let name = format!("{} {} {}", plain::line(&cell.path), cell.peer, cell.load);
    let why = cell
        .cause
        .as_deref()
        .map_or_else(|| "no cause recorded".to_owned(), plain::line);
    let mut comments = match cell.status {
        CellStatus::Failed if cell.is_measured() => {
            let failed = units::counted(cell.failed_samples as usize, "sample");
            vec![format!("{name}: {failed} failed: {why}")]
        }
        CellStatus::Failed => return vec![format!("{name} failed: {why}")],
        CellStatus::Unsupported => return vec![format!("{name} unsupported: {why}")],
        CellStatus::Ok => Vec::new(),
    };
    if cell.is_unproved() {
        comments.push(format!(
            "{name}: its path proof failed: its traffic took another path, so its figures are left out"
        ));
        return comments;
    }
    if cell.axes.flows > 1 {
        comments.push(format!("sum of {} flows", cell.axes.flows));
    }
    comments
}

fn banner(report: &RunReport, cell: &CellReport) -> String {
    let test = cell.load.info().netperf.test;
    let family = match cell.axes.family {
        Family::V4 => "AF_INET",
        Family::V6 => "AF_INET6",
    };
    let path = plain::line(&cell.path);
    let ends = format!(
        "{test} from {path} () port 0 {family} to {} () port 0 {family}",
        cell.peer
    );
    let main = crate::quantity::main_figure(cell.load, &cell.axes);
    let reached = cell
        .estimates
        .get(main)
        .filter(|estimate| estimate.n > 1)
        .map(|estimate| estimate.half_width_ratio() * 100.0)
        .filter(|percent| percent.is_finite());
    // As it was chosen, without the dust of the last binary digits.
    let level = (report.run.confidence * 1e6).round() / 1e4;
    match reached {
        Some(percent) => format!("{ends} : +/-{percent:.3}% @ {level}% conf.\n"),
        None => format!("{ends}\n"),
    }
}

fn header(load: LoadKind) -> &'static str {
    match load.info().netperf.layout {
        Layout::Stream => STREAM_HEADER,
        Layout::Maerts => MAERTS_HEADER,
        Layout::Datagrams => UDP_HEADER,
        Layout::Transactions { .. } => RR_HEADER,
    }
}

fn figures(report: &RunReport, cell: &CellReport) -> Vec<String> {
    let value = |name: &str| cell.estimates.get(name).map(|estimate| estimate.value);
    let or_unknown = |value: Option<f64>| value.filter(|v| v.is_finite()).unwrap_or(UNKNOWN);
    let size = |bytes: Option<u32>| bytes.map_or(-1, i64::from);
    let Costs { local, remote, .. } = costs(cell);
    let [(use_l, kb_l, tr_l), (use_r, kb_r, tr_r)] = [local, remote].map(|of| {
        let cpus = f64::from(of.cpus.unwrap_or(report.run.environment.cpus));
        (
            or_unknown(of.cores.map(|cores| cores / cpus * 100.0)),
            or_unknown(of.ns_per_byte.map(|ns| ns * 1024.0 / 1000.0)),
            or_unknown(of.ns_per_transaction.map(|ns| ns / 1000.0)),
        )
    });
    let megabits = |name: &str| or_unknown(value(name).map(|bps| bps / 1e6));
    let message = size(cell.axes.message_size_bytes);
    let axes = &cell.axes;
    let receive = size(axes.socket_buffer_bytes);
    let send = size(axes.send_buffer_bytes.or(axes.socket_buffer_bytes));
    let window = cell.window_s.unwrap_or(report.run.window_s);
    match cell.load.info().netperf.layout {
        Layout::Stream | Layout::Maerts => vec![format!(
            "{receive:6} {send:6} {message:6}    {window:<6.2}     {:7.2}   {use_l:<6.2}   \
             {use_r:<6.2}   {kb_l:<6.3}  {kb_r:<6.3}",
            megabits(GOODPUT),
        )],
        Layout::Datagrams => {
            let received = value(PACKETS).map(|rate| rate * window);
            let errors = value(SEND_ERRORS).map(|rate| rate * window);
            let sent = value(SENT)
                .zip(cell.axes.message_size_bytes)
                .map(|(bps, bytes)| bps * window / 8.0 / f64::from(bytes));
            vec![
                format!(
                    "{send:6}  {message:6}   {window:<7.2}   {:7.0} {:6.0}    {:7.1}     \
                     {use_l:<6.2}   {kb_l:<6.3}",
                    or_unknown(sent),
                    or_unknown(errors),
                    megabits(SENT),
                ),
                format!(
                    "{receive:6}           {window:<7.2}   {:7.0}           {:7.1}     \
                     {use_r:<6.2}   {kb_r:<6.3}",
                    or_unknown(received),
                    megabits(GOODPUT),
                ),
            ]
        }
        Layout::Transactions { gap } => vec![
            format!(
                "{send:<6} {receive:<6} {:<6}  {:<6} {window:<6.2}  {:<6.2}{gap}{use_l:<6.2} \
                 {use_r:<6.2} {tr_l:<6.3}  {tr_r:<6.3}",
                size(cell.axes.request_size_bytes),
                size(cell.axes.response_size_bytes),
                or_unknown(value(TRANSACTIONS)),
            ),
            format!("{send:<6} {receive:<6}"),
        ],
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;
    use crate::model::Peer;

    #[test]
    fn every_load_has_a_banner_a_header_and_its_figures() {
        for load in LoadKind::ALL {
            let mut report = fixture::run();
            report.cells = vec![fixture::cell("veth", Peer::Local, load).build()];
            let text = render(&report);
            assert!(
                text.contains(&format!("\n{} from veth", load.info().netperf.test)),
                "{text}"
            );
            assert!(text.contains(&header(load).replace("{R}", "U")), "{text}");
            assert!(text.lines().last().unwrap().contains("-1"), "{text}");
        }
    }

    /// Traffic that took another path has no figures, only a sentence.
    #[test]
    fn a_cell_without_its_path_proof_has_no_figures() {
        let mut report = fixture::run();
        let proved = fixture::cell("veth", Peer::Local, LoadKind::TcpRr).build();
        let mut astray = fixture::cell("bridge", Peer::Local, LoadKind::TcpRr).build();
        astray.way.proved = false;
        report.cells = vec![proved, astray];
        let text = render(&report);
        assert!(text.contains(" from veth"), "{text}");
        assert!(!text.contains(" from bridge"), "{text}");
        let last = text.lines().last().unwrap();
        assert!(
            last.starts_with("# bridge local tcp_rr: its path proof failed"),
            "{text}"
        );
    }

    /// A block that was shorter than asked for has the counts of its own time.
    #[test]
    fn counts_are_those_of_the_time_that_was_measured() {
        let mut report = fixture::paths();
        let udp = |cell: &CellReport| cell.path == "bridge" && cell.load == LoadKind::UdpStream;
        report.cells.retain(udp);
        let messages = |report: &RunReport| {
            let text = render(report);
            let line = text.lines().rfind(|line| !line.is_empty()).unwrap();
            let fields: Vec<f64> = line.split_whitespace().flat_map(str::parse).collect();
            (fields[1], fields[2])
        };
        let (asked, all) = messages(&report);
        report.cells[0].window_s = Some(asked / 6.0);
        let (measured, some) = messages(&report);
        assert_eq!((asked, measured), (0.3, 0.05));
        assert!((some * 6.0 - all).abs() <= 6.0, "{some} {all}");
    }

    #[test]
    fn send_errors_that_are_known_are_printed() {
        let mut report = fixture::paths();
        let line = |report: &RunReport| {
            let text = render(report);
            let line = text.lines().find(|line| line.contains("115083"));
            let fields = line.unwrap().split_whitespace();
            fields.map(str::to_owned).collect::<Vec<_>>()[4].clone()
        };
        let udp = report
            .cells
            .iter_mut()
            .find(|cell| cell.path == "bridge" && cell.load == LoadKind::UdpStream);
        let udp = udp.unwrap();
        for (per_s, printed) in [(0.0, "0"), (140.0, "42")] {
            let errors = fixture::estimate(per_s, 0.1);
            udp.estimates.insert(SEND_ERRORS.to_owned(), errors);
            let mut one = fixture::run();
            one.cells = vec![udp.clone()];
            assert_eq!(line(&one), printed);
        }
    }

    #[test]
    fn the_classic_layout() {
        let mut report = fixture::paths();
        report.cells.retain(|cell| cell.path == "bridge");
        let mut maerts = report.cells[0].clone();
        maerts.load = LoadKind::TcpMaerts;
        maerts.axes.family = Family::V6;
        maerts.axes.flows = 4;
        maerts.axes.socket_buffer_bytes = Some(65536);
        maerts.axes.send_buffer_bytes = Some(8192);
        report.cells.insert(1, maerts);
        report.cells.push(
            fixture::cell("netkit", Peer::Far, LoadKind::TcpRr)
                .unsupported("the kernel has no netkit support")
                .build(),
        );
        report
            .cells
            .push(fixture::cell("veth", Peer::Host, LoadKind::UdpStream).build());
        report
            .cells
            .push(fixture::cell("veth", Peer::Host, LoadKind::UdpRr).build());
        insta::assert_snapshot!(render(&report), @r"
        # hopyard in netperf's layout. CPU figures are hopyard's, not those of netperf's method S:
        # method I, wall clock minus idle of the whole machine, without other processes and background.
        # Of two ends on one machine they are of both together: the local column holds them and the remote one is
        # unknown (U). Where each end has a machine of its own, local is the client's and remote the server's (I).
        # From and to are path and peer; -1 is what is not known. Socket sizes are those asked for, -1 where the kernel chose.

        TCP STREAM TEST from bridge () port 0 AF_INET to local () port 0 AF_INET : +/-1.200% @ 95% conf.
        Recv   Send    Send                          Utilization       Service Demand
        Socket Socket  Message  Elapsed              Send     Recv     Send    Recv
        Size   Size    Size     Time     Throughput  local    remote   local   remote
        bytes  bytes   bytes    secs.    10^6bits/s  % I      % U      us/KB   us/KB

            -1     -1  16384    0.30       19544.16   82.05    -1.00    0.692   -1.000

        # sum of 4 flows
        TCP MAERTS TEST from bridge () port 0 AF_INET6 to local () port 0 AF_INET6 : +/-1.200% @ 95% conf.
        Recv   Send    Send                          Utilization       Service Demand
        Socket Socket  Message  Elapsed              Recv     Send     Recv    Send
        Size   Size    Size     Time     Throughput  local    remote   local   remote
        bytes  bytes   bytes    secs.    10^6bits/s  % I      % U      us/KB   us/KB

         65536   8192  16384    0.30       19544.16   82.05    -1.00    0.692   -1.000

        TCP REQUEST/RESPONSE TEST from bridge () port 0 AF_INET to local () port 0 AF_INET : +/-0.400% @ 95% conf.
        Local /Remote
        Socket Size   Request Resp.  Elapsed Trans.   CPU    CPU    S.dem   S.dem
        Send   Recv   Size    Size   Time    Rate     local  remote local   remote
        bytes  bytes  bytes   bytes  secs.   per sec  % I    % U    us/Tr   us/Tr

        -1     -1     1       1      0.30    11965.44  41.30  -1.00  69.442  -1.000
        -1     -1

        TCP Connect/Request/Response TEST from bridge () port 0 AF_INET to local () port 0 AF_INET : +/-1.000% @ 95% conf.
        Local /Remote
        Socket Size   Request Resp.  Elapsed Trans.   CPU    CPU    S.dem   S.dem
        Send   Recv   Size    Size   Time    Rate     local  remote local   remote
        bytes  bytes  bytes   bytes  secs.   per sec  % I    % U    us/Tr   us/Tr

        -1     -1     1       1      0.30    8948.54   84.05  -1.00  189.115  -1.000
        -1     -1

        UDP UNIDIRECTIONAL SEND TEST from bridge () port 0 AF_INET to local () port 0 AF_INET : +/-1.600% @ 95% conf.
        Socket  Message  Elapsed      Messages                   CPU      Service
        Size    Size     Time         Okay Errors   Throughput   Util     Demand
        bytes   bytes    secs            #      #   10^6bits/sec % IU     us/KB

            -1    1400   0.30       115083     -1     4296.4     98.80    4.341
            -1           0.30       100575            3754.7     -1.00    -1.000

        UDP REQUEST/RESPONSE TEST from bridge () port 0 AF_INET to local () port 0 AF_INET : +/-0.600% @ 95% conf.
        Local /Remote
        Socket Size   Request Resp.  Elapsed Trans.   CPU    CPU    S.dem   S.dem
        Send   Recv   Size    Size   Time    Rate     local  remote local   remote
        bytes  bytes  bytes   bytes  secs.   per sec  % I    % U    us/Tr   us/Tr

        -1     -1     1       1      0.30    11965.44   41.30  -1.00  69.442  -1.000
        -1     -1

        # netkit far tcp_rr unsupported: the kernel has no netkit support

        UDP UNIDIRECTIONAL SEND TEST from veth () port 0 AF_INET to host () port 0 AF_INET
        Socket  Message  Elapsed      Messages                   CPU      Service
        Size    Size     Time         Okay Errors   Throughput   Util     Demand
        bytes   bytes    secs            #      #   10^6bits/sec % IU     us/KB

            -1    1400   0.30           -1     -1       -1.0     -1.00    -1.000
            -1           0.30           -1              -1.0     -1.00    -1.000

        UDP REQUEST/RESPONSE TEST from veth () port 0 AF_INET to host () port 0 AF_INET
        Local /Remote
        Socket Size   Request Resp.  Elapsed Trans.   CPU    CPU    S.dem   S.dem
        Send   Recv   Size    Size   Time    Rate     local  remote local   remote
        bytes  bytes  bytes   bytes  secs.   per sec  % I    % U    us/Tr   us/Tr

        -1     -1     1       1      0.30    -1.00    -1.00  -1.00  -1.000  -1.000
        -1     -1
        ");
    }
}
