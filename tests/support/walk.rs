//! Walking the registry: every path this kernel has, with every peer.

use std::collections::BTreeSet;
use std::process::Command;

use hopyard::lab::paths::{Carried, Need};
use hopyard::lab::{self, PATHS, Path};
use hopyard::model::{Attach, Axes, Peer};

use super::{skip, skip_part, tell};

/// What a test did at a path with a peer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Visit {
    /// It checked what it is about.
    Checked,
    /// It is not about this path or this peer, or the path refused what was asked for, as it should.
    PassedOver,
}

/// The paths at which a walk checked what it is about, with one peer at least.
pub(crate) struct Checked(BTreeSet<&'static str>);

impl Checked {
    /// Fails if one of these paths was passed over, unless the walk was asked for other paths only. Without this, a test that accepts a
    /// refusal from any path would pass if all paths refused.
    #[track_caller]
    pub(crate) fn has(&self, paths: &[&str]) {
        for path in paths.iter().filter(|path| is_asked_for(path)) {
            assert!(
                self.0.contains(path),
                "{path} was passed over: {:?}",
                self.0
            );
        }
    }
}

/// Does something for every path and peer that can be built here, but for paths whose each sample takes
/// seconds; fails with all that failed, where a path is passed over that this kernel has, and where nothing was checked.
pub(crate) fn walk(
    what: &str,
    each: impl Fn(&'static Path, Peer) -> Result<Visit, String>,
) -> Checked {
    walk_those(
        what,
        |path| !path.by_name_only,
        |path, peer, _| each(path, peer),
    )
}

/// The same with every path there is but those with guests, with the axes that make another path of it.
pub(crate) fn walk_all(
    what: &str,
    each: impl Fn(&'static Path, Peer, &[(&str, &str)]) -> Result<Visit, String>,
) {
    walk_those(what, |path| path.is_built && !has_guest(path), each);
}

/// The same with the paths that [`walk_all`] leaves out.
pub(crate) fn walk_guests(
    what: &str,
    each: impl Fn(&'static Path, Peer, &[(&str, &str)]) -> Result<Visit, String>,
) {
    walk_those(what, |path| path.is_built && has_guest(path), each);
}

fn has_guest(path: &Path) -> bool {
    path.axes.contains(&"guest_cpus")
}

/// An environment variable with the only paths to walk, separated by commas. Each of them must be available.
pub(crate) const ASKED: &str = "HOPYARD_TEST_PATHS";

fn asked() -> Option<Vec<String>> {
    let names = std::env::var(ASKED).ok()?;
    let names: Vec<String> = names.split(',').map(str::to_owned).collect();
    for name in &names {
        assert!(lab::path(name).is_ok(), "{ASKED}: no path `{name}`");
    }
    Some(names)
}

/// Is this path to be walked?
pub(crate) fn is_asked_for(path: &str) -> bool {
    asked().is_none_or(|names| names.iter().any(|name| name == path))
}

fn walk_those(
    what: &str,
    those: impl Fn(&Path) -> bool,
    each: impl Fn(&'static Path, Peer, &[(&str, &str)]) -> Result<Visit, String>,
) -> Checked {
    let mut failures = Vec::new();
    let (mut visited, mut checked, mut skipped) = (0, 0, Vec::new());
    let mut paths = BTreeSet::new();
    let to_walk = |path: &Path| those(path) && is_asked_for(path.name);
    for &path in PATHS.iter().filter(|path| to_walk(path)) {
        if let Err(error) = path.available() {
            if asked().is_some() {
                failures.push(hopyard::chain(&error));
            }
            if let Err(why) = rightly_skipped(path, path.needs, &error) {
                failures.push(format!("{}: {why}", path.name));
            }
            skipped.push(path.name.to_owned());
            continue;
        }
        for attach in attachments(path) {
            let value = attach.map(|attach| attach.to_string());
            let set: Vec<_> = value.iter().map(|v| ("attach", v.as_str())).collect();
            let name = format!("{} {set:?}", path.name);
            let axes = Axes {
                attach,
                ..Axes::default()
            };
            if let Err(error) = path.available_with(&axes) {
                let needs = (path.needs_for)(&axes);
                if let Err(why) = rightly_skipped(path, needs, &error) {
                    failures.push(format!("{name}: {why}"));
                }
                skipped.push(name);
                continue;
            }
            for &peer in path.peers_attached(attach.unwrap_or_default()) {
                visited += 1;
                match each(path, peer, &set) {
                    Ok(Visit::Checked) => {
                        checked += 1;
                        paths.insert(path.name);
                    }
                    Ok(Visit::PassedOver) => {}
                    Err(why) => failures.push(format!("{name}/{}: {why}", peer.name())),
                }
            }
        }
    }
    tell(&format!(
        "{what}: {checked} of {visited} combinations of path and peer checked"
    ));
    assert!(failures.is_empty(), "{}", failures.join("\n"));
    // The paths that somebody asked for may be none that the test is about.
    assert!(
        checked > 0 || asked().is_some(),
        "{what}: nothing was checked"
    );
    if !skipped.is_empty() {
        // Each of them was rightly skipped: otherwise it is among the failures.
        let reason = "this machine lacks what they need";
        skip_part(&format!("path {}", skipped.join(", ")), false, reason);
    }
    Checked(paths)
}

/// How a path's guest can be attached; one, nothing, where it has none.
fn attachments(path: &Path) -> Vec<Option<Attach>> {
    if path.axes.contains(&"attach") {
        Attach::ALL.map(Some).into()
    } else {
        vec![None]
    }
}

/// A path that is not there says which feature is missing and what would provide it, and it is so.
fn rightly_skipped(path: &Path, needs: &[Need], error: &lab::Error) -> Result<(), String> {
    let lab::Error::Unsupported { source, .. } = error else {
        return Err(format!(
            "skipped for something else: {}",
            hopyard::chain(error)
        ));
    };
    let hopyard_net::Error::Unsupported {
        feature, remedy, ..
    } = source
    else {
        return Err(format!("names no feature: {source}"));
    };
    if feature.is_empty() || remedy.is_empty() {
        return Err(format!("names no feature or no remedy: {source}"));
    }
    match needs.iter().find(|need| !machine_has(**need)) {
        Some(_) => Ok(()),
        None => Err(format!(
            "{} is skipped, though this kernel has all of {needs:?}: {}",
            path.name,
            hopyard::chain(error)
        )),
    }
}

/// Those of these paths that can be built here. The test is recorded as skipped where none of them can, else in part.
#[track_caller]
pub(crate) fn those_here(names: &[&'static str]) -> Vec<&'static str> {
    let (mut here, mut lacking) = (Vec::new(), Vec::new());
    for name in names {
        let path = lab::path(name).unwrap();
        match path.available() {
            Ok(()) => here.push(*name),
            Err(error) => lacking.push((path, hopyard::chain(&error))),
        }
    }
    let record = if here.is_empty() { skip } else { skip_part };
    for (path, why) in lacking {
        let present = path.needs.iter().all(|need| machine_has(*need));
        record(&format!("path {}", path.name), present, &why);
    }
    here
}

/// What iproute2 and procfs say, independently of the program.
pub(crate) fn machine_has(need: Need) -> bool {
    match need.name {
        // To ask for one would load a module that puts devices into every namespace.
        "gre" if !has_loaded("ip_gre") => false,
        "ipip" if !has_loaded("ipip") => false,
        kind if need.is_device => {
            let more = match kind {
                "vxlan" => "id 1 dstport 4789 local 192.0.2.1 remote 192.0.2.2",
                "geneve" => "id 1 remote 192.0.2.2",
                "vrf" => "table 10",
                "gre" | "ipip" => "local 192.0.2.1 remote 192.0.2.2",
                _ => "",
            };
            let link = match kind.split(' ').next() {
                Some("macvlan" | "macvtap" | "ipvlan") => "link lower",
                _ => "",
            };
            let script = format!(
                "ip link add lower type veth peer name other && \
                 ip link add {link} name probe type {kind} {more}"
            );
            Command::new("unshare")
                .args(["--net", "sh", "-c", &script])
                .output()
                .expect("unshare (util-linux) runs")
                .status
                .success()
        }
        "macsec" => {
            let script = "ip link add lower type veth peer name other && ip link add link lower probe type macsec && \
                          ip macsec add probe tx sa 0 pn 1 on key 01 000102030405060708090a0b0c0d0e0f";
            unshared(&["sh", "-c", script]) == Some(true)
        }
        "nftables" => Command::new("unshare")
            .args(["--net", "nft", "add", "table", "inet", "probe"])
            .output()
            .is_ok_and(|output| output.status.success()),
        "ipsec" => {
            let cipher = [
                "aead",
                "rfc4106(gcm(aes))",
                "0x0102030405060708090a0b0c0d0e0f1011121314",
                "128",
            ];
            let state = [
                "ip",
                "xfrm",
                "state",
                "add",
                "src",
                "192.0.2.1",
                "dst",
                "192.0.2.2",
                "proto",
                "esp",
                "spi",
                "256",
            ];
            unshared(&[&state[..], &cipher].concat()) == Some(true)
        }
        // Functions of the kernel that its programs call.
        "direct switch" => is_kernel_at_least("6.2"),
        "tcx" => is_kernel_at_least("6.6"),
        "af_xdp" => std::fs::read_to_string("/proc/net/protocols")
            .is_ok_and(|protocols| protocols.lines().any(|line| line.starts_with("XDP "))),
        "netkit programs" => is_kernel_at_least("6.7"),
        // Frames of several buffers.
        "xdp" => is_kernel_at_least("5.18"),
        "sockmap shortcut" => {
            is_kernel_at_least("6.2")
                && std::fs::read_to_string("/proc/mounts")
                    .is_ok_and(|mounts| mounts.lines().any(|line| line.contains(" cgroup2 ")))
        }
        "guest" => Command::new("qemu-system-x86_64")
            .arg("--version")
            .output()
            .is_ok_and(|output| output.status.success()),
        "br_netfilter" => {
            std::path::Path::new("/proc/sys/net/bridge/bridge-nf-call-iptables").exists()
        }
        "nf_conntrack_netlink" => unshared(&["conntrack", "-S"]).unwrap_or_else(|| {
            // Without that program: what lists the table by netlink came with what shows it as a file.
            std::path::Path::new("/proc/net/nf_conntrack").exists()
        }),
        name if NETFILTER.iter().any(|(need, ..)| *need == name) => {
            let (_, program, rules) = NETFILTER.iter().find(|(need, ..)| *need == name).unwrap();
            let script = format!("printf '%s\\n' '{rules}' | {program}");
            unshared(&["sh", "-c", &script]) == Some(true)
        }
        // A switch that is programs, and taps or a module that they do with.
        name => {
            let Carried {
                modules, programs, ..
            } = need.carried;
            let how = "say how a test finds out whether this machine has";
            assert!(!modules.is_empty(), "{how} `{name}`");
            programs.iter().all(|program| has_program(program))
                && modules.iter().any(|module| has_module(module))
        }
    }
}

fn has_loaded(module: &str) -> bool {
    std::path::Path::new("/sys/module").join(module).exists()
}

/// Pieces of netfilter, each with rules that want it and what loads them.
const NETFILTER: &[(&str, &str, &str)] = &[
    (
        "nft_masq",
        "nft -f -",
        "table ip t { chain c { type nat hook postrouting priority 100; masquerade; }; }",
    ),
    (
        "nft_numgen",
        "nft -f -",
        "table ip t { chain c { numgen random mod 1 vmap { 0 : accept }; }; }",
    ),
    (
        "nft_ct",
        "nft -f -",
        "table ip t { chain c { ct state new accept; }; }",
    ),
    (
        "nft_reject_inet",
        "nft -f -",
        "table inet t { chain c { type filter hook input priority 0; reject; }; }",
    ),
    (
        "nf_flow_table",
        "nft -f -",
        "table inet t { flowtable f { hook ingress priority 0; devices = { lo }; }; }",
    ),
    (
        "nft_flow_offload",
        "nft -f -",
        "table ip t { flowtable f { hook ingress priority 0; devices = { lo }; }; chain c { flow add @f; }; }",
    ),
    (
        "xt_nat",
        "sh -ex",
        "iptables -t nat -A OUTPUT -p tcp -j DNAT --to-destination 192.0.2.1:80; ip6tables-restore </dev/null",
    ),
    (
        "xt_comment",
        "sh -ex",
        "iptables -A OUTPUT -m comment --comment x",
    ),
    (
        "xt_mark",
        "sh -ex",
        "iptables -t mangle -A OUTPUT -m mark --mark 1 -j MARK --set-mark 2",
    ),
    (
        "xt_conntrack",
        "sh -ex",
        "iptables -A OUTPUT -m conntrack --ctstate NEW",
    ),
    (
        "xt_addrtype",
        "sh -ex",
        "iptables -A OUTPUT -m addrtype --dst-type LOCAL",
    ),
    (
        "xt_MASQUERADE",
        "sh -ex",
        "iptables -t nat -A POSTROUTING -j MASQUERADE",
    ),
];

/// Does a command succeed in a namespace of its own? `None` where there is no such program.
pub(crate) fn unshared(command: &[&str]) -> Option<bool> {
    let output = Command::new("unshare").arg("--net").args(command).output();
    let status = output.expect("unshare (util-linux) runs").status;
    (status.code() != Some(127)).then(|| status.success())
}

/// Does this machine have every program that a path needs? Guests get their programs from it.
pub(crate) fn has_programs(path: &Path) -> bool {
    let needs = path.needs.iter();
    let mut programs = needs.flat_map(|need| need.carried.programs);
    programs.all(|name| has_program(name))
}

fn has_program(name: &str) -> bool {
    let mut find = Command::new("sh");
    find.args(["-c", "command -v \"$0\"", name]);
    find.output().expect("sh runs").status.success()
}

pub(crate) fn has_module(name: &str) -> bool {
    match name {
        "tun" => std::fs::OpenOptions::new()
            .read(true)
            .write(true)
            .open("/dev/net/tun")
            .is_ok(),
        "openvswitch" => Command::new("grep")
            .args([
                "-qw",
                "ovs_datapath",
                "/proc/net/genetlink",
                "/proc/kallsyms",
            ])
            .status()
            .expect("grep runs")
            .success(),
        other => panic!("say how a test finds out whether this machine has module `{other}`"),
    }
}

fn is_kernel_at_least(version: &str) -> bool {
    let script =
        format!("printf '{version}\\n%s\\n' \"$(uname -r)\" | sort --version-sort --check");
    let output = Command::new("sh").args(["-c", &script]).output();
    output.expect("sh runs").status.success()
}
