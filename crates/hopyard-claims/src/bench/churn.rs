//! MQ10: queues that are attached, detached, closed and opened while frames are sent, up to the limit and beyond.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;

use hopyard_tap::{Device, Error as TapError, MAX_QUEUES, NewDevice, Queue};
use nix::sys::socket::{setsockopt, sockopt};

use super::drops::{Dropper, Drops, Gone};
use super::taps::{Behind, multi, next};
use super::{Error, FunctionalCheck, Result, socket};

const SLOTS: usize = 8;
const CHANGES: usize = 2000;
/// Datagrams on their way at most, below what one queue holds.
const WINDOW: u64 = 300;

/// A queue with what it should be.
struct Slot {
    queue: Queue,
    attached: bool,
}

/// Everything that the threads share.
struct Account {
    slots: Vec<Mutex<Slot>>,
    sent: AtomicU64,
    read: AtomicU64,
    /// How often each number came, and the first thing that was wrong.
    seen: Mutex<(Vec<u8>, Option<String>)>,
    sending: AtomicBool,
    reading: AtomicBool,
}

fn hold<T>(what: &Mutex<T>) -> MutexGuard<'_, T> {
    what.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Account {
    fn new(queues: Vec<Queue>) -> Self {
        let slot = |queue| {
            Mutex::new(Slot {
                queue,
                attached: true,
            })
        };
        Self {
            slots: queues.into_iter().map(slot).collect(),
            sent: AtomicU64::new(0),
            read: AtomicU64::new(0),
            seen: Mutex::new((Vec::new(), None)),
            sending: AtomicBool::new(true),
            reading: AtomicBool::new(true),
        }
    }

    /// Sends numbered datagrams over all flows in turn, until told to end.
    fn send(&self, behind: &Behind, drops: &Drops) -> Result<()> {
        let mut lost = 0;
        let mut flows = behind.senders.iter().cycle();
        while self.sending.load(Ordering::Relaxed) {
            let number = self.sent.load(Ordering::Relaxed);
            let under_way = number.saturating_sub(self.read.load(Ordering::Relaxed) + lost);
            if under_way >= WINDOW {
                lost = drops.total();
                thread::yield_now();
                continue;
            }
            // Before sending, so that a reader never knows of more than there are.
            self.sent.store(number + 1, Ordering::Relaxed);
            if let Some(flow) = flows.next() {
                flow.send(&number.to_be_bytes())
                    .map_err(socket("send a datagram"))?;
            }
        }
        Ok(())
    }

    /// Reads all queues in turn until told to end and nothing is left.
    fn receive(&self) -> Result<()> {
        loop {
            let last = !self.reading.load(Ordering::Relaxed);
            let mut idle = true;
            for slot in &self.slots {
                let slot = hold(slot);
                while let Some(number) = next(&slot.queue)? {
                    self.note(number, slot.attached);
                    idle = false;
                }
            }
            if idle && last {
                return Ok(());
            }
            if idle {
                thread::yield_now();
            }
        }
    }

    fn note(&self, number: u64, attached: bool) {
        let mut seen = hold(&self.seen);
        let at = usize::try_from(number).unwrap_or(usize::MAX);
        if seen.0.len() <= at {
            seen.0.resize(at + 4096, 0);
        }
        seen.0[at] = seen.0[at].saturating_add(1);
        if !attached {
            seen.1
                .get_or_insert_with(|| "a frame reached a detached queue".to_owned());
        }
        if seen.0[at] > 1 {
            seen.1
                .get_or_insert_with(|| "a frame came twice".to_owned());
        }
        self.read.fetch_add(1, Ordering::Relaxed);
    }

    /// Attaches what is detached; detaches, or closes and opens anew, what is attached.
    fn change(&self, device: &Device, round: usize) -> Result<()> {
        let attached = self.slots.iter().filter(|slot| hold(slot).attached).count();
        // 5 and 8 have no common divisor: every queue has its turn.
        let mut slot = hold(&self.slots[round * 5 % SLOTS]);
        if !slot.attached {
            slot.queue.attach()?;
            slot.attached = true;
        } else if round.is_multiple_of(7) {
            slot.queue = device.open_queue()?;
            slot.queue.set_nonblocking(true)?;
        } else if attached > 1 {
            slot.queue.detach()?;
            slot.attached = false;
        }
        Ok(())
    }
}

/// Every frame that is sent while queues come and go reaches one attached queue once, or is known to have been in a queue that went;
/// the queue beyond the limit is refused, and the device ends with its last one.
pub(super) fn queues_come_and_go() -> Result<FunctionalCheck> {
    let mark = 0x6879_0000 | (std::process::id() & 0xffff);
    let drops = Drops::watch(mark)?;
    let (behind, queues) = Behind::new(multi(NewDevice::tap("tap0"), SLOTS))?;
    for sender in &behind.senders {
        setsockopt(sender, sockopt::Mark, &mark)
            .map_err(|errno| socket("mark the packets of a socket")(errno.into()))?;
    }
    let device = queues[0].device().clone();
    let account = Account::new(queues);
    thread::scope(|scope| -> Result<()> {
        let sender = scope.spawn(|| account.send(&behind, &drops));
        let reader = scope.spawn(|| account.receive());
        let changed = (0..CHANGES).try_for_each(|round| {
            let done = account.change(&device, round);
            // The others get the lock in between.
            thread::yield_now();
            done
        });
        account.sending.store(false, Ordering::Relaxed);
        let sent = sender.join();
        account.reading.store(false, Ordering::Relaxed);
        let read = reader.join();
        let died = || Error::Lacking("a thread of the check died".to_owned());
        changed?;
        sent.map_err(|_| died())??;
        read.map_err(|_| died())?
    })?;
    let (sent, read) = (
        account.sent.load(Ordering::Relaxed),
        account.read.load(Ordering::Relaxed),
    );
    let lost = drops.by_function();
    let wrong = hold(&account.seen).1.take();
    let slots = account.slots.into_iter();
    let slots = slots.map(|slot| slot.into_inner().unwrap_or_else(PoisonError::into_inner));
    let mut queues: Vec<Queue> = slots.map(|slot| slot.queue).collect();
    while queues.len() < MAX_QUEUES {
        queues.push(device.open_queue()?);
    }
    let is_refused = matches!(device.open_queue(), Err(TapError::TooManyQueues { .. }));
    drop(queues);
    let ends = behind.handle.link("tap0").is_err();
    Ok(told(sent, read, &lost, wrong, [is_refused, ends]))
}

/// What the account comes to.
fn told(
    sent: u64,
    read: u64,
    lost: &BTreeMap<Dropper, u64>,
    wrong: Option<String>,
    [is_refused, ends]: [bool; 2],
) -> FunctionalCheck {
    let of = |gone: Gone| {
        let lost = lost.iter().filter(move |(by, _)| Gone::of(by) == gone);
        lost.map(|((name, _), count)| (name.as_str(), *count))
    };
    let count = |gone| of(gone).map(|(_, count)| count).sum::<u64>();
    let elsewhere: Vec<&str> = of(Gone::Otherwise).map(|(name, _)| name).collect();
    let unknown = sent.saturating_sub(read + lost.values().sum::<u64>());
    let mut seen = format!(
        "in {CHANGES} changes of {SLOTS} queues while {sent} frames were sent, {read} reached exactly one attached queue and {} were lost with a queue that went",
        count(Gone::WithItsQueue)
    );
    let mut problems: Vec<String> = wrong.into_iter().collect();
    let on_their_way = count(Gone::BeforeItCame);
    if on_their_way > 0 {
        problems.push(format!(
            "{on_their_way} were lost that were in no queue, because the one that was chosen for them had just gone"
        ));
    }
    if unknown > 0 {
        problems.push(format!("{unknown} were lost nobody knows where"));
    }
    if !elsewhere.is_empty() {
        problems.push(format!(
            "some were lost for another reason in {}",
            elsewhere.join(", ")
        ));
    }
    if read <= CHANGES as u64 {
        problems.push("too few were sent during the changes".to_owned());
    }
    if !is_refused {
        problems.push(format!("queue {} was not refused", MAX_QUEUES + 1));
    }
    if !ends {
        problems.push("the device did not end with its last queue".to_owned());
    }
    if problems.is_empty() {
        seen.push_str(&format!(
            "; queue {} was refused, and the device ended with its last queue",
            MAX_QUEUES + 1
        ));
        FunctionalCheck::passed(seen)
    } else {
        FunctionalCheck::failed(format!("{seen}; {}", problems.join("; ")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every way in which the account may be wrong fails it; what went with a queue does not.
    #[test]
    fn each_frame_is_accounted_for() {
        let lost_for =
            |function: &str, not_ready| BTreeMap::from([((function.to_owned(), not_ready), 10)]);
        let lost = |function: &str| lost_for(function, true);
        let of = |sent, read, lost: &BTreeMap<Dropper, u64>, wrong: Option<&str>, ends| {
            told(sent, read, lost, wrong.map(str::to_owned), ends)
        };
        let whole = of(9010, 9000, &lost("__tun_detach"), None, [true; 2]);
        assert!(whole.passed, "{whole:?}");
        let purged = lost_for("tun_queue_purge.isra.0", false);
        assert!(of(9010, 9000, &purged, None, [true; 2]).passed);
        for (told, words) in [
            (
                of(9011, 9000, &lost("tun_net_xmit"), None, [true; 2]),
                "1 were lost nobody",
            ),
            (
                of(9010, 9000, &lost("udp_queue_rcv_skb"), None, [true; 2]),
                "reason in udp_queue",
            ),
            (
                of(9010, 9000, &lost("tun_net_xmit"), None, [true; 2]),
                "10 were lost that were in no queue",
            ),
            // A queue that is full, and a function of taps that has nothing to do with queues that go.
            (
                of(
                    9010,
                    9000,
                    &lost_for("tun_net_xmit", false),
                    None,
                    [true; 2],
                ),
                "reason in tun_net_xmit",
            ),
            (
                of(9010, 9000, &lost("tun_get_user"), None, [true; 2]),
                "reason in tun_get_user",
            ),
            (
                of(
                    9010,
                    9000,
                    &lost("tun_net_xmit"),
                    Some("a frame came twice"),
                    [true; 2],
                ),
                "twice",
            ),
            (
                of(110, 100, &lost("tun_net_xmit"), None, [true; 2]),
                "too few",
            ),
            (
                of(9010, 9000, &lost("tun_net_xmit"), None, [false, true]),
                "257 was not refused",
            ),
            (
                of(9010, 9000, &lost("tun_net_xmit"), None, [true, false]),
                "did not end",
            ),
        ] {
            assert!(!told.passed && told.seen.contains(words), "{told:?}");
        }
    }
}
