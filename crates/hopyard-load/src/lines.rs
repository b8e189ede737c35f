//! Messages as lines of JSON, over whatever carries bytes.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::fd::AsFd;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread;
use std::time::Duration;

use hopyard_net::pipe;
use serde::Serialize;
use serde::de::DeserializeOwned;

/// Longest message, bytes. Counters and a latency histogram take some tens of KiB, the largest trace to be replayed 2 MB.
pub(super) const LONGEST: u64 = 4 * 1024 * 1024;
/// Messages that are read before somebody wants to hear them. Whoever sends more waits: each may take some ten times
/// its length in memory.
const AHEAD: usize = 1;
/// What is shown of an answer, bytes.
const SHOWN: usize = 2000;

/// The beginning of what somebody else says, for an error.
#[must_use]
pub fn excerpt(text: &str) -> String {
    if text.len() <= SHOWN {
        return text.to_owned();
    }
    let end = text.floor_char_boundary(SHOWN);
    format!("{} … ({} bytes in all)", &text[..end], text.len())
}

/// Sends a message in one write.
///
/// # Errors
/// It cannot be written.
pub fn say(to: &mut impl Write, message: &impl Serialize) -> io::Result<()> {
    let mut line = serde_json::to_vec(message)?;
    line.push(b'\n');
    to.write_all(&line)?;
    to.flush()
}

/// Sends a message to a program that may not read any more.
///
/// # Errors
/// As [`pipe::write_within`]; after one, nothing more can be said there.
pub fn say_within(
    to: &mut (impl Write + AsFd),
    message: &impl Serialize,
    patience: Duration,
) -> io::Result<()> {
    let mut line = serde_json::to_vec(message)?;
    line.push(b'\n');
    pipe::write_within(to, &line, patience)
}

/// Hears messages on a thread of its own, until the first that is none or the end.
///
/// # Errors
/// There is no thread to hear them.
pub fn hear<T: DeserializeOwned + Send + 'static>(
    thread: &str,
    from: impl Read + Send + 'static,
) -> io::Result<Receiver<io::Result<T>>> {
    let (tell, heard) = sync_channel(AHEAD);
    thread::Builder::new()
        .name(thread.to_owned())
        .spawn(move || listen(BufReader::new(from), &tell))?;
    Ok(heard)
}

/// As [`hear`], to the end, when the thread is gone too: one that is about to end holds memory that a search for
/// leaks would find.
#[cfg(fuzzing)]
pub(super) fn hear_all<T: DeserializeOwned + Send + 'static>(
    from: impl Read + Send + 'static,
) -> io::Result<Vec<io::Result<T>>> {
    let (tell, heard) = sync_channel(AHEAD);
    let listener = thread::Builder::new().spawn(move || listen(BufReader::new(from), &tell))?;
    let messages = heard.into_iter().collect();
    let ended = listener.join();
    assert!(ended.is_ok(), "the listener panicked");
    Ok(messages)
}

/// Passes messages on until the first that is none, or until nobody hears them any more.
fn listen<T: DeserializeOwned>(mut from: impl BufRead, tell: &SyncSender<io::Result<T>>) {
    loop {
        let mut line = Vec::new();
        let message = match from.by_ref().take(LONGEST).read_until(b'\n', &mut line) {
            Ok(0) => return,
            Ok(_) if line.len() as u64 == LONGEST => {
                let why = format!("a line of more than {LONGEST} bytes");
                Err(io::Error::new(io::ErrorKind::InvalidData, why))
            }
            Ok(_) if line.last() != Some(&b'\n') => Err(not_whole(&line)),
            Ok(_) => serde_json::from_slice(&line).map_err(|e| no_message(&line, &e)),
            Err(e) => Err(e),
        };
        let last = message.is_err();
        if tell.send(message).is_err() || last {
            return;
        }
    }
}

/// The end came in the middle of a message.
fn not_whole(line: &[u8]) -> io::Error {
    let text = excerpt(&String::from_utf8_lossy(line));
    let why = format!("the connection ended in the middle of a message, after `{text}`");
    io::Error::new(io::ErrorKind::UnexpectedEof, why)
}

/// Something else than hopyard speaks: a greeting of a login shell, an error message.
fn no_message(line: &[u8], why: &serde_json::Error) -> io::Error {
    let text = excerpt(String::from_utf8_lossy(line).trim_end());
    let why = format!("`{text}` is no message of hopyard ({why})");
    io::Error::new(io::ErrorKind::InvalidData, why)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_message_is_shown_and_ends_it() {
        let first = |bytes: &'static [u8]| {
            let heard = hear::<u32>("test", bytes).unwrap();
            heard.into_iter().last().unwrap().unwrap_err().to_string()
        };
        let garbage = first(b"1\nWelcome to host2\n2\n");
        assert!(
            garbage.starts_with("`Welcome to host2` is no message of hopyard ("),
            "{garbage}"
        );
        assert_eq!(
            first(b"1\n23"),
            "the connection ended in the middle of a message, after `23`"
        );
    }

    #[test]
    fn the_largest_request_fits_a_line() {
        use hopyard_model::{Axes, Datagram, LoadKind, MOST_FLOWS, Peer, Replay};

        use crate::LoadSpec;
        use crate::protocol::{Numbered, Request};

        const MOST_DATAGRAMS: usize = 100_000;
        let longest = Datagram(10_000_000_000, 65_507);
        let replay = |count| Replay::try_from(vec![longest; count]);
        assert!(replay(MOST_DATAGRAMS + 1).is_err());
        let kind = LoadKind::UdpTrace;
        let axes = Axes::default().for_cell(kind, Peer::Local, &[]);
        let flows = MOST_FLOWS as usize;
        let message = Request::Connect {
            spec: LoadSpec::new(kind, &axes).replaying(replay(MOST_DATAGRAMS).unwrap()),
            address: std::net::IpAddr::from([0xffff_u16; 8]).into(),
            ports: vec![u16::MAX; flows],
            cpus: vec![1023; flows],
            patience_ms: u64::MAX,
        };
        let nr = Some(u64::MAX);
        let mut line = Vec::new();
        say(&mut line, &Numbered { nr, message }).unwrap();
        assert!(line.len() as u64 <= LONGEST, "{} bytes", line.len());
    }

    #[test]
    fn an_excerpt_is_short() {
        assert_eq!(excerpt("short"), "short");
        let long = excerpt(&"ä".repeat(1 << 20));
        assert!(long.len() < SHOWN + 100, "{}", long.len());
        assert!(long.ends_with("(2097152 bytes in all)"), "{long}");
    }
}
