//! What a host must have for a path, and finding out whether it does.

use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};

use hopyard_net::{Handle, NetNs, apply_ruleset, is_in_first_user_namespace, probe_kind};
use hopyard_switch::{Hooks, NewSwitch, Switch};

use crate::LabId;
use crate::error::or_another_path;
use crate::guest::{self, Carried};
use crate::{redirect, switching};

/// Something this host must have. A path of its own kind defines its own, in its file.
///
/// Two needs of the same name are the same.
#[derive(Debug, Clone, Copy)]
pub struct Need {
    /// What it is called; of a device, what iproute2 has after `type` in `ip link add`.
    pub name: &'static str,
    /// What provides it.
    pub carried: Carried,
    /// The first release of Linux that has it, where that is later than network namespaces.
    pub since: &'static str,
    /// Is it a device, which anybody can make in a user namespace of their own?
    pub is_device: bool,
    /// Does it load eBPF programs? The kernel lets nobody do so who is root in a user namespace only.
    pub(crate) loads_programs: bool,
    /// Tries it in a throw-away namespace; gets the name.
    pub(crate) try_out: fn(&'static str) -> hopyard_net::Result<()>,
}

/// Where br_netfilter shows itself in every namespace (Linux 5.3).
const BRIDGE_NF_SYSCTL: &str = "net/bridge/bridge-nf-call-iptables";

impl Need {
    /// veth pairs.
    pub const VETH: Self = Self::kind("veth", &["veth"]);
    /// Linux bridges.
    pub const BRIDGE: Self = Self::kind("bridge", &["bridge"]);
    pub(crate) const MACVLAN: Self = Self::kind("macvlan", &["macvlan"]).since("2.6.33");
    pub(crate) const MACVTAP: Self = Self::kind("macvtap", &["macvtap"]).since("2.6.34");
    /// ipvlans, in any mode that the kernel always has.
    pub(crate) const IPVLAN: Self = Self::kind("ipvlan", &["ipvlan"]).since("3.19");
    /// VXLAN tunnels.
    pub const VXLAN: Self = Self::kind("vxlan", &["vxlan"]).since("3.7");
    /// Geneve tunnels.
    pub(crate) const GENEVE: Self = Self::kind("geneve", &["geneve"]).since("3.18");
    /// GRE tunnels for IP packets, over IPv4.
    pub const GRE: Self = Self::kind("gre", &["ip_gre"]).since("2.6.28");
    /// Tunnels for IPv4 packets in IPv4 packets.
    pub const IPIP: Self = Self::kind("ipip", &["ipip"]).since("3.8");
    /// WireGuard, encrypted tunnels.
    pub(crate) const WIREGUARD: Self = Self::kind("wireguard", &["wireguard"]).since("5.6");
    /// MACsec with AES-GCM, and the right to give its devices keys.
    pub(crate) const MACSEC: Self = Self {
        since: "4.6",
        carried: Carried::modules(&["macsec", "gcm", "ctr", "ghash_generic", "aesni_intel"]),
        ..Self::new("macsec", |_| {
            hopyard_net::probe_macsec().map_err(or_another_path)
        })
    };
    /// Routing domains.
    pub(crate) const VRF: Self = Self::kind("vrf", &["vrf"]).since("4.4");
    /// IPsec: ESP with AES-GCM, over both IP versions.
    pub const ESP: Self = Self {
        since: "2.6.25",
        carried: Carried::modules(&[
            "xfrm_user",
            "esp4",
            "esp6",
            "gcm",
            "ctr",
            "ghash_generic",
            "seqiv",
            "echainiv",
            "drbg",
            "jitterentropy_rng",
            "sha512_generic",
            "aesni_intel",
        ]),
        ..Self::new("ipsec", |_| {
            hopyard_net::probe_esp().map_err(or_another_path)
        })
    };
    /// netkit pairs.
    pub(crate) const NETKIT: Self = Self::kind("netkit", &["netkit"]).since("6.7");
    /// Bridges whose frames pass through netfilter.
    pub const BRIDGE_NETFILTER: Self = Self {
        since: "5.3",
        carried: Carried::modules(&["br_netfilter"]),
        ..Self::new("br_netfilter", |_| probe_bridge_netfilter())
    };
    /// Packet filter rules, and the program that loads them.
    pub const FILTER: Self = Self {
        since: "3.14",
        carried: Carried {
            programs: &["nft"],
            ..Carried::modules(&["nf_tables"])
        },
        ..Self::new("nftables", |_| {
            apply_ruleset(&NetNs::create()?, "table inet probe {}")
        })
    };
    /// eBPF programs of netkit pairs.
    pub(crate) const NETKIT_PROGRAMS: Self = Self {
        since: "6.7",
        carried: Carried::modules(&["netkit"]),
        ..Self::new("netkit programs", |_| redirect::probe_netkit()).with_programs()
    };
    /// XDP in the driver of a veth, for frames of any length.
    pub const XDP: Self = Self {
        since: "5.18",
        carried: Carried::modules(&["veth"]),
        ..Self::new("xdp", |_| redirect::probe_xdp()).with_programs()
    };
    /// Hooks for eBPF programs and a BPF file system, which the direct switch lives on.
    pub const DIRECT_SWITCH: Self = Self {
        since: "6.2",
        carried: Carried::modules(&["sch_ingress", "cls_bpf"]),
        ..Self::new("direct switch", |_| probe_switch()).with_programs()
    };
    /// Hooks for eBPF programs at a wire, and a shaper beside it.
    pub(crate) const CLASSIFIERS: Self = Self {
        since: "5.12",
        carried: Carried::modules(&["sch_ingress", "cls_bpf", "sch_tbf"]),
        ..Self::new("eBPF classifiers", |_| crate::wire::pauses::probe()).with_programs()
    };
    /// Hooks of the newer kind for it.
    pub const TCX: Self = Self::new("tcx", |_| probe_tcx()).since("6.6");
    /// QEMU, and a kernel to boot. There are no guests within guests, so it carries nothing.
    pub const GUEST: Self = Self::new("guest", |_| guest::probe());

    /// Something that nothing has to be carried for.
    pub(crate) const fn new(
        name: &'static str,
        try_out: fn(&'static str) -> hopyard_net::Result<()>,
    ) -> Self {
        Self {
            name,
            carried: Carried::modules(&[]),
            since: "",
            is_device: false,
            loads_programs: false,
            try_out,
        }
    }

    /// With the first release of Linux that has it.
    pub(crate) const fn since(self, release: &'static str) -> Self {
        Self {
            since: release,
            ..self
        }
    }

    /// The same for something that loads eBPF programs.
    pub(crate) const fn with_programs(self) -> Self {
        Self {
            loads_programs: true,
            ..self
        }
    }

    /// A kind of device that [`probe_kind`] knows.
    const fn kind(name: &'static str, modules: &'static [&'static str]) -> Self {
        Self {
            carried: Carried::modules(modules),
            is_device: true,
            ..Self::new(name, |name| probe_kind(name).map_err(or_another_path))
        }
    }

    /// Tries it in a throw-away namespace, once per process.
    pub(super) fn probe(self) -> hopyard_net::Result<()> {
        static MET: Mutex<BTreeSet<&'static str>> = Mutex::new(BTreeSet::new());
        let met = || MET.lock().unwrap_or_else(PoisonError::into_inner);
        if met().contains(self.name) {
            return Ok(());
        }
        if self.loads_programs && !is_in_first_user_namespace() {
            let what = format!("load eBPF programs ({})", self.name);
            return Err(hopyard_net::Error::Denied { what });
        }
        (self.try_out)(self.name)?;
        met().insert(self.name);
        Ok(())
    }
}

impl PartialEq for Need {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

impl Eq for Need {}

fn probe_tcx() -> hopyard_net::Result<()> {
    if hopyard_switch::has_tcx() {
        return Ok(());
    }
    Err(hopyard_net::Error::Unsupported {
        what: "attach the programs of a direct switch".to_owned(),
        feature: "tcx".to_owned(),
        remedy: "this needs Linux 6.6 or newer; set `hook=clsact` on older kernels".to_owned(),
    })
}

fn probe_bridge_netfilter() -> hopyard_net::Result<()> {
    if Handle::new(&NetNs::create()?)?.has_sysctl(BRIDGE_NF_SYSCTL) {
        return Ok(());
    }
    Err(hopyard_net::Error::Unsupported {
        what: "pass bridged frames through netfilter".to_owned(),
        feature: "br_netfilter".to_owned(),
        remedy: "load module `br_netfilter` (it acts on every bridge of the host at once: see \
                 net.bridge.bridge-nf-call-iptables), or choose path `bridge`"
            .to_owned(),
    })
}

/// Makes a switch without ports and removes it; where it would have classifiers, sees whether a device takes them.
fn probe_switch() -> hopyard_net::Result<()> {
    let name = LabId::next().switch_name();
    let new = NewSwitch {
        name: &name,
        hooks: switching::hooks(None, 0),
        ..NewSwitch::default()
    };
    if new.hooks == Hooks::Clsact {
        Handle::new(&NetNs::create()?)?.add_clsact("lo")?;
    }
    Switch::create(&new)
        .and_then(Switch::delete)
        .map_err(|error| match error {
            hopyard_switch::Error::Net(error) => error,
            other => hopyard_net::Error::Unsupported {
                what: "make a direct switch".to_owned(),
                feature: "eBPF programs at its devices".to_owned(),
                remedy: format!(
                    "this needs Linux 6.2 or newer with CONFIG_BPF_SYSCALL, CONFIG_NET_CLS_ACT and CONFIG_DEBUG_INFO_BTF, and \
                     CAP_BPF ({}), or choose another path",
                    crate::chain(&other)
                ),
            },
        })
}
