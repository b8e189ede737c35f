use crate::bench::Bench;
use crate::experiment::{Experiment, Failure, Row};
pub(crate) struct ServiceTime;
impl Experiment for ServiceTime {
    fn id(&self) -> &'static str { "V8" }
    fn title(&self) -> &'static str { "to come" }
    fn run(&self, _: &Bench) -> Result<Vec<Row>, Failure> { Ok(Vec::new()) }
}
