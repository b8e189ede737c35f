//! Endpoints that stand already, as the user names them.

use std::fmt;
use std::net::IpAddr;
use std::process::Command;
use std::str::FromStr;

use crate::model::EndpointsAsked;

/// A command that runs the rest of its arguments at an endpoint: `ssh host2`, `nsenter --net=FILE`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Prefix {
    text: String,
    words: Vec<String>,
}

/// Why a text is no prefix.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NoPrefix {
    /// There is no word in it.
    #[error(
        "a command has one word at least, as in `ssh host2`; `env` runs what follows on this host, as it is"
    )]
    Empty,
    /// A quotation does not end, or a backslash has nothing after it.
    #[error("`{0}` has a quotation mark without its other half, or ends with a backslash")]
    Open(String),
    /// No argument can hold it.
    #[error("a command cannot hold a character of value 0")]
    Nul,
}

/// The two endpoints of path `as-is`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Endpoints {
    /// Who connects.
    pub client: Prefix,
    /// Who listens.
    pub server: Prefix,
    /// Where it listens; found by the workers where none is given.
    pub server_address: Option<IpAddr>,
    /// The cable between the two machines, where labs are built on it. `server` is the command that leads to the other machine then,
    /// and `client` is not asked.
    pub uplink: Option<Uplink>,
}

/// A real cable, as the wire of labs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Uplink {
    /// The card of this machine.
    pub card: String,
    /// The card of the other machine.
    pub far_card: String,
}

impl Prefix {
    /// Its words: the program and its arguments.
    #[must_use]
    pub fn words(&self) -> &[String] {
        &self.words
    }

    /// A command to run there. Ctrl-C at the terminal is not for it.
    #[must_use]
    pub fn command(&self, arguments: &[&str]) -> Command {
        use std::os::unix::process::CommandExt;
        let mut words = self.words.iter();
        let mut command = Command::new(words.next().map_or("", String::as_str));
        command.args(words).args(arguments).process_group(0);
        command
    }
}

impl Endpoints {
    /// For the record.
    #[must_use]
    pub fn asked(&self) -> EndpointsAsked {
        EndpointsAsked {
            client: self.client.to_string(),
            server: self.server.to_string(),
            server_address: self.server_address,
            cards: self
                .uplink
                .as_ref()
                .map(|uplink| [uplink.card.clone(), uplink.far_card.clone()]),
        }
    }
}

impl FromStr for Prefix {
    type Err = NoPrefix;

    /// Splits as a shell does.
    fn from_str(text: &str) -> Result<Self, NoPrefix> {
        if text.contains('\0') {
            return Err(NoPrefix::Nul);
        }
        let words = shlex::split(text).ok_or_else(|| NoPrefix::Open(text.to_owned()))?;
        if words.first().is_none_or(String::is_empty) {
            return Err(NoPrefix::Empty);
        }
        Ok(Self {
            text: text.trim().to_owned(),
            words,
        })
    }
}

impl fmt::Display for Prefix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_split_as_a_shell_does() {
        let prefix: Prefix = " ssh -o 'User=me too' host2 ".parse().unwrap();
        assert_eq!(prefix.words, ["ssh", "-o", "User=me too", "host2"]);
        assert_eq!(prefix.to_string(), "ssh -o 'User=me too' host2");
        let command = prefix.command(&["hopyard", "worker"]);
        let arguments: Vec<_> = command.get_args().collect();
        assert_eq!(
            arguments,
            ["-o", "User=me too", "host2", "hopyard", "worker"]
        );
    }

    #[test]
    fn what_is_no_command_is_refused() {
        for (text, error) in [
            ("", NoPrefix::Empty),
            ("  ", NoPrefix::Empty),
            ("''", NoPrefix::Empty),
            ("ssh 'host2", NoPrefix::Open("ssh 'host2".to_owned())),
            ("ssh host2\\", NoPrefix::Open("ssh host2\\".to_owned())),
            ("ssh\0", NoPrefix::Nul),
        ] {
            assert_eq!(text.parse::<Prefix>().unwrap_err(), error, "{text:?}");
        }
    }
}
