use super::*;
use crate::{Axes, Peer};

fn each(check: impl Fn(LoadKind, &'static Load)) {
    for load in LoadKind::ALL {
        check(load, load.info());
    }
}

#[test]
fn every_load_has_one_name() {
    each(|load, info| {
        assert_eq!(serde_json::to_value(load).unwrap(), info.name);
        assert_eq!(info.name.parse(), Ok(load));
        let named = LoadKind::ALL.map(LoadKind::name);
        assert_eq!(named.iter().filter(|name| **name == info.name).count(), 1);
        assert!(
            !info.summary.is_empty() && info.summary.len() < 72,
            "{load}"
        );
    });
    let error = "udp".parse::<LoadKind>().unwrap_err().to_string();
    for name in LoadKind::ALL.map(LoadKind::name) {
        assert!(error.contains(name), "{error}");
    }
}

#[test]
fn every_load_counts_what_its_shape_carries() {
    each(|load, info| {
        let (unit, passing) = match (info.shape, info.protocol) {
            (Shape::Stream { .. }, Protocol::Tcp) => (Unit::Byte, Passing::Segments),
            (Shape::Stream { .. }, Protocol::Udp) => (Unit::Packet, Passing::Datagrams),
            (Shape::Transactions(_), _) => (Unit::Transaction, info.passing),
        };
        assert_eq!((info.unit, info.passing), (unit, passing), "{load}");
        if let Passing::Exchanges {
            least,
            most_beside_data,
        } = info.passing
        {
            assert!(!load.is_stream(), "{load}");
            assert!(1.0 <= least && least <= most_beside_data, "{load}");
        }
    });
}

/// The receiver of numbered datagrams keeps a journal of one window, and an open loop that pauses is late.
#[test]
fn numbered_datagrams_do_not_pause() {
    each(|load, info| assert!(!(info.turn.is_some() && load.is_numbered()), "{load}"));
}

#[test]
fn every_load_can_be_made_with_the_default_axes() {
    each(|load, info| {
        let axes = Axes::default().for_cell(load, Peer::Local, &[]);
        assert_eq!((info.fits)(axes.packets()), Ok(()), "{load}");
        let of_one_size = load.is_stream() && !load.replays();
        assert_eq!(axes.message_size_bytes.is_some(), of_one_size);
        assert_eq!(axes.trace.is_some(), load.replays());
        assert_eq!(axes.request_size_bytes.is_some(), !load.is_stream());
        assert_eq!(axes.congestion.is_some(), load.is_tcp());
        let has_pace = load.is_open_loop() && !load.replays();
        assert_eq!(axes.pace_bps.is_some(), has_pace);
    });
}

#[test]
fn transactions_and_open_loops_are_timed() {
    each(|load, info| {
        let timed = !load.is_stream() || load.is_open_loop();
        assert_eq!(info.timed.is_some(), timed, "{load}");
    });
}
