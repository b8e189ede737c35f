//! `cnitool`, `host-local` and libcni itself, built by Go and kept among what tests leave in the build directory.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use hopyard_net::NetNs;
use serde_json::{Value, json};

use crate::host::{Container, Host, PLUGIN, RECORDS, files, on_host, output};
use crate::skip::skip;

const CNITOOL: &str = "github.com/containernetworking/cni/cnitool@v1.3.0";
const PLUGINS: &str = "github.com/containernetworking/plugins/plugins";
const PLUGINS_VERSION: &str = "v1.9.1";

/// The directory of the programs, or why they cannot be had.
fn tools() -> &'static Result<PathBuf, String> {
    static TOOLS: OnceLock<Result<PathBuf, String>> = OnceLock::new();
    TOOLS.get_or_init(|| {
        let home = Path::new(env!("CARGO_TARGET_TMPDIR")).join("cni-tools");
        let bin = home.join(PLUGINS_VERSION);
        if bin.join("libcni-gc").exists() {
            return Ok(bin);
        }
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/libcni");
        let of = |kind: &str, name: &str| format!("{PLUGINS}/{kind}/{name}@{PLUGINS_VERSION}");
        let (local, fixed) = (of("ipam", "host-local"), of("ipam", "static"));
        let gc = bin.join("libcni-gc");
        for words in [
            vec!["install", CNITOOL],
            vec!["install", &local, &fixed],
            // Last: it says that all are there.
            vec!["build", "-o", gc.to_str().unwrap_or_default(), "."],
        ] {
            let mut go = Command::new("go");
            go.args(&words)
                .current_dir(&source)
                .env("GOBIN", &bin)
                .env("GOPATH", home.join("path"))
                .env("GOCACHE", home.join("cache"))
                .env("GOFLAGS", "-modcacherw")
                .env("CGO_ENABLED", "0");
            let output = output(&mut go);
            let output = output.map_err(|error| format!("go: {error}"))?;
            if !output.status.success() {
                let said = String::from_utf8_lossy(&output.stderr);
                return Err(format!("go {}: {}", words.join(" "), said.trim()));
            }
        }
        Ok(bin)
    })
}

/// A host with the programs, a network `front`, and addresses from `host-local`.
fn with_tools(f: impl FnOnce(&Host, &Path) + Send) {
    match tools() {
        Err(reason) => skip("cnitool and host-local", false, reason),
        Ok(bin) => on_host(|host| {
            symlink(PLUGIN, "/run/plugins/hopyard").unwrap();
            fs::create_dir("/run/net.d").unwrap();
            f(host, bin);
        }),
    }
}

fn plugin(reservations: &str) -> Value {
    json!({
        "type": "hopyard",
        "master": "up0",
        "portIsolation": false,
        "capabilities": { "mac": true, "ips": true },
        "ipam": {
            "type": "host-local",
            "dataDir": reservations,
            "ranges": [[{ "subnet": "10.1.0.0/16", "rangeStart": "10.1.3.1", "gateway": "10.1.0.1" }]],
            "routes": [{ "dst": "0.0.0.0/0" }],
        },
    })
}

fn write_list(version: &str, plugin: &Value) {
    let list = json!({ "cniVersion": version, "name": "front", "plugins": [plugin] });
    fs::write("/run/net.d/front.conflist", list.to_string()).unwrap();
}

fn run(host: &Host, bin: &Path, words: &[&str], env: &[(&str, &str)]) -> (bool, String) {
    let mut command = Command::new(bin.join(words[0]));
    command
        .args(&words[1..])
        .env("NETCONFPATH", "/run/net.d")
        .env("CNI_PATH", format!("/run/plugins:{}", bin.display()))
        .envs(env.iter().copied());
    host.hub.ns().adopt(&mut command).unwrap();
    let output = output(&mut command).unwrap();
    let text = [output.stdout, output.stderr].concat();
    (
        output.status.success(),
        String::from_utf8_lossy(&text).into_owned(),
    )
}

fn address(container: &Container) -> String {
    let device = container.inside.index("eth0").unwrap();
    let addresses = container.inside.addresses().unwrap();
    let own = addresses
        .iter()
        .find(|(of, ip)| *of == device && ip.is_ipv4());
    own.unwrap().1.to_string()
}

#[test]
fn cnitool_does_all_of_it_in_every_version() {
    with_tools(|host, bin| {
        let versions = ["0.4.0", "1.0.0", "1.1.0"].into_iter();
        for (version, in_process) in
            versions.flat_map(|version| [(version, true), (version, false)])
        {
            let reservations = format!("/run/reservations-{version}-{in_process}");
            let mut plugin = plugin(&reservations);
            plugin["ipamInProcess"] = in_process.into();
            write_list(version, &plugin);
            let containers = ["a", "b"].map(|id| host.container(id));
            let paths = containers.each_ref().map(|c| c.inside.ns().proc_path());
            let tool = |verb: &str, n: usize, env: &[(&str, &str)]| {
                let path = paths[n].to_str().unwrap();
                let (ok, text) = run(host, bin, &["cnitool", verb, "front", path], env);
                assert!(ok, "{version} {verb}: {text}");
                text
            };
            let asked = [(
                "CAP_ARGS",
                r#"{"ips": ["10.1.3.77/16"], "mac": "02:00:00:00:00:77"}"#,
            )];
            let result: Value = serde_json::from_str(&tool("add", 0, &asked)).unwrap();
            assert_eq!(result["cniVersion"], version);
            assert_eq!(result["interfaces"][1]["mac"], "02:00:00:00:00:77");
            assert_eq!(address(&containers[0]), "10.1.3.77");
            tool("add", 1, &[("CNI_ARGS", "IP=10.1.3.99")]);
            assert_eq!(address(&containers[1]), "10.1.3.99");
            assert!(containers[0].reaches(&containers[1].inside, "10.1.3.99"));
            assert!(containers[0].reaches(&host.wire, "10.1.0.1"));
            tool("check", 0, &asked);
            tool("check", 1, &[]);
            tool("status", 0, &[]);
            tool("del", 0, &[]);
            tool("del", 0, &[]);
            assert_eq!(reserved(&reservations), ["10.1.3.99"]);
            // None is valid: all go.
            tool("gc", 1, &[]);
            assert!(reserved(&reservations).is_empty());
            host.is_clean();
        }
    });
}

/// The addresses that `host-local` has given.
fn reserved(directory: &str) -> Vec<String> {
    let files = files(&format!("{directory}/front")).into_iter();
    files.filter(|name| name.starts_with("10.")).collect()
}

#[test]
fn libcni_collects_what_is_not_valid() {
    with_tools(|host, bin| {
        let reservations = "/run/reservations";
        write_list("1.1.0", &plugin(reservations));
        let containers = ["a", "b", "c"].map(|id| host.container(id));
        for container in &containers {
            let path = container.inside.ns().proc_path();
            let (ok, text) = run(
                host,
                bin,
                &["cnitool", "add", "front", path.to_str().unwrap()],
                &[],
            );
            assert!(ok, "{text}");
        }
        // What libcni has not noted, as where it was killed, the plugin alone knows of.
        fs::remove_dir_all("/var/lib/cni/results").unwrap();
        let records: Vec<String> = files(&format!("{RECORDS}/front")).into_iter().collect();
        let id = records[1].split(':').next().unwrap();
        std::thread::sleep(std::time::Duration::from_millis(20));
        let (ok, text) = run(host, bin, &["libcni-gc", "front", id], &[]);
        assert!(ok, "{text}");
        assert_eq!(
            files(&format!("{RECORDS}/front")),
            BTreeSet::from([records[1].clone()])
        );
        assert_eq!((reserved(reservations).len(), host.devices().len()), (1, 1));
        let (ok, text) = run(host, bin, &["libcni-gc", "front"], &[]);
        assert!(ok, "{text}");
        assert!(reserved(reservations).is_empty());
        host.is_clean();
    });
}

/// An error of the plugin comes to whoever calls the runtime.
#[test]
fn cnitool_tells_of_a_refused_key() {
    with_tools(|host, bin| {
        let mut plugin = plugin("/run/reservations");
        plugin["ipMasq"] = true.into();
        write_list("1.1.0", &plugin);
        let ns = NetNs::create().unwrap();
        let path = ns.proc_path();
        for verb in ["add", "status"] {
            let words = ["cnitool", verb, "front", path.to_str().unwrap()];
            let (ok, text) = run(host, bin, &words, &[]);
            assert!(
                !ok && text.contains("unsupported key `ipMasq` (true)"),
                "{text}"
            );
        }
        host.is_clean();
    });
}
