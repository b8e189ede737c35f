//! The hook of libvirt and script of Xen in `contrib/libvirt`, called as these call it.

use std::fs;
use std::path::Path;
use std::process::Command;

use hopyard_net::Handle;

use crate::support::apart;
use crate::support::cli::{PROGRAM, Said};
use crate::support::site::{Site, nothing_stands};

const HOOK: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/../../contrib/libvirt/hopyard-guest"
);

/// The hook with libvirt's arguments and a definition on stdin.
fn call(site: &Site, guest: &str, operation: &str, definition: &str) -> Said {
    let file = Path::new("/run").join(format!("{guest}.xml"));
    fs::write(&file, definition).unwrap();
    let programs = Path::new(PROGRAM).parent().unwrap().display();
    let mut command = Command::new("sh");
    let script = format!(
        "exec {HOOK} {guest} {operation} begin - < {}",
        file.display()
    );
    let path = std::env::var("PATH").unwrap();
    command
        .args(["-c", &script])
        .env("PATH", format!("{programs}:{path}"));
    site.run(command)
}

/// A definition with one port, at the device `pN` of the host.
fn definition(site: &Site, n: usize, port: &str) -> String {
    let inside = Handle::new(&site.guests[n]).unwrap();
    let mac = inside.link("eth0").unwrap().mac.unwrap();
    let mac: Vec<String> = mac.iter().map(|byte| format!("{byte:02x}")).collect();
    format!(
        "<domain type='qemu'><name>guest{n}</name>\
         <metadata><h:guest xmlns:h='urn:hopyard:guest:1'><h:port {port}/></h:guest></metadata>\
         <devices><interface type='ethernet'><mac address='{}'/><target dev='p{n}' managed='no'/></interface></devices>\
         </domain>",
        mac.join(":")
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
