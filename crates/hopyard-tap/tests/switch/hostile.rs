//! Invalid frames, and devices that are deleted.

use hopyard_tap::switch::{NewSwitch, Reason, Rules};

use crate::stations::{BROADCAST, TAP, all_gone, frame, heard, joined, joined_by, mac, until};

#[test]
fn sources_that_no_station_has_are_dropped_and_counted() {
    let (switch, stations) = joined(2, NewSwitch::default());
    for source in [BROADCAST, [1, 0, 0x5e, 0, 0, 1], [0; 6]] {
        assert!(stations[0].send(&frame(BROADCAST, source, 1)));
    }
    assert_eq!(heard(&switch, &stations, 1), Vec::<u32>::new());
    let counters = &switch.state().ports[0].counters;
    assert_eq!(counters.drops, [(Reason::BadSource, 3)]);
    assert_eq!(switch.state().addresses, 0);
}

#[test]
fn a_frame_of_a_bare_header_passes() {
    let (switch, stations) = joined(2, NewSwitch::default());
    assert!(stations[0].send(&frame(mac(9), mac(1), 1)[..14]));
    until(&switch, "it is passed on", |ports| {
        ports[1].counters.tx_frames == 1
    });
}

#[test]
fn a_full_table_floods_and_says_so_and_known_stations_stay_known() {
    const SOURCES: u32 = 20_000;
    // Fewer than the device's queue holds.
    const UNDERWAY: u64 = 1000;
    let rules = Rules {
        addresses: SOURCES,
        ..Rules::default()
    };
    let (switch, stations) = joined_by(vec![rules; 3], NewSwitch::default());
    assert!(stations[1].send(&frame(BROADCAST, mac(1 << 24), 0)));
    all_gone(&switch, &stations);
    for number in 0..SOURCES {
        assert!(stations[0].send(&frame(mac(1 << 24), mac(number), number)));
        if number % 200 == 0 {
            until(&switch, "they are read", |ports| {
                u64::from(number) < ports[0].counters.rx_frames + UNDERWAY - 200
            });
        }
    }
    all_gone(&switch, &stations);
    let state = switch.state();
    let counters = &state.ports[0].counters;
    assert_eq!(counters.rx_frames, u64::from(SOURCES), "{state:#?}");
    assert_eq!(state.ports[0].unread, Some(0), "{state:#?}");
    assert!(state.addresses <= 8192, "{}", state.addresses);
    assert!(counters.table_full > 1000, "{counters:?}");
    assert_eq!(
        counters.flooded, 0,
        "whom they are for is known all the time"
    );
    let alone = heard(&switch, &stations, 2);
    assert_eq!(alone.len(), 1, "the broadcast alone");
}

#[test]
fn an_address_at_two_ports_at_once_stops_nothing() {
    let (switch, stations) = joined(3, NewSwitch::default());
    for number in 0..500 {
        let side = &stations[number as usize % 2];
        assert!(side.send(&frame(BROADCAST, mac(1), number)));
        until(&switch, "it is read", |ports| {
            let read = |port: usize| ports[port].counters.rx_frames;
            read(0) + read(1) > u64::from(number)
        });
    }
    assert_eq!(heard(&switch, &stations, 2).len(), 500);
    let state = switch.state();
    let moved = state.ports[0].counters.moved + state.ports[1].counters.moved;
    assert_eq!((moved, state.addresses), (499, 1), "{state:#?}");
}

/// Headers of all kinds before frames of all lengths: what the kernel accepts is passed on or counted.
#[test]
fn headers_that_lie_are_the_kernels_to_refuse_and_are_counted() {
    let (switch, stations) = joined(2, NewSwitch::default());
    assert!(stations[1].send(&frame(BROADCAST, mac(2), 0)));
    all_gone(&switch, &stations);
    stations[0].with_headers();
    // Frames with a plain header.
    let pass = |number| {
        let mut bytes = vec![0; 10];
        bytes.extend(frame(mac(2), mac(1), number));
        assert!(stations[0].send(&bytes));
        stations[1].hear(number);
    };
    let mut sent = 0;
    for flags in [0, 1, 2, 0xff] {
        for kind in [0, 1, 3, 4, 5, 0x81, 0x7f] {
            for words in [
                [0, 0, 0, 0],
                [54, 1400, 34, 16],
                [14, 1, 14, 6],
                [0xffff; 4],
            ] {
                for length in [14, 60, 1500, 9000] {
                    let mut bytes = vec![flags, kind];
                    bytes.extend(words.iter().flat_map(|word: &u16| word.to_ne_bytes()));
                    let mut whole = frame(mac(2), mac(1), 1);
                    whole.resize(length, 0x45);
                    bytes.extend(whole);
                    sent += u64::from(stations[0].send(&bytes));
                }
            }
        }
    }
    assert!(sent > 10, "{sent}");
    // The kernel cuts some of them into several segments, so the number to read is not known. All have arrived when
    // this one, behind them in the same queue, has.
    pass(77);
    until(&switch, "what was read went somewhere", |ports| {
        let to = &ports[1].counters;
        let gone = to.tx_frames + to.joined + to.dropped();
        ports[0].counters.rx_frames == gone + ports[0].counters.dropped()
    });
    let ports = switch.state().ports;
    let (read, unread) = (ports[0].counters.rx_frames, ports[0].unread.unwrap());
    println!(
        "{sent} sent, {read} read, {unread} dropped by the kernel before; to be written: {} taken, {:?}",
        ports[1].counters.tx_frames, ports[1].counters.drops
    );
    assert!(read > 0, "{ports:#?}");
    let to = &ports[1].counters;
    let gone = to.tx_frames + to.joined + to.dropped();
    assert_eq!(read, gone + ports[0].counters.dropped(), "{ports:#?}");
    // The switch still works.
    pass(78);
}

#[test]
fn a_device_that_is_down_or_deleted_costs_its_own_frames_alone() {
    let (switch, stations) = joined(3, NewSwitch::default());
    stations[1].handle.set_down(TAP).unwrap();
    assert!(stations[0].send(&frame(BROADCAST, mac(1), 1)));
    assert_eq!(heard(&switch, &stations, 2), [1]);
    assert_eq!(switch.state().ports[1].counters.drops, [(Reason::Down, 1)]);

    stations[1].handle.delete_link(TAP).unwrap();
    assert!(stations[0].send(&frame(BROADCAST, mac(1), 2)));
    assert_eq!(heard(&switch, &stations, 2), [2]);
    let gone = &switch.state().ports[1];
    assert!(!gone.there);
    assert!(gone.counters.drops.contains(&(Reason::Gone, 1)), "{gone:?}");
}
