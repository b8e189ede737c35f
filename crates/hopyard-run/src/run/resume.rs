//! Continuing a run that ended early.

use std::borrow::Cow;
use std::cell::RefCell;
use std::path::Path;
use std::time::Duration;

use super::groups::of_run;
use super::{Error, Prepared, TrialKey, try_labs};
use crate::guest;
use crate::lab::{self, Endpoints};
use crate::measure::{self, Sampler};
use crate::meter;
use crate::model::{
    Cell, CpuAccounting, EndpointsAsked, Environment, ProfileWindow, Sample, Settings,
};
use crate::settings::Host;
use crate::store::{self, End, Header, Writer};
use crate::units::ns;

/// The state of a run so far.
#[derive(Debug)]
pub(super) struct Before {
    pub(super) writer: Writer,
    pub(super) samples: Vec<Sample>,
    pub(super) profiles: Vec<ProfileWindow>,
}

/// Checks that a run can continue where it ended: the machine, its kernel, its settings and the program are the same, and every
/// lab can still be built. A time limit counts from now. Commands of settings are those given now, and must equal those that the run
/// began with: nothing stored in a directory is ever run.
///
/// # Errors
/// It has ended as planned, is in progress, or cannot be continued here; nothing has changed.
pub fn resume(
    directory: &Path,
    time_limit: Option<Duration>,
    settings: Option<&Settings>,
    endpoints: Option<&Endpoints>,
) -> Result<Prepared, Error> {
    let refused = refused(directory);
    // Locked first, so that the files cannot change after they were read.
    let writer = Writer::open(directory)?;
    let run = store::load(directory)?;
    let mut header = run.header;
    if run.end == Some(End::Complete) {
        return Err(refused("it is complete".to_owned()));
    }
    let begun = header.settings.as_ref().map(|used| &used.commands);
    same_settings(begun, settings).map_err(&refused)?;
    let asked = endpoints.map(Endpoints::asked);
    same_endpoints(header.endpoints.as_ref(), asked.as_ref()).map_err(&refused)?;
    same_host(&header.environment, &this_machine()?).map_err(&refused)?;
    let mut measured = run.samples.iter().filter_map(Sample::measurement);
    if let Some(guest) = measured.find_map(|m| m.guest.as_ref()) {
        let release = guest::release_of_kernel().map_err(lab::Error::from);
        let release = release.map_err(measure::Error::Lab)?;
        same_guest_kernel(&guest.kernel, release.as_deref()).map_err(&refused)?;
    }
    // From here on the host is restored if the run is refused, and labs are tried in the state in which they were at first.
    let mut host = settings.cloned().map(Host::left_changed);
    if let Some(host) = &mut host {
        if time_limit.is_some() || header.limit_asked {
            host.allow_all_of_the_limit();
        }
        host.restore().map_err(measure::Error::from)?;
    }
    // What the commands may have changed, such as the CPUs that are online, is looked at now.
    let span = Duration::from_nanos;
    let mut sampler = Sampler::new(span(header.window_ns), span(header.warm_up_ns))?;
    sampler.profile_window = header.profile_window_ns.map(span);
    sampler.endpoints = endpoints.cloned();
    if header.environment.cpu_accounting == CpuAccounting::KeptAwake {
        sampler.meter.keep_awake().map_err(measure::Error::Awake)?;
    }
    let here = meter::environment::capture(&sampler.meter);
    same_machine(&header.environment, &here).map_err(&refused)?;
    same_state(&header, &here).map_err(&refused)?;
    if let Some(why) = missing_now(&header, &sampler)? {
        return Err(refused(why));
    }
    if let Some(limit) = time_limit {
        header.time_limit_ns = Some(ns(limit));
    }
    Ok(Prepared {
        sampler,
        groups: of_run(&header),
        host: RefCell::new(host),
        header,
        before: Some(Before {
            writer,
            samples: run.samples,
            profiles: run.profiles,
        }),
    })
}

/// Checks that guests would boot the kernel that the run's guests had: a cell has samples of one kernel.
fn same_guest_kernel(then: &str, now: Option<&str>) -> Result<(), String> {
    if now == Some(then) {
        return Ok(());
    }
    let now = now.map_or_else(|| "none".to_owned(), |now| format!("Linux {now}"));
    Err(format!(
        "its guests had Linux {then}, and here they would have {now}: name its kernel by --guest-kernel"
    ))
}

/// Checks that this is the machine and kernel of a run.
///
/// # Errors
/// It is not.
pub fn check_machine(directory: &Path, then: &Environment) -> Result<(), Error> {
    let mut now = this_machine()?;
    // It is kept awake again before anything is measured.
    if then.cpu_accounting == CpuAccounting::KeptAwake {
        now.cpu_accounting = then.cpu_accounting;
    }
    same_machine(then, &now).map_err(refused(directory))
}

/// This machine and its kernel.
///
/// # Errors
/// Its CPUs cannot be read.
pub fn this_machine() -> Result<Environment, Error> {
    let meter = meter::CpuMeter::new().map_err(measure::Error::from)?;
    Ok(meter::environment::capture(&meter))
}

fn refused(directory: &Path) -> impl Fn(String) -> Error {
    let run = directory.display().to_string();
    move |why| Error::Resume {
        run: run.clone(),
        why,
    }
}

/// The host that the commands of a run have changed: whatever they changed, it has these.
fn same_host(then: &Environment, now: &Environment) -> Result<(), String> {
    let facts = |env: &Environment| {
        [
            ("host", env.hostname.clone()),
            ("kernel", env.kernel_release.clone()),
            ("kernel", env.kernel_version.clone()),
        ]
    };
    let mut pairs = facts(then).into_iter().zip(facts(now));
    match pairs.find(|(then, now)| then != now) {
        None => Ok(()),
        Some(((what, then), (_, now))) => Err(other(what, &then, &now)),
    }
}

/// Figures of different machines, kernels or versions must not be mixed in one run.
fn same_machine(then: &Environment, now: &Environment) -> Result<(), String> {
    let version = |env: &Environment| env.hopyard_version.clone();
    let program = ("hopyard", version(then), version(now));
    let other_program = (program.1 != program.2).then_some(program);
    match then.differs_from(now).or(other_program) {
        None => Ok(()),
        Some((what, then, now)) => Err(other(what, &then, &now)),
    }
}

fn other(what: &str, then: &str, now: &str) -> String {
    format!("it was started on {what} `{then}`, and this is `{now}`: start a new run")
}

/// Checks that the program and what this machine is set to are those of a run: what was changed between two blocks would look like a
/// difference between them. Commands of two settings may have changed the machine, and change it again.
fn same_state(then: &Header, now: &Environment) -> Result<(), String> {
    let env = &then.environment;
    let revision = |env: &Environment| {
        let revision = env.hopyard_revision.as_deref();
        revision.unwrap_or("unknown").to_owned()
    };
    let (built_then, built_now) = (revision(env), revision(now));
    if built_then != built_now {
        return Err(format!(
            "it was started by hopyard of revision `{built_then}`, and this is `{built_now}`: continue it with that program, or start a \
             new run"
        ));
    }
    let set = if then.settings.is_none() {
        env.setting_unlike(now)
    } else {
        None
    };
    set.map_or(Ok(()), |(what, then, now)| {
        Err(format!(
            "it was started with {what} `{then}`, and that is `{now}` now: set it back, or start a new run"
        ))
    })
}

/// Checks that the given commands are those that the run began with.
fn same_settings(then: Option<&Settings>, now: Option<&Settings>) -> Result<(), String> {
    match (then, now) {
        (then, now) if then == now => Ok(()),
        (None, _) => {
            Err("it does not compare two settings: leave out --a, --b and --restore".to_owned())
        }
        (Some(then), _) => Err(format!(
            "it compares two settings, and hopyard runs no command that it only finds in a run's directory: if \
             you trust them, give the commands that the run was started with,{}",
            options_of(then)
        )),
    }
}

/// Checks that the given endpoints are those that the run began with.
fn same_endpoints(
    then: Option<&EndpointsAsked>,
    now: Option<&EndpointsAsked>,
) -> Result<(), String> {
    match (then, now) {
        (then, now) if then == now => Ok(()),
        (None, _) => Err(
            "it has no path between endpoints of its own: leave out --client and --server"
                .to_owned(),
        ),
        (Some(then), _) => Err(format!(
            "it measures between two endpoints, and hopyard runs no command that it only finds in a run's directory: if you trust \
             them, give the commands that the run was started with,{}",
            asked_by(then)
        )),
    }
}

/// The options that `--resume` takes again: the commands that the run was started with, and the kernel of its guests. Quoted for a
/// shell, each after a space.
#[must_use]
pub fn options_again(header: &Header) -> String {
    let settings = header.settings.as_ref();
    let settings = settings.map_or_else(String::new, |used| options_of(&used.commands));
    let endpoints = header.endpoints.as_ref();
    let endpoints = endpoints.map_or_else(String::new, asked_by);
    settings + &endpoints + &guest_kernel_again()
}

/// The option that names the kernel of guests, if one was chosen.
#[must_use]
pub fn guest_kernel_again() -> String {
    let kernel = guest::chosen_kernel();
    kernel.map_or_else(String::new, |kernel| {
        option("guest-kernel", &kernel.to_string_lossy())
    })
}

/// The options that give these commands.
fn options_of(settings: &Settings) -> String {
    let Settings { a, b, restore } = settings;
    let restore = restore.as_ref();
    let restore = restore.map_or_else(String::new, |command| option("restore", command));
    option("a", a) + &option("b", b) + &restore
}

/// The options that name these endpoints.
fn asked_by(asked: &EndpointsAsked) -> String {
    let (client, server) = (&asked.client, &asked.server);
    if let Some([card, far]) = &asked.cards {
        return option("uplink", card) + &option("far", server) + &option("far-uplink", far);
    }
    let address = asked.server_address;
    let address = address.map_or_else(String::new, |ip| option("server-address", &ip.to_string()));
    option("client", client) + &option("server", server) + &address
}

/// An option with its value, quoted for a shell.
fn option(name: &str, value: &str) -> String {
    format!(" --{name} {}", quoted(value))
}

/// A text as one word of a command for a shell. Only NUL cannot be quoted, and no command line contains it.
#[must_use]
pub fn quoted(text: &str) -> Cow<'_, str> {
    shlex::try_quote(text).unwrap_or(Cow::Borrowed(text))
}

/// Cells of the run that can no longer be built.
fn missing_now(header: &Header, sampler: &Sampler) -> Result<Option<String>, Error> {
    let cells: Vec<Cell> = header
        .cells
        .iter()
        .filter(|planned| planned.unsupported.is_none())
        .map(|planned| planned.cell.clone())
        .collect();
    let tried = try_labs(sampler, &cells)?;
    let mut keys = cells.iter().map(TrialKey::of);
    let cause = keys.find_map(|key| tried.missing.get(&key).cloned());
    Ok(cause.map(|cause| format!("{cause} (it could be built when the run started)")))
}

/// The block to continue with, and the attempt at it: the first block that no attempt completed. An interrupted block
/// begins anew, so that compared cells are measured side by side.
pub(super) fn place(header: &Header, samples: &[Sample]) -> (u32, u32) {
    let wanted = header
        .cells
        .iter()
        .filter(|cell| cell.unsupported.is_none())
        .count();
    let Some(last) = samples.iter().map(|sample| sample.block).max() else {
        return (0, 0);
    };
    let of = |attempt| {
        let own = samples
            .iter()
            .filter(move |s| s.block == last && s.attempt == attempt);
        own.count()
    };
    let attempts = samples
        .iter()
        .filter(|s| s.block == last)
        .map(|s| s.attempt);
    let next = attempts.max().map_or(0, |attempt| attempt + 1);
    if (0..next).any(|attempt| of(attempt) >= wanted) {
        (last + 1, 0)
    } else {
        (last, next)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::assess::testing::run;

    #[test]
    fn a_name_is_one_word_of_a_shell() {
        for name in ["plain", "with a blank", "it's; rm -r *"] {
            let words = shlex::split(&format!("report {}", quoted(name)));
            assert_eq!(words.unwrap(), ["report", name]);
        }
        assert_eq!(quoted("hopyard-runs/a-b"), "hopyard-runs/a-b");
    }

    #[test]
    fn guests_go_on_with_their_kernel() {
        assert_eq!(same_guest_kernel("6.1.0", Some("6.1.0")), Ok(()));
        let why = same_guest_kernel("6.1.0", Some("6.12.9")).unwrap_err();
        assert!(
            why.contains("had Linux 6.1.0, and here they would have Linux 6.12.9"),
            "{why}"
        );
        assert!(
            same_guest_kernel("6.1.0", None)
                .unwrap_err()
                .contains("--guest-kernel")
        );
    }

    #[test]
    fn a_run_goes_on_only_as_it_was_begun() {
        let header = run(&["veth"]).header;
        let of = |change: fn(&mut Environment)| {
            let mut now = header.environment.clone();
            change(&mut now);
            same_state(&header, &now).err().unwrap_or_default()
        };
        assert_eq!(of(|_| ()), "");
        const CONGESTION: &str = "net.ipv4.tcp_congestion_control";
        assert_eq!(
            of(|now| _ = now.sysctls.insert(CONGESTION.to_owned(), "bbr".to_owned())),
            "it was started with net.ipv4.tcp_congestion_control `cubic`, and that is `bbr` now: set it back, or start a new run"
        );
        let governor = of(|now| now.frequency_governor = Some("powersave".to_owned()));
        assert!(
            governor.contains("frequency governor `none`, and that is `powersave` now"),
            "{governor}"
        );
        let clock = of(|now| now.clock_source = "hpet".to_owned());
        assert!(
            clock.contains("clock source `tsc`, and that is `hpet` now"),
            "{clock}"
        );
        let program = of(|now| now.hopyard_revision = Some("abc-dirty".to_owned()));
        assert!(
            program.contains("revision `unknown`, and this is `abc-dirty`"),
            "{program}"
        );
        assert_eq!(of(|now| now.sysctls.clear()), "");
    }
}
