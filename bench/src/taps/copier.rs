//! Copies frames between two taps, and does nothing else.

use std::os::fd::AsFd;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use clap::{Args, ValueEnum};
use hopyard::tapswitch::{Claim, Document, QueuesDocument, SCHEMA};
use hopyard_net::{Handle, NetNs};
use hopyard_tap::{LARGEST_FRAME, NewDevice, Offloads, Queue, Queues, VnetHeaderSize};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

use crate::Failure;

/// As in the tap switch, so that only the copying differs.
const HEADER: VnetHeaderSize = VnetHeaderSize::Mergeable;
const QUEUE_LENGTH: u32 = 4096;
const LOOK: Duration = Duration::from_micros(30);
const BATCH: usize = 64;

/// How frames are moved.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum By {
    /// A thread for each direction waits in `read`, and writes.
    Threads,
    /// One thread reads while there are frames, polls for 30 µs when there are none, and then sleeps in `poll`.
    Poll,
}

#[derive(Debug, Args)]
pub(crate) struct Options {
    #[arg(long)]
    by: By,
    /// Arguments that a lab passes to a tap switch
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    words: Vec<String>,
}

/// Copies until it is killed.
pub(crate) fn main(options: &Options) -> Result<(), Failure> {
    let wrong = || Failure::Words(options.words.join(" "));
    let name = options.words.get(2).ok_or_else(wrong)?;
    let tap = |word: &String| word.strip_prefix("--tap=")?.split_once('@').map(open);
    let taps: Vec<Queue> = options
        .words
        .iter()
        .filter_map(tap)
        .collect::<Result<_, _>>()?;
    let [left, right]: [Queue; 2] = taps.try_into().map_err(|_| wrong())?;
    let claim = Claim::take(name)?;
    let work: Vec<Box<dyn Fn() + Sync + Send + '_>> = match options.by {
        By::Threads => vec![
            Box::new(|| copy(&left, &right)),
            Box::new(|| copy(&right, &left)),
        ],
        By::Poll => {
            left.set_nonblocking(true)?;
            right.set_nonblocking(true)?;
            vec![Box::new(|| copy_both([&left, &right]))]
        }
    };
    thread::scope(|scope| {
        for work in work {
            let thread = thread::Builder::new().name("copier".into());
            thread
                .spawn_scoped(scope, work)
                .map_err(|source| Failure::Io {
                    what: "start a thread",
                    source,
                })?;
        }
        // The lab asks for the status, and ends this process.
        loop {
            claim.answer(|| document(name));
            thread::sleep(Duration::from_millis(20));
        }
    })
}

fn open((name, ns): (&str, &str)) -> Result<Queue, Failure> {
    let ns = NetNs::open(Path::new(ns))?;
    let new = NewDevice {
        queues: Queues::Multi(1),
        vnet_header: Some(HEADER),
        ..NewDevice::tap(name)
    };
    let (_, mut queues) = ns.run(|| new.create())??;
    let queue = queues
        .pop()
        .ok_or_else(|| Failure::Words(name.to_owned()))?;
    queue.set_offloads(Offloads::ALL)?;
    let handle = Handle::new(&ns)?;
    handle.set_tx_queue_len(name, QUEUE_LENGTH)?;
    handle.set_up(name)?;
    Ok(queue)
}

fn buffer() -> Vec<u8> {
    vec![0; HEADER.bytes() + LARGEST_FRAME]
}

/// Copies until the device is gone; frames that the other one refuses are lost.
fn copy(from: &Queue, to: &Queue) {
    let mut buffer = buffer();
    while let Ok(length) = from.read(&mut buffer) {
        let _ = to.write(&buffer[..length]);
    }
}

fn copy_both(queues: [&Queue; 2]) {
    let mut buffer = buffer();
    let mut last = Instant::now();
    loop {
        let [left, right] = queues;
        let moved = move_some(left, right, &mut buffer) | move_some(right, left, &mut buffer);
        if moved {
            last = Instant::now();
        } else if last.elapsed() > LOOK {
            let mut ready = queues.map(|queue| PollFd::new(queue.as_fd(), PollFlags::POLLIN));
            let _ = poll(&mut ready, PollTimeout::NONE);
        }
    }
}

/// Copies waiting frames; returns whether there were any.
fn move_some(from: &Queue, to: &Queue, buffer: &mut [u8]) -> bool {
    let mut moved = false;
    for _ in 0..BATCH {
        let Ok(length) = from.read(buffer) else {
            break;
        };
        // Frames that the other one refuses are lost.
        let _ = to.write(&buffer[..length]);
        moved = true;
    }
    moved
}

/// It counts nothing, so the document has no ports.
fn document(name: &str) -> Document {
    Document {
        schema: SCHEMA.to_owned(),
        switch: name.to_owned(),
        pid: std::process::id(),
        uptime_s: 0.0,
        span_s: None,
        queues: QueuesDocument {
            asked: "1".to_owned(),
            attached: 1,
            threads: None,
            changes: 0,
            trouble: None,
        },
        steering: "kernel".to_owned(),
        join: None,
        addresses: 0,
        ports: Vec::new(),
    }
}
