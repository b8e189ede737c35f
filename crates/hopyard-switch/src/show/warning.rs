//! What is not as it should be, and what mends it.

use std::fmt;
use std::ops::Deref;

use serde::{Serialize, Serializer};

/// A sentence about something that is not as it should be. It names what mends it by this crate's functions, where one does:
/// a program whose users call that something else says so ([`Warning::reword`]).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Warning {
    text: String,
    /// And where its words start.
    way_out: Option<(usize, WayOut)>,
}

/// What mends it.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum WayOut {
    /// [`Switch::set_uplink`](crate::Switch::set_uplink), with this device or with any.
    SetUplink {
        /// Name of the device.
        device: Option<String>,
    },
    /// [`Switch::upgrade`](crate::Switch::upgrade).
    Upgrade,
    /// [`Switch::remove_port`](crate::Switch::remove_port), then [`Switch::add_port`](crate::Switch::add_port).
    AddPortAgain,
}

impl fmt::Display for WayOut {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::SetUplink {
                device: Some(device),
            } => write!(f, "`Switch::set_uplink` with `{device}`"),
            Self::SetUplink { device: None } => f.write_str("`Switch::set_uplink`"),
            Self::Upgrade => f.write_str("`Switch::upgrade`"),
            Self::AddPortAgain => f.write_str("remove the port and add it again"),
        }
    }
}

impl Warning {
    /// What is wrong, and the way out, with what is said of it (` keeps the name`).
    pub(super) fn new(mut text: String, way_out: WayOut, of_it: &str) -> Self {
        let start = text.len();
        text += &format!("{way_out}{of_it}");
        Self {
            text,
            way_out: Some((start, way_out)),
        }
    }

    /// What mends it, where a function of this crate does.
    #[must_use]
    pub fn way_out(&self) -> Option<&WayOut> {
        self.way_out.as_ref().map(|(_, way_out)| way_out)
    }

    /// The sentence with other words for the way out, as a program's command.
    #[must_use]
    pub fn reword(&self, words: impl FnOnce(&WayOut) -> String) -> String {
        let mut text = self.text.clone();
        if let Some((start, way_out)) = &self.way_out {
            let end = start + way_out.to_string().len();
            text.replace_range(*start..end, &words(way_out));
        }
        text
    }
}

impl From<String> for Warning {
    fn from(text: String) -> Self {
        Self {
            text,
            way_out: None,
        }
    }
}

impl Deref for Warning {
    type Target = str;

    fn deref(&self) -> &str {
        &self.text
    }
}

impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl PartialEq<&str> for Warning {
    fn eq(&self, other: &&str) -> bool {
        self.text == *other
    }
}

impl Serialize for Warning {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_way_out_is_said_in_the_words_of_the_program() {
        let device = Some("up0".to_owned());
        let way_out = WayOut::SetUplink { device };
        let warning = Warning::new("renamed; ".to_owned(), way_out.clone(), " keeps the name");
        assert_eq!(
            warning,
            "renamed; `Switch::set_uplink` with `up0` keeps the name"
        );
        assert_eq!(warning.way_out(), Some(&way_out));
        let reworded = warning.reword(|_| "`uplink s up0`".to_owned());
        assert_eq!(reworded, "renamed; `uplink s up0` keeps the name");
        let plain = Warning::from("broken".to_owned());
        assert_eq!(plain.reword(|_| unreachable!("no way out")), "broken");
    }
}
