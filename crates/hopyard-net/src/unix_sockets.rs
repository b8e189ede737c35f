//! The Unix sockets of a network namespace, as the kernel lists them (`/proc/net/unix`, proc_pid_net(5)).

use std::fs;
use std::path::PathBuf;

use crate::error::{Error, Result};
use crate::netns::NetNs;

/// A Unix socket.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnixSocket {
    /// Has it a connection? A server's end of one is in the namespace of the client that asked for it.
    pub is_connected: bool,
    /// The file that it is bound to, if its name is absolute; a server's end of a connection has that of the socket that was
    /// asked.
    pub path: Option<PathBuf>,
}

/// State of a connected socket (`SS_CONNECTED` of `linux/net.h`).
const CONNECTED: &str = "03";

/// Every Unix socket of a namespace.
///
/// # Errors
/// The list cannot be read.
pub fn unix_sockets(ns: &NetNs) -> Result<Vec<UnixSocket>> {
    const LIST: &str = "/proc/thread-self/net/unix";
    let read = || fs::read(LIST).map_err(|error| Error::from_io(format!("read {LIST}"), error));
    let text = ns.run(read)??;
    let text = String::from_utf8_lossy(&text);
    Ok(text.lines().filter_map(parse).collect())
}

/// A line of the list; `None` of anything else. A path is the rest of it, and may hold blanks.
fn parse(line: &str) -> Option<UnixSocket> {
    let mut rest = line;
    let [number, _references, _protocol, _flags, _kind, state, inode] = [(); 7].map(|()| {
        let word;
        rest = rest.trim_start_matches(' ');
        (word, rest) = rest.split_at(rest.find(' ').unwrap_or(rest.len()));
        word
    });
    u64::from_str_radix(number.strip_suffix(':')?, 16).ok()?;
    inode.parse::<u64>().ok()?;
    let path = rest.strip_prefix(' ').filter(|path| path.starts_with('/'));
    Some(UnixSocket {
        is_connected: state == CONNECTED,
        path: path.map(PathBuf::from),
    })
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::{UnixListener, UnixStream};

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn states_and_paths_are_told() {
        let connected =
            parse("00000000afab49ca: 00000003 00000000 00000000 0001 03 3398245 /run/a b");
        assert_eq!(
            connected,
            Some(UnixSocket {
                is_connected: true,
                path: Some("/run/a b".into()),
            })
        );
        let listens =
            parse("00000000afab49ca: 00000002 00000000 00010000 0005 01  1074 @name").unwrap();
        assert_eq!((listens.is_connected, listens.path), (false, None));
        assert_eq!(
            parse("Num       RefCount Protocol Flags    Type St Inode Path"),
            None
        );
    }

    proptest! {
        #[test]
        fn anything_is_a_socket_or_nothing(line in ".{0,80}") {
            let _ = parse(&line);
        }

        #[test]
        fn every_path_is_told(name in "/[^\n\0]{0,60}", inode in 0_u64.., connected: bool) {
            let state = if connected { "03" } else { "01" };
            let line = format!("0000000012345678: 00000002 00000000 00010000 0001 {state} {inode:5} {name}");
            let socket = parse(&line).unwrap();
            prop_assert_eq!(socket.is_connected, connected);
            prop_assert_eq!(socket.path, Some(PathBuf::from(name)));
        }
    }

    #[test]
    fn both_ends_are_listed_and_the_servers_has_its_name() {
        let home = std::env::temp_dir().join(format!("hopyard-net-{}", std::process::id()));
        let listener = UnixListener::bind(&home).unwrap();
        let client = UnixStream::connect(&home).unwrap();
        let accepted = listener.accept().unwrap();
        let sockets = unix_sockets(&NetNs::current().unwrap()).unwrap();
        let own: Vec<_> = sockets
            .iter()
            .filter(|s| s.path.as_ref() == Some(&home))
            .collect();
        let connected = own.iter().filter(|socket| socket.is_connected).count();
        fs::remove_file(&home).unwrap();
        assert_eq!((own.len(), connected), (2, 1));
        drop((client, accepted));
    }
}
