//! netavark's driver: `create`, `setup`, `teardown` and `info` (plugin API 1.0.0).
//!
//! podman chooses the addresses and keeps the network's settings. What is asked here becomes a call of the plugin, whose
//! ADD and DEL do the work. No command comes when a network is removed: a switch is made for the first container and goes
//! with the last, and every command takes away what containers left that went without `teardown` (`sweep`).

use std::ffi::OsString;
use std::io::{Read, Write};
use std::path::PathBuf;
use std::process::ExitCode;

use hopyard_net::Handle;
use serde_json::{Value, json};

use crate::error::{Error, Result, code};
use crate::{add, del, values};

mod container;
mod network;
mod sweep;

use container::Container;
use network::Network;

/// The version of the plugin API that is spoken.
const API: &str = "1.0.0";

/// Keys of the plugin in its errors, and what they are called here.
const WORDS: [(&str, &str); 6] = [
    ("key `", "option `"),
    ("`master`", "`parent`"),
    ("`portIsolation`", "`isolate`"),
    ("`macspoofchk`", "`allow_spoof`"),
    ("CNI_CONTAINERID", "the container"),
    ("CNI_NETNS", "the namespace"),
];

/// Answers one command as the arguments and stdin say, on stdout.
#[must_use]
pub fn main() -> ExitCode {
    let mut arguments = std::env::args_os().skip(1);
    let Some(command) = arguments.next() else {
        let text = format!(
            "netavark driver hopyard {}\npodman calls it: podman network create -d hopyard -o parent=eth0 --subnet \
             192.0.2.0/24 guests\n",
            env!("CARGO_PKG_VERSION")
        );
        // A closed output is no failure.
        let _ = std::io::stderr().write_all(text.as_bytes());
        return ExitCode::SUCCESS;
    };
    let (document, status) = match answer(&command.to_string_lossy(), arguments.next()) {
        Ok(None) => return ExitCode::SUCCESS,
        Ok(Some(document)) => (document, ExitCode::SUCCESS),
        Err(error) => (
            json!({ "error": in_its_words(&error.to_string()) }),
            ExitCode::FAILURE,
        ),
    };
    match writeln!(std::io::stdout(), "{document}") {
        Ok(()) => status,
        Err(_) => ExitCode::FAILURE,
    }
}

fn answer(command: &str, netns: Option<OsString>) -> Result<Option<Value>> {
    match command {
        "info" => Ok(Some(json!({
            "version": env!("CARGO_PKG_VERSION"),
            "api_version": API,
        }))),
        "create" => create(stdin()?).map(Some),
        "setup" => setup(&stdin()?, &namespace(command, netns)?).map(Some),
        "teardown" => teardown(&stdin()?, &namespace(command, netns)?).map(|()| None),
        other => {
            let msg = format!(
                "unknown command `{other}`: netavark calls `create`, `setup`, `teardown` and `info`"
            );
            Err(Error::new(code::BAD_ENVIRONMENT, msg))
        }
    }
}

fn stdin() -> Result<Value> {
    let mut text = Vec::new();
    std::io::stdin()
        .read_to_end(&mut text)
        .map_err(|source| Error::io("read stdin", &source))?;
    values::parse(&text)
}

fn namespace(command: &str, netns: Option<OsString>) -> Result<PathBuf> {
    let netns = netns.filter(|netns| !netns.is_empty()).ok_or_else(|| {
        let msg = format!("`{command}` takes the path of the container's network namespace");
        Error::new(code::BAD_ENVIRONMENT, msg)
    })?;
    Ok(netns.into())
}

/// Checks a new network, and gives its settings as podman is to keep them. Nothing is made.
fn create(document: Value) -> Result<Value> {
    let here = Handle::here()?;
    sweep::sweep(&here);
    let network = Network::of(&document)?;
    network.check(&here)?;
    Ok(network.settings(document))
}

/// Makes a container a port of the switch.
fn setup(document: &Value, netns: &std::path::Path) -> Result<Value> {
    let container = Container::of(document, netns)?;
    let (call, given) = (container.add()?, container.addresses()?);
    let here = Handle::here()?;
    let made = add::add(&call, given.as_ref());
    // Not before: what others left is no reason for this container to wait.
    sweep::sweep(&here);
    Ok(container.status(&made?))
}

/// Takes a container off the switch, whatever has become of the options of the network. What is gone already is fine.
fn teardown(document: &Value, netns: &std::path::Path) -> Result<()> {
    let done = del::del(&Container::of(document, netns)?.del()?);
    sweep::sweep(&Handle::here()?);
    done
}

/// The text of an error as podman's user has to read it.
fn in_its_words(text: &str) -> String {
    let replace = |text: String, (key, word): &(&str, &str)| text.replace(key, word);
    WORDS.iter().fold(text.to_owned(), replace)
}
