//! Queues attached and detached ten thousand times under traffic (MQ10): every frame reaches one attached queue once,
//! or is accounted for; nothing leaks. Needs root, and a process of its own, because it counts descriptors.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::print_stdout,
    reason = "a test fails by panicking, and this one has an account to give"
)]

mod drops;
mod rounds;
#[path = "../world/mod.rs"]
mod world;

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::Instant;

use hopyard_tap::{Device, NewDevice, Queue, Queues};

use drops::Drops;
use rounds::Dice;
use world::{Sender, arrival, next, world};

const CHANGES: u32 = 10_000;
const SLOTS: usize = 8;
/// The most datagrams under way, fewer than one queue holds.
const WINDOW: u64 = 400;
const MARK: u32 = 0x6879_0001;

/// A queue and its expected state.
struct Slot {
    queue: Queue,
    attached: bool,
}

/// Data that the threads share.
struct Account {
    slots: Vec<Mutex<Slot>>,
    sent: AtomicU64,
    read: AtomicU64,
    seen: Mutex<Vec<u8>>,
    sending: AtomicBool,
    reading: AtomicBool,
}

impl Account {
    fn send(&self, senders: &[Sender], drops: impl Fn() -> u64) {
        let mut lost = 0;
        while self.sending.load(Ordering::Relaxed) {
            let number = self.sent.load(Ordering::Relaxed);
            if number - self.read.load(Ordering::Relaxed) - lost >= WINDOW {
                lost = drops();
                thread::yield_now();
                continue;
            }
            // Before sending, so that a reader never sees more than were counted.
            self.sent.store(number + 1, Ordering::Relaxed);
            let flow = usize::try_from(number).unwrap() % senders.len();
            senders[flow].send(number).unwrap();
        }
    }

    /// Reads all queues in turn until it is told to end and nothing is left.
    fn receive(&self) {
        loop {
            let last = !self.reading.load(Ordering::Relaxed);
            let mut idle = true;
            for slot in &self.slots {
                let slot = slot.lock().unwrap();
                while let Some(number) = next(&slot.queue) {
                    assert!(slot.attached, "{number} reached a detached queue");
                    self.note(number);
                    idle = false;
                }
            }
            if idle && last {
                return;
            }
            if idle {
                thread::yield_now();
            }
        }
    }

    fn note(&self, number: u64) {
        let mut seen = self.seen.lock().unwrap();
        let at = usize::try_from(number).unwrap();
        if seen.len() <= at {
            seen.resize(at + 4096, 0);
        }
        seen[at] += 1;
        assert_eq!(seen[at], 1, "{number} came twice");
        self.read.fetch_add(1, Ordering::Relaxed);
    }

    fn attached(&self) -> usize {
        let attached = |slot: &&Mutex<Slot>| slot.lock().unwrap().attached;
        self.slots.iter().filter(attached).count()
    }

    /// Attaches detached queues; detaches attached ones, or closes and reopens them.
    fn change(&self, device: &Device, dice: &mut Dice, least: usize) {
        let attached = self.attached();
        let mut slot = self.slots[dice.below(self.slots.len())].lock().unwrap();
        if !slot.attached {
            assert_eq!(next(&slot.queue), None, "a detached queue gets nothing");
            slot.queue.attach().unwrap();
            slot.attached = true;
        } else if dice.below(8) == 0 {
            slot.queue = device.open_queue().unwrap();
        } else if attached > least {
            slot.queue.detach().unwrap();
            slot.attached = false;
            assert_eq!(next(&slot.queue), None, "a detached queue is empty");
        }
    }
}

/// Changes queues under traffic; returns how many frames were sent, read, and lost by place in the kernel.
fn churn(changes: u32, least: usize, mark: u32) -> (u64, u64, Vec<(String, u64)>) {
    let (handle, device, queues) = world(NewDevice {
        queues: Queues::Multi(SLOTS),
        ..NewDevice::tap("tap0")
    });
    let drops = Drops::watch(mark);
    let senders: Vec<Sender> = (0..32)
        .map(|_| Sender::new(&handle, "10.9.0.2", mark))
        .collect();
    let slot = |queue| {
        Mutex::new(Slot {
            queue,
            attached: true,
        })
    };
    let account = Account {
        slots: queues.into_iter().map(slot).collect(),
        sent: AtomicU64::new(0),
        read: AtomicU64::new(0),
        seen: Mutex::new(Vec::new()),
        sending: AtomicBool::new(true),
        reading: AtomicBool::new(true),
    };
    let start = Instant::now();
    thread::scope(|scope| {
        let sender = scope.spawn(|| account.send(&senders, || drops.total()));
        let reader = scope.spawn(|| account.receive());
        let mut dice = Dice::new(u64::from(mark));
        for _ in 0..changes {
            account.change(&device, &mut dice, least);
        }
        account.sending.store(false, Ordering::Relaxed);
        sender.join().unwrap();
        account.reading.store(false, Ordering::Relaxed);
        reader.join().unwrap();
    });
    let (sent, read) = (account.sent.into_inner(), account.read.into_inner());
    let places = drops.places();
    println!(
        "{changes} changes in {:?}: sent {sent}, read {read}, lost {places:?}",
        start.elapsed()
    );
    let stats = handle.device_stats().unwrap();
    let stats = stats.iter().find(|stats| stats.name == "tap0").unwrap();
    let late = places.iter().filter(|(place, _)| place == "tun_net_xmit");
    assert_eq!(stats.tx_dropped, late.map(|(_, count)| count).sum::<u64>());

    let slots = account.slots.into_iter();
    let slots: Vec<Slot> = slots.map(|slot| slot.into_inner().unwrap()).collect();
    for slot in slots.iter().filter(|slot| !slot.attached) {
        slot.queue.attach().unwrap();
    }
    let queues: Vec<Queue> = slots.into_iter().map(|slot| slot.queue).collect();
    senders[0].send(sent).unwrap();
    assert_eq!(arrival(&queues).1, sent, "and all goes on");
    drop(queues);
    assert!(
        handle.link("tap0").is_err(),
        "the device ends with its queues"
    );
    (sent, read, places)
}

fn descriptors() -> usize {
    std::fs::read_dir("/proc/self/fd").unwrap().count()
}

/// One test, so that nothing else in the process opens descriptors meanwhile.
#[test]
fn queues_come_and_go_ten_thousand_times() {
    churn(10, 1, MARK);
    let before = descriptors();

    let (sent, read, places) = churn(CHANGES, 1, MARK + 1);
    let lost: u64 = places.iter().map(|(_, count)| count).sum();
    assert_eq!(sent, read + lost, "each is read or accounted for");
    assert!(read > u64::from(CHANGES), "there was traffic: {read}");
    for (place, count) in &places {
        // Lost in a queue that was detached, or its number was chosen just before it was detached.
        let of_tun = place.trim_start_matches('_').starts_with("tun_");
        assert!(of_tun, "{count} lost in {place}");
    }

    // With none attached, frames are dropped; they arrive again with the next queue.
    let (sent, read, places) = churn(1000, 0, MARK + 2);
    let lost: u64 = places.iter().map(|(_, count)| count).sum();
    assert_eq!(sent, read + lost);

    rounds::graceful(150, MARK + 3);
    rounds::sat_in_the_queue(MARK + 4);
    rounds::flows_are_freed();
    assert_eq!(descriptors(), before, "no descriptor is left");
}
