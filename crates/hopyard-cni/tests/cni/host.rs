//! A throw-away host: mounts and a network namespace of its own, with a device `up0` to a wire.

use std::collections::BTreeSet;
use std::fs;
use std::io::{self, Write};
use std::net::{IpAddr, UdpSocket};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::{PoisonError, RwLock};
use std::thread;
use std::time::Duration;

use hopyard_net::{Handle, LinkKind, NetNs, NewLink};
use hopyard_switch::{Switch, runs_at_uplink};
use nix::mount::{MntFlags, MsFlags, mount, umount2};
use nix::sched::{CloneFlags, unshare};
use nix::sys::statfs::{BPF_FS_MAGIC, statfs};
use serde_json::{Value, json};

pub(crate) const PLUGIN: &str = env!("CARGO_BIN_EXE_hopyard-cni");
const BPFFS: &str = "/sys/fs/bpf";
/// Where the plugin's records are.
pub(crate) const RECORDS: &str = "/var/lib/cni/hopyard";
/// Where `fake-ipam` keeps its reservations.
pub(crate) const RESERVED: &str = "/run/ipam";
/// What is to come has come by then, also where others take the machine.
pub(crate) const PATIENCE: Duration = Duration::from_secs(20);
/// What must not come would have come by then.
const QUIET: Duration = Duration::from_millis(150);

/// A process that is just being started holds what other threads have open, until it runs its program; the BPF file system cannot
/// be unmounted meanwhile. So nobody starts one while a test works on a switch itself.
static STARTING: RwLock<()> = RwLock::new(());

/// Starts a program.
pub(crate) fn spawn(command: &mut Command) -> io::Result<Child> {
    let _others_may = STARTING.read().unwrap_or_else(PoisonError::into_inner);
    command.spawn()
}

/// Starts a program, and waits for what it says.
pub(crate) fn output(command: &mut Command) -> io::Result<Output> {
    command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    spawn(command)?.wait_with_output()
}

pub(crate) struct Host {
    pub(crate) hub: Handle,
    pub(crate) wire: Handle,
    /// Directories of plugins.
    pub(crate) path: String,
}

/// A container: its namespace.
pub(crate) struct Container {
    pub(crate) id: String,
    pub(crate) inside: Handle,
}

/// What a call said.
#[derive(Debug)]
pub(crate) struct Said {
    pub(crate) ok: bool,
    pub(crate) text: String,
    pub(crate) json: Value,
}

/// Whether the kernel has netkit, by `ip`.
pub(crate) fn has_netkit() -> bool {
    let add = ["--net", "ip", "link", "add", "nk0", "type", "netkit"];
    output(Command::new("unshare").args(add)).is_ok_and(|said| said.status.success())
}

/// Runs `f` on a host with empty `/run` and `/var/lib`, and without a BPF file system. Nothing may be left but the device.
pub(crate) fn on_host<T: Send>(f: impl FnOnce(&Host) -> T + Send) -> T {
    let inside = || {
        unshare(CloneFlags::CLONE_NEWNS).unwrap();
        let private = MsFlags::MS_REC | MsFlags::MS_PRIVATE;
        mount(None::<&str>, "/", None::<&str>, private, None::<&str>).unwrap();
        for path in ["/run", "/var/lib"] {
            let flags = MsFlags::MS_NOSUID | MsFlags::MS_NODEV;
            mount(Some("own"), path, Some("tmpfs"), flags, Some("mode=755")).unwrap();
        }
        while is_mounted() {
            umount2(BPFFS, MntFlags::MNT_DETACH).unwrap();
        }
        f(&Host::new())
    };
    thread::scope(|scope| {
        let ended = scope.spawn(inside).join();
        ended.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}

fn is_mounted() -> bool {
    statfs(BPFFS).is_ok_and(|fs| fs.filesystem_type() == BPF_FS_MAGIC)
}

impl Host {
    fn new() -> Self {
        let [hub, wire] = [(); 2].map(|()| {
            let handle = Handle::new(&NetNs::create().unwrap()).unwrap();
            handle.quiet_ipv6().unwrap();
            handle
        });
        let kind = LinkKind::veth("far0", Some(wire.ns()));
        hub.add_link(&NewLink {
            up: true,
            ..NewLink::new("up0", kind)
        })
        .unwrap();
        wire.set_up("far0").unwrap();
        for (ip, prefix) in [("10.1.0.1", 16), ("fd01::1", 64)] {
            wire.add_address("far0", ip.parse().unwrap(), prefix)
                .unwrap();
        }
        hub.add_address("up0", "10.1.0.2".parse().unwrap(), 16)
            .unwrap();
        let own = Path::new("/run/plugins");
        fs::create_dir(own).unwrap();
        let fake = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cni/fake-ipam");
        fs::copy(fake, own.join("fake-ipam")).unwrap();
        Self {
            hub,
            wire,
            path: "/run/plugins:/usr/lib/cni".to_owned(),
        }
    }

    /// Works on switches in the host's namespace.
    pub(crate) fn in_hub<T: Send>(&self, f: impl FnOnce() -> T + Send) -> hopyard_net::Result<T> {
        self.in_other(&self.hub, f)
    }

    /// The same in another namespace.
    pub(crate) fn in_other<T: Send>(
        &self,
        other: &Handle,
        f: impl FnOnce() -> T + Send,
    ) -> hopyard_net::Result<T> {
        let _alone = STARTING.write().unwrap_or_else(PoisonError::into_inner);
        other.ns().run(f)
    }

    pub(crate) fn container(&self, id: &str) -> Container {
        let inside = Handle::new(&NetNs::create().unwrap()).unwrap();
        Container {
            id: id.to_owned(),
            inside,
        }
    }

    /// A command of the plugin that is ready to run.
    pub(crate) fn command(&self, verb: &str, env: &[(&str, &str)]) -> Command {
        let mut command = Command::new(PLUGIN);
        command
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("CNI_COMMAND", verb)
            .env("CNI_PATH", &self.path)
            .envs(env.iter().copied())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped());
        self.hub.ns().adopt(&mut command).unwrap();
        command
    }

    /// One call about a container.
    pub(crate) fn call(&self, verb: &str, conf: &Value, container: &Container) -> Said {
        self.start(verb, conf, container, "").said()
    }

    pub(crate) fn call_with(&self, verb: &str, conf: &Value, of: &Container, args: &str) -> Said {
        self.start(verb, conf, of, args).said()
    }

    /// One call about another device of a container.
    pub(crate) fn call_as(&self, verb: &str, conf: &Value, of: &Container, ifname: &str) -> Said {
        self.start_as(verb, conf, of, [ifname, ""]).said()
    }

    pub(crate) fn start(&self, verb: &str, conf: &Value, of: &Container, args: &str) -> Running {
        self.start_as(verb, conf, of, ["eth0", args])
    }

    fn start_as(
        &self,
        verb: &str,
        conf: &Value,
        of: &Container,
        [ifname, args]: [&str; 2],
    ) -> Running {
        let netns = of.inside.ns().proc_path();
        let env = [
            ("CNI_CONTAINERID", of.id.as_str()),
            ("CNI_NETNS", netns.to_str().unwrap()),
            ("CNI_IFNAME", ifname),
            ("CNI_ARGS", args),
        ];
        Running::start(self.command(verb, &env), conf)
    }

    /// One call about the network.
    pub(crate) fn call_network(&self, verb: &str, conf: &Value) -> Said {
        Running::start(self.command(verb, &[]), conf).said()
    }

    /// DEL as containerd makes it: the namespace is gone.
    pub(crate) fn del_without_namespace(&self, conf: &Value, id: &str) -> Said {
        let env = [
            ("CNI_CONTAINERID", id),
            ("CNI_NETNS", ""),
            ("CNI_IFNAME", "eth0"),
        ];
        Running::start(self.command("DEL", &env), conf).said()
    }

    /// Runs a program in the host's namespace.
    #[track_caller]
    pub(crate) fn runs(&self, program: &str, words: &[&str]) {
        let mut command = Command::new(program);
        command.args(words);
        self.hub.ns().adopt(&mut command).unwrap();
        let said = output(&mut command).unwrap();
        assert!(said.status.success(), "{words:?}: {said:?}");
    }

    /// A command of the plugin as `ip netns exec` runs it: the BPF file system is hidden.
    pub(crate) fn hiding_command(&self, verb: &str, env: &[(&str, &str)]) -> Command {
        let plain = self.command(verb, env);
        let mut command = Command::new("unshare");
        let hide = "mount -t sysfs hidden /sys && exec \"$0\"";
        command
            .args(["--mount", "sh", "-c", hide, PLUGIN])
            .env_clear()
            .envs(
                plain
                    .get_envs()
                    .filter_map(|(key, value)| Some((key, value?))),
            )
            .stdin(Stdio::piped())
            .stdout(Stdio::piped());
        self.hub.ns().adopt(&mut command).unwrap();
        command
    }

    /// The names of the devices that the plugin has made.
    pub(crate) fn devices(&self) -> Vec<String> {
        let links = self.hub.links().unwrap().into_iter().map(|link| link.name);
        links.filter(|name| name.starts_with("hc")).collect()
    }

    pub(crate) fn switches(&self) -> Vec<String> {
        self.in_hub(|| Switch::list().unwrap()).unwrap()
    }

    /// Neither devices, nor switches, nor records, nor reservations, nor mounts are left.
    #[track_caller]
    pub(crate) fn is_clean(&self) {
        assert_eq!(self.devices(), Vec::<String>::new());
        assert_eq!(self.switches(), Vec::<String>::new());
        assert!(!Path::new(RECORDS).exists(), "{:?}", files(RECORDS));
        assert_eq!(files(RESERVED), BTreeSet::new());
        assert!(!is_mounted(), "the BPF file system is still mounted");
        assert!(!Path::new("/run/hopyard-switch.lock").exists());
    }
}

/// Has the programs of a switch leave its uplink `up0`.
pub(crate) fn detach_from_uplink(host: &Host, switch: &str) {
    for side in ["in", "out"] {
        let link = format!("/sys/fs/bpf/hopyard/switch/{switch}/link-uplink-{side}");
        fs::remove_file(link).unwrap();
    }
    // The kernel detaches them at its leisure.
    let end = std::time::Instant::now() + PATIENCE;
    let run = || runs_at_uplink(&host.hub, "up0").unwrap();
    while host.in_hub(run).unwrap() {
        assert!(std::time::Instant::now() < end);
        thread::sleep(Duration::from_millis(1));
    }
}

/// The names of the files in a directory.
pub(crate) fn files(directory: &str) -> BTreeSet<String> {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    entries
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .collect()
}

/// A call that has begun.
pub(crate) struct Running {
    pub(crate) child: Child,
}

impl Running {
    pub(crate) fn start(mut command: Command, conf: &Value) -> Self {
        let mut child = spawn(&mut command).unwrap();
        let text = conf.to_string();
        // Whoever is killed reads nothing.
        let _ = child.stdin.take().unwrap().write_all(text.as_bytes());
        Self { child }
    }

    pub(crate) fn said(self) -> Said {
        let output = self.child.wait_with_output().unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        Said {
            ok: output.status.success(),
            json: serde_json::from_str(&text).unwrap_or_default(),
            text,
        }
    }
}

impl Said {
    #[track_caller]
    pub(crate) fn works(self) -> Value {
        assert!(self.ok, "{}", self.text);
        self.json
    }

    /// It fails with this code, and says all of these.
    #[track_caller]
    pub(crate) fn fails(self, code: u64, words: &[&str]) {
        assert!(!self.ok, "{}", self.text);
        assert_eq!(self.json["code"], code, "{}", self.text);
        for word in words {
            assert!(self.text.contains(word), "`{word}` is not in {}", self.text);
        }
    }
}

impl Container {
    /// Sends a datagram to another one, which answers.
    pub(crate) fn reaches(&self, other: &Handle, ip: &str) -> bool {
        exchange(&self.inside, None, other, ip, PATIENCE)
    }

    /// The same, from this address.
    pub(crate) fn reaches_from(&self, own: &str, other: &Handle, ip: &str, quick: bool) -> bool {
        let patience = if quick { QUIET } else { PATIENCE };
        exchange(&self.inside, Some(own), other, ip, patience)
    }

    #[track_caller]
    pub(crate) fn does_not_reach(&self, other: &Handle, ip: &str) {
        assert!(
            !exchange(&self.inside, None, other, ip, QUIET),
            "{ip} is reached"
        );
    }
}

/// Do datagrams pass both ways?
fn exchange(from: &Handle, own: Option<&str>, to: &Handle, ip: &str, patience: Duration) -> bool {
    let ip: IpAddr = ip.parse().unwrap();
    let any: IpAddr = if ip.is_ipv4() {
        [0; 4].into()
    } else {
        [0; 16].into()
    };
    let open = |ns: &Handle, at: IpAddr| {
        let opened = ns.ns().run(|| UdpSocket::bind((at, 0)));
        let socket = opened.unwrap().unwrap();
        socket
            .set_read_timeout(Some(Duration::from_millis(20)))
            .unwrap();
        socket
    };
    let own = own.map_or(any, |own| own.parse().unwrap());
    let (server, client) = (open(to, ip), open(from, own));
    let port = server.local_addr().unwrap().port();
    let end = std::time::Instant::now() + patience;
    while std::time::Instant::now() < end {
        // No route, or nobody answers ARP: both show in that nothing comes back.
        let _ = client.send_to(b"ping", (ip, port));
        if let Ok((_, from)) = server.recv_from(&mut [0; 8]) {
            let _ = server.send_to(b"pong", from);
        }
        if client.recv_from(&mut [0; 8]).is_ok() {
            return true;
        }
    }
    false
}

/// A configuration whose addresses `fake-ipam` gives.
pub(crate) fn conf(version: &str, name: &str, result: &Value) -> Value {
    let mut result = result.clone();
    result["cniVersion"] = version.into();
    fs::create_dir_all("/run/results").unwrap();
    let number = files("/run/results").len();
    let file = PathBuf::from(format!("/run/results/{number}"));
    fs::write(&file, result.to_string()).unwrap();
    json!({
        "cniVersion": version,
        "name": name,
        "type": "hopyard",
        "master": "up0",
        "ipam": { "type": "fake-ipam", "result": file },
    })
}

/// The same, with one address.
pub(crate) fn conf_with(version: &str, name: &str, address: &str) -> Value {
    conf(version, name, &json!({ "ips": [ip(version, address)] }))
}

/// An address as a result of this version has it.
pub(crate) fn ip(version: &str, address: &str) -> Value {
    let mut ip = json!({ "address": address });
    if version == "0.4.0" {
        ip["version"] = if address.contains(':') { "6" } else { "4" }.into();
    }
    ip
}

/// The configuration with some keys changed.
pub(crate) fn with(conf: &Value, keys: Value) -> Value {
    let mut conf = conf.clone();
    let Value::Object(keys) = keys else {
        panic!("{keys} is no object");
    };
    for (key, value) in keys {
        conf[key] = value;
    }
    conf
}
