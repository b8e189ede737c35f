//! Devices, their settings and what the errors say.

use std::fs;
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use hopyard_net::{
    BridgeSettings, Error, KINDS, LinkKind, MacvlanMode, NewLink, Offload, OffloadState,
    probe_kind, probe_shaping,
};

use crate::{PATIENCE, ip, namespace, pair, veth};

/// A kind is either made or reported as unsupported with a remedy, whatever this kernel has.
#[test]
fn every_kind_is_made_or_explained() {
    for kind in KINDS {
        match probe_kind(kind) {
            Ok(()) => println!("{kind}: present"),
            Err(error) => {
                println!("{kind}: {error}");
                assert!(error.is_unsupported(), "{kind}: {error:?}");
                let text = error.to_string();
                assert!(
                    text.starts_with(&format!("cannot create {kind} `probe`")),
                    "{text}"
                );
                let module = if kind == "gre" { "ip_gre" } else { kind };
                assert!(text.contains(&format!("load module `{module}`")), "{text}");
                assert!(
                    !fs::exists(format!("/sys/module/{module}")).unwrap(),
                    "{kind} is there: {text}"
                );
            }
        }
    }
    for kind in ["veth", "bridge"] {
        probe_kind(kind).unwrap();
    }
    assert!(matches!(
        probe_kind("token-ring"),
        Err(Error::Invalid { .. })
    ));
    match probe_shaping() {
        Err(error) => assert!(error.is_unsupported(), "{error}"),
        Ok(()) => println!("tbf: present"),
    }
}

#[test]
fn devices_change_as_told() {
    let (a, b) = pair();
    a.set_mtu("a0", 9000).unwrap();
    a.set_mac("a0", [2, 0, 0, 0, 0, 1]).unwrap();
    a.set_down("a0").unwrap();
    let link = a.link("a0").unwrap();
    assert_eq!(
        (link.mtu, link.mac, link.up, link.carrier),
        (9000, Some([2, 0, 0, 0, 0, 1]), false, false)
    );
    a.rename("a0", "x0").unwrap();
    a.set_up("x0").unwrap();
    assert!(a.link("x0").unwrap().up);
    a.move_to("x0", b.ns()).unwrap();
    assert!(matches!(a.link("x0"), Err(Error::Missing { .. })));
    let names: Vec<_> = b
        .links()
        .unwrap()
        .into_iter()
        .map(|link| link.name)
        .collect();
    assert!(
        names.contains(&"x0".into()) && names.contains(&"b0".into()),
        "{names:?}"
    );
    b.delete_link("x0").unwrap();
    assert!(
        matches!(b.link("b0"), Err(Error::Missing { .. })),
        "the peer goes with it"
    );
    let with_limits = NewLink {
        gso_max_size: Some(32_768),
        mtu: Some(1400),
        queues: Some(2),
        ..veth("g0", "g1", None)
    };
    b.add_link(&with_limits).unwrap();
    let (one, other) = (b.link("g0").unwrap(), b.link("g1").unwrap());
    assert_eq!(
        (one.gso_max_size, one.mtu, other.mtu),
        (Some(32_768), 1400, 1400)
    );
    let segments = || b.max_sizes("g0").unwrap().gso_max_segs;
    assert!(segments() > Some(1));
    b.set_gso_max_segs("g0", 1).unwrap();
    assert_eq!(segments(), Some(1));
    let beyond = b.set_gso_max_segs("g0", u32::MAX).unwrap_err();
    assert!(
        beyond.to_string().contains("`g0`"),
        "names the device: {beyond}"
    );
    assert_eq!(segments(), Some(1));
}

#[test]
fn errors_name_operation_object_and_way_out() {
    let a = namespace();
    let text = |result: hopyard_net::Result<()>| result.unwrap_err().to_string();
    assert_eq!(
        text(a.delete_link("nope")),
        "cannot delete device `nope`: there is no device `nope` in this namespace"
    );
    assert_eq!(
        text(a.set_master("p", "br9")),
        "cannot add port `p` to bridge `br9`: there is no device `br9` in this namespace"
    );
    assert_eq!(
        text(a.set_up("nope")),
        "cannot bring `nope` up: there is no device `nope` in this namespace"
    );
    let long = text(a.add_link(&NewLink::new(
        "a-name-of-16-byte",
        LinkKind::Bridge(BridgeSettings::default()),
    )));
    assert!(long.contains("1 to 15 bytes"), "{long}");
    let kind = LinkKind::Macvlan {
        lower: "up9".into(),
        mode: MacvlanMode::Bridge,
    };
    assert_eq!(
        text(a.add_link(&NewLink::new("mv0", kind))),
        "cannot create macvlan `mv0` on `up9`: there is no device `up9` in this namespace"
    );
    a.add_link(&NewLink::new(
        "br0",
        LinkKind::Bridge(BridgeSettings::default()),
    ))
    .unwrap();
    let taken = a
        .add_link(&NewLink::new(
            "br0",
            LinkKind::Bridge(BridgeSettings::default()),
        ))
        .unwrap_err();
    assert_eq!(taken.errno(), Some(libc::EEXIST));
    let prefix = text(a.add_address("br0", ip("10.0.0.1"), 33));
    assert_eq!(
        prefix,
        "cannot add address 10.0.0.1/33 to `br0`: a prefix has at most 32 bits"
    );
    let detail = text(a.set_mtu("br0", 1));
    println!("{detail}");
    assert!(
        detail.starts_with("cannot set the MTU of `br0` to 1"),
        "{detail}"
    );
    assert!(matches!(a.offloads("nope"), Err(Error::Missing { .. })));
}

#[test]
fn a_device_names_its_driver() {
    let (a, _b) = pair();
    assert_eq!(a.driver("a0").unwrap().as_deref(), Some("veth"));
    assert_eq!(a.driver("lo").unwrap(), None);
    let missing = a.driver("nope");
    assert!(matches!(missing, Err(Error::Missing { .. })), "{missing:?}");
}

#[test]
fn offloads_are_read_back() {
    let (a, _b) = pair();
    let before = a.offloads("a0").unwrap();
    println!("{before:?}");
    assert_eq!(before.tso, OffloadState::On);
    assert_eq!(before.lro, OffloadState::Fixed(false));
    for offload in [Offload::Tso, Offload::Gso, Offload::Gro] {
        assert_eq!(
            a.set_offload("a0", offload, false).unwrap(),
            OffloadState::Off,
            "{offload}"
        );
        assert_eq!(
            a.set_offload("a0", offload, true).unwrap(),
            OffloadState::On,
            "{offload}"
        );
    }
    assert_eq!(
        a.set_offload("a0", Offload::TxChecksum, false).unwrap(),
        OffloadState::Off
    );
    assert_ne!(
        a.offloads("a0").unwrap().tso,
        OffloadState::On,
        "segmentation needs checksums"
    );
    assert_ne!(
        a.set_offload("a0", Offload::Tso, true).unwrap(),
        OffloadState::On
    );
    assert_eq!(
        a.set_offload("a0", Offload::TxChecksum, true).unwrap(),
        OffloadState::On
    );
    assert_eq!(a.offloads("a0").unwrap().tso, OffloadState::On);
    assert_eq!(
        a.set_offload("a0", Offload::Lro, true).unwrap(),
        OffloadState::Fixed(false)
    );
}

#[test]
fn a_device_comes_back_with_the_index_that_it_had() {
    let (a, b) = pair();
    let there = namespace();
    let index = a.link("a0").unwrap().index;
    // Its index is taken there, so that it gets another one on the way.
    there.add_link(&veth("x0", "x1", None)).unwrap();
    a.move_to("a0", there.ns()).unwrap();
    assert_ne!(there.link("a0").unwrap().index, index);
    there.move_as("a0", a.ns(), index).unwrap();
    assert_eq!(a.link("a0").unwrap().index, index);
    // Somebody else has it now.
    let taken = b.link("b0").unwrap().index;
    a.move_as("a0", b.ns(), taken).unwrap();
    assert_ne!(b.link("a0").unwrap().index, taken);
}

#[test]
fn a_route_from_an_address_that_is_looked_for_elsewhere_first_is_put_back() {
    let (a, _b) = pair();
    let there = namespace();
    let ip = |words: &str| {
        let words = words.split(' ');
        let output = a.ns().run(|| Command::new("ip").args(words).output());
        output.unwrap().unwrap()
    };
    a.set_sysctl("net/ipv6/conf/a0/accept_dad", "1").unwrap();
    a.set_sysctl("net/ipv6/conf/a0/dad_transmits", "1").unwrap();
    ip("-6 address add fd00:5::1/64 dev a0");
    let route = "fd00:77::/64 dev a0 src fd00:5::1";
    let deadline = Instant::now() + PATIENCE;
    assert!(!ip(&format!("-6 route add {route}")).status.success());
    while !ip(&format!("-6 route add {route}")).status.success() {
        assert!(Instant::now() < deadline);
        thread::sleep(Duration::from_millis(50));
    }
    let config = a.device_config("a0").unwrap();
    a.move_to("a0", there.ns()).unwrap();
    there.move_to("a0", a.ns()).unwrap();
    let refused = a.configure_device("a0", &config).unwrap();
    assert!(refused.is_empty(), "{refused:?}");
    let shown = ip("-6 route show fd00:77::/64").stdout;
    let shown = String::from_utf8(shown).unwrap();
    assert!(shown.contains("src fd00:5::1"), "{shown}");
}

#[test]
fn an_end_whose_namespace_is_gone_is_missing() {
    let (a, b) = pair();
    let link = a.link("a0").unwrap();
    assert!(a.lower_of(&link).unwrap().is_some());
    drop(b);
    let end = Instant::now() + PATIENCE;
    while a.link("a0").is_ok() {
        assert!(Instant::now() < end, "the namespace stays");
        thread::sleep(Duration::from_millis(1));
    }
    let error = a.lower_of(&link).unwrap_err();
    assert!(matches!(error, Error::Missing { .. }), "{error:?}");
}

/// Has the kernel make no process for this thread any more. Threads are made by another call.
fn refuse_forks() {
    let number = u32::try_from(libc::SYS_clone).unwrap();
    let refuse = libc::SECCOMP_RET_ERRNO | u32::try_from(libc::EAGAIN).unwrap();
    let instruction = |code: u32, jf, k| libc::sock_filter {
        code: u16::try_from(code).unwrap(),
        jt: 0,
        jf,
        k,
    };
    // The number of the call comes first in `struct seccomp_data`.
    let mut filter = [
        instruction(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, 0, 0),
        instruction(libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K, 1, number),
        instruction(libc::BPF_RET | libc::BPF_K, 0, refuse),
        instruction(libc::BPF_RET | libc::BPF_K, 0, libc::SECCOMP_RET_ALLOW),
    ];
    let program = libc::sock_fprog {
        len: 4,
        filter: filter.as_mut_ptr(),
    };
    let mode = libc::SECCOMP_MODE_FILTER;
    // SAFETY: prctl(2) reads a program whose instructions live until it returns.
    let set = unsafe { libc::prctl(libc::PR_SET_SECCOMP, mode, &raw const program) };
    assert_eq!(set, 0, "{}", std::io::Error::last_os_error());
}

#[test]
fn a_device_goes_also_where_there_is_no_room_for_a_process() {
    let handle = namespace();
    handle.add_link(&veth("p0", "p1", None)).unwrap();
    let deleted = thread::scope(|scope| {
        let delete = || {
            refuse_forks();
            handle.delete_link_unawaited("p0")
        };
        scope.spawn(delete).join().unwrap()
    });
    deleted.unwrap();
    assert_eq!(handle.links().unwrap().len(), 1, "only loopback is left");
}
