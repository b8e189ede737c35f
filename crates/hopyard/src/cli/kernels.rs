//! `hopyard kernels`: one plan under several kernels.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::builder::PossibleValue;
use clap::{Args as ClapArgs, Command, FromArgMatches, ValueEnum};

use super::args::RunArgs;
use super::run::{Measured, measured};
use super::{Done, Failure, deliver, pretty, print};
use crate::assess::kernels::{KernelAsked, side_by_side};
use crate::guest::{Accelerator, Kernel, fetch};
use crate::model::Works;
use crate::{lab, report, signals};

#[derive(Debug, ClapArgs)]
#[command(after_help = "\
Examples:
  hopyard kernels 6.1 backports                              # every path on two kernels of Debian's
  hopyard kernels host 6.1 veth netkit flowtable             # three paths, on this host's own kernel too
  hopyard kernels old/bzImage new/bzImage bridge -- --loads tcp_stream --window 1s --blocks 8

KERNEL is `host`, a series or package of Debian's (fetched once), or a kernel that can be booted. Path `veth` is
measured in any case. Without options, each path is looked at in two blocks of tcp_rr and tcp_stream. Under an emulated CPU nothing
is said of speed. The directory of --out must not be there yet.

Exit status: 0 each path works on each kernel or cannot be built there, 1 one does not work or a run ended early, 2 nothing was
measured, 130 interrupted.")]
pub(super) struct KernelsArgs {
    /// Kernels, and paths to measure (default: all that each kernel has)
    #[arg(value_name = "KERNEL|PATH", required = true)]
    words: Vec<String>,
    /// Directory for the runs, one for each kernel
    #[arg(long, value_name = "DIR", default_value = "hopyard-kernels")]
    out: PathBuf,
    /// Accelerator of the guests: kvm, or tcg, which emulates the CPU (default: KVM if it works)
    #[arg(long, value_name = "NAME")]
    accel: Option<Accelerator>,
    /// More parameters of the guests' kernels, as in "mitigations=off"
    #[arg(long, value_name = "WORDS")]
    append: Option<String>,
    /// Print the document `hopyard/kernels/1`
    #[arg(long)]
    json: bool,
    /// Options of `hopyard run`
    #[arg(last = true, value_name = "RUN OPTION")]
    options: Vec<String>,
}

/// The word for the host's own kernel.
const HOST: &str = "host";
/// The path that is always measured.
const ALWAYS: &str = "veth";
/// Options of `hopyard run` that do not follow `--`.
const NOT_OF_RUNS: [&str; 10] = [
    "--accel",
    "--append",
    "--fail-on",
    "--guest-kernel",
    "--json",
    "--kernel",
    "--modules",
    "--out",
    "--paths",
    "--resume",
];
/// Options of a quick look at what works.
const LOOK: [&str; 6] = [
    "--loads",
    "tcp_rr,tcp_stream",
    "--blocks",
    "2",
    "--window",
    "300ms",
];

pub(super) fn kernels(args: &KernelsArgs) -> Done {
    let (paths, kernels): (Vec<&String>, Vec<&String>) =
        args.words.iter().partition(|word| lab::path(word).is_ok());
    if kernels.is_empty() {
        return Err(Failure::request(format!(
            "{}: these are paths, and no kernel: name one too, as in `hopyard kernels host 6.1 {}`",
            args.words.join(" "),
            args.words.join(" ")
        )));
    }
    if args.out.exists() {
        return Err(Failure::request(format!(
            "{} is there already: give another --out, or remove it",
            args.out.display()
        )));
    }
    signals::listen().map_err(|e| Failure::internal(&e))?;
    let names = names(&kernels);
    // Everything is checked before the first one is measured.
    let runs: Vec<(&String, PathBuf, RunArgs)> = kernels
        .iter()
        .zip(names)
        .map(|(kernel, name)| {
            let directory = args.out.join(name);
            let asked = asked(args, kernel, &paths, &directory)?;
            Ok((*kernel, directory, asked))
        })
        .collect::<Result<_, Failure>>()?;
    let mut asked_for: Vec<(usize, KernelAsked)> = Vec::new();
    // Without root, measuring here enters a user namespace, from which no guest can be booted. So guests come first.
    let (here, guests): (Vec<_>, Vec<_>) = runs
        .into_iter()
        .enumerate()
        .partition(|(_, (kernel, ..))| *kernel == HOST);
    for (place, (kernel, directory, asked)) in guests.into_iter().chain(here) {
        if signals::interrupted() {
            break;
        }
        crate::note(format_args!("kernel {kernel}"));
        asked_for.push((place, carry(kernel, &directory, &asked)));
    }
    asked_for.sort_by_key(|(place, _)| *place);
    let asked_for: Vec<KernelAsked> = asked_for.into_iter().map(|(_, one)| one).collect();
    if signals::interrupted() && asked_for.iter().all(|one| one.run.is_none()) {
        return Ok(ExitCode::from(signals::INTERRUPTED));
    }
    let report = side_by_side(&asked_for);
    let text = if args.json {
        pretty(&report)?
    } else {
        report::kernels::text(&report)
    };
    if asked_for.iter().all(|one| one.run.is_none()) {
        let failures = asked_for.iter().filter_map(|one| one.failure.clone());
        return Err(Failure::request(format!(
            "nothing was measured: {}",
            failures.collect::<Vec<_>>().join("; ")
        )));
    }
    if args.json {
        print(&text)?;
    } else {
        deliver(&text, None)?;
    }
    if signals::interrupted() {
        return Ok(ExitCode::from(signals::INTERRUPTED));
    }
    let mut findings = report.rows.iter().flat_map(|row| &row.findings);
    let all_work = findings.all(|it| matches!(it.works, Works::Proved | Works::CannotBuild))
        && asked_for.iter().all(|one| one.failure.is_none());
    Ok(if all_work {
        ExitCode::SUCCESS
    } else {
        ExitCode::from(1)
    })
}

/// Names of directories, each one unique.
fn names(kernels: &[&String]) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for kernel in kernels {
        let plain = kernel.trim_matches('/').replace('/', "-");
        let numbered = (2..).map(|number| format!("{plain}-{number}"));
        let mut candidates = std::iter::once(plain.clone()).chain(numbered);
        names.extend(candidates.find(|name| !names.contains(name)));
    }
    names
}

/// The options of `hopyard run` for one kernel. Fetches the kernel if it is Debian's.
fn asked(
    args: &KernelsArgs,
    kernel: &str,
    paths: &[&String],
    directory: &Path,
) -> Result<RunArgs, Failure> {
    let is_given = |option: &&&str| {
        let with_value = format!("{option}=");
        let mut words = args.options.iter();
        words.any(|word| word == **option || word.starts_with(&with_value))
    };
    if let Some(option) = NOT_OF_RUNS.iter().find(is_given) {
        return Err(Failure::request(format!(
            "`{option}` cannot follow `--`: kernels, paths, --accel, --append, --out and --json stand before it, modules are looked for \
             beside each kernel, and runs of several kernels have no gate and go on from nothing"
        )));
    }
    // Before a kernel is fetched.
    parsed(args.options.iter().map(OsString::from).collect())?;
    let kernel = (kernel != HOST).then(|| open(kernel)).transpose()?;
    let guest = kernel
        .as_ref()
        .map(|kernel| (kernel.image.as_path(), kernel.modules.as_deref()));
    parsed(options_of_run(args, guest, paths, directory))
}

/// The options in words: of a guest with this kernel and its modules, else of this host.
fn options_of_run(
    args: &KernelsArgs,
    guest: Option<(&Path, Option<&Path>)>,
    paths: &[&String],
    directory: &Path,
) -> Vec<OsString> {
    let mut words: Vec<OsString> = Vec::new();
    let mut add = |name: &str, value: &OsStr| words.extend([name.into(), value.to_owned()]);
    if let Some((image, modules)) = guest {
        add("--kernel", image.as_os_str());
        if let Some(modules) = modules {
            add("--modules", modules.as_os_str());
        }
        if let Some(accelerator) = args.accel {
            let value = accelerator.to_possible_value();
            let name = value.as_ref().map_or("", PossibleValue::get_name);
            add("--accel", name.as_ref());
        }
        if let Some(parameters) = &args.append {
            add("--append", parameters.as_ref());
        }
    }
    add("--out", directory.as_os_str());
    if !paths.is_empty() {
        // Every kernel has this path, so there is a run even if none of the others can be built.
        let mut names: Vec<&str> = paths.iter().map(|path| path.as_str()).collect();
        if !names.contains(&ALWAYS) {
            names.insert(0, ALWAYS);
        }
        add("--paths", names.join(",").as_ref());
    }
    if args.options.is_empty() {
        words.extend(LOOK.map(OsString::from));
    }
    words.push("--where-installed".into());
    words.extend(args.options.iter().map(OsString::from));
    words
}

/// Options of `hopyard run`.
fn parsed(options: Vec<OsString>) -> Result<RunArgs, Failure> {
    let command = RunArgs::augment_args(Command::new("hopyard run").no_binary_name(true));
    let parsed = command.try_get_matches_from(options);
    let asked = parsed.and_then(|matches| RunArgs::from_arg_matches(&matches));
    asked.map_err(|error| {
        Failure::request(format!(
            "what follows `--` are options of `hopyard run`: {}",
            error.to_string().trim_start_matches("error: ").trim_end()
        ))
    })
}

/// A file, or a kernel of Debian.
fn open(kernel: &str) -> Result<Kernel, Failure> {
    if kernel.contains('/') || Path::new(kernel).is_file() {
        return Ok(Kernel::open(Path::new(kernel), None)?);
    }
    Ok(fetch::fetch(Some(kernel), &fetch::home())?)
}

/// Runs it. A failure on one kernel is reported beside the others.
fn carry(kernel: &str, directory: &Path, asked: &RunArgs) -> KernelAsked {
    let (run, failure) = match measured(asked) {
        Ok(Measured { run, failure, .. }) => (Some(run), failure),
        Err(failure) => (None, Some(failure)),
    };
    KernelAsked {
        asked: kernel.to_owned(),
        directory: directory.display().to_string(),
        failure: failure.map(|failure| failure.message),
        run,
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::ffi::OsStrExt;

    use super::*;

    #[test]
    fn each_kernel_has_a_directory_of_its_own() {
        let words = [
            "6.1-2",
            "6.1",
            "/boot/bzImage",
            "6.1",
            "boot/bzImage",
            "6.1",
        ];
        let words = words.map(str::to_owned);
        let named = names(&words.iter().collect::<Vec<_>>());
        let expected = [
            "6.1-2",
            "6.1",
            "boot-bzImage",
            "6.1-3",
            "boot-bzImage-2",
            "6.1-4",
        ];
        assert_eq!(named, expected);
    }

    #[test]
    fn parameters_of_kernels_are_for_guests_alone() {
        let args = KernelsArgs {
            words: Vec::new(),
            out: PathBuf::from("runs"),
            accel: Some(Accelerator::Tcg),
            append: Some("mitigations=off quiet".to_owned()),
            json: false,
            options: ["--loads", "udp_rr"].map(str::to_owned).to_vec(),
        };
        let of = |guest| parsed(options_of_run(&args, guest, &[], Path::new("runs/one"))).unwrap();
        let guest = of(Some((Path::new("bzImage"), Some(Path::new("modules")))));
        assert_eq!(guest.guest.kernel.as_deref(), Some(Path::new("bzImage")));
        let words = options_of_run(
            &args,
            Some((Path::new("bzImage"), None)),
            &[],
            Path::new("out"),
        );
        assert!(
            words
                .join(" ".as_ref())
                .to_string_lossy()
                .contains("--kernel bzImage --accel tcg --append mitigations=off quiet"),
            "{words:?}"
        );
        let words = options_of_run(&args, None, &[], Path::new("out"));
        assert_eq!(
            words,
            ["--out", "out", "--where-installed", "--loads", "udp_rr"]
        );
        assert_eq!(of(None).guest.kernel, None);
        let odd = Path::new(OsStr::from_bytes(b"runs/k\xff"));
        let asked = parsed(options_of_run(&args, Some((odd, None)), &[], odd)).unwrap();
        assert_eq!(asked.out.as_deref(), Some(odd));
        assert_eq!(asked.guest.kernel.as_deref(), Some(odd));
    }
}
