//! Ids that say which process a leftover belongs to, and whether that process still lives.

mod shown;

use std::fmt;
use std::fs;
use std::io;
use std::str::FromStr;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

use shown::{is_there, namespace_of, pids_of, shown_namespace, start_time, unshifted};

/// The machine's first PID namespace (`PROC_PID_INIT_INO`, include/linux/proc_ns.h). All others have greater numbers
/// (`PROC_DYNAMIC_FIRST`).
const INITIAL: u32 = 0xEFFF_FFFC;
/// A process. The PID namespace distinguishes it from others with the same pid at the same time, the start time from
/// later ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Owner {
    /// Its pid in its own PID namespace.
    pid: u32,
    /// When it started, in clock ticks since boot by the first time namespace; 0 if that is not known.
    started: u64,
    /// Inode number of its PID namespace. No other number of an id is as large, so no name is an id by accident.
    namespace: u32,
}

/// What this process can find out about another one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Life {
    /// It runs, or another process has its pid and start times cannot be compared.
    Lives,
    /// It has ended; a zombie counts as ended.
    Gone,
    /// Its PID namespace is not visible from here.
    Hidden,
}

impl Owner {
    /// The calling process.
    #[must_use]
    pub fn me() -> Self {
        Self {
            pid: std::process::id(),
            started: start_time("self")
                .ok()
                .flatten()
                .and_then(unshifted)
                .unwrap_or(0),
            namespace: namespace_of("self").unwrap_or(0),
        }
    }

    /// Whether that very process still runs.
    #[must_use]
    pub fn life(self) -> Life {
        match shown_namespace() {
            Some(shown) if shown == self.namespace => match start_time(&self.pid.to_string()) {
                Ok(started) if self.began_at(started) => Life::Lives,
                // As /proc may be mounted (`hidepid`), it shows only what the reader may trace.
                Err(_) if is_there(self.pid) => Life::Hidden,
                _ => Life::Gone,
            },
            // The first namespace shows the processes of all others.
            Some(INITIAL) => self.life_in_other().unwrap_or(Life::Hidden),
            _ => Life::Hidden,
        }
    }

    /// Whether a process with its pid that /proc shows is this one, by when it started; `None`: it has ended. If start times cannot be
    /// compared, the pid alone decides. Then another process with that pid keeps a leftover; the opposite mistake would end a lab that
    /// is in use.
    fn began_at(self, shown: Option<u64>) -> bool {
        let Some(shown) = shown else {
            return false;
        };
        // If the offset is not a multiple of a tick, the two readings differ by one.
        let same = |started: u64| started.abs_diff(self.started) <= 1;
        self.started == 0 || unshifted(shown).is_none_or(same)
    }

    /// Searches the process among those of all PID namespaces.
    fn life_in_other(self) -> io::Result<Life> {
        // The first process is nobody's to trace but root's: where it is hidden, others are.
        fs::metadata("/proc/1")?;
        for entry in fs::read_dir("/proc")?.flatten() {
            let name = entry.file_name();
            let Some(pid) = name.to_str().filter(|name| name.parse::<u32>().is_ok()) else {
                continue;
            };
            // A process with a single number is in the first namespace.
            let numbers = pids_of(pid);
            if numbers.len() == 1 || numbers.last() != Some(&self.pid) {
                continue;
            }
            match namespace_of(pid) {
                Ok(namespace)
                    if namespace == self.namespace
                        && self.began_at(start_time(pid).ok().flatten()) =>
                {
                    return Ok(Life::Lives);
                }
                Err(error) if error.kind() == io::ErrorKind::PermissionDenied => return Err(error),
                _ => {}
            }
        }
        Ok(Life::Gone)
    }

    /// Whether it is the process that started this one.
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

/// A number in the form that it is printed: `+1` and `01` are refused.
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
    /// A new, unique id.
    #[must_use]
    pub fn next() -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(1);
        Self {
            owner: Owner::me(),
            number: NEXT.fetch_add(1, Relaxed),
        }
    }

    /// The name of the lab's direct switch, which may have at most 32 characters and no dots.
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

    /// The lab that a direct switch with this name belongs to, if any.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn where_start_times_are_not_known_the_pid_tells() {
        let unknown = Owner {
            started: 0,
            ..Owner::me()
        };
        assert_eq!(unknown.life(), Life::Lives);
        assert_eq!(Owner { pid: 0, ..unknown }.life(), Life::Gone);
    }

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
            started: me.started + 2,
            ..me
        };
        assert_eq!(later.life(), Life::Gone);
        assert_eq!(Owner { pid: 0, ..me }.life(), Life::Gone);
    }
}
