//! `hopyard kernels`: one plan under several kernels.

use std::fs;
use std::path::Path;

use hopyard::guest::Kernel;

use super::PATIENCE;
use crate::support::cli::{Running, Said, hopyard, run};
use crate::support::kernels::kernel;
use crate::support::{beside, tell};

/// Two paths on this kernel and on another one.
fn compared(image: &Path, out: &Path, window: &str) -> Said {
    let mut command = hopyard(&["kernels", "host"]);
    command
        .arg(image)
        .args(["veth", "flowtable", "--accel", "tcg", "--json", "--out"]);
    command.arg(out);
    command.args([
        "--", "--loads", "tcp_rr", "--blocks", "2", "--turns", "off", "--window", window,
    ]);
    Running::start(command).wait_for(PATIENCE)
}

#[test]
fn kernels_stand_side_by_side() {
    let _beside = beside();
    let home = tempfile::tempdir().unwrap();
    let image = kernel();
    // An emulated CPU may be taken away for the whole of a window. What does not work fails again.
    let (out, said) = [("runs", "300ms"), ("again", "1s")]
        .into_iter()
        .map(|(name, window)| {
            let out = home.path().join(name);
            let said = compared(&image, &out, window);
            (out, said)
        })
        .find(|(_, said)| !said.stderr.contains("the window was missed"))
        .expect("a run without missed windows");
    let document = said.exits(0).json();
    let own = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap();
    let release = Kernel::open(&image, None).unwrap().release;
    assert_eq!(document["kernels"][0]["release"], own.trim());
    assert_eq!(document["kernels"][1]["release"], release.as_str());
    let emulated = [0, 1].map(|k| document["kernels"][k]["is_emulated"].as_bool().unwrap());
    assert!(emulated[1], "{said}");
    let finding = |path: &str, kernel: usize| {
        let mut rows = document["rows"].as_array().unwrap().iter();
        let row = rows
            .find(|row| row["path"] == path)
            .unwrap_or_else(|| panic!("{said}"));
        row["findings"][kernel].clone()
    };
    let names = [0, 1].map(|k| document["kernels"][k]["name"].as_str().unwrap());
    assert_eq!(names, [own.trim(), &release], "{said}");
    for kernel in [0, 1] {
        let veth = finding("veth", kernel);
        assert_eq!(veth["works"], "proved", "{said}");
        // A program that plays a CPU has no speed to tell.
        let has_figure = veth["figures"]["tcp_rr"]["value"].as_f64() > Some(0.0);
        assert_eq!(has_figure, !emulated[kernel], "{veth}");
    }
    assert_eq!(finding("flowtable", 1)["works"], "proved", "{said}");
    let here = hopyard::lab::path("flowtable").unwrap().available();
    let on_host = finding("flowtable", 0);
    match here {
        Ok(()) => assert_eq!(on_host["works"], "proved", "{said}"),
        Err(error) => {
            assert_eq!(on_host["works"], "cannot_build", "{said}");
            let cause = on_host["cause"].as_str().unwrap();
            assert!(cause.contains("nf_flow_table"), "{cause}: {error}");
        }
    }
    let differ = document["differences"][&release].as_array().unwrap();
    let of_kernel = differ.iter().find(|it| it["what"] == "kernel").unwrap();
    assert_eq!(
        (&of_kernel["a"], &of_kernel["b"]),
        (&own.trim().into(), &release.clone().into())
    );
    for name in ["host", &image.display().to_string()[1..].replace('/', "-")] {
        run(&[
            "report",
            out.join(name).to_str().unwrap(),
            "--format",
            "json",
        ])
        .exits(0);
    }
    tell(&format!("two kernels in {:?}", said.took));
}

#[test]
fn what_is_no_kernel_is_refused_before_anything_runs() {
    let _beside = beside();
    let home = tempfile::tempdir().unwrap();
    let out = home.path().join("runs");
    let there = home.path().to_str().unwrap();
    let out = out.to_str().unwrap();
    let refused = |words: &[&str], why: &str| {
        let said = run(&[&["kernels"], words].concat());
        said.exits(2).says(&[why]);
        assert!(!Path::new(out).exists(), "{said}");
    };
    refused(
        &["veth", "bridge", "--out", out],
        "these are paths, and no kernel",
    );
    refused(
        &["host", "/etc/passwd", "--out", out],
        "/etc/passwd is not a kernel that can be booted",
    );
    refused(&["host", "--out", there], "is there already");
    refused(
        &["host", "--out", out, "--", "--nonsense"],
        "options of `hopyard run`",
    );
    refused(
        &["host", "--out", out, "--", "--loads", "tcp_nothing"],
        "options of `hopyard run`",
    );
    refused(
        &["host", "/nowhere/bzImage", "--out", out],
        "cannot read /nowhere/bzImage",
    );
    for option in [
        &["--json"][..],
        &["--fail-on", "3%"],
        &["--kernel", "/boot/vmlinuz"],
        &["--append", "mitigations=off"],
        &["--accel=tcg"],
        &["--modules", "/lib/modules"],
        &["--guest-kernel", "/boot/vmlinuz"],
    ] {
        let words = [&["host", "--out", out, "--"], option].concat();
        let name = option[0].split('=').next().unwrap();
        refused(&words, &format!("`{name}` cannot follow `--`"));
    }
}
