//! `as-is`: between two endpoints that stand already; nothing is built.

use std::time::Duration;

use super::Path;
use crate::model::{AXES, Axes, Decides, Peer};
use crate::{Builder, Error, Result, Topology};

/// Axes of labs that decide something else than what is built.
const LEFT: [&str; 2] = ["family", "placement"];

pub(super) static AS_IS: Path = Path {
    name: "as-is",
    summary: "nothing is built: between two endpoints as they are, with their own interfaces and routes, which --client and \
     --server name (by name only)",
    peers: &[Peer::Local],
    mtu_owner: "whoever set it up",
    by_name_only: true,
    is_built: false,
    // Two connections are made for each sample, and another machine is looked at before it has a load.
    extra_time: Duration::from_millis(700),
    ..Path::new(build)
};

fn build(lab: &mut Builder, _: Peer) -> Result<Topology> {
    refuse(lab.axes())?;
    lab.reach(AS_IS.name)
}

/// What decides how a lab is built decides nothing here.
fn refuse(axes: &Axes) -> Result<()> {
    let usual = Axes::default();
    let of_lab = |decides| matches!(decides, Decides::Lab | Decides::LabOfProcesses);
    for axis in AXES.iter().filter(|axis| of_lab(axis.decides)) {
        let wanted = (axis.show)(axes);
        let mut without = axes.clone();
        (axis.clear)(&mut without);
        // An axis that says nothing for a load or peer is cleared.
        let is_usual = [&usual, &without].map(|axes| (axis.show)(axes) == wanted);
        if !LEFT.contains(&axis.name) && is_usual == [false, false] {
            return Err(Error::NotBuilt {
                path: AS_IS.name,
                axis: axis.name,
                value: wanted.unwrap_or_default(),
            });
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_would_have_to_be_built_is_refused_by_name() {
        refuse(&Axes::default().of_lab()).unwrap();
        for (name, value) in [("mtu", "9000"), ("tso", "off"), ("rate", "100mbit")] {
            let mut axes = Axes::default();
            let axis = crate::model::axis(name).unwrap();
            (axis.set)(&mut axes, value).unwrap();
            let error = refuse(&axes.of_lab()).unwrap_err().to_string();
            assert!(error.contains(&format!("`{name}=")), "{error}");
        }
        let mut axes = Axes::default();
        for (name, value) in [("family", "6"), ("placement", "free"), ("flows", "4")] {
            (crate::model::axis(name).unwrap().set)(&mut axes, value).unwrap();
        }
        refuse(&axes.of_lab()).unwrap();
    }
}
