//! The machines of a fleet, as a file names them.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::path::Path;

use hopyard_host::bounded;
use hopyard_lab::Prefix;
use hopyard_model::plain;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};

/// Most endpoints of a fleet: 2.1 million pairs, or twice as many where each is measured both ways.
pub(crate) const MOST_ENDPOINTS: usize = 2048;
/// Names are parts of file names, two of them in one.
pub(crate) const LONGEST_NAME: usize = 64;

/// A machine, and how it is reached.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Endpoint {
    /// What it is called in results.
    pub name: String,
    /// Command that runs the rest of its arguments there.
    pub connect: String,
    /// Where it listens as a server; found by the workers where none is given.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub address: Option<IpAddr>,
    /// Where it stands, for the reader.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub rack: Option<String>,
    /// Which kind of machine it is, for matrices.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub kind: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    #[serde(default)]
    endpoint: Vec<Endpoint>,
}

/// Machines that a fleet of pairs has at least.
pub const FOR_PAIRS: usize = 2;
/// Nodes that carry out a matrix, at least.
pub const FOR_CELLS: usize = 1;

/// Reads a file: TOML where its name ends with `.toml`, else lines of `NAME PREFIX`.
///
/// # Errors
/// It cannot be read, or what it says is not this many endpoints or more.
pub fn read(file: &Path, least: usize) -> Result<Vec<Endpoint>> {
    let bytes = bounded::read(file).map_err(|e| Error::file("read", file, e))?;
    let name = plain::line(&file.display().to_string());
    let wrong = |why: String| Error::Wrong(format!("{name}: {why}"));
    let text = String::from_utf8(bytes).map_err(|_| wrong("it is no UTF-8 text".to_owned()))?;
    let is_toml = file.extension().is_some_and(|e| e == "toml");
    let endpoints = if is_toml {
        let read: File = toml::from_str(&text).map_err(|e| wrong(e.to_string()))?;
        read.endpoint
    } else {
        lines(&text).map_err(wrong)?
    };
    check(&endpoints, least).map_err(|why| wrong(told_apart(why, is_toml)))?;
    Ok(endpoints)
}

/// Somebody may have written TOML into a file of another name, or the other way round.
fn told_apart(why: String, is_toml: bool) -> String {
    if is_toml {
        return why;
    }
    format!(
        "{why} (a file whose name ends with .toml is read as TOML, this one as lines of NAME PREFIX)"
    )
}

/// A line for each endpoint: its name, then the command. `#` begins a comment.
fn lines(text: &str) -> std::result::Result<Vec<Endpoint>, String> {
    let lines = text.lines().enumerate().map(|(n, l)| (n + 1, l.trim()));
    let said = lines.filter(|(_, line)| !line.is_empty() && !line.starts_with('#'));
    said.map(|(number, line)| {
        let (name, connect) = line.split_once([' ', '\t']).ok_or_else(|| {
            format!(
                "line {number}: `{}` has a name and no command: write NAME PREFIX, as in `n1 ssh n1`",
                plain::line(line)
            )
        })?;
        Ok(Endpoint {
            name: name.to_owned(),
            connect: connect.trim().to_owned(),
            address: None,
            rack: None,
            kind: None,
        })
    })
    .collect()
}

/// What is wrong with these, if anything.
pub(crate) fn check(endpoints: &[Endpoint], least: usize) -> std::result::Result<(), String> {
    if endpoints.len() < least {
        return Err(format!(
            "a fleet has {} at least, and here {}",
            if least == FOR_CELLS {
                "one endpoint"
            } else {
                "two endpoints"
            },
            match endpoints.len() {
                0 => "is none",
                _ => "is one",
            }
        ));
    }
    if endpoints.len() > MOST_ENDPOINTS {
        return Err(format!(
            "{} endpoints are more than the {MOST_ENDPOINTS} that a fleet may have: split the file",
            endpoints.len()
        ));
    }
    let (mut names, mut commands) = (BTreeMap::new(), BTreeMap::new());
    for (number, endpoint) in endpoints.iter().enumerate() {
        let number = number + 1;
        let shown = plain::line(&endpoint.name);
        if let Some(why) = bad_name(&endpoint.name) {
            return Err(format!("endpoint {number}: name `{shown}` {why}"));
        }
        let wrong = |why: String| Err(format!("endpoint {number}, `{shown}`: {why}"));
        if !endpoint.connect.chars().all(plain::is_plain) {
            return wrong("`connect` has a control character or one that is not seen".to_owned());
        }
        let prefix: Prefix = match endpoint.connect.parse() {
            Ok(prefix) => prefix,
            Err(why) => return wrong(format!("`connect`: {why}")),
        };
        if let Some(rack) = &endpoint.rack
            && (rack.is_empty() || rack.len() > LONGEST_NAME || !rack.chars().all(plain::is_plain))
        {
            return wrong(format!(
                "`rack` has 1 to {LONGEST_NAME} characters, all of them seen"
            ));
        }
        if let Some(before) = names.insert(&endpoint.name, number) {
            return wrong(format!("endpoint {before} has the same name"));
        }
        if let Some(before) = commands.insert(prefix.words().to_vec(), &endpoint.name) {
            return wrong(format!(
                "`{before}` has the same `connect`: a machine that is named twice would be in two measurements at once"
            ));
        }
    }
    Ok(())
}

/// What keeps a text from being a name: it is a part of file names, and `--` stands between two of them.
fn bad_name(name: &str) -> Option<&'static str> {
    let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    if name.is_empty() {
        Some("is empty")
    } else if name.len() > LONGEST_NAME {
        Some("is longer than 64 characters")
    } else if !name.chars().all(fits) {
        Some("has another character than letters, digits, `-`, `_` and `.`")
    } else if !name.starts_with(|c: char| c.is_ascii_alphanumeric()) {
        Some("does not begin with a letter or a digit")
    } else if name.contains("--") || name.ends_with('-') {
        Some("has `--` in it or ends with `-`: results are kept in directories CLIENT--SERVER")
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(name: &str, text: &str) -> std::result::Result<Vec<Endpoint>, String> {
        let home = tempfile::tempdir().unwrap();
        let file = home.path().join(name);
        std::fs::write(&file, text).unwrap();
        read(&file, FOR_PAIRS).map_err(|e| e.to_string().replace(file.to_str().unwrap(), "FILE"))
    }

    #[test]
    fn both_forms_say_the_same() {
        let toml = "[[endpoint]]\nname = \"n1\"\nconnect = \"ssh n1\"\n[[endpoint]]\nname = \"n2\"\nconnect = \"ssh -p 22 n2\"";
        let lines = "# two machines\nn1 ssh n1\n\n  n2\tssh -p 22 n2\n";
        assert_eq!(of("a.toml", toml).unwrap(), of("a", lines).unwrap());
        let more = format!("{toml}\naddress = \"192.0.2.2\"\nrack = \"b 3\"");
        let second = of("a.toml", &more).unwrap().remove(1);
        assert_eq!(second.address, Some([192, 0, 2, 2].into()));
        assert_eq!(second.rack.as_deref(), Some("b 3"));
    }

    #[test]
    fn cells_take_one_node_and_pairs_two() {
        let one = lines("n1 ssh n1").unwrap();
        assert_eq!(check(&one, FOR_CELLS), Ok(()));
        assert_eq!(
            check(&one, FOR_PAIRS).unwrap_err(),
            "a fleet has two endpoints at least, and here is one"
        );
        assert_eq!(
            check(&[], FOR_CELLS).unwrap_err(),
            "a fleet has one endpoint at least, and here is none"
        );
    }

    #[test]
    fn what_is_no_fleet_is_refused_with_its_place() {
        for (text, why) in [
            ("", "is none"),
            ("n1 ssh n1", "is one"),
            ("n1", "line 1: `n1` has a name and no command"),
            (
                "n1 ssh n1\nn1 ssh n2",
                "endpoint 2, `n1`: endpoint 1 has the same name",
            ),
            (
                "n1 ssh n1\nn2  ssh  'n1'",
                "endpoint 2, `n2`: `n1` has the same `connect`",
            ),
            (
                "n1 ssh n1\n../n2 ssh n2",
                "endpoint 2: name `../n2` has another character",
            ),
            ("n1 ssh n1\nn--2 ssh n2", "has `--` in it"),
            ("n1 ssh n1\n.n2 ssh n2", "does not begin with"),
            ("n1 ssh n1\nn2 ssh 'n2", "quotation mark"),
            ("n1 ssh n1\nn2 ssh\u{1b}[31m n2", "control character"),
            ("n1 ssh n1\nn2 ssh n\u{202e}2", "not seen"),
        ] {
            let said = of("fleet", text).unwrap_err();
            assert!(said.contains(why), "{text:?}: {said}");
        }
        let two = |more: &str| {
            format!(
                "[[endpoint]]\nname = \"n1\"\nconnect = \"ssh n1\"\n[[endpoint]]\nname = \"n2\"\n{more}"
            )
        };
        for (more, why) in [
            (
                "connect = \"\"",
                "endpoint 2, `n2`: `connect`: a command has one word at least",
            ),
            ("", "missing field `connect`"),
            ("connect = \"ssh n2\"\nport = 22", "unknown field `port`"),
            ("connect = \"ssh n2\"\naddress = \"n2\"", "address"),
            ("connect = \"ssh n2\"\nrack = \"\"", "`rack` has 1 to 64"),
            ("connect = 7", "line 6"),
        ] {
            let said = of("fleet.toml", &two(more)).unwrap_err();
            assert!(said.contains(why), "{more:?}: {said}");
        }
        assert!(
            of("f.toml", "machine = 1")
                .unwrap_err()
                .contains("unknown field `machine`")
        );
        let many: String = (0..=MOST_ENDPOINTS)
            .map(|n| format!("n{n} ssh n{n}\n"))
            .collect();
        assert!(of("many", &many).unwrap_err().contains("split the file"));
    }
}
