//! ADD.

use std::net::IpAddr;

use hopyard_net::{Handle, Link, LinkKind, LinkLocal, NetkitLayer, NewLink};
use hopyard_switch::{Mac, NewPort, Switch};
use serde_json::Value;

use crate::call::Call;
use crate::conf::{Conf, Device};
use crate::container;
use crate::del::{Leaving, detach, finish};
use crate::error::{Error, Result, code};
use crate::ipam::{Ipam, Running};
use crate::names;
use crate::outcome::{Addresses, Interface, document};
use crate::record::{Attachment, Entry, Record};
use crate::switch::{self, Found};

/// Everything that is known before anything is made.
struct Plan<'a> {
    call: &'a Call,
    conf: &'a Conf,
    here: Handle,
    inside: Handle,
    found: Found,
    device: String,
    /// The container's Ethernet address. Not asked of the device, whose address a process in the container could change before that.
    mac: Mac,
    ipam: Option<Ipam<'a>>,
    given: Option<&'a Addresses>,
}

/// Makes a container a port of the switch, and gives the result. Addresses come from the IPAM plugin, if there is one, or are
/// `given`.
pub(crate) fn add(call: &Call, given: Option<&Addresses>) -> Result<Value> {
    let mut conf = Conf::of(call)?;
    let here = Handle::here()?;
    let inside = container::open(&here, &call.netns)?;
    refuse_a_second(call, &inside)?;
    let found = switch::look(&here, &mut conf, &call.conf)?;
    let ipam = conf.ipam.as_ref().map(|kind| call.ipam(kind));
    if let Some(ipam) = &ipam {
        ipam.ready()?;
    }
    let plan = Plan {
        mac: conf.mac.map_or_else(random_mac, Ok)?,
        device: names::device(&call.network, &call.container, &call.ifname),
        call,
        conf: &conf,
        here,
        inside,
        found,
        ipam,
        given,
    };
    let mut record = plan.begin()?;
    match plan.make(&mut record) {
        Ok(result) => Ok(result),
        Err(mut error) => {
            // The record stays where something could not be taken away: DEL and GC try again.
            if let Err(problem) = plan.undo(record, &error) {
                error.also(&problem);
            }
            Err(error)
        }
    }
}

/// A random unicast address of those that are administered locally (IEEE 802, 8.2.2).
fn random_mac() -> Result<Mac> {
    let mut mac = [0; 6];
    getrandom::fill(&mut mac)
        .map_err(|source| Error::io("choose an Ethernet address", &source.into()))?;
    mac[0] = mac[0] & 0xfc | 0x02;
    Ok(Mac(mac))
}

fn refuse_a_second(call: &Call, inside: &Handle) -> Result<()> {
    if inside.index(&call.ifname).is_err() {
        return Ok(());
    }
    let msg = format!(
        "container `{}` has a device `{}` already",
        call.container, call.ifname
    );
    Err(Error::new(code::ATTACHED, msg))
}

/// The addresses that an IPAM plugin gives, at least one.
fn addresses_of(ipam: &Ipam<'_>, result: &Value) -> Result<Addresses> {
    let addresses = Addresses::of(result)?;
    if addresses.ips.is_empty() {
        let msg = format!("IPAM plugin `{}` gave no addresses", ipam.kind.name);
        return Err(Error::new(code::IPAM, msg));
    }
    Ok(addresses)
}

impl Plan<'_> {
    fn attachment(&self) -> Attachment {
        self.call.attachment()
    }

    /// Does this process reserve the addresses?
    fn reserves(&self) -> bool {
        self.ipam.as_ref().is_some_and(|ipam| ipam.kind.in_process)
    }

    /// Writes the record. What an ADD left that was killed goes before.
    fn begin(&self) -> Result<Record> {
        let entry = Entry {
            device: self.device.clone(),
            switch: self.conf.switch.name.clone(),
            own_switch: self.conf.switch.is_own,
            home: Some(self.here.ns().inode()?),
            of_del: false,
            args: self.call.args.clone(),
            conf: self.call.text.clone(),
            in_process: self.reserves(),
            reserved: Vec::new(),
        };
        let of = self.attachment();
        loop {
            if let Some(record) = Record::create(&of, &entry)? {
                return Ok(record);
            }
            let Some(old) = Record::of(&of)? else {
                continue;
            };
            // Another ADD may have made it while this one waited for its record.
            refuse_a_second(self.call, &self.inside)?;
            let leaving = Leaving::of_record(self.call, &of, Some(&old))?;
            // Of an ADD that was killed, or of a container that went without DEL: the namespace has no such device.
            let problems = detach(&self.here, &leaving, Some(&old));
            finish(problems, Some(old))?;
        }
    }

    /// Takes away what there is of an ADD that failed, and its record.
    fn undo(&self, record: Record, failure: &Error) -> Result<()> {
        let leaving = Leaving::of_record(self.call, &self.attachment(), Some(&record))?;
        let problems = detach(&self.here, &leaving, Some(&record));
        // An IPAM plugin that refuses ADD has given nothing, and may refuse DEL as well: nothing waits for that.
        let waits = |problem: &Error| !(failure.is_of_ipam && problem.is_of_ipam);
        let (waiting, others) = problems.into_iter().partition(waits);
        let done = finish(waiting, Some(record));
        match Error::all(done.err().into_iter().chain(others).collect()) {
            Some(problem) => Err(problem),
            None => Ok(()),
        }
    }

    fn make(&self, record: &mut Record) -> Result<Value> {
        let mut asked = None;
        let addresses = match &self.ipam {
            Some(ipam) if ipam.kind.asks_on_the_wire() => self.connect_and_ask(record)?,
            Some(ipam) if !ipam.kind.in_process => {
                self.connect_while_asking(ipam, asked.insert(ipam.start_add(record)?))?
            }
            _ => self.connect_with(self.addresses(record)?)?,
        };
        container::configure(&self.inside, &self.call.ifname, &addresses)?;
        let link = self.ready_link()?;
        let inside = self.inside.link(&self.call.ifname)?;
        if inside.mac != Some(self.mac.0) {
            let msg = format!(
                "something in the container gave `{}` another Ethernet address meanwhile",
                self.call.ifname
            );
            return Err(Error::new(code::CHANGED, msg));
        }
        // It has said the addresses, and may fail in spite of that.
        if let Some(asked) = &mut asked {
            asked.answer()?;
        }
        let reserved = self.reserves().then(|| addresses.all());
        record.finish(reserved.unwrap_or_default())?;
        let host = Interface {
            name: &self.device,
            mac: link.mac.map(Mac),
            mtu: link.mtu,
            sandbox: None,
        };
        let container = Interface {
            name: &self.call.ifname,
            mac: Some(self.mac),
            mtu: inside.mtu,
            sandbox: Some(&self.call.netns),
        };
        Ok(document(self.call, [host, container], &addresses))
    }

    /// Makes device and port with addresses that are known before.
    fn connect_with(&self, addresses: Addresses) -> Result<Addresses> {
        let is_held = self.is_held();
        let ips = if is_held { addresses.all() } else { Vec::new() };
        self.connect(&ips, is_held)?;
        self.welcome(is_held, &addresses)?;
        Ok(addresses)
    }

    /// Makes device and port while the IPAM plugin runs, and gives the port its addresses then. What either of them made is taken
    /// away if the other one fails.
    fn connect_while_asking(&self, ipam: &Ipam<'_>, asked: &mut Running<'_>) -> Result<Addresses> {
        let is_held = self.is_held();
        let (given, connected) = if self.found.glance.is_some() {
            let connected = self.connect(&[], is_held);
            (asked.result(), connected)
        } else {
            // No switch is made for a container that gets no addresses.
            (Ok(asked.result()?), self.connect(&[], is_held))
        };
        let given = match (given, &connected) {
            (Err(mut error), Err(other)) => {
                error.also(other);
                Err(error)
            }
            (given, _) => given,
        };
        let addresses = addresses_of(ipam, &given?)?;
        self.hold(connected?, is_held, &addresses)?;
        Ok(addresses)
    }

    /// Turns IPv6 on for these addresses.
    fn welcome(&self, is_held: bool, addresses: &Addresses) -> Result<()> {
        if addresses.all().iter().any(IpAddr::is_ipv6) {
            container::welcome_ipv6(&self.inside, &self.call.ifname, is_held)?;
        }
        Ok(())
    }

    fn connect(&self, ips: &[IpAddr], is_held: bool) -> Result<Switch> {
        self.make_device()?;
        container::prepare(&self.inside, &self.call.ifname, is_held)?;
        self.add_port(ips, is_held)
    }

    /// Makes device and port, has the IPAM plugin ask through them, and gives the port its addresses. A port that is held to addresses
    /// may ask for one before it has any.
    fn connect_and_ask(&self, record: &Record) -> Result<Addresses> {
        let is_held = self.is_held();
        let switch = self.connect(&[], is_held)?;
        self.inside.set_up(&self.call.ifname)?;
        self.ready_link()?;
        let addresses = self.addresses(record)?;
        self.hold(switch, is_held, &addresses)?;
        Ok(addresses)
    }

    /// Holds a port that has none yet to its addresses.
    fn hold(&self, mut switch: Switch, is_held: bool, addresses: &Addresses) -> Result<()> {
        if is_held {
            switch.add_addresses(&self.device, &addresses.all())?;
        }
        self.welcome(is_held, addresses)
    }

    /// What the caller or the IPAM plugin gives.
    fn addresses(&self, record: &Record) -> Result<Addresses> {
        if let Some(given) = self.given {
            return Ok(given.clone());
        }
        let Some(ipam) = &self.ipam else {
            return Ok(Addresses::default());
        };
        addresses_of(ipam, &ipam.add(record)?)
    }

    /// Is the port held to its addresses?
    fn is_held(&self) -> bool {
        (self.conf.ipam.is_some() || self.given.is_some()) && !self.conf.may_spoof
    }

    fn make_device(&self) -> Result<()> {
        let (peer, peer_ns) = (self.call.ifname.clone(), Some(self.inside.ns()));
        let peer_mac = Some(self.mac.0);
        let kind = match self.conf.device {
            Device::Veth => LinkKind::Veth {
                peer,
                peer_ns,
                peer_mac,
            },
            Device::Netkit => LinkKind::Netkit {
                mode: NetkitLayer::L2,
                peer,
                peer_ns,
                peer_mac,
            },
        };
        self.here.add_link(&NewLink {
            mtu: self.found.mtu,
            // By default the kernel makes one for each CPU and turns all but one off. For that it waits twice until the packets under way
            // have passed, with RTNL locked (`veth_init_queues`).
            queues: Some(1),
            ..NewLink::new(&self.device, kind)
        })?;
        // First of all. To attach the port's program later, the kernel waits with RTNL locked until the packets that were under way
        // when the clsact was made have passed (`mini_qdisc_pair_swap`): the earlier it is made, the fewer are left.
        self.here.add_clsact(&self.device)?;
        // The host's end has no part in IPv6: nothing that it says is for the container.
        Ok(self.here.set_link_local(&self.device, LinkLocal::None)?)
    }

    /// The host's end, which sends from now on. Its carrier comes with that of the container's end, and it drops all that it is given
    /// until the kernel has dealt with that: at its leisure, or before it tells somebody of the device (`rtnl_getlink`, Linux 6.8).
    fn ready_link(&self) -> Result<Link> {
        Ok(self.here.link(&self.device)?)
    }

    fn add_port(&self, ips: &[IpAddr], is_held: bool) -> Result<Switch> {
        let port = NewPort {
            device: &self.device,
            macs: vec![self.mac],
            ips: ips.to_vec(),
            ips_follow: is_held,
            vlan: self.conf.vlan,
            isolated: self.conf.isolated,
            allow_spoof: self.conf.may_spoof,
            rate_in: self.conf.bandwidth.ingress,
            rate_out: self.conf.bandwidth.egress,
            ..NewPort::default()
        };
        if self.found.uplink_is_remade {
            switch::find_uplink_again(self.conf)?;
        }
        let switch = switch::add_port(self.conf, &port)?;
        // Not before: without its program the device would hand what the container sends to the host's own stack.
        self.here.set_up(&self.device)?;
        Ok(switch)
    }
}
