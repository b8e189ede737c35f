use super::*;
use crate::plan::parse;
use hopyard_net::clock::thread_cpu_ns;
use std::time::Duration;

fn plan(more: &str) -> Plan {
    let text = crate::plan::PLANS[0]
        .1
        .replace("\"all\"", "\"native\", \"veth\"");
    parse("my.toml", &format!("{text}\n{more}")).unwrap()
}

fn error(more: &str) -> String {
    expand(&plan(more)).unwrap_err().to_string()
}

/// Needs root, to see which paths are available.
#[test]
fn a_thousand_cells_are_there_at_once() {
    let sizes: Vec<String> = (1..=100).map(|n| (64 * n).to_string()).collect();
    let plan = plan(&format!(
        "[set]\nmessage_size = [{}]\nflows = [1, 4]\n",
        sizes.join(", ")
    ));
    expand(&plan).unwrap();
    // CPU time of this thread, independent of what else the machine does.
    let began_ns = thread_cpu_ns();
    let cells = expand(&plan).unwrap().cells;
    let took = Duration::from_nanos(thread_cpu_ns() - began_ns);
    // Three streams and two loads without a message size, on two paths.
    let streams = plan.parts[0].loads.iter().filter(|l| l.is_stream()).count();
    let others = plan.parts[0].loads.len() - streams;
    assert_eq!(cells.len(), (streams * 200 + others * 2) * 2);
    assert!(cells.len() > 500);
    println!("{} cells in {took:?}", cells.len());
    assert!(took < Duration::from_secs(1), "{took:?}");
}

#[test]
fn an_axis_that_does_nothing_is_refused() {
    assert_eq!(
        error("[set]\nports = 10\n"),
        "axis `ports` does nothing for native, veth: leave it out, or choose among bridge, bridge-nf, direct"
    );
    assert_eq!(
        error("[set]\nrate = \"1gbit\"\n"),
        "axis `rate` does nothing for tcp_stream, tcp_rr, udp_stream, udp_rr with peer local: leave it out, or choose peer far"
    );
    // One part that has it is enough.
    let more =
        "[set]\nports = 10\n[[cells]]\n[[cells]]\npaths = [\"bridge\"]\nloads = [\"tcp_rr\"]\n";
    let cells = expand(&plan(more)).unwrap().cells;
    assert_eq!(cells.iter().filter(|c| c.axes.ports == Some(10)).count(), 1);
}

#[test]
fn too_many_cells_are_refused_before_they_fill_the_memory() {
    let sizes: Vec<String> = (1..=999).map(|n| n.to_string()).collect();
    let sizes = sizes.join(", ");
    let more = format!(
        "[set]\nmessage_size = [{sizes}]\nrequest_size = [{sizes}]\nresponse_size = [{sizes}]\n"
    );
    assert_eq!(
        error(&more),
        "more than 10000 cells: sweep fewer values at once"
    );
}

#[test]
fn a_search_finds_its_pace_by_itself() {
    let paced = |more: &str| format!("[[cells]]\nloads = [\"udp_paced\"]\n{more}");
    let cells = expand(&plan(&paced("set = { search = [\"ndr\", \"pdr\"] }")));
    let cells = cells.unwrap().cells;
    assert_eq!(cells.len(), 4);
    assert!(
        cells
            .iter()
            .all(|c| c.axes.search.is_some() && c.axes.pace_bps.is_none())
    );
    assert!(expand(&plan(&paced("set = { search = \"ndr\", pace = \"none\" }"))).is_ok());
    assert_eq!(
        error(&paced("set = { search = \"ndr\", pace = \"40mbit\" }")),
        "pace 40mbit and a search: a search finds the pace by itself, leave one of them out"
    );
    assert_eq!(
        error("[set]\nsearch = \"ndr\"\n"),
        "axis `search` does nothing for tcp_stream, tcp_rr, udp_stream, udp_rr with peer local: leave it out, or choose load udp_paced"
    );
}
