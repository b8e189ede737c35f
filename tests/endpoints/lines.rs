//! Path `as-is` over a connection that ends, cuts a line in half, stalls or passes a line on twice, at each message of a session.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Mutex;

use serde_json::Value;

use super::{Site, found};
use crate::support::cli::Running;
use crate::support::host::unharmed;
use crate::support::{tell, unless_disturbed, waiting};

/// Sessions side by side: they wait more than they compute.
const SIDE_BY_SIDE: usize = 4;
/// The session that is disturbed. The first is the run's look at the endpoints, the second that of its first sample.
const DISTURBED: &str = "2";

/// Who is spoken to, which way the line goes, and what it is: all of a session, in their order.
const MESSAGES: [(&str, &str, &str); 19] = [
    ("server", "from", "hello"),
    ("server", "to", "attend"),
    ("server", "from", "attending"),
    ("server", "to", "clock"),
    ("server", "from", "clock"),
    ("server", "to", "host"),
    ("server", "from", "host"),
    ("server", "to", "way"),
    ("server", "from", "way"),
    ("server", "to", "meter"),
    ("server", "from", "metered"),
    ("server", "to", "serve"),
    ("server", "from", "serving"),
    ("client", "to", "connect"),
    ("client", "from", "connected"),
    ("server", "to", "accept"),
    ("server", "from", "connected"),
    ("server", "to", "run"),
    ("server", "from", "done"),
];

/// What is done to them, and what the cause of the failure must have of these.
const ACTS: [(&str, &[&str]); 4] = [
    ("close", &[" died while ", " closed its "]),
    (
        "half",
        &["is no message of hopyard", "not a request of protocol"],
    ),
    (
        "double",
        &[
            "it greeted twice",
            " where request ",
            // The second is heard when traffic has begun.
            "a request, or the end of them, came before the window was over",
        ],
    ),
    ("delay", &[" within 5s", " within 4s"]),
];

/// One run of two samples, the first of them disturbed.
struct Case {
    end: &'static str,
    way: &'static str,
    kind: &'static str,
    act: &'static str,
    causes: &'static [&'static str],
}

impl Case {
    fn all() -> Vec<Self> {
        let of = |(act, causes): (&'static str, &'static [&'static str])| {
            MESSAGES.map(|(end, way, kind)| Self {
                end,
                way,
                kind,
                act,
                causes,
            })
        };
        ACTS.into_iter().flat_map(of).collect()
    }

    fn name(&self) -> String {
        format!("{} {} {} {}", self.act, self.end, self.way, self.kind)
    }

    /// What was wrong with it, if anything.
    fn run(&self) -> Result<String, String> {
        let site = Site::new();
        let relay = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/endpoints/relay.pl");
        let id = site
            .room
            .file("boot", "33333333-3333-4333-8333-333333333333\n");
        let mount = format!("mount --bind {id} /proc/sys/kernel/random/boot_id && exec \"$@\"");
        // Its own machine each, so that there is every message.
        let there = |end: &str| match end {
            "server" => format!("unshare --mount sh -c '{mount}' sh $ENTER \"$@\""),
            _ => "$ENTER \"$@\"".to_owned(),
        };
        let command = |end: &str| {
            let relayed = format!(
                "perl {} {} {DISTURBED} {} {} {}",
                relay.display(),
                site.room.name("sessions"),
                self.way,
                self.kind,
                self.act,
            );
            let relayed = if end == self.end {
                relayed
            } else {
                String::new()
            };
            let ns = if end == "server" {
                &site.server
            } else {
                &site.client
            };
            site.script_to(ns, end, &format!("exec {relayed} {}", there(end)))
        };
        let (client, server) = (command("client"), command("server"));
        let how = ["--loads", "tcp_rr", "--blocks", "2..2", "--window", "100ms"];
        let command = site.between(
            &client,
            &server,
            &[&how[..], &["--warm-up", "20ms"]].concat(),
        );
        let running = Running::start(found(command, &site.room));
        let said = running.wait_for_nothing_left(&BTreeSet::new());
        if said.stderr.contains("panicked") || said.stdout.is_empty() {
            return Err(said.to_string());
        }
        let cell = said.json()["cells"][0].take();
        // A connection may take that long to be made.
        if (self.act, self.kind) == ("delay", "hello") {
            let fine = said.status.code() == Some(0) && cell["status"] == "ok";
            return fine
                .then(|| "waited for".to_owned())
                .ok_or(said.to_string());
        }
        let cause = cell["cause"].as_str().unwrap_or_default();
        let is_one = said.status.code() == Some(1) && cell["failed_samples"] == 1;
        let is_told = self.causes.iter().any(|words| cause.contains(words));
        // The second sample was measured.
        let went_on = cell["way"]["devices"] != Value::Array(Vec::new());
        if is_one && is_told && went_on {
            return Ok(cause.to_owned());
        }
        Err(format!(
            "failed {}: {cause}\n{said}",
            cell["failed_samples"]
        ))
    }
}

#[test]
fn at_each_message_a_bad_connection_fails_one_sample_with_its_cause() {
    let _waiting = waiting();
    unharmed(|| {
        let cases = Mutex::new(Case::all().into_iter());
        let wrong = Mutex::new(Vec::new());
        std::thread::scope(|scope| {
            for _ in 0..SIDE_BY_SIDE {
                scope.spawn(|| {
                    loop {
                        let case = cases.lock().unwrap().next();
                        let Some(case) = case else { return };
                        // A machine that stands still for seconds fails another sample too.
                        match unless_disturbed(|| case.run()) {
                            Ok(cause) => tell(&format!("{}: {cause}", case.name())),
                            Err(why) => {
                                wrong
                                    .lock()
                                    .unwrap()
                                    .push(format!("{}: {why}", case.name()));
                            }
                        }
                    }
                });
            }
        });
        let wrong = wrong.into_inner().unwrap();
        assert!(
            wrong.is_empty(),
            "{} cases:\n{}",
            wrong.len(),
            wrong.join("\n")
        );
    });
}
