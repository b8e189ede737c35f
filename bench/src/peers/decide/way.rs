//! The four methods to answer a question.

use std::fmt;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use hopyard_bench::Scheduled;
use hopyard_net::cpu::Policy;
use serde::Serialize;

use super::judge::{self, Answer, Answers};
use super::loops::{self, Stopping};
use super::program::Program;
use super::question::{Cell, Extra, Question, SLOWDOWN, Truth};
use super::slow::Slow;
use crate::error::Result;
use crate::tools::Tool;

/// A method.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, clap::ValueEnum)]
#[serde(rename_all = "lowercase")]
pub(super) enum Way {
    /// The release before turns.
    Windows,
    /// Loops of iperf3 or sockperf, judged as benchstat does.
    Benchstat,
    /// Loops that end as netperf's do.
    Netperf,
    /// This release.
    #[value(skip)]
    Turns,
}

impl Way {
    /// What turns are compared with.
    pub(super) const OTHERS: [Self; 3] = [Self::Windows, Self::Benchstat, Self::Netperf];

    /// Whether hopyard makes the load.
    pub(super) fn is_hopyard(self) -> bool {
        matches!(self, Self::Windows | Self::Turns)
    }
}

impl fmt::Display for Way {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Windows => "windows",
            Self::Benchstat => "benchstat",
            Self::Netperf => "netperf",
            Self::Turns => "turns",
        })
    }
}

/// Everything that the methods need.
#[derive(Debug)]
pub(super) struct Ways {
    pub(super) windows: Program,
    pub(super) turns: Program,
    /// Time for a cell of a table.
    pub(super) per_cell: Duration,
    /// Durations of transactions that will be slowed; empty before they were measured.
    pub(super) transactions: Vec<Transaction>,
}

/// Duration of a transaction of a question's base on the machine as it is, ns.
#[derive(Debug, Clone, Serialize)]
pub(super) struct Transaction {
    pub(super) question: &'static str,
    pub(super) hopyard_ns: f64,
    pub(super) peer: Tool,
    pub(super) peer_ns: f64,
}

/// One comparison.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(super) struct Told {
    pub(super) cell: Cell,
    pub(super) is_slowed: bool,
    pub(super) truth: Option<Truth>,
    #[serde(flatten)]
    pub(super) answer: Answer,
}

/// A table's answers with the time they took, and what was not measured.
#[derive(Debug)]
pub(super) struct Asked {
    pub(super) seconds: f64,
    pub(super) told: Result<(Vec<Told>, Option<String>)>,
}

impl Ways {
    /// The time for a table.
    pub(super) fn limit(&self, question: &Question) -> Duration {
        let cells = u32::try_from(question.cells().len()).unwrap_or(u32::MAX);
        self.per_cell * cells
    }

    /// Measures the durations of transactions that will be slowed.
    pub(super) fn prepare(&mut self, questions: &[&'static Question]) -> Result<()> {
        for question in questions.iter().filter(|q| q.slowed.is_some()) {
            let _batch = Scheduled::new(Policy::Batch)?;
            self.transactions.push(Transaction {
                question: question.name,
                hopyard_ns: self.turns.transaction_ns(question)?,
                peer: question.tool,
                peer_ns: loops::transaction_ns(question)?,
            });
        }
        Ok(())
    }

    /// Measures a question.
    pub(super) fn ask(&self, way: Way, question: &Question) -> Result<Asked> {
        let _batch = question
            .slowed
            .map(|_| Scheduled::new(Policy::Batch))
            .transpose()?;
        let slowed = self.slowed(way, question);
        let slow = slowed
            .map(|slowed| Slow::attach(slowed.length, slowed.burn_ns()))
            .transpose()?;
        let began = Instant::now();
        let answers = self.answers(way, question);
        let seconds = began.elapsed().as_secs_f64();
        let told = answers.and_then(|answers| {
            let extra = match (slowed, slow) {
                (Some(slowed), Some(slow)) => Some(slowed.extra(slow.per_packet_ns()?)),
                _ => None,
            };
            Ok((told(question, answers.all, extra), answers.failed))
        });
        Ok(Asked { seconds, told })
    }

    fn answers(&self, way: Way, question: &Question) -> Result<Answers> {
        let limit = self.limit(question);
        let judged = |stopping, judge: fn(&[f64], &[f64]) -> Answer| -> Result<Answers> {
            let all = loops::figures(question, stopping, limit)?;
            let others = all.iter().skip(1);
            Ok(Answers {
                all: others.map(|other| judge(&all[0], other)).collect(),
                failed: None,
            })
        };
        match way {
            Way::Windows => self.windows.ask(question, limit),
            Way::Turns => self.turns.ask(question, limit),
            Way::Benchstat => judged(Stopping::Benchstat, judge::benchstat),
            Way::Netperf => judged(Stopping::Netperf, judge::netperf),
        }
    }

    fn slowed(&self, way: Way, question: &Question) -> Option<Slowed> {
        let transaction = self
            .transactions
            .iter()
            .find(|transaction| transaction.question == question.name)?;
        // For hopyard only the request has the size of a slowed message; for sockperf the answer has it too.
        let (transaction_ns, packets) = if way.is_hopyard() {
            (transaction.hopyard_ns, 1.0)
        } else {
            (transaction.peer_ns, 2.0)
        };
        Some(Slowed {
            length: question.slow_length()?,
            transaction_ns,
            packets,
        })
    }
}

/// How packets are slowed for one method.
#[derive(Debug, Clone, Copy)]
struct Slowed {
    length: u32,
    transaction_ns: f64,
    /// Number of slowed packets in a transaction.
    packets: f64,
}

impl Slowed {
    fn burn_ns(self) -> u64 {
        (SLOWDOWN * self.transaction_ns / self.packets) as u64
    }

    fn extra(self, per_packet_ns: f64) -> Extra {
        Extra {
            transaction_ns: self.transaction_ns,
            extra_ns: per_packet_ns * self.packets,
        }
    }
}

fn told(question: &Question, answers: Vec<Answer>, extra: Option<Extra>) -> Vec<Told> {
    let others = question.cells().into_iter().skip(1);
    others
        .zip(answers)
        .map(|(cell, answer)| Told {
            cell,
            is_slowed: question.slowed == Some(cell.size),
            truth: question.truth(cell, extra),
            answer,
        })
        .collect()
}

/// `hopyard` from the directory of this program, with turns, until differences of the margin could be seen.
pub(super) fn turns(path: PathBuf) -> Program {
    Program {
        path,
        options: &["--decide=2%"],
    }
}

/// The program before turns; without it the current one with `--turns off`.
pub(super) fn windows(old: Option<PathBuf>, own: PathBuf) -> Program {
    match old {
        Some(path) => Program { path, options: &[] },
        None => Program {
            path: own,
            options: &["--turns=off"],
        },
    }
}
