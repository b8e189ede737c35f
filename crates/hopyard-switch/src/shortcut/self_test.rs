//! Does a joined socket do what any other does, on this kernel? Tried out with real connections between two namespaces of
//! its own, before a switch gets a shortcut.

use std::fs::File;
use std::io::{self, Read, Write};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::time::Duration;

use aya::Ebpf;
use aya::maps::{Array, HashMap, PerCpuArray};
use aya::programs::links::FdLink;
use hopyard_net::{Handle, LinkKind, NetNs, NewLink, own_cgroup};
use serde::Serialize;

use super::layout::{GuestKey, GuestSeen, PATH_LEN, SHORTCUT_VERSION, Settings, ShortcutCounters};
use super::loss::Loss;
use super::programs::{self, PORTS, STATIONS};
use super::{SHORTCUT_MAX_MESSAGE, sum_of};
use crate::error::{Error, Result};
use crate::layout::{FIRST_PORT, PortRecord, STATE_READY, Station, station_key};
use crate::mac::Mac;
use crate::shortcut_files::{COUNTS, GUESTS, LIVES, SETTINGS};

mod checks;
mod losses;

/// What [`test_shortcut`] found.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct SelfTest {
    /// Checks that no joined socket may fail, and how they failed.
    pub failed: Vec<String>,
    /// What joined sockets lack.
    pub lost: Vec<Loss>,
}

impl SelfTest {
    /// Refuses what failed, and what is lost and not accepted.
    ///
    /// # Errors
    /// Something is; the error lists all of it.
    pub fn check(&self, what: &str, accept: &[Loss]) -> Result<()> {
        if !self.failed.is_empty() {
            let why = format!(
                "joined sockets do not work on this kernel: {}",
                self.failed.join("; ")
            );
            return Err(Error::invalid(what, why));
        }
        let refused: Vec<Loss> = self
            .lost
            .iter()
            .copied()
            .filter(|loss| !accept.contains(loss))
            .collect();
        if refused.is_empty() {
            return Ok(());
        }
        let list = |of: fn(&Loss) -> String, with: &str| {
            refused.iter().map(of).collect::<Vec<_>>().join(with)
        };
        Err(Error::ShortcutLacks {
            what: what.to_owned(),
            why: list(|loss| loss.words().1.to_owned(), "; "),
            lost: list(|loss| loss.name().to_owned(), ","),
        })
    }
}

/// Tries the shortcut out on this kernel, with programs and namespaces that end with the call. Takes a second or two.
///
/// # Errors
/// The kernel refuses a program, there is no cgroup2 mount, or no privilege.
pub fn test_shortcut() -> Result<SelfTest> {
    let bench = Bench::new(true)?;
    let mut found = SelfTest::default();
    for (name, check) in checks::CHECKS {
        if let Err(why) = check(&bench) {
            found.failed.push(format!("{name}: {why}"));
        }
    }
    if !found.failed.is_empty() {
        return Ok(found);
    }
    for (loss, keeps) in losses::KEEPS {
        match keeps(&bench) {
            Ok(true) => {}
            Ok(false) => found.lost.push(loss),
            Err(why) => found.failed.push(format!("{loss}: {why}")),
        }
    }
    Ok(found)
}

/// What a check says: why it failed.
type Checked<T = ()> = std::result::Result<T, String>;

/// Longer than any check waits for what has to come.
const PATIENCE: Duration = Duration::from_secs(3);

/// Two namespaces with a pair between them, and a listener.
struct Bench {
    client: NetNs,
    listener: TcpListener,
    address: SocketAddr,
    object: Ebpf,
    /// Is the shortcut on?
    joins: bool,
    _link: FdLink,
}

const DEVICE: &str = "eth0";
const MACS: [[u8; 6]; 2] = [[2, 0, 0, 0, 0, 1], [2, 0, 0, 0, 0, 2]];
const ADDRESSES: [IpAddr; 2] = [
    IpAddr::V4(Ipv4Addr::new(198, 18, 0, 1)),
    IpAddr::V4(Ipv4Addr::new(198, 18, 0, 2)),
];

impl Bench {
    fn new(joins: bool) -> Result<Self> {
        let path = own_cgroup()?;
        let cgroup = File::open(&path).map_err(|source| Error::File {
            what: "open",
            path: path.clone(),
            source,
        })?;
        let mut object = programs::load(None)?;
        let spaces = [NetNs::create()?, NetNs::create()?];
        let [client, server] = [Handle::new(&spaces[0])?, Handle::new(&spaces[1])?];
        let kind = LinkKind::Veth {
            peer: DEVICE.to_owned(),
            peer_ns: Some(&spaces[1]),
            peer_mac: Some(MACS[1]),
        };
        client.add_link(&NewLink {
            up: true,
            mac: Some(MACS[0]),
            ..NewLink::new(DEVICE, kind)
        })?;
        for (handle, address) in [(&client, ADDRESSES[0]), (&server, ADDRESSES[1])] {
            handle.add_address(DEVICE, address, 30)?;
            handle.set_up(DEVICE)?;
        }
        for (n, handle) in [&client, &server].into_iter().enumerate() {
            // From the other end, which sees this one.
            let other = [&server, &client][n];
            let index = other.index(DEVICE)?;
            let seen = other
                .ns()
                .run(|| programs::guest_of(&mut object, index))??;
            introduce(&mut object, n, seen, index, handle.index(DEVICE)?)?;
        }
        set(&mut object, joins)?;
        let link = programs::attach(&mut object, &cgroup, &path)?;
        let listener = spaces[1]
            .run(|| TcpListener::bind((ADDRESSES[1], 0)))?
            .and_then(|listener| Ok((listener.local_addr()?, listener)));
        let (address, listener) = listener.map_err(|source| Error::File {
            what: "listen for the self-test in",
            path,
            source,
        })?;
        let [client, _] = spaces;
        Ok(Self {
            client,
            listener,
            address,
            object,
            joins,
            _link: link,
        })
    }

    /// Both ends of a new connection.
    fn connect(&self) -> Checked<(TcpStream, TcpStream)> {
        let client = self.open()?;
        Ok((client, self.accept()?))
    }

    fn open(&self) -> Checked<TcpStream> {
        let client = self
            .client
            .run(|| TcpStream::connect_timeout(&self.address, PATIENCE))
            .map_err(|error| error.to_string())?
            .map_err(|error| format!("cannot connect: {error}"))?;
        prepare(&client)?;
        Ok(client)
    }

    fn accept(&self) -> Checked<TcpStream> {
        let (server, _) = said("accept", self.listener.accept())?;
        prepare(&server)?;
        Ok(server)
    }

    /// Both ends of a connection that is joined: messages went both ways by the shortcut.
    fn joined(&self) -> Checked<(TcpStream, TcpStream)> {
        let (mut client, mut server) = self.connect()?;
        let before = self.counters()?;
        for _ in 0..3 {
            for end in [&mut client, &mut server] {
                said("send", end.write_all(b"x"))?;
            }
            for end in [&mut client, &mut server] {
                said("receive", end.read_exact(&mut [0]))?;
            }
        }
        let after = self.counters()?;
        let both = before
            .iter()
            .zip(after)
            .all(|(b, a)| a.rx_messages > b.rx_messages);
        if self.joins && !both {
            return Err("the sockets were not joined".into());
        }
        Ok((client, server))
    }

    /// Of the client's port and of the server's.
    fn counters(&self) -> Checked<[ShortcutCounters; 2]> {
        let map = self.object.map(COUNTS).ok_or("no counters")?;
        let counts = PerCpuArray::try_from(map).map_err(|error| error.to_string())?;
        let of = |slot| sum_of(&counts, slot).map_err(|error| error.to_string());
        Ok([of(FIRST_PORT)?, of(FIRST_PORT + 1)?])
    }
}

/// Tells the programs of an end, by its number: the other end is the device of its port.
fn introduce(
    object: &mut Ebpf,
    n: usize,
    seen: Option<GuestSeen>,
    port: u32,
    guest: u32,
) -> Result<()> {
    let what = "prepare the self-test of the shortcut";
    let seen = seen.filter(|seen| seen.ifindex == guest).ok_or_else(|| {
        Error::invalid(what, "the kernel does not tell of the other end of a veth")
    })?;
    let slot = FIRST_PORT + u32::from(n != 0);
    let mac = Mac(MACS[usize::from(n != 0)]);
    let key = GuestKey {
        netns: seen.netns,
        ifindex: seen.ifindex,
        unused: 0,
    };
    let mut guests: HashMap<_, GuestKey, u32> = map(object, GUESTS)?;
    guests.insert(key, slot, 0).map_err(Error::bpf(what))?;
    let mut lives: Array<_, u64> = map(object, LIVES)?;
    lives.set(slot, 1, 0).map_err(Error::bpf(what))?;
    let record = PortRecord {
        mac: mac.to_number(),
        ifindex: port,
        device: port,
        state: STATE_READY,
        net_device: seen.address,
        ..PortRecord::default()
    };
    let mut ports: Array<_, PortRecord> = map(object, PORTS)?;
    ports.set(slot, record, 0).map_err(Error::bpf(what))?;
    let mut stations: HashMap<_, u64, Station> = map(object, STATIONS)?;
    let station = Station {
        slot,
        ..Station::default()
    };
    stations
        .insert(station_key(mac, 0), station, 0)
        .map_err(Error::bpf(what))
}

fn set(object: &mut Ebpf, on: bool) -> Result<()> {
    let mut settings: Array<_, Settings> = map(object, SETTINGS)?;
    let new = Settings {
        version: SHORTCUT_VERSION,
        on: on.into(),
        max_message: SHORTCUT_MAX_MESSAGE,
        accepted: 0,
        cgroup: 0,
        lives: 1,
        path: [0; PATH_LEN],
    };
    settings
        .set(0, new, 0)
        .map_err(Error::bpf("prepare the self-test of the shortcut"))
}

fn map<'a, T>(object: &'a mut Ebpf, name: &str) -> Result<T>
where
    T: TryFrom<&'a mut aya::maps::Map>,
    T::Error: std::error::Error + Send + Sync + 'static,
{
    let what = format!("open the map {name}");
    let map = object
        .map_mut(name)
        .ok_or_else(|| Error::invalid(&what, "it is not in the object"))?;
    T::try_from(map).map_err(Error::bpf(what))
}

fn prepare(stream: &TcpStream) -> Checked {
    said("set a socket up", stream.set_nodelay(true))?;
    said("set a socket up", stream.set_read_timeout(Some(PATIENCE)))?;
    said("set a socket up", stream.set_write_timeout(Some(PATIENCE)))
}

/// The outcome of a call, in words.
fn said<T>(what: &str, outcome: io::Result<T>) -> Checked<T> {
    outcome.map_err(|error| format!("{what}: {error}"))
}

fn ensure(holds: bool, why: impl FnOnce() -> String) -> Checked {
    if holds { Ok(()) } else { Err(why()) }
}

#[cfg(test)]
mod tests {
    use super::super::LOSSES;
    use super::*;

    /// The checks themselves ask for what any TCP socket does.
    #[test]
    fn sockets_that_are_not_joined_pass_every_check_and_lose_nothing() {
        let bench = Bench::new(false).unwrap();
        for (name, check) in checks::CHECKS {
            assert_eq!(check(&bench), Ok(()), "{name}");
        }
        for (loss, keeps) in losses::KEEPS {
            assert_eq!(keeps(&bench), Ok(true), "{loss}");
        }
        assert_eq!(bench.counters().unwrap(), [ShortcutCounters::default(); 2]);
    }

    #[test]
    fn joined_sockets_pass_every_check() {
        let found = test_shortcut().unwrap();
        assert_eq!(found.failed, [""; 0]);
    }

    #[test]
    fn what_failed_is_refused_whatever_is_accepted() {
        let all = LOSSES.map(|(loss, ..)| loss);
        let failed = SelfTest {
            failed: vec!["data: 3 of 4 bytes".to_owned()],
            lost: Vec::new(),
        };
        let error = failed
            .check("give switch `s` a shortcut", &all)
            .unwrap_err();
        assert_eq!(
            error.to_string(),
            "cannot give switch `s` a shortcut: joined sockets do not work on this kernel: data: 3 of 4 bytes"
        );
        let lost = SelfTest {
            failed: Vec::new(),
            lost: vec![Loss::Splice, Loss::Urgent],
        };
        assert!(lost.check("x", &all).is_ok());
        let error = lost.check("x", &[Loss::Splice]).unwrap_err();
        assert!(matches!(error, Error::ShortcutLacks { lost, .. } if lost == "urgent"));
    }
}
