//! Advice of `hopyard-switch`, in terms of the command line.

use hopyard_switch::{Error, PORTS_NAMED, WayOut};

/// Advice for an error, in terms of the command line.
pub(in crate::cli) fn advice(error: &Error) -> Option<String> {
    Some(match error {
        Error::Exists { name } => {
            format!("; choose another, or `hopyard switch delete {name}`")
        }
        Error::OtherLayout { .. } => {
            "; use the version of hopyard that made it, or delete it and create it again".to_owned()
        }
        Error::NotFirst { .. } => {
            ": detach it, or make the switch with --behind-others if others are to come first"
                .to_owned()
        }
        Error::OtherNamespace { .. } => ": run the command there".to_owned(),
        Error::NoGuestMac { .. } => ": give --mac".to_owned(),
        Error::HostMacsWithoutUplink { .. } => ": --host-mac needs --uplink".to_owned(),
        Error::ShortcutLacks { lost, .. } => {
            format!("; where no program of the control group uses that, give --accept {lost}")
        }
        Error::NotAPort { name, ports, .. } if ports.len() > PORTS_NAMED => {
            format!(", see `hopyard switch show {name}`")
        }
        _ => return None,
    })
}

/// The command that fixes the problem of a warning.
pub(super) fn command(switch: &str, way_out: &WayOut) -> String {
    match way_out {
        WayOut::SetUplink { device } => {
            let device = device.as_deref().unwrap_or("DEV");
            format!("`hopyard switch uplink {switch} {device}`")
        }
        WayOut::Upgrade => format!("`hopyard switch upgrade {switch}`"),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::Failure;

    #[test]
    fn errors_of_a_switch_say_the_way_out_in_words_of_the_command_line() {
        let what = || "add port `tap0` to switch `s`".to_owned();
        let name = || "s".to_owned();
        for (error, words) in [
            (
                Error::Exists { name: name() },
                "cannot create switch `s`: there is one of that name; choose another, or `hopyard switch delete s`",
            ),
            (
                Error::OtherLayout {
                    name: name(),
                    found: Some(1),
                    own: 2,
                },
                "its maps have layout 1, this program writes layout 2; use the version of hopyard that made it, or \
                 delete it and create it again",
            ),
            (
                Error::NotFirst {
                    what: what(),
                    other: "program 7".to_owned(),
                },
                "never reaches the switch: detach it, or make the switch with --behind-others if others are to come first",
            ),
            (
                Error::OtherNamespace {
                    what: what(),
                    home: 1,
                    here: 2,
                },
                "in another network namespace (net:[1]; this is net:[2]): run the command there",
            ),
            (
                Error::NoGuestMac {
                    what: what(),
                    device: "tap0".to_owned(),
                },
                "the guest's Ethernet address cannot be read from `tap0`: give --mac",
            ),
            (
                Error::HostMacsWithoutUplink { what: what() },
                "other addresses of the host take an uplink: --host-mac needs --uplink",
            ),
            (
                Error::NotAPort {
                    what: what(),
                    name: name(),
                    ports: vec!["p".to_owned(); 21],
                },
                "the switch has 21 ports, see `hopyard switch show s`",
            ),
        ] {
            let failure = Failure::from(error);
            assert_eq!(failure.status, 2);
            assert!(failure.message.ends_with(words), "{}", failure.message);
        }
    }

    #[test]
    fn ways_out_are_commands() {
        let uplink = |device: Option<&str>| WayOut::SetUplink {
            device: device.map(str::to_owned),
        };
        for (way_out, words) in [
            (uplink(Some("eth0")), "`hopyard switch uplink s eth0`"),
            (uplink(None), "`hopyard switch uplink s DEV`"),
            (WayOut::Upgrade, "`hopyard switch upgrade s`"),
            (WayOut::AddPortAgain, "remove the port and add it again"),
        ] {
            assert_eq!(command("s", &way_out), words);
        }
    }
}
