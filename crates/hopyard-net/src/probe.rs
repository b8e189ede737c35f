//! Finding out what the kernel can make, by making it.

use std::net::{IpAddr, Ipv4Addr};
use std::path::Path;

use crate::error::{Error, Result};
use crate::handle::Handle;
use crate::kind::{BridgeSettings, IpvlanMode, LinkKind, MacvlanMode, NetkitLayer, NewLink};
use crate::netns::NetNs;

/// The kinds [`probe_kind`] knows, by the kernel's names.
pub const KINDS: [&str; 13] = [
    "veth",
    "bridge",
    "macvlan",
    "macvtap",
    "ipvlan",
    "vxlan",
    "geneve",
    "gre",
    "ipip",
    "wireguard",
    "macsec",
    "vrf",
    "netkit",
];

/// Kinds whose module, as it is loaded, puts devices of its own into every namespace of the host; the module, and those devices.
const EVERYWHERE: [(&str, &str, &str); 2] = [
    ("gre", "ip_gre", "`gre0`, `gretap0` and `erspan0`"),
    ("ipip", "ipip", "`tunl0`"),
];

/// Whether this kernel can make a kind of device: makes one in a namespace of its own that goes away
/// with it. Loads the module if the kernel can, unless that would put devices into every namespace.
///
/// # Errors
/// [`Error::Unsupported`] if it cannot, [`Error::Invalid`] for a name not in [`KINDS`],
/// [`Error::Denied`] without root.
pub fn probe_kind(kind: &str) -> Result<()> {
    let everywhere = EVERYWHERE.iter().find(|(name, ..)| *name == kind);
    if let Some((_, module, devices)) = everywhere
        && !Path::new("/sys/module").join(module).exists()
    {
        return Err(Error::Unsupported {
            what: format!("create {kind} `probe`"),
            feature: kind.to_owned(),
            remedy: format!(
                "load module `{module}` yourself, since it puts {devices} into every namespace of this host unless \
                 net.core.fb_tunnels_only_for_init_net is 2"
            ),
        });
    }
    let lower = || "lower".to_owned();
    let peer = || "peer".to_owned();
    let [local, remote] = [1, 2].map(|host| Ipv4Addr::new(192, 0, 2, host));
    let kind = match kind {
        "veth" => LinkKind::veth(peer(), None),
        "bridge" => LinkKind::Bridge(BridgeSettings::default()),
        "macvlan" => LinkKind::Macvlan {
            lower: lower(),
            mode: MacvlanMode::Bridge,
        },
        "macvtap" => LinkKind::Macvtap {
            lower: lower(),
            mode: MacvlanMode::Bridge,
        },
        "ipvlan" => LinkKind::Ipvlan {
            lower: lower(),
            mode: IpvlanMode::L2,
        },
        "vxlan" => LinkKind::Vxlan {
            vni: 1,
            local: IpAddr::V4(local),
            remote: IpAddr::V4(remote),
            port: 4789,
            lower: None,
        },
        "geneve" => LinkKind::Geneve {
            vni: 1,
            remote: IpAddr::V4(remote),
            port: 6081,
        },
        "gre" => LinkKind::Gre { local, remote },
        "ipip" => LinkKind::Ipip { local, remote },
        "wireguard" => LinkKind::Wireguard,
        "macsec" => LinkKind::Macsec { lower: lower() },
        "vrf" => LinkKind::Vrf { table: 10 },
        "netkit" => LinkKind::Netkit {
            mode: NetkitLayer::L2,
            peer: peer(),
            peer_ns: None,
            peer_mac: None,
        },
        other => {
            let why = format!("it is none of {}", KINDS.join(", "));
            return Err(Error::invalid(format!("probe device kind `{other}`"), why));
        }
    };
    probe_link(kind)
}

/// Whether this kernel can make a device as described, for what [`probe_kind`] does not try: a mode, an option.
/// The device below, where the kind has one, is made too.
///
/// # Errors
/// [`Error::Unsupported`] if it cannot, [`Error::Denied`] without root.
pub fn probe_link(kind: LinkKind<'_>) -> Result<()> {
    let handle = Handle::new(&NetNs::create()?)?;
    if let Some(lower) = kind.lower() {
        handle.add_link(&NewLink::new(lower, LinkKind::veth("other", None)))?;
    }
    // The file that the kernel makes for it is seen in every namespace, and would go in the background.
    let has_file = matches!(kind, LinkKind::Macvtap { .. });
    handle.add_link(&NewLink::new("probe", kind))?;
    if has_file {
        handle.delete_link("probe")?;
    }
    Ok(())
}

/// Whether this kernel can shape a device to a rate, see [`Handle::shape`].
///
/// # Errors
/// [`Error::Unsupported`] if it cannot, [`Error::Denied`] without root.
pub fn probe_shaping() -> Result<()> {
    let handle = Handle::new(&NetNs::create()?)?;
    handle.add_link(&NewLink::new("probe", LinkKind::veth("peer", None)))?;
    handle.shape("probe", 1_000_000_000).map(drop)
}
