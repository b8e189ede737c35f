//! What is said to differ between two runs.

use super::*;
use crate::model::{
    EndpointInterface, EndpointUsed, EndpointsAsked, EndpointsUsed, Settings, SettingsReport,
    SwitchedBetween,
};

#[test]
fn only_what_differs_is_told() {
    let [a, mut b] = singles(&[1.0; 2], &[1.0; 2], 0.01, 1);
    let same = of_two(&a, &b, &Ask::default()).unwrap().differences;
    assert!(same.is_empty(), "{same:?}");
    let env = &mut b.header.environment;
    env.kernel_release = "7".into();
    env.mitigations
        .insert("retbleed".into(), "Vulnerable".into());
    env.sysctls.clear();
    b.header.window_ns = 100_000_000;
    b.header.turn_ns = Some(20_000_000);
    b.header.settings = Some(SettingsReport {
        commands: Settings {
            a: "true".into(),
            b: "sysctl x=9".into(),
            restore: None,
        },
        switched_between: SwitchedBetween::Turns,
        switch_s: 0.01,
    });
    b.header.endpoints = Some(EndpointsAsked {
        client: "ssh one".into(),
        server: "ssh two".into(),
        server_address: Some([192, 0, 2, 1].into()),
        cards: Some(["up0".into(), "up1".into()]),
    });
    let report = of_two(&a, &b, &Ask::default()).unwrap();
    let told: Vec<_> = report
        .differences
        .iter()
        .map(|d| (&*d.what, &*d.a, &*d.b))
        .collect();
    assert_eq!(
        told,
        [
            ("kernel", "6", "7"),
            ("net.ipv4.tcp_congestion_control", "cubic", ""),
            ("mitigation of retbleed", "", "Vulnerable"),
            ("window", "200ms", "100ms"),
            ("turns", "off", "on"),
            ("command of --a", "", "true"),
            ("command of --b", "", "sysctl x=9"),
            ("client reached by", "", "ssh one"),
            ("server reached by", "", "ssh two"),
            ("card of the client", "", "up0"),
            ("card of the server", "", "up1"),
            ("address of the server", "", "192.0.2.1"),
        ]
    );
}

/// What is at the ends counts for each cell; what an end does not report is no difference.
#[test]
fn machines_and_devices_of_endpoints_are_told() {
    let of = |mtu_bytes, tso: &str, device: &str| EndpointUsed {
        connect: "ssh one".into(),
        kernel: "6".into(),
        device: device.into(),
        is_on_this_kernel: false,
        round_trip_ns: 1000,
        machine: None,
        interface: Some(EndpointInterface {
            driver: Some("e1000".into()),
            mtu_bytes,
            offloads: [("tso".to_owned(), tso.to_owned())].into(),
        }),
    };
    let [mut a, mut b] = singles(&[1.0; 2], &[1.0; 2], 0.01, 1);
    let both = |client, server| EndpointsUsed {
        server_address: "192.0.2.1".into(),
        client,
        server,
        are_one_machine: Some(false),
    };
    let with = |run: &mut Run, used: &EndpointsUsed| {
        let measured = run.samples.iter_mut().filter(|s| s.cell == 1);
        for sample in measured {
            if let Outcome::Measured(measured) = &mut sample.outcome {
                measured.endpoints = Some(used.clone());
            }
        }
    };
    with(
        &mut a,
        &both(of(1500, "on", "eth0"), of(1500, "on", "eth0")),
    );
    with(
        &mut b,
        &both(of(9000, "on", "eth0"), of(1500, "off", "eth1")),
    );
    let report = of_two(&a, &b, &Ask::default()).unwrap();
    let differences = report.differences.iter();
    let told: Vec<_> = differences.map(|d| (&*d.what, &*d.a, &*d.b)).collect();
    assert_eq!(
        told,
        [
            ("MTU of the client (1 cell)", "1500", "9000"),
            ("device of the server (1 cell)", "eth0", "eth1"),
            ("tso of the server (1 cell)", "on", "off"),
        ]
    );
}
