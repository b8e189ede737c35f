//! Why there is no measurement, and whether the host, the path or the user is the reason.

use crate::load::{DATAGRAM_PATIENCE, remote};
use crate::model::LoadKind;
use crate::{lab, meter, settings};

/// How many requests were given up. Over a path that takes longer than they wait, none of them may be lost.
fn given_up(timeouts: u64) -> String {
    match timeouts {
        0 => String::new(),
        _ => format!(
            "; {timeouts} requests had no answer within {DATAGRAM_PATIENCE:?} and were given up"
        ),
    }
}

/// Why there is no measurement.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The lab cannot be built or used.
    #[error(transparent)]
    Lab(#[from] lab::Error),
    /// A worker failed, died or does not answer.
    #[error(transparent)]
    Worker(#[from] remote::Error),
    /// CPUs cannot be kept awake here.
    #[error(transparent)]
    Awake(meter::Error),
    /// CPU time or counters cannot be read.
    #[error(transparent)]
    Meter(#[from] meter::Error),
    /// A namespace, device or process: the kernel refused an operation on it.
    #[error(transparent)]
    Net(#[from] hopyard_net::Error),
    /// Counts of several processes that cannot be merged.
    #[error("cannot put together what the clients counted: {0}")]
    Merge(String),
    /// The trace of `udp_trace` cannot be replayed.
    #[error(transparent)]
    Trace(#[from] crate::plan::TraceError),
    /// The clock cannot be read or waited for.
    #[error("cannot wait for the window")]
    Clock(#[source] std::io::Error),
    /// Profiling failed.
    #[error(transparent)]
    Profile(#[from] crate::profile::Error),
    /// The receiver got nothing.
    #[error(
        "the receiver got nothing in the whole window, though the connection stood; \
         {drops} packets were dropped by devices of the path or found no room at the receiver{}",
        given_up(*timeouts)
    )]
    Nothing {
        /// Drops that devices and the receiver's sockets counted.
        drops: u64,
        /// Requests in datagrams that were given up.
        timeouts: u64,
        /// Whether other processes and the hypervisor used as much CPU time as one CPU has in half a window. Then an
        /// end may have had none.
        was_taken: bool,
    },
    /// Nothing arrived, because the hub's connection table is full.
    #[error(
        "the hub's table of connections is full ({entries} of {limit} entries, {dropped} packets dropped): raise \
         net.netfilter.nf_conntrack_max, or set a smaller `conntrack`"
    )]
    TableFull {
        /// Connections in the table.
        entries: u64,
        /// The most there may be.
        limit: u64,
        /// Packets dropped because the table was full, since the lab was built.
        dropped: u64,
        /// The failure that was seen.
        #[source]
        source: Box<Error>,
    },
    /// With the user's packet filter rules no traffic passed.
    #[error(
        "{load} over `{path}` failed when it was tried with the rules of {rules}: {seen}; if a rule drops it, let the \
         lab's addresses pass (198.18.0.0/15, 2001:2::/48), or leave `ruleset` out"
    )]
    Blocked {
        path: String,
        load: LoadKind,
        /// The file, as the axis prints it.
        rules: String,
        /// Packets in each chain, as text for people.
        seen: String,
        /// The failure that was seen.
        #[source]
        source: Box<Error>,
    },
    /// The machine missed the window, which says nothing about the path.
    #[error("the window was missed: {0}; measure on a quieter machine, or with a longer --window")]
    Missed(String),
    /// A search found no load that meets its goal.
    #[error(
        "more than {:.4} % were lost even at {least_per_s:.0} datagrams a second, the least that a search tries: no rate \
         to be found",
        loss_ratio * 100.0
    )]
    NoLowerBound {
        /// The least load tried.
        least_per_s: f64,
        /// Largest share of datagrams that may be lost, 0 to 1.
        loss_ratio: f64,
    },
    /// The datagrams that were due are not known.
    #[error(
        "the two ends have no common clock, by which a search tells what was due: choose another path"
    )]
    NoCommonClock,
    /// A profile of another machine than this.
    #[error(
        "an end is on another machine, whose CPUs cannot be sampled from here: leave --profile out"
    )]
    ProfileElsewhere,
    /// A setting of this host.
    #[error(transparent)]
    Setting(#[from] settings::Error),
    /// The user wants to stop.
    #[error("interrupted")]
    Interrupted,
}

impl Error {
    /// Whether it will be the same every time, because this host lacks something.
    #[must_use]
    pub fn is_unsupported(&self) -> bool {
        matches!(self, Self::Lab(error) if error.is_unsupported())
    }

    /// Whether this host cannot do what was asked, as opposed to a malfunction.
    #[must_use]
    pub fn is_request(&self) -> bool {
        match self {
            Self::Lab(_)
            | Self::Profile(_)
            | Self::ProfileElsewhere
            | Self::Setting(_)
            | Self::Awake(_)
            | Self::Blocked { .. } => true,
            // Missing privilege or a kernel feature is not a malfunction.
            Self::Net(net) => {
                net.is_unsupported() || matches!(net, hopyard_net::Error::Denied { .. })
            }
            _ => false,
        }
    }

    /// Whether the machine may be the cause rather than the path, so that another window may succeed.
    #[must_use]
    pub fn is_missed(&self) -> bool {
        matches!(
            self,
            Self::Missed(_)
                | Self::Nothing {
                    was_taken: true,
                    ..
                }
        )
    }

    /// Whether the user asked to stop.
    #[must_use]
    pub fn is_interrupt(&self) -> bool {
        use lab::Error::{Guest, Worker};
        matches!(
            self,
            Self::Interrupted
                | Self::Setting(settings::Error::Interrupted)
                | Self::Worker(remote::Error::Interrupted)
                | Self::Lab(Worker(remote::Error::Interrupted))
                | Self::Lab(Guest(crate::guest::Error::Interrupted))
        )
    }
}
