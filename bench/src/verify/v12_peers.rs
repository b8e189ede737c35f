use crate::bench::Bench;
use crate::experiment::{Experiment, Failure, Row};
pub(crate) struct Peers;
impl Experiment for Peers {
    fn id(&self) -> &'static str { "V12" }
    fn title(&self) -> &'static str { "to come" }
    fn run(&self, _: &Bench) -> Result<Vec<Row>, Failure> { Ok(Vec::new()) }
}
