//! Printed profiles beside those of a run.

use super::{evidence, file, of_plan, stored, text};
use crate::assess::testing::{profile_window, push};
use crate::model::{LoadKind, Outcome, Peer, ProfileWindow, Rate};

const TITLE: &str = "Profile, receive: bridge, netfilter off";

/// Only the second cell has samples, which differ by window.
#[test]
fn functions_of_then_and_of_now() {
    let mut report = of_plan("netback-direct-2006", "bridge-nf");
    for path in ["bridge-nf", "bridge", "direct"] {
        let cell = crate::fixture::cell(path, Peer::Far, LoadKind::TcpMaerts);
        let pace = Rate(Some(940_000_000));
        report
            .cells
            .push(cell.axes(|axes| axes.pace_bps = Some(pace)).build());
    }
    let file = file("netback-direct-2006");
    let mut run = stored();
    let without = text(&evidence(&file, &report, &run), TITLE);
    assert!(
        without.contains("no profile was taken: `hopyard run netback-direct-2006 --profile`"),
        "{without}"
    );
    run.profiles = vec![
        profile_window(
            1,
            0,
            &[
                ("br_handle_frame", 30),
                ("tcp_ack", 900),
                ("br_nf_hook_thresh", 2),
            ],
        ),
        profile_window(
            1,
            1,
            &[
                ("br_handle_frame", 34),
                ("tcp_ack", 910),
                ("__br_forward", 10),
            ],
        ),
        // A window of another cell.
        profile_window(2, 0, &[("br_forward", 500), ("tcp_ack", 100)]),
        // One of an attempt that was interrupted.
        ProfileWindow {
            attempt: 1,
            ..profile_window(1, 1, &[("br_forward", 500)])
        },
    ];
    for block in [0, 1] {
        let cause = "of no matter here".to_owned();
        push(&mut run, block, 0, 1, Outcome::Failed { cause });
    }
    insta::assert_snapshot!(text(&evidence(&file, &report, &run), TITLE), @r"
    Profile, receive: bridge, netfilter off (one of the thread's three profiles)
                                                                  share
                                   samples                            %
    function                print     here  same?    print         here  same?
    ───────────────────────────────────────────────────────────────────────────
    br_handle_frame         1256       64          1.0052   3.39   ±91%   3.38×
    br_fdb_update           1000         –  ¹      0.8003             –  ¹
    __br_fdb_get             901         –  ¹      0.7211             –  ¹
    br_handle_frame_finish   380         –  ¹      0.3041             –  ¹
    br_dev_queue_push_xmit   283         –  ¹      0.2265             –  ¹
    __br_forward             146       10          0.1168   0.530         4.54×
    br_forward               121         –  ¹      0.0968             –  ¹
    br_forward_finish         93         –  ¹      0.0744             –  ¹
    br_fdb_cleanup             4         –  ¹      0.0032             –  ¹
    br_hold_timer_expired      1         –  ¹      0.0008             –  ¹
    br_send_config_bpdu        1         –  ¹      0.0008             –  ¹
    br_nf_hook_thresh                   2                   0.106
    TOTAL                   4186       76          3.3500   4.03  ±552%   1.20×
    ¹ no sample of this run is in it
    Print has the functions of the bridge, or of what replaces it, in percent of all samples of the
      domain; here it is those of the subsystems that connect devices, in percent of the samples of busy
      CPUs, both ends included.
    ");
}
