//! Pods as endpoints. The cluster is a stand-in; `kubectl` is real where there is one that speaks WebSocket (1.31 and later).

use std::io::{BufRead, BufReader};
use std::process::{Child, Stdio};

use super::*;
use crate::exports::read;
use crate::support::skip;

const API: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/kubernetes/api.py");
const LIST: [&str; 2] = [
    "--pods",
    "kubectl -n lab get pods -l job-name=night -o json",
];

/// The API server; it ends with the value.
struct Api(Child);

impl Drop for Api {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Pods of a site: the machines, and after them one that is cut in each connection.
fn pods(site: &Site) -> Value {
    let pod = |index: usize, prefix: Vec<String>| {
        serde_json::json!({
            "name": format!("night-{index}-x{index}z"), "index": index, "node": format!("node{index}"),
            "address": format!("192.0.2.{index}"), "prefix": prefix,
        })
    };
    let words = |number| site.prefix(number).split(' ').map(str::to_owned).collect();
    let machines = site.machines.len();
    let all = (1..=machines).map(|number| pod(number, words(number)));
    all.chain([pod(machines + 1, Vec::new())]).collect()
}

fn kubectl_minor() -> Option<u32> {
    let output = Command::new("kubectl")
        .args(["version", "--client", "-o", "json"])
        .output()
        .ok()?;
    let said: Value = serde_json::from_slice(&output.stdout).ok()?;
    said["clientVersion"]["minor"]
        .as_str()?
        .trim_end_matches('+')
        .parse()
        .ok()
}

fn is_measured_without_the_one_that_is_cut(said: &Said, site: &Site) {
    said.exits(1).prints(&[
        "1 of 3 pairs measured",
        "night-1",
        "night-2",
        "lost machines",
        "night-3: no answer",
    ]);
    let document = site.document("out");
    let measured = pairs(&document)
        .into_iter()
        .filter(|(_, pair)| pair["state"] == "measured");
    let names: Vec<String> = measured.map(|(name, _)| name).collect();
    assert_eq!(names, ["night-1→night-2"], "{document:#}");
    assert_eq!(document["plan"]["endpoints"][1]["rack"], "node2");
}

#[test]
fn pods_are_reached_by_the_real_kubectl() {
    let _beside = beside();
    match kubectl_minor() {
        Some(31..) => {}
        found => {
            skip(
                "kubectl 1.31",
                false,
                &format!("kubectl's minor version is {found:?}"),
            );
            return;
        }
    }
    unharmed(|| {
        let site = Site::new(2);
        let file = site.room.file("pods.json", pods(&site).to_string());
        let mut server = Command::new("python3")
            .args([API, &file])
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut port = String::new();
        BufReader::new(server.stdout.take().unwrap())
            .read_line(&mut port)
            .unwrap();
        let _api = Api(server);
        let config = serde_json::json!({
            "apiVersion": "v1", "kind": "Config", "current-context": "test",
            "clusters": [{"name": "test", "cluster": {"server": format!("http://127.0.0.1:{}", port.trim())}}],
            "contexts": [{"name": "test", "context": {"cluster": "test", "user": "test"}}],
            "users": [{"name": "test", "user": {}}],
        });
        let config = site.room.file("kubeconfig", config.to_string());
        let words = [&["run", "-o", "out"], &LIST[..], &SHORT[..]].concat();
        let mut command = site.command(&words);
        command
            .env("KUBECONFIG", config)
            .env("HOME", site.room.path());
        let said = Running::start(command).wait_for_nothing_left(&BTreeSet::new());
        tell(&said.stdout);
        is_measured_without_the_one_that_is_cut(&said, &site);
    });
}

/// Its status is 0 however it ended, as `kubectl exec` may have it, and one pod's streams are cut.
#[test]
fn pods_are_reached_by_a_kubectl_that_says_nothing_of_cuts() {
    let _beside = beside();
    unharmed(|| {
        let site = Site::new(2);
        std::fs::create_dir(site.room.at("bin")).unwrap();
        let item = |pod: &Value| {
            serde_json::json!({
                "metadata": {"name": pod["name"], "namespace": "lab", "labels": {"job-name": "night"},
                    "annotations": {"batch.kubernetes.io/job-completion-index": pod["index"].to_string()}},
                "spec": {"nodeName": pod["node"]}, "status": {"phase": "Running", "podIP": pod["address"]},
            })
        };
        let items: Vec<Value> = pods(&site).as_array().unwrap().iter().map(item).collect();
        let list = site
            .room
            .file("list.json", serde_json::json!({"items": items}).to_string());
        let script = format!(
            "#!/bin/sh\n[ \"$1 $2\" = '-n lab' ] || exit 9\nshift 2\ncase $1 in\nget) exec cat {list};;\nexec)\n\
             [ \"$2 $3 $4 $6\" = '-i -n lab --' ] || exit 8\npod=$5\nshift 6\ncase $pod in\n\
             night-1-*) {} \"$@\";;\nnight-2-*) {} \"$@\";;\n*) sleep 0.5;;\nesac\nexit 0;;\nesac\n",
            site.prefix(1),
            site.prefix(2)
        );
        site.room.program("bin/kubectl", script);
        let words = [&["run", "-o", "out"], &LIST[..], &SHORT[..]].concat();
        let said = site.run(&words);
        is_measured_without_the_one_that_is_cut(&said, &site);
        // What lists no pods.
        for (list, why) in [
            ("kubectl -n lab pods", "it has no word `get`"),
            ("kubectl -n other get pods", "it failed"),
            ("echo get", "no list of pods as JSON"),
        ] {
            site.run(&["run", "-o", "none", "--pods", list])
                .exits(2)
                .says(&[why]);
        }
        assert!(!site.room.at("none").exists());
    });
}

/// Read by another program; its fields are those of `batch/v1`.
#[test]
fn a_manifest_is_a_job_of_pods_that_wait() {
    let _beside = beside();
    let site = Site::new(0);
    let words = [
        "manifest",
        "night",
        "--image",
        "debian:13",
        "--pods",
        "8",
        "--deadline",
        "90m",
    ];
    let said = site.run(&words);
    let file = site.room.file("job.yaml", &said.exits(0).stdout);
    let job = read(
        "import json, sys, yaml; print(json.dumps(yaml.safe_load(open(sys.argv[1]))))",
        &file,
    );
    assert_eq!(
        (&job["apiVersion"], &job["kind"]),
        (&"batch/v1".into(), &"Job".into())
    );
    let spec = &job["spec"];
    assert_eq!(
        (&spec["completionMode"], &spec["parallelism"]),
        (&"Indexed".into(), &8.into())
    );
    assert_eq!(spec["activeDeadlineSeconds"], 5400);
    let pod = &spec["template"]["spec"];
    assert_eq!(pod["restartPolicy"], "Never");
    assert_eq!(
        pod["containers"][0]["command"],
        serde_json::json!(["sleep", "5400"])
    );
    let apart =
        &pod["affinity"]["podAntiAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"][0];
    assert_eq!(apart["labelSelector"]["matchLabels"]["job-name"], "night");
    site.run(&["manifest", "Night", "--image", "x", "--pods", "8"])
        .exits(2)
        .says(&["cannot be the name of the Job"]);
}
