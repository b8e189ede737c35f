//! Which programs a switch has, for which hooks, and the names of their files.

use aya::programs::TcAttachType;
use hopyard_net::Side;

/// Where the kernel runs the programs.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Hooks {
    /// tcx, with links that are pinned beside the maps (Linux 6.6).
    #[default]
    Tcx,
    /// A classifier of the device's `clsact`, as before tcx. To attach one does not wait for the packets under way, so a
    /// thousand take a tenth of a second. But they go with their device and not with the switch's files, and only
    /// from within the namespace: this is for namespaces that are made for the switch and end with it.
    Clsact,
}

/// A program and the hook it is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Hook {
    Port,
    UplinkIn,
    UplinkOut,
}

impl Hook {
    pub(crate) const ALL: [Self; 3] = [Self::Port, Self::UplinkIn, Self::UplinkOut];

    /// The name of its program in the object and in the kernel.
    pub(crate) fn program(self) -> &'static str {
        match self {
            Self::Port => "hopyard_port_in",
            Self::UplinkIn => "hopyard_up_in",
            Self::UplinkOut => "hopyard_up_out",
        }
    }

    pub(crate) fn attach_type(self) -> TcAttachType {
        match self {
            Self::Port | Self::UplinkIn => TcAttachType::Ingress,
            Self::UplinkOut => TcAttachType::Egress,
        }
    }

    pub(crate) fn side(self) -> Side {
        match self {
            Self::Port | Self::UplinkIn => Side::Ingress,
            Self::UplinkOut => Side::Egress,
        }
    }
}

/// The program that tells of a device.
pub(crate) const DEVICE: &str = "hopyard_device";

/// The program that runs where the guest of a netkit sends. A switch loads it with its first netkit port.
pub(crate) const GUEST: &str = "hopyard_guest";

/// The names of all programs.
pub(crate) fn programs() -> impl Iterator<Item = &'static str> {
    let of_hooks = Hook::ALL.map(Hook::program).into_iter();
    of_hooks.chain([DEVICE, GUEST])
}

/// Before the slot in the name of a link's file.
const PORT_LINK: &str = "link-port-";
const GUEST_LINK: &str = "link-guest-";

/// The file of the link at a port's hook.
pub(crate) fn port_link(slot: u32) -> String {
    format!("{PORT_LINK}{slot}")
}

/// The file of the link of the program that runs where the guest of a netkit sends.
pub(crate) fn guest_link(slot: u32) -> String {
    format!("{GUEST_LINK}{slot}")
}

/// The file of the link at one of the uplink's hooks.
pub(crate) fn uplink_link(hook: Hook) -> &'static str {
    match hook {
        Hook::UplinkOut => "link-uplink-out",
        _ => "link-uplink-in",
    }
}

/// The file of the link at a hook of the device that is about to be the uplink.
pub(crate) fn fresh_uplink_link(hook: Hook) -> &'static str {
    match hook {
        Hook::UplinkOut => "new-link-uplink-out",
        _ => "new-link-uplink-in",
    }
}

pub(crate) fn program_file(program: &str) -> String {
    format!("program-{program}")
}

/// Is this the name of a file of a program or of a link?
pub(crate) fn is_file_of_a_program(name: &str) -> bool {
    let is_program = |program| name == program_file(program) || name == fresh_file(program);
    let is_link = |hook| name == uplink_link(hook) || name == fresh_uplink_link(hook);
    let is_of_a_slot = |prefix| {
        name.strip_prefix(prefix)
            .is_some_and(|slot| slot.parse::<u32>().is_ok())
    };
    programs().any(is_program)
        || Hook::ALL.into_iter().any(is_link)
        || [PORT_LINK, GUEST_LINK].into_iter().any(is_of_a_slot)
}

/// The file of a program that is loaded, and not yet the one to run.
pub(crate) fn fresh_file(program: &str) -> String {
    format!("new-{program}")
}
