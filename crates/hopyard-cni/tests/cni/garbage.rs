//! GC, and calls that are killed.

use std::fs::{self, File};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use std::time::{Duration, SystemTime};

use serde_json::{Value, json};

use crate::host::{Container, Host, RECORDS, RESERVED, Running, conf_with, files, on_host, with};

pub(crate) fn attachments(ids: &[&str]) -> Value {
    ids.iter()
        .map(|id| json!({ "containerID": id, "ifname": "eth0" }))
        .collect()
}

fn conf_of(n: usize) -> Value {
    conf_with(
        "1.1.0",
        "front",
        &format!("10.1.{}.{}/16", 2 + n / 200, n % 200 + 1),
    )
}

fn reserved() -> Vec<String> {
    files(RESERVED).into_iter().collect()
}

#[test]
fn gc_removes_what_is_not_valid_with_its_addresses() {
    on_host(|host| {
        let containers = ["a", "b", "c"].map(|id| host.container(id));
        for (n, container) in containers.iter().enumerate() {
            host.call("ADD", &conf_of(n), container).works();
        }
        let other = host.container("z");
        host.call("ADD", &with(&conf_of(9), json!({ "name": "back" })), &other)
            .works();
        // Both names of the key, together or alone.
        let gc = with(
            &conf_of(0),
            json!({
                "cni.dev/valid-attachments": attachments(&["a", "b"]),
                "cni.dev/attachments": attachments(&["a", "b"]),
            }),
        );
        host.call_network("GC", &gc).works();
        assert_eq!(reserved(), ["a:eth0", "b:eth0", "z:eth0"]);
        assert!(containers[2].inside.link("eth0").is_err());
        assert!(containers[0].reaches(&containers[1].inside, "10.1.2.2"));
        for key in ["cni.dev/valid-attachments", "cni.dev/attachments"] {
            let gc = with(&conf_of(0), json!({ key: attachments(&["b"]) }));
            host.call_network("GC", &gc).works();
            assert_eq!(reserved(), ["b:eth0", "z:eth0"]);
        }
        // What is not understood removes nothing.
        for wrong in [json!({}), json!([{ "containerID": "b" }]), json!(["b"])] {
            let gc = with(&conf_of(0), json!({ "cni.dev/valid-attachments": wrong }));
            host.call_network("GC", &gc)
                .fails(7, &["cni.dev/valid-attachments"]);
        }
        assert_eq!(reserved(), ["b:eth0", "z:eth0"]);
        // As `cnitool gc` calls it: none is valid. Other networks stay.
        host.call_network("GC", &conf_of(0)).works();
        assert_eq!(reserved(), ["z:eth0"]);
        let gc = with(&conf_of(0), json!({ "name": "back" }));
        host.call_network("GC", &gc).works();
        host.is_clean();
    });
}

#[test]
fn gc_goes_on_after_errors_and_names_them() {
    on_host(|host| {
        for (n, id) in ["a", "b", "c"].iter().enumerate() {
            let mut conf = conf_of(n);
            if *id != "c" {
                conf["ipam"]["fail"] = "DEL".into();
            }
            host.call("ADD", &conf, &host.container(id)).works();
        }
        // Not that of the call either, where a record's fails.
        let failing = |conf: Value| {
            let mut conf = conf;
            conf["ipam"]["fail"] = "DEL".into();
            conf
        };
        let said = host.call_network("GC", &failing(conf_of(0)));
        said.fails(
            142,
            &["container `a`", "container `b`", "no more addresses"],
        );
        assert!(host.devices().is_empty() && host.switches().is_empty());
        assert_eq!(reserved(), ["a:eth0", "b:eth0"]);
        // A record that cannot be read: the configuration of the call will do.
        for id in ["a", "b"] {
            std::fs::write(format!("{RECORDS}/front/{id}:eth0"), "{").unwrap();
        }
        std::fs::write(format!("{RECORDS}/front/.1:d:eth0"), "").unwrap();
        // What was written just now is an ADD under way.
        std::thread::sleep(Duration::from_millis(20));
        host.call_network("GC", &conf_of(0)).works();
        host.is_clean();
    });
}

#[test]
fn gc_waits_for_the_ipam_plugin_of_an_add_that_was_killed() {
    on_host(|host| {
        let mut conf = conf_of(0);
        conf["ipam"]["slow"] = "0.5".into();
        let container = host.container("a");
        let mut add = host.start("ADD", &conf, &container, "");
        while !std::path::Path::new("/run/ipam.log").exists() {
            std::thread::sleep(Duration::from_millis(1));
        }
        add.child.kill().unwrap();
        add.child.wait().unwrap();
        // The plugin lives on, and reserves an address only now.
        assert!(reserved().is_empty());
        host.call_network("GC", &conf).works();
        host.is_clean();
    });
}

/// How many ADDs are under way at once.
const SIDE_BY_SIDE: usize = 5;

/// Kills ADDs at random moments; gives how many were done before that.
pub(crate) fn killed(
    host: &Host,
    count: usize,
    containers: &mut Vec<Container>,
    conf_of: impl Fn(usize) -> Value,
) -> usize {
    let mut done = 0;
    let mut random = 0x2545_f491_4f6c_dd1d_u64;
    let first = host.container("first");
    host.call("ADD", &conf_of(1999), &first).works();
    let second = host.container("second");
    let began = std::time::Instant::now();
    host.call("ADD", &conf_of(1998), &second).works();
    // What one takes beside others: the moments are spread over all of it.
    let whole = began.elapsed() * 2;
    containers.extend([first, second]);
    for batch in 0..count / SIDE_BY_SIDE {
        let numbers = batch * SIDE_BY_SIDE..(batch + 1) * SIDE_BY_SIDE;
        let began = containers.len();
        containers.extend(numbers.clone().map(|n| host.container(&format!("c{n}"))));
        let adds = numbers.clone().zip(&containers[began..]);
        let mut adds: Vec<(Duration, Running)> = adds
            .map(|(n, container)| {
                random ^= random << 13;
                random ^= random >> 7;
                random ^= random << 17;
                let share = (random % 1000) as u32;
                let add = host.start("ADD", &conf_of(n), container, "");
                (whole * share / 1000, add)
            })
            .collect();
        adds.sort_by_key(|(when, _)| *when);
        let mut waited = Duration::ZERO;
        for (when, add) in &mut adds {
            std::thread::sleep(*when - waited);
            waited = *when;
            let _ = add.child.kill();
            done += usize::from(add.child.wait().unwrap().success());
        }
        // Some are deleted, as a runtime does that knows of the failure.
        if batch % 2 == 1 {
            let last = containers.last().unwrap();
            host.call("DEL", &conf_of(numbers.end - 1), last).works();
        }
    }
    done
}

/// Has a file be changed in an hour: the clock was wrong, and is set back since.
pub(crate) fn set_ahead(file: &str) {
    let ahead = SystemTime::now() + Duration::from_secs(3600);
    let file = File::options().write(true).open(file).unwrap();
    file.set_modified(ahead).unwrap();
}

#[test]
fn gc_removes_what_was_made_before_the_clock_was_set_back() {
    on_host(|host| {
        host.call("ADD", &conf_of(0), &host.container("a")).works();
        set_ahead(&format!("{RECORDS}/front/a:eth0"));
        host.call_network("GC", &conf_of(0)).works();
        host.is_clean();
    });
}

/// Has a file be changed in a whole second, so long ago.
fn set_whole_second(file: &str, ago_s: u64) {
    let epoch = SystemTime::UNIX_EPOCH;
    let now = SystemTime::now().duration_since(epoch).unwrap();
    let whole = epoch + Duration::from_secs(now.as_secs() - ago_s);
    let file = File::options().write(true).open(file).unwrap();
    file.set_modified(whole).unwrap();
}

/// Some file systems know only in which second a file was changed.
#[test]
fn gc_leaves_what_may_have_been_made_since_it_began() {
    on_host(|host| {
        let record = format!("{RECORDS}/front/a:eth0");
        host.call("ADD", &conf_of(0), &host.container("a")).works();
        let in_its_second = || {
            let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
            Duration::from_nanos(now.unwrap().subsec_nanos().into())
        };
        while in_its_second() > Duration::from_millis(300) {
            std::thread::sleep(Duration::from_millis(10));
        }
        set_whole_second(&record, 0);
        host.call_network("GC", &conf_of(0)).works();
        assert!(Path::new(&record).exists());
        set_whole_second(&record, 2);
        host.call_network("GC", &conf_of(0)).works();
        host.is_clean();
    });
}

/// An ADD that is killed between the first two steps leaves a file that no other call of the same container has a name for.
#[test]
fn the_last_del_takes_what_was_never_finished_too() {
    on_host(|host| {
        let containers = ["a", "b"].map(|id| host.container(id));
        for (n, container) in containers.iter().enumerate() {
            host.call("ADD", &conf_of(n), container).works();
        }
        fs::write(format!("{RECORDS}/front/.1:c:eth0"), "{").unwrap();
        for (n, container) in containers.iter().enumerate() {
            host.call("DEL", &conf_of(n), container).works();
        }
        host.is_clean();
    });
}

#[test]
fn records_may_be_on_another_disk() {
    on_host(|host| {
        let (disk, link) = ("/var/lib/disk", "/var/lib/cni");
        fs::create_dir(disk).unwrap();
        symlink(disk, link).unwrap();
        let container = host.container("a");
        host.call("ADD", &conf_of(0), &container).works();
        assert_eq!(files("/var/lib/disk/hopyard/front").len(), 1);
        host.call("DEL", &conf_of(0), &container).works();
        host.is_clean();
        // Whoever could change what is there could have root remove files.
        fs::set_permissions(disk, PermissionsExt::from_mode(0o777)).unwrap();
        let said = host.call("ADD", &conf_of(0), &container);
        said.fails(5, &[disk, "lets others write"]);
        host.is_clean();
        assert!(Path::new(link).is_symlink());
    });
}

/// How many ADDs are killed; a thousand by hand.
pub(crate) fn how_many() -> usize {
    let asked = std::env::var("HOPYARD_KILLED_ADDS").ok();
    asked.and_then(|asked| asked.parse().ok()).unwrap_or(100)
}

#[test]
fn killed_adds_leave_nothing_after_gc() {
    on_host(|host| {
        let count = how_many();
        // Kept: a namespace that goes takes the device with it.
        let mut containers = Vec::new();
        let done = killed(host, count, &mut containers, conf_of);
        let leaked = reserved().len();
        assert!(
            leaked > 2,
            "nothing was killed half-way ({done} of {count} were done)"
        );
        std::thread::sleep(Duration::from_millis(50));
        let valid = with(
            &conf_of(0),
            json!({ "cni.dev/valid-attachments": attachments(&["first", "second"]) }),
        );
        host.call_network("GC", &valid).works();
        assert_eq!(reserved(), ["first:eth0", "second:eth0"]);
        assert_eq!(host.devices().len(), 2);
        // That is why it has room again for all of them.
        host.call_network("GC", &conf_of(0)).works();
        host.is_clean();
        let text = format!(
            "cni: {count} ADDs killed, {done} done before; {leaked} reservations, 0 after GC\n"
        );
        // A reader that went away is no reason to fail.
        let _ = std::io::Write::write_all(&mut std::io::stderr(), text.as_bytes());
    });
}
