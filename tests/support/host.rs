//! The state of the host's own network, which no lab may touch.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Command;
use std::sync::Once;

use serde_json::Value;

use super::skip;

/// Is a cgroup2 file system mounted?
pub(crate) fn mounts_cgroup2() -> bool {
    let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap();
    mounts.lines().any(|line| line.contains(" - cgroup2 "))
}

/// Can control groups be made? Records the test as skipped where they cannot.
#[track_caller]
pub(crate) fn has_cgroup2() -> bool {
    let listed = hopyard_net::Cgroup::list();
    if let Err(error) = &listed {
        skip("cgroup2", mounts_cgroup2(), &hopyard::chain(error));
    }
    listed.is_ok()
}

/// Keys of `ip -j` that change by themselves: life times of leased addresses and cached routes, and
/// the timers of bridges.
const VOLATILE_FIELDS: [&str; 10] = [
    "valid_life_time",
    "preferred_life_time",
    "expires",
    "age",
    "used",
    "hello_timer",
    "tcn_timer",
    "topology_change_timer",
    "gc_timer",
    "stats64",
];

/// Below /proc/sys/net: what changes by itself.
const VOLATILE_SYSCTLS: [(&str, &str); 2] = [
    (
        "netfilter/nf_conntrack_count",
        "connections that the host's own traffic makes and forgets",
    ),
    (
        "core/rps_sock_flow_entries",
        "one for the whole machine, which tests beside this one set (flow_steering.rs)",
    ),
];

/// Links, addresses, routes, rules, bridges, qdiscs, packet filter and sysctls of the namespace that
/// the tests run in.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct HostState(BTreeMap<String, String>);

impl HostState {
    pub(crate) fn now() -> Self {
        static ONCE: Once = Once::new();
        // A first look at every path may load modules, which bring their sysctls along.
        ONCE.call_once(|| {
            super::cli::run(&["list", "paths"]).exits(0);
        });
        let mut state = BTreeMap::new();
        for command in [
            "ip -j -d link show",
            "ip -j address show",
            "ip -j -4 route show table all",
            "ip -j -6 route show table all",
            "ip -j -4 rule show",
            "ip -j -6 rule show",
            "ip -j netns list",
            "bridge -j vlan show",
            "bridge -j link show",
            "tc -j qdisc show",
        ] {
            let text = output(command).unwrap_or_else(|| panic!("`{command}` (iproute2) runs"));
            let mut value: Value = serde_json::from_str(&text).unwrap_or(Value::String(text));
            strip(&mut value);
            let items = match value {
                Value::Array(items) => items,
                one => vec![one],
            };
            for (number, item) in items.into_iter().enumerate() {
                state.insert(format!("{command} #{number}"), item.to_string());
            }
        }
        // Without nft, nobody has made rules with it.
        if let Some(rules) = output("nft -s list ruleset") {
            state.insert("nft -s list ruleset".to_owned(), rules);
        }
        sysctls(Path::new("/proc/sys/net"), &mut state);
        Self(state)
    }

    /// It is as it was.
    #[track_caller]
    pub(crate) fn assert_unchanged(&self) {
        let now = Self::now();
        if now == *self {
            return;
        }
        let keys = self.0.keys().chain(now.0.keys());
        let changes: std::collections::BTreeSet<String> = keys
            .filter(|key| self.0.get(*key) != now.0.get(*key))
            .map(|key| {
                let (was, is) = (self.0.get(key), now.0.get(key));
                format!("{key}\n  was {was:?}\n  is  {is:?}")
            })
            .collect();
        let changes: Vec<String> = changes.into_iter().collect();
        panic!("the host's network has changed:\n{}", changes.join("\n"));
    }
}

/// Whatever is done, the host's network stays as it is.
#[track_caller]
pub(crate) fn unharmed<T>(f: impl FnOnce() -> T) -> T {
    let before = HostState::now();
    let result = f();
    before.assert_unchanged();
    result
}

fn output(command: &str) -> Option<String> {
    let mut words = command.split(' ');
    let output = Command::new(words.next()?).args(words).output().ok()?;
    Some(String::from_utf8_lossy(&output.stdout).into_owned())
}

fn strip(value: &mut Value) {
    match value {
        Value::Array(items) => items.iter_mut().for_each(strip),
        Value::Object(fields) => {
            fields.retain(|key, _| !VOLATILE_FIELDS.contains(&key.as_str()));
            fields.values_mut().for_each(strip);
        }
        _ => {}
    }
}

fn sysctls(directory: &Path, state: &mut BTreeMap<String, String>) {
    for entry in fs::read_dir(directory).unwrap().flatten() {
        let path = entry.path();
        if path.is_dir() {
            sysctls(&path, state);
            continue;
        }
        if VOLATILE_SYSCTLS.iter().any(|(key, _)| path.ends_with(key)) {
            continue;
        }
        // Some can only be written, and some have no value yet.
        let value = fs::read(&path).map_or_else(
            |error| format!("({})", error.kind()),
            |bytes| String::from_utf8_lossy(&bytes).into_owned(),
        );
        state.insert(path.display().to_string(), value);
    }
}
