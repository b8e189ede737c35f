use crate::bench::Bench;
use crate::experiment::{Experiment, Failure, Row};
pub(crate) struct ForeignBurn;
impl Experiment for ForeignBurn {
    fn id(&self) -> &'static str { "V4" }
    fn title(&self) -> &'static str { "to come" }
    fn run(&self, _: &Bench) -> Result<Vec<Row>, Failure> { Ok(Vec::new()) }
}
