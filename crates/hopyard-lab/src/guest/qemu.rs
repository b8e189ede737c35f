//! QEMU as a command whose stdin and stdout are the guest's port.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::PathBuf;
use std::process::{Command, Stdio};

use hopyard_net::limit_files;
use serde::{Deserialize, Serialize};

use super::error::LastWords;
use super::initramfs::{Initramfs, PROGRAM};
use super::memory::{file_in_memory, open_name};
use super::{Error, Kernel, PORT, Result};
use crate::load::remote;
use crate::programs::in_path;

/// Memory of a guest that nobody asked otherwise for, MiB.
pub const MEMORY_MIB: u32 = 1024;

/// System calls that QEMU has no use for here, for whoever breaks out of a guest.
const SANDBOX: &str = "on,obsolete=deny,elevateprivileges=deny,spawn=deny,resourcecontrol=deny";
/// A guest that builds labs for hours says some MiB, bytes.
const MOST_OF_A_CONSOLE: u64 = 64 << 20;

/// Who carries out the guest's instructions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "lowercase")]
pub enum Accelerator {
    /// KVM: the CPU of the host runs the guest's code.
    Kvm,
    /// QEMU, by translation: many times slower, and no figure means what it says.
    Tcg,
}

impl Accelerator {
    /// For people.
    pub fn described(self) -> &'static str {
        match self {
            Self::Kvm => "under KVM",
            Self::Tcg => "emulated",
        }
    }

    fn arguments(self) -> [&'static str; 4] {
        match self {
            Self::Kvm => ["-accel", "kvm", "-cpu", "host"],
            // QEMU 7.2 gets `cmpxchg16b` wrong at times, which Linux 6.12 allocates memory with. With ERMS, a kernel copies
            // and clears by `rep movsb` and `rep stosb`, which are emulated byte by byte.
            Self::Tcg => [
                "-accel",
                "tcg,thread=multi",
                "-cpu",
                "max,cx16=off,erms=off",
            ],
        }
    }
}

/// A guest to boot.
#[derive(Debug)]
pub struct Guest<'a> {
    pub kernel: &'a Kernel,
    pub initramfs: &'a Initramfs,
    pub cpus: usize,
    pub memory_mib: u32,
    /// Words for its kernel.
    pub append: &'a str,
    /// Words for `hopyard init`.
    pub job: Vec<String>,
    /// Words for QEMU: devices beside the port.
    pub devices: Vec<String>,
}

impl Guest<'_> {
    /// The command that boots it, and where its console goes. Its stdin and stdout are the guest's port.
    pub(super) fn command(&self, accelerator: Accelerator) -> Result<(Command, Console)> {
        let program = program()?;
        let console = Console::new(program.as_os_str())?;
        let mut command = Command::new(&program);
        command
            .args(["-name", "hopyard,debug-threads=on", "-machine", "q35"])
            .args(accelerator.arguments())
            .args(["-smp", &self.cpus.to_string()])
            .args(["-m", &format!("{}M", self.memory_mib)])
            .args(["-sandbox", SANDBOX])
            .args([
                "-nodefaults",
                "-no-user-config",
                "-display",
                "none",
                "-no-reboot",
            ])
            .arg("-kernel")
            .arg(self.image(accelerator))
            .args(["-initrd", &self.initramfs.path()])
            .args(["-append", &self.command_line()])
            .args([
                "-chardev",
                &format!("file,id=console,path={}", open_name(&console.kernel)),
            ])
            .args(["-serial", "chardev:console"])
            .args([
                "-chardev",
                "stdio,id=port,signal=off",
                "-device",
                "virtio-serial-pci",
            ])
            .args([
                "-device",
                &format!("virtserialport,chardev=port,name={PORT}"),
            ])
            .args(&self.devices)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(console.of_qemu().map_err(start(program.as_os_str()))?);
        // The console is in memory: who writes more is ended (SIGXFSZ).
        limit_files(&mut command, MOST_OF_A_CONSOLE);
        Ok((command, console))
    }

    /// The file to boot. An emulated guest gets the decompressed kernel if QEMU can boot that.
    fn image(&self, accelerator: Accelerator) -> PathBuf {
        let unpacked = match accelerator {
            Accelerator::Kvm => None,
            Accelerator::Tcg => self.kernel.unpacked().map(open_name),
        };
        unpacked.map_or_else(|| self.kernel.image.clone(), PathBuf::from)
    }

    /// A kernel that panics restarts at once, which ends QEMU (`-no-reboot`).
    fn command_line(&self) -> String {
        let job = self.job.join(" ");
        format!(
            "console=ttyS0 earlyprintk=ttyS0 panic=-1 random.trust_cpu=on rdinit={PROGRAM} {} -- init {job}",
            self.append
        )
    }
}

/// QEMU for machines like this one.
pub fn program() -> Result<PathBuf> {
    let name = format!("qemu-system-{}", std::env::consts::ARCH);
    in_path(&name).ok_or(Error::NoQemu { program: name })
}

pub(super) fn start(program: &OsStr) -> impl Fn(std::io::Error) -> Error + use<> {
    let program = program.to_string_lossy().into_owned();
    move |source| Error::Start {
        program: program.clone(),
        source,
    }
}

/// What a guest's kernel and QEMU say, in memory.
#[derive(Debug)]
pub(crate) struct Console {
    kernel: File,
    qemu: File,
}

impl Console {
    pub(super) fn new(program: &OsStr) -> Result<Self> {
        let file = || file_in_memory("hopyard-console").map_err(start(program));
        Ok(Self {
            kernel: file()?,
            qemu: file()?,
        })
    }

    /// Where QEMU itself says something.
    pub(super) fn of_qemu(&self) -> std::io::Result<File> {
        self.qemu.try_clone()
    }

    /// Has the kernel itself said anything yet? What comes before it in its file (arch/x86/boot) runs in real mode,
    /// which a KVM that cannot run the rest may well carry out.
    pub(super) fn has_kernel_spoken(&self) -> bool {
        // The line may be there in part.
        let is_of = |line: &str, text: &str| line.starts_with(text) || text.starts_with(line);
        let lines = last_lines(&self.kernel);
        lines
            .iter()
            .any(|line| !BEFORE_THE_KERNEL.iter().any(|text| is_of(line, text)))
    }

    /// Why a guest did not become a worker, with what it said.
    pub(crate) fn explain(&self, error: remote::Error) -> Error {
        match error {
            remote::Error::Interrupted => Error::Interrupted,
            source => Error::NoWorker {
                said: self.last_words(),
                source,
            },
        }
    }

    /// The end of what both said.
    pub(super) fn last_words(&self) -> LastWords {
        LastWords {
            console: last_lines(&self.kernel),
            qemu: last_lines(&self.qemu),
        }
    }
}

/// What is said before the kernel runs (`query_edd` in arch/x86/boot/edd.c, `main` in arch/x86/boot/main.c).
const BEFORE_THE_KERNEL: [&str; 2] = ["Probing EDD", "early console in setup code"];

/// The last lines that a person wants to see.
fn last_lines(file: &File) -> Vec<String> {
    const LINES: usize = 12;
    const BYTES: u64 = 16 * 1024;
    /// What went wrong first, where, and that it was the end.
    const CAUSES: [&str; 4] = ["BUG: ", "Oops: ", "RIP: ", "Kernel panic"];
    let mut bytes = Vec::new();
    let mut file = file;
    let from = file.metadata().map_or(0, |m| m.len().saturating_sub(BYTES));
    let read = file
        .seek(SeekFrom::Start(from))
        .and_then(|_| file.take(BYTES).read_to_end(&mut bytes));
    if let Err(error) = read {
        return vec![format!("(cannot be read: {error})")];
    }
    let text = String::from_utf8_lossy(&bytes);
    let printable = |line: &str| line.replace(|c: char| c.is_control() && c != '\t', "");
    let lines: Vec<String> = text
        .lines()
        .map(printable)
        .filter(|l| !l.trim().is_empty())
        .collect();
    let (before, shown) = lines.split_at(lines.len().saturating_sub(LINES));
    // The trace below them may be longer than what is shown.
    let first = |cause: &&str| before.iter().position(|line| line.contains(cause));
    let causes = CAUSES.iter().filter_map(first);
    let causes: std::collections::BTreeSet<usize> = causes.collect();
    let causes = causes.into_iter().filter_map(|at| before.get(at));
    causes.chain(shown).cloned().collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    #[test]
    fn what_runs_before_the_kernel_is_no_sign_of_it() {
        let mut console = Console::new(OsStr::new("qemu")).unwrap();
        assert!(!console.has_kernel_spoken());
        for said in ["Prob", "ing EDD (edd=off to disable)... ", "ok\r\n"] {
            console.kernel.write_all(said.as_bytes()).unwrap();
            assert!(!console.has_kernel_spoken(), "{said}");
        }
        console
            .kernel
            .write_all(b"[    0.000000] Linux version 6.1.0\r\n")
            .unwrap();
        assert!(console.has_kernel_spoken());
    }

    #[test]
    fn the_end_of_a_console_is_for_people() {
        let mut file = file_in_memory("test").unwrap();
        for n in 0..500 {
            write!(file, "line {n}\r\n\r\n").unwrap();
        }
        let lines = last_lines(&file);
        assert_eq!(lines.len(), 12);
        assert_eq!(lines.last().map(String::as_str), Some("line 499"));
        write!(
            file,
            "Oops: 0000 [#1]\nRIP: 0010:here\n trace\nRIP: 0010:there\nKernel panic: no\n{}",
            "  trace\n".repeat(30)
        )
        .unwrap();
        let causes = [
            "Oops: 0000 [#1]",
            "RIP: 0010:here",
            "Kernel panic: no",
            "  trace",
        ];
        assert_eq!(last_lines(&file)[..4], causes);
    }
}
