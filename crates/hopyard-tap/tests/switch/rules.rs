//! What ports may do, and what no port may do.

use std::time::Instant;

use hopyard_tap::switch::{NewPort, NewSwitch, Reason, Rules, Switch};

use crate::stations::{BROADCAST, Station, all_gone, frame, heard, joined, joined_by, mac};

fn dropped(switch: &Switch, at: usize) -> Vec<(Reason, u64)> {
    switch.state().ports[at].counters.drops.clone()
}

fn hear<const N: usize>(switch: &Switch, stations: &[Station]) -> [Vec<u32>; N] {
    std::array::from_fn(|at| heard(switch, stations, at))
}

#[test]
fn no_frame_goes_to_an_address_that_bridges_keep() {
    let (switch, stations) = joined(2, NewSwitch::default());
    for last in 0..=16 {
        let group = [0x01, 0x80, 0xc2, 0, 0, last];
        assert!(stations[0].send(&frame(group, mac(1), last.into())));
    }
    assert_eq!(hear(&switch, &stations), [vec![], vec![16]]);
    assert_eq!(dropped(&switch, 0), [(Reason::Reserved, 16)]);
}

#[test]
fn a_port_sends_from_the_addresses_given_to_it_and_nobody_else_does() {
    let strict = Rules {
        macs: vec![mac(1), mac(2)],
        ..Rules::default()
    };
    let plain = Rules::default();
    let (switch, stations) = joined_by(vec![strict, plain.clone(), plain], NewSwitch::default());
    // Known before it sent anything.
    assert!(stations[1].send(&frame(mac(2), mac(9), 1)));
    assert_eq!(hear(&switch, &stations), [vec![1], vec![], vec![]]);
    for (number, from) in [(2, mac(1)), (3, mac(2)), (4, mac(3)), (5, mac(9))] {
        assert!(stations[0].send(&frame(BROADCAST, from, number)));
    }
    assert_eq!(hear(&switch, &stations), [vec![], vec![2, 3], vec![2, 3]]);
    assert!(stations[1].send(&frame(BROADCAST, mac(1), 6)));
    assert!(stations[2].send(&frame(mac(9), mac(2), 7)));
    assert!(stations[2].send(&frame(mac(1), mac(8), 8)));
    assert_eq!(hear(&switch, &stations), [vec![8], vec![], vec![]]);
    let drops = [0, 1, 2].map(|at| dropped(&switch, at));
    let each = [2, 1, 1].map(|count| vec![(Reason::Mac, count)]);
    assert_eq!(drops, each);
}

#[test]
fn isolated_ports_reach_the_others_alone_and_each_copy_is_counted() {
    let isolated = Rules {
        isolated: true,
        ..Rules::default()
    };
    let rules = vec![
        isolated.clone(),
        isolated.clone(),
        isolated,
        Rules::default(),
    ];
    let (switch, stations) = joined_by(rules, NewSwitch::default());
    assert!(stations[0].send(&frame(BROADCAST, mac(1), 1)));
    assert!(stations[1].send(&frame(BROADCAST, mac(2), 2)));
    assert_eq!(
        hear(&switch, &stations),
        [vec![], vec![], vec![], vec![1, 2]]
    );
    assert!(stations[3].send(&frame(BROADCAST, mac(4), 3)));
    assert!(stations[3].send(&frame(mac(1), mac(4), 4)));
    assert!(stations[0].send(&frame(mac(4), mac(1), 5)));
    assert!(stations[0].send(&frame(mac(2), mac(1), 6)));
    // No address was learnt there.
    assert!(stations[2].send(&frame(mac(99), mac(3), 7)));
    let all = [vec![3, 4], vec![3], vec![3], vec![5, 7]];
    assert_eq!(hear(&switch, &stations), all);
    let drops = [0, 1, 2, 3].map(|at| dropped(&switch, at));
    let isolated = |count| vec![(Reason::Isolated, count)];
    assert_eq!(drops, [isolated(3), isolated(2), isolated(2), vec![]]);
}

#[test]
fn two_isolated_ports_have_nobody() {
    let isolated = Rules {
        isolated: true,
        ..Rules::default()
    };
    let (switch, stations) = joined_by(vec![isolated; 2], NewSwitch::default());
    // More than a worker has buffers: each is freed.
    for number in 0..200 {
        assert!(stations[0].send(&frame(BROADCAST, mac(1), number)));
    }
    assert_eq!(hear(&switch, &stations), [Vec::<u32>::new(), vec![]]);
    assert_eq!(dropped(&switch, 0), [(Reason::Isolated, 200)]);
}

#[test]
fn a_port_has_no_more_addresses_than_its_quota() {
    let few = Rules {
        addresses: 3,
        ..Rules::default()
    };
    let (switch, stations) = joined_by(vec![few, Rules::default()], NewSwitch::default());
    for number in 0..10 {
        assert!(stations[0].send(&frame(BROADCAST, mac(number), number)));
    }
    assert_eq!(hear(&switch, &stations), [vec![], vec![0, 1, 2]]);
    assert_eq!(switch.state().addresses, 3);
    // Nor does it get one by taking another port's.
    assert!(stations[1].send(&frame(mac(0), mac(50), 20)));
    assert!(stations[0].send(&frame(mac(50), mac(50), 21)));
    assert!(stations[1].send(&frame(mac(1), mac(50), 22)));
    assert_eq!(hear(&switch, &stations), [vec![20, 22], vec![]]);
    assert_eq!(dropped(&switch, 0), [(Reason::Quota, 8)]);
}

#[test]
fn broadcasts_beyond_the_limit_are_dropped_and_the_rest_passes() {
    const SENT: u32 = 500;
    const PER_S: u32 = 3;
    const BURST_S: u64 = 10;
    let limited = Rules {
        broadcasts: Some(PER_S),
        ..Rules::default()
    };
    let plain = Rules::default();
    let (switch, stations) = joined_by(vec![limited, plain.clone(), plain], NewSwitch::default());
    assert!(stations[1].send(&frame(BROADCAST, mac(2), 0)));
    all_gone(&switch, &stations);
    let began = Instant::now();
    for number in 1..=SENT {
        // A broadcast, a multicast, an unknown address; then one that is known.
        let to = [BROADCAST, [0x33, 0x33, 0, 0, 0, 1], mac(77)][number as usize % 3];
        assert!(stations[0].send(&frame(to, mac(1), number)));
        assert!(stations[0].send(&frame(mac(2), mac(1), SENT + number)));
    }
    all_gone(&switch, &stations);
    // All are decided by now, and the initial allowance was full.
    let most = u64::from(PER_S) * (began.elapsed().as_secs() + 1 + BURST_S);
    let least = u64::from(PER_S) * BURST_S;
    let ports = switch.state().ports;
    let flooded = ports[0].counters.flooded;
    assert!(
        (least..=most).contains(&flooded),
        "{flooded}, {most}: {ports:#?}"
    );
    assert_eq!(
        dropped(&switch, 0),
        [(Reason::Broadcast, u64::from(SENT) - flooded)]
    );
    let [_, second, third]: [Vec<u32>; 3] = hear(&switch, &stations);
    let known = second.iter().filter(|number| **number > SENT).count();
    assert_eq!(known, SENT as usize);
    assert_eq!((second.len() - known) as u64, flooded);
    assert_eq!(
        third.iter().filter(|number| **number > 0).count() as u64,
        flooded
    );
}

#[test]
fn rules_that_make_no_sense_are_refused() {
    let (_switch, stations) = joined(2, NewSwitch::default());
    let refused = |rules: [Rules; 2], said: &str| {
        let ports = ["a", "b"]
            .into_iter()
            .zip(rules)
            .map(|(device, rules)| NewPort {
                rules,
                ..NewPort::new(device, stations[0].handle.ns().try_clone().unwrap())
            });
        let new = NewSwitch {
            ports: ports.collect(),
            ..NewSwitch::default()
        };
        let error = new.start().unwrap_err();
        assert!(
            error.is_usage() && error.to_string().contains(said),
            "{error}"
        );
    };
    let with = |macs: &[[u8; 6]]| Rules {
        macs: macs.to_vec(),
        ..Rules::default()
    };
    refused(
        [with(&[BROADCAST]), with(&[])],
        "ff:ff:ff:ff:ff:ff of tap `a` is no address of a station",
    );
    refused(
        [with(&[mac(1)]), with(&[mac(1)])],
        "is given to tap `a` and to tap `b`",
    );
    let many: Vec<[u8; 6]> = (0..2049).map(mac).collect();
    refused([with(&[]), with(&many)], "room for 2048");
    let nobody = Rules {
        addresses: 0,
        ..Rules::default()
    };
    refused([with(&[]), nobody], "may have 0 addresses");
}
