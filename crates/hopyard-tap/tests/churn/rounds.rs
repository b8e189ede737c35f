//! Further checks: nothing is lost if flows are steered away first, exactly the content of the queue if not, and memory
//! of flows is freed.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use hopyard_tap::{NewDevice, Pins, Queue, Queues, Steering, TunLayer};

use crate::drops::Drops;
use crate::world::{SOON, STATION, Sender, make, namespace, next, world};

/// Pseudo-random numbers (Marsaglia, *Xorshift RNGs*).
pub(crate) struct Dice(u64);

impl Dice {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed | 1 << 40)
    }

    pub(crate) fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 >> 33).unwrap() % limit
    }
}

fn new(name: &str, queues: usize) -> NewDevice {
    NewDevice {
        queues: Queues::Multi(queues),
        ..NewDevice::tap(name)
    }
}

fn drain(queue: &Queue) -> u64 {
    std::iter::from_fn(|| next(queue)).count() as u64
}

/// Detaches the last queue again and again under traffic, with its flows pinned elsewhere and its frames read first: no
/// frame is lost.
pub(crate) fn graceful(rounds: u32, mark: u32) {
    let (handle, _device, queues) = world(new("tap0", 2));
    let drops = Drops::watch(mark);
    let senders: Vec<Sender> = (0..8)
        .map(|_| Sender::new(&handle, "10.9.0.2", mark))
        .collect();
    let mut pins = Pins::new(TunLayer::Tap).unwrap();
    let pin = |pins: &mut Pins, queue: u16| {
        for sender in &senders {
            pins.pin(&sender.flow(), queue).unwrap();
        }
    };
    pin(&mut pins, 0);
    queues[0].steer(Steering::Pinned(&pins)).unwrap();
    let (sent, read) = (AtomicU64::new(0), AtomicU64::new(0));
    let mut moved = 0;
    let sending = AtomicBool::new(true);
    thread::scope(|scope| {
        let sender = scope.spawn(|| {
            while sending.load(Ordering::Relaxed) {
                let number = sent.load(Ordering::Relaxed);
                if number - read.load(Ordering::Relaxed) < 400 {
                    let flow = usize::try_from(number).unwrap() % senders.len();
                    senders[flow].send(number).unwrap();
                    sent.store(number + 1, Ordering::Relaxed);
                } else {
                    thread::yield_now();
                }
            }
        });
        let take = |queue: &Queue| {
            let count = drain(queue);
            read.fetch_add(count, Ordering::Relaxed);
            count
        };
        for _ in 0..rounds {
            pin(&mut pins, 1);
            for _ in 0..4 {
                take(&queues[0]);
                moved += take(&queues[1]);
                thread::yield_now();
            }
            pin(&mut pins, 0);
            deliver();
            moved += take(&queues[1]);
            queues[1].detach().unwrap();
            take(&queues[0]);
            queues[1].attach().unwrap();
        }
        sending.store(false, Ordering::Relaxed);
        sender.join().unwrap();
        take(&queues[0]);
    });
    let (sent, read) = (sent.into_inner(), read.into_inner());
    println!(
        "{rounds} graceful rounds: sent {sent}, read {read}, {moved} of them by the queue that went"
    );
    assert_eq!(drops.places(), Vec::new());
    assert_eq!(sent, read);
    assert!(moved > 0);
}

/// Waits until every sender that chose a queue before has delivered to it. The kernel does both within one RCU section,
/// whose end `membarrier(2)` waits for with this command.
fn deliver() {
    const MEMBARRIER_CMD_GLOBAL: i32 = 1;
    // SAFETY: the call takes three numbers.
    let answer = unsafe { libc::syscall(libc::SYS_membarrier, MEMBARRIER_CMD_GLOBAL, 0, 0) };
    if answer != 0 {
        // It is refused if CPUs run without a tick (`nohz_full`).
        thread::sleep(Duration::from_millis(20));
    }
}

/// Unread frames in a queue are lost with it, and nothing else, whether it is detached or closed.
pub(crate) fn sat_in_the_queue(mark: u32) {
    let (handle, _device, mut queues) = world(new("tap0", 3));
    let drops = Drops::watch(mark);
    let sender = Sender::new(&handle, "10.9.0.2", mark);
    let mut pins = Pins::new(TunLayer::Tap).unwrap();
    queues[0].steer(Steering::Pinned(&pins)).unwrap();
    let mut fill = |queue: u16, count: u64| {
        pins.pin(&sender.flow(), queue).unwrap();
        for number in 0..count {
            sender.send(number).unwrap();
        }
    };
    fill(0, 5);
    fill(1, 7);
    fill(2, 11);
    assert_eq!(drops.total(), 0);
    queues[1].detach().unwrap();
    assert_eq!(drops.total(), 7);
    assert_eq!(next(&queues[1]), None);
    drop(queues.remove(2));
    assert_eq!(drops.total(), 7 + 11);
    assert_eq!(drain(&queues[0]), 5);
}

/// A device remembers up to 4096 flows. The memory of sixty devices shows in the kernel's, and is freed with them.
pub(crate) fn flows_are_freed() {
    const DEVICES: u64 = 60;
    let handle = namespace();
    let empty = unreclaimable();
    let devices: Vec<Vec<Queue>> = (0..DEVICES)
        .map(|_| {
            let (device, queues) = make(&handle, &new("tap%d", 2));
            handle.set_up(device.name()).unwrap();
            queues
        })
        .collect();
    let before = unreclaimable();
    for queues in &devices {
        for port in 0..4096 {
            queues[0].write(&datagram(port)).unwrap();
        }
    }
    let with_flows = unreclaimable();
    drop(devices);
    // An entry takes 64 bytes at least.
    let flows = DEVICES * 4096 * 64 / 1024;
    assert!(with_flows > before + flows / 2, "flows are seen");
    // Freed as soon as no reader can use them any more (RCU).
    let start = Instant::now();
    let left = loop {
        let left = unreclaimable().saturating_sub(empty);
        if left < flows / 2 {
            break left;
        }
        assert!(start.elapsed() < SOON, "{left} KiB are left of {flows}");
        thread::sleep(Duration::from_millis(20));
    };
    println!(
        "{DEVICES} devices: {} KiB, {} KiB more with 4096 flows each, {left} KiB left",
        before - empty,
        with_flows - before
    );
}

/// Kernel memory that cannot be reclaimed, KiB.
fn unreclaimable() -> u64 {
    let text = std::fs::read_to_string("/proc/meminfo").unwrap();
    let line = text.lines().find(|line| line.starts_with("SUnreclaim:"));
    let word = line.unwrap().split_whitespace().nth(1).unwrap();
    word.parse().unwrap()
}

/// A UDP datagram from the station to an unused address, of the flow with this source port.
fn datagram(port: u16) -> Vec<u8> {
    let mut frame = vec![2, 0, 0, 0, 0, 1];
    frame.extend(STATION);
    frame.extend([8, 0, 0x45, 0, 0, 28, 0, 0, 0, 0, 64, 17, 0, 0]);
    frame.extend([10, 9, 0, 2, 10, 9, 0, 77]);
    frame.extend(port.to_be_bytes());
    frame.extend([0, 9, 0, 8, 0, 0]);
    frame
}
