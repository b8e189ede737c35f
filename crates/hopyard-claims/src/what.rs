//! What a rule is about: quantities by name, and what each is in a sample.

use serde::{Deserialize, Deserializer};

use super::profiles::share;
use crate::assess::{self, PER_GHZ, Quantity, quantity};
use crate::model::{CpuTolerance, EndsOn, LoadKind, Measurement, Sample};
use crate::profile::subsystems::subsystems;
use crate::store::Run;

/// What a rule is about.
#[derive(Clone)]
pub enum What {
    /// The main figure of the load: goodput or transactions.
    Rate,
    /// The CPU cost that goes with it.
    Cost,
    /// The CPU cost; between two machines that of the client's alone.
    LocalCost,
    /// Busy CPUs; between two machines those of the client's alone.
    LocalBusyCores,
    /// The CPU cost on the client's machine.
    ClientCost,
    /// Work per CPU time.
    Efficiency,
    /// Busy CPUs over all CPUs.
    BusyRatio,
    /// CPUs in softirq over all CPUs, by ticks.
    SoftirqRatio,
    /// Sends that the kernel refused, over sends.
    SendErrorRatio,
    /// Cache misses of the client's threads, for each packet.
    CacheMissesPerPacket,
    /// How long jitter took to settle, s.
    SettlingTime,
    /// A quantity of the registry.
    Named(&'static Quantity),
    /// The share of busy samples that fell into these subsystems.
    ProfileShare(Vec<String>),
    /// What of the CPU cost fell into these subsystems.
    CostShare(Vec<String>),
}

/// Names that the registry of quantities does not have, and `share SUBSYSTEM+…` and `cost of SUBSYSTEM+…`.
const OWN: &[(&str, What)] = &[
    ("rate", What::Rate),
    ("cost", What::Cost),
    ("local cost", What::LocalCost),
    ("local busy_cores", What::LocalBusyCores),
    ("efficiency", What::Efficiency),
    ("busy_ratio", What::BusyRatio),
    ("softirq_ratio", What::SoftirqRatio),
    ("send_error_ratio", What::SendErrorRatio),
    ("cache_misses_per_packet", What::CacheMissesPerPacket),
    ("settling_s", What::SettlingTime),
];
const BUSY_CORES: &str = "busy_cores";
const SHARE: &str = "share ";
const COST_OF: &str = "cost of ";

/// Why a sample has no figure of CPU time.
const CPU_UNKNOWN: &str =
    "the hypervisor took time away, so that CPU time is not known closely enough";

impl std::str::FromStr for What {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if let Some((_, own)) = OWN.iter().find(|(name, _)| *name == text) {
            return Ok(own.clone());
        }
        let share = text.strip_prefix(SHARE);
        let Some(names) = share.or_else(|| text.strip_prefix(COST_OF)) else {
            let own: Vec<&str> = OWN.iter().map(|(name, _)| *name).collect();
            return quantity(text).map(Self::Named).map_err(|e| {
                format!(
                    "{e}, {}, {SHARE}SUBSYSTEM, {COST_OF}SUBSYSTEM",
                    own.join(", ")
                )
            });
        };
        let names: Vec<String> = names
            .split('+')
            .map(|name| name.trim().to_owned())
            .collect();
        let known = |name: &&String| subsystems().iter().any(|known| known.name == **name);
        match names.iter().find(|name| !known(name)) {
            Some(name) => Err(format!("there is no subsystem `{name}`")),
            None if share.is_some() => Ok(Self::ProfileShare(names)),
            None => Ok(Self::CostShare(names)),
        }
    }
}

impl<'de> Deserialize<'de> for What {
    fn deserialize<D: Deserializer<'de>>(input: D) -> Result<Self, D::Error> {
        String::deserialize(input)?
            .parse()
            .map_err(serde::de::Error::custom)
    }
}

impl std::fmt::Debug for What {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let own = OWN
            .iter()
            .find(|(_, own)| std::mem::discriminant(own) == std::mem::discriminant(self));
        match own {
            Some((name, _)) => f.write_str(name),
            None => f.write_str(&self.name(LoadKind::TcpStream)),
        }
    }
}

impl PartialEq for What {
    fn eq(&self, other: &Self) -> bool {
        format!("{self:?}") == format!("{other:?}")
    }
}

/// The same quantity of the client's machine.
fn of_client(name: &str) -> String {
    format!("client_{name}")
}

impl What {
    /// What it is in a run: of a local quantity that of the client's machine, if a machine was the client's alone.
    pub(super) fn in_run(&self, run: &Run) -> Self {
        let of_client_alone =
            |m: &Measurement| m.machines.iter().any(|one| one.ends == EndsOn::Client);
        let samples = run.samples.iter();
        if !self.is_local() || !samples.filter_map(Sample::measurement).any(of_client_alone) {
            return self.clone();
        }
        match self {
            Self::LocalBusyCores => {
                quantity(&of_client(BUSY_CORES)).map_or(Self::LocalBusyCores, Self::Named)
            }
            _ => Self::ClientCost,
        }
    }

    /// Is it about the client's machine alone where the ends are on two?
    pub(super) fn is_local(&self) -> bool {
        matches!(self, Self::LocalCost | Self::LocalBusyCores)
    }

    /// Its name for a load, with its unit.
    #[must_use]
    pub fn name(&self, load: LoadKind) -> String {
        match self {
            Self::Rate if load.is_stream() => "goodput_bps".to_owned(),
            Self::Rate => "transactions_per_s".to_owned(),
            Self::Cost | Self::LocalCost => assess::cost(load).to_owned(),
            Self::ClientCost => of_client(assess::cost(load)),
            Self::LocalBusyCores => BUSY_CORES.to_owned(),
            Self::Efficiency => "efficiency_bps_per_core".to_owned(),
            Self::BusyRatio => "busy_ratio".to_owned(),
            Self::SoftirqRatio => "softirq_ratio".to_owned(),
            Self::SendErrorRatio => "send_error_ratio".to_owned(),
            Self::CacheMissesPerPacket => "cache_misses_per_packet".to_owned(),
            Self::SettlingTime => "settling_s".to_owned(),
            Self::Named(quantity) => quantity.name.to_owned(),
            Self::ProfileShare(names) => format!("{} share_ratio", names.join("+")),
            Self::CostShare(names) => format!("{COST_OF}{}", names.join("+")),
        }
    }

    /// Names under which a plan may have published it.
    pub(super) fn published_names(&self, load: LoadKind) -> [String; 2] {
        let own = self.name(load);
        match self {
            // Of equal messages the ratio of costs per packet is that of costs per byte.
            Self::Cost | Self::LocalCost => [own, "cpu_ns_per_byte".to_owned()],
            Self::ClientCost => Self::LocalCost.published_names(load),
            Self::Efficiency => [own, PER_GHZ.to_owned()],
            Self::Named(q) if q.name == "packets_per_s" => [own, "goodput_bps".to_owned()],
            Self::Named(q) if q.name == of_client(BUSY_CORES) => [own, BUSY_CORES.to_owned()],
            _ => [own.clone(), own],
        }
    }

    /// The quantity of the registry that it is under a load.
    pub(super) fn registered(&self, load: LoadKind) -> Option<&'static Quantity> {
        let named = match self {
            Self::Named(quantity) => *quantity,
            Self::Rate
            | Self::Cost
            | Self::LocalCost
            | Self::LocalBusyCores
            | Self::ClientCost
            | Self::Efficiency => quantity(&self.name(load)).ok()?,
            _ => return None,
        };
        named.applies(load).then_some(named)
    }

    /// Its value in a sample.
    pub(super) fn value(
        &self,
        m: &Measurement,
        load: LoadKind,
        tolerance: CpuTolerance,
    ) -> Option<f64> {
        let whole = m.cpu.elapsed_ns * f64::from(m.cpu.cpus);
        match self {
            Self::BusyRatio => Some(m.cpu.net_ns(tolerance)? / whole),
            Self::SoftirqRatio => {
                let adds_up = (m.cpu.closure - 1.0).abs() <= assess::CLOSURE;
                adds_up.then(|| m.cpu.split.softirq_ns / whole)
            }
            Self::SendErrorRatio => share(m.send_errors, m.sent.messages),
            Self::Named(_)
            | Self::Rate
            | Self::Cost
            | Self::LocalCost
            | Self::LocalBusyCores
            | Self::ClientCost
            | Self::Efficiency => self.registered(load)?.value(m, load, tolerance),
            Self::CacheMissesPerPacket => {
                let of = |name: &str| quantity(name).ok()?.value(m, load, tolerance);
                let packets = of("packets_per_s").filter(|packets| *packets > 0.0)?;
                Some(of("client_cache_misses_per_s")? / packets)
            }
            Self::SettlingTime => assess::settling_time_s(m),
            Self::ProfileShare(_) | Self::CostShare(_) => None,
        }
    }

    /// Why it may be absent though the cell was measured.
    pub(super) fn absence(&self) -> &'static str {
        match self {
            Self::SoftirqRatio => {
                "the columns of /proc/stat do not add up, and the run took no profiles that would tell softirq time"
            }
            Self::SettlingTime => {
                "jitter did not settle within the window, or was not watched from the start of the traffic"
            }
            Self::ProfileShare(_) | Self::CostShare(_) => {
                "the run took no profiles, or too few samples in them"
            }
            Self::CacheMissesPerPacket => {
                "this machine offers no hardware counter of cache misses (PMU)"
            }
            Self::Named(q) if q.name == "queue_changes_per_flow_per_s" => {
                "changes of queue were not counted"
            }
            Self::Named(q) if q.name == "queues_in_use" => "frames were not counted by queue",
            Self::Named(q) if q.name == "server_busy_cores" => {
                "the receiver has no machine of its own whose CPU time was read; on one machine that of both ends is counted together"
            }
            Self::ClientCost => "the CPU time of the client's machine was not read closely enough",
            Self::Cost
            | Self::LocalCost
            | Self::LocalBusyCores
            | Self::Efficiency
            | Self::BusyRatio => CPU_UNKNOWN,
            Self::Named(q) if q.needs_cpu() => CPU_UNKNOWN,
            _ => "it was not measured",
        }
    }
}
