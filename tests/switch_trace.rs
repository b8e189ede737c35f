//! `hopyard switch trace`: what it says, and what is left of it.

use std::path::Path;
use std::time::Duration;

use aya::maps::{Array, Map, MapData};
use nix::sys::signal::Signal;

use crate::support::cli::{Running, hopyard};
use crate::support::icmp::ping_within;
use crate::support::site::{NAME, Site, nothing_stands, with_own_mounts};
use crate::support::{beside, until};

const PATIENCE: Duration = Duration::from_secs(60);
/// Nobody answers. The guest repeats its question each second, and a new request asks anew when it has given up.
const ASKED: Duration = Duration::from_millis(100);

/// Until when somebody asks for drops; 0: nobody does.
fn asked_until() -> u64 {
    let home = Path::new("/sys/fs/bpf/hopyard/switch");
    let map = MapData::from_pin(home.join(NAME).join("traced")).unwrap();
    let wishes: Array<_, [u64; 3]> = Map::from_map_data(map).unwrap().try_into().unwrap();
    wishes.get(&0, 0).unwrap()[0]
}

/// Starts a tracer, and waits until it is told of drops.
fn start(site: &Site, words: &[&str]) -> Running {
    let mut all = vec!["switch", "trace"];
    all.extend(words);
    let before = asked_until();
    let tracer = site.hub.run(|| Running::start(hopyard(&all))).unwrap();
    until("a tracer asks", PATIENCE, || asked_until() > before);
    tracer
}

#[test]
fn a_tracer_says_why_a_frame_was_dropped_and_leaves_nothing_when_killed() {
    let _beside = beside();
    with_own_mounts(|| {
        let site = Site::new();
        site.furnish(2);
        site.switch(&["port", "set", NAME, "p0", "--isolated"])
            .exits(0);
        // A question is a broadcast, of which the other guest gets no copy.
        let ask = || ping_within(&site.guests[0], [192, 0, 2, 2].into(), ASKED);
        let asked_until_ended = |tracer: &mut Running| {
            until("the tracer has seen enough", PATIENCE, || {
                let _ = ask();
                tracer.has_ended()
            });
        };

        let mut tracer = start(&site, &["p0", "--count", "2", "--timeout", "60s"]);
        let busy = site.switch(&["trace", "p1"]);
        busy.exits(2).says(&["somebody traces it already"]);
        asked_until_ended(&mut tracer);
        let said = tracer.wait();
        said.exits(0).says(&["waiting for frames from or to `p0`"]);
        said.prints(&[
            " isolated (between ports of which one is isolated), from p0 to p1, ",
            "ARP who has 192.0.2.2, tell 192.0.2.1",
        ]);
        assert_eq!(said.stdout.lines().count(), 2, "{said}");
        assert_eq!(asked_until(), 0);

        let mut tracer = start(&site, &["p1", "-n", "1", "--json", "--switch", NAME]);
        asked_until_ended(&mut tracer);
        let document = tracer.wait().exits(0).json();
        let text = |key: &str| document[key].as_str().unwrap();
        assert_eq!(["reason", "from", "to"].map(text), ["isolated", "p0", "p1"]);
        assert!(text("octets").starts_with("ffffffffffff"), "{document}");

        // Killed, it asks for two seconds more and keeps nobody else away; interrupted, it ends well.
        let tracer = start(&site, &["p1"]);
        tracer.signal(Signal::SIGKILL);
        tracer.wait();
        let tracer = start(&site, &["p1"]);
        tracer.signal(Signal::SIGINT);
        tracer.wait().exits(0).says(&["no frame was dropped"]);
        assert_eq!(asked_until(), 0);

        // Its port goes, or its switch.
        let tracer = start(&site, &["p1"]);
        site.switch(&["port", "del", NAME, "p1"]).exits(0);
        tracer.wait().exits(2).says(&["none of its ports"]);
        site.switch(&["trace", "up0", "--timeout", "1s"]).exits(2);
        site.switch(&["trace", "p0", "--timeout", "100ms"])
            .exits(0)
            .says(&["no frame was dropped"]);
        let tracer = start(&site, &["p0"]);
        site.switch(&["delete", NAME]).exits(0);
        tracer.wait().exits(2).says(&["there is no switch"]);
        nothing_stands();
        let none = site.switch(&["trace", "p1"]);
        none.exits(2).says(&["there is no switch"]);
    });
}
