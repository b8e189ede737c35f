//! A switch with guests, a wire and ears everywhere.

use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::{Duration, Instant};

use hopyard_net::{Handle, LinkKind, NetNs, NewLink};
use hopyard_switch::{NewPort, NewSwitch, Switch};
use nix::errno::Errno;
use nix::mount::{MsFlags, mount};
use nix::sched::{CloneFlags, unshare};
use nix::sys::socket::{
    AddressFamily, LinkAddr, MsgFlags, SockFlag, SockProtocol, SockType, SockaddrLike, bind,
    sendto, socket,
};

pub(crate) mod tap;
use tap::{TAP, Tap};

pub(crate) const BROADCAST: [u8; 6] = [0xff; 6];
/// Nobody's address.
pub(crate) const STRANGER: [u8; 6] = [2, 0, 0, 0, 0xaa, 0xbb];
/// An Ethernet type for local experiments (IEEE 802).
pub(crate) const EXPERIMENT: u16 = 0x88b5;
/// A frame that is to come has come by then, and one that must not come would have.
const QUIET: Duration = Duration::from_millis(30);

/// A packet socket on one device: hears what reached the stack, sends what it is given.
struct Ear {
    name: String,
    /// A packet socket, or the program's end of a tap.
    file: File,
    /// The device of a packet socket; `None`: a tap.
    device: Option<u32>,
    kind: u16,
}

impl Ear {
    fn open(ns: &NetNs, device: &str, name: &str, kind: u16) -> Self {
        let (socket, device) = ns
            .run(|| {
                let flags = SockFlag::SOCK_NONBLOCK | SockFlag::SOCK_CLOEXEC;
                let fd = socket(
                    AddressFamily::Packet,
                    SockType::Raw,
                    flags,
                    None::<SockProtocol>,
                )
                .unwrap();
                let device = bind_packet(&fd, device, kind);
                (fd, device)
            })
            .unwrap();
        Self {
            name: name.to_owned(),
            file: socket.into(),
            device: Some(device),
            kind,
        }
    }

    fn of_tap(tap: &Tap, name: &str, kind: u16) -> Self {
        Self {
            name: name.to_owned(),
            file: tap.0.try_clone().unwrap(),
            device: None,
            kind,
        }
    }

    fn hear(&self) -> Vec<Vec<u8>> {
        let mut heard = Vec::new();
        let mut buffer = [0; 2048];
        while let Ok(n) = (&self.file).read(&mut buffer) {
            // A tap hears frames of all types.
            if self.device.is_some() || buffer[12..14] == self.kind.to_be_bytes() {
                heard.push(buffer[..n].to_vec());
            }
        }
        heard
    }
}

/// Binds a packet socket to a device of the calling thread's namespace, for one Ethernet type. Returns
/// the device's index.
pub(crate) fn bind_packet(fd: &OwnedFd, device: &str, kind: u16) -> u32 {
    let index = nix::net::if_::if_nametoindex(device).unwrap();
    bind(fd.as_raw_fd(), &link_address(index, kind)).unwrap();
    index
}

fn link_address(index: u32, kind: u16) -> LinkAddr {
    let raw = libc::sockaddr_ll {
        sll_family: libc::AF_PACKET as u16,
        sll_protocol: kind.to_be(),
        sll_ifindex: index as i32,
        sll_hatype: 0,
        sll_pkttype: 0,
        sll_halen: 0,
        sll_addr: [0; 8],
    };
    let size = size_of::<libc::sockaddr_ll>() as libc::socklen_t;
    // SAFETY: `raw` is a whole sockaddr_ll, and its family says so.
    unsafe { LinkAddr::from_raw((&raw const raw).cast(), Some(size)) }.unwrap()
}

/// Ears of all parties for one Ethernet type.
pub(crate) struct Ears(Vec<Ear>);

impl Ears {
    /// Every frame that anybody heard since the last call, with who heard it.
    pub(crate) fn heard(&self) -> Vec<(String, Vec<u8>)> {
        let mut all = Vec::new();
        let mut deadline = Instant::now() + QUIET;
        loop {
            // Before the look: the last one begins when the while is over, and finds nothing.
            let looked = Instant::now();
            for ear in &self.0 {
                for frame in ear.hear() {
                    all.push((ear.name.clone(), frame));
                    deadline = Instant::now() + QUIET;
                }
            }
            if looked >= deadline {
                return all;
            }
            std::thread::sleep(Duration::from_millis(2));
        }
    }
}

/// What a port is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A pair whose other end is in a namespace of its guest.
    #[default]
    Pair,
    /// A pair whose other end moved there when it was a port already: frames to it take the queue.
    Late,
    /// A tap, whose guest is a program.
    Tap,
}

/// Namespaces, devices and a switch; gone when this value goes.
pub(crate) struct World {
    name: String,
    hub: NetNs,
    guests: Mutex<Vec<Option<NetNs>>>,
    /// By the number of the guest.
    taps: Vec<Option<Tap>>,
    far: Option<NetNs>,
    macs: Vec<(String, [u8; 6])>,
    ears: Ears,
}

fn quiet(ns: &NetNs) -> Handle {
    let handle = Handle::new(ns).unwrap();
    handle.quiet_ipv6().unwrap();
    handle
}

fn pair(hub: &Handle, name: &str, peer: &str, ns: &NetNs, mac: [u8; 6]) {
    let kind = LinkKind::Veth {
        peer: peer.to_owned(),
        peer_ns: Some(ns),
        peer_mac: Some(mac),
    };
    let new = NewLink {
        up: true,
        ..NewLink::new(name, kind)
    };
    hub.add_link(&new).unwrap();
    quiet(ns).set_up(peer).unwrap();
}

impl World {
    /// Guests `g0`… behind ports `p0`…, with an uplink (`host` at `up0`, `wire` beyond) or without.
    pub(crate) fn new(name: &str, guests: usize, uplink: bool) -> Self {
        Self::with(name, guests, uplink, |_, _| {})
    }

    /// As [`World::new`]; `change` says how port `n` differs.
    pub(crate) fn with(
        name: &str,
        guests: usize,
        uplink: bool,
        change: impl Fn(usize, &mut NewPort<'_>),
    ) -> Self {
        Self::build(name, guests, uplink, false, change)
    }

    pub(crate) fn build(
        name: &str,
        guests: usize,
        uplink: bool,
        answers: bool,
        change: impl Fn(usize, &mut NewPort<'_>),
    ) -> Self {
        Self::of_kinds(name, &vec![Kind::Pair; guests], uplink, answers, change)
    }

    /// As [`World::build`], with a guest for each kind.
    pub(crate) fn of_kinds(
        name: &str,
        kinds: &[Kind],
        uplink: bool,
        answers: bool,
        change: impl Fn(usize, &mut NewPort<'_>),
    ) -> Self {
        // Tests that stand at the same time may give one name, which no two switches of a host have.
        static NEXT: AtomicUsize = AtomicUsize::new(0);
        let nth = NEXT.fetch_add(1, Relaxed);
        let name = format!("test-{}-{nth}-{name}", std::process::id());
        let hub = NetNs::create().unwrap();
        let handle = quiet(&hub);
        let mut macs = Vec::new();
        let mut ears = Vec::new();
        let far = uplink.then(|| {
            let far = NetNs::create().unwrap();
            let mac = [2, 0, 0, 0, 1, 1];
            pair(&handle, "up0", "far0", &far, mac);
            macs.push(("wire".to_owned(), mac));
            macs.push(("host".to_owned(), handle.link("up0").unwrap().mac.unwrap()));
            ears.push(Ear::open(&far, "far0", "wire", EXPERIMENT));
            ears.push(Ear::open(&hub, "up0", "host", EXPERIMENT));
            far
        });
        hub.run(|| {
            Switch::create(&NewSwitch {
                name: &name,
                uplink: uplink.then_some("up0"),
                answers,
                ..NewSwitch::default()
            })
        })
        .unwrap()
        .unwrap();
        let mut spaces = Vec::new();
        let mut taps = Vec::new();
        for (n, kind) in kinds.iter().enumerate() {
            let ns = NetNs::create().unwrap();
            let mac = [2, 0, 0, 0, 0, n as u8 + 1];
            let device = format!("p{n}");
            let tap = (*kind == Kind::Tap).then(|| Tap::open(&handle, &device, TAP));
            match kind {
                Kind::Pair => pair(&handle, &device, "eth0", &ns, mac),
                Kind::Late => pair(&handle, &device, "eth0", &hub, mac),
                Kind::Tap => {}
            }
            let mut port = NewPort {
                device: &device,
                ..NewPort::default()
            };
            change(n, &mut port);
            hub.run(|| Switch::open(&name).unwrap().add_port(&port))
                .unwrap()
                .unwrap();
            let guest = format!("g{n}");
            if *kind == Kind::Late {
                let there = quiet(&ns);
                handle.move_to("eth0", &ns).unwrap();
                there.set_up("eth0").unwrap();
                assert!(handle.settle(&device).unwrap() && there.settle("eth0").unwrap());
            }
            ears.push(match &tap {
                Some(tap) => Ear::of_tap(tap, &guest, EXPERIMENT),
                None => Ear::open(&ns, "eth0", &guest, EXPERIMENT),
            });
            macs.push((guest, mac));
            spaces.push(tap.is_none().then_some(ns));
            taps.push(tap);
        }
        Self {
            name,
            hub,
            guests: Mutex::new(spaces),
            taps,
            far,
            macs,
            ears: Ears(ears),
        }
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    pub(crate) fn mac(&self, party: &str) -> [u8; 6] {
        self.macs.iter().find(|(name, _)| name == party).unwrap().1
    }

    /// Hands a frame to a party's device.
    pub(crate) fn send(&self, party: &str, frame: &[u8]) {
        assert_eq!(self.try_send(party, frame), Ok(frame.len()));
    }

    /// As [`World::send`], with what the kernel says to it.
    pub(crate) fn try_send(&self, party: &str, frame: &[u8]) -> nix::Result<usize> {
        let ear = self.ears.0.iter().find(|ear| ear.name == party).unwrap();
        // The kernel takes the type from here, not from the frame.
        let kind = frame
            .get(12..14)
            .map_or(0, |kind| u16::from_be_bytes([kind[0], kind[1]]));
        let Some(device) = ear.device else {
            let written = (&ear.file).write(frame);
            return written.map_err(|error| Errno::from_raw(error.raw_os_error().unwrap()));
        };
        let to = link_address(device, kind);
        sendto(ear.file.as_raw_fd(), frame, &to, MsgFlags::empty())
    }

    /// The program's end of a guest's tap.
    pub(crate) fn tap(&self, party: &str) -> Option<&Tap> {
        let n: usize = party.strip_prefix('g')?.parse().ok()?;
        self.taps[n].as_ref()
    }

    /// Who heard a frame of the experiments' type, how often, by name.
    pub(crate) fn heard(&self) -> Vec<(String, usize)> {
        let mut count = std::collections::BTreeMap::new();
        for (who, _) in self.ears.heard() {
            *count.entry(who).or_insert(0) += 1;
        }
        count.into_iter().collect()
    }

    /// Further ears, for another type.
    pub(crate) fn ears_for(&self, kind: u16) -> Ears {
        let mut ears = Vec::new();
        for (n, tap) in self.taps.iter().enumerate() {
            let ear = |tap| Ear::of_tap(tap, &format!("g{n}"), kind);
            ears.extend(tap.as_ref().map(ear));
        }
        for (n, ns) in self.guests.lock().unwrap().iter().enumerate() {
            if let Some(ns) = ns {
                ears.push(Ear::open(ns, "eth0", &format!("g{n}"), kind));
            }
        }
        if let Some(far) = &self.far {
            ears.push(Ear::open(far, "far0", "wire", kind));
        }
        Ears(ears)
    }

    /// Ears of all parties, the host's among them, for another type.
    pub(crate) fn all_ears_for(&self, kind: u16) -> Ears {
        let mut ears = self.ears_for(kind);
        if self.far.is_some() {
            ears.0.push(Ear::open(&self.hub, "up0", "host", kind));
        }
        ears
    }

    /// Ears at the host's ends of the ports: they hear what reaches the host's stack from there.
    pub(crate) fn host_ends(&self) -> Ears {
        let ports = (0..self.taps.len()).map(|n| format!("p{n}"));
        let ear = |port: String| Ear::open(&self.hub, &port, &port, EXPERIMENT);
        Ears(ports.map(ear).collect())
    }

    /// Runs something in the namespace of a party: `g0`…, `host`, `wire`.
    pub(crate) fn inside<T: Send>(&self, party: &str, f: impl FnOnce() -> T + Send) -> T {
        match party {
            "host" => self.in_hub(f),
            "wire" => self.far.as_ref().unwrap().run(f).unwrap(),
            guest => {
                let n: usize = guest.trim_start_matches('g').parse().unwrap();
                let guests = self.guests.lock().unwrap();
                guests[n].as_ref().unwrap().run(f).unwrap()
            }
        }
    }

    pub(crate) fn in_hub<T: Send>(&self, f: impl FnOnce() -> T + Send) -> T {
        self.hub.run(f).unwrap()
    }

    /// What was dropped of a party's frames, in the order of the reasons.
    pub(crate) fn drops(&self, party: &str) -> Vec<(&'static str, u64)> {
        let device = party.replace('g', "p");
        let stats = self.in_hub(|| Switch::open(&self.name).unwrap().stats().unwrap());
        let found = stats.iter().find(|stats| stats.party == device).unwrap();
        found.counters.dropped().collect()
    }

    /// A device in the hub that is no port.
    pub(crate) fn spare(&self, name: &str) {
        let ns = NetNs::create().unwrap();
        pair(
            &Handle::new(&self.hub).unwrap(),
            name,
            "eth0",
            &ns,
            [2, 0, 0, 0, 2, 2],
        );
        self.guests.lock().unwrap().push(Some(ns));
    }

    /// A guest ends, and its device with it.
    pub(crate) fn end_guest(&self, n: usize) {
        Handle::new(&self.hub)
            .unwrap()
            .delete_link(&format!("p{n}"))
            .unwrap();
        self.guests.lock().unwrap()[n] = None;
    }
}

impl Drop for World {
    fn drop(&mut self) {
        Switch::discard(&self.name).unwrap();
    }
}

/// Runs `f` where a BPF file system of its own is mounted.
pub(crate) fn under_another_mount<T: Send>(f: impl FnOnce() -> T + Send) -> T {
    std::thread::scope(|scope| {
        let thread = scope.spawn(|| {
            unshare(CloneFlags::CLONE_NEWNS).unwrap();
            let private = MsFlags::MS_REC | MsFlags::MS_PRIVATE;
            mount(None::<&str>, "/", None::<&str>, private, None::<&str>).unwrap();
            mount(
                Some("other"),
                "/sys/fs/bpf",
                Some("bpf"),
                MsFlags::empty(),
                None::<&str>,
            )
            .unwrap();
            f()
        });
        thread
            .join()
            .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}

/// A frame of at least the least length that Ethernet has.
pub(crate) fn frame(to: [u8; 6], from: [u8; 6], kind: u16, payload: &[u8]) -> Vec<u8> {
    let mut frame = to.to_vec();
    frame.extend(from);
    frame.extend(kind.to_be_bytes());
    frame.extend(payload);
    frame.resize(frame.len().max(60), 0);
    frame
}

/// An ARP request (RFC 826) to everybody; `speaker` is the Ethernet address that it speaks of.
pub(crate) fn arp(from: [u8; 6], speaker: [u8; 6], ip: [u8; 4], asked: [u8; 4]) -> Vec<u8> {
    let mut message = vec![0, 1, 8, 0, 6, 4, 0, 1];
    message.extend(speaker);
    message.extend(ip);
    message.extend([0; 6]);
    message.extend(asked);
    frame(BROADCAST, from, 0x0806, &message)
}
