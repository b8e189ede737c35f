//! Ids that tell whose a leftover is, and whether its owner still lives.

use std::fmt;
use std::str::FromStr;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

/// A process, told apart from later ones with the same pid by its start time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Owner {
    pid: u32,
    /// Field 22 of /proc/PID/stat, clock ticks since boot.
    started: u64,
}

impl Owner {
    /// This process.
    #[must_use]
    pub fn me() -> Self {
        let pid = std::process::id();
        Self {
            pid,
            started: start_time(pid).unwrap_or(0),
        }
    }

    /// Does that very process still run?
    #[must_use]
    pub fn lives(self) -> bool {
        start_time(self.pid) == Some(self.started)
    }
}

impl fmt::Display for Owner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.pid, self.started)
    }
}

impl FromStr for Owner {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        let (pid, started) = text.split_once('.').ok_or(())?;
        Ok(Self {
            pid: pid.parse().map_err(|_| ())?,
            started: started.parse().map_err(|_| ())?,
        })
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
}

impl fmt::Display for LabId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.owner, self.number)
    }
}

impl FromStr for LabId {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        let (owner, number) = text.rsplit_once('.').ok_or(())?;
        Ok(Self {
            owner: owner.parse()?,
            number: number.parse().map_err(|_| ())?,
        })
    }
}

fn start_time(pid: u32) -> Option<u64> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
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
        assert!("12.x.1".parse::<LabId>().is_err());
    }

    #[test]
    fn a_pid_used_again_is_not_the_owner() {
        let me = Owner::me();
        assert!(me.lives());
        assert!(
            !Owner {
                started: me.started + 1,
                ..me
            }
            .lives()
        );
        assert!(!Owner { pid: 0, ..me }.lives());
    }
}
