//! The command line: arguments, output, and exit statuses.
//!
//! Results go to stdout, everything else to stderr. Exit status 0: fine; 1: a cell or a check failed; 2: usage, or a
//! request this host cannot meet; 3: an internal failure; 4: a gate that could not decide; 130: interrupted.

mod args;
mod attach;
mod claims;
mod command;
mod counters;
mod diff;
mod doctor;
mod files;
mod fleet;
mod guest;
mod kernels;
mod labs;
mod list;
mod named;
mod offloads;
mod pages;
mod progress;
mod report;
mod rootless;
mod run;
mod switch;
mod tapswitch;

use std::borrow::Cow;
use std::io::Write;
use std::process::ExitCode;

use clap::Parser;
use clap::error::{ContextKind, ContextValue, ErrorKind};

use crate::model::Gate;
use crate::{lab, load, measure, meter, plain, plan, run as runner, signals, store};
use command::{Args, Command};

/// Why a command failed.
#[derive(Debug)]
pub struct Failure {
    status: u8,
    message: String,
}

impl Failure {
    /// A usage error, or something this host cannot do.
    fn request(message: impl Into<String>) -> Self {
        Self {
            status: 2,
            message: message.into(),
        }
    }

    fn internal(error: &(dyn std::error::Error + 'static)) -> Self {
        Self::unforeseen(crate::chain(error))
    }

    /// Neither the request nor this host is to blame, as far as can be told.
    fn unforeseen(message: String) -> Self {
        Self { status: 3, message }
    }

    fn interrupted() -> Self {
        Self {
            status: signals::INTERRUPTED,
            message: "interrupted".to_owned(),
        }
    }

    fn asked(error: &(dyn std::error::Error + 'static)) -> Self {
        Self {
            status: 2,
            message: crate::chain(error),
        }
    }
}

macro_rules! is_a_request {
    ($($error:ty),+) => {
        $(impl From<$error> for Failure {
            fn from(error: $error) -> Self {
                Self::asked(&error)
            }
        })+
    };
}

is_a_request!(
    lab::Error,
    plan::FileError,
    plan::ExpandError,
    store::Error,
    crate::model::UnknownName,
    crate::model::AxisError,
    crate::profile::Error,
    crate::tapswitch::Error,
    crate::assess::diff::Refused,
    crate::report::flame::Error,
    crate::report::functions::Error
);

/// Errors that know whether the request was wrong.
macro_rules! may_be_a_request {
    ($($error:ty),+) => {
        $(impl From<$error> for Failure {
            fn from(error: $error) -> Self {
                if error.is_request() {
                    Self::asked(&error)
                } else {
                    Self::internal(&error)
                }
            }
        })+
    };
}

may_be_a_request!(crate::report::printed::Error, hopyard_fleet::Error);

impl From<hopyard_attach::Error> for Failure {
    fn from(error: hopyard_attach::Error) -> Self {
        match error {
            hopyard_attach::Error::Nothing(crate::model::stored::End::Interrupted) => {
                Self::interrupted()
            }
            error if error.is_request() => Self::asked(&error),
            error => Self::internal(&error),
        }
    }
}

impl From<hopyard_switch::Error> for Failure {
    fn from(error: hopyard_switch::Error) -> Self {
        let mut failure = if error.is_usage() {
            Self::asked(&error)
        } else {
            Self::internal(&error)
        };
        failure.message += &switch::advice(&error).unwrap_or_default();
        failure
    }
}

impl From<crate::report::Error> for Failure {
    fn from(error: crate::report::Error) -> Self {
        Self::internal(&error)
    }
}

impl From<meter::Error> for Failure {
    fn from(error: meter::Error) -> Self {
        Self::internal(&error)
    }
}

impl From<measure::Error> for Failure {
    fn from(error: measure::Error) -> Self {
        match error {
            error if error.is_interrupt() => Self::interrupted(),
            error if error.is_request() => Self::asked(&error),
            error => Self::internal(&error),
        }
    }
}

impl From<runner::Error> for Failure {
    fn from(error: runner::Error) -> Self {
        match error {
            runner::Error::Measure(error) => error.into(),
            error => Self::asked(&error),
        }
    }
}

type Done = Result<ExitCode, Failure>;

/// Exit status of a gate that could not see the loss it guards against.
const UNDECIDED: u8 = 4;

/// The exit status of a gate, if there is one.
fn by_gate(gate: Option<&Gate>) -> ExitCode {
    match gate {
        Some(gate) if gate.failed => ExitCode::from(1),
        Some(gate) if gate.undecided => ExitCode::from(UNDECIDED),
        _ => ExitCode::SUCCESS,
    }
}

/// Runs the program.
#[must_use]
pub fn main() -> ExitCode {
    let args = match Args::try_parse() {
        Ok(args) => args,
        Err(error) => {
            if let Some(value) = negative(&error) {
                crate::note(format_args!(
                    "a negative value: `{value}`; no number, time, rate or share here is below zero"
                ));
                return ExitCode::from(2);
            }
            // `--help` and `--version` are answers, not errors.
            let status = if error.use_stderr() { 2 } else { 0 };
            return match told(&error) {
                Err(e) if e.kind() != std::io::ErrorKind::BrokenPipe => ExitCode::from(3),
                _ => ExitCode::from(status),
            };
        }
    };
    match dispatch(args.command) {
        Ok(status) => status,
        Err(failure) => {
            crate::note(format_args!("{}", failure.message));
            ExitCode::from(failure.status)
        }
    }
}

/// The negative number that makes a command line wrong. clap takes it for an option, and would advise `-- -1`, which is the name of a
/// plan.
fn negative(error: &clap::Error) -> Option<&str> {
    let Some(ContextValue::String(found)) = error.get(ContextKind::InvalidArg) else {
        return None;
    };
    let is_number = found
        .strip_prefix('-')?
        .starts_with(|c: char| c.is_ascii_digit());
    (error.kind() == ErrorKind::UnknownArgument && is_number).then_some(found)
}

/// Prints help, or an error about the command line, sanitized: it may contain names of files that others chose.
fn told(error: &clap::Error) -> std::io::Result<()> {
    let text = error.render().to_string();
    match plain::document(&text) {
        Cow::Borrowed(_) => error.print(),
        Cow::Owned(_) => writeln!(std::io::stderr(), "{}", plain::message(&text)),
    }
}

fn dispatch(command: Command) -> Done {
    match command {
        Command::Far { card } => {
            signals::listen().map_err(|e| Failure::internal(&e))?;
            crate::lab::serve_far(&card)?;
            Ok(ExitCode::SUCCESS)
        }
        Command::Worker => load::worker::main()
            .map(|()| ExitCode::SUCCESS)
            .map_err(|e| Failure::internal(&e)),
        Command::Runner => crate::run::guest::runner::main(crate::claims::in_guest::try_out)
            .map(|()| ExitCode::SUCCESS)
            .map_err(|e| Failure::internal(&e)),
        Command::Init { job, interface } => crate::guest::init(job, &interface)
            .map(|()| ExitCode::SUCCESS)
            .map_err(|e| Failure::asked(&e)),
        Command::XdpForward { socket, one, other } => {
            match lab::af_xdp::run(&socket, [&one, &other]) {
                Ok(never) => match never {},
                Err(error) => Err(error.into()),
            }
        }
        Command::Run(args) => run::run(&args),
        Command::Attach(args) => attach::attach(&args),
        Command::Fleet(args) => fleet::fleet(args),
        Command::AttachHost => attach::host(),
        Command::Kernels(args) => kernels::kernels(&args),
        Command::Kernel(args) => guest::kernel(args),
        Command::Report(args) => report::report(&args),
        Command::Claims(args) => claims::claims(&args),
        Command::Diff(args) => diff::diff(&args),
        Command::Doctor(args) => match &args.sweep.offloads {
            Some(path) => offloads::doctor(path, &args),
            None if args.claims => claims::doctor(args.json),
            None => doctor::doctor(&args),
        },
        Command::List(args) => list::list(&args),
        Command::Lab(args) => labs::lab(args),
        Command::Switch(args) => switch::switch(args),
        Command::Tapswitch(args) => tapswitch::tapswitch(args),
        Command::Clean { force } => labs::clean(force),
        Command::Schema { diff: true, .. } => print(&pretty(&crate::report::diff::schema())?),
        Command::Schema { kernels: true, .. } => print(&pretty(&crate::report::kernels::schema())?),
        Command::Schema { fleet: true, .. } => print(&pretty(&hopyard_fleet::schema())?),
        Command::Schema {
            fleet_report: true, ..
        } => print(&pretty(&hopyard_fleet::assessment_schema())?),
        Command::Schema { matrix: true, .. } => print(&pretty(&hopyard_fleet::matrix_schema())?),
        Command::Schema { attach: true, .. } => print(&pretty(&hopyard_attach::schema())?),
        Command::Schema { claims: true, .. } => print(&pretty(&crate::report::claims::schema())?),
        Command::Schema { .. } => print(&pretty(&crate::report::schema())?),
        Command::Completions { shell } => pages::completions(shell),
        Command::Man { directory } => pages::manual(directory.as_deref()),
    }
}

/// Prints a text, sanitized. A reader that ends early (`| head`) is no failure.
fn print(text: &str) -> Done {
    is_read(text).map(|_| ExitCode::SUCCESS)
}

/// Writes a result to a file in one step, or to stdout without one. It is sanitized already, or not a text.
fn deliver(text: &(impl AsRef<[u8]> + ?Sized), file: Option<&std::path::Path>) -> Done {
    match file {
        None => write(text.as_ref()).map(|_| ExitCode::SUCCESS),
        Some(file) => files::write(file, text.as_ref())
            .map(|()| ExitCode::SUCCESS)
            .map_err(|e| Failure::request(format!("cannot write {}: {e}", file.display()))),
    }
}

/// Whether stdout is a terminal and colours are wanted (<https://no-color.org>).
fn shows_colours() -> bool {
    use std::io::IsTerminal;
    let wanted = std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty());
    let able = std::env::var_os("TERM").is_some_and(|term| term != "dumb");
    wanted && able && std::io::stdout().is_terminal()
}

/// Prints a text; false if the reader is gone.
fn is_read(text: &str) -> Result<bool, Failure> {
    write(plain::document(text).as_bytes())
}

/// Writes to stdout; false if the reader is gone.
fn write(bytes: &[u8]) -> Result<bool, Failure> {
    let mut out = std::io::stdout().lock();
    match out.write_all(bytes).and_then(|()| out.flush()) {
        Ok(()) => Ok(true),
        Err(e) if e.kind() == std::io::ErrorKind::BrokenPipe => Ok(false),
        Err(e) => Err(Failure {
            status: 3,
            message: format!("cannot write to stdout: {e}"),
        }),
    }
}

fn pretty(value: &impl serde::Serialize) -> Result<String, Failure> {
    json(serde_json::to_string_pretty(value))
}

/// A document on a line, for programs that follow.
fn line(value: &impl serde::Serialize) -> Result<String, Failure> {
    json(serde_json::to_string(value))
}

fn json(written: serde_json::Result<String>) -> Result<String, Failure> {
    written
        .map(|text| plain::json(&text).into_owned() + "\n")
        .map_err(|e| Failure {
            status: 3,
            message: format!("cannot write JSON: {e}"),
        })
}

/// A plain table, as wide as needed.
fn table(heads: &[&str]) -> comfy_table::Table {
    let mut table = comfy_table::Table::new();
    table
        .load_style(comfy_table::presets::NOTHING)
        .set_header(heads);
    table
}
