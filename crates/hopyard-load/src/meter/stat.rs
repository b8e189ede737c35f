//! `/proc/stat`: tick-sampled columns in steps of 1/100 s (fs/proc/stat.c), and forks.

use super::{Error, read};
use hopyard_model::units::float;

const FILE: &str = "/proc/stat";
/// `USER_HZ` is 100 on every architecture that hopyard runs on.
pub(super) const STEP_NS: f64 = 1e7;

/// The machine's columns in steps, all CPUs together.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Stat {
    pub(super) user: u64,
    pub(super) nice: u64,
    pub(super) system: u64,
    pub(super) idle: u64,
    pub(super) iowait: u64,
    pub(super) irq: u64,
    pub(super) softirq: u64,
    pub(super) steal: u64,
    /// Processes and threads ever started.
    pub(super) forks: u64,
}

impl Stat {
    pub(super) fn read() -> Result<Self, Error> {
        parse(&read(FILE)?)
    }

    /// What came since an earlier reading.
    pub(super) fn since(self, start: Self) -> Self {
        Self {
            user: self.user.saturating_sub(start.user),
            nice: self.nice.saturating_sub(start.nice),
            system: self.system.saturating_sub(start.system),
            idle: self.idle.saturating_sub(start.idle),
            iowait: self.iowait.saturating_sub(start.iowait),
            irq: self.irq.saturating_sub(start.irq),
            softirq: self.softirq.saturating_sub(start.softirq),
            steal: self.steal.saturating_sub(start.steal),
            forks: self.forks.saturating_sub(start.forks),
        }
    }

    /// Sum of all columns, in steps. Guest time is within user and not counted again.
    pub(super) fn total(self) -> u64 {
        self.user
            + self.nice
            + self.system
            + self.idle
            + self.iowait
            + self.irq
            + self.softirq
            + self.steal
    }
}

/// Steps as ns.
pub(super) fn ns(steps: u64) -> f64 {
    float(steps) * STEP_NS
}

fn parse(text: &str) -> Result<Stat, Error> {
    let missing = |what: &str| Error::Parse {
        file: FILE,
        what: what.to_owned(),
    };
    let line = text
        .lines()
        .find(|l| l.starts_with("cpu "))
        .ok_or_else(|| missing("no line `cpu`"))?;
    let mut columns = line.split_ascii_whitespace().skip(1).map(str::parse::<u64>);
    let mut next = || match columns.next() {
        Some(Ok(value)) => Ok(value),
        _ => Err(missing("line `cpu` has fewer than eight numbers")),
    };
    let stat = Stat {
        user: next()?,
        nice: next()?,
        system: next()?,
        idle: next()?,
        iowait: next()?,
        irq: next()?,
        softirq: next()?,
        steal: next()?,
        forks: 0,
    };
    let forks = text
        .lines()
        .find_map(|l| l.strip_prefix("processes "))
        .and_then(|n| n.trim().parse().ok())
        .ok_or_else(|| missing("no line `processes`"))?;
    Ok(Stat { forks, ..stat })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_and_forks() {
        let text = "cpu  785 1 837 11855 168 2 17 7 0 0\ncpu0 1 2 3\nctxt 5\nprocesses 3461\n";
        let stat = parse(text).unwrap();
        assert_eq!(
            stat,
            Stat {
                user: 785,
                nice: 1,
                system: 837,
                idle: 11855,
                iowait: 168,
                irq: 2,
                softirq: 17,
                steal: 7,
                forks: 3461
            }
        );
        assert_eq!(stat.total(), 13672);
        assert!(parse("cpu 1 2 3\nprocesses 1\n").is_err());
        assert!(parse("cpu  1 1 1 1 1 1 1 1\n").is_err());
    }
}
