//! Ids that tell whose a leftover is, and whether its owner still lives.

use std::fmt;
use std::fs;
use std::io;
use std::str::FromStr;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

/// The PID namespace that the machine starts with (`PROC_PID_INIT_INO`, include/linux/proc_ns.h). All others have
/// greater numbers (`PROC_DYNAMIC_FIRST`).
const INITIAL: u32 = 0xEFFF_FFFC;

/// A process. The PID namespace tells it from others with the same pid at the same time, the start time from later
/// ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Owner {
    /// As its own PID namespace counts.
    pid: u32,
    /// Field 22 of /proc/PID/stat, clock ticks since boot.
    started: u64,
    /// Inode number of its PID namespace. No other number of an id is as great, so nobody makes an id by accident.
    namespace: u32,
}

/// What can be said about a process from here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Life {
    /// It runs.
    Lives,
    /// It has ended.
    Gone,
    /// Its PID namespace cannot be seen from here.
    Hidden,
}

impl Owner {
    /// This process.
    #[must_use]
    pub fn me() -> Self {
        Self {
            pid: std::process::id(),
            started: start_time("self").unwrap_or(0),
            namespace: namespace_of("self").unwrap_or(0),
        }
    }

    /// Does that very process still run?
    #[must_use]
    pub fn life(self) -> Life {
        match shown_namespace() {
            Some(shown) if shown == self.namespace => {
                if start_time(&self.pid.to_string()) == Some(self.started) {
                    Life::Lives
                } else {
                    Life::Gone
                }
            }
            // Whoever sees the first namespace sees all others.
            Some(INITIAL) => self.life_in_other().unwrap_or(Life::Hidden),
            _ => Life::Hidden,
        }
    }

    /// Looks for the process among those of all PID namespaces. The start time is not compared, since a time namespace
    /// may show another one.
    fn life_in_other(self) -> io::Result<Life> {
        for entry in fs::read_dir("/proc")?.flatten() {
            let name = entry.file_name();
            let Some(pid) = name.to_str().filter(|name| name.parse::<u32>().is_ok()) else {
                continue;
            };
            // What has one number alone is in the first namespace.
            let numbers = pids_of(pid);
            if numbers.len() == 1 || numbers.last() != Some(&self.pid) {
                continue;
            }
            match namespace_of(pid) {
                Ok(namespace) if namespace == self.namespace && start_time(pid).is_some() => {
                    return Ok(Life::Lives);
                }
                Err(error) if error.kind() == io::ErrorKind::PermissionDenied => return Err(error),
                _ => {}
            }
        }
        Ok(Life::Gone)
    }

    /// Is it the process that started this one?
    #[must_use]
    pub fn is_parent(self) -> bool {
        std::os::unix::process::parent_id() == self.pid
            && namespace_of("self").is_ok_and(|own| own == self.namespace)
    }
}

impl fmt::Display for Owner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}.{}", self.pid, self.started, self.namespace)
    }
}

impl FromStr for Owner {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        let mut numbers = text.split('.');
        let mut next = || numbers.next().ok_or(());
        let owner = Self {
            pid: number(next()?)?,
            started: number(next()?)?,
            namespace: number(next()?)?,
        };
        if owner.namespace < INITIAL || numbers.next().is_some() {
            return Err(());
        }
        Ok(owner)
    }
}

/// A number as it is printed: `+1` and `01` are none.
fn number<N: FromStr + ToString>(text: &str) -> Result<N, ()> {
    let number: N = text.parse().map_err(|_| ())?;
    if number.to_string() == text {
        Ok(number)
    } else {
        Err(())
    }
}

/// The id of a lab: its owner and a number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct LabId {
    /// The process that built it.
    pub owner: Owner,
    number: u32,
}

impl LabId {
    /// An id that no other lab has.
    #[must_use]
    pub fn next() -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(1);
        Self {
            owner: Owner::me(),
            number: NEXT.fetch_add(1, Relaxed),
        }
    }

    /// The name of the lab's direct switch, which may have 32 letters and no dots.
    #[must_use]
    pub fn switch_name(self) -> String {
        let Self { owner, number } = self;
        let numbers = [
            u64::from(owner.pid),
            owner.started,
            owner.namespace.into(),
            number.into(),
        ];
        format!("lab-{}", numbers.map(in_base_36).join("-"))
    }

    /// The lab that a direct switch of this name belongs to, if it is a lab's.
    #[must_use]
    pub fn of_switch(name: &str) -> Option<Self> {
        let mut numbers = Vec::new();
        for part in name.strip_prefix("lab-")?.split('-') {
            numbers.push(u64::from_str_radix(part, 36).ok()?.to_string());
        }
        let id: Self = numbers.join(".").parse().ok()?;
        (id.switch_name() == name).then_some(id)
    }
}

fn in_base_36(mut number: u64) -> String {
    const DIGITS: &[u8; 36] = b"0123456789abcdefghijklmnopqrstuvwxyz";
    let mut text = String::new();
    loop {
        let digit = DIGITS[(number % 36) as usize];
        text.insert(0, char::from(digit));
        number /= 36;
        if number == 0 {
            return text;
        }
    }
}

impl fmt::Display for LabId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.owner, self.number)
    }
}

impl FromStr for LabId {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        let (owner, last) = text.rsplit_once('.').ok_or(())?;
        Ok(Self {
            owner: owner.parse()?,
            number: number(last)?,
        })
    }
}

/// The PID namespace whose processes /proc shows: of a container, its own or one above it.
fn shown_namespace() -> Option<u32> {
    // One pid for each namespace, from that of /proc down to the process's own.
    match pids_of("self").len() {
        0 => None,
        1 => namespace_of("self").ok(),
        _ => namespace_of("1").ok(),
    }
}

fn namespace_of(process: &str) -> io::Result<u32> {
    let link = fs::read_link(format!("/proc/{process}/ns/pid"))?;
    link.to_str()
        .and_then(|text| text.strip_prefix("pid:[")?.strip_suffix(']')?.parse().ok())
        .ok_or_else(|| io::ErrorKind::InvalidData.into())
}

/// What PID namespaces call a process, that of /proc first, its own last.
fn pids_of(process: &str) -> Vec<u32> {
    let status = fs::read_to_string(format!("/proc/{process}/status")).unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("NSpid:"));
    line.unwrap_or_default()
        .split_ascii_whitespace()
        .filter_map(|pid| pid.parse().ok())
        .collect()
}

fn start_time(process: &str) -> Option<u64> {
    let stat = fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    let (_, rest) = stat.rsplit_once(") ")?;
    let mut fields = rest.split_ascii_whitespace();
    // A zombie holds nothing any more.
    if fields.next() == Some("Z") {
        return None;
    }
    fields.nth(18)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_read_back_and_differ() {
        let (one, two) = (LabId::next(), LabId::next());
        assert_ne!(one, two);
        assert_eq!(one.to_string().parse(), Ok(one));
        assert_eq!(LabId::of_switch(&one.switch_name()), Some(one));
    }

    #[test]
    fn names_of_users_are_no_ids() {
        let mine = LabId::next();
        let too_much = format!("{mine}.1");
        let plus = mine.to_string().replacen('.', ".+", 1);
        for name in ["1.2.3", "1.2.3.4", "12.x.4026531836.1", &too_much, &plus] {
            assert!(name.parse::<LabId>().is_err(), "{name}");
        }
        let upper = mine.switch_name().to_uppercase().replacen("LAB", "lab", 1);
        for name in ["lab-1-2-3", "lab-1-2-3-4", "lab-web-a-b-c", "lan", &upper] {
            assert_eq!(LabId::of_switch(name), None, "{name}");
        }
    }

    #[test]
    fn the_longest_name_of_a_switch_is_one() {
        let owner = Owner {
            pid: 1 << 22,
            // A hundred ticks a second for twenty years.
            started: 63_072_000_000,
            namespace: u32::MAX,
        };
        let name = LabId {
            owner,
            number: 36_u32.pow(4),
        }
        .switch_name();
        assert!(name.len() <= 32, "{name}");
    }

    #[test]
    fn a_pid_used_again_is_not_the_owner() {
        let me = Owner::me();
        assert_eq!(me.life(), Life::Lives);
        let later = Owner {
            started: me.started + 1,
            ..me
        };
        assert_eq!(later.life(), Life::Gone);
        assert_eq!(Owner { pid: 0, ..me }.life(), Life::Gone);
    }
}
