use proptest::prelude::*;

use super::*;

/// A table for this many ports with default rules.
fn table(capacity: usize, ports: usize) -> Table {
    let rules = Rules {
        addresses: u32::MAX,
        ..Rules::default()
    };
    Table::new(capacity, &vec![rules; ports].iter()).unwrap()
}

impl Table {
    fn port_of(&self, mac: Mac, now_s: u32) -> Option<usize> {
        match self.find(mac, 0, now_s) {
            Found::At(port) | Found::Barred(port) => Some(port),
            Found::Nowhere => None,
        }
    }
}

fn octets(number: u64) -> [u8; 6] {
    let [_, _, octets @ ..] = (number | 2 << 40).to_be_bytes();
    octets
}

fn mac(number: u64) -> Mac {
    Mac::of(octets(number))
}

#[test]
fn what_is_learnt_is_found_until_it_is_old() {
    let table = table(CAPACITY, 300);
    assert_eq!(table.port_of(mac(1), 0), None);
    assert_eq!(table.learn(mac(1), 3, 0), Learnt::New);
    assert_eq!(table.learn(mac(1), 3, 1), Learnt::Known);
    assert_eq!(table.port_of(mac(1), 1 + AGEING_S), Some(3));
    assert_eq!(table.port_of(mac(1), 2 + AGEING_S), None);
    assert_eq!(table.len(2 + AGEING_S), 0);
    assert_eq!(table.learn(mac(1), 5, 2 + AGEING_S), Learnt::New);
    assert_eq!(table.port_of(mac(1), 2 + AGEING_S), Some(5));
}

#[test]
fn an_address_that_moves_is_followed() {
    let table = table(CAPACITY, 300);
    table.learn(mac(1), 0, 0);
    for round in 0..100 {
        let port = 1 - round % 2;
        assert_eq!(table.learn(mac(1), port, 0), Learnt::Moved);
        assert_eq!(table.port_of(mac(1), 0), Some(port));
    }
    assert_eq!(table.len(0), 1);
}

#[test]
fn a_full_table_keeps_what_it_has_and_takes_new_ones_when_those_are_old() {
    let table = table(BUCKET, 3);
    for number in 0..BUCKET as u64 {
        assert_eq!(table.learn(mac(number), 1, 0), Learnt::New);
    }
    assert_eq!(table.learn(mac(99), 2, 0), Learnt::Full);
    assert_eq!(table.port_of(mac(99), 0), None);
    assert!((0..BUCKET as u64).all(|number| table.port_of(mac(number), 0) == Some(1)));
    assert_eq!(table.learn(mac(99), 2, AGEING_S + 1), Learnt::New);
    assert_eq!(table.port_of(mac(99), AGEING_S + 1), Some(2));
}

/// With any seed: a hash that only multiplies puts nine neighbours into one bucket of eight with one seed in a
/// thousand.
#[test]
fn consecutive_addresses_do_not_crowd_one_bucket() {
    for _ in 0..10_000 {
        let table = table(CAPACITY / 8, 1);
        for number in 0..32 {
            assert_eq!(table.learn(mac(number), 0, 0), Learnt::New);
        }
    }
}

#[test]
fn workers_learn_side_by_side() {
    let table = table(CAPACITY, 300);
    std::thread::scope(|scope| {
        for port in 0..4 {
            let table = &table;
            scope.spawn(move || {
                for number in 0..20_000 {
                    table.learn(mac(number % 64), port, 0);
                    let found = table.port_of(mac(number % 64), 0);
                    assert!(found.is_some_and(|port| port < 4));
                }
            });
        }
    });
    // Two threads that insert the same address at once may do so twice, but each only once.
    assert!((64..=4 * 64).contains(&table.len(0)));
}

/// Two queues of a port see the first frames of an address at the same time: both find nothing, and then enter it.
#[test]
fn an_address_that_is_entered_twice_counts_once() {
    let rules = [2, 2].map(|addresses| Rules {
        addresses,
        ..Rules::default()
    });
    let table = Table::new(CAPACITY, &rules.iter()).unwrap();
    assert_eq!(table.insert(mac(1), 0, 0), Learnt::New);
    assert_eq!(table.insert(mac(1), 0, 0), Learnt::Known);
    assert_eq!(table.len(0), 1);
    assert_eq!(table.learn(mac(2), 0, 0), Learnt::New);
    assert_eq!(table.learn(mac(3), 0, 0), Learnt::OverQuota);
}

#[test]
fn a_port_has_no_more_addresses_than_its_quota_and_silent_ones_are_given_up() {
    let rules = [2, 2].map(|addresses| Rules {
        addresses,
        ..Rules::default()
    });
    let table = Table::new(CAPACITY, &rules.iter()).unwrap();
    let learn = |number, port, now_s| table.learn(mac(number), port, now_s);
    assert_eq!(
        [1, 2, 3].map(|n| learn(n, 0, 0)),
        [Learnt::New, Learnt::New, Learnt::OverQuota]
    );
    assert_eq!(table.port_of(mac(3), 0), None);
    assert_eq!(learn(1, 0, 0), Learnt::Known);
    // An address that moves counts one less here and one more there.
    assert_eq!(learn(1, 1, 0), Learnt::Moved);
    assert_eq!(learn(3, 0, 0), Learnt::New);
    assert_eq!(learn(1, 0, 0), Learnt::OverQuota);
    assert_eq!(table.port_of(mac(1), 0), Some(1));
    let later = AGEING_S + 1;
    assert_eq!(learn(4, 0, later), Learnt::OverQuota, "not yet swept");
    table.sweep(later);
    assert_eq!(
        [4, 5, 6].map(|n| learn(n, 0, later)),
        [Learnt::New, Learnt::New, Learnt::OverQuota]
    );
}

#[test]
fn addresses_that_are_given_stay_and_nobody_else_has_them() {
    let strict = Rules {
        macs: vec![octets(1), octets(2)],
        ..Rules::default()
    };
    let table = Table::new(CAPACITY, &[strict, Rules::default()].iter()).unwrap();
    for now_s in [0, AGEING_S + 1, 10 * AGEING_S] {
        table.sweep(now_s);
        assert_eq!([1, 2].map(|n| table.port_of(mac(n), now_s)), [Some(0); 2]);
        assert_eq!(table.learn(mac(1), 1, now_s), Learnt::Refused);
        assert_eq!(table.port_of(mac(1), now_s), Some(0));
        // Nor may the port send from any other address.
        table.learn(mac(4), 1, now_s);
        for other in [3, 4] {
            assert_eq!(table.learn(mac(other), 0, now_s), Learnt::Refused);
        }
        assert_eq!(table.port_of(mac(3), now_s), None);
        assert_eq!(table.len(now_s), 3);
    }
    assert_eq!(table.learn(mac(2), 0, 10 * AGEING_S), Learnt::New);
    assert_eq!(table.learn(mac(2), 0, 10 * AGEING_S), Learnt::Known);
}

#[test]
fn a_port_gets_nothing_from_itself_nor_isolated_ones_from_each_other() {
    let rules = [false, true, true, false].map(|isolated| Rules {
        isolated,
        ..Rules::default()
    });
    let table = Table::new(CAPACITY, &rules.iter()).unwrap();
    for port in 0..4 {
        table.learn(mac(port as u64), port, 0);
    }
    for (from, to) in (0..4).flat_map(|from| (0..4).map(move |to| (from, to))) {
        let apart = rules[from].isolated && rules[to].isolated;
        let barred = from == to || apart;
        let wanted = if barred {
            Found::Barred(to)
        } else {
            Found::At(to)
        };
        assert_eq!(table.find(mac(to as u64), from, 0), wanted);
        assert_eq!(table.are_apart(from, to), apart);
    }
    assert_eq!([0, 1, 2, 3].map(|from| table.receivers(from)), [3, 2, 2, 3]);
}

/// The bits of a free entry are those of address 0.
#[test]
fn a_free_entry_is_not_that_of_address_0() {
    let table = table(BUCKET, 2);
    let zero = Mac::of([0; 6]);
    assert_eq!(table.port_of(zero, 0), None);
    assert_eq!(table.learn(zero, 1, 0), Learnt::New);
    assert_eq!(table.learn(zero, 1, 0), Learnt::Known);
    assert_eq!(table.port_of(zero, 0), Some(1));
    assert_eq!(table.learn(zero, 0, 0), Learnt::Moved);
    assert_eq!(table.len(0), 1);
    let used = table.places.iter().map(|place| place.used.load(Relaxed));
    assert_eq!(used.collect::<Vec<_>>(), [1, 0]);
}

#[test]
fn as_many_addresses_as_may_be_given_have_room() {
    let macs = (0..crate::switch::MAX_GIVEN as u64).map(octets).collect();
    let strict = Rules {
        macs,
        ..Rules::default()
    };
    let table = Table::new(CAPACITY, &std::iter::once(&strict)).unwrap();
    assert_eq!(table.len(10 * AGEING_S), crate::switch::MAX_GIVEN);
}

proptest! {
    #[test]
    fn a_port_is_charged_for_what_the_table_has_of_it(
        heard in prop::collection::vec((0u64..64, 0usize..4, 0u32..200), 1..400),
    ) {
        let rules = vec![Rules { addresses: 5, ..Rules::default() }; 4];
        // Small, so that buckets become full.
        let table = Table::new(2 * BUCKET, &rules.iter()).unwrap();
        let mut now_s = 0;
        for (number, from, later) in heard {
            now_s += later;
            table.learn(mac(number), from, now_s);
            if later > 150 {
                table.sweep(now_s);
            }
            let entries = table.entries.iter().map(|slot| slot.load(Relaxed));
            let of = |wanted| entries.clone().filter(|e| *e != 0 && port(*e) == wanted).count();
            for (place, used) in table.places.iter().map(|p| p.used.load(Relaxed)).enumerate() {
                prop_assert_eq!(used as usize, of(place));
                prop_assert!(used <= 5);
            }
        }
    }

    #[test]
    fn the_last_port_heard_is_the_one_found(heard in prop::collection::vec((0u64..32, 0usize..300), 1..200)) {
        let table = table(CAPACITY, 300);
        let mut last = std::collections::HashMap::new();
        for (number, port) in heard {
            prop_assert_ne!(table.learn(mac(number), port, 7), Learnt::Full);
            last.insert(number, port);
        }
        for (number, port) in last {
            prop_assert_eq!(table.port_of(mac(number), 7), Some(port));
        }
    }
}
