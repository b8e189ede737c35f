//! Both ends of a pipe that may be cut without a word: each says that it lives, and takes long silence for the end.
//!
//! `kubectl exec` may never close the stdin of what it started, and a network that is gone closes nothing. So a worker
//! that was started by a command of the user ends by itself when it has heard nothing for some time, also in mid-window.

use std::io::{self, BufRead};
use std::os::fd::AsFd;
use std::process::exit;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread;
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

use super::endpoint::Attendance;
use super::lines::{self, LONGEST};
use super::protocol::{Reply, Request};

/// Requests that wait for their turn. Beats are not among them.
const AHEAD: usize = 4;
/// How long a worker without a controller may take to end in order.
const LAST_WORDS: Duration = Duration::from_secs(2);
/// Exit status of a worker that was left alone.
const LEFT_ALONE: i32 = 3;

/// Reads stdin on a thread and says on another that this process lives.
pub(super) fn begin(attendance: Attendance) -> io::Result<Receiver<Vec<u8>>> {
    let silence = Duration::from_millis(attendance.silence_ms);
    let beat = Duration::from_millis(attendance.beat_ms.max(1));
    let (tell, heard) = sync_channel(AHEAD);
    thread::Builder::new()
        .name("input".to_owned())
        .spawn(move || {
            listen(silence, &tell);
            drop(tell);
            // The main thread may be busy for longer, or stuck on a pipe that nobody reads.
            thread::sleep(LAST_WORDS);
            exit(LEFT_ALONE);
        })?;
    // It may block where nobody reads, and must not keep the other from noticing silence.
    thread::Builder::new()
        .name("beat".to_owned())
        .spawn(move || {
            loop {
                thread::sleep(beat);
                if lines::say(&mut io::stdout().lock(), &Reply::Beat).is_err() {
                    thread::sleep(LAST_WORDS);
                    exit(LEFT_ALONE);
                }
            }
        })?;
    Ok(heard)
}

/// Passes requests on, until their end.
fn listen(silence: Duration, tell: &SyncSender<Vec<u8>>) {
    let stdin = io::stdin();
    let mut line = Vec::new();
    let mut heard = Instant::now();
    loop {
        let left = silence.saturating_sub(heard.elapsed());
        if left.is_zero() {
            leave(&format!(
                "nothing was heard of the controller for {} s: the connection to it is cut",
                silence.as_secs_f64()
            ));
        }
        let timeout = PollTimeout::try_from(left + Duration::from_millis(1));
        let mut watched = [PollFd::new(stdin.as_fd(), PollFlags::POLLIN)];
        match poll(&mut watched, timeout.unwrap_or(PollTimeout::MAX)) {
            Ok(0) | Err(Errno::EINTR) => continue,
            Ok(_) => {}
            Err(_) => return,
        }
        let mut input = stdin.lock();
        let Ok(bytes) = input.fill_buf() else { return };
        if bytes.is_empty() {
            return;
        }
        heard = Instant::now();
        let length = bytes.len();
        line.extend_from_slice(bytes);
        input.consume(length);
        drop(input);
        while let Some(end) = line.iter().position(|byte| *byte == b'\n') {
            let rest = line.split_off(end + 1);
            line.pop();
            let request = std::mem::replace(&mut line, rest);
            if !is_beat(&request) && tell.send(request).is_err() {
                return;
            }
        }
        if line.len() as u64 > LONGEST {
            leave("a request has no end");
        }
    }
}

fn is_beat(line: &[u8]) -> bool {
    matches!(serde_json::from_slice(line), Ok(Request::Beat))
}

/// Ends the process at once: its flows would go on, and who waits for them is gone.
fn leave(why: &str) -> ! {
    use std::io::Write;
    // Nobody may read it; that is no reason to stay.
    let _ = writeln!(io::stderr(), "hopyard worker: {why}");
    exit(LEFT_ALONE)
}
