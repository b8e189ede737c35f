//! Datagrams with numbers, paced, counted where they arrive.

use std::net::{SocketAddr, UdpSocket};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};

use hopyard_net::{Handle, NetNs};
use nix::sched::{CpuSet, sched_getaffinity, sched_setaffinity};
use nix::sys::socket::{setsockopt, sockopt::RcvBufForce};
use nix::unistd::Pid;

/// Datagrams each second.
const RATE: u64 = 5000;
/// Most datagrams at once, after the sender was kept from its CPU: fewer than any queue on the way holds.
const BURST: u64 = 50;
/// A datagram that is still on its way has arrived by then.
const GRACE: Duration = Duration::from_millis(300);

/// What became of a flow.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Account {
    pub(crate) sent: u64,
    pub(crate) lost: u64,
    pub(crate) twice: u64,
    pub(crate) out_of_order: u64,
}

impl Account {
    #[track_caller]
    pub(crate) fn assert_whole(&self, what: &str) {
        let whole = Self {
            sent: self.sent,
            ..Self::default()
        };
        assert!(self.sent > 0, "{what}: nothing was sent");
        assert_eq!(*self, whole, "{what}");
    }
}

/// One way of a flow: from a place to an address at another.
pub(crate) struct Flow {
    sender: UdpSocket,
    receiver: UdpSocket,
}

fn bind(ns: &NetNs, address: SocketAddr) -> UdpSocket {
    ns.run(|| UdpSocket::bind(address)).unwrap().unwrap()
}

impl Flow {
    pub(crate) fn new(from: &Handle, to: &Handle, address: std::net::IpAddr) -> Self {
        let receiver = bind(to.ns(), (address, 0).into());
        // The receiving thread may be kept from its CPU for long.
        setsockopt(&receiver, RcvBufForce, &(32 << 20)).unwrap();
        receiver.set_read_timeout(Some(GRACE)).unwrap();
        let any = if address.is_ipv4() {
            "0.0.0.0:0"
        } else {
            "[::]:0"
        };
        let sender = bind(from.ns(), any.parse().unwrap());
        sender.connect(receiver.local_addr().unwrap()).unwrap();
        Self { sender, receiver }
    }

    /// Sends until told to stop; returns how many.
    fn send(&self, stop: &AtomicBool) -> u64 {
        stay_on_this_cpu();
        let began = Instant::now();
        let mut sent = 0_u64;
        // What could not be sent in time is left out, rather than flood the queues.
        let mut skipped = 0_u64;
        while !stop.load(Relaxed) {
            let due = began.elapsed().as_micros() as u64 * RATE / 1_000_000;
            let late = due.saturating_sub(sent + skipped);
            skipped += late.saturating_sub(BURST);
            for _ in 0..late.min(BURST) {
                let n = self.sender.send(&sent.to_be_bytes()).unwrap();
                assert_eq!(n, 8);
                sent += 1;
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        sent
    }

    /// Counts until nothing comes any more after the sender stopped.
    fn receive(&self, stop: &AtomicBool) -> Vec<u64> {
        let mut seen = Vec::new();
        let mut buffer = [0; 8];
        loop {
            // A wait that began before the sender stopped says nothing of what was sent during it.
            let stopped = stop.load(Relaxed);
            match self.receiver.recv(&mut buffer) {
                Ok(8) => seen.push(u64::from_be_bytes(buffer)),
                Ok(n) => panic!("a datagram of {n} bytes"),
                Err(_) if stopped => return seen,
                Err(_) => {}
            }
        }
    }
}

/// The kernel queues by CPU: a sender that moves may overtake itself without anybody's fault.
fn stay_on_this_cpu() {
    let this = Pid::from_raw(0);
    let allowed = sched_getaffinity(this).unwrap();
    let mut one = CpuSet::new();
    let cpu = (0..CpuSet::count()).find(|cpu| allowed.is_set(*cpu).unwrap());
    one.set(cpu.unwrap()).unwrap();
    sched_setaffinity(this, &one).unwrap();
}

fn account(sent: u64, seen: &[u64]) -> Account {
    let mut times = vec![0_u32; sent as usize];
    let mut highest = None;
    let mut out_of_order = 0;
    for number in seen {
        times[*number as usize] += 1;
        if highest > Some(*number) {
            out_of_order += 1;
        }
        highest = highest.max(Some(*number));
    }
    Account {
        sent,
        lost: times.iter().filter(|n| **n == 0).count() as u64,
        twice: times.iter().filter(|n| **n > 1).count() as u64,
        out_of_order,
    }
}

/// Runs the flows while `f` runs; their accounts in the same order.
pub(crate) fn during<T>(flows: &[Flow], f: impl FnOnce() -> T) -> (T, Vec<Account>) {
    let (stop, gone) = (AtomicBool::new(false), AtomicBool::new(false));
    std::thread::scope(|scope| {
        let running: Vec<_> = flows
            .iter()
            .map(|flow| {
                let (stop, gone) = (&stop, &gone);
                (
                    scope.spawn(move || flow.send(stop)),
                    scope.spawn(move || flow.receive(gone)),
                )
            })
            .collect();
        // A panic must end the flows too, or it would wait for them for ever.
        let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(f));
        stop.store(true, Relaxed);
        let (senders, receivers): (Vec<_>, Vec<_>) = running.into_iter().unzip();
        let sent: Vec<u64> = senders.into_iter().map(|s| s.join().unwrap()).collect();
        gone.store(true, Relaxed);
        let accounts = receivers
            .into_iter()
            .zip(&sent)
            .map(|(receiver, sent)| account(*sent, &receiver.join().unwrap()))
            .collect();
        (
            result.unwrap_or_else(|panic| std::panic::resume_unwind(panic)),
            accounts,
        )
    })
}

/// Both sides know each other's Ethernet address for good: no question is asked on the way.
pub(crate) fn acquaint(one: (&Handle, &str, u8), other: (&Handle, &str, u8)) {
    for ((from, device, _), (to, far, host)) in [(one, other), (other, one)] {
        let mac = to.link(far).unwrap().mac.unwrap();
        from.add_neighbour(device, super::site::v4(host), mac)
            .unwrap();
        from.add_neighbour(device, super::site::v6(host).into(), mac)
            .unwrap();
    }
}
