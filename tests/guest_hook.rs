//! The hook of libvirt and script of Xen in `contrib/libvirt`, called as these call it.

use std::fs;
use std::path::Path;
use std::process::Command;

use hopyard_net::Handle;
use hopyard_switch::Mac;

use crate::support::apart;
use crate::support::cli::{PROGRAM, Said};
use crate::support::plan::write_program;
use crate::support::site::{Site, nothing_stands};

const HOOK: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/../../contrib/libvirt/hopyard-guest"
);

/// The hook with libvirt's arguments and a definition on stdin.
fn call(site: &Site, guest: &str, operation: &str, definition: &str) -> Said {
    let bin = Path::new(PROGRAM).parent().unwrap();
    call_with(site, bin, guest, operation, definition)
}

/// As [`call`], with the directory in which `hopyard` is.
fn call_with(site: &Site, bin: &Path, guest: &str, operation: &str, definition: &str) -> Said {
    let file = Path::new("/run").join(format!("{guest}.xml"));
    fs::write(&file, definition).unwrap();
    let mut command = Command::new("sh");
    let script = format!(
        "exec {HOOK} {guest} {operation} begin - < {}",
        file.display()
    );
    let path = std::env::var("PATH").unwrap();
    command
        .args(["-c", &script])
        .env("PATH", format!("{}:{path}", bin.display()));
    site.run(command)
}

/// The Ethernet address of a guest.
fn mac(site: &Site, n: usize) -> Mac {
    let inside = Handle::new(&site.guests[n]).unwrap();
    Mac(inside.link("eth0").unwrap().mac.unwrap())
}

/// A definition with one port, at the device `pN` of the host.
fn definition(site: &Site, n: usize, port: &str) -> String {
    definition_of(site, &[n], &format!("<h:port {port}/>"))
}

/// A definition with an interface at each of these devices of the host.
fn definition_of(site: &Site, devices: &[usize], ports: &str) -> String {
    let interface = |n: &usize| {
        let mac = mac(site, *n);
        format!(
            "<interface type='ethernet'><mac address='{mac}'/><target dev='p{n}' managed='no'/></interface>"
        )
    };
    let interfaces: String = devices.iter().map(interface).collect();
    format!(
        "<domain type='qemu'><name>guest</name>\
         <metadata><h:guest xmlns:h='urn:hopyard:guest:1'>{ports}</h:guest></metadata>\
         <devices>{interfaces}</devices></domain>"
    )
}

#[test]
fn the_device_in_a_definition_is_the_only_binding() {
    apart(|| {
        let site = Site::new();
        let of = |n: usize| definition(&site, n, &format!("pdev='up0' ip='192.0.2.{}'", n + 1));
        let (one, other) = (of(0), of(1));
        for (guest, text) in [("web", &one), ("db", &other)] {
            // `prepare` comes before there are devices.
            call(&site, guest, "prepare", text).exits(0);
            call(&site, guest, "start", text).exits(0);
        }
        site.talks();
        // libvirtd restarts and calls again; nothing is done twice.
        call(&site, "web", "reconnect", &one).exits(0);
        assert_eq!(site.shown()[0]["ports"].as_array().unwrap().len(), 2);
        for operation in ["stopped", "release"] {
            call(&site, "web", operation, &one).exits(0);
            assert_eq!(site.shown()[0]["ports"].as_array().unwrap().len(), 1);
        }
        call(&site, "db", "stopped", &other).exits(0);
        nothing_stands();
    });
}

#[test]
fn a_port_that_stands_is_made_anew_for_its_own_guest_alone() {
    apart(|| {
        let site = Site::new();
        let own = mac(&site, 0).to_string();
        let other = "02:00:00:00:00:77";
        let at = |n: usize| definition(&site, n, &format!("pdev='up0' ip='192.0.2.{}'", n + 1));
        let port = || site.shown()[0]["ports"][0].clone();
        call(&site, "db", "start", &at(1)).exits(0);
        assert_eq!(site.shown()[0]["answers"], true);
        // Left by somebody, with other settings: those of the definition count.
        let add = format!("port add cni-dev-up0 p0 --mac {own} --isolated");
        site.switch(&add.split(' ').collect::<Vec<_>>()).exits(0);
        call(&site, "db", "stopped", &at(1)).exits(0);
        call(&site, "web", "start", &at(0)).exits(0);
        assert_eq!(port()["isolated"], false);
        assert_eq!(port()["ips"], serde_json::json!(["192.0.2.1"]));
        // The guest runs: its port stays as it is.
        let isolated = definition(&site, 0, "pdev='up0' isolated='yes'");
        for operation in ["reconnect", "attach"] {
            call(&site, "web", operation, &isolated).exits(0);
            assert_eq!(port()["isolated"], false, "{operation}");
        }
        // Another guest's. What was made before it is undone, and it stays.
        let ports = format!(
            "<h:port pdev='up0' mac='{}'/><h:port pdev='up0' mac='{other}'/>",
            mac(&site, 1)
        );
        let text = definition_of(&site, &[0, 1], &ports).replace(&own, other);
        let words = format!(
            "`p0` is a port of switch `cni-dev-up0` already, for {own} and not for {other}"
        );
        call(&site, "thief", "start", &text)
            .exits(1)
            .says(&[&words, "`hopyard switch port del cni-dev-up0 p0`"]);
        call(&site, "thief", "stopped", &text).exits(0);
        assert_eq!(site.shown()[0]["ports"].as_array().unwrap().len(), 1);
        assert_eq!(port()["macs"][0], own);
        call(&site, "web", "stopped", &at(0)).exits(0);
        nothing_stands();
    });
}

#[test]
fn a_wrong_definition_keeps_the_guest_from_starting() {
    apart(|| {
        let site = Site::new();
        for (port, words) in [
            ("", "names no `pdev`"),
            ("pdev='nosuch'", "nosuch"),
            (
                "pdev='up0' isolatd='yes'",
                "unknown attribute `isolatd` (\"yes\")",
            ),
            ("pdev='up0' isolated='perhaps'", "neither yes nor no"),
            (
                "pdev='up0' mac='02:00:00:00:00:09'",
                "no interface of type ethernet has it",
            ),
            ("pdev='up0' vlan='4095'", "4095"),
        ] {
            let text = definition(&site, 0, port);
            call(&site, "web", "start", &text).exits(1).says(&[words]);
            nothing_stands();
        }
        call(&site, "web", "start", "<domain").exits(1);
        nothing_stands();
    });
}

/// libvirt kills a running guest whose hook fails at `reconnect`.
#[test]
fn a_reconnect_that_cannot_be_done_says_why_and_succeeds() {
    apart(|| {
        let site = Site::new();
        let of = |n: usize| definition(&site, n, "pdev='up0'");
        for (guest, n) in [("web", 0), ("db", 1)] {
            call(&site, guest, "start", &of(n)).exits(0);
        }
        let wrong = definition(&site, 0, "pdev='up0' isolatd='yes'");
        for (text, words) in [
            ("<domain", "hopyard: unclosed token"),
            (&*wrong, "hopyard: unknown attribute `isolatd`"),
        ] {
            call(&site, "web", "reconnect", text)
                .exits(0)
                .says(&[words]);
        }
        // Both ports stay when the uplink goes, and so does their switch.
        let hub = Handle::new(&site.hub).unwrap();
        hub.delete_link("up0").unwrap();
        let way_out = "`hopyard switch uplink cni-dev-up0 up0`";
        call(&site, "web", "reconnect", &of(0))
            .exits(0)
            .says(&["hopyard: p0: ", way_out]);
        site.talks();
        call(&site, "other", "start", &of(2))
            .exits(1)
            .says(&[way_out]);
        site.talks();
        for (guest, n) in [("web", 0), ("db", 1)] {
            call(&site, guest, "stopped", &of(n)).exits(0);
        }
        nothing_stands();
    });
}

#[test]
fn a_start_that_cannot_be_undone_undoes_the_rest_and_says_both_reasons() {
    apart(|| {
        let site = Site::new();
        // One that refuses the last port, and then does not let go of the first.
        let bin = Path::new("/run/bin");
        let program = bin.join("hopyard");
        let script = format!(
            "#!/bin/sh\ncase \"$*\" in\n\
             'switch port add cni-dev-up0 p2 '*) echo 'hopyard: no room' >&2; exit 2 ;;\n\
             'switch port del cni-dev-up0 p0') echo 'hopyard: it is stuck' >&2; exit 2 ;;\n\
             esac\nexec {PROGRAM} \"$@\"\n"
        );
        fs::create_dir(bin).unwrap();
        write_program(&program, script);
        let port = |n: usize| format!("<h:port pdev='up0' mac='{}'/>", mac(&site, n));
        let ports = [0, 1, 2].map(port).concat();
        let text = definition_of(&site, &[0, 1, 2], &ports);
        call_with(&site, bin, "web", "start", &text)
            .exits(1)
            .says(&["no room", "it is stuck"]);
        let shown = site.shown();
        let left = shown[0]["ports"].as_array().unwrap();
        assert_eq!(left.len(), 1, "{shown:#}");
        assert_eq!(left[0]["device"], "p0");
        site.switch(&["delete", "cni-dev-up0"]).exits(0);
        nothing_stands();
    });
}
