//! A host with an uplink, a station beyond it, and guests, all with IP addresses.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::{Duration, Instant};

use hopyard_net::{Handle, LinkKind, NetNs, NewLink};
use hopyard_switch::{Hooks, Mac, NewPort, NewSwitch, Shown, Switch};

pub(crate) const FAR_MAC: [u8; 6] = [2, 0, 0, 0, 1, 2];
/// How long the kernel may take to finish an address.
const PATIENCE: Duration = Duration::from_secs(30);

/// Hosts of 10.0.0.0/24 and fd00::/64, by number: 1 is the host, 2 beyond the uplink, 10… the guests.
pub(crate) const HOST: u8 = 1;
pub(crate) const FAR: u8 = 2;

pub(crate) fn v4(host: u8) -> IpAddr {
    Ipv4Addr::new(10, 0, 0, host).into()
}

pub(crate) fn v6(host: u8) -> Ipv6Addr {
    Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, host.into())
}

/// The number of guest `n` in its addresses.
pub(crate) fn guest(n: usize) -> u8 {
    10 + n as u8
}

pub(crate) fn guest_mac(n: usize) -> [u8; 6] {
    [2, 0, 0, 0, 0, guest(n)]
}

/// A namespace of its own in which IPv6 is silent.
pub(crate) fn space() -> Handle {
    let handle = Handle::new(&NetNs::create().unwrap()).unwrap();
    handle.quiet_ipv6().unwrap();
    handle
}

/// A cable from `name` here to `peer` there; both ends are up.
pub(crate) fn cable(here: &Handle, name: &str, there: &Handle, peer: &str, mac: [u8; 6], mtu: u32) {
    let kind = LinkKind::Veth {
        peer: peer.to_owned(),
        peer_ns: Some(there.ns()),
        peer_mac: Some(mac),
    };
    let new = NewLink {
        up: true,
        mtu: Some(mtu),
        ..NewLink::new(name, kind)
    };
    here.add_link(&new).unwrap();
    there.set_up(peer).unwrap();
    // What the kernel would do about the carrier up to a second later, it does now.
    assert!(here.settle(name).unwrap() && there.settle(peer).unwrap());
}

/// Gives a device its addresses, finished: the kernel announces one of IPv6, and the route to it, some time after it
/// was asked (`addrconf_dad_work`).
pub(crate) fn address(handle: &Handle, device: &str, host: u8) {
    handle.add_address(device, v4(host), 24).unwrap();
    handle.add_address(device, v6(host).into(), 64).unwrap();
    let end = Instant::now() + PATIENCE;
    while !is_local(handle, v6(host)) {
        assert!(Instant::now() < end, "{} at `{device}`", v6(host));
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// Is there the route of an address to the host itself, which is the last that the kernel announces of it?
fn is_local(handle: &Handle, address: Ipv6Addr) -> bool {
    let read = || std::fs::read_to_string("/proc/thread-self/net/ipv6_route");
    let routes = handle.ns().run(read).unwrap().unwrap();
    // Destination and length of the prefix, in hexadecimal digits.
    let start = format!("{:032x} 80 ", u128::from(address));
    routes.lines().any(|line| line.starts_with(&start))
}

/// Devices and addresses; the switch is the test's to make. It goes with this value.
pub(crate) struct Site {
    name: String,
    pub(crate) hub: Handle,
    pub(crate) far: Handle,
    pub(crate) guests: Vec<Handle>,
    /// Where the programs of its switch run.
    pub(crate) hooks: Hooks,
}

impl Site {
    /// `up0` with the host's address and default route, `far0` beyond; `p0`… to the guests' `eth0`.
    pub(crate) fn new(name: &str, guests: usize) -> Self {
        Self::with_mtus(name, &vec![1500; guests])
    }

    /// As [`Site::new`], with a switch whose programs are classifiers.
    pub(crate) fn with_classifiers(name: &str, guests: usize) -> Self {
        let mut site = Self::new(name, guests);
        site.hooks = Hooks::Clsact;
        site
    }

    /// As [`Site::new`]; a guest for each MTU.
    pub(crate) fn with_mtus(name: &str, mtus: &[u32]) -> Self {
        let site = Self::without_addresses(name, mtus);
        address(&site.hub, "up0", HOST);
        address(&site.far, "far0", FAR);
        for (n, ns) in site.guests.iter().enumerate() {
            address(ns, "eth0", guest(n));
        }
        site.hub.add_route(None, Some(v4(FAR)), None).unwrap();
        site.hub
            .add_route(None, Some(v6(FAR).into()), Some("up0"))
            .unwrap();
        site
    }

    /// As [`Site::new`], with stacks that have no address and so nothing to say: for each of IPv6 the kernel reports a
    /// group, at a time of its own.
    pub(crate) fn silent(name: &str, guests: usize) -> Self {
        Self::without_addresses(name, &vec![1500; guests])
    }

    fn without_addresses(name: &str, mtus: &[u32]) -> Self {
        let (hub, far) = (space(), space());
        cable(&hub, "up0", &far, "far0", FAR_MAC, 1500);
        // Tests that stand at the same time may give one name, which no two switches of a host have.
        static NEXT: AtomicUsize = AtomicUsize::new(0);
        let mut site = Self {
            name: format!(
                "up-{}-{}-{name}",
                std::process::id(),
                NEXT.fetch_add(1, Relaxed)
            ),
            hub,
            far,
            guests: Vec::new(),
            hooks: Hooks::default(),
        };
        for mtu in mtus {
            site.add_guest(*mtu);
        }
        site
    }

    fn add_guest(&mut self, mtu: u32) {
        let n = self.guests.len();
        let ns = space();
        cable(&self.hub, &port(n), &ns, "eth0", guest_mac(n), mtu);
        self.guests.push(ns);
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    pub(crate) fn host_mac(&self) -> [u8; 6] {
        self.hub.link("up0").unwrap().mac.unwrap()
    }

    pub(crate) fn in_hub<T: Send>(&self, f: impl FnOnce() -> T + Send) -> T {
        self.hub.ns().run(f).unwrap()
    }

    /// A switch with the uplink and every guest, who differ as `change` says.
    pub(crate) fn connect(&self, answers: bool, change: impl Fn(usize, &mut NewPort<'_>)) {
        self.create(Some("up0"), answers);
        for n in 0..self.guests.len() {
            self.add(n, |port| change(n, port));
        }
    }

    pub(crate) fn create(&self, uplink: Option<&str>, answers: bool) {
        let new = NewSwitch {
            name: &self.name,
            uplink,
            answers,
            hooks: self.hooks,
            ..NewSwitch::default()
        };
        self.in_hub(|| Switch::create(&new)).unwrap();
    }

    pub(crate) fn switch<T: Send>(&self, f: impl FnOnce(&mut Switch) -> T + Send) -> T {
        self.in_hub(|| f(&mut Switch::open(&self.name).unwrap()))
    }

    pub(crate) fn add(&self, n: usize, change: impl FnOnce(&mut NewPort<'_>)) {
        let device = port(n);
        let mut new = NewPort {
            device: &device,
            ..NewPort::default()
        };
        change(&mut new);
        self.switch(|switch| switch.add_port(&new)).unwrap();
    }

    pub(crate) fn remove(&self, n: usize) {
        self.switch(|switch| switch.remove_port(&port(n))).unwrap();
    }

    pub(crate) fn show(&self) -> Shown {
        self.switch(|switch| switch.show().unwrap())
    }

    /// What was dropped of the frames of a party (`wire`, `host`, `p0`…), by reason.
    pub(crate) fn drops(&self, party: &str) -> Vec<(&'static str, u64)> {
        let stats = self.switch(|switch| switch.stats().unwrap());
        let found = stats.iter().find(|stats| stats.party == party).unwrap();
        found.counters.dropped().collect()
    }

    /// How many questions of a party the switch answered.
    pub(crate) fn answered(&self, party: &str) -> u64 {
        let stats = self.switch(|switch| switch.stats().unwrap());
        let found = stats.iter().find(|stats| stats.party == party).unwrap();
        found.counters.answered
    }
}

impl Drop for Site {
    fn drop(&mut self) {
        Switch::discard(&self.name).unwrap();
    }
}

/// The host's end of guest `n`.
pub(crate) fn port(n: usize) -> String {
    format!("p{n}")
}

/// Holds a port to its guest's addresses of this site.
pub(crate) fn hold(n: usize, port: &mut NewPort<'_>) {
    port.ips = vec![v4(guest(n)), v6(guest(n)).into()];
}

pub(crate) fn second_mac(port: &mut NewPort<'_>, own: [u8; 6], other: [u8; 6]) {
    port.macs = vec![Mac(own), Mac(other)];
}
