//! MQ17: a tunnel program on tuns with one queue or several, a thread for each.

use std::io::ErrorKind;
use std::net::{IpAddr, Ipv4Addr, UdpSocket};
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use hopyard_net::Handle;
use hopyard_tap::{NewDevice, Queue};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

use super::site::{cable, space};
use super::taps::multi;
use super::{FunctionalCheck, Result, Timed, socket, udp};
use crate::model::FOR_A_VERDICT;

/// Inside the tunnel.
const INSIDE: [Ipv4Addr; 2] = [Ipv4Addr::new(198, 18, 0, 1), Ipv4Addr::new(198, 18, 0, 2)];
/// Outside, where the tunnel's own packets go.
const OUTSIDE: [Ipv4Addr; 2] = [Ipv4Addr::new(198, 18, 1, 1), Ipv4Addr::new(198, 18, 1, 2)];
/// The first port of the tunnel; each queue has its own.
const TUNNEL: u16 = 7000;
const PORT: u16 = 9000;
const FLOWS: usize = 16;
/// How long anybody waits before asking whether to go on.
const ASK: Duration = Duration::from_millis(20);
const WARM_UP: Duration = Duration::from_millis(50);
const WINDOW: Duration = Duration::from_millis(200);
/// A packet that is to come has come by then.
const SOON: Duration = Duration::from_millis(500);
/// Packets on their way at most, below what a queue or a socket holds.
const BURST: u64 = 200;

/// One side of the tunnel: its namespace, and for each queue the socket that its packets go by.
struct Side {
    handle: Handle,
    queues: Vec<(Queue, UdpSocket)>,
}

/// Two sides, and sockets of programs that talk through the tunnel: many senders and a receiver.
struct Tunnel {
    sides: [Side; 2],
    senders: Vec<UdpSocket>,
    receiver: UdpSocket,
}

impl Tunnel {
    fn new(device: &NewDevice) -> Result<Self> {
        let handles = [space()?, space()?];
        cable(
            (&handles[0], "eth0"),
            (&handles[1], "eth0"),
            [2, 0, 0, 0, 1, 2],
        )?;
        for (handle, address) in handles.iter().zip(OUTSIDE) {
            handle.add_address("eth0", IpAddr::from(address), 24)?;
        }
        let [one, other] = handles;
        let sides = [Side::new(one, 0, device)?, Side::new(other, 1, device)?];
        let receiver = udp::receiver(&sides[1].handle, PORT, ASK)?;
        let sender = |_| udp::sender(&sides[0].handle, (INSIDE[1].into(), PORT));
        Ok(Self {
            senders: (0..FLOWS).map(sender).collect::<Result<_>>()?,
            receiver,
            sides,
        })
    }

    /// Runs the tunnel, and something through it: a thread for each queue of the side that sends and of the side that receives.
    /// Also how many packets each queue of the former carried.
    fn run<T>(&self, through: impl FnOnce() -> Result<T>) -> Result<(T, Vec<u64>)> {
        let going = AtomicBool::new(true);
        let carried: Vec<AtomicU64> = self.sides[0]
            .queues
            .iter()
            .map(|_| AtomicU64::new(0))
            .collect();
        let done = thread::scope(|scope| {
            for ((queue, by), carried) in self.sides[0].queues.iter().zip(&carried) {
                scope.spawn(|| send_on(queue, by, carried, &going));
            }
            for (queue, by) in &self.sides[1].queues {
                scope.spawn(|| take_in(queue, by, &going));
            }
            let done = through();
            going.store(false, Ordering::Relaxed);
            done
        })?;
        Ok((
            done,
            carried.into_iter().map(AtomicU64::into_inner).collect(),
        ))
    }
}

impl Side {
    fn new(handle: Handle, at: usize, device: &NewDevice) -> Result<Self> {
        let other = 1 - at;
        let new = NewDevice {
            nonblocking: true,
            ..device.clone()
        };
        let (_, queues) = handle.ns().run(|| new.create())??;
        handle.set_up(&new.name)?;
        handle.add_address(&new.name, IpAddr::from(INSIDE[at]), 24)?;
        handle.settle(&new.name)?;
        let with_socket = |(port, queue): (u16, Queue)| {
            let open = || {
                let by = UdpSocket::bind((OUTSIDE[at], port))?;
                by.connect((OUTSIDE[other], port))?;
                by.set_read_timeout(Some(ASK))?;
                Ok(by)
            };
            let by: std::io::Result<UdpSocket> = handle.ns().run(open)?;
            Ok((queue, by.map_err(socket("open a socket of the tunnel"))?))
        };
        let queues = (TUNNEL..)
            .zip(queues)
            .map(with_socket)
            .collect::<Result<_>>()?;
        Ok(Self { handle, queues })
    }
}

/// From a queue to the other side.
fn send_on(queue: &Queue, by: &UdpSocket, carried: &AtomicU64, going: &AtomicBool) {
    let mut packet = [0; 2048];
    while going.load(Ordering::Relaxed) {
        match queue.read(&mut packet) {
            // What the other side has no room for is lost, as in any tunnel.
            Ok(length) => {
                carried.fetch_add(
                    u64::from(by.send(&packet[..length]).is_ok()),
                    Ordering::Relaxed,
                );
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock => wait(queue),
            Err(_) => return,
        }
    }
}

/// From the other side to a queue.
fn take_in(queue: &Queue, by: &UdpSocket, going: &AtomicBool) {
    let mut packet = [0; 2048];
    while going.load(Ordering::Relaxed) {
        if let Ok(length) = by.recv(&mut packet) {
            let _ = queue.write(&packet[..length]);
        }
    }
}

/// Until a queue has something, or somebody should ask whether to go on.
fn wait(queue: &Queue) {
    let mut asked = [PollFd::new(queue.as_fd(), PollFlags::POLLIN)];
    let limit = u8::try_from(ASK.as_millis()).unwrap_or(u8::MAX);
    let _ = poll(&mut asked, PollTimeout::from(limit));
}

fn tun(queues: usize) -> NewDevice {
    match queues {
        1 => NewDevice::tun("tun0"),
        many => multi(NewDevice::tun("tun0"), many),
    }
}

/// Numbered datagrams of many flows come through the tunnel, each once, by more than one queue.
pub(super) fn many_queues() -> Result<FunctionalCheck> {
    const QUEUES: usize = 4;
    let tunnel = Tunnel::new(&tun(QUEUES))?;
    let (mut came, carried) = tunnel.run(|| {
        for (number, sender) in (0..BURST).zip(tunnel.senders.iter().cycle()) {
            let sent = sender.send(&number.to_be_bytes());
            sent.map_err(socket("send a datagram"))?;
        }
        let mut came = Vec::new();
        let mut quiet = Instant::now();
        let mut room = [0; 8];
        while (came.len() as u64) < BURST && quiet.elapsed() < SOON {
            if tunnel.receiver.recv(&mut room).is_ok() {
                came.push(u64::from_be_bytes(room));
                quiet = Instant::now();
            }
        }
        Ok(came)
    })?;
    let arrived = came.len();
    came.sort_unstable();
    let used = carried.iter().filter(|packets| **packets > 0).count();
    Ok(FunctionalCheck {
        passed: came.into_iter().eq(0..BURST) && used > 1,
        seen: format!(
            "{arrived} of {BURST} packets of {FLOWS} flows came through a tunnel program with a thread for each queue of its tun, by {used} of {QUEUES} queues"
        ),
    })
}

/// Packets that come through the tunnel in a second, of senders that send what is let through and some more.
fn rate(queues: usize) -> Result<f64> {
    let tunnel = Tunnel::new(&tun(queues))?;
    let (sent, received) = (AtomicU64::new(0), AtomicU64::new(0));
    let going = AtomicBool::new(true);
    let (rate, _) = tunnel.run(|| {
        thread::scope(|scope| {
            scope.spawn(|| {
                let mut senders = tunnel.senders.iter().cycle();
                let mut lost = 0;
                let mut stalled = Instant::now();
                while going.load(Ordering::Relaxed) {
                    let under_way = sent
                        .load(Ordering::Relaxed)
                        .saturating_sub(received.load(Ordering::Relaxed));
                    if under_way.saturating_sub(lost) >= BURST {
                        // What does not come within a time is lost, and makes room.
                        if stalled.elapsed() > ASK {
                            lost = under_way;
                        }
                        thread::yield_now();
                        continue;
                    }
                    stalled = Instant::now();
                    if let Some(sender) = senders.next() {
                        sent.fetch_add(u64::from(sender.send(&[0; 8]).is_ok()), Ordering::Relaxed);
                    }
                }
            });
            scope.spawn(|| {
                let mut room = [0; 8];
                while going.load(Ordering::Relaxed) {
                    received.fetch_add(
                        u64::from(tunnel.receiver.recv(&mut room).is_ok()),
                        Ordering::Relaxed,
                    );
                }
            });
            thread::sleep(WARM_UP);
            let (began, before) = (Instant::now(), received.load(Ordering::Relaxed));
            thread::sleep(WINDOW);
            let came = received.load(Ordering::Relaxed) - before;
            let rate =
                f64::from(u32::try_from(came).unwrap_or(u32::MAX)) / began.elapsed().as_secs_f64();
            going.store(false, Ordering::Relaxed);
            Ok(rate)
        })
    })?;
    Ok(rate)
}

/// A tun with a queue for each CPU, two at least, against one of a single queue. Which is measured first
/// alternates from block to block.
pub(super) fn queues_against_one() -> Result<Timed> {
    let cpus = thread::available_parallelism().map_or(2, usize::from);
    let many = cpus.clamp(2, 8);
    let (mut values, mut base) = (Vec::new(), Vec::new());
    for block in 0..FOR_A_VERDICT + 2 {
        if block % 2 == 0 {
            values.push(rate(many)?);
            base.push(rate(1)?);
        } else {
            base.push(rate(1)?);
            values.push(rate(many)?);
        }
    }
    Ok(Timed {
        what: format!("packets/s through a tunnel, tun of {many} queues / of one"),
        values,
        base: Some(base),
    })
}
