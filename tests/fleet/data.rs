//! Samples of fleets as a table: read by DuckDB, as a report, as a page, and by the queries of the book.

use super::*;
use crate::exports::{python, read};

const BOOK: &str = include_str!("../../docs/fleet-data.md");

/// What stands in blocks of the book that begin with so many words.
fn blocks(language: &str) -> Vec<&'static str> {
    let parts = BOOK.split("```").skip(1).step_by(2);
    parts
        .filter_map(|part| part.strip_prefix(language)?.strip_prefix('\n'))
        .collect()
}

/// Pairs of three machines, the third of which sends slowly; `name` has racks.
fn fleet(site: &Site, name: &str, pairs: &str, loads: &str, blocks: &str) {
    let machine = |number: usize| {
        let rack = if number == 3 { "b" } else { "a" };
        format!(
            "[[endpoint]]\nname = \"n{number}\"\nconnect = \"{}\"\nrack = \"{rack}\"\n",
            site.prefix(number)
        )
    };
    let text: String = (1..=site.machines.len()).map(machine).collect();
    let file = site.room.file(&format!("{name}.toml"), text);
    let out = format!("fleets/{name}");
    let words = ["run", &file, "-o", &out, "--pairs", pairs, "--at-once", "1"];
    let how = [
        "--loads",
        loads,
        "--window",
        "100ms",
        "--warm-up",
        "20ms",
        "--blocks",
        blocks,
    ];
    site.run(&[&words[..], &how].concat()).exits(0);
}

#[test]
fn samples_are_a_table_that_the_report_and_the_queries_of_the_book_read() {
    let _beside = beside();
    unharmed(|| {
        let site = Site::new(3);
        std::fs::create_dir(site.room.at("fleets")).unwrap();
        // From the third machine to the first, too.
        fleet(&site, "old", "ring", "tcp_stream", "2");
        within(
            &site.machines[2],
            "tc qdisc add dev eth0 root tbf rate 20mbit burst 16k latency 50ms",
        );
        fleet(&site, "new", "both-ways", "tcp_stream,tcp_rr", "4");
        // As if it had been a week before.
        let old = site.room.at("fleets/old/samples");
        let run = std::fs::read_dir(&old)
            .unwrap()
            .next()
            .unwrap()
            .unwrap()
            .path();
        std::fs::rename(run, old.join("run=20260301T101500250")).unwrap();

        let script = "import json, sys, duckdb, os\n\
            os.chdir(os.path.dirname(sys.argv[1]))\n\
            out = [duckdb.execute(s).fetchall() for s in json.load(open(sys.argv[1]))]\n\
            print(json.dumps(out, default=str))";
        let file = site
            .room
            .file("queries.json", serde_json::json!(blocks("sql")).to_string());
        let answers = read(script, &file);
        tell(&answers.to_string());
        let [_, worst, machine, asymmetry, change, outliers] = &answers.as_array().unwrap()[..]
        else {
            panic!("{answers}");
        };
        assert_eq!(
            (&worst[0][0], worst.as_array().unwrap().len()),
            (&"n3".into(), 6)
        );
        assert_eq!(
            (&worst[0][3], &machine[0][0], &machine[0][1]),
            (&4.into(), &"n3".into(), &"client".into())
        );
        assert!(
            asymmetry[0][0] == "n3" && asymmetry[0][4].as_f64() < Some(0.5),
            "{asymmetry}"
        );
        assert!(
            change[0][0] == "n3" && change[0][4].as_f64() < Some(0.5),
            "{change}"
        );
        assert!(outliers.is_array());

        // A module of that name in a fleet is somebody else's.
        site.room.file(
            "fleets/new/duckdb.py",
            "open('harm', 'w')\nraise SystemExit(3)",
        );
        // The report's own estimates, by the same table.
        let python = python().to_str().unwrap();
        let site_run = |words: &[&str]| {
            let mut command = hopyard(&[&["report"], words].concat());
            command.current_dir(site.room.path());
            Running::start(command).wait_for_nothing_left(&BTreeSet::new())
        };
        let with = ["fleets/new", "--duckdb", python];
        let said = site_run(&with);
        said.exits(0)
            .prints(&["6 of 6 pairs measured", "from 48 samples", "tcp_stream: "]);
        tell(&said.stdout);
        let document = site_run(&[&with[..], &["--format", "json"]].concat())
            .exits(0)
            .json();
        assert_eq!(
            (&document["schema"], &document["samples"]),
            (&"hopyard/fleet-report/1".into(), &48.into())
        );
        assert_eq!(document["fleet"]["machines"][0]["name"], "n3");
        let verdicts = document["verdicts"].as_array().unwrap();
        assert_eq!(verdicts.len(), 12);
        let slow = verdicts
            .iter()
            .filter(|v| v["client"] == "n3" && v["load"] == "tcp_stream");
        assert!(
            slow.clone().count() == 2 && slow.clone().all(|v| v["verdict"] == "different"),
            "{verdicts:#?}"
        );
        let page = [
            "--format",
            "html",
            "-o",
            "page.html",
            "--history",
            "fleets/old",
            "fleets/new",
        ];
        site_run(&[&with[..], &page].concat()).exits(0);
        let html = std::fs::read_to_string(site.room.at("page.html")).unwrap();
        for words in [
            "n3 → n1",
            "Over time",
            "Median from rack to rack",
            "worst machine is n3",
            "<svg",
        ] {
            assert!(html.contains(words), "{words}");
        }

        // A program is named from the user's own directory.
        let readers = std::path::Path::new(python).ancestors().nth(2).unwrap();
        std::os::unix::fs::symlink(readers, site.room.at("venv")).unwrap();
        site_run(&["fleets/new", "--duckdb", "venv/bin/python"])
            .exits(0)
            .prints(&["from 48 samples"]);

        // What it cannot do, it says.
        assert!(!site.room.at("fleets/new/harm").exists());
        site_run(&["fleets/new", "--duckdb", "/nonexistent/duckdb"])
            .exits(2)
            .says(&["cannot be started"]);
        site_run(&["fleets/new", "--duckdb", "false"])
            .exits(2)
            .says(&["DuckDB (false)"]);
        site_run(&["fleets/new", "--duckdb", "true"])
            .exits(2)
            .says(&["no samples", "6 pairs were measured"]);
        site_run(&[&with[..], &["--format", "csv"]].concat())
            .exits(2)
            .says(&["choose text, json or html"]);
        site_run(&[&with[..], &["--history", "fleets/old"]].concat())
            .exits(2)
            .says(&["text has none", "--format html"]);
        site_run(&[&with[..], &["--published"]].concat())
            .exits(2)
            .says(&["single runs"]);
        let part = "fleets/new/samples";
        let run = std::fs::read_dir(site.room.at(part))
            .unwrap()
            .next()
            .unwrap()
            .unwrap()
            .path();
        let damaged = run.join("round=0000/part-0.parquet");
        std::fs::write(&damaged, "PAR1").unwrap();
        site_run(&with).exits(2).says(&["DuckDB", "part-0.parquet"]);
        std::fs::remove_dir_all(site.room.at(part)).unwrap();
        site_run(&with).exits(2).says(&["has no samples"]);
    });
}

/// A table that was interrupted in the middle of the fleet has each pair once in the end.
#[test]
fn what_a_killed_fleet_measured_is_in_the_table_after_the_next_session() {
    let _beside = beside();
    unharmed(|| {
        let site = Site::new(4);
        let file = site.file("");
        let begin = [
            &["run", &file, "-o", "out", "--pairs", "both-ways"],
            &SHORT[..],
        ]
        .concat();
        let running = site.start(&begin);
        let journal = site.room.at("out/pairs.jsonl");
        let kept = || {
            std::fs::read_to_string(&journal)
                .unwrap_or_default()
                .matches("{\"pair\"")
                .count()
        };
        until(
            "three pairs are measured",
            crate::support::cli::PATIENCE,
            || kept() >= 3,
        );
        running.signal(nix::sys::signal::Signal::SIGKILL);
        running.wait_for_no_process(&BTreeSet::new());
        site.run(&["run", &file, "-o", "out", "--resume"]).exits(0);
        let script = "import json, sys, duckdb\n\
            rows = duckdb.sql(f\"select client, server, count(*) from read_parquet('{sys.argv[1]}/*/*/*.parquet') group by all\")\n\
            print(json.dumps(rows.fetchall()))";
        let rows = read(script, &site.room.name("out/samples"));
        let rows = rows.as_array().unwrap();
        assert_eq!(rows.len(), 12);
        assert!(rows.iter().all(|row| row[2] == 2), "{rows:?}");
    });
}
