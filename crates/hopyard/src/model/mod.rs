//! The words of the product as plain data: what the stages hand to each other and the store keeps.
//!
//! Nothing here measures, computes or prints.

mod arrivals;
mod axes;
mod base;
mod cell;
mod datapath;
mod diff;
mod environment;
mod guest;
mod offloads;
mod profile;
mod published;
mod result;
mod sample;
mod scheduling;

pub use arrivals::{Arrivals, FlowArrivals, RunLengths};
pub use axes::{
    AXES, Attach, Axes, Axis, AxisError, Containers, Cpus, Distribution, Family, MOST_FLOWS,
    OffloadFlag, Placement, Rate, Scheduler, Segments, Steering, Switch, axis,
};
pub use base::Base;
pub use cell::{Cell, LoadKind, Peer, UnknownName};
pub use datapath::{Datapath, DatapathKind, OPEN_VSWITCH};
pub use diff::{
    CellDiff, Change, DiffReport, DiffWarning, DiffWarningCode, Difference, Gate, LeftOut,
    MeasuredIn, Pairing, QuantityDiff,
};
pub use environment::{CpuAccounting, Environment};
pub use guest::GuestUsed;
pub use offloads::{
    FixedOffload, OffloadChange, OffloadCombination, OffloadContrast, OffloadFinding,
    OffloadReport, OffloadSurvey, listed as listed_offloads,
};
pub use profile::{
    BadProfile, FunctionCost, ProfileDifference, ProfileReport, ProfileWindow, Stack,
    SubsystemCost, SubsystemDifference,
};
pub use published::{Published, PublishedFigure};
pub use result::{
    CellReport, CellStatus, DeviceSeen, Elsewhere, RunReport, RunSummary, VerdictReport, Warning,
    WarningCode, WayReport,
};
pub use sample::{
    Absurd, Arrived, Counted, CpuUse, DeviceCount, Direction, Latency, Measurement, OffloadState,
    Outcome, QueueChanges, Sample, TcpSummary, TickSplit, Way,
};
pub(crate) use sample::{largest, plausible};
pub use scheduling::Scheduling;
