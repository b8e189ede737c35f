//! `hopyard switch` as somebody meets it who may not use it.

use std::process::Command;

use hopyard_net::Handle;

use crate::support::apart;
use crate::support::cli::PROGRAM;
use crate::support::site::{NAME, Site, nothing_stands};

#[test]
fn without_privilege_it_says_so_and_changes_nothing() {
    apart(|| {
        let site = Site::new();
        site.furnish(1);
        let before = (site.shown(), site.programs());
        // Where nobody in particular may run it.
        let program = "/run/hopyard";
        std::fs::copy(PROGRAM, program).unwrap();
        for words in [
            &["create", "other", "--uplink", "up0"] as &[&str],
            &["port", "add", NAME, "p1"],
            &["port", "del", NAME, "p0"],
            &["uplink", NAME, "up0"],
            &["upgrade", NAME],
            &["delete", NAME],
            &["show"],
            &["stats", NAME],
        ] {
            let mut setpriv = Command::new("setpriv");
            setpriv.args(["--reuid=65534", "--regid=65534", "--clear-groups", program]);
            setpriv.arg("switch").args(words);
            site.run(setpriv)
                .exits(2)
                .says(&["permission denied; run as root"]);
        }
        assert_eq!(before, (site.shown(), site.programs()));
        site.switch(&["delete", NAME]).exits(0);
        nothing_stands();
    });
}

/// Nobody who makes a switch has to ask `show` what is wrong with its uplink.
#[test]
fn create_and_uplink_say_at_once_what_is_wrong_with_the_uplink() {
    apart(|| {
        let site = Site::new();
        let hub = Handle::new(&site.hub).unwrap();
        hub.set_down("up0").unwrap();
        for words in [
            &[
                "create",
                NAME,
                "--uplink",
                "up0",
                "--host-mac",
                "00:00:5e:00:01:07",
            ] as &[&str],
            &["uplink", NAME, "up0"],
            &["show", NAME],
        ] {
            site.switch(words)
                .exits(0)
                .says(&["the uplink `up0` is down"]);
        }
        hub.set_up("up0").unwrap();
        assert_eq!(
            site.shown()[0]["uplink"]["host_macs"][0],
            "00:00:5e:00:01:07"
        );
        site.switch(&["uplink", NAME, "nosuch"])
            .exits(2)
            .says(&["there is no device `nosuch`"]);
        site.switch(&["delete", NAME]).exits(0);
        nothing_stands();
    });
}
