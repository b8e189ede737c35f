use etherparse::{TcpHeader, TcpOptionElement};
use proptest::prelude::*;

use super::frames::{New, check, joined, new, sum};
use super::*;

#[test]
fn frames_that_follow_each_other_are_one_in_both_families() {
    for v6 in [false, true] {
        let first = new(v6);
        let frames: Vec<_> = std::iter::successors(Some(first), |new| Some(new.next()))
            .take(5)
            .map(|new| new.frame())
            .collect();
        assert_eq!(check(&frames), [1, 1]);
        let one = &joined(&frames, Join::Packets)[0];
        let header = VnetHeader::parse(one, HEADER).unwrap();
        assert_eq!(header.segmentation.unwrap().size, 1000);
        assert_eq!(one.len(), frames[0].len() + 4 * 3000);
    }
}

#[test]
fn packets_of_one_size_become_a_segment_and_a_shorter_one_is_the_last() {
    let one = New {
        cut: None,
        payload: vec![1; 500],
        ..new(false)
    };
    let mut short = one.next();
    short.payload = vec![2; 100];
    let after = New {
        payload: vec![3; 500],
        ..short.next()
    };
    assert_eq!(check(&[one.frame(), one.next().frame()]), [1, 1]);
    assert_eq!(check(&[one.frame(), short.frame(), after.frame()]), [2, 1]);
    let long = New {
        payload: vec![2; 501],
        ..one.next()
    };
    assert_eq!(check(&[one.frame(), long.frame()]), [2, 1]);
}

#[test]
fn what_is_pushed_and_the_end_of_a_stream_are_the_last() {
    type Set = fn(&mut TcpHeader);
    let marks: [(Set, _); 2] = [
        (|tcp| tcp.psh = true, [2, 1]),
        (|tcp| tcp.fin = true, [2, 2]),
    ];
    for (mark, left) in marks {
        let first = new(false);
        let mut second = first.next();
        mark(&mut second.tcp);
        let mut third = second.next();
        third.tcp.psh = false;
        third.tcp.fin = false;
        let frames = [first.frame(), second.frame(), third.frame()];
        assert_eq!(check(&frames), left);
    }
}

/// Frames of a sender whose messages are no multiple of its segments.
#[test]
fn messages_that_end_in_a_shorter_packet_are_one_as_a_stream_alone() {
    for v6 in [false, true] {
        let mut message = new(v6);
        message.payload.truncate(2500);
        message.tcp.psh = true;
        let frames: Vec<_> = std::iter::successors(Some(message), |new| Some(new.next()))
            .take(4)
            .map(|new| new.frame())
            .collect();
        assert_eq!(check(&frames), [4, 1]);
    }
}

#[test]
fn no_frame_is_longer_than_ip_can_say() {
    for v6 in [false, true] {
        let frames: Vec<_> = std::iter::successors(Some(new(v6)), |new| Some(new.next()))
            .take(43)
            .map(|new| new.frame())
            .collect();
        assert_eq!(check(&frames), [3, 3]);
        assert!(
            joined(&frames, Join::Stream)
                .iter()
                .all(|frame| frame.len() <= IP + LONGEST)
        );
    }
}

#[test]
fn identifications_count_on_or_stay() {
    let first = new(false);
    let same = New {
        id: first.id,
        ..first.next()
    };
    let other = New {
        id: 7,
        ..first.next()
    };
    assert_eq!(
        joined(&[first.frame(), same.frame()], Join::Packets).len(),
        1
    );
    assert_eq!(check(&[first.frame(), other.frame()]), [2, 2]);
}

/// Any difference, or any invalid field, in one of two frames.
#[test]
fn what_is_no_plain_part_of_the_same_stretch_is_never_joined() {
    type Alter = fn(&mut New);
    let news: [(&str, Alter); 13] = [
        ("a gap", |new| new.tcp.sequence_number += 1),
        ("again", |new| {
            new.tcp.sequence_number = new.tcp.sequence_number.wrapping_sub(3000);
        }),
        ("another acknowledgement", |new| {
            new.tcp.acknowledgment_number += 1;
        }),
        ("another window", |new| new.tcp.window_size += 1),
        ("another time", |new| {
            new.tcp
                .set_options(&[TcpOptionElement::Timestamp(1, 3)])
                .unwrap();
        }),
        ("another port", |new| new.tcp.source_port += 1),
        ("another size", |new| new.cut = Some(999)),
        ("no payload", |new| new.payload.clear()),
        ("SYN", |new| new.tcp.syn = true),
        ("RST", |new| new.tcp.rst = true),
        ("URG", |new| new.tcp.urg = true),
        ("CWR", |new| new.tcp.cwr = true),
        ("no ACK", |new| new.tcp.ack = false),
    ];
    for v6 in [false, true] {
        for (what, alter) in news {
            let first = new(v6);
            let mut second = first.next();
            alter(&mut second);
            assert_eq!(check(&[first.frame(), second.frame()]), [2, 2], "{what}");
        }
    }
    for (what, alter) in news.into_iter().skip(7) {
        let mut first = new(false);
        alter(&mut first);
        let frames = [first.frame(), first.next().frame()];
        assert_eq!(check(&frames), [2, 2], "both {what}");
    }
}

/// Recomputes the IPv4 header's sum.
fn with_sum(mut frame: Vec<u8>) -> Vec<u8> {
    let length = 4 * usize::from(frame[IP] & 15);
    frame[IP + 10..IP + 12].fill(0);
    let sum = !sum(&frame[IP..IP + length]);
    frame[IP + 10..IP + 12].copy_from_slice(&sum.to_be_bytes());
    frame
}

#[test]
fn headers_that_are_not_plain_or_lie_are_never_joined() {
    type Alter = fn(Vec<u8>) -> Vec<u8>;
    fn set<const N: usize>(mut frame: Vec<u8>, at: usize, bytes: [u8; N]) -> Vec<u8> {
        frame[at..at + N].copy_from_slice(&bytes);
        frame
    }
    let v4: [(&str, Alter); 15] = [
        ("congestion experienced", |f| with_sum(set(f, IP + 1, [3]))),
        ("another service", |f| with_sum(set(f, IP + 1, [4]))),
        ("another time to live", |f| with_sum(set(f, IP + 8, [63]))),
        ("a first fragment", |f| with_sum(set(f, IP + 6, [0x20, 0]))),
        ("a last fragment", |f| with_sum(set(f, IP + 6, [0, 9]))),
        ("may be a fragment", |f| with_sum(set(f, IP + 6, [0, 0]))),
        ("UDP", |f| with_sum(set(f, IP + 9, [17]))),
        ("a wrong header checksum", |f| set(f, IP + 10, [0x12, 0x34])),
        ("a longer packet than there is", |f| {
            with_sum(set(f, IP + 2, [0xff, 0xff]))
        }),
        ("a shorter one", |f| with_sum(set(f, IP + 2, [0, 100]))),
        ("a TCP header beyond the end", |f| {
            with_sum(set(set(f, IP + 32, [0xf0]), IP + 2, [0, 60])[..IP + 60].to_vec())
        }),
        ("too short a TCP header", |f| set(f, IP + 32, [0x40])),
        ("a reserved bit", |f| set(f, IP + 32, [0x81])),
        ("IP options", |mut f| {
            f.splice(IP + 20..IP + 20, [1, 1, 1, 0]);
            let length = (f.len() - IP) as u16;
            with_sum(set(set(f, IP, [0x46]), IP + 2, length.to_be_bytes()))
        }),
        ("a header cut short", |f| f[..IP + 30].to_vec()),
    ];
    let any: [(&str, Alter); 11] = [
        ("a VLAN tag", |mut f| {
            f.splice(ETHER_TYPE..ETHER_TYPE, [0x81, 0, 0, 1]);
            f
        }),
        ("another destination", |f| set(f, ETHERNET + 5, [9])),
        ("another type", |f| set(f, ETHER_TYPE, [8, 6])),
        ("a byte behind the end", |mut f| {
            f.push(0);
            f
        }),
        ("a byte less", |mut f| {
            f.pop();
            f
        }),
        ("a checksum that is done", |f| {
            set(f, 0, [2, 0, 0, 0, 0, 0, 0, 0, 0, 0])
        }),
        ("a checksum elsewhere", |f| set(f, 8, [6, 0])),
        ("another kind of segment", |f| set(f, 1, [5])),
        ("segments of nothing", |f| set(f, 4, [0, 0])),
        ("a reduced window", |mut f| {
            f[1] |= 0x80;
            f
        }),
        ("unknown flags", |f| set(f, 0, [0x55])),
    ];
    let v6: [(&str, Alter); 6] = [
        ("another flow label", |f| set(f, IP + 3, [1])),
        ("congestion experienced", |f| set(f, IP + 1, [0x30])),
        ("a fragment header", |f| set(f, IP + 6, [44])),
        ("another hop limit", |f| set(f, IP + 7, [63])),
        ("a jumbogram", |f| set(f, IP + 4, [0, 0])),
        ("a version of neither", |f| set(f, IP, [0x50])),
    ];
    let families = [
        (false, v4.iter().chain(&any)),
        (true, v6.iter().chain(&any)),
    ];
    for (is_v6, alters) in families {
        let first = new(is_v6);
        let frames = [first.frame(), first.next().frame()];
        for (what, alter) in alters {
            let [one, two] = frames.clone();
            assert_eq!(check(&[one.clone(), alter(two.clone())]), [2, 2], "{what}");
            assert_eq!(check(&[alter(one), two]), [2, 2], "{what} first");
        }
    }
    let both = [new(false).frame(), new(false).next().frame()];
    let experienced = both.map(|frame| with_sum(set(frame, IP + 1, [3])));
    assert_eq!(check(&experienced), [2, 2]);
}

/// If joined, they would be cut into longer packets than before.
#[test]
fn frames_that_are_to_be_cut_into_more_than_they_have_stay_apart() {
    for is_v6 in [false, true] {
        let first = new(is_v6);
        let mut frames = [first.frame(), first.next().frame()];
        for frame in &mut frames {
            // The virtio-net header's segment size.
            frame[4..6].copy_from_slice(&[0xff, 0x7f]);
        }
        assert_eq!(check(&frames), [2, 2]);
    }
}

/// The frames of a stream: for each, the number of packets, what the last one lacks, marks, and a gap before it.
fn steps() -> impl Strategy<Value = Vec<(usize, usize, u8, bool)>> {
    let marks = prop_oneof![6 => Just(0_u8), 1 => Just(PSH), 1 => Just(FIN), 1 => Just(ECE)];
    let step = (1..12_usize, 0..20_usize, marks, prop::bool::weighted(0.1));
    prop::collection::vec(step, 1..20)
}

proptest! {
    /// Any stream, cut into frames in any way, gives the same packets after joining.
    #[test]
    fn joining_loses_and_alters_nothing(v6: bool, unit in 1..1500_usize, start: u32, steps in steps()) {
        let mut frames = Vec::new();
        let mut new = New { tcp: TcpHeader { sequence_number: start, ..new(v6).tcp }, ..new(v6) };
        for (number, (packets, lack, marks, gap)) in steps.into_iter().enumerate() {
            let length = packets * unit - lack.saturating_sub(8).min(unit - 1);
            new.payload = (0..length).map(|at| (at ^ number) as u8).collect();
            new.cut = (packets > 1).then_some(unit as u16);
            (new.tcp.psh, new.tcp.fin, new.tcp.ece) = (marks == PSH, marks == FIN, marks == ECE);
            if gap {
                new.tcp.sequence_number = new.tcp.sequence_number.wrapping_add(1);
            }
            frames.push(new.frame());
            new = new.next();
        }
        check(&frames);
    }

    /// Whatever a header byte becomes, nothing else is joined or altered.
    #[test]
    fn altered_headers_alter_nothing_else(v6: bool, which in 0..3_usize, at in 0..90_usize, value: u8, both: bool) {
        let first = new(v6);
        let mut frames: Vec<_> = std::iter::successors(Some(first), |new| Some(new.next()))
            .take(3)
            .map(|new| new.frame())
            .collect();
        let others = if both { 0..3 } else { which..which + 1 };
        for frame in &mut frames[others] {
            frame[at] = value;
        }
        check(&frames);
    }

    #[test]
    fn any_bytes_are_read_without_harm(bytes in prop::collection::vec(any::<u8>(), 0..200), at in 0..160_usize, v6: bool) {
        let frame = new(v6).frame();
        check(&[bytes.clone(), frame[..at].to_vec(), [&frame[..at], &bytes].concat()]);
    }
}
