//! Wrong words on the command line: what is wrong, what would be right, exit status 2, no harm done.

use std::process::Command;

use crate::support::cli::{PROGRAM, Running, Said, hopyard, nobody, run};
use crate::support::host::unharmed;
use crate::support::kernels::kernel;
use crate::support::plan::{Room, plan};
use crate::support::{apart, beside, skip_part};

/// Runs `hopyard run` in a room, with a directory that must not come to be.
fn refused(arguments: &[&str]) -> Said {
    let room = Room::new();
    let out = room.name("run");
    let mut command = hopyard(&["run", "--out", &out]);
    command.args(arguments).current_dir(room.path());
    let said = Running::start(command).wait();
    said.exits(2);
    assert!(said.stdout.is_empty(), "{said}");
    assert!(!room.at("run").exists(), "{said}");
    assert!(!room.at("hopyard-runs").exists(), "{said}");
    said
}

#[test]
fn unknown_words_list_the_known_ones() {
    let _beside = beside();
    unharmed(|| {
        refused(&["--paths", "wormhole"])
            .says(&["there is no path `wormhole`", "choose native, unix"]);
        refused(&["--loads", "tcp_rrr"]).says(&["tcp_rrr", "tcp_stream", "udp_rr"]);
        refused(&["--peer", "moon"]).says(&["moon", "local", "far", "host"]);
        refused(&["--set", "colour=red"]).says(&["there is no axis `colour`", "flows", "mtu"]);
        refused(&["--base", "wormhole"]).says(&["there is no path `wormhole`", "choose native"]);
        refused(&["nothing"]).says(&["there is no plan `nothing`", "choose paths", ".toml"]);
        refused(&["nothing.toml"]).says(&["cannot read the plan nothing.toml", "No such file"]);
        refused(&["--set", "congestion=nosuch"]).says(&[
            "no congestion control `nosuch`",
            "cubic",
            "tcp_nosuch",
        ]);
    });
}

#[test]
fn a_peer_that_an_attachment_does_not_have_is_refused() {
    let _beside = beside();
    let kernel = kernel();
    unharmed(|| {
        let vm = ["--paths", "vm", "--guest-kernel", kernel.to_str().unwrap()];
        let macvtap = ["--peer", "host", "--set", "attach=macvtap"];
        refused(&[vm, macvtap].concat()).says(&[
            "path `vm` has no peer `host` with `attach=macvtap`",
            "choose peer local, far, or another `attach`",
        ]);
        refused(&[
            "--paths",
            "veth",
            "--guest-kernel",
            kernel.to_str().unwrap(),
        ])
        .says(&[
            "--guest-kernel is for path `vm`, which is not measured",
            "--kernel runs everything in a guest",
        ]);
        refused(&["--set", "attach=moon"]).says(&["`moon`", "bridge, direct, macvtap"]);
        refused(&["--paths", "bridge", "--set", "attach=direct"])
            .says(&["axis `attach` does nothing for bridge", "choose among vm"]);
    });
}

#[test]
fn wrong_values_say_what_is_right() {
    let _beside = beside();
    unharmed(|| {
        for (arguments, words) in [
            (
                ["--set", "mtu=17"],
                ["`17` is out of bounds", "1280 to 65535"],
            ),
            (["--set", "flows=0"], ["`0` is out of bounds", "1 to 1000"]),
            (
                ["--set", "flows=1001"],
                ["`1001` is out of bounds", "1 to 1000"],
            ),
            (["--set", "message_size=16KB!"], ["16KB!", "KiB"]),
            (["--set", "rate=fast"], ["fast", "gbit"]),
            (["--set", "offload=maybe"], ["maybe", "on, off"]),
            (["--set", "family=5"], ["`5`", "4, 6"]),
            (["--set", "placement=here"], ["`here`", "same, split, free"]),
            (["--set", "flows"], ["flows", "AXIS=VALUE"]),
            (["--set", "flows="], ["flows", "``"]),
            (["--window", "200"], ["`200` is not a time", "300ms"]),
            (["--window", "1ms"], ["out of bounds", "from 50ms to 10m"]),
            (["--window", "11m"], ["out of bounds", "from 50ms to 10m"]),
            (["--window", "0s"], ["out of bounds", "from 50ms to 10m"]),
            (["--blocks", "0"], ["0", "block"]),
            (["--blocks", "-1"], ["-1", "negative"]),
            (["--window", "-1s"], ["-1", "negative"]),
            (["--fail-on", "-3%"], ["-3", "negative"]),
            (["--blocks", "9..3"], ["9..3", "block"]),
            (["--blocks", "many"], ["many", "block"]),
            (["--half-width", "a bit"], ["a bit", "%"]),
            (
                ["--half-width", "0%"],
                ["`0%` is not a half-width", "above 0%"],
            ),
            (["--confidence", "200%"], ["200%", "confidence"]),
            (["--confidence", "0"], ["0", "confidence"]),
            (["--time-limit", "soon"], ["`soon` is not a time", "2m"]),
            (["--time-limit", "0s"], ["out of bounds", "from 500ms"]),
            (["--seed", "x"], ["x", "--seed"]),
            (["--colour", "red"], ["--colour", "unexpected argument"]),
        ] {
            refused(&arguments).says(&words);
        }
    });
}

#[test]
fn combinations_that_mean_nothing_are_refused() {
    let _beside = beside();
    unharmed(|| {
        refused(&["--loads", "tcp_rr", "--set", "message_size=64"]).says(&[
            "axis `message_size` does nothing for tcp_rr",
            "leave it out",
        ]);
        refused(&["--loads", "udp_rr", "--set", "congestion=reno"])
            .says(&["axis `congestion` does nothing for udp_rr"]);
        refused(&["--set", "rate=1gbit"]).says(&["axis `rate` does nothing", "peer local"]);
        refused(&["--paths", "veth", "--peer", "far"])
            .says(&["path `veth` has no peer `far`", "choose local, host"]);
        refused(&[
            "--paths",
            "veth",
            "--loads",
            "udp_stream",
            "--set",
            "message_size=64KiB",
        ])
        .says(&["65536 is too large for udp_stream", "65507"]);
        refused(&["--paths", "veth", "--loads", "tcp_rr", "--set", "lro=on"])
            .says(&["has lro off [fixed]", "leave `lro` out"]);
        let many = (1..=256)
            .map(|n| n.to_string())
            .collect::<Vec<_>>()
            .join(",");
        let sizes = (1..=60)
            .map(|n| n.to_string())
            .collect::<Vec<_>>()
            .join(",");
        refused(&[
            "--set",
            &format!("flows={many}"),
            "--set",
            &format!("message_size={sizes}"),
        ])
        .says(&["more than 10000 cells", "fewer values"]);
    });
}

/// What was named is measured or refused, not passed over.
#[test]
fn nothing_is_named_for_nothing() {
    let _beside = beside();
    unharmed(|| {
        let load = ["--loads", "tcp_rr"];
        let of = |more: &[&str]| refused(&[more, &load].concat());
        of(&["--paths", "veth", "--set", "flows=1", "--set", "flows=4"])
            .says(&["--set flows is there twice", "all its values at once"]);
        of(&["--paths", "veth", "--set", "search=ndr", "--search", "pdr"])
            .says(&["--search and --set search are one thing"]);
        of(&["--paths", "veth", "--peer", "local,far"]).says(&["no path of these has peer `far`"]);
        if let Err(why) = hopyard::lab::path("sockmap").unwrap().available() {
            skip_part("sockmap", false, &hopyard::chain(&why));
        } else {
            of(&["--paths", "bridge,sockmap", "--peer", "far,host"])
                .says(&["path `sockmap` has none of the peers", "(local)"]);
        }
        of(&["--paths", "veth,bridge", "--decide", "3%", "--blocks", "8"])
            .says(&["--decide goes on", "--blocks 8..100"]);
        run(&[
            "lab", "up", "bridge", "--set", "mtu=1500", "--set", "mtu=9000",
        ])
        .exits(2)
        .says(&["--set mtu is there twice"]);
    });
}

#[test]
fn a_base_that_is_asked_for_is_had_or_refused() {
    let _beside = beside();
    unharmed(|| {
        let load = ["--loads", "tcp_rr", "--window", "50ms", "--blocks", "3..3"];
        let no = |arguments: &[&str]| refused(&[&load[..], arguments].concat());
        no(&["--paths", "veth,native", "--base", "bridge"]).says(&[
            "cannot compare with `bridge`",
            "the run has no such cell: add bridge to --paths",
        ]);
        no(&["--paths", "veth,bridge-nf", "--set", "rules=0,20", "--base", "bridge-nf"]).says(&[
            "cannot compare with `bridge-nf`",
            "veth/local/tcp_rr (it has several values of rules, which they do not have; set one value)",
        ]);
        no(&[
            "--paths",
            "veth,bridge",
            "--set",
            "rules=20",
            "--base",
            "rules=0",
        ])
        .says(&[
            "cannot compare with `rules=0`",
            "add 0 to the values of --set rules",
        ]);
        let room = Room::new();
        let out = room.name("run");
        let paths = ["run", "--paths", "native,veth,bridge,bridge-nf"];
        let base = [
            "--set",
            "rules=20",
            "--base",
            "bridge-nf",
            "--json",
            "--out",
            &out,
        ];
        let report = run(&[&paths[..], &load, &base].concat()).exits(0).json();
        for cell in report["cells"].as_array().unwrap() {
            let verdicts = cell["verdicts"].as_object().unwrap();
            assert_eq!(verdicts.is_empty(), cell["path"] == "bridge-nf", "{cell:#}");
            for verdict in verdicts.values() {
                assert_eq!(verdict["base"], "bridge-nf", "{cell:#}");
            }
        }
        run(&["report", &out])
            .exits(0)
            .prints(&["compared with bridge-nf"]);
    });
}

#[test]
fn a_plan_file_is_wrong_in_a_line_at_a_key() {
    let _beside = beside();
    unharmed(|| {
        let room = Room::new();
        let wrong = |text: &str, words: &[&str]| {
            let file = room.file("mine.toml", text);
            refused(&[&file]).says(words).says(&["mine.toml"]);
        };
        let line = |text: &str, key: &str| {
            let place = text.lines().position(|l| l.starts_with(key)).unwrap();
            format!("mine.toml:{}: {key}: ", place + 1)
        };
        wrong(
            &plan(&[("colour", "\"red\"")]),
            &["line 13", "unknown field `colour`", "`window`"],
        );
        for (key, value, words) in [
            ("window", "\"1 parsec\"", "is not a time"),
            (
                "paths",
                "[\"veth\", \"wormhole\"]",
                "there is no path `wormhole`",
            ),
            ("paths", "[]", "an empty list"),
            ("peers", "[\"moon\"]", "there is no peer `moon`"),
            ("loads", "[\"ftp\"]", "there is no load `ftp`"),
            ("base", "\"wormhole\"", "there is no path `wormhole`"),
            ("blocks", "\"7..3\"", "7..3"),
            ("confidence", "\"101%\"", "101%"),
            ("margin", "\"much\"", "much"),
            ("margin", "\"0%\"", "`0%` is not a margin"),
            ("half_width", "\"0%\"", "`0%` is not a half-width"),
            ("time_limit", "\"0s\"", "out of bounds"),
            ("warm_up", "\"now\"", "is not a time"),
            ("time_limit", "\"never\"", "is not a time"),
        ] {
            let text = plan(&[(key, value)]);
            wrong(&text, &[&line(&text, key), words]);
        }
        let text = plan(&[]) + "[set]\nflows = [1, 9999]\n";
        wrong(&text, &["mine.toml:14: flows: ", "`9999` is out of bounds"]);
        wrong(
            &(plan(&[]) + "[set]\ncolour = 1\n"),
            &["mine.toml:14: colour: ", "there is no axis"],
        );
        wrong(
            &(plan(&[]) + "[set]\nmtu = { a = 1 }\n"),
            &["mine.toml:14: mtu: ", "takes "],
        );
        // Not on the line of the same key at the top.
        wrong(
            &(plan(&[]) + "[[cells]]\npaths = []\n"),
            &["mine.toml:14: paths: an empty list"],
        );
        wrong(&plan(&[("window", "200")]), &["line 7", "window", "200"]);
        wrong("this is not a plan", &["line 1"]);
        wrong("{\"name\": \"json\"}", &["line 1"]);
        wrong("", &["missing field `name`"]);
        wrong("name = \"half\"\n", &["missing field"]);
        let bytes = room.file("bytes.toml", [0xff, 0xfe, 0x00]);
        refused(&[&bytes]).says(&["cannot read the plan", "bytes.toml", "UTF-8"]);
        std::fs::create_dir(room.at("directory.toml")).unwrap();
        refused(&[&room.name("directory.toml")]).says(&["cannot read the plan", "directory"]);
    });
}

#[test]
fn a_path_that_this_kernel_lacks_is_an_error_by_name_and_left_out_of_all() {
    let _beside = beside();
    unharmed(|| {
        let paths = hopyard::lab::PATHS;
        let lacking: Vec<&str> = paths
            .iter()
            .filter(|path| path.available().is_err())
            .map(|path| path.name)
            .collect();
        if lacking.is_empty() {
            skip_part("path that this kernel lacks", false, "it has every path");
        }
        for path in &lacking {
            refused(&["--paths", path]).says(&[
                &format!("path `{path}` cannot be built here"),
                "this host has no",
                "or choose",
            ]);
            run(&["lab", "up", path])
                .exits(2)
                .says(&["cannot be built here", "this host has no"]);
        }
        let room = Room::new();
        let out = room.name("run");
        let said = run(&[
            "run",
            "--paths",
            "all",
            "--loads",
            "tcp_rr",
            "--blocks",
            "1",
            "--window",
            "80ms",
            "--warm-up",
            "20ms",
            "--turns",
            "off",
            "--json",
            "--out",
            &out,
        ]);
        let report = said.exits(0).json();
        let cells = report["cells"].as_array().unwrap();
        let measured = |path: &str| {
            cells
                .iter()
                .any(|c| c["path"] == path && c["status"] == "ok")
        };
        let warnings = report["warnings"].to_string();
        let of_all = || paths.iter().filter(|path| !path.by_name_only);
        for path in of_all() {
            let lacks = lacking.contains(&path.name);
            let local = path.peers.contains(&hopyard::model::Peer::Local);
            assert_eq!(measured(path.name), local && !lacks, "{}", path.name);
            assert!(
                !lacks || warnings.contains(path.name),
                "{}: {warnings}",
                path.name
            );
        }
        assert_eq!(
            warnings.contains("left_out"),
            of_all().any(|path| lacking.contains(&path.name)),
            "{warnings}"
        );
    });
}

/// As systemd mounts it: closed to all but root.
#[test]
fn a_closed_bpf_file_system_is_said_and_nothing_else_of_clean_fails() {
    apart(|| {
        let script = "mount -t bpf -o mode=700 bpf /sys/fs/bpf && \
                  exec setpriv --reuid 65534 --regid 65534 --clear-groups \"$0\" clean";
        let room = Room::new();
        let program = room.name("hopyard");
        std::fs::copy(PROGRAM, &program).unwrap();
        let mut command = Command::new("unshare");
        command.args(["--mount", "sh", "-c", script, &program]);
        let said = Running::start(command).wait();
        said.exits(0)
            .prints(&["nothing to clean"])
            .says(&["only root can see the switches of interrupted labs"]);
    });
}

#[test]
fn without_root_the_answer_is_to_be_root_for_what_stays() {
    apart(|| {
        unharmed(|| {
            let room = Room::new();
            let nobody = |arguments: &[&str]| nobody(&room, arguments);
            for arguments in [
                &["lab", "up", "veth"][..],
                &["run", "--paths", "veth", "--a", "true", "--b", "true"],
            ] {
                let said = nobody(arguments);
                said.exits(2).says(&["permission denied", "run as root"]);
                assert!(said.stdout.is_empty(), "{said}");
            }
            assert!(!room.at("hopyard-runs").exists());
            // What needs no privilege works without.
            for arguments in [
                &["list", "loads"][..],
                &["list", "axes"],
                &["list", "plans"],
                &["list", "paths"],
                &["schema"],
                &["lab", "list"],
                &["clean"],
                &["--help"],
                &["--version"],
            ] {
                nobody(arguments).exits(0);
            }
            let doctor = nobody(&["doctor"]);
            assert!(matches!(doctor.status.code(), Some(0..=2)), "{doctor}");
            assert!(!doctor.stderr.contains("panicked"), "{doctor}");
            assert!(
                (doctor.stdout.clone() + &doctor.stderr).contains("root"),
                "{doctor}"
            );
        });
    });
}

#[test]
fn help_and_lists_are_answers() {
    let _beside = beside();
    for arguments in [
        &["--help"][..],
        &["run", "--help"],
        &["lab", "--help"],
        &["lab", "up", "--help"],
        &["report", "--help"],
        &["list", "axes"],
        &["list", "paths", "--json"],
        &["completions", "bash"],
    ] {
        let said = run(arguments);
        said.exits(0);
        assert!(!said.stdout.is_empty() && said.stderr.is_empty(), "{said}");
    }
    run(&[]).exits(2).says(&["Usage"]);
    run(&["jump"]).exits(2).says(&["jump"]);
    run(&["list", "colours"])
        .exits(2)
        .says(&["colours", "paths"]);
}
