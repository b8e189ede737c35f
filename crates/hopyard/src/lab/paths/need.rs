//! What a host must have for a path, and finding out whether it does.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use hopyard_net::{Handle, NetNs, apply_ruleset, probe_kind};
use hopyard_switch::{Hooks, NewSwitch, Switch};

use crate::guest;
use crate::lab::switching;
use crate::lab::{LabId, ovs, tap, vde};

/// Something this host must have.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Need {
    /// A kind of device.
    Kind(&'static str),
    /// Bridges whose frames pass through netfilter.
    BridgeNetfilter,
    /// Packet filter rules, and the program that loads them.
    Filter,
    /// Hooks for eBPF programs and a BPF file system, which the direct switch lives on.
    DirectSwitch,
    /// Hooks of the newer kind for it.
    Tcx,
    /// The programs of Open vSwitch, and a datapath for them.
    OpenVswitch,
    /// QEMU, and a kernel to boot.
    Guest,
    /// Multi-queue taps, and io_uring for the switch that joins them.
    Taps,
    /// vde_switch, and taps for it.
    Vde,
}

/// Where br_netfilter shows itself in every namespace (Linux 5.3).
const BRIDGE_NF_SYSCTL: &str = "net/bridge/bridge-nf-call-iptables";

/// What a machine must carry for a [`Need`] to be met, where its kernel does not have it built in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Carried {
    /// Modules of the kernel; those they depend on come along.
    pub modules: &'static [&'static str],
    /// Programs, as found in PATH.
    pub programs: &'static [&'static str],
    /// Files that the programs read.
    pub files: &'static [&'static str],
}

impl Need {
    /// What a machine of our own must carry to meet it.
    #[must_use]
    pub fn carried(&'static self) -> Carried {
        let modules = |modules| Carried {
            modules,
            programs: &[],
            files: &[],
        };
        match self {
            Self::Kind(kind) => modules(std::slice::from_ref(kind)),
            Self::BridgeNetfilter => modules(&["br_netfilter"]),
            // No guests within guests.
            Self::DirectSwitch => modules(&["sch_ingress", "cls_bpf"]),
            Self::Tcx | Self::Guest => modules(&[]),
            Self::Filter => Carried {
                programs: &["nft"],
                ..modules(&["nf_tables"])
            },
            Self::Taps => modules(&["tun"]),
            Self::Vde => Carried {
                programs: &[vde::SWITCH.name],
                ..modules(&["tun"])
            },
            Self::OpenVswitch => Carried {
                programs: ovs::PROGRAMS,
                files: ovs::FILES,
                ..modules(&["openvswitch", "tun"])
            },
        }
    }

    /// Tries it in a throw-away namespace, once per process.
    pub(super) fn probe(self) -> hopyard_net::Result<()> {
        static KNOWN: Mutex<Option<HashMap<Need, bool>>> = Mutex::new(None);
        let known = |found: Option<bool>| {
            let mut guard = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
            let map = guard.get_or_insert_with(HashMap::new);
            match found {
                Some(found) => map.insert(self, found),
                None => map.get(&self).copied(),
            }
        };
        if known(None) == Some(true) {
            return Ok(());
        }
        let outcome = self.try_out();
        known(Some(outcome.is_ok()));
        outcome
    }

    fn try_out(self) -> hopyard_net::Result<()> {
        match self {
            Self::Kind(kind) => probe_kind(kind),
            Self::DirectSwitch => probe_switch(),
            Self::Tcx if hopyard_switch::has_tcx() => Ok(()),
            Self::Tcx => Err(hopyard_net::Error::Unsupported {
                what: "attach the programs of a direct switch".to_owned(),
                feature: "tcx".to_owned(),
                remedy: "this needs Linux 6.6 or newer; set `hook=clsact` on older kernels"
                    .to_owned(),
            }),
            Self::Filter => apply_ruleset(&NetNs::create()?, "table inet probe {}"),
            Self::OpenVswitch => ovs::probe(),
            Self::Guest => guest::probe(),
            Self::Taps => tap::probe(),
            Self::Vde => vde::probe(),
            Self::BridgeNetfilter => {
                let handle = Handle::new(&NetNs::create()?)?;
                if handle.has_sysctl(BRIDGE_NF_SYSCTL) {
                    return Ok(());
                }
                Err(hopyard_net::Error::Unsupported {
                    what: "pass bridged frames through netfilter".to_owned(),
                    feature: "br_netfilter".to_owned(),
                    remedy:
                        "load module `br_netfilter` (it acts on every bridge of the host at once: \
                             see net.bridge.bridge-nf-call-iptables), or choose path `bridge`"
                            .to_owned(),
                })
            }
        }
    }
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
                    "this needs Linux 5.17 or newer with CONFIG_BPF_SYSCALL and CONFIG_NET_CLS_ACT, and \
                     CAP_BPF ({}), or choose another path",
                    crate::chain(&other)
                ),
            },
        })
}
