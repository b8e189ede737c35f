//! The figure of a run that corresponds to a printed one, in the unit of the report; or why there is none.

use super::cells::Cells;
use super::evidence::{Answer, Evidence, Value, scaled};
use super::file::Row;
use super::spec::{Figure, Here, Setting, Term};
use crate::assess::PER_GHZ;
use crate::model::axis;
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
        let found = cell.estimates.get(&figure.of);
        let estimate = found.ok_or_else(|| self.not_measured(&figure.of))?;
        let term = |term: &Term| match term {
            Term::Cpus => Some(f64::from(self.report.run.environment.cpus)),
            Term::Message => cell.axes.message_size_bytes.map(f64::from),
            Term::Seconds => row.seconds,
        };
        let product = |terms: &[Term]| terms.iter().map(term).product::<Option<f64>>();
        let factor = product(&figure.times).zip(product(&figure.over));
        let (times, over) = factor.ok_or_else(|| self.not_measured(&figure.of))?;
        Ok(scaled(estimate, figure.factor * times / over))
    }

    fn not_measured(&self, name: &str) -> String {
        if name == PER_GHZ && self.report.run.environment.cpu_hz.is_none() {
            return "the clock rate of this machine's CPUs is not known".to_owned();
        }
        format!("the run did not measure {}", quantity::words(name))
    }
}
