//! A run inside a guest. This is the host's side: it boots the guest, sends it the plan, and stores its samples.
//! [`runner`] is the guest's side, and [`protocol`] the messages between them.

pub mod protocol;
pub mod runner;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use protocol::{Deeds, Order, Said, Tried};

use super::Observer;
use crate::guest::{
    self, Accelerator, Contents, Guest, Initramfs, Job, Kernel, MEMORY_MIB, Machine, qemu_program,
};
use crate::lab;
use crate::load::lines;
use crate::model::{Blocks, Cell};
use crate::plan::carried;
use crate::store::{self, End, Header, Known, Record, Run, Writer, check_header, check_id};

/// Time for building every lab once: seconds, and more if emulated and with Open vSwitch.
const PREPARING: Duration = Duration::from_secs(300);
/// Time besides a sample: labs come and go, and an emulated CPU is slow.
const AROUND: Duration = Duration::from_secs(60);
/// How many times longer a block takes where each turn is disturbed and taken again.
const DISTURBED: u32 = 3;

/// The guest's activity after it prepared the plan, in error messages.
const DOING: &str = "measure";
/// An upper limit: nobody plans longer blocks.
const LONGEST_BLOCK: Duration = Duration::from_secs(365 * 24 * 3600);
/// Lines that a guest may send besides measurements: for each sample, and while it prepares the plan. Each is shown to
/// the user.
const WORDS: u32 = 1000;

type Result<T> = std::result::Result<T, Error>;

/// Why a run in a guest failed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The guest failed, or refuses the plan.
    #[error(transparent)]
    Guest(#[from] guest::Error),
    /// The run directory cannot be written or read.
    #[error(transparent)]
    Store(#[from] store::Error),
}

/// The settings of every guest for a request.
#[derive(Debug)]
pub struct Host {
    kernel: Kernel,
    append: String,
    accelerator: Option<Accelerator>,
    cpus: usize,
}

impl Host {
    /// Guests with this many CPUs, a kernel, its additional parameters, and an accelerator (without one, whichever
    /// works).
    ///
    /// # Errors
    /// There is no QEMU.
    pub fn new(
        kernel: Kernel,
        append: &str,
        accelerator: Option<Accelerator>,
        cpus: usize,
    ) -> guest::Result<Self> {
        qemu_program()?;
        Ok(Self {
            kernel,
            append: append.to_owned(),
            accelerator,
            cpus,
        })
    }
}

/// The result of a run in a guest.
#[derive(Debug)]
pub struct Carried {
    /// The run with all samples that were stored.
    pub run: Run,
    /// The run directory on the host.
    pub directory: PathBuf,
    /// What ended it early, if anything.
    pub failure: Option<Error>,
}

/// Boots a guest with what its labs need, which says that it is there.
fn boot(
    host: &Host,
    carried: BTreeSet<lab::paths::Carried>,
    doing: &str,
    observer: &mut dyn Observer,
) -> Result<Machine<Said>> {
    let own = std::env::current_exe().map_err(|source| guest::Error::Read {
        file: "/proc/self/exe".into(),
        source,
    })?;
    let initramfs = Initramfs::build(&host.kernel, &own, Contents::Paths(carried))?;
    let guest = Guest {
        kernel: &host.kernel,
        initramfs: &initramfs,
        cpus: host.cpus,
        memory_mib: MEMORY_MIB,
        append: &host.append,
        job: vec![Job::Runner.word().to_owned()],
        devices: Vec::new(),
    };
    let (machine, greeting) = Machine::boot(&guest, host.accelerator)?;
    if !matches!(greeting, Said::Hello { .. }) {
        return Err(out_of_turn("greet", &greeting));
    }
    observer.note(&format!(
        "{doing} in a guest with Linux {} and {} CPUs, {}",
        host.kernel.release,
        host.cpus,
        machine.accelerator.described()
    ));
    Ok(machine)
}

/// What came of deeds that were tried in a guest.
#[derive(Debug)]
pub struct TriedOut {
    /// The release of its kernel.
    pub release: String,
    /// Was its CPU emulated?
    pub emulated: bool,
    /// By name.
    pub deeds: BTreeMap<String, Tried>,
}

/// Boots a guest and has it try these deeds.
///
/// # Errors
/// It cannot be booted, or died on the way.
pub fn try_out(names: &[String], host: &Host, observer: &mut dyn Observer) -> Result<TriedOut> {
    const DOING: &str = "try deeds";
    let mut machine = boot(host, lab::carried(), "deeds are tried", observer)?;
    let wanted = Deeds {
        deeds: names.to_vec(),
    };
    machine.tell(&wanted, DOING)?;
    let mut deeds = BTreeMap::new();
    let mut listener = Listener::new(DOING, PREPARING);
    loop {
        match listener.hear(&mut machine)? {
            Said::Tried { name, mut tried } => {
                if !names.contains(&name) || deeds.contains_key(&name) {
                    let name = lines::excerpt(&name);
                    return Err(unbelievable(DOING, format!("nobody asked for `{name}`")));
                }
                listener.got_on();
                tried.seen = lines::excerpt(&tried.seen);
                deeds.insert(name, tried);
            }
            Said::Note { text } => observer.note(&text),
            Said::Ended { .. } => break,
            other => return Err(out_of_turn(DOING, &other)),
        }
    }
    Ok(TriedOut {
        release: host.kernel.release.clone(),
        emulated: machine.accelerator == Accelerator::Tcg,
        deeds,
    })
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
    let mut machine = boot(host, carried(&order.plan), "the plan runs", observer)?;
    machine.tell(order, "take the plan")?;
    let header = prepared(&mut machine, order, observer)?;
    let directory = place(&header);
    let mut keeper = Keeper::new(header, &directory)?;
    let failure = keeper.keep(&mut machine, observer).err();
    observer.finished();
    let interrupted = matches!(failure, Some(Error::Guest(guest::Error::Interrupted)));
    if interrupted {
        keeper.finish(End::Interrupted)?;
    }
    Ok(Carried {
        run: keeper.run,
        directory,
        failure: failure.filter(|_| !interrupted),
    })
}

fn prepared(
    machine: &mut Machine<Said>,
    order: &Order,
    observer: &mut dyn Observer,
) -> Result<Header> {
    const DOING: &str = "prepare the plan";
    let mut listener = Listener::new(DOING, PREPARING);
    loop {
        match listener.hear(machine)? {
            Said::Prepared(header) => {
                check_prepared(&header, order).map_err(|why| unbelievable(DOING, why))?;
                return Ok(*header);
            }
            Said::Note { text } => observer.note(&text),
            other => return Err(out_of_turn(DOING, &other)),
        }
    }
}

/// Checks that the header is possible and belongs to the requested run. It names the directory, and everything else is
/// compared with it.
fn check_prepared(header: &Header, order: &Order) -> std::result::Result<(), String> {
    let plan = &order.plan;
    let asked = (&plan.name, order.seed, plan.blocks.max, order.profile);
    let got = (&header.plan, header.seed, header.blocks_max, header.profile);
    if got != asked {
        return Err(format!(
            "it prepared another run, {got:?} instead of {asked:?}"
        ));
    }
    for planned in &header.cells {
        lab::path(&planned.cell.path).map_err(|e| e.to_string())?;
    }
    check_id(&header.id)?;
    check_header(header)
}

/// Receives from a guest, with a limit on lines and time.
struct Listener {
    doing: &'static str,
    patience: Duration,
    began: Instant,
    words: u32,
}

impl Listener {
    fn new(doing: &'static str, patience: Duration) -> Self {
        Self {
            doing,
            patience,
            began: Instant::now(),
            words: 0,
        }
    }

    fn hear(&mut self, machine: &mut Machine<Said>) -> Result<Said> {
        self.words += 1;
        if self.words > WORDS {
            let why = format!("it sent more than {WORDS} messages");
            return Err(unbelievable(self.doing, why));
        }
        Ok(machine.hear_until(self.doing, self.began, self.patience)?)
    }

    /// The guest made progress: lines and time are counted anew.
    fn got_on(&mut self) {
        *self = Self::new(self.doing, self.patience);
    }
}

/// An error about an impossible message.
fn unbelievable(doing: &'static str, why: String) -> Error {
    guest::Error::Unbelievable { doing, why }.into()
}

/// An error about an unexpected answer, or a refusal.
fn out_of_turn(doing: &'static str, said: &Said) -> Error {
    let error = match said {
        Said::Refused { message, request } => guest::Error::Refused {
            message: lines::excerpt(message),
            request: *request,
        },
        other => guest::Error::OutOfTurn {
            doing,
            answer: lines::excerpt(&format!("{other:?}")),
        },
    };
    error.into()
}

/// Stores what the guest sends, line by line.
struct Keeper {
    writer: Writer,
    run: Run,
    samples: Known,
    profiles: Known,
}

impl Keeper {
    fn new(header: Header, directory: &Path) -> Result<Self> {
        Ok(Self {
            writer: Writer::create(directory, &header)?,
            samples: Known::of_a_guest(&header),
            profiles: Known::of_a_guest(&header),
            run: Run {
                header,
                samples: Vec::new(),
                profiles: Vec::new(),
                end: None,
            },
        })
    }

    /// Until the end of the run.
    fn keep(&mut self, machine: &mut Machine<Said>, observer: &mut dyn Observer) -> Result<()> {
        let header = &self.run.header;
        let sample = Duration::from_nanos(header.window_ns.saturating_add(header.warm_up_ns));
        let patience = AROUND + sample * 20;
        let mut listener = Listener::new(DOING, patience);
        loop {
            match listener.hear(machine)? {
                Said::Planned { block_ms, .. } => {
                    let header = &self.run.header;
                    let blocks = Blocks {
                        min: header.blocks_min,
                        max: header.blocks_max,
                    };
                    let block = Duration::from_millis(block_ms).min(LONGEST_BLOCK);
                    // Nothing is heard of cells that take turns before all their turns are over.
                    listener.patience = listener.patience.max(AROUND + block * DISTURBED);
                    observer.planned(header.cells.len(), blocks, block);
                }
                Said::Measuring {
                    block,
                    done,
                    of,
                    cell,
                } => {
                    self.need_known(&cell)?;
                    if block >= self.run.header.blocks_max || done >= of || of > self.cells() {
                        let why = format!("cell {done} of {of} in block {block}");
                        return Err(unbelievable(DOING, why));
                    }
                    observer.measuring(block, done, of, &cell);
                }
                Said::Sample(sample) => {
                    let checked = self.samples.sample(&sample);
                    checked.map_err(|why| unbelievable(DOING, why))?;
                    listener.got_on();
                    self.writer.append(&sample)?;
                    self.run.samples.push(*sample);
                }
                Said::Profile(profile) => {
                    let checked = self.profiles.profile(&profile);
                    checked.map_err(|why| unbelievable(DOING, why))?;
                    listener.got_on();
                    self.writer.append_profile(&profile)?;
                    self.run.profiles.push(*profile);
                }
                Said::Failed { cell, cause } => {
                    self.need_known(&cell)?;
                    observer.failed(&cell, &cause);
                }
                Said::Note { text } => observer.note(&text),
                Said::Ended { end } => return self.finish(end),
                other => return Err(out_of_turn(DOING, &other)),
            }
        }
    }

    fn cells(&self) -> usize {
        self.run.header.cells.len()
    }

    /// Checks that the cell belongs to the run.
    fn need_known(&self, cell: &Cell) -> Result<()> {
        if self
            .run
            .header
            .cells
            .iter()
            .any(|known| known.cell == *cell)
        {
            return Ok(());
        }
        let why = "a cell that is not part of the run".to_owned();
        Err(unbelievable(DOING, why))
    }

    fn finish(&mut self, end: End) -> Result<()> {
        self.writer.finish(end)?;
        self.run.end = Some(end);
        Ok(())
    }
}
