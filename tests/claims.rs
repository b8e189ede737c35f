//! `hopyard claims`: lists, shows, judges what is there, measures what claims need, and goes on.

use std::path::Path;
use std::time::Duration;

use nix::sys::signal::Signal;

use crate::support::cli::{PROGRAM, Running, hopyard, nobody, run};
use crate::support::host::unharmed;
use crate::support::plan::Room;
use crate::support::{apart, beside, until};

/// Deeds and a small run; some seconds in a debug build on a busy machine.
const PATIENCE: Duration = Duration::from_secs(400);

#[test]
fn claims_are_listed_and_shown() {
    let _beside = beside();
    let said = run(&["claims", "list"]);
    said.exits(0).prints(&[
        "NM1",
        "MQ17",
        "NS13",
        "ND13",
        "PL15",
        "HOST~",
        "29 open questions",
    ]);
    run(&["list", "claims"]).exits(0).prints(&["NM1"]);
    let json = run(&["claims", "list", "--json"]).json();
    let all = json.as_array().unwrap();
    assert_eq!(all.len(), 69);
    let ids = all
        .iter()
        .filter(|c| c["here"].as_array().unwrap().is_empty());
    let ids: Vec<&str> = ids.map(|claim| claim["id"].as_str().unwrap()).collect();
    assert_eq!(ids, ["NS9"]);
    run(&["claims", "show", "nd2"]).exits(0).prints(&[
        "Most of the bridge's overhead",
        "86%",
        "plan netback-direct-2006",
        "at least 0.5",
        "stand-in",
    ]);
    run(&["claims", "show", "namespace-switching-2014"])
        .exits(0)
        .prints(&["NS1 ", "NS13", "NS-Q6"]);
    // A question alone, and one beside a claim.
    let question = run(&["claims", "show", "nd-q4"]);
    question
        .exits(0)
        .prints(&["Is the bridge cost netfilter?", "method", "here  "]);
    let said = &question.stdout;
    assert!(!said.contains("Most of the bridge"), "{said}");
    run(&["claims", "show", "ND-Q4", "PL3"])
        .exits(0)
        .prints(&["PL3 ", "ND-Q4 "]);
    run(&["schema", "--claims"])
        .exits(0)
        .prints(&["hopyard/claims/1"]);
}

#[test]
fn wrong_words_leave_nothing_behind() {
    let _beside = beside();
    let room = Room::new();
    let out = room.name("out");
    unharmed(|| {
        for (arguments, words) in [
            (
                &["NM99", "--out", &out][..],
                &["there is no claim or report `NM99`", "NM1 to NM11"][..],
            ),
            (&["--from", "/nonexistent"][..], &["/nonexistent"][..]),
            (
                &["--from", room.path().to_str().unwrap()][..],
                &["holds neither claims nor a run"][..],
            ),
            (
                &["--resume", &out][..],
                &["holds neither claims nor a run"][..],
            ),
            (
                &["--resume", &out, "--quick"][..],
                &["cannot be used with"][..],
            ),
            (
                &["show", "moon"][..],
                &["there is no claim or report `moon`"][..],
            ),
            (
                &["NS3", "--kernel", "/etc/passwd", "--out", &out][..],
                &["/etc/passwd is not a kernel that can be booted"][..],
            ),
            (&["ND9", "--format", "pdf"][..], &["pdf", "markdown"][..]),
            (
                &["ND9", "--uplink", "eth1", "--far", "ssh host2"][..],
                &[
                    "hopyard run netns-macvlan-2007 --uplink",
                    "claims --from DIR",
                ][..],
            ),
            (
                &["ND9", "--brief", "--points"][..],
                &["cannot be used with"][..],
            ),
        ] {
            let said = run(&[&["claims"], arguments].concat());
            said.exits(2).says(words);
            assert!(said.stdout.is_empty(), "{said}");
        }
    });
    room.file("claims.json", "garbage");
    let damaged = run(&["claims", "--from", room.path().to_str().unwrap()]);
    damaged.exits(2).says(&["claims.json is damaged"]);
    let asked =
        r#"{ "schema": "hopyard/claims-store/1", "names": [], "quick": true, "in_guest": true }"#;
    room.file("claims.json", asked);
    let in_guest = run(&["claims", "--resume", room.path().to_str().unwrap()]);
    in_guest.exits(2).says(&["in guests of another kernel"]);
    assert!(!room.at("out").exists());
    nobody(&room, &["claims", "list"]).exits(0);
}

/// A deed, and what it left in its directory, judged again and not done twice.
#[test]
fn deeds_are_done_once_and_kept() {
    let _beside = beside();
    let room = Room::new();
    let out = room.name("out");
    unharmed(|| {
        let arguments = ["claims", "ND9", "ND12", "MQ9", "NM4", "--out", &out];
        let said = Running::start(hopyard(&arguments)).wait_for(PATIENCE);
        said.exits(0)
            .prints(&["ND9 holds", "ND12 holds", "each of 10 broadcasts"]);
        said.says(&["trying: one copy of a broadcast", "judges them again"]);
    });
    let again = run(&["claims", "--from", &out, "--format", "json"]);
    let json = again.exits(0).json();
    assert_eq!(json["schema"], "hopyard/claims/1");
    let reports = json["reports"].as_array().unwrap().iter();
    let claims: Vec<_> = reports
        .flat_map(|report| report["claims"].as_array().unwrap())
        .collect();
    let ids: Vec<&str> = claims.iter().map(|c| c["id"].as_str().unwrap()).collect();
    assert_eq!(
        ids,
        ["NM4", "MQ9", "MQ13", "MQ16", "ND9", "ND12"],
        "MQ13 and MQ16 rest on the same bench"
    );
    // Each packet is copied, on a busy machine too.
    let copies = &claims[0]["checks"][0];
    assert_eq!(copies["what"], "copies by IP forwarding per packet");
    assert_eq!(copies["points"].as_array().unwrap().len(), 1, "{copies}");
    let measured = std::fs::read(room.at("out/claims.json")).unwrap();
    let measured: serde_json::Value = serde_json::from_slice(&measured).unwrap();
    let each = &measured["benched"]["copies-per-forwarded-packet"]["Ok"]["values"];
    for copies in each.as_array().unwrap() {
        assert!((0.99..=1.001).contains(&copies.as_f64().unwrap()), "{each}");
    }
    let resumed = run(&["claims", "--resume", &out]);
    resumed.exits(0).prints(&["ND9 holds"]);
    assert!(!resumed.stderr.contains("trying"), "{resumed}");
    run(&["claims", "ND9", "--out", &out])
        .exits(2)
        .says(&["holds claims already"]);
}

/// Frames while queues change, a guest by its definition alone, each single mistake, and a tunnel program.
#[test]
fn deeds_do_what_the_reports_describe() {
    // The script of a guest looks at all switches of the host, those of other versions too.
    apart(|| {
        deeds_by_the_program();
    });
}

fn deeds_by_the_program() {
    let room = Room::new();
    let out = room.name("out");
    unharmed(|| {
        // The plans of MQ17 have cells as well, which say nothing here.
        let arguments = [
            "claims",
            "ND6",
            "ND7",
            "ND8",
            "ND10",
            "ND11",
            "MQ10",
            "MQ17",
            "--time-limit",
            "5s",
            "--out",
            &out,
        ];
        let said = Running::start(hopyard(&arguments)).wait_for(PATIENCE);
        said.exits(0);
    });
    let json = run(&["claims", "--from", &out, "--format", "json"]).json();
    let reports = json["reports"].as_array().unwrap().iter();
    let claims: Vec<_> = reports
        .flat_map(|report| report["claims"].as_array().unwrap())
        .collect();
    let seen = |id: &str| {
        let claim = claims.iter().find(|claim| claim["id"] == id).unwrap();
        let check = &claim["checks"][0];
        (
            check["verdict"].clone(),
            check["seen"].as_str().unwrap().to_owned(),
        )
    };
    for (id, verdict, words) in [
        (
            "ND6",
            "fails",
            "of 8 mistakes tried 1 went unnoticed: an uplink that is not the guest's, as with a bridge",
        ),
        ("ND6", "fails", "works after 3 steps"),
        ("ND6", "fails", "promiscuity of up0"),
        (
            "ND7",
            "holds",
            "the kernel announced 0 changes of a device, an address or a route",
        ),
        ("ND8", "holds", "the switch added 0 devices, 3 guests 3"),
        ("ND10", "holds", "guests on 12 of 12 devices"),
        ("ND11", "holds", "by its definition alone"),
        ("ND11", "holds", "nothing is left when the guest is gone"),
        (
            "MQ17",
            "holds",
            "200 of 200 packets of 16 flows came through a tunnel program",
        ),
    ] {
        let (own, said) = seen(id);
        assert_eq!(own, verdict, "{id}: {said}");
        assert!(said.contains(words), "{id}: {said}");
    }
    // A frame whose queue had just gone is lost, now and then: that is no loss of what a queue held.
    let (verdict, said) = seen("MQ10");
    assert!(said.contains("in 2000 changes of 8 queues while"), "{said}");
    let is_lost_between = said.contains("were lost that were in no queue, because the one");
    assert_eq!(verdict == "holds", !is_lost_between, "{said}");
}

/// Fewer threads than queues serve each of them.
#[test]
fn queues_by_fewer_threads_answer_a_question() {
    let _beside = beside();
    let room = Room::new();
    let out = room.name("out");
    unharmed(|| {
        // Its plan has cells as well, which say nothing here.
        let arguments = ["claims", "--questions", "MQ-Q4", "--time-limit", "5s"];
        let arguments = [&arguments[..], &["--out", &out]].concat();
        let said = Running::start(hopyard(&arguments)).wait_for(PATIENCE);
        said.exits(0);
    });
    let json = run(&["claims", "--questions", "--from", &out, "--format", "json"]).json();
    let reports = json["reports"].as_array().unwrap().iter();
    let mut questions = reports.flat_map(|report| report["questions"].as_array().unwrap());
    let question = questions.find(|one| one["id"] == "MQ-Q4").unwrap();
    let seen = question["figures"][0]["seen"].as_str().unwrap();
    for threads in 1..4 {
        let words = format!("with {threads} thread(s) 192 arrived, by 4 queues");
        assert!(seen.contains(&words), "{seen}");
    }
}

/// A question is answered by a bench of its own, and again from its directory; from that of claims too.
#[test]
fn questions_are_answered_by_measurement() {
    let _beside = beside();
    let room = Room::new();
    let out = room.name("out");
    unharmed(|| {
        let arguments = [
            "claims",
            "--questions",
            "MQ-Q5",
            "MQ-Q2",
            "--time-limit",
            "40s",
            "--out",
            &out,
        ];
        let said = Running::start(hopyard(&arguments)).wait_for(PATIENCE);
        said.exits(0)
            .prints(&["2 open questions: ", " answered, 1 open", "MQ-Q5"]);
        said.says(&["claims --questions --from"]);
    });
    let again = run(&["claims", "--questions", "--from", &out, "--format", "json"]);
    let json = again.exits(0).json();
    let reports = json["reports"].as_array().unwrap().iter();
    let all: Vec<_> = reports
        .flat_map(|report| report["questions"].as_array().unwrap())
        .collect();
    assert_eq!(all.len(), 29);
    let answered: Vec<_> = all
        .iter()
        // Some blocks need not decide what its figures mean.
        .filter(|one| one["answered"] != "open")
        .collect();
    assert_eq!(answered.len(), 1);
    assert_eq!(answered[0]["id"], "MQ-Q5");
    // MQ17 is judged by the same bench; and what was asked for goes on as questions.
    run(&["claims", "--from", &out]).exits(0).prints(&["MQ17"]);
    run(&["claims", "--resume", &out])
        .exits(0)
        .prints(&["2 open questions"]);
    run(&["claims", "--questions", "NM1", "--from", &out])
        .exits(2)
        .says(&["there is no open question or report `NM1`"]);
}

/// Two claims of two plans, killed in the second plan; gone on with, and interrupted there; and gone on with to the end.
/// Each plan has time for several blocks, so that the second is under way for long after its first sample.
#[test]
fn claims_cut_short_go_on_where_they_were() {
    apart(|| {
        const PLANS: [&str; 2] = ["netns-macvlan-2007", "netns-macvlan-2007-causes"];
        let room = Room::new();
        let out = room.name("out");
        let samples = |plan: &str| {
            let file = room.at("out").join(plan).join("samples.jsonl");
            std::fs::read_to_string(file).unwrap_or_default()
        };
        let until_more_than = |lines: usize| {
            until("the second plan has samples", PATIENCE, || {
                samples(PLANS[1]).lines().count() > lines
            });
        };
        let how = [
            "claims",
            "NM5",
            "NM8",
            "--quick",
            "--time-limit",
            "14s",
            "--out",
            &out,
        ];
        unharmed(|| {
            let running = Running::start(hopyard(&how));
            until_more_than(0);
            let namespaces = running.namespaces();
            running.signal(Signal::SIGKILL);
            running.wait_for_no_process(&namespaces);
            let first = samples(PLANS[0]);

            let running = Running::start(hopyard(&["claims", "--resume", &out]));
            until_more_than(samples(PLANS[1]).lines().count());
            running.signal(Signal::SIGINT);
            let said = running.wait_for(PATIENCE);
            said.exits(130)
                .says(&["interrupted", &format!("claims --resume {out}` continues")]);

            let arguments = ["claims", "--resume", &out, "--format", "json"];
            let json = Running::start(hopyard(&arguments)).wait_for(PATIENCE);
            let json = json.exits(0).json();
            assert_eq!(samples(PLANS[0]), first, "what was done is not done again");
            let plans: Vec<&str> = json["runs"]
                .as_array()
                .unwrap()
                .iter()
                .map(|run| run["plan"].as_str().unwrap())
                .collect();
            assert_eq!(plans, PLANS);
            let claims = json["reports"][0]["claims"].as_array().unwrap();
            let ids: Vec<&str> = claims.iter().map(|c| c["id"].as_str().unwrap()).collect();
            assert_eq!(ids, ["NM5", "NM8"]);
            run(&["clean"]).exits(0);
        });
        // Whole by now: nothing is left to be measured, and a single run is judged by itself.
        let of_plan = format!("{out}/{}", PLANS[0]);
        let report = run(&["report", &of_plan, "--format", "json"]).json();
        assert_eq!(report["cells"].as_array().unwrap().len(), 2);
        let by_itself = run(&["claims", "--from", &of_plan, "NM8", "--format", "json"]);
        let json = by_itself.exits(0).json();
        let check = &json["reports"][0]["claims"][0]["checks"][0];
        assert_eq!(check["what"], "goodput, macvlan / native");
        let page = run(&["claims", "--from", &out, "--brief", "--format", "markdown"]);
        page.exits(0)
            .prints(&["| claim | what is claimed", "| NM5 ", "| NM8 ", "Linux "]);
    });
}

/// Tables of pages are made anew between their marks, and nothing else of a page changes.
#[test]
fn pages_get_their_tables_from_what_was_measured() {
    let _beside = beside();
    let room = Room::new();
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    std::fs::create_dir_all(room.at("docs/reports")).unwrap();
    let page = "# A page\n\n<!-- measured: netback-direct-2006 -->\nold\n<!-- end of what was measured -->\n\nProse.\n";
    room.file(
        "docs/claims-table.md",
        page.replace("netback", "netns-macvlan-2007 netback"),
    );
    room.file("docs/reports/one.md", page);
    room.file(
        "claims.json",
        r#"{ "schema": "hopyard/claims-store/1", "names": [], "quick": true, "done": { "twelve-uplinks": { "Ok": { "passed": true, "seen": "12 of 12" } } } }"#,
    );
    let script = |directory: &str| {
        let mut command = std::process::Command::new("sh");
        command
            .arg(root.join("scripts/reports"))
            .arg(directory)
            .env("HOPYARD", PROGRAM)
            .current_dir(room.path());
        Running::start(command).wait()
    };
    let read = || std::fs::read_to_string(room.at("docs/reports/one.md")).unwrap();
    script("nowhere").exits(2).says(&["nowhere"]);
    assert_eq!(read(), page);
    script(".").exits(0);
    let made = read();
    assert!(
        made.starts_with("# A page\n\n<!-- measured: netback-direct-2006 -->\n\n13 claims: 1 hold"),
        "{made}"
    );
    assert!(
        made.ends_with("\n<!-- end of what was measured -->\n\nProse.\n"),
        "{made}"
    );
    assert!(made.contains("| ND10 ") && made.contains("12 of 12") && !made.contains("\nold\n"));
    script(".").exits(0);
    assert_eq!(read(), made, "again, it is the same");
}

/// docs/reports/systems.md: each of the 40 systems has a program, and tests that there are. What its command says is checked beside the
/// command line.
#[test]
fn every_system_of_the_reports_has_a_command_and_a_test() {
    let _beside = beside();
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let page = std::fs::read_to_string(root.join("docs/reports/systems.md")).unwrap();
    let rows: Vec<Vec<&str>> = page
        .lines()
        .filter(|line| line.starts_with("| ") && !line.starts_with("| |"))
        .map(|line| line.split('|').map(str::trim).collect())
        .collect();
    let ids: Vec<&str> = rows.iter().map(|row| row[1]).collect();
    let reports = ["NM", "MQ", "NS", "ND", "PL"];
    let all = |of: &str| (1..=8).map(|n| format!("{of}{n}")).collect::<Vec<_>>();
    assert_eq!(ids, reports.map(all).concat());
    let sources = sources(&root);
    let quoted = |text: &str| text.split('`').nth(1).map(str::to_owned);
    for row in &rows {
        let command = quoted(row[3]).unwrap_or_else(|| panic!("{row:?}"));
        match command.split_once(' ') {
            Some(("hopyard", rest)) => {
                let word = rest.split(' ').next().unwrap();
                run(&[word, "--help"]).exits(0);
            }
            _ => assert!(root.join(&command).exists(), "{row:?}"),
        }
        assert!(are_there(row[4], &sources) > 0, "{row:?}");
        assert!(!row[5].is_empty(), "{row:?}");
    }
    let rules = std::fs::read_to_string(root.join("docs/reports/rules.md")).unwrap();
    let rows = rules.lines().filter(|line| line.starts_with("| "));
    let named = rows.filter_map(|row| Some(are_there(row.split('|').nth_back(1)?, &sources)));
    assert!(named.sum::<usize>() > 50);
}

/// How many tests a cell of a table names, each of which there is.
fn are_there(cell: &str, sources: &str) -> usize {
    let named = cell.split('`').skip(1).step_by(2);
    let each = named.map(|test| assert!(sources.contains(&format!("fn {test}(")), "{test}"));
    each.count()
}

/// All sources with tests, as one text.
fn sources(root: &Path) -> String {
    let mut text = String::new();
    let mut directories = vec![root.join("tests"), root.join("crates")];
    while let Some(directory) = directories.pop() {
        for entry in std::fs::read_dir(directory).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                directories.push(path);
            } else if path.extension().is_some_and(|ext| ext == "rs") {
                text.push_str(&std::fs::read_to_string(path).unwrap());
            }
        }
    }
    text
}
