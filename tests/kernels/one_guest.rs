//! Runs in guests whose cells several tests look at: a guest boots for longer than most cells take.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use serde_json::Value;

use super::{PATIENCE, in_guest, proved};
use crate::support::cli::Running;
use crate::support::kernels::{backported_kernel, kernel};
use crate::support::{beside, tell};

/// What was measured in a guest, in one block.
pub(super) struct Measured {
    /// Cells, as the report has them.
    pub(super) cells: Vec<Value>,
    /// Each sample, after the cell that it is of.
    pub(super) samples: Vec<(Value, Value)>,
}

impl Measured {
    /// Boots a guest and measures in it, beside other tests.
    fn in_guest(kernel: &Path, plan: &[&str]) -> Self {
        let _beside = beside();
        let home = tempfile::tempdir().unwrap();
        let out = home.path().join("run");
        let always = [
            "--blocks", "1", "--turns", "off", "--accel", "tcg", "--json",
        ];
        let command = in_guest(kernel, &out, &[&always[..], plan].concat());
        let said = Running::start(command).wait_for(PATIENCE);
        let cells = said.json()["cells"].as_array().unwrap().clone();
        tell(&format!(
            "{} cells in a guest in {:?}",
            cells.len(),
            said.took
        ));
        Self {
            cells,
            samples: samples(&out),
        }
    }

    /// Those of a path and a load that a test is about.
    fn of(&self, is_own: impl Fn(&str, &str) -> bool) -> Self {
        let text = |cell: &Value, key: &str| cell[key].as_str().unwrap().to_owned();
        let is_own = |cell: &Value| is_own(&text(cell, "path"), &text(cell, "load"));
        let cells = self.cells.iter().filter(|cell| is_own(cell));
        let samples = self.samples.iter().filter(|(cell, _)| is_own(cell));
        Self {
            cells: cells.cloned().collect(),
            samples: samples.cloned().collect(),
        }
    }
}

/// The samples of a run, failed ones too.
fn samples(out: &Path) -> Vec<(Value, Value)> {
    let header = fs::read(out.join("run.json")).unwrap();
    let header: Value = serde_json::from_slice(&header).unwrap();
    let samples = fs::read_to_string(out.join("samples.jsonl")).unwrap();
    let sample = |line: &str| {
        let sample: Value = serde_json::from_str(line).unwrap();
        let cell = usize::try_from(sample["cell"].as_u64().unwrap()).unwrap();
        (header["cells"][cell]["cell"].clone(), sample)
    };
    samples.lines().map(sample).collect()
}

/// A run that the first test that asks for it makes; the others wait for it.
pub(super) struct OneGuest {
    kernel: fn() -> PathBuf,
    /// The parts of its plan, in TOML.
    parts: &'static str,
    measured: OnceLock<Measured>,
}

impl OneGuest {
    const fn new(kernel: fn() -> PathBuf, parts: &'static str) -> Self {
        Self {
            kernel,
            parts,
            measured: OnceLock::new(),
        }
    }

    /// The cells that a test is about, each proved; where they have to be measured again, the samples of those come first. `set` is
    /// what the plan sets for them.
    pub(super) fn proved(&self, is_own: impl Fn(&str, &str) -> bool, set: &[&str]) -> Measured {
        let own = self.measured().of(is_own);
        let mut samples = Vec::new();
        proved(&own.cells, |those| {
            let set = set.iter().flat_map(|set| ["--set", set]);
            let plan: Vec<&str> = those.iter().copied().chain(set).collect();
            let again = Measured::in_guest(&(self.kernel)(), &plan);
            samples = again.samples;
            again.cells
        });
        samples.extend(own.samples);
        Measured {
            cells: own.cells,
            samples,
        }
    }

    fn measured(&self) -> &Measured {
        self.measured.get_or_init(|| {
            let home = tempfile::tempdir().unwrap();
            let plan = home.path().join("plan.toml");
            fs::write(&plan, format!("{HEAD}{}", self.parts)).unwrap();
            Measured::in_guest(&(self.kernel)(), &[plan.to_str().unwrap()])
        })
    }
}

/// What plans begin with. Their parts have paths, peers and loads of their own. A shorter window saves little of a cell, which an
/// emulated CPU takes some seconds for, and is missed more often.
const HEAD: &str = r#"name = "mine"
summary = "for tests of guests"
paths = ["veth"]
peers = ["local"]
loads = ["tcp_rr"]
base = "veth"
window = "500ms"
warm_up = "80ms"
blocks = "1"
half_width = "2.5%"
confidence = "95%"
margin = "2%"
"#;

/// Tunnels, MACsec and IPsec. Path `ipip` is a tunnel of IPv4 alone.
pub(super) static TUNNELS: OneGuest = OneGuest::new(
    kernel,
    r#"
[[cells]]
paths = ["vxlan", "geneve", "gre", "wireguard", "macsec"]
peers = ["local", "far"]
set = { family = 6 }

[[cells]]
paths = ["vxlan", "geneve", "gre", "ipip", "wireguard", "macsec"]
loads = ["tcp_stream"]
set = { mtu = 1500, offload = "off", message_size = "256K" }

[[cells]]
paths = ["ipsec", "ipsec-tunnel"]
set = { family = [4, 6] }
"#,
);

/// What else the oldest kernel that is tried has.
pub(super) static OLDEST: OneGuest = OneGuest::new(
    kernel,
    r#"
[[cells]]
paths = ["veth-xdp", "af-xdp", "unix", "unix-seqpacket"]
peers = ["local", "far"]
loads = ["tcp_rr", "tcp_stream"]

[[cells]]
paths = ["flowtable"]
loads = ["udp_rr", "tcp_crr"]
set = { flows = 3 }

[[cells]]
paths = ["bridge"]
loads = ["udp_stream"]
set = { containers = "own", flows = 3, scheduler = "groups" }

[[cells]]
loads = ["tcp_stream"]
set = { congestion = "htcp" }
"#,
);

/// What the newest of the backports has. Each kernel has a verifier of its own.
pub(super) static NEWEST: OneGuest = OneGuest::new(
    backported_kernel,
    r#"
[[cells]]
paths = ["netkit-redirect", "netkit-redirect-l3"]
peers = ["local", "far"]
loads = ["tcp_stream"]
set = { family = 6, mtu = 9000 }

[[cells]]
paths = ["direct", "direct-netkit", "direct-shortcut"]
"#,
);

/// A host may keep the controller for itself; in a guest nobody else wants it.
#[test]
fn processes_have_shares_of_a_guests_cpus() {
    let set = ["containers=own", "flows=3", "scheduler=groups"];
    let measured = OLDEST.proved(|path, _| path == "bridge", &set);
    let [cell] = &measured.cells[..] else {
        panic!("{:#?}", measured.cells);
    };
    assert_eq!(cell["axes"]["scheduler"], "groups");
}

/// A host loads its module when a socket asks for it; a guest has no modprobe.
#[test]
fn a_guest_gets_the_module_of_its_congestion_control() {
    let measured = OLDEST.proved(|path, _| path == "veth", &["congestion=htcp"]);
    let [cell] = &measured.cells[..] else {
        panic!("{:#?}", measured.cells);
    };
    assert_eq!(cell["axes"]["congestion"], "htcp");
}
