//! What reports printed, filled from a run that was really measured.

use crate::support::beside;
use crate::support::cli::run;
use crate::support::plan::{Room, measured, plan};

/// One connection of the article of 2014, with offloads and without: two of its places are filled, and the others say why not.
#[test]
fn a_run_fills_the_places_that_it_has() {
    let _beside = beside();
    let room = Room::new();
    let own = plan(&[
        ("name", "\"namespace-switching-2014\""),
        ("loads", "[\"tcp_stream\"]"),
        (
            "set",
            "{ flows = 1, offload = [\"on\", \"off\"], message_size = 131072 }",
        ),
        ("blocks", "\"8..8\""),
    ]);
    let (file, out) = (room.file("plan.toml", own), room.name("run"));
    run(&["run", &file, "--out", &out]).exits(0);
    let text = run(&["report", &out, "--published"]);
    let text = text.exits(0).stdout.clone();
    let row = |name: &str| {
        let mut lines = text.lines().filter(|line| line.starts_with(name));
        lines.next().unwrap_or_else(|| panic!("{name}: {text}"))
    };
    let own: Vec<&str> = row("veth                          1 ")
        .split_whitespace()
        .collect();
    // What was printed, and a figure with its half-width and a verdict.
    assert_eq!(own[..3], ["veth", "1", "37.8"], "{text}");
    assert!(own[3].parse::<f64>().unwrap() > 0.0, "{text}");
    assert!(
        own[4].starts_with('±') && ["=", "≠", "?"].contains(&own[5]),
        "{text}"
    );
    assert!(
        row("veth                          2 ").contains("65.0"),
        "{text}"
    );
    for said in [
        "flows=2 is not in this run",
        "ovs-internal is not in this run",
        "Linux 3.8.0.30",
    ] {
        assert!(text.contains(said), "{said}: {text}");
    }
    let page = room.name("page.html");
    run(&[
        "report",
        &out,
        "--published",
        "--format",
        "html",
        "-o",
        &page,
    ])
    .exits(0);
    assert!(std::fs::read_to_string(&page).unwrap().contains("37.8"));
}

#[test]
fn what_has_no_published_tables_is_refused() {
    let _beside = beside();
    let room = Room::new();
    let out = measured(&room, "1", &[]);
    run(&["report", &out, "--published"])
        .exits(2)
        .says(&["belongs to none of the reports", "netback-direct-2006"]);
    let file = room.name("table.csv");
    run(&[
        "report",
        &out,
        "--published",
        "--format",
        "csv",
        "-o",
        &file,
    ])
    .exits(2)
    .says(&["CSV", "markdown"]);
    assert!(!std::path::Path::new(&file).exists());
    run(&["report", &out, "--published", "--functions"]).exits(2);
}
