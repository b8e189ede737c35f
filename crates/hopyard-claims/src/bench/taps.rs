//! MQ9, MQ13 and MQ16: programs with one queue of a tap.

use std::io::ErrorKind;
use std::net::{IpAddr, Ipv4Addr, UdpSocket};
use std::time::{Duration, Instant};

use hopyard_net::{Handle, TunLayer};
use hopyard_tap::{NewDevice, Queue, Queues};

use super::site::space;
use super::{FunctionalCheck, Result, Timed, socket};
use crate::model::FOR_A_VERDICT;
use crate::stats;

const KERNEL: Ipv4Addr = Ipv4Addr::new(198, 18, 0, 1);
const STATION: Ipv4Addr = Ipv4Addr::new(198, 18, 0, 2);
const STATION_MAC: [u8; 6] = [2, 0, 0, 0, 0, 0x99];
const PORT: u16 = 9000;
/// Flows that queues are chosen for.
const FLOWS: usize = 16;
/// Datagrams under way at most, below what one queue holds.
const BURST: u64 = 256;
/// A frame that is to come has come by then.
const SOON: Duration = Duration::from_millis(500);

/// A device of a namespace of its own, and sockets of the kernel that send to the station behind it.
pub(super) struct Behind {
    pub(super) handle: Handle,
    pub(super) senders: Vec<UdpSocket>,
    sent: u64,
}

impl Behind {
    pub(super) fn new(new: NewDevice) -> Result<(Self, Vec<Queue>)> {
        let handle = space()?;
        let new = NewDevice {
            nonblocking: true,
            ..new
        };
        let (device, queues) = handle.ns().run(|| new.create())??;
        let name = device.name();
        handle.set_up(name)?;
        handle.add_address(name, IpAddr::from(KERNEL), 24)?;
        if new.layer == TunLayer::Tap {
            handle.add_neighbour(name, STATION.into(), STATION_MAC)?;
        }
        handle.settle(name)?;
        let connect = || {
            let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0))?;
            socket.connect((STATION, PORT))?;
            Ok(socket)
        };
        let senders: std::io::Result<Vec<UdpSocket>> = handle
            .ns()
            .run(|| (0..FLOWS).map(|_| connect()).collect())?;
        let senders = senders.map_err(socket("connect a UDP socket"))?;
        Ok((
            Self {
                handle,
                senders,
                sent: 0,
            },
            queues,
        ))
    }

    /// Sends the next numbered datagrams, over all flows in turn; the numbers.
    fn send(&mut self, count: u64) -> Result<std::ops::Range<u64>> {
        let first = self.sent;
        for number in first..first + count {
            let flow = usize::try_from(number).unwrap_or(0) % FLOWS;
            let sent = self.senders[flow].send(&number.to_be_bytes());
            sent.map_err(socket("send a datagram"))?;
        }
        self.sent += count;
        Ok(first..first + count)
    }
}

/// The number in a datagram of ours, its last eight bytes; `None` for whatever else a kernel says.
fn number(layer: TunLayer, frame: &[u8]) -> Option<u64> {
    let packet = if layer == TunLayer::Tap {
        frame.get(14..)?
    } else {
        frame
    };
    let is_ours = packet.first()? >> 4 == 4 && packet.get(9) == Some(&17) && packet.len() == 36;
    is_ours.then(|| packet[28..36].try_into().map(u64::from_be_bytes).ok())?
}

/// The next numbered datagram of a queue, if there is one now.
pub(super) fn next(queue: &Queue) -> Result<Option<u64>> {
    let mut frame = [0; 2048];
    loop {
        match queue.read(&mut frame) {
            Ok(length) => {
                if let Some(number) = number(queue.device().layer(), &frame[..length]) {
                    return Ok(Some(number));
                }
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(None),
            Err(error) => return Err(socket("read a queue")(error)),
        }
    }
}

/// Which queue each of so many datagrams came by; fewer where no more come.
fn arrivals(queues: &[&Queue], count: u64) -> Result<Vec<(usize, u64)>> {
    let mut came = Vec::new();
    let mut quiet = Instant::now();
    while (came.len() as u64) < count && quiet.elapsed() < SOON {
        for (at, queue) in queues.iter().enumerate() {
            while let Some(number) = next(queue)? {
                came.push((at, number));
                quiet = Instant::now();
            }
        }
    }
    Ok(came)
}

/// Did each of these numbers come, and once?
fn each_once(came: &[(usize, u64)], numbers: std::ops::Range<u64>) -> bool {
    let mut seen: Vec<u64> = came.iter().map(|(_, number)| *number).collect();
    seen.sort_unstable();
    seen.into_iter().eq(numbers)
}

pub(super) fn multi(new: NewDevice, queues: usize) -> NewDevice {
    NewDevice {
        queues: Queues::Multi(queues),
        ..new
    }
}

/// A program that knows of one queue alone (TUNSETIFF without IFF_MULTI_QUEUE).
pub(super) fn plain_program() -> Result<FunctionalCheck> {
    let (mut behind, queues) = Behind::new(NewDevice::tap("tap0"))?;
    let numbers = behind.send(BURST)?;
    let came = arrivals(&[&queues[0]], BURST)?;
    let out = each_once(&came, numbers);
    let answered = answers(&behind, &queues[0])?;
    Ok(FunctionalCheck {
        passed: out && answered,
        seen: format!(
            "a program that makes its device by TUNSETIFF alone {} {BURST} frames of the kernel, each once, and the kernel {} what it writes",
            if out { "gets" } else { "does not get" },
            if answered { "gets" } else { "does not get" }
        ),
    })
}

/// Does the kernel get a datagram that the station writes to the first sender?
fn answers(behind: &Behind, queue: &Queue) -> Result<bool> {
    let socket_of = &behind.senders[0];
    let to = socket_of
        .local_addr()
        .map_err(socket("read an address"))?
        .port();
    let mac = behind
        .handle
        .link(queue.device().name())?
        .mac
        .unwrap_or_default();
    let mut packet = vec![0x45, 0, 0, 29, 0, 1, 0, 0, 64, 17, 0, 0];
    packet.extend(STATION.octets());
    packet.extend(KERNEL.octets());
    let checksum = !header_sum(&packet);
    packet[10..12].copy_from_slice(&checksum.to_be_bytes());
    packet.extend(PORT.to_be_bytes());
    packet.extend(to.to_be_bytes());
    // Length, no checksum, and one byte of payload.
    packet.extend([0, 9, 0, 0, 0x2a]);
    let frame = [&mac[..], &STATION_MAC, &[8, 0], &packet].concat();
    queue.write(&frame).map_err(socket("write to a queue"))?;
    socket_of
        .set_read_timeout(Some(SOON))
        .map_err(socket("wait for a datagram"))?;
    let mut room = [0; 8];
    Ok(socket_of
        .recv(&mut room)
        .is_ok_and(|length| room[..length] == [0x2a]))
}

/// The one's complement sum of 16-bit words (RFC 1071).
fn header_sum(header: &[u8]) -> u16 {
    let words = header
        .chunks_exact(2)
        .map(|w| u32::from(u16::from_be_bytes([w[0], w[1]])));
    let sum: u32 = words.sum();
    u16::try_from((sum & 0xffff) + (sum >> 16)).unwrap_or(0xffff)
}

/// A device whose bursts are timed: sent, and read again, in one thread.
struct TimedDevice {
    behind: Behind,
    queues: Vec<Queue>,
    /// Datagrams per second of each burst.
    rates: Vec<f64>,
}

impl TimedDevice {
    fn new(new: NewDevice) -> Result<Self> {
        let (behind, queues) = Behind::new(new)?;
        let mut device = Self {
            behind,
            queues,
            rates: Vec::new(),
        };
        // The first frames find caches cold.
        device.burst()?;
        device.rates.clear();
        Ok(device)
    }

    fn burst(&mut self) -> Result<()> {
        let all: Vec<&Queue> = self.queues.iter().collect();
        let began = Instant::now();
        self.behind.send(BURST)?;
        let came = u32::try_from(arrivals(&all, BURST)?.len()).unwrap_or(u32::MAX);
        self.rates
            .push(f64::from(came) / began.elapsed().as_secs_f64());
        Ok(())
    }

    /// The median rate of the bursts, datagrams per second. Other programs take the CPU during a few bursts, which are then much
    /// slower.
    fn rate(self) -> f64 {
        stats::median(self.rates).unwrap_or(f64::NAN)
    }
}

/// Datagrams per second through each of two devices. Their bursts alternate, so that both meet the same state of a machine that
/// changes within milliseconds.
fn rates_in_turns(new: [NewDevice; 2]) -> Result<[f64; 2]> {
    const BURSTS: u32 = 150;
    let [one, other] = new.map(TimedDevice::new);
    let mut devices = [one?, other?];
    for burst in 0..BURSTS {
        for at in if burst % 2 == 0 { [0, 1] } else { [1, 0] } {
            devices[at].burst()?;
        }
    }
    Ok(devices.map(TimedDevice::rate))
}

/// A device made as before multi-queue against a multi-queue one with one queue.
pub(super) fn plain_against_one_queue() -> Result<Timed> {
    const BLOCKS: u32 = 2 * (FOR_A_VERDICT + 2);
    let (mut values, mut base) = (Vec::new(), Vec::new());
    for _ in 0..BLOCKS {
        let plain = NewDevice::tap("tap0");
        let [one, other] = rates_in_turns([plain.clone(), multi(plain, 1)])?;
        values.push(one);
        base.push(other);
    }
    Ok(Timed {
        what: "frames/s, plain tap / one queue of many".to_owned(),
        values,
        base: Some(base),
    })
}
