use proptest::prelude::*;

use super::*;

fn set(ranges: &Value) -> RangeSet {
    RangeSet::of(ranges, "set").unwrap()
}

fn ip(text: &str) -> IpAddr {
    text.parse().unwrap()
}

fn candidates(set: &RangeSet, last: Option<&str>) -> Vec<String> {
    let all = set.candidates(last.map(ip));
    all.take(100).map(|ip| ip.to_string()).collect()
}

#[test]
fn a_range_is_its_subnet_but_the_ends_and_the_gateway() {
    let small = set(&json!([{ "subnet": "10.1.0.0/29" }]));
    let all = ["10.1.0.2", "10.1.0.3", "10.1.0.4", "10.1.0.5", "10.1.0.6"];
    assert_eq!(candidates(&small, None), all);
    assert_eq!(
        candidates(&set(&json!([{ "subnet": "10.1.0.8/30" }])), None),
        ["10.1.0.10"]
    );
    // With IPv6 the last one is an address as any other.
    let six = set(&json!([{ "subnet": "fd00::/126" }]));
    assert_eq!(candidates(&six, None), ["fd00::2", "fd00::3"]);
    // The gateway may be anywhere, and the network's address is given where somebody asks for it.
    let odd = set(&json!([{
        "subnet": "10.1.0.0/29",
        "rangeStart": "10.1.0.0",
        "rangeEnd": "10.1.0.2",
        "gateway": "10.1.0.1",
    }]));
    assert_eq!(candidates(&odd, None), ["10.1.0.0", "10.1.0.2"]);
    let result = json!({ "address": "10.1.0.2/29", "gateway": "10.1.0.1" });
    assert_eq!(odd.result(ip("10.1.0.2")), Some(result));
    assert_eq!(odd.result(ip("10.1.0.3")), None);
}

#[test]
fn the_next_one_comes_after_the_last_one_round_all_ranges() {
    let two = set(&json!([
        { "subnet": "10.1.0.0/24", "rangeStart": "10.1.0.10", "rangeEnd": "10.1.0.12" },
        { "subnet": "10.2.0.0/30" },
    ]));
    let first = ["10.1.0.10", "10.1.0.11", "10.1.0.12", "10.2.0.2"];
    assert_eq!(candidates(&two, None), first);
    // As if there were no last one.
    assert_eq!(candidates(&two, Some("10.9.0.1")), first);
    assert_eq!(candidates(&two, Some("fd00::1")), first);
    assert_eq!(
        candidates(&two, Some("10.1.0.10")),
        ["10.1.0.11", "10.1.0.12", "10.2.0.2", "10.1.0.10"]
    );
    assert_eq!(
        candidates(&two, Some("10.1.0.12")),
        ["10.2.0.2", "10.1.0.10", "10.1.0.11", "10.1.0.12"]
    );
    assert_eq!(
        candidates(&two, Some("10.2.0.2")),
        ["10.1.0.10", "10.1.0.11", "10.1.0.12", "10.2.0.2"]
    );
    let one = set(
        &json!([{ "subnet": "10.1.0.0/24", "rangeStart": "10.1.0.9", "rangeEnd": "10.1.0.9" }]),
    );
    assert_eq!(candidates(&one, Some("10.1.0.9")), ["10.1.0.9"]);
    // All of them cannot be counted, and need not be.
    let wide = set(&json!([{ "subnet": "fd00::/64" }]));
    let after = candidates(&wide, Some("fd00::ffff"));
    assert_eq!((after.len(), after[0].as_str()), (100, "fd00::1:0"));
    let last = set(&json!([{
        "subnet": "ffff::/16",
        "rangeStart": "ffff:ffff:ffff:ffff:ffff:ffff:ffff:fffe",
    }]));
    assert_eq!(candidates(&last, None).len(), 2);
}

#[test]
fn what_is_wrong_with_a_range_is_named() {
    let subnet = "10.1.0.0/24";
    for (range, key, why) in [
        (json!({}), "subnet", "no subnet"),
        (json!({ "subnet": "10.1.0.0" }), "subnet", "no subnet"),
        (json!({ "subnet": "10.1.0.1/24" }), "subnet", "10.1.0.0"),
        (json!({ "subnet": "10.1.0.0/31" }), "subnet", "too small"),
        (json!({ "subnet": "10.1.0.0/32" }), "subnet", "too small"),
        (json!({ "subnet": "fd00::/127" }), "subnet", "too small"),
        (
            json!({ "subnet": "::ffff:10.1.0.0/120" }),
            "subnet",
            "as IPv6",
        ),
        (
            json!({ "subnet": subnet, "rangeStart": "10.2.0.1" }),
            "rangeStart",
            "is not in",
        ),
        (
            json!({ "subnet": subnet, "rangeEnd": "fd00::1" }),
            "rangeEnd",
            "is not in",
        ),
        (
            json!({ "subnet": subnet, "rangeStart": "10.1.0.9", "rangeEnd": "10.1.0.8" }),
            "rangeEnd",
            "leaves no address",
        ),
        (
            json!({ "subnet": subnet, "rangeStart": "10.1.0.255" }),
            "rangeStart",
            "leaves no address",
        ),
        (
            json!({ "subnet": subnet, "gateway": "x" }),
            "gateway",
            "no IP address",
        ),
    ] {
        let error = RangeSet::of(&json!([range]), "ipam.ranges[0]").unwrap_err();
        assert_eq!(error.code, crate::error::code::BAD_CONFIG);
        let key = format!("`ipam.ranges[0][0].{key}`");
        assert!(error.msg.contains(&key), "{error}");
        assert!(error.msg.contains(why), "{error}");
    }
    for (ranges, why) in [
        (json!(null), "no list"),
        (json!([]), "no list"),
        (json!({ "subnet": subnet }), "no list"),
        (json!([{ "subnet": subnet, "exclude": [] }]), "exclude"),
        (
            json!([{ "subnet": subnet }, { "subnet": "10.1.0.128/25" }]),
            "overlaps",
        ),
        (
            json!([{ "subnet": subnet }, { "subnet": "fd00::/64" }]),
            "another family",
        ),
    ] {
        let error = RangeSet::of(&ranges, "ipam.ranges[0]").unwrap_err();
        assert!(error.msg.contains(why), "{error}");
    }
}

#[test]
fn sets_overlap_where_they_have_an_address_in_common() {
    let of = |start: &str, end: &str| {
        set(&json!([{ "subnet": "10.1.0.0/24", "rangeStart": start, "rangeEnd": end }]))
    };
    let middle = of("10.1.0.10", "10.1.0.20");
    for (other, overlap) in [
        (of("10.1.0.20", "10.1.0.30"), true),
        (of("10.1.0.1", "10.1.0.200"), true),
        (of("10.1.0.12", "10.1.0.13"), true),
        (of("10.1.0.21", "10.1.0.30"), false),
        (set(&json!([{ "subnet": "fd00::/64" }])), false),
        (set(&json!([{ "subnet": "::/0" }])), false),
    ] {
        assert_eq!(middle.overlaps(&other), overlap, "{other}");
        assert_eq!(other.overlaps(&middle), overlap, "{other}");
    }
}

proptest! {
    /// Each address but the gateway comes once, whatever came last.
    #[test]
    fn all_addresses_come_once(
        first in (1_u8..60, 0_u8..10),
        second in (100_u8..160, 0_u8..10),
        gateway in 0_u8..200,
        last in 0_u8..200,
    ) {
        let of = |n: u8| format!("10.1.0.{n}");
        let ranges = [first, second].map(|(start, more)| {
            json!({
                "subnet": "10.1.0.0/24",
                "rangeStart": of(start),
                "rangeEnd": of(start + more),
                "gateway": of(gateway),
            })
        });
        let set = RangeSet::of(&json!(ranges), "set").unwrap();
        let last = ip(&of(last));
        let found: Vec<IpAddr> = set.candidates(Some(last)).collect();
        let mut sorted = found.clone();
        sorted.sort();
        let all = [first, second].into_iter().flat_map(|(start, more)| start..=start + more);
        let all: Vec<IpAddr> = all.filter(|n| *n != gateway).map(|n| ip(&of(n))).collect();
        prop_assert_eq!(sorted, all);
        // It is the last to come again.
        if found.contains(&last) {
            prop_assert_eq!(found.last(), Some(&last));
        }
    }
}
