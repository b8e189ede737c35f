//! A host with an uplink, a station beyond it and guests behind ports, to do things with.

use std::io::ErrorKind;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, UdpSocket};
use std::time::{Duration, Instant};

use hopyard_net::{Handle, LinkKind, NetNs, NewLink};
use hopyard_switch::{Mac, NewPort, NewSwitch, Switch};

use super::{Error, Result, socket};
use crate::lab::LabId;

/// Hosts of 198.18.0.0/24 by number: guests begin at [`GUEST`].
pub(super) const HOST: u8 = 1;
pub(super) const FAR: u8 = 2;
const GUEST: u8 = 10;
/// Any port: the namespaces are nobody else's.
const PORT: u16 = 9000;
/// An answer that is to come has come by then, also on a busy machine.
const PATIENCE: Duration = Duration::from_secs(3);
/// Between two tries.
const AGAIN: Duration = Duration::from_millis(200);

/// The address of a host in net `net`.
pub(super) fn v4(net: u8, host: u8) -> IpAddr {
    Ipv4Addr::new(198, 18, net, host).into()
}

/// The number of guest `n`.
pub(super) fn guest(n: usize) -> u8 {
    GUEST + u8::try_from(n).unwrap_or(0)
}

/// The Ethernet address of a host in a net.
pub(super) fn mac(net: u8, host: u8) -> [u8; 6] {
    [2, 0, 0, 0, net, host]
}

/// A namespace in which IPv6 is silent.
pub(super) fn space() -> Result<Handle> {
    let handle = Handle::new(&NetNs::create()?)?;
    handle.quiet_ipv6()?;
    Ok(handle)
}

/// A cable from a device here to one there; both ends are up.
pub(super) fn cable(
    (here, name): (&Handle, &str),
    (there, peer): (&Handle, &str),
    mac: [u8; 6],
) -> Result<()> {
    let kind = LinkKind::Veth {
        peer: peer.to_owned(),
        peer_ns: Some(there.ns()),
        peer_mac: Some(mac),
    };
    here.add_link(&NewLink {
        up: true,
        ..NewLink::new(name, kind)
    })?;
    there.set_up(peer)?;
    // What the kernel would do about the carrier up to a second later, it does now.
    here.settle(name)?;
    there.settle(peer)?;
    Ok(())
}

/// One physical device of the host, what is beyond it, and guests, all in net `net`; no switch yet.
pub(super) struct Side {
    pub(super) net: u8,
    pub(super) switch: String,
    pub(super) uplink: String,
    pub(super) far: Handle,
    pub(super) guests: Vec<Handle>,
}

/// A host with one side or several. What outlives it goes with it.
pub(super) struct Site {
    pub(super) hub: Handle,
    pub(super) sides: Vec<Side>,
}

impl Site {
    /// Sides with so many guests each, their devices made and addressed.
    pub(super) fn new(sides: u8, guests: usize) -> Result<Self> {
        Self::with_uplinks("up", sides, guests)
    }

    /// The same with uplinks whose names begin like that.
    pub(super) fn with_uplinks(prefix: &str, sides: u8, guests: usize) -> Result<Self> {
        let mut site = Self {
            hub: space()?,
            sides: Vec::new(),
        };
        for net in 0..sides {
            let side = Side {
                net,
                switch: LabId::next().switch_name(),
                uplink: format!("{prefix}{net}"),
                far: space()?,
                guests: Vec::new(),
            };
            let far = (&side.far, "far0");
            cable((&site.hub, &side.uplink), far, mac(net, FAR))?;
            site.hub.add_address(&side.uplink, v4(net, HOST), 24)?;
            side.far.add_address("far0", v4(net, FAR), 24)?;
            site.sides.push(side);
            for _ in 0..guests {
                site.add_guest(usize::from(net))?;
            }
        }
        Ok(site)
    }

    /// A guest's namespace and the pair to it; no port yet.
    pub(super) fn add_guest(&mut self, side: usize) -> Result<()> {
        let ns = space()?;
        let side = &mut self.sides[side];
        let n = side.guests.len();
        let device = side.port(n);
        let host = guest(n);
        cable((&self.hub, &device), (&ns, "eth0"), mac(side.net, host))?;
        ns.add_address("eth0", v4(side.net, host), 24)?;
        side.guests.push(ns);
        Ok(())
    }

    /// Makes the switch of a side.
    pub(super) fn create(&self, side: usize) -> Result<()> {
        let side = &self.sides[side];
        self.hub.ns().run(|| {
            Switch::create(&NewSwitch {
                name: &side.switch,
                uplink: Some(&side.uplink),
                answers: false,
                ..NewSwitch::default()
            })
            .map(drop)
        })??;
        Ok(())
    }

    /// Binds a guest to the switch of its side.
    pub(super) fn bind(&self, side: usize, n: usize) -> Result<()> {
        let side = &self.sides[side];
        let port = NewPort {
            device: &side.port(n),
            macs: vec![Mac(mac(side.net, guest(n)))],
            ..NewPort::default()
        };
        self.with_switch(&side.switch, |switch| switch.add_port(&port))
    }

    /// Does something with a switch, in the host's namespace.
    pub(super) fn with_switch(
        &self,
        name: &str,
        f: impl FnOnce(&mut Switch) -> hopyard_switch::Result<()> + Send,
    ) -> Result<()> {
        Ok(self.hub.ns().run(|| f(&mut Switch::open(name)?))??)
    }

    /// A site whose switches stand with all guests bound.
    pub(super) fn whole(sides: u8, guests: usize) -> Result<Self> {
        let site = Self::new(sides, guests)?;
        for side in 0..site.sides.len() {
            site.create(side)?;
            for n in 0..guests {
                site.bind(side, n)?;
            }
        }
        Ok(site)
    }
}

impl Side {
    /// The host's end of a guest's pair.
    pub(super) fn port(&self, n: usize) -> String {
        format!("p{}-{n}", self.net)
    }
}

impl Drop for Site {
    fn drop(&mut self) {
        for side in &self.sides {
            // One that was never made, or is gone already, is no trouble; `hopyard clean` finds others.
            let _ = Switch::discard(&side.switch);
        }
    }
}

/// Does a datagram from one namespace get to an address in another and back?
pub(super) fn reaches(from: &Handle, to: &Handle, address: IpAddr) -> Result<bool> {
    reaches_within(from, to, address, PATIENCE)
}

/// As [`reaches`], for what is expected not to.
pub(super) fn reaches_soon(from: &Handle, to: &Handle, address: IpAddr) -> Result<bool> {
    reaches_within(from, to, address, 2 * AGAIN)
}

fn reaches_within(from: &Handle, to: &Handle, address: IpAddr, patience: Duration) -> Result<bool> {
    let open = |at: &Handle, port: u16| -> Result<UdpSocket> {
        let bound = at.ns().run(|| {
            let socket = UdpSocket::bind(SocketAddr::new(Ipv4Addr::UNSPECIFIED.into(), port))?;
            socket.set_read_timeout(Some(AGAIN))?;
            Ok(socket)
        })?;
        bound.map_err(socket("open a UDP socket in a namespace"))
    };
    let (client, server) = (open(from, 0)?, open(to, PORT)?);
    let began = Instant::now();
    let mut room = [0; 64];
    while began.elapsed() < patience {
        // A refusal may be a passing one, like a neighbour that did not answer in time.
        let _ = client.send_to(b"there", (address, PORT));
        match server.recv_from(&mut room) {
            Ok((_, back)) => {
                let _ = server.send_to(b"back", back);
                if client.recv(&mut room).is_ok() {
                    return Ok(true);
                }
            }
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {}
            Err(source) => {
                let what = "receive a datagram";
                return Err(Error::Socket { what, source });
            }
        }
    }
    Ok(false)
}
