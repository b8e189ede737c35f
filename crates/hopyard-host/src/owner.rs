//! Ids that say which process a leftover belongs to, and whether that process still lives.

use std::fmt;
use std::fs;
use std::io;
use std::str::FromStr;
use std::sync::LazyLock;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

use nix::errno::Errno;
use nix::sys::signal::kill;
use nix::unistd::Pid;

/// The machine's first PID namespace (`PROC_PID_INIT_INO`, include/linux/proc_ns.h). All others have greater numbers
/// (`PROC_DYNAMIC_FIRST`).
const INITIAL: u32 = 0xEFFF_FFFC;
/// The machine's first time namespace (`PROC_TIME_INIT_INO`).
const FIRST_TIME: &str = "time:[4026531834]";
/// Clock ticks per second in /proc (`USER_HZ`, 100 on every architecture of hopyard).
const TICKS_PER_S: i64 = 100;

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

/// The PID namespace whose processes /proc shows: in a container, its own or one above it.
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

/// The pids of a process in its PID namespaces: that of /proc first, its own last.
fn pids_of(process: &str) -> Vec<u32> {
    let status = fs::read_to_string(format!("/proc/{process}/status")).unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("NSpid:"));
    line.unwrap_or_default()
        .split_ascii_whitespace()
        .filter_map(|pid| pid.parse().ok())
        .collect()
}

/// When a process started: field 22 of /proc/PID/stat, clock ticks since boot by the reader's time namespace. `None`: it has ended.
///
/// # Errors
/// /proc does not show it.
fn start_time(process: &str) -> io::Result<Option<u64>> {
    let stat = fs::read_to_string(format!("/proc/{process}/stat"))?;
    let started = || {
        let (_, rest) = stat.rsplit_once(") ")?;
        let mut fields = rest.split_ascii_whitespace();
        // A zombie holds nothing any more.
        if fields.next() == Some("Z") {
            return None;
        }
        fields.nth(18)?.parse().ok()
    };
    Ok(started())
}

/// Is there a process with this pid, whether /proc shows it or not?
fn is_there(pid: u32) -> bool {
    // 0 is the caller's own process group.
    let pid = i32::try_from(pid).ok().filter(|pid| *pid > 0);
    pid.is_some_and(|pid| kill(Pid::from_raw(pid), None) != Err(Errno::ESRCH))
}

/// A start time from this process's /proc, converted to the first time namespace; `None` if that is not possible.
fn unshifted(shown: u64) -> Option<u64> {
    static OFFSET: LazyLock<Option<i64>> = LazyLock::new(|| match boot_offset() {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Some(0),
        offset => offset.ok(),
    });
    (*OFFSET).and_then(|offset| without(shown, offset))
}

/// The kernel computes with a `u64` of nanoseconds: processes older than the boot of a time namespace appear near the
/// end of its range.
fn without(shown: u64, offset: i64) -> Option<u64> {
    const RANGE: i128 = (1 << 64) / (1_000_000_000 / TICKS_PER_S as i128);
    let started = (i128::from(shown) - i128::from(offset)).rem_euclid(RANGE);
    started.try_into().ok()
}

/// What the time namespace of this process adds to the time since boot, clock ticks (`time_namespaces(7)`).
///
/// # Errors
/// `NotFound` if the kernel has no time namespaces; otherwise if /proc does not show it.
fn boot_offset() -> io::Result<i64> {
    let own = fs::read_link("/proc/self/ns/time")?;
    if own.as_os_str() == FIRST_TIME {
        return Ok(0);
    }
    // The offsets in /proc are those of children. Older kernels do not enter the children's namespace with `exec`.
    if own != fs::read_link("/proc/self/ns/time_for_children")? {
        return Err(io::ErrorKind::Unsupported.into());
    }
    let offsets = fs::read_to_string("/proc/self/timens_offsets")?;
    boot_offset_in(&offsets).ok_or_else(|| io::ErrorKind::InvalidData.into())
}

/// Reads the line `boottime SECONDS NANOSECONDS`.
fn boot_offset_in(offsets: &str) -> Option<i64> {
    let line = offsets
        .lines()
        .find_map(|line| line.strip_prefix("boottime"))?;
    let mut numbers = line.split_ascii_whitespace().map(str::parse::<i64>);
    let (seconds, ns) = (numbers.next()?.ok()?, numbers.next()?.ok()?);
    seconds
        .checked_mul(TICKS_PER_S)?
        .checked_add(ns / (1_000_000_000 / TICKS_PER_S))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn start_times_are_those_of_the_first_time_namespace() {
        let offsets =
            |boottime: &str| format!("monotonic           5         0\nboottime {boottime}\n");
        let ticks = |boottime: &str| boot_offset_in(&offsets(boottime));
        assert_eq!(ticks("      1000         0"), Some(100_000));
        assert_eq!(ticks("       -10 250000000"), Some(-975));
        assert_eq!(ticks("       -10"), None);
        assert_eq!(boot_offset_in("monotonic 0 0\n"), None);
        assert_eq!(without(1_438_439, 100_000), Some(1_338_439));
        assert_eq!(without(1_337_464, -975), Some(1_338_439));
        // 5 s after the boot of the host, seen from a namespace where this is -5 s.
        let shown = u64::MAX / 10_000_000 - 499;
        assert!(without(shown, -1000).unwrap().abs_diff(500) <= 1);
    }

    /// 0 is this process's own group, which a signal would reach.
    #[test]
    fn a_process_is_there_whatever_proc_shows() {
        let is_there = [std::process::id(), 1, 0, u32::MAX].map(is_there);
        assert_eq!(is_there, [true, true, false, false]);
        assert!(start_time("self").unwrap().is_some());
        assert!(start_time("0").is_err());
    }

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
