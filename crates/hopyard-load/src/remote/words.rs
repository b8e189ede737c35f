//! What a command says on its stderr: the reason why it ended, often enough.

use std::fmt;
use std::io::{BufRead, BufReader, Read};
use std::process::ChildStderr;
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use hopyard_model::plain;

use crate::lines;

/// Longest line that is read as one.
const LONGEST: u64 = 4096;
/// How long the end of a command's stderr may come after its own.
const AFTER: Duration = Duration::from_millis(200);

/// Hears it to its end, so that nobody waits for room, and keeps the last line.
#[derive(Debug)]
pub(super) struct Words {
    last: Arc<Mutex<String>>,
    ended: Receiver<()>,
}

/// The last line, as the end of a sentence.
#[derive(Debug, Clone, Default)]
pub struct LastWords(Option<Arc<Mutex<String>>>);

impl Words {
    pub(super) fn of(stderr: ChildStderr) -> std::io::Result<Self> {
        let last = Arc::<Mutex<String>>::default();
        let (end, ended) = channel();
        let kept = Arc::clone(&last);
        thread::Builder::new()
            .name("worker stderr".to_owned())
            .spawn(move || {
                keep_last(BufReader::new(stderr), &kept);
                drop(end);
            })?;
        Ok(Self { last, ended })
    }

    /// What was said last by a command that has ended.
    pub(super) fn last(&self) -> LastWords {
        // Nothing is sent: it waits for the end, which may not come where others hold the stream.
        let _ = self.ended.recv_timeout(AFTER);
        LastWords(Some(Arc::clone(&self.last)))
    }
}

fn keep_last(mut stderr: impl BufRead, last: &Mutex<String>) {
    loop {
        let mut line = Vec::new();
        match stderr.by_ref().take(LONGEST).read_until(b'\n', &mut line) {
            Ok(0) | Err(_) => return,
            Ok(_) => {}
        }
        let text = String::from_utf8_lossy(&line);
        let text = plain::line(text.trim()).to_string();
        if !text.is_empty() {
            *last.lock().unwrap_or_else(PoisonError::into_inner) = lines::excerpt(&text);
        }
    }
}

impl LastWords {
    /// What runs commands elsewhere has exit statuses of its own.
    pub(super) fn names_no_program(&self) -> bool {
        let text = self.text().to_ascii_lowercase();
        ["not found", "no such file"]
            .iter()
            .any(|words| text.contains(words))
    }

    fn text(&self) -> String {
        let Self(Some(last)) = self else {
            return String::new();
        };
        last.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl fmt::Display for LastWords {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = self.text();
        if text.is_empty() {
            return Ok(());
        }
        write!(f, " (it said: {text})")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_line_that_says_something_is_kept() {
        let last = Mutex::default();
        keep_last(&b"Warning: added\nsh: 1: hopyard: not found\n\n"[..], &last);
        let last = LastWords(Some(Arc::new(last)));
        assert!(last.names_no_program());
        assert_eq!(last.to_string(), " (it said: sh: 1: hopyard: not found)");
        assert_eq!(LastWords::default().to_string(), "");
    }
}
