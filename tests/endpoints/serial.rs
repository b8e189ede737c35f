//! Path `as-is` over a line that knows no end of input, with a shell at its other end.

use std::io::{BufRead, BufReader};
use std::process::{Child, Stdio};

use super::{Site, enter, found};
use crate::support::beside;
use crate::support::host::unharmed;

const SCRIPT: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/../../tests/endpoints/serial.py"
);

/// The line, and the shell at its far end.
struct Line {
    child: Child,
    device: String,
}

impl Line {
    fn new(site: &Site) -> Self {
        let mut command = std::process::Command::new("python3");
        command.args([SCRIPT, "far"]);
        command.args(enter(&site.server).split(' '));
        let mut command = found(command, &site.room);
        let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
        let mut device = String::new();
        let mut said = BufReader::new(child.stdout.take().unwrap());
        said.read_line(&mut device).unwrap();
        Self {
            child,
            device: device.trim().to_owned(),
        }
    }
}

impl Drop for Line {
    fn drop(&mut self) {
        // The shell ends with its line.
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

/// One worker after another is started by the same shell, which reads on when it has ended.
#[test]
fn a_serial_line_leads_to_a_worker_as_often_as_it_is_asked_to() {
    let _beside = beside();
    unharmed(|| {
        let site = Site::new();
        let line = Line::new(&site);
        let server = format!("python3 {SCRIPT} near {}", line.device);
        let loads = ["--loads", "tcp_rr,tcp_stream", "--blocks", "2..2"];
        let said = site.run(&server, &loads);
        let report = said.exits(0).json();
        let cells = report["cells"].as_array().unwrap();
        assert_eq!(cells.len(), 2, "{report:#}");
        for cell in cells {
            assert_eq!(cell["status"], "ok", "{cell:#}");
            assert_eq!(cell["failed_samples"], 0, "{cell:#}");
        }
    });
}
