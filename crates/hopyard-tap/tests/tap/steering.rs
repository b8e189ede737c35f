//! Which queue gets which flow, for each way to choose.

use std::fs::File;
use std::os::fd::AsFd;
use std::time::Duration;

use hopyard_net::Handle;
use hopyard_tap::{Device, Error, NewDevice, Pins, Queue, Queues, Steering, TunLayer};
use nix::sched::{CpuSet, sched_getaffinity, sched_setaffinity};
use nix::unistd::Pid;

use crate::world::{STATION, Sender, arrival, world};

const QUEUES: usize = 4;
/// For each family, so many that no queue is left out by chance.
const FLOWS: usize = 64;

fn devices() -> [NewDevice; 2] {
    [NewDevice::tap("x0"), NewDevice::tun("x0")].map(|new| NewDevice {
        queues: Queues::Multi(QUEUES),
        ..new
    })
}

/// A [`world`] that also has fd09::1 for the kernel and ::2 for the station.
fn both_families(new: NewDevice) -> (Handle, Device, Vec<Queue>) {
    let (handle, device, queues) = world(new);
    let [ours, theirs] = ["fd09::1", "fd09::2"].map(|address| address.parse().unwrap());
    let name = device.name();
    handle.add_address(name, ours, 64).unwrap();
    if device.layer() == TunLayer::Tap {
        handle.add_neighbour(name, theirs, STATION).unwrap();
    }
    (handle, device, queues)
}

/// The queue that a flow's next datagram reaches.
fn choice(sender: &Sender, queues: &[Queue]) -> usize {
    sender.send(7).unwrap();
    arrival(queues).0
}

#[test]
fn by_hash_as_foretold() {
    for new in devices() {
        let (handle, _device, queues) = both_families(new);
        queues[0].steer(Steering::Hash).unwrap();
        let mut used = [0; QUEUES];
        for to in ["10.9.0.2", "fd09::2"] {
            for _ in 0..FLOWS {
                let sender = Sender::new(&handle, to, 0);
                let got = choice(&sender, &queues);
                assert_eq!(got, sender.flow().queue(QUEUES), "{:?}", sender.flow());
                used[got] += 1;
            }
        }
        assert!(used.iter().all(|&count| count > 0), "{used:?}");
        queues[3].detach().unwrap();
        let sender = Sender::new(&handle, "10.9.0.2", 0);
        assert_eq!(choice(&sender, &queues), sender.flow().queue(QUEUES - 1));
    }
}

#[test]
fn by_the_cpu_that_sends() {
    for new in devices() {
        let (handle, _device, queues) = world(new);
        queues[0].steer(Steering::Cpu).unwrap();
        let sender = Sender::new(&handle, "10.9.0.2", 0);
        let allowed = sched_getaffinity(Pid::from_raw(0)).unwrap();
        let cpus: Vec<usize> = (0..CpuSet::count())
            .filter(|&cpu| allowed.is_set(cpu).unwrap())
            .collect();
        for &cpu in cpus.iter().cycle().take(2 * cpus.len()) {
            let mut set = CpuSet::new();
            set.set(cpu).unwrap();
            // Only this test's thread, which ends with the test.
            sched_setaffinity(Pid::from_raw(0), &set).unwrap();
            assert_eq!(choice(&sender, &queues), cpu % QUEUES);
        }
        sched_setaffinity(Pid::from_raw(0), &allowed).unwrap();
    }
}

#[test]
fn pinned_one_by_one() {
    for new in devices() {
        let layer = new.layer;
        let (handle, _device, queues) = both_families(new);
        let mut pins = Pins::new(layer).unwrap();
        queues[1].steer(Steering::Pinned(&pins)).unwrap();
        for to in ["10.9.0.2", "fd09::2"] {
            let flows: Vec<_> = (0..16).map(|_| Sender::new(&handle, to, 0)).collect();
            for turn in 0..2 {
                for (at, sender) in flows.iter().enumerate() {
                    let queue = (at + turn) % QUEUES;
                    pins.pin(&sender.flow(), u16::try_from(queue).unwrap())
                        .unwrap();
                    assert_eq!(choice(sender, &queues), queue);
                    let told = pins.queue_of(&sender.flow()).unwrap();
                    assert_eq!(told.map(usize::from), Some(queue));
                }
            }
            for sender in &flows {
                assert!(pins.unpin(&sender.flow()).unwrap());
                assert!(!pins.unpin(&sender.flow()).unwrap());
                assert_eq!(pins.queue_of(&sender.flow()).unwrap(), None);
                assert_eq!(choice(sender, &queues), sender.flow().queue(QUEUES));
            }
        }
        // A number above the count of queues is taken modulo the count. The device keeps its pins after [`Pins`] is
        // dropped.
        let sender = Sender::new(&handle, "10.9.0.2", 0);
        pins.pin(&sender.flow(), 42).unwrap();
        drop(pins);
        assert_eq!(choice(&sender, &queues), 42 % QUEUES);
    }
}

/// A UDP datagram over IPv4 from the station to a sender's socket.
fn answer(sender: &Sender, layer: TunLayer) -> Vec<u8> {
    let port = sender.flow().source.port();
    let mut frame = Vec::new();
    if layer == TunLayer::Tap {
        // To a group, because the device's own address is random.
        frame.extend([0xff; 6]);
        frame.extend(STATION);
        frame.extend([8, 0]);
    }
    let mut ip = vec![0x45, 0, 0, 36, 0, 0, 0, 0, 64, 17, 0, 0];
    ip.extend([10, 9, 0, 2, 10, 9, 0, 1]);
    let sum: u32 = ip
        .chunks(2)
        .map(|pair| u32::from(u16::from_be_bytes([pair[0], pair[1]])))
        .sum();
    let sum = !u16::try_from((sum & 0xffff) + (sum >> 16)).unwrap();
    ip[10..12].copy_from_slice(&sum.to_be_bytes());
    frame.extend(ip);
    frame.extend(crate::world::PORT.to_be_bytes());
    frame.extend(port.to_be_bytes());
    frame.extend([0, 16, 0, 0]);
    frame.extend(*b"answered");
    frame
}

#[test]
fn by_the_kernel_a_flow_goes_where_it_came_from() {
    for new in devices() {
        let layer = new.layer;
        let (handle, _device, queues) = world(new);
        let flows: Vec<_> = (0..8)
            .map(|_| Sender::new(&handle, "10.9.0.2", 0))
            .collect();
        for turn in 0..3 {
            for (at, sender) in flows.iter().enumerate() {
                let queue = (at + turn) % QUEUES;
                queues[queue].write(&answer(sender, layer)).unwrap();
                assert_eq!(choice(sender, &queues), queue);
            }
        }
        // A program takes over and is removed again; the kernel's table still exists.
        queues[0].steer(Steering::Hash).unwrap();
        queues[0].steer(Steering::Kernel).unwrap();
        for (at, sender) in flows.iter().enumerate() {
            assert_eq!(choice(sender, &queues), (at + 2) % QUEUES);
        }
    }
}

/// A socket filter that lets a datagram pass if it was received on queue `queue` (`SKF_AD_QUEUE`, which counts
/// recorded queues from 1).
fn only_from(sender: &Sender, queue: usize) {
    let word = |code: u16, jf, k| libc::sock_filter { code, jt: 0, jf, k };
    let mut filter = [
        word(0x20, 0, 0xffff_f000 + 24),
        word(0x15, 1, u32::try_from(queue).unwrap() + 1),
        word(0x06, 0, u32::MAX),
        word(0x06, 0, 0),
    ];
    let program = libc::sock_fprog {
        len: 4,
        filter: filter.as_mut_ptr(),
    };
    let size = libc::socklen_t::try_from(size_of_val(&program)).unwrap();
    let fd = std::os::fd::AsRawFd::as_raw_fd(&sender.socket);
    let option = (&raw const program).cast();
    // SAFETY: `program` is a complete sock_fprog, its filter has the stated length, and both live until the call
    // returns.
    let set =
        unsafe { libc::setsockopt(fd, libc::SOL_SOCKET, libc::SO_ATTACH_FILTER, option, size) };
    assert_eq!(set, 0);
}

#[test]
fn the_queue_that_was_written_to_is_recorded() {
    for new in devices() {
        let layer = new.layer;
        let (handle, _device, queues) = world(new);
        for expected in 0..QUEUES {
            let sender = Sender::new(&handle, "10.9.0.2", 0);
            only_from(&sender, expected);
            sender
                .socket
                .set_read_timeout(Some(Duration::from_millis(50)))
                .unwrap();
            for (at, queue) in queues.iter().enumerate() {
                queue.write(&answer(&sender, layer)).unwrap();
                let mut bytes = [0; 16];
                let heard = sender.socket.recv(&mut bytes).is_ok();
                assert_eq!(
                    heard,
                    at == expected,
                    "written to {at}, filtered for {expected}"
                );
            }
        }
    }
}

#[test]
fn what_cannot_steer() {
    let (_handle, _device, queues) = world(devices()[0].clone());
    let file = File::open("/dev/null").unwrap();
    let refused = queues[0]
        .steer(Steering::Program(file.as_fd()))
        .unwrap_err();
    assert!(matches!(refused, Error::Invalid { .. }), "{refused}");
    let pins = Pins::new(TunLayer::Tun).unwrap();
    let refused = queues[0].steer(Steering::Pinned(&pins)).unwrap_err();
    assert!(matches!(refused, Error::Invalid { .. }), "{refused}");
}
