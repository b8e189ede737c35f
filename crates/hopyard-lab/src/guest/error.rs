//! What can go wrong with a guest.

use std::io;
use std::path::PathBuf;
use std::process::ExitStatus;
use std::time::Duration;

/// The result of everything with a guest that can fail.
pub type Result<T> = std::result::Result<T, Error>;

/// What can go wrong with a guest. The text of an error never repeats its source.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// There is no program to boot it with.
    #[error(
        "cannot boot a guest: there is no program `{program}` in PATH: install package \
         `qemu-system-x86` (Debian, Ubuntu)"
    )]
    NoQemu {
        /// Name of the program that was looked for.
        program: String,
    },
    /// A file cannot be read.
    #[error("cannot read {}", .file.display())]
    Read {
        file: PathBuf,
        /// Why the file cannot be read.
        #[source]
        source: io::Error,
    },
    /// A file cannot be written.
    #[error("cannot write {}; free some space, or choose another directory with --into", .file.display())]
    Write {
        file: PathBuf,
        /// Why the file cannot be written.
        #[source]
        source: io::Error,
    },
    /// The directory for a kernel cannot be made, or others may replace what is put into it.
    #[error(
        "cannot fetch a kernel into {}; choose another directory with --into", .directory.display()
    )]
    Into {
        /// The directory as it was asked for.
        directory: PathBuf,
        /// Why, with the directory that others may write to.
        #[source]
        source: io::Error,
    },
    /// A kernel cannot be fetched.
    #[error("cannot fetch a kernel: {program}: {why}")]
    Fetch {
        /// The program that failed, or the file that does not fit.
        program: String,
        /// What it said, and the way out.
        why: String,
    },
    /// The file is no kernel image: neither a bzImage nor an ELF vmlinux.
    #[error(
        "{} is not a kernel that can be booted: neither a bzImage nor an ELF vmlinux; give the file that `make \
         bzImage` builds, or the one that `hopyard kernel fetch` prints", .0.display()
    )]
    NoKernel(PathBuf),
    /// Nobody said which kernel guests are to boot.
    #[error(
        "cannot boot a guest: no kernel was fetched; run `hopyard kernel fetch`, or give one with --guest-kernel"
    )]
    NoneChosen,
    /// Guests boot another kernel already.
    #[error("the guests of this run already boot {}: use one guest kernel in a run", .0.display())]
    Chosen(PathBuf),
    /// A directory without the kernel's modules.
    #[error(
        "{} has no modules of kernel {release}: give the directory /lib/modules/{release} that was installed with \
         this kernel, or a directory that contains it", .directory.display()
    )]
    NoModules {
        /// Where they were to be.
        directory: PathBuf,
        /// Release of the kernel, as `uname -r` prints it.
        release: String,
    },
    /// A module that no guest can do without.
    #[error(
        "kernel {release} has no `{module}`, which hopyard needs to communicate with a guest: it is neither built \
         in nor a module in {}; give the directory that has it with --modules, or build the kernel with CONFIG_VIRTIO_PCI and \
         CONFIG_VIRTIO_CONSOLE", .directory.display()
    )]
    Essential {
        module: &'static str,
        /// Release of the kernel, as `uname -r` prints it.
        release: String,
        /// Where it was looked for.
        directory: PathBuf,
    },
    /// A module is damaged.
    #[error("cannot copy module {} into the guest: {why}; check that the directory of modules is complete", .file.display())]
    Module {
        /// Path of the module's file.
        file: PathBuf,
        /// What is wrong with it.
        why: String,
    },
    /// A program cannot be taken along.
    #[error("cannot copy program {} into the guest: {why}", .file.display())]
    Program {
        /// Path of the program's file.
        file: PathBuf,
        /// What is wrong with it.
        why: String,
    },
    /// The initramfs cannot be written to its memfd.
    #[error("cannot make the guest's initial file system in memory")]
    Initramfs(#[source] io::Error),
    /// QEMU does not start.
    #[error("cannot start {program}")]
    Start {
        /// Path or name of the program.
        program: String,
        /// Why it does not start.
        #[source]
        source: io::Error,
    },
    /// The guest is gone.
    #[error("the guest ended while hopyard waited for it to {doing} ({how}){said}")]
    Died {
        /// What it was to do.
        doing: &'static str,
        /// Exit status or signal of QEMU.
        how: ExitStatus,
        /// The end of what it said.
        said: LastWords,
    },
    /// The guest of a path did not become a worker.
    #[error("the guest did not start{said}")]
    NoWorker {
        /// The end of what it said.
        said: LastWords,
        /// What became of its worker.
        #[source]
        source: crate::load::remote::Error,
    },
    /// The guest does not answer.
    #[error(
        "the guest did not {doing} within {after:?}; boot a kernel that works on this machine, or see what the \
         guest printed{said}"
    )]
    Silent {
        /// What it was to do.
        doing: &'static str,
        /// The time it had.
        after: Duration,
        /// The end of what it said.
        said: LastWords,
    },
    /// The guest says something else.
    #[error("unexpected reply while hopyard waited for the guest to {doing}: {answer}")]
    OutOfTurn {
        /// What it was to do.
        doing: &'static str,
        /// The message that came instead, for people.
        answer: String,
    },
    /// The guest says what cannot be.
    #[error(
        "the guest sent an impossible answer while hopyard waited for it to {doing}: {why}; boot a kernel that you \
         trust"
    )]
    Unbelievable {
        /// What it was to do.
        doing: &'static str,
        /// What is impossible about the answer, for people.
        why: String,
    },
    /// The guest cannot carry the plan out.
    #[error("in the guest: {message}")]
    Refused {
        /// The guest's own error message.
        message: String,
        /// Is it a request that the guest cannot meet, rather than something gone wrong?
        request: bool,
    },
    /// The user wants to stop.
    #[error("interrupted")]
    Interrupted,
}

/// The last lines of a guest's console and of QEMU, for people.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LastWords {
    /// Lines of the console.
    pub console: Vec<String>,
    /// Lines of QEMU itself.
    pub qemu: Vec<String>,
}

impl std::fmt::Display for LastWords {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let parts = [
            ("its console ends with these lines", &self.console),
            ("QEMU printed these lines", &self.qemu),
        ];
        let said: Vec<_> = parts
            .iter()
            .filter(|(_, lines)| !lines.is_empty())
            .collect();
        if said.is_empty() {
            return f.write_str("; it printed nothing on its console");
        }
        for (who, lines) in said {
            write!(f, "; {who}:")?;
            for line in *lines {
                write!(f, "\n  {line}")?;
            }
        }
        Ok(())
    }
}
