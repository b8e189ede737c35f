//! One profile: a fresh lab under the same load, its CPUs sampled for one window.

use std::time::Duration;

use super::elsewhere::is_other_machine;
use super::ends::Ends;
use super::missed::ends_were_there;
use super::own_lab::in_own_lab;
use super::{Error, Sampler, wait_until};
use crate::lab::Lab;
use crate::load::protocol::Timetable;
use crate::load::remote::Remote;
use crate::model::{Cell, ProfileWindow};
use crate::profile::fold::{Span, fold};
use crate::profile::{Profiler, Symbols, Taken, window};

impl Sampler {
    /// How long one profile takes, roughly.
    #[must_use]
    pub(crate) fn profile_estimate(&self, cell: &Cell) -> Duration {
        /// Reading and sorting the kernel's symbols.
        const SYMBOLS: Duration = Duration::from_millis(100);
        Self::around(cell) + self.traffic(cell, self.profile_window()) + SYMBOLS
    }

    fn profile_window(&self) -> Duration {
        self.profile_window.unwrap_or_else(|| window(self.window))
    }

    /// Samples a cell's call chains in a lab of its own.
    ///
    /// The caller fills in block, attempt and cell of the result.
    ///
    /// # Errors
    /// As [`Sampler::measure`], and if CPUs cannot be sampled, or an end is on another machine.
    pub fn profile(&self, cell: &Cell) -> Result<ProfileWindow, Error> {
        in_own_lab(cell, self.endpoints.as_ref(), |lab| {
            if is_other_machine(lab) {
                return Err(Error::ProfileElsewhere);
            }
            let span = self.profile_window();
            let profiler = Profiler::open(self.meter.cpus(), span)?;
            let mut ends = self.ends(lab, cell)?;
            let distance = ends.compare_clocks(lab.has_one_clock())?;
            let timetable = distance.allow_for(self.timetable(cell, span));
            self.sampled(profiler, lab, &mut ends, timetable)
                .map_err(|error| ends.cause_of(error))
        })
    }

    /// The workers still exist at the end, so that their processes can be identified; so does the lab with its BPF
    /// programs.
    fn sampled(
        &self,
        mut profiler: Profiler,
        lab: &Lab,
        ends: &mut Ends,
        timetable: Timetable,
    ) -> Result<ProfileWindow, Error> {
        ends.run(timetable)?;
        wait_until(timetable.open_ns)?;
        profiler.start()?;
        wait_until(timetable.close_ns)?;
        profiler.stop()?;
        let (clients, server) = ends.done()?;
        ends_were_there(&clients, &server, ends.is_crowded, timetable.window_ns())?;
        let taken: Taken = profiler.take();
        let span = Span {
            open_ns: timetable.open_ns,
            close_ns: timetable.close_ns,
            cpus: u32::try_from(self.meter.cpus().len()).unwrap_or(u32::MAX),
        };
        // The command that reaches an endpoint may start the worker elsewhere, as those of containers do.
        let clients = ends.clients.iter().flat_map(Remote::pids);
        let mut roots: Vec<_> = clients.map(|pid| (pid, "client")).collect();
        roots.extend(ends.server.pids().map(|pid| (pid, "server")));
        roots.extend(lab.daemons().into_iter().map(|pid| (pid, "switch")));
        let keepers = self.meter.keepers();
        Ok(fold(&taken, span, (&roots, &keepers), &Symbols::read()?))
    }
}
