//! What connects the two ends of a load: TCP and UDP, or Unix sockets in a directory.

use std::fmt;
use std::io::{self, ErrorKind};
use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use socket2::{Domain, Protocol, SockAddr, Socket, Type};

use hopyard_model::LoadKind;

/// The sockets of a load.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Sockets {
    /// TCP or UDP, as the load says.
    #[default]
    Internet,
    /// Unix stream sockets in place of TCP.
    UnixStream,
    /// Unix sockets that keep messages apart (`SOCK_SEQPACKET`), in place of TCP.
    UnixSeqpacket,
}

impl Sockets {
    /// Can they carry a load?
    ///
    /// # Errors
    /// The rest of a sentence that begins with who has them.
    pub fn carry(self, load: LoadKind) -> Result<(), String> {
        if self == Self::Internet || load.is_tcp() {
            return Ok(());
        }
        let others = LoadKind::ALL.into_iter().filter(|load| load.is_tcp());
        let others: Vec<_> = others.map(LoadKind::name).collect();
        Err(format!(
            "cannot carry {load}: its sockets are connections, which lose nothing and have no addresses for single datagrams; \
             choose among {}",
            others.join(", ")
        ))
    }

    /// A socket for a server there.
    pub(crate) fn open(self, domain: Domain, is_tcp: bool, has_mptcp: bool) -> io::Result<Socket> {
        let (kind, protocol) = match (self, is_tcp) {
            (Self::UnixStream, _) => (Type::STREAM, None),
            (Self::UnixSeqpacket, _) => (Type::SEQPACKET, None),
            (Self::Internet, true) if has_mptcp => (Type::STREAM, Some(Protocol::MPTCP)),
            (Self::Internet, true) => (Type::STREAM, Some(Protocol::TCP)),
            (Self::Internet, false) => (Type::DGRAM, Some(Protocol::UDP)),
        };
        Socket::new(domain, kind, protocol)
    }
}

/// Where a server is found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Place {
    /// At ports of an address.
    Address(IpAddr),
    /// At Unix sockets of a directory, named by numbers.
    Directory(PathBuf),
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Address(address) => address.fmt(f),
            Self::Directory(directory) => directory.display().fmt(f),
        }
    }
}

impl From<IpAddr> for Place {
    fn from(address: IpAddr) -> Self {
        Self::Address(address)
    }
}

impl Place {
    pub(crate) fn domain(&self) -> Domain {
        match self {
            Self::Address(IpAddr::V4(_)) => Domain::IPV4,
            Self::Address(IpAddr::V6(_)) => Domain::IPV6,
            Self::Directory(_) => Domain::UNIX,
        }
    }

    /// One of its ports.
    pub(crate) fn port(&self, port: u16) -> io::Result<Target> {
        match self {
            Self::Address(address) => Ok(SocketAddr::new(*address, port).into()),
            Self::Directory(directory) => {
                let file = directory.join(port.to_string());
                Ok(Target {
                    address: SockAddr::unix(&file)?,
                    name: file.display().to_string(),
                })
            }
        }
    }
}

/// What a client connects to.
#[derive(Debug, Clone)]
pub(crate) struct Target {
    pub(crate) address: SockAddr,
    /// For people.
    name: String,
}

impl From<SocketAddr> for Target {
    fn from(address: SocketAddr) -> Self {
        Self {
            address: address.into(),
            name: address.to_string(),
        }
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)
    }
}

/// The file of a Unix socket, which goes with this.
#[derive(Debug)]
pub(crate) struct SocketFile(PathBuf);

impl Drop for SocketFile {
    fn drop(&mut self) {
        // The lab removes the whole directory.
        let _ = std::fs::remove_file(&self.0);
    }
}

/// Binds a socket at a place: the port, and its file if it has one. Of a directory it takes the next number after `last` that is
/// nobody's.
pub(crate) fn bind(
    socket: &Socket,
    place: &Place,
    last: u16,
) -> io::Result<(u16, Option<SocketFile>)> {
    let directory: &Path = match place {
        Place::Address(address) => {
            socket.bind(&SocketAddr::new(*address, 0).into())?;
            let own = socket.local_addr()?.as_socket();
            return Ok((own.map_or(0, |own| own.port()), None));
        }
        Place::Directory(directory) => directory,
    };
    for number in last.saturating_add(1)..=u16::MAX {
        let file = directory.join(number.to_string());
        match socket.bind(&SockAddr::unix(&file)?) {
            Err(error) if error.kind() == ErrorKind::AddrInUse => {}
            bound => return bound.map(|()| (number, Some(SocketFile(file)))),
        }
    }
    Err(io::Error::new(
        ErrorKind::AddrInUse,
        "the directory has no number left for a socket",
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_connection_is_refused_by_name() {
        for load in LoadKind::ALL {
            assert!(Sockets::Internet.carry(load).is_ok());
            for sockets in [Sockets::UnixStream, Sockets::UnixSeqpacket] {
                assert_eq!(sockets.carry(load).is_ok(), load.is_tcp(), "{load}");
            }
        }
        let why = Sockets::UnixStream.carry(LoadKind::UdpRr).unwrap_err();
        assert!(why.starts_with("cannot carry udp_rr: "), "{why}");
        assert!(
            why.ends_with("tcp_stream, tcp_maerts, tcp_rr, tcp_crr, tcp_conns"),
            "{why}"
        );
    }

    #[test]
    fn a_place_is_written_as_its_address_or_directory() {
        let address = Place::from(IpAddr::from([198, 18, 0, 1]));
        let directory = Place::Directory("/run/x".into());
        for (place, text) in [(address, "\"198.18.0.1\""), (directory, "\"/run/x\"")] {
            assert_eq!(serde_json::to_string(&place).unwrap(), text);
            assert_eq!(serde_json::from_str::<Place>(text).unwrap(), place);
        }
    }

    #[test]
    fn sockets_of_a_directory_are_numbered_and_their_files_go() {
        let home = tempfile::tempdir().unwrap();
        let place = Place::Directory(home.path().to_owned());
        let open = || Sockets::UnixStream.open(Domain::UNIX, true, false).unwrap();
        let (first, second, third) = (open(), open(), open());
        let (one, file) = bind(&first, &place, 0).unwrap();
        let (two, kept) = bind(&second, &place, one).unwrap();
        assert_eq!((one, two), (1, 2));
        drop(file);
        // Another worker of the lab begins anew, and finds what is taken.
        assert_eq!(bind(&third, &place, 0).unwrap().0, 1);
        drop(kept);
        assert!(std::fs::read_dir(home.path()).unwrap().count() == 0);
    }
}
