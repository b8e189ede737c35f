//! `hopyard switch` as somebody meets it who may not use it.

use std::process::Command;

use crate::support::apart::{NAME, Site, apart, nothing_stands};
use crate::support::beside;
use crate::support::cli::PROGRAM;

#[test]
fn without_privilege_it_says_so_and_changes_nothing() {
    let _beside = beside();
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
