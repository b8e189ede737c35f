//! Does a joined socket do what any other does, on this kernel? Tried out with real connections between two namespaces of
//! its own, before a switch gets a shortcut.

use std::io::{self, Read, Write};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::time::{Duration, Instant};

use hopyard_net::{Handle, LinkKind, NetNs, NewLink, own_cgroup};
use serde::Serialize;

use super::layout::ShortcutCounters;
use super::loss::Loss;
use super::pair::PairShortcut;
use crate::error::{Error, Result};

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

/// Longer than any check waits for what has to come, even in an emulated guest that is still booting.
const PATIENCE: Duration = Duration::from_secs(10);

/// Two namespaces with a pair between them, and a listener.
struct Bench {
    client: NetNs,
    listener: TcpListener,
    address: SocketAddr,
    pair: PairShortcut,
    /// Is the shortcut on?
    joins: bool,
}

const DEVICE: &str = "eth0";
const ADDRESSES: [IpAddr; 2] = [
    IpAddr::V4(Ipv4Addr::new(198, 18, 0, 1)),
    IpAddr::V4(Ipv4Addr::new(198, 18, 0, 2)),
];

impl Bench {
    fn new(joins: bool) -> Result<Self> {
        let path = own_cgroup()?;
        let spaces = [NetNs::create()?, NetNs::create()?];
        let [client, server] = [Handle::new(&spaces[0])?, Handle::new(&spaces[1])?];
        let kind = LinkKind::veth(DEVICE, Some(&spaces[1]));
        client.add_link(&NewLink {
            up: true,
            ..NewLink::new(DEVICE, kind)
        })?;
        for (handle, address) in [(&client, ADDRESSES[0]), (&server, ADDRESSES[1])] {
            handle.add_address(DEVICE, address, 30)?;
            handle.set_up(DEVICE)?;
        }
        let pair = PairShortcut::set([(&client, DEVICE), (&server, DEVICE)], &path, joins)?;
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
            pair,
            joins,
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
        self.pair.counters().map_err(|error| error.to_string())
    }
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

/// Reads, and tries again if the reader was woken although nothing had come ([`Loss::Blocking`]). Returns the number of octets
/// and how often that happened.
fn read_on(mut from: &TcpStream, buffer: &mut [u8]) -> Checked<(usize, u32)> {
    let begun = Instant::now();
    let mut woken = 0;
    loop {
        match from.read(buffer) {
            // After that time, it is the timeout of the socket.
            Err(error)
                if error.kind() == io::ErrorKind::WouldBlock && begun.elapsed() < PATIENCE =>
            {
                woken += 1;
            }
            read => return Ok((said("receive", read)?, woken)),
        }
    }
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
