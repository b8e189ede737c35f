//! The host's side of a run inside a guest: boots it, gives it the plan, keeps what it measures.

use std::path::{Path, PathBuf};
use std::time::Duration;

use super::init::Job;
use super::machine::Machine;
use super::protocol::{Order, Said};
use super::qemu::{self, Guest, MEMORY_MIB};
use super::{Accelerator, Contents, Error, Initramfs, Kernel, Result};
use crate::run::Observer;
use crate::store::{End, Header, Record, Run, Writer};

/// Building every lab once takes seconds; emulated, with Open vSwitch, some more.
const PREPARING: Duration = Duration::from_secs(300);
/// Around a sample: labs come and go, and an emulated CPU is slow.
const AROUND: Duration = Duration::from_secs(60);

/// What every guest of a request boots with.
#[derive(Debug)]
pub struct Host {
    kernel: Kernel,
    append: String,
    accelerator: Option<Accelerator>,
    cpus: usize,
}

impl Host {
    /// Guests of so many CPUs with a kernel, further words for it, and an accelerator (whichever works, if nobody says).
    ///
    /// # Errors
    /// There is no QEMU.
    pub fn new(
        kernel: Kernel,
        append: &str,
        accelerator: Option<Accelerator>,
        cpus: usize,
    ) -> Result<Self> {
        qemu::program()?;
        Ok(Self {
            kernel,
            append: append.to_owned(),
            accelerator,
            cpus,
        })
    }
}

/// What came of a run in a guest.
#[derive(Debug)]
pub struct Carried {
    /// What was stored.
    pub run: Run,
    /// Where.
    pub directory: PathBuf,
    /// What ended it early, if something did.
    pub failure: Option<Error>,
}

/// Boots a guest and has it carry out a plan. `place` chooses the run's directory.
///
/// # Errors
/// It cannot be booted, or cannot carry out the plan: nothing was measured, nothing is left behind.
pub fn carry_out(
    order: &Order,
    host: &Host,
    place: impl FnOnce(&Header) -> PathBuf,
    observer: &mut dyn Observer,
) -> Result<Carried> {
    let own = std::env::current_exe().map_err(|source| Error::Read {
        file: "/proc/self/exe".into(),
        source,
    })?;
    let initramfs = Initramfs::build(&host.kernel, &own, Contents::Paths)?;
    let guest = Guest {
        kernel: &host.kernel,
        initramfs: &initramfs,
        cpus: host.cpus,
        memory_mib: MEMORY_MIB,
        append: &host.append,
        job: vec![Job::Runner.word().to_owned()],
        devices: Vec::new(),
    };
    let (mut machine, greeting) = Machine::boot(&guest, host.accelerator)?;
    if !matches!(greeting, Said::Hello { .. }) {
        return Err(out_of_turn("greet", &greeting));
    }
    observer.note(&format!(
        "the plan runs in a guest with Linux {} and {} CPUs, {}",
        host.kernel.release,
        host.cpus,
        machine.accelerator.described()
    ));
    machine.tell(order, "take the plan")?;
    let header = prepared(&mut machine, observer)?;
    let directory = place(&header);
    let mut keeper = Keeper::new(header, &directory)?;
    let failure = keeper.keep(&mut machine, observer).err();
    observer.finished();
    let interrupted = matches!(failure, Some(Error::Interrupted));
    if interrupted {
        keeper.finish(End::Interrupted)?;
    }
    Ok(Carried {
        run: keeper.run,
        directory,
        failure: failure.filter(|_| !interrupted),
    })
}

fn prepared(machine: &mut Machine<Said>, observer: &mut dyn Observer) -> Result<Header> {
    loop {
        match machine.hear("prepare the plan", PREPARING)? {
            Said::Prepared(header) => return Ok(*header),
            Said::Note { text } => observer.note(&text),
            other => return Err(out_of_turn("prepare the plan", &other)),
        }
    }
}

/// An answer that does not fit, or a refusal.
fn out_of_turn(doing: &'static str, said: &Said) -> Error {
    match said {
        Said::Refused { message, request } => Error::Refused {
            message: message.clone(),
            request: *request,
        },
        other => Error::OutOfTurn {
            doing,
            answer: format!("{other:?}"),
        },
    }
}

/// Writes down what the guest says, line by line.
struct Keeper {
    writer: Writer,
    run: Run,
}

impl Keeper {
    fn new(header: Header, directory: &Path) -> Result<Self> {
        Ok(Self {
            writer: Writer::create(directory, &header)?,
            run: Run {
                header,
                samples: Vec::new(),
                profiles: Vec::new(),
                end: None,
            },
        })
    }

    /// To the end of the run.
    fn keep(&mut self, machine: &mut Machine<Said>, observer: &mut dyn Observer) -> Result<()> {
        const DOING: &str = "measure";
        let header = &self.run.header;
        let sample = Duration::from_nanos(header.window_ns.saturating_add(header.warm_up_ns));
        let patience = AROUND + sample * 20;
        loop {
            match machine.hear(DOING, patience)? {
                Said::Planned {
                    cells,
                    blocks,
                    block_ms,
                } => observer.planned(cells, blocks, Duration::from_millis(block_ms)),
                Said::Measuring {
                    block,
                    done,
                    of,
                    cell,
                } => observer.measuring(block, done, of, &cell),
                Said::Sample(sample) => {
                    self.writer.append(&sample)?;
                    self.run.samples.push(*sample);
                }
                Said::Profile(profile) => {
                    self.writer.append_profile(&profile)?;
                    self.run.profiles.push(*profile);
                }
                Said::Failed { cell, cause } => observer.failed(&cell, &cause),
                Said::Note { text } => observer.note(&text),
                Said::Ended { end } => return self.finish(end),
                other => return Err(out_of_turn(DOING, &other)),
            }
        }
    }

    fn finish(&mut self, end: End) -> Result<()> {
        self.writer.finish(end)?;
        self.run.end = Some(end);
        Ok(())
    }
}
