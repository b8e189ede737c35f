//! Work of known cost on every packet: a tc program that spends a given time, and the kernel's own record of how much
//! it was.

use std::os::fd::OwnedFd;

use aya::programs::tc::{SchedClassifierLink, TcAttachOptions};
use aya::programs::{LinkOrder, SchedClassifier, TcAttachType};
use aya::sys::{Stats, enable_stats};
use aya::util::KernelVersion;
use aya::{Ebpf, EbpfLoader, include_bytes_aligned};
use hopyard::lab::{self, Endpoint, Lab, Topology};
use hopyard::measure::{QuietCores, Sampler};
use hopyard::model::{Cell, Measurement};

use crate::bench::on_its_way;
use crate::experiment::Failure;

/// The compiled program.
static OBJECT: &[u8] = include_bytes_aligned!(concat!(env!("OUT_DIR"), "/burn.bpf.o"));
const PROGRAM: &str = "hopyard_burn";

/// The program, loaded once. It spends the same time on every packet wherever it is attached.
#[derive(Debug)]
pub(crate) struct Burn {
    object: Ebpf,
    /// The kernel keeps its record only while this is open. It reads its clock before and after each run, whatever the
    /// program spends.
    _account: OwnedFd,
}

/// The ends whose device runs the program on every packet it sends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ends {
    Client,
    Server,
    Both,
}

impl Ends {
    /// The endpoints of a lab.
    fn of(self, lab: &Lab) -> Vec<&Endpoint> {
        let Topology { client, server, .. } = &lab.topology;
        match self {
            Self::Client => vec![client],
            Self::Server => vec![server],
            Self::Both => vec![client, server],
        }
    }
}

/// The kernel's record of a program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Account {
    runs: u64,
    ns: u64,
}

impl Account {
    /// ns per run between two readings.
    pub(crate) fn per_run_since(self, start: Self) -> f64 {
        (self.ns - start.ns) as f64 / (self.runs - start.runs).max(1) as f64
    }
}

impl Burn {
    /// Loads the program, which spends `burn_ns` per packet, plus its own entry and clock.
    pub(crate) fn load(burn_ns: u64) -> Result<Self, Failure> {
        let kernel =
            KernelVersion::current().map_err(Failure::bpf("read the version of this kernel"))?;
        if kernel < KernelVersion::new(6, 6, 0) {
            return Err(Failure::OldKernel {
                feature: "tcx hooks",
                needed: "6.6",
            });
        }
        let mut object = EbpfLoader::new()
            .override_global("burn_ns", &burn_ns, true)
            .load(OBJECT)
            .map_err(Failure::bpf("load the program of known cost"))?;
        program(&mut object)?
            .load()
            .map_err(Failure::bpf("load the program of known cost"))?;
        Ok(Self {
            object,
            _account: enable_stats(Stats::RunTime)
                .map_err(Failure::bpf("have the kernel keep account of programs"))?,
        })
    }

    /// Measures a cell whose `ends` run the program on every packet they send. Also returns the time of a run in ns,
    /// over the whole sample.
    pub(crate) fn measure(
        &mut self,
        sampler: &Sampler,
        cell: &Cell,
        ends: Ends,
        quiet: QuietCores,
    ) -> Result<(Measurement, f64), Failure> {
        let lab = Lab::build(lab::path(&cell.path)?, cell.peer, &cell.axes)?;
        let before = self.account()?;
        let _attached = self.attach(&lab, ends)?;
        let measured = on_its_way(sampler.measure_in(&lab, cell, quiet)?)?;
        Ok((measured, self.account()?.per_run_since(before)))
    }

    /// Makes these ends of a lab run the program on every packet they send, until the links are dropped or the lab's
    /// devices end.
    pub(crate) fn attach(
        &mut self,
        lab: &Lab,
        ends: Ends,
    ) -> Result<Vec<SchedClassifierLink>, Failure> {
        let ends = ends.of(lab).into_iter();
        ends.map(|end| attach(&mut self.object, lab, end)).collect()
    }

    /// The record so far.
    pub(crate) fn account(&mut self) -> Result<Account, Failure> {
        let info = program(&mut self.object)?
            .info()
            .map_err(Failure::bpf("read the account of the program"))?;
        Ok(Account {
            runs: info.run_count(),
            ns: u64::try_from(info.run_time().as_nanos()).unwrap_or(u64::MAX),
        })
    }
}

/// Makes the device of an endpoint run the program on every packet it sends.
fn attach(object: &mut Ebpf, lab: &Lab, end: &Endpoint) -> Result<SchedClassifierLink, Failure> {
    let program = program(object)?;
    let order = TcAttachOptions::TcxOrder(LinkOrder::default());
    lab.space(end.role)?
        .handle
        .ns()
        .run(|| {
            program
                .attach_with_options(&end.device, TcAttachType::Egress, order)
                .and_then(|id| program.take_link(id))
        })?
        .map_err(Failure::bpf("attach the program of known cost by tcx"))
}

fn program(object: &mut Ebpf) -> Result<&mut SchedClassifier, Failure> {
    object
        .program_mut(PROGRAM)
        .ok_or(Failure::NoFigure("an object without its program"))?
        .try_into()
        .map_err(Failure::bpf("find the program of known cost"))
}
