//! What other programs read: each format by a reader that is not ours.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use hopyard::assess::observations;
use hopyard::store;
use serde_json::Value;

use crate::support::beside;
use crate::support::cli::run;
use crate::support::plan::{Room, measured, samples, stored};

/// Readers in the versions they were tried in.
const READERS: [&str; 4] = [
    "duckdb==2.0.0",
    "pyarrow==26.0.1",
    "prometheus-client==0.26.0",
    "PyYAML==6.0.3",
];

/// A Python with the readers, made once and kept among what tests leave in the build directory.
pub(crate) fn python() -> &'static Path {
    static PYTHON: OnceLock<PathBuf> = OnceLock::new();
    PYTHON.get_or_init(|| {
        let home = Path::new(env!("CARGO_TARGET_TMPDIR")).join("readers");
        let python = home.join("bin/python");
        let wanted = READERS.join("\n");
        let made = home.join("made-of");
        if std::fs::read_to_string(&made).is_ok_and(|there| there == wanted) {
            return python;
        }
        done(
            Command::new("python3")
                .args(["-m", "venv", "--clear"])
                .arg(&home),
        );
        let pip = [
            "-m",
            "pip",
            "install",
            "--quiet",
            "--disable-pip-version-check",
        ];
        done(Command::new(&python).args(pip).args(READERS));
        std::fs::write(made, wanted).unwrap();
        python
    })
}

#[track_caller]
fn done(command: &mut Command) -> String {
    let output = command
        .output()
        .unwrap_or_else(|e| panic!("{command:?}: {e}"));
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?}: {said}");
    String::from_utf8(output.stdout).unwrap()
}

/// What a Python script that is given a file prints, as JSON.
#[track_caller]
pub(crate) fn read(script: &str, file: &str) -> Value {
    let text = done(Command::new(python()).args(["-c", script, file]));
    serde_json::from_str(&text).unwrap_or_else(|e| panic!("{e}: {text}"))
}

#[test]
fn duckdb_and_arrow_read_samples_from_parquet() {
    let _beside = beside();
    let room = Room::new();
    let out = measured(&room, "8", &[]);
    let file = room.name("samples.parquet");
    run(&["report", &out, "--format", "parquet", "-o", &file]).exits(0);
    let arrow = read(
        "import json, sys, pyarrow.parquet as pq\n\
         table = pq.read_table(sys.argv[1])\n\
         types = {field.name: str(field.type) for field in table.schema}\n\
         print(json.dumps({'rows': table.num_rows, 'types': types, \
         'run': pq.read_metadata(sys.argv[1]).metadata[b'hopyard.run'].decode()}))",
        &file,
    );
    assert_eq!(arrow["rows"], samples(&room));
    for (column, kind) in [
        ("path", "string"),
        ("block", "int64"),
        ("flows", "int64"),
        ("counted", "bool"),
        ("way_proved", "bool"),
        ("transactions_per_s", "double"),
        ("latency_p50_ns", "double"),
        ("cause", "string"),
    ] {
        assert_eq!(arrow["types"][column], kind, "{column}: {arrow:#}");
    }
    assert!(
        arrow["types"].get("goodput_bps").is_none(),
        "what was not measured is no column"
    );
    // Means by another program are the estimates of the document.
    let means = read(
        "import json, sys, duckdb\n\
         rows = duckdb.sql(f\"select path, avg(transactions_per_s), count(*) from '{sys.argv[1]}' \
         where counted group by path order by path\").fetchall()\n\
         print(json.dumps(rows))",
        &file,
    );
    let document = run(&["report", &out, "--format", "json"]).exits(0).json();
    let means = means.as_array().unwrap();
    // Of each path.
    assert_eq!(means.len(), 2);
    for row in means {
        let mut cells = document["cells"].as_array().unwrap().iter();
        let cell = cells.find(|cell| cell["path"] == row[0]).unwrap();
        let (mean, ours) = (
            row[1].as_f64().unwrap(),
            &cell["estimates"]["transactions_per_s"]["value"],
        );
        assert!(
            (mean / ours.as_f64().unwrap() - 1.0).abs() < 1e-9,
            "{row} {ours}"
        );
        assert_eq!(row[2], 8);
    }
}

#[test]
fn prometheus_reads_openmetrics() {
    let _beside = beside();
    let room = Room::new();
    let out = stored(&room, "run");
    // A plan's name is anybody's.
    let header = room.at("run").join("run.json");
    let text = std::fs::read_to_string(&header).unwrap();
    let mut json: Value = serde_json::from_str(&text).unwrap();
    json["plan"] = "a \"plan\" \\ of\ntwo lines".into();
    std::fs::write(&header, json.to_string()).unwrap();
    let file = room.name("hopyard.prom");
    run(&["report", &out, "--format", "openmetrics", "-o", &file]).exits(0);
    let families = read(
        "import json, sys\n\
         from prometheus_client.openmetrics.parser import text_string_to_metric_families as parse\n\
         families = list(parse(open(sys.argv[1]).read()))\n\
         print(json.dumps({f.name: {'type': f.type, 'unit': f.unit, \
         'samples': [[s.labels, s.value] for s in f.samples]} for f in families}))",
        &file,
    );
    assert_eq!(
        families["hopyard_run_info"]["samples"][0][0]["plan"],
        "a \"plan\" \\ of\ntwo lines"
    );
    // node_exporter refuses a whole file for one type that the older text format has not.
    for (name, family) in families.as_object().unwrap() {
        assert_eq!(family["type"], "gauge", "{name}");
    }
    let rate = &families["hopyard_transactions_per_s"];
    assert_eq!(
        (&rate["type"], &rate["unit"]),
        (&"gauge".into(), &"per_s".into())
    );
    let document = run(&["report", &out, "--format", "json"]).exits(0).json();
    let samples = rate["samples"].as_array().unwrap();
    let has_rate = |cell: &&Value| cell["estimates"]["transactions_per_s"].is_object();
    let cells: Vec<&Value> = document["cells"]
        .as_array()
        .unwrap()
        .iter()
        .filter(has_rate)
        .collect();
    assert!(!cells.is_empty());
    assert_eq!(samples.len(), cells.len());
    for (sample, cell) in samples.iter().zip(cells) {
        assert_eq!(sample[0]["path"], cell["path"]);
        assert_eq!(sample[0]["flows"], "1");
        assert_eq!(sample[1], cell["estimates"]["transactions_per_s"]["value"]);
    }
    // One state of three, of the one cell that is compared, for each quantity.
    let states = families["hopyard_verdict"]["samples"].as_array().unwrap();
    let on = states.iter().filter(|sample| sample[1] == 1.0).count();
    assert!(on > 1 && states.len() == 3 * on, "{states:?}");
}

/// A version of golang.org/x/perf that the Go of every Debian since 11 builds.
const PERF: &str = "v0.0.0-20230113213139-801c7ef9e5c5";

/// benchstat, made once and kept among what tests leave in the build directory.
fn benchstat() -> &'static Path {
    static PROGRAM: OnceLock<PathBuf> = OnceLock::new();
    PROGRAM.get_or_init(|| {
        let home = Path::new(env!("CARGO_TARGET_TMPDIR")).join("go");
        let bin = home.join(PERF);
        let program = bin.join("benchstat");
        if !program.exists() {
            let source = format!("golang.org/x/perf/cmd/benchstat@{PERF}");
            done(
                Command::new("go")
                    .args(["install", &source])
                    .env("GOBIN", bin)
                    .env("GOPATH", home.join("path"))
                    .env("GOCACHE", home.join("cache"))
                    .env("GOFLAGS", "-modcacherw"),
            );
        }
        program
    })
}

/// The figures of benchstat's CSV: (unit, benchmark, the fields after it).
fn figures(csv: &str) -> Vec<(String, String, Vec<String>)> {
    let mut unit = String::new();
    let mut figures = Vec::new();
    for line in csv.lines() {
        let fields: Vec<String> = line.split(',').map(str::to_owned).collect();
        match fields.as_slice() {
            [first, own, ci, ..] if first.is_empty() && ci == "CI" => unit = own.clone(),
            [name, rest @ ..] if name.starts_with("Hopyard/") => {
                figures.push((unit.clone(), name.clone(), rest.to_vec()));
            }
            _ => {}
        }
    }
    figures
}

#[test]
fn benchstat_reads_and_compares_samples_from_benchfmt() {
    let _beside = beside();
    let room = Room::new();
    let files = ["before", "after"].map(|name| {
        let out = stored(&room, name);
        let file = room.name(&format!("{name}.bench"));
        if name == "after" {
            // Another run: benchstat compares them all the same.
            let header = room.at("after/run.json");
            let text = std::fs::read_to_string(&header).unwrap();
            let mut json: Value = serde_json::from_str(&text).unwrap();
            json["seed"] = 8.into();
            json["id"] = "another".into();
            std::fs::write(&header, json.to_string()).unwrap();
        }
        run(&["report", &out, "--format", "benchfmt", "-o", &file]).exits(0);
        file
    });
    let told = |arguments: &[&str]| {
        let mut command = Command::new(benchstat());
        let output = command.args(["-format", "csv"]).args(arguments).output();
        let output = output.unwrap();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        // It names file and line of what it cannot read, and goes on.
        assert!(
            output.status.success() && !said.contains(".bench:"),
            "{said}"
        );
        figures(&String::from_utf8(output.stdout).unwrap())
    };
    let compared = told(&[&files[0], &files[1]]);
    let samples = observations(&store::load(&room.at("before")).unwrap());
    for (path, axis, load, quantity, unit, size) in [
        (
            "veth",
            "",
            "tcp_rr",
            "transactions_per_s",
            "transactions/s",
            1.0,
        ),
        (
            "bridge",
            "",
            "tcp_rr",
            "latency_p50_ns",
            "latency-p50-sec",
            1e9,
        ),
        ("veth", "", "udp_flood", "goodput_bps", "B/s", 8.0),
        ("veth", "flows=4/", "udp_flood", "sent_bps", "sent-B/s", 8.0),
    ] {
        let flows = if axis.is_empty() { 1 } else { 4 };
        let own = samples.iter().filter(|sample| {
            let cell = &sample.cell;
            let own = (cell.path.as_str(), cell.load.to_string(), cell.axes.flows);
            sample.counted && own == (path, load.to_owned(), flows)
        });
        let mut values: Vec<f64> = own
            .filter_map(|s| s.values.get(quantity).copied())
            .collect();
        values.sort_by(f64::total_cmp);
        assert_eq!(values.len(), 8, "{quantity}");
        let median = (values[3] + values[4]) / 2.0 / size;
        let name = format!("Hopyard/path={path}/load={load}/{axis}peer=local");
        let (.., fields) = compared
            .iter()
            .find(|(u, n, _)| (u.as_str(), n) == (unit, &name))
            .unwrap_or_else(|| panic!("{unit} of {name}: {compared:#?}"));
        let theirs: f64 = fields[0].parse().unwrap();
        assert!((theirs / median - 1.0).abs() < 1e-9, "{theirs} {median}");
        assert_eq!(
            (fields[4].as_str(), fields[5].as_str()),
            ("~", "p=1.000 n=8")
        );
    }
    // Paths of one run side by side.
    let paths = told(&["-col", "/path", &files[0]]);
    assert!(
        paths
            .iter()
            .any(|(unit, name, fields)| unit == "transactions/s"
                && name == "Hopyard/load=tcp_rr/peer=local"
                && fields[5].starts_with("p=")),
        "{paths:#?}"
    );
}

#[test]
fn the_workflow_in_the_docs_is_one() {
    let _beside = beside();
    let docs =
        std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/ci.md")).unwrap();
    let yaml = docs
        .split("```yaml\n")
        .nth(1)
        .unwrap()
        .split("```")
        .next()
        .unwrap();
    let room = Room::new();
    let file = room.file("workflow.yml", yaml);
    let workflow = read(
        "import json, sys, yaml; print(json.dumps(yaml.safe_load(open(sys.argv[1])), default=str))",
        &file,
    );
    let steps = workflow["jobs"]["diff"]["steps"].as_array().unwrap();
    let calls: Vec<&str> = steps
        .iter()
        .filter_map(|step| step["run"].as_str())
        .flat_map(str::lines)
        .collect();
    let calls: Vec<&str> = calls
        .iter()
        .filter_map(|line| Some(&line[line.find("hopyard ")?..]))
        .collect();
    assert!(
        calls
            .iter()
            .any(|call| call.contains("diff") && call.contains("--fail-on 3%")),
        "{calls:?}"
    );
    for call in calls {
        let words: Vec<&str> = call
            .split(" >> ")
            .next()
            .and_then(|call| call.split(" || ").next())
            .unwrap()
            .split_whitespace()
            .skip(1)
            .collect();
        if ["run", "doctor"].contains(&words[0]) {
            // Words before it are held against the definition.
            run(&[&words[..], &["--help"]].concat()).exits(0);
        } else {
            // What there is to say against the words comes before what there is against the run.
            run(&words).exits(2).says(&["no run directory"]);
        }
    }
    run(&["run", "--pathz", "veth", "--help"]).exits(2);
}

#[test]
fn the_manual_has_every_command() {
    let _beside = beside();
    let room = Room::new();
    let page = run(&["man"]).exits(0).stdout.clone();
    let file = room.file("hopyard.1", &page);
    let text = done(
        Command::new("man")
            .args(["--local-file", "--warnings", &file])
            .env("MANPAGER", "cat"),
    );
    for command in ["run", "report", "diff", "doctor", "lab", "switch"] {
        assert!(
            text.contains(&format!("hopyard-{command}(1)")),
            "{command}: {text}"
        );
    }
    assert!(
        !text.contains("hopyard-worker"),
        "what is hidden has no place in a manual"
    );
    run(&["man", &room.name("pages")]).exits(0);
    let run_page = std::fs::read_to_string(room.at("pages").join("hopyard-run.1")).unwrap();
    assert!(run_page.contains("half\\-width") && room.at("pages").join("hopyard.1").exists());
}
