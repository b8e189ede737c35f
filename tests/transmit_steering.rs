//! Axis `xps`: a CPU sends by queues of its own, and only on devices where the kernel chooses the queue.

use std::process::Command;

use hopyard::model::{LoadKind, Peer};
use hopyard_net::{NetNs, cpu};

use crate::axes::{build, devices};
use crate::napi::{each_poller, sole_poller};
use crate::support::walk::{Visit, walk};
use crate::support::{beside, cell, mostly, sampler, tell};

/// What the kernel says of each transmit queue of a device: its CPUs as a set; nothing of devices with room for one queue.
fn queues(ns: &NetNs, device: &str) -> Vec<u64> {
    let script =
        format!("mount -t sysfs sysfs /sys && cat /sys/class/net/{device}/queues/tx-*/xps_cpus");
    let words = ["--mount", "sh", "-c", &script];
    let output = ns.run(|| Command::new("unshare").args(words).output());
    let text = String::from_utf8(output.unwrap().unwrap().stdout).unwrap();
    let set = |line: &str| u64::from_str_radix(&line.replace(',', ""), 16).unwrap();
    text.lines().map(set).collect()
}

#[test]
fn each_cpu_has_a_queue_of_its_own_or_the_device_is_named_that_has_none() {
    let _beside = beside();
    let cpus = cpu::online_cpus().unwrap();
    let sets: Vec<u64> = cpus.iter().map(|cpu| 1 << cpu).collect();
    let count = cpus.len().to_string();
    let checked = walk("xps", |path, peer| {
        let set = [("queues", count.as_str()), ("xps", "on")];
        match build(&cell(path.name, peer, LoadKind::TcpRr, &set)) {
            Ok(lab) => {
                let mut steered = 0;
                for (role, name) in devices(&lab) {
                    let found = queues(lab.space(role).unwrap().handle.ns(), &name);
                    if found.len() > 1 {
                        steered += 1;
                        if found != sets {
                            return Err(format!("{role}/{name}: {found:?}"));
                        }
                    }
                }
                tell(&format!("{}, {peer}: {steered} devices", path.name));
                if steered == 0 {
                    Err("no device is steered".to_owned())
                } else {
                    Ok(Visit::Checked)
                }
            }
            Err(error) => {
                let error = hopyard::chain(&error);
                tell(&format!("{}, {peer}: {error}", path.name));
                let says = ["no device of this lab has several", "set `steering=cpu`"];
                let is_told =
                    error.contains("xps=on") && says.iter().any(|why| error.contains(why));
                if is_told {
                    Ok(Visit::PassedOver)
                } else {
                    Err(error)
                }
            }
        }
    });
    checked.has(&["veth"]);
}

/// All flows are sent by one CPU. Their queue of the sender's device is a queue of the receiver's, which a thread polls.
#[test]
fn what_one_cpu_sends_goes_by_its_queue() {
    let _sole = sole_poller();
    let _beside = beside();
    let of = |value| {
        let set = [
            ("queues", "2"),
            ("flows", "8"),
            ("gro", "on"),
            ("tso", "off"),
            ("napi", "threaded"),
            ("xps", value),
            ("placement", "split"),
        ];
        let cell = cell("veth", Peer::Local, LoadKind::UdpStream, &set);
        let lab = build(&cell).unwrap();
        let measured = sampler(200, 50).measure_in(&lab, &cell, 0.0).unwrap();
        assert!(measured.received.messages > 0);
        let mut spent: Vec<u64> = each_poller().into_iter().map(|(_, spent)| spent).collect();
        spent.sort_unstable();
        let [.., second, first] = spent[..] else {
            panic!("{spent:?}")
        };
        (first, second)
    };
    mostly(|| {
        let ((off, off_other), (on, on_other)) = (of("off"), of("on"));
        let said = format!(
            "busiest two queues: {off} and {off_other} ns with xps=off, {on} and {on_other} ns with xps=on"
        );
        tell(&said);
        if on > 20 * on_other && off < 20 * off_other {
            Ok(())
        } else {
            Err(said)
        }
    })
    .unwrap();
}
