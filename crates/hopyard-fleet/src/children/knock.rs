//! Does a machine answer? Its command is asked for a worker, as a run does, and where there is none for an `echo`.

use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use hopyard_lab::Prefix;

/// How long a machine may take: name service, key exchange, a login shell.
pub(super) const PATIENCE: Duration = Duration::from_secs(15);
/// What `echo` says. An exit status is no answer: those of `kubectl exec` and `srun` are 0 when they were cut.
const WORD: &str = "hopyard-fleet-is-heard";
/// A greeting and a banner before it are shorter.
const MOST: u64 = 64 << 10;

/// One question.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Knock {
    /// 0: the client, 1: the server.
    end: usize,
    word: Word,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Word {
    Worker,
    Echo,
}

impl Knock {
    pub(super) fn first() -> Self {
        Self {
            end: 0,
            word: Word::Worker,
        }
    }

    pub(super) fn end(self) -> usize {
        self.end
    }

    pub(super) fn is_last_word(self) -> bool {
        self.word == Word::Echo
    }

    /// The same machine, asked otherwise.
    pub(super) fn other_word(self) -> Self {
        Self {
            word: Word::Echo,
            ..self
        }
    }

    /// The same as if both had been asked.
    pub(super) fn last_word(self) -> Self {
        Self {
            end: 1,
            word: Word::Echo,
        }
    }

    /// The next machine.
    pub(super) fn other_end(self) -> Option<Self> {
        (self.end == 0).then_some(Self {
            end: 1,
            word: Word::Worker,
        })
    }

    pub(super) fn command(self, prefix: &Prefix) -> Command {
        let words = prefix.words();
        let mut command = Command::new(words.first().map_or("", String::as_str));
        command.args(words.iter().skip(1));
        command.args(match self.word {
            Word::Worker => ["hopyard", "worker"],
            Word::Echo => ["echo", WORD],
        });
        command
    }

    /// What it says and what it complains of go there.
    pub(super) fn files(self, directory: &Path) -> [PathBuf; 2] {
        let end = ["client", "server"][self.end];
        let word = match self.word {
            Word::Worker => "worker",
            Word::Echo => "echo",
        };
        ["out", "err"].map(|what| directory.join(format!("{end}-{word}.{what}")))
    }

    pub(super) fn is_answered(self, directory: &Path) -> bool {
        let [said, _] = self.files(directory);
        let mut bytes = Vec::new();
        let read = std::fs::File::open(said).and_then(|f| f.take(MOST).read_to_end(&mut bytes));
        let text = String::from_utf8_lossy(&bytes);
        let is_it = |line: &str| match self.word {
            Word::Worker => line.contains(r#""is":"hello""#),
            Word::Echo => line.trim() == WORD,
        };
        read.is_ok() && text.lines().any(is_it)
    }
}
