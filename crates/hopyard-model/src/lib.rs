//! Plain data: what the stages hand to each other and what the store keeps.
//!
//! Nothing here measures, computes or prints.

mod arrivals;
mod axes;
mod base;
mod blocks;
mod cell;
mod cell_name;
mod claims;
mod counted;
mod cpu;
mod curves;
mod datapath;
mod device_count;
mod diff;
mod endpoints;
mod environment;
mod filter_chain;
mod grouped;
mod guest;
mod hop;
mod kernels;
mod latency;
mod link;
pub mod loads;
mod machines;
mod names;
mod observation;
mod offloads;
pub mod plain;
mod profile;
mod published;
pub mod quantity;
mod queues;
mod recommendation;
mod replay;
mod result;
mod sample;
mod scheduling;
mod schema;
mod search;
mod settings;
mod settling;
mod start;
pub mod stored;
mod tcp;
mod text;
mod tracking;
mod turn;
pub mod units;
mod verdict;
mod zero_copy;

pub use arrivals::{ArrivalInterval, ArrivalSeries, Arrivals, FlowArrivals, OpenLoop, RunLengths};
pub use axes::{
    AXES, Api, Attach, Axes, Axis, ClientCpuNumber, ClientCpus, Containers, Cpus, Decides,
    DeviceOffload, DeviceOffloads, Distribution, Family, Hook, HostLink, Join, MOST_FLOWS,
    MOST_OPEN, MOST_OUTSTANDING, Napi, OffloadFlag, Pause, Placement, Rate, Routed, RulesSample,
    Ruleset, Scheduler, Segments, Setting, Steering, Switch, Trace, as_axis, axis, short_digest,
    together,
};
pub use base::Base;
pub use blocks::{Blocks, FOR_A_VERDICT, GIVEN_UP_AFTER, NotBlocks, WINDOW};
pub use cell::Cell;
pub use claims::{
    AnswerFigure, AnswerPoint, Answered, BoundPosition, CheckReport, ClaimReport, ClaimVerdict,
    ClaimsReport, ClaimsRun, FIRST_LOOK, FurtherBlocks, GradeReport, PointReport, QuestionReport,
    ReportOfClaims,
};
pub use counted::{Counted, InvalidSample, Latency, largest, plausible, scaled};
pub use cpu::{BusyCpus, CpuBounds, CpuTolerance, CpuUse, TickSplit};
pub use curves::{CurveReport, FullInterval, QuantityCurve, Saturation, StepReport};
pub use datapath::{DIRECT_SWITCH, Datapath, DatapathKind, OPEN_VSWITCH};
pub use device_count::DeviceCount;
pub use diff::{
    CellDiff, Change, DiffReport, DiffWarning, DiffWarningCode, Difference, IntervalFrom, LeftOut,
    MeasuredIn, QuantityDiff,
};
pub use endpoints::{
    EndpointInterface, EndpointMachine, EndpointUsed, EndpointsAsked, EndpointsUsed,
};
pub use environment::{CpuAccounting, Environment, SplitCpus};
pub use filter_chain::{FilterChain, Sees};
pub use grouped::{distinct, grouped};
pub use guest::GuestUsed;
pub use hop::Hop;
pub use kernels::{KERNELS_SCHEMA, KernelFinding, KernelRun, KernelsReport, KernelsRow, Works};
pub use latency::LatencyReport;
pub use link::{FlowControl, LinkEnd};
pub use loads::LoadKind;
pub use machines::{ClocksCompared, EndsOn, MachineUse};
pub use names::{AxisError, Peer, UnknownName};
pub use observation::Observation;
pub use offloads::{
    FixedOffload, OffloadChange, OffloadCombination, OffloadContrast, OffloadFinding, OffloadNow,
    OffloadReport, OffloadSurvey, listed as listed_offloads,
};
pub use profile::{
    BadProfile, FunctionCost, ProfileDifference, ProfileReport, ProfileWindow, Stack,
    SubsystemCost, SubsystemDifference,
};
pub use published::{Published, PublishedFigure};
pub use queues::{QueueChanges, QueueFrames};
pub use recommendation::{Candidate, Choice, Feature, NoCandidate, Recommendation};
pub use replay::{Datagram, NotATrace, Replay, TraceSummary};
pub use result::{
    CellReport, CellStatus, ClocksReport, DeviceOffloadsSeen, DeviceSeen, MachineOverhead,
    RunReport, RunSummary, TurnsReport, WayReport,
};
pub use sample::{Arrived, Direction, Measurement, OffloadState, Outcome, PathProof, Sample};
pub use scheduling::Scheduling;
pub use schema::named_schema;
pub use search::{SearchFor, Searched};
pub use settings::{Settings, SettingsReport, SwitchedBetween};
pub use settling::{SeriesReport, Settling};
pub use start::Start;
pub use tcp::TcpSummary;
pub use tracking::{Connections, TrackingCounts, Treatment};
pub use turn::{Disturbance, Turn, has_quiet_turns, kept, takes_again, takes_another};
pub use verdict::{Gate, VerdictReport, Warning, WarningCode};
pub use zero_copy::ZeroCopied;
