//! What cells are compared with.

use super::{AXES, Axes, Axis, AxisError, Cell, Containers, OffloadChange, as_axis, axis};

/// What cells are compared with: the same cell on another path, at another value of an axis, or with all offloads
/// switched.
#[derive(Clone, Copy)]
pub enum Base<'a> {
    /// A path.
    Path(&'a str),
    /// `AXIS=VALUE`.
    Value(&'static Axis, &'a str),
    /// [`Base::OFFLOAD`]: all offloads on or off, as the cell has them apart from single flags. A cell with all off is
    /// compared with all on.
    Offload,
}

impl Base<'_> {
    /// The text for [`Base::Offload`].
    pub const OFFLOAD: &'static str = "offload";
}

impl<'a> Base<'a> {
    /// Reads `PATH`, `AXIS=VALUE` or `offload`. The model does not know which paths exist.
    ///
    /// # Errors
    /// There is no such axis, or it has no such value.
    pub fn parse(text: &'a str) -> Result<Self, AxisError> {
        let Some((name, value)) = text.split_once('=') else {
            return Ok(match text {
                Base::OFFLOAD => Self::Offload,
                path => Self::Path(path),
            });
        };
        let (name, whole) = as_axis(name.trim(), value.trim());
        let axis = axis(&name)?;
        (axis.set)(&mut Axes::default(), &whole)?;
        // The name of a switch of a device belongs to its value.
        let value = if whole == value.trim() { value } else { text };
        Ok(Self::Value(axis, value.trim()))
    }

    /// Whether others are compared with this cell.
    #[must_use]
    pub fn is(&self, path: &str, axes: &Axes) -> bool {
        match self {
            Self::Path(base) => *base == path,
            Self::Value(..) | Self::Offload => self.axes(axes).is_some_and(|base| base == *axes),
        }
    }

    /// Whether `cell` is compared with `other`.
    ///
    /// A path without an axis that only some paths have counts as equal at each of its values.
    #[must_use]
    pub fn is_of(&self, cell: &Cell, other: &Cell) -> bool {
        if (cell.load, cell.peer) != (other.load, other.peer) {
            return false;
        }
        match self {
            Self::Path(path) => {
                let same = |axis: &Axis| {
                    let theirs = (axis.show)(&other.axes);
                    (axis.of_path && theirs.is_none())
                        || theirs == (axis.show)(&cell.axes)
                        || are_native_senders(axis, cell, other)
                };
                other.path == *path && AXES.iter().all(same)
            }
            Self::Value(..) | Self::Offload => {
                other.path == cell.path
                    && self.axes(&cell.axes).is_some_and(|axes| axes == other.axes)
            }
        }
    }

    /// Whether `other` equals the base of `cell`, apart from axes that one of the two paths lacks. Several cells may.
    #[must_use]
    pub fn is_like(&self, cell: &Cell, other: &Cell) -> bool {
        let Self::Path(path) = self else {
            return false;
        };
        let is_lacked = |axis: &Axis, cell: &Cell| axis.is_lacked(cell.load, &cell.axes);
        let alike = |axis: &Axis| {
            let (own, theirs) = ((axis.show)(&cell.axes), (axis.show)(&other.axes));
            own == theirs || is_lacked(axis, cell) || is_lacked(axis, other)
        };
        (cell.load, cell.peer) == (other.load, other.peer)
            && other.path == *path
            && AXES.iter().all(alike)
    }

    /// These axes with the value of the base, if the base is a value.
    fn axes(&self, axes: &Axes) -> Option<Axes> {
        match self {
            Self::Path(_) => None,
            Self::Value(axis, value) => {
                (axis.show)(axes)?;
                let mut base = axes.clone();
                (axis.set)(&mut base, value).ok()?;
                // Of several switches of devices, the base has one switched the other way.
                let switches = (&axes.device_offload, &base.device_offload);
                if let (Some(own), Some(wanted)) = switches
                    && own != wanted
                    && let Some(at) = own.at(wanted)
                {
                    base.device_offload = Some(at);
                }
                Some(base)
            }
            Self::Offload => Some(OffloadChange::of(axes)?.base().with(axes)),
        }
    }
}

/// Whether senders in containers are compared with those of path `native`, which has only the host's own processes.
fn are_native_senders(axis: &Axis, cell: &Cell, other: &Cell) -> bool {
    const NATIVE: &str = "native";
    axis.name == "containers"
        && other.path == NATIVE
        && cell.axes.containers.is_some()
        && other.axes.containers == Some(Containers::Native)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{LoadKind, Peer};

    fn cell(path: &str, own: &[&str], set: &[(&str, &str)]) -> Cell {
        let mut axes = Axes::default();
        for (name, value) in set {
            (axis(name).unwrap().set)(&mut axes, value).unwrap();
        }
        let (load, peer) = (LoadKind::TcpRr, Peer::Local);
        Cell {
            path: path.to_owned(),
            peer,
            load,
            axes: axes.for_cell(load, peer, own),
        }
    }

    #[test]
    fn a_path_without_the_axis_is_the_base_of_every_value() {
        let base = Base::parse("veth").unwrap();
        let bridge = |rules| cell("bridge", &["rules"], &[("rules", rules)]);
        let veth = cell("veth", &[], &[("rules", "0")]);
        assert!(base.is_of(&bridge("0"), &veth) && base.is_of(&bridge("100"), &veth));
        assert!(!base.is_of(&bridge("0"), &cell("veth", &[], &[("mtu", "9000")])));
        let base = Base::parse("bridge").unwrap();
        assert!(base.is_like(&veth, &bridge("0")) && base.is_like(&veth, &bridge("100")));
        assert!(!base.is_like(&bridge("0"), &bridge("100")) && !base.is_like(&veth, &veth));
        assert!(
            base.is_of(&bridge("0"), &bridge("0")) && !base.is_of(&bridge("0"), &bridge("100"))
        );
    }

    #[test]
    fn containers_are_compared_with_processes_of_the_host() {
        let base = Base::parse("native").unwrap();
        let of = |path: &str, containers: &str, flows: &str| {
            cell(
                path,
                &["containers"],
                &[("containers", containers), ("flows", flows)],
            )
        };
        let native = of("native", "native", "8");
        for containers in ["own", "native"] {
            assert!(base.is_of(&of("macvlan", containers, "8"), &native));
            assert!(!base.is_of(&of("macvlan", containers, "4"), &native));
        }
        let alone = cell("native", &[], &[("flows", "8")]);
        assert!(!base.is_of(&alone, &native));
    }

    #[test]
    fn a_value_is_the_base_on_the_same_path() {
        let base = Base::parse("ports=2").unwrap();
        let direct = |ports| cell("direct", &["ports"], &[("ports", ports)]);
        assert!(base.is_of(&direct("1000"), &direct("2")));
        assert!(!base.is_of(&direct("1000"), &direct("10")));
        assert!(base.is("direct", &direct("2").axes) && !base.is("direct", &direct("3").axes));
        let veth = cell("veth", &[], &[]);
        assert!(!base.is_of(&veth, &veth) && !base.is("veth", &veth.axes));
    }

    #[test]
    fn offloads_are_compared_with_all_on_or_all_off() {
        let base = Base::parse("offload").unwrap();
        let veth = |set: &[(&str, &str)]| cell("veth", &[], set);
        let (on, off) = (veth(&[("offload", "on")]), veth(&[("offload", "off")]));
        let without = veth(&[("offload", "on"), ("tso", "off"), ("gso", "off")]);
        assert!(base.is_of(&without, &on) && !base.is_of(&without, &off));
        let with = veth(&[("offload", "off"), ("gro", "on")]);
        assert!(base.is_of(&with, &off) && !base.is_of(&with, &on));
        assert!(base.is_of(&off, &on) && base.is_of(&on, &on));
        assert!(base.is("veth", &on.axes) && !base.is("veth", &off.axes));
        // A cell with another size is another cell, and a cell without the axis has no base.
        let small = veth(&[("offload", "on"), ("request_size", "64")]);
        assert!(!base.is_of(&small, &on));
        assert!(!base.is_of(&veth(&[("tso", "off")]), &on));
        assert!(!base.is("veth", &veth(&[]).axes));
    }

    #[test]
    fn a_switch_of_a_device_is_a_base() {
        let veth = |value: &str| cell("veth", &[], &[("device_offload", value)]);
        let base = Base::parse("gro@b/eth0=on").unwrap();
        let (on, off) = (veth("gro@b/eth0=on"), veth("gro@b/eth0=off"));
        assert!(base.is_of(&off, &on) && base.is("veth", &on.axes) && !base.is("veth", &off.axes));
        // The other device's switch stays unchanged.
        let both = |value: &str| veth(&format!("{value}+tso@a/eth0=off"));
        let (on, off) = (both("gro@b/eth0=on"), both("gro@b/eth0=off"));
        assert!(base.is_of(&off, &on) && !base.is_of(&off, &veth("gro@b/eth0=on")));
        let none = Base::parse("device_offload=none").unwrap();
        assert!(none.is_of(&off, &veth("none")));
        assert!(Base::parse("gro@=on").is_err());
    }

    #[test]
    fn a_path_without_devices_is_beside_any_mtu() {
        let veth = cell("veth", &[], &[("mtu", "9000"), ("tso", "off")]);
        let unix = Cell {
            path: "unix".to_owned(),
            axes: veth.axes.without_devices(),
            ..veth.clone()
        };
        let base = Base::parse("veth").unwrap();
        assert!(!base.is_of(&unix, &veth) && base.is_like(&unix, &veth));
        let more = cell("veth", &[], &[("mtu", "9000"), ("flows", "4")]);
        assert!(!base.is_like(&unix, &more));
    }

    #[test]
    fn a_base_that_is_none() {
        assert!(Base::parse("colour=red").is_err());
        assert!(Base::parse("ports=many").is_err());
    }
}
