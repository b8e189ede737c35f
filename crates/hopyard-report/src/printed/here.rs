//! The figure of a run that corresponds to a printed one, in the unit of the report; or why there is none.

use super::cells::Cells;
use super::evidence::{Answer, Evidence, Value, scaled};
use super::file::Row;
use super::spec::{End, Figure, Here, Setting, Term};
use crate::assess::PER_GHZ;
use crate::model::{CellReport, axis};
use crate::number::leading;
use crate::quantity;
use crate::stats::Estimate;

impl Evidence<'_> {
    /// The figure for a place of a printed table.
    pub(super) fn value(&self, here: &Here, wanted: &Cells, row: &Row) -> Answer<Value> {
        match here {
            Here::Missing(why) => Err(why.clone()),
            Here::Window => Ok(Value::Set(self.report.run.window_s)),
            Here::Axis(setting) => self.setting(setting, wanted).map(Value::Set),
            Here::Figure(figure) => self.figure(figure, wanted, row).map(Value::Measured),
            Here::Curve(on) => self.on_curve(*on, wanted),
            Here::Excess(of) => self.excess(of, wanted).map(Value::Measured),
            Here::Settled => self.settled(wanted).map(Value::Measured),
            Here::Samples(_) => Err("it is a function of a profile".to_owned()),
        }
    }

    fn setting(&self, setting: &Setting, wanted: &Cells) -> Answer<f64> {
        let cell = self.cell(wanted)?;
        let shown = axis(&setting.name)
            .ok()
            .and_then(|axis| (axis.show)(&cell.axes));
        let number = shown.as_deref().and_then(leading);
        number.ok_or_else(|| {
            let otherwise = setting.otherwise.clone();
            otherwise.unwrap_or_else(|| format!("{} is left to the kernel", setting.name))
        })
    }

    fn figure(&self, figure: &Figure, wanted: &Cells, row: &Row) -> Answer<Estimate> {
        let cell = self.cell(wanted)?;
        let (name, cpus) = self.of_end(figure, cell)?;
        let found = cell.estimates.get(&name);
        let estimate = found.ok_or_else(|| self.not_measured(&name))?;
        let term = |term: &Term| match term {
            Term::Cpus => Some(f64::from(cpus?)),
            Term::Message => cell.axes.message_size_bytes.map(f64::from),
            Term::Seconds => row.seconds,
        };
        let product = |terms: &[Term]| terms.iter().map(term).product::<Option<f64>>();
        let factor = product(&figure.times).zip(product(&figure.over));
        let (times, over) = factor.ok_or_else(|| self.not_measured(&name))?;
        Ok(scaled(estimate, figure.factor * times / over))
    }

    /// The quantity of a figure, and the CPUs of the machine that it is of.
    fn of_end(&self, figure: &Figure, cell: &CellReport) -> Answer<(String, Option<u32>)> {
        let whole = (figure.of.clone(), Some(self.report.run.environment.cpus));
        let ends = cell.endpoints.as_ref();
        let apart = ends.filter(|ends| ends.are_one_machine == Some(false));
        let (end, name) = match (figure.end, apart) {
            (None, _) | (Some(End::Client), None) => return Ok(whole),
            (Some(End::Server), None) => {
                return Err("in the local column, which has both ends and all between".to_owned());
            }
            (Some(End::Client), Some(ends)) => (&ends.client, format!("client_{}", figure.of)),
            (Some(End::Server), Some(ends)) => (&ends.server, format!("server_{}", figure.of)),
        };
        Ok((name, end.machine.as_ref().map(|machine| machine.cpus)))
    }

    fn not_measured(&self, name: &str) -> String {
        if name == PER_GHZ && self.report.run.environment.cpu_hz.is_none() {
            return "the clock rate of this machine's CPUs is not known".to_owned();
        }
        format!("the run did not measure {}", quantity::words(name))
    }
}
