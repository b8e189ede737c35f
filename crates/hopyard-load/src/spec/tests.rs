use super::*;
use hopyard_model::Peer;

fn paced(message_size: u32, flows: u32, pace_bps: u64) -> LoadSpec {
    let mut axes = Axes::default().for_cell(LoadKind::TcpStream, Peer::Local, &[]);
    axes.message_size_bytes = Some(message_size);
    axes.flows = flows;
    axes.pace_bps = Some(Rate(Some(pace_bps)));
    LoadSpec::new(LoadKind::TcpStream, &axes)
}

#[test]
fn every_load_can_be_made_with_the_default_axes() {
    for load in LoadKind::ALL {
        let axes = Axes::default().for_cell(load, Peer::Local, &[]);
        assert_eq!(LoadSpec::new(load, &axes).check(), Ok(()), "{load}");
    }
}

#[test]
fn unix_sockets_carry_connections_alone() {
    for load in LoadKind::ALL {
        let axes = Axes::default().for_cell(load, Peer::Local, &[]);
        for sockets in [Sockets::UnixStream, Sockets::UnixSeqpacket] {
            let checked = LoadSpec::new(load, &axes).over(sockets).check();
            assert_eq!(checked.is_ok(), load.is_tcp(), "{load}: {checked:?}");
        }
    }
}

#[test]
fn a_message_that_would_be_cut_is_refused() {
    let axes = Axes::default().for_cell(LoadKind::TcpStream, Peer::Local, &[]);
    let checked = |sockets, size, buffer| {
        let spec = LoadSpec {
            message_size: size,
            socket_buffer: buffer,
            ..LoadSpec::new(LoadKind::TcpStream, &axes).over(sockets)
        };
        spec.check()
    };
    assert_eq!(checked(Sockets::UnixSeqpacket, MOST_MESSAGE, None), Ok(()));
    assert_eq!(checked(Sockets::UnixStream, 1 << 20, None), Ok(()));
    let why = checked(Sockets::UnixSeqpacket, MOST_MESSAGE + 1, None).unwrap_err();
    assert!(why.starts_with("message_size 131073 is too large"), "{why}");
    let why = checked(Sockets::UnixSeqpacket, 16384, Some(8192)).unwrap_err();
    assert!(why.ends_with("at most 16352 bytes"), "{why}");
}

#[test]
fn a_pause_takes_a_pace() {
    let mut spec = paced(1000, 1, 8_000_000);
    spec.pace_pause_ns = 1_000_000;
    assert_eq!(spec.check(), Ok(()));
    spec.pace_bps = None;
    let why = spec.check().unwrap_err();
    assert!(why.contains("set `pace`"), "{why}");
}

#[test]
fn an_event_loop_takes_no_pause() {
    let mut spec = paced(1000, 1, 8_000_000);
    for api in [Api::Epoll, Api::Uring] {
        (spec.api, spec.pace_pause_ns) = (api, 0);
        assert_eq!(spec.check(), Ok(()), "{api}");
        spec.pace_pause_ns = 1_000_000;
        let why = spec.check().unwrap_err();
        let begin = format!("api={api} and pace_pause: ");
        assert!(
            why.starts_with(&begin) && why.ends_with("leave one of them out"),
            "{why}"
        );
    }
}

#[test]
fn a_pace_is_of_all_flows_together() {
    let interval_ps = |spec: LoadSpec| spec.interval_ps();
    assert_eq!(interval_ps(paced(1000, 1, 8_000_000)), Some(1_000_000_000));
    assert_eq!(interval_ps(paced(1000, 4, 8_000_000)), Some(4_000_000_000));
    assert_eq!(paced(1000, 4, 8_000_000).check(), Ok(()));
    let part = paced(1000, 4, 8_000_000).part(3, 1);
    assert_eq!(interval_ps(part), Some(4_000_000_000));
}

#[test]
fn a_rate_that_processes_cannot_share_evenly_is_kept() {
    let mut axes = Axes::default().for_cell(LoadKind::TcpConns, Peer::Local, &[]);
    (axes.flows, axes.connections_per_s) = (64, Some(1340));
    let whole = LoadSpec::new(LoadKind::TcpConns, &axes);
    assert_eq!(whole.part(7, 1).interval_ps(), whole.interval_ps());
}

#[test]
fn numbered_datagrams_need_room_and_a_pace() {
    let of = |kind, size| {
        let mut axes = Axes::default().for_cell(kind, Peer::Local, &[]);
        axes.message_size_bytes = Some(size);
        LoadSpec::new(kind, &axes)
    };
    assert_eq!(of(LoadKind::UdpFlood, 32).check(), Ok(()));
    assert_eq!(of(LoadKind::UdpPaced, 64).check(), Ok(()));
    let error = of(LoadKind::UdpFlood, 31).check().unwrap_err();
    assert!(error.starts_with("message_size 31 is too small for udp_flood"));
    let mut spec = of(LoadKind::UdpPaced, 64);
    spec.pace_bps = None;
    let error = spec.check().unwrap_err();
    assert!(error.starts_with("udp_paced with no pace"), "{error}");
}

#[test]
fn flows_begin_one_after_another() {
    let mut axes = Axes::default().for_cell(LoadKind::UdpFlood, Peer::Local, &[]);
    axes.start = Some("staggered:2ms".parse().unwrap());
    axes.flows = 1000;
    let spec = LoadSpec::new(LoadKind::UdpFlood, &axes);
    assert_eq!(
        (spec.begins_after_ns(0), spec.begins_after_ns(999)),
        (0, 1_998_000_000)
    );
    assert_eq!(spec.part(998, 2).begins_after_ns(1), 1_998_000_000);
    assert_eq!(spec.check(), Ok(()));
    axes.start = Some("staggered:10s".parse().unwrap());
    let error = LoadSpec::new(LoadKind::UdpFlood, &axes)
        .check()
        .unwrap_err();
    assert!(
        error.starts_with(
            "the last of 1000 flows would begin 9990 s after the first: at most 600 s"
        ),
        "{error}"
    );
}

#[test]
fn a_message_now_and_then_is_no_load() {
    assert_eq!(
        paced(1024 * 1024, 1, 1_000_000).check().unwrap_err(),
        "a message of 1048576 bytes every 8388 ms is too seldom: at most 50 ms, with a greater pace or a \
         smaller message_size"
    );
}

#[test]
fn a_worker_does_not_pass_over_a_setting_that_it_does_not_know() {
    let mut said = serde_json::to_value(paced(1024, 1, 1_000_000)).unwrap();
    serde_json::from_value::<LoadSpec>(said.clone()).unwrap();
    said["of_tomorrow"] = true.into();
    let error = serde_json::from_value::<LoadSpec>(said).unwrap_err();
    assert!(error.to_string().contains("of_tomorrow"), "{error}");
}

/// The controller has a CPU for each sender, and the machine of an end has fewer.
#[test]
fn a_worker_is_crowded_by_its_own_cpus() {
    let of = |kind| LoadSpec {
        crowded: false,
        flows: 4,
        ..LoadSpec::new(kind, &Axes::default().for_cell(kind, Peer::Local, &[]))
    };
    let flood = of(LoadKind::UdpFlood);
    assert_eq!([3, 4].map(|cpus| flood.is_crowded_on(cpus)), [true, false]);
    // Streams have senders that wait for a CPU if each is a process.
    let stream = of(LoadKind::UdpStream);
    assert!(!stream.is_crowded_on(1));
    let part = stream.part(1, 1);
    assert_eq!([3, 4].map(|cpus| part.is_crowded_on(cpus)), [true, false]);
    let told = LoadSpec {
        crowded: true,
        ..stream
    };
    assert!(told.is_crowded_on(64));
}
