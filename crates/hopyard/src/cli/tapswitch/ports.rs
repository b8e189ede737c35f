//! Taps on the command line, each with the rules that follow it.

use std::path::PathBuf;
use std::str::FromStr;

use clap::error::ErrorKind;
use clap::{ArgAction, ArgMatches, Args, Command, FromArgMatches};
use hopyard_switch::Mac;
use hopyard_tap::switch::Rules;

/// A tap on the command line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Tap {
    /// The text of the argument.
    pub(super) label: String,
    pub(super) device: String,
    pub(super) netns: Option<PathBuf>,
}

impl FromStr for Tap {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (device, netns) = match text.split_once('@') {
            Some((_, "")) => return Err("nothing follows the `@`: name a network namespace".into()),
            Some((device, netns)) if netns.contains('/') => (device, Some(netns.into())),
            Some((device, name)) => (device, Some(PathBuf::from("/run/netns").join(name))),
            None => (text, None),
        };
        if device.is_empty() || device.contains('%') {
            return Err(format!("`{device}` is not a valid name of a tap"));
        }
        Ok(Self {
            label: text.to_owned(),
            device: device.to_owned(),
            netns,
        })
    }
}

/// A limit of broadcasts on the command line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Broadcasts(Option<u32>);

impl FromStr for Broadcasts {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.parse() {
            _ if text == "unlimited" => Ok(Self(None)),
            Ok(per_s) if per_s <= 1_000_000_000 => Ok(Self(Some(per_s))),
            _ => Err("give frames per second, 0 to 1000000000, or `unlimited`".into()),
        }
    }
}

/// The flags in clap's view: each separately.
#[derive(Debug, Args)]
struct Flags {
    /// A tap, and the network namespace it is in: a name of `ip netns` or a file; two or more
    #[arg(long, value_name = "DEV[@NETNS]", required = true)]
    tap: Vec<Tap>,
    /// For the tap before it: an address that it may send from, and no other tap may; may be repeated (default: any
    /// address that is not given to another tap)
    #[arg(long, value_name = "M")]
    mac: Vec<Mac>,
    /// For the tap before it: nothing passes between it and other isolated taps
    #[arg(long, action = ArgAction::Append, num_args = 0, default_missing_value = "true")]
    isolated: Vec<bool>,
    /// For the tap before it: the most addresses that it may have at once (default: 1024)
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    addresses: Vec<u32>,
    /// For the tap before it: broadcasts, multicasts and frames for unknown addresses that it may send to several
    /// others per second, or `unlimited` (default: 100); the unused allowance of ten seconds may be sent at once
    #[arg(long, value_name = "N|unlimited")]
    broadcasts: Vec<Broadcasts>,
}

/// A tap and its rules.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Port {
    pub(super) tap: Tap,
    pub(super) rules: Rules,
}

/// All taps, in order.
#[derive(Debug, Clone, Default)]
pub(super) struct Ports(pub(super) Vec<Port>);

impl Args for Ports {
    fn augment_args(command: Command) -> Command {
        Flags::augment_args(command)
    }

    fn augment_args_for_update(command: Command) -> Command {
        Flags::augment_args_for_update(command)
    }
}

impl FromArgMatches for Ports {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let mut ports: Vec<(usize, Port)> = values(matches, "tap")
            .map(|(at, tap): (usize, Tap)| {
                let rules = Rules::default();
                (at, Port { tap, rules })
            })
            .collect();
        each(matches, "mac", &mut ports, |rules, mac: Mac| {
            rules.macs.push(mac.0);
        })?;
        each(matches, "isolated", &mut ports, |rules, isolated| {
            rules.isolated = isolated;
        })?;
        each(matches, "addresses", &mut ports, |rules, addresses| {
            rules.addresses = addresses;
        })?;
        each(matches, "broadcasts", &mut ports, |rules, limit| {
            let Broadcasts(per_s) = limit;
            rules.broadcasts = per_s;
        })?;
        Ok(Self(ports.into_iter().map(|(_, port)| port).collect()))
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

/// The values of a flag, and their positions on the command line.
fn values<T: Clone + Send + Sync + 'static>(
    matches: &ArgMatches,
    flag: &str,
) -> impl Iterator<Item = (usize, T)> {
    let places = matches.indices_of(flag).into_iter().flatten();
    let values = matches.get_many::<T>(flag).into_iter().flatten().cloned();
    places.zip(values)
}

/// Assigns each value of a flag to the tap before it.
fn each<T: Clone + Send + Sync + 'static>(
    matches: &ArgMatches,
    flag: &str,
    ports: &mut [(usize, Port)],
    give: impl Fn(&mut Rules, T),
) -> Result<(), clap::Error> {
    for (at, value) in values(matches, flag) {
        let before = ports.iter_mut().rev().find(|(tap, _)| *tap < at);
        let Some((_, port)) = before else {
            let why = format!("--{flag} applies to the --tap before it: name a tap first\n");
            return Err(clap::Error::raw(ErrorKind::MissingRequiredArgument, why));
        };
        give(&mut port.rules, value);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn taps_are_read() {
        let tap: Tap = "eth0@web".parse().unwrap();
        assert_eq!(
            (tap.device.as_str(), tap.netns),
            ("eth0", Some("/run/netns/web".into()))
        );
        let tap: Tap = "eth0@/proc/7/ns/net".parse().unwrap();
        assert_eq!(tap.netns, Some("/proc/7/ns/net".into()));
        assert_eq!("tap0".parse::<Tap>().unwrap().netns, None);
        for wrong in ["", "@web", "tap0@", "tap%d"] {
            assert!(wrong.parse::<Tap>().is_err(), "{wrong}");
        }
    }

    fn read(words: &str) -> Result<Vec<Port>, clap::Error> {
        let command = Ports::augment_args(Command::new("run").no_binary_name(true));
        let matches = command.try_get_matches_from(words.split_whitespace())?;
        Ports::from_arg_matches(&matches).map(|ports| ports.0)
    }

    #[test]
    fn flags_belong_to_the_tap_before_them() {
        let words = "--tap a --mac 02:00:00:00:00:01 --isolated --mac 02:00:00:00:00:02 --tap b --tap c@d --broadcasts \
                     unlimited --isolated --addresses 3 --tap e --broadcasts 7";
        let ports = read(words).unwrap();
        let names: Vec<&str> = ports.iter().map(|port| &*port.tap.label).collect();
        assert_eq!(names, ["a", "b", "c@d", "e"]);
        let macs = vec![[2, 0, 0, 0, 0, 1], [2, 0, 0, 0, 0, 2]];
        let plain = Rules::default;
        let rules: Vec<Rules> = ports.into_iter().map(|port| port.rules).collect();
        #[rustfmt::skip]
        let wanted = [
            Rules { macs, isolated: true, ..plain() },
            plain(),
            Rules { isolated: true, addresses: 3, broadcasts: None, ..plain() },
            Rules { broadcasts: Some(7), ..plain() },
        ];
        assert_eq!(rules, wanted);
    }

    #[test]
    fn what_is_about_no_tap_or_makes_no_sense_is_refused() {
        for (words, said) in [
            (
                "--isolated --tap a",
                "--isolated applies to the --tap before it",
            ),
            ("--mac 02:00:00:00:00:01 --tap a", "--mac applies to"),
            ("--tap a --mac 02:00", "is no Ethernet address"),
            ("--tap a --addresses 0", "1.."),
            ("--tap a --broadcasts many", "or `unlimited`"),
            ("--isolated", "--tap <DEV[@NETNS]>"),
        ] {
            let error = read(words).unwrap_err().to_string();
            assert!(error.contains(said), "{words}: {error}");
        }
    }
}
