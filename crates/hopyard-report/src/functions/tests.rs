use super::{Error, text};
use crate::assess::testing::{compared_over, profile_window};
use crate::model::stored::Run;

/// Two windows of a bridge, one of them with a function that a compiler renamed.
fn run() -> Run {
    let mut run = compared_over(2, 0.9);
    let first = [
        ("br_handle_frame", 30),
        ("nf_hook_slow", 10),
        ("tcp_ack", 40),
    ];
    let second = [
        ("br_handle_frame.isra.0", 15),
        ("br_forward", 5),
        ("tcp_ack", 100),
    ];
    run.profiles = vec![profile_window(1, 0, &first), profile_window(1, 1, &second)];
    run
}

#[test]
fn functions_of_what_connects_are_counted_and_summed() {
    insta::assert_snapshot!(text(&run(), &[]).unwrap(), @r"
    bridge · local · tcp_stream
    function         samples       %
    ────────────────────────────────
    br_handle_frame       45  22.500
    nf_hook_slow          10   5.000
    br_forward             5   2.500
    TOTAL                 60  30.000
    Of 200 samples of busy CPUs; functions of netfilter, bridge, ovs, macvlan, bpf, af_xdp, vxlan,
      wireguard, macsec, ipsec.
    ");
}

#[test]
fn subsystems_are_chosen_by_name() {
    let named = |names: &[&str]| {
        let names: Vec<String> = names.iter().map(|&name| name.to_owned()).collect();
        text(&run(), &names)
    };
    let tcp = named(&["tcp"]).unwrap();
    assert!(
        tcp.contains("tcp_ack") && !tcp.contains("br_forward"),
        "{tcp}"
    );
    let both = named(&["tcp", "bridge"]).unwrap();
    assert!(
        both.contains("tcp_ack") && both.contains("br_forward"),
        "{both}"
    );
    let unknown = named(&["tcp", "tpc"]).unwrap_err();
    assert!(matches!(&unknown, Error::Unknown { name } if name == "tpc"));
    assert!(unknown.to_string().contains("netfilter"), "{unknown}");
}

#[test]
fn without_profiles_there_is_nothing_to_count() {
    assert!(matches!(
        text(&compared_over(2, 0.9), &[]),
        Err(Error::None)
    ));
    // An idle window has no busy samples.
    let mut idle = compared_over(2, 0.9);
    idle.profiles = vec![profile_window(0, 0, &[])];
    assert!(matches!(text(&idle, &[]), Err(Error::None)));
}
