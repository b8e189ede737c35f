//! Machines that are dead, slow to answer, or answer and cannot be measured; and requests that are none.

use super::*;
use crate::support::waiting;

#[test]
fn a_dead_machine_costs_its_own_pairs_and_one_that_answers_is_not_lost() {
    let _beside = beside();
    unharmed(|| {
        let site = Site::new(3);
        // The fourth machine answers and has no such address: as the server it fails, as the client it is fine.
        let entry = |name: &str, connect: &str, more: &str| {
            format!("[[endpoint]]\nname = \"{name}\"\nconnect = \"{connect}\"\n{more}\n")
        };
        let text = [
            entry("n1", &site.prefix(1), "rack = \"a\""),
            entry("n2", &site.prefix(2), "rack = \"b\""),
            entry("odd", &site.prefix(3), "address = \"192.0.2.77\""),
            entry("dead", "false", ""),
        ];
        let file = site.room.file("mine.toml", text.concat());
        let words = [
            "run",
            &file,
            "-o",
            "out",
            "--pairs",
            "both-ways",
            "--at-once",
            "1",
        ];
        let said = site.run(&[&words[..], &SHORT].concat());
        said.exits(1).prints(&[
            "lost machines\n  dead: no answer after 2 failed pairs in a row: it ended with status 1",
            "dead was lost before: ",
            "192.0.2.77 is no address of the server",
        ]);
        tell(&said.stdout);
        let document = site.document("out");
        let states = |state: &str| -> BTreeSet<String> {
            let all = pairs(&document).into_iter();
            all.filter(|(_, p)| p["state"] == state)
                .map(|(name, _)| name)
                .collect()
        };
        let named = |names: &[&str]| {
            names
                .iter()
                .map(|n| (*n).to_owned())
                .collect::<BTreeSet<_>>()
        };
        assert_eq!(
            states("measured"),
            named(&["n1→n2", "n2→n1", "odd→n1", "odd→n2"])
        );
        let skipped = states("skipped");
        assert_eq!(skipped.len(), 4, "{skipped:?}");
        assert!(
            skipped.iter().all(|name| name.contains("dead")),
            "{skipped:?}"
        );
        let failed = states("failed");
        assert!(
            failed.is_superset(&named(&["n1→odd", "n2→odd"])),
            "{failed:?}"
        );
        for (name, pair) in pairs(&document) {
            let cause = pair["cause"].as_str().unwrap_or_default();
            assert_eq!(
                cause.is_empty(),
                pair["state"] == "measured",
                "{name}: {pair}"
            );
            let blames = cause.contains("dead does not answer");
            assert_eq!(
                blames,
                failed.contains(&name) && name.contains("dead"),
                "{cause}"
            );
            assert!(!cause.contains("odd does not answer"), "{cause}");
        }
        let machines = document["machines"].as_array().unwrap();
        let lost: Vec<&Value> = machines.iter().filter(|m| m["lost"].is_string()).collect();
        assert_eq!(lost.len(), 1);
        assert_eq!(
            (&lost[0]["name"], &lost[0]["failed"]),
            (&"dead".into(), &2.into())
        );
        // Whoever mends it goes on with what is left, by another command to the same machine.
        let mended = std::fs::read_to_string(&file)
            .unwrap()
            .replace("192.0.2.77", "192.0.2.3");
        let spare = Site::new(0);
        let file = spare.room.file("mended.toml", mended);
        let said = site.run(&["run", &file, "-o", "out", "--resume"]);
        said.exits(1).prints(&["6 of 12 pairs measured"]);
        let after = pairs(&site.document("out"));
        assert_eq!(after["n1→n2"], pairs(&document)["n1→n2"]);
        assert_eq!(after["n1→odd"]["attempt"], 2);
    });
}

/// A command that says nothing and does not end; what it started must go with it.
#[test]
fn a_pair_that_hangs_is_ended_with_everything_it_started() {
    let _waiting = waiting();
    unharmed(|| {
        let site = Site::new(2);
        let file = site.file("hangs sh -c 'sleep 1000; true'\n");
        let words = ["run", &file, "-o", "out", "--pair-limit", "12s"];
        let said = site.run(&[&words[..], &SHORT].concat());
        said.exits(1)
            .prints(&["it took longer than 12s and was ended", "1 of 3 pairs"]);
        let pairs = pairs(&site.document("out"));
        let cause = |name: &str| pairs[name]["cause"].as_str().unwrap_or_default();
        assert_eq!(cause("n1→n2"), "");
        let other = pairs.keys().find(|name| name.contains("hangs")).unwrap();
        assert!(
            cause(other).contains("hangs does not answer (nothing within 30s)"),
            "{}",
            cause(other)
        );
        assert!(!cause(other).contains("n1 does") && !cause(other).contains("n2 does"));
    });
}

#[test]
fn what_is_no_fleet_is_refused_and_nothing_is_made() {
    let _beside = beside();
    let site = Site::new(0);
    let toml = "[[endpoint]]\nname = \"a\"\nconnect = \"true\"\n[[endpoint]]\nname = \"b\"\n";
    for (name, text, words) in [
        (
            "lines",
            "a true\na false\n",
            "endpoint 2, `a`: endpoint 1 has the same name",
        ),
        (
            "lines",
            "a true\nb\n",
            "line 2: `b` has a name and no command",
        ),
        ("lines", "\u{0}\u{1}", "has a name and no command"),
        ("f.toml", toml, "missing field `connect`"),
        (
            "f.toml",
            &format!("{toml}connect = \"\""),
            "a command has one word at least",
        ),
        (
            "f.toml",
            &format!("{toml}connect = \"x\"\ncolour = 1"),
            "unknown field `colour`",
        ),
        ("f.toml", "\u{0}\u{1}", "f.toml"),
    ] {
        let file = site.room.file(name, text);
        for what in ["run", "plan"] {
            let out: &[&str] = if what == "run" { &["-o", "out"] } else { &[] };
            let said = site.run(&[&[what, &file], out].concat());
            said.exits(2).says(&[words]);
            assert!(
                said.stdout.is_empty() && !said.stderr.contains('\u{1}'),
                "{said}"
            );
        }
        assert!(!site.room.at("out").exists(), "{text:?}");
    }
    let two = site.room.file("two", "a true\nb false\n");
    std::fs::write(site.room.at("binary"), [0xff, 0xfe]).unwrap();
    for (words, said) in [
        (&["run", &two][..], "--output"),
        (
            &["run", "-o", "out"],
            "<ENDPOINTS|--slurm|--pods <COMMAND>>",
        ),
        (&["run", "absent", "-o", "out"], "cannot read absent"),
        (&["run", "/dev/zero", "-o", "out"], "no regular file"),
        (&["run", "binary", "-o", "out"], "no UTF-8"),
        (
            &["run", &two, "-o", "out", "--pairs", "some"],
            "choose all, both-ways, ring",
        ),
        (
            &["run", &two, "-o", "out", "--at-once", "0"],
            "--at-once is 1 or more",
        ),
        (
            &["run", &two, "-o", "out", "--blocks", "1"],
            "--blocks is 2 or more",
        ),
        (
            &["run", &two, "-o", "out", "--loads", "ftp"],
            "there is no load `ftp`",
        ),
        (
            &["run", &two, "-o", "out", "--resume"],
            "no fleet was begun in that directory",
        ),
        (
            &["run", &two, "-o", "out", "--resume", "--blocks", "2"],
            "cannot be used with",
        ),
        (&["run", &two, "-o", "/proc/out"], "cannot make /proc/out"),
        (&["show", "out"], "cannot read out/plan.json"),
    ] {
        site.run(words).exits(2).says(&[said]);
        assert!(!site.room.at("out").exists(), "{words:?}");
    }
    // Somebody's directory.
    std::fs::create_dir(site.room.at("out")).unwrap();
    std::fs::write(site.room.at("out/mine"), "mine").unwrap();
    site.run(&["run", &two, "-o", "out"])
        .exits(2)
        .says(&["out is not empty"]);
    assert_eq!(std::fs::read_dir(site.room.at("out")).unwrap().count(), 1);
}
