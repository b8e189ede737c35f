//! What a run shows on a terminal while it goes on.

use std::io::{Read, Write};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use crate::support::cli::PROGRAM;
use crate::support::plan::Room;
use crate::support::{beside, until};

/// Starts a program on a terminal of some rows and columns; what it writes there comes on stdout.
fn on_terminal(line: &str, (rows, columns): (u16, u16)) -> Child {
    // `script` (util-linux) gives the program a terminal.
    let line = format!("stty rows {rows} cols {columns}; exec {line}");
    Command::new("script")
        .args(["-qec", &line, "/dev/null"])
        .env("TERM", "xterm")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("script (util-linux) runs")
}

/// What a terminal's program wrote, and its exit status.
fn written(mut child: Child) -> (String, Option<i32>) {
    let mut text = Vec::new();
    child.stdout.take().unwrap().read_to_end(&mut text).unwrap();
    let status = child.wait().unwrap().code();
    (String::from_utf8_lossy(&text).into_owned(), status)
}

/// What is drawn on a terminal of so many columns, line by line: lines that fill it have no newline, and what moves the cursor
/// begins another.
fn drawn(text: &str, columns: u16) -> Vec<String> {
    let mut pieces = vec![String::new()];
    let mut characters = text.chars();
    while let Some(c) = characters.next() {
        match (c, pieces.last_mut()) {
            ('\u{1b}', _) => {
                // A sequence ends with a letter.
                characters.by_ref().find(char::is_ascii_alphabetic);
                pieces.push(String::new());
            }
            ('\r' | '\n', _) | (_, None) => pieces.push(String::new()),
            (c, Some(piece)) => piece.push(c),
        }
    }
    let cut = |piece: &String| {
        let all: Vec<char> = piece.chars().collect();
        let lines = all.chunks(columns.into());
        lines
            .map(|line| line.iter().collect())
            .collect::<Vec<String>>()
    };
    pieces.iter().flat_map(cut).collect()
}

#[test]
fn progress_is_for_terminals() {
    let _beside = beside();
    let room = Room::new();
    let out = room.name("run");
    let line = format!(
        "{PROGRAM} run --paths veth,bridge --loads tcp_rr,udp_rr --blocks 3 --window 50ms --out {out}"
    );
    let (text, status) = written(on_terminal(&line, (24, 100)));
    assert_eq!(status, Some(0), "{text}");
    assert!(text.contains("block 2 of 3, cell 3 of 4: "), "{text}");
    assert!(text.contains("elapsed") && text.contains("to go"), "{text}");
    let lines = drawn(&text, 100);
    for cell in ["bridge/local/tcp_rr", "bridge/local/udp_rr"] {
        let row = lines.iter().find(|line| line.starts_with(cell));
        let row = row.unwrap_or_else(|| panic!("{cell} has no row: {text}"));
        assert!(row.contains('×') && row.contains('±'), "{row}");
    }
    assert!(text.contains("after 2 blocks"), "{text}");
}

#[test]
fn what_is_drawn_fits_a_small_terminal_and_ends_with_the_run() {
    let _beside = beside();
    let room = Room::new();
    let out = room.name("run");
    let line = format!(
        "{PROGRAM} run --paths veth,bridge,macvlan,veth-route,vxlan --loads tcp_rr --decide 1% --window 50ms --out {out}"
    );
    let mut child = on_terminal(&line, (8, 60));
    until("samples", Duration::from_secs(60), || {
        let samples = std::fs::read_to_string(room.at("run/samples.jsonl"));
        samples.is_ok_and(|text| text.lines().count() >= 15)
    });
    // Ctrl-C at the terminal.
    child.stdin.as_mut().unwrap().write_all(b"\x03").unwrap();
    let (text, status) = written(child);
    assert_eq!(status, Some(130), "{text}");
    let end = text
        .find("Quick look: ")
        .expect("a report of what there is");
    let (before, report) = text.split_at(end);
    let lines = drawn(before, 60);
    // Each is a line of its own: none was too long for the terminal.
    for start in ["after 2 blocks: ", "and "] {
        let found = lines.iter().any(|line| line.starts_with(start));
        assert!(found, "{start}: {lines:#?}");
    }
    let is_row = |line: &String| line.contains("/local/tcp_rr ") && line.contains('±');
    assert!(lines.iter().any(is_row), "{lines:#?}");
    // Eight rows: the table and the line below it.
    let highest = before.split("\u{1b}[").filter_map(|rest| {
        let (rows, _) = rest.split_once('A')?;
        rows.parse::<u32>().ok()
    });
    assert!(highest.max().is_some_and(|rows| rows < 8), "{before:?}");
    assert!(report.contains("it was interrupted after"), "{report}");
}
