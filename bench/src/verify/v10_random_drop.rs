use crate::bench::Bench;
use crate::experiment::{Experiment, Failure, Row};
pub(crate) struct RandomDrop;
impl Experiment for RandomDrop {
    fn id(&self) -> &'static str { "V10" }
    fn title(&self) -> &'static str { "to come" }
    fn run(&self, _: &Bench) -> Result<Vec<Row>, Failure> { Ok(Vec::new()) }
}
