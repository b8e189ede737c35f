use super::*;
use crate::{LoadKind, Peer, Rate};

/// Every axis at a value that is not its default.
fn every_axis() -> Axes {
    let mut axes = Axes::default();
    for axis in AXES {
        (axis.set)(&mut axes, axis.other).unwrap();
    }
    axes
}

#[test]
fn every_axis_takes_its_own_shown_value_back() {
    let axes = every_axis();
    let mut again = Axes::default();
    for axis in AXES {
        let text = (axis.show)(&axes).unwrap_or_else(|| panic!("{} was not set", axis.name));
        (axis.set)(&mut again, &text).unwrap();
    }
    assert_eq!(axes, again, "a value does not read back");
}

/// Cells that differ in one axis only are equal without it. Means and curves are made of such cells.
#[test]
fn every_axis_can_be_taken_out() {
    let all = every_axis();
    for axis in AXES {
        let mut without = all.clone();
        (axis.clear)(&mut without);
        for other in AXES {
            let (now, then) = ((other.show)(&without), (other.show)(&all));
            assert_eq!(
                now != then,
                other.name == axis.name,
                "{} without {}: {now:?}",
                other.name,
                axis.name
            );
        }
    }
}

/// Amounts are numbers in JSON, and names are texts, also those that look like a number: `family=4`.
#[test]
fn amounts_are_the_numbers() {
    let json = serde_json::to_value(every_axis()).unwrap();
    for axis in AXES {
        assert_eq!(
            axis.is_quantity,
            json[axis.key].is_number(),
            "{}",
            axis.name
        );
        assert!(axis.is_quantity || !axis.counts, "{}", axis.name);
    }
}

/// A wire without a limit is not the same as no wire.
#[test]
fn no_rate_is_stored_as_such() {
    let with = |rate_bps, pace_bps| Axes {
        rate_bps,
        pace_bps,
        ..Axes::default()
    };
    let some = Some(Rate(Some(1_000_000)));
    for axes in [
        with(Some(Rate(None)), Some(Rate(None))),
        with(some, some),
        with(None, None),
    ] {
        let stored = serde_json::to_string(&axes).unwrap();
        assert_eq!(
            serde_json::from_str::<Axes>(&stored).unwrap(),
            axes,
            "{stored}"
        );
    }
}

#[test]
fn what_does_not_apply_is_left_out() {
    let axes = Axes {
        pace_bps: Some(Rate(Some(1))),
        rules: Some(7),
        ..Axes::default()
    };
    let cell = axes.for_cell(LoadKind::UdpRr, Peer::Local, &[]);
    assert_eq!(cell.message_size_bytes, None);
    assert_eq!(cell.congestion, None);
    assert_eq!(cell.rate_bps, None);
    assert_eq!(cell.request_size_bytes, Some(1));
    assert_eq!((cell.pace_bps, cell.rules), (None, None));
    let cell = axes.for_cell(LoadKind::TcpStream, Peer::Far, &["rules"]);
    assert_eq!(cell.message_size_bytes, Some(16384));
    assert_eq!(cell.rate_bps, Some(Rate(None)));
    assert_eq!((cell.pace_bps, cell.rules), (Some(Rate(Some(1))), Some(7)));
}

#[test]
fn a_wrong_value_says_what_is_right() {
    let mut axes = Axes::default();
    let say = |name: &str, value: &str, axes: &mut Axes| {
        (axis(name).unwrap().set)(axes, value)
            .unwrap_err()
            .to_string()
    };
    assert_eq!(
        say("mtu", "100", &mut axes),
        "`100` is out of bounds: mtu goes from 1280 to 65535"
    );
    assert_eq!(
        say("placement", "here", &mut axes),
        "there is no placement `here`: choose same, split, free"
    );
    assert!(
        axis("colour")
            .err()
            .unwrap()
            .to_string()
            .starts_with("there is no axis `colour`")
    );
}

#[test]
fn a_path_without_devices_lacks_what_is_about_them() {
    let asked = Axes {
        mtu_bytes: 9000,
        tso: Some(Switch::Off),
        ..Axes::default()
    };
    let with = asked.for_cell(LoadKind::TcpRr, Peer::Local, &[]);
    let without = with.without_devices();
    for axis in AXES.iter().filter(|axis| !axis.of_path) {
        assert!(
            !axis.is_lacked(LoadKind::TcpRr, &with) || !(axis.fits)(LoadKind::TcpRr, Peer::Local)
        );
        if axis.of_devices {
            assert!(axis.is_lacked(LoadKind::TcpRr, &without), "{}", axis.name);
            assert_eq!(axis.value(LoadKind::TcpRr, &without), None, "{}", axis.name);
        } else {
            assert_eq!((axis.show)(&without), (axis.show)(&with), "{}", axis.name);
        }
    }
    // A load without TCP has no congestion control on any path.
    let datagrams = asked.for_cell(LoadKind::UdpRr, Peer::Local, &[]);
    let mtu = axis("mtu").unwrap();
    assert_eq!(
        mtu.value(LoadKind::UdpRr, &datagrams).as_deref(),
        Some("9000")
    );
}
