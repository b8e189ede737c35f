//! Does a machine answer? Its command is asked for a worker, as a run does, and where there is none for an `echo`.

use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use hopyard_lab::Prefix;

/// How long a machine may take, no shorter than in a run: name service, key exchange, a login shell.
pub(super) const PATIENCE: Duration = hopyard_lab::CONNECT;
/// What `echo` says. An exit status is no answer: those of `kubectl exec` and `srun` are 0 when they were cut.
pub(crate) const ECHO: &str = "hopyard-fleet-is-heard";
/// A greeting and a banner before it are shorter.
const MOST_BYTES: u64 = 64 << 10;

/// A question to one of a pair's machines.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Probe {
    /// 0: the client, 1: the server.
    end: usize,
    question: Question,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Question {
    Worker,
    Echo,
}

impl Probe {
    pub(super) fn first() -> Self {
        Self {
            end: 0,
            question: Question::Worker,
        }
    }

    pub(super) fn end(self) -> usize {
        self.end
    }

    pub(super) fn is_last(self) -> bool {
        self.question == Question::Echo
    }

    /// The same machine, asked otherwise.
    pub(super) fn by_echo(self) -> Self {
        Self {
            question: Question::Echo,
            ..self
        }
    }

    /// The same as if both had been asked.
    pub(super) fn last(self) -> Self {
        Self {
            end: 1,
            question: Question::Echo,
        }
    }

    /// The server, after the client; `None` after the server.
    pub(super) fn next_machine(self) -> Option<Self> {
        (self.end == 0).then_some(Self {
            end: 1,
            question: Question::Worker,
        })
    }

    pub(super) fn command(self, prefix: &Prefix) -> Command {
        prefix.command(match self.question {
            Question::Worker => &["hopyard", "worker"],
            Question::Echo => &["echo", ECHO],
        })
    }

    /// What it hears. What starts a worker there may never close its input, and then it would stay.
    pub(super) fn input(self) -> &'static str {
        match self.question {
            Question::Worker => "{\"do\":\"quit\"}\n",
            Question::Echo => "",
        }
    }

    /// What it says and what it complains of go there.
    pub(super) fn files(self, directory: &Path) -> [PathBuf; 2] {
        let end = ["client", "server"][self.end];
        let question = match self.question {
            Question::Worker => "worker",
            Question::Echo => "echo",
        };
        ["out", "err"].map(|what| directory.join(format!("{end}-{question}.{what}")))
    }

    pub(super) fn is_answered(self, directory: &Path) -> bool {
        let [said, _] = self.files(directory);
        let mut bytes = Vec::new();
        let read =
            std::fs::File::open(said).and_then(|f| f.take(MOST_BYTES).read_to_end(&mut bytes));
        let text = String::from_utf8_lossy(&bytes);
        let is_it = |line: &str| match self.question {
            Question::Worker => line.contains(r#""is":"hello""#),
            Question::Echo => is_echo(line),
        };
        read.is_ok() && text.lines().any(is_it)
    }
}

/// Is it what `echo` says? There may be a banner before it.
pub(crate) fn is_echo(line: &str) -> bool {
    line.trim() == ECHO
}
