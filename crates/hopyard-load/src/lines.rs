//! Messages as lines of JSON, over whatever carries bytes.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread;

use serde::Serialize;
use serde::de::DeserializeOwned;

/// Longest message, bytes. Counters and a latency histogram take some tens of KiB.
const LONGEST: u64 = 4 * 1024 * 1024;
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
            Ok(_) => serde_json::from_slice(&line).map_err(io::Error::from),
            Err(e) => Err(e),
        };
        let last = message.is_err();
        if tell.send(message).is_err() || last {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_excerpt_is_short() {
        assert_eq!(excerpt("short"), "short");
        let long = excerpt(&"ä".repeat(1 << 20));
        assert!(long.len() < SHOWN + 100, "{}", long.len());
        assert!(long.ends_with("(2097152 bytes in all)"), "{long}");
    }
}
