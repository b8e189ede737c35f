//! Control groups (version 2) that account for and end the processes of a lab.
//!
//! Plain files are all it takes; no controller needs to be enabled, since `cpu.stat`, `cgroup.procs`
//! and `cgroup.kill` exist in every group (kernel `Documentation/admin-guide/cgroup-v2.rst`).

use std::fs;
use std::io;
use std::os::unix::process::CommandExt;
use std::path::{Component, Path, PathBuf};
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::directories::make_directories;
use crate::error::{Error, Result};
use crate::mounts::mount_points;
use crate::owned;

/// The only directory below the cgroup2 mount in which anything is made or removed.
const HOME: &str = "hopyard";
/// How long [`Cgroup::remove`] waits for processes that are ending.
const PATIENCE: Duration = Duration::from_secs(2);

/// A control group below `hopyard/`. Dropping it leaves it in place; [`Cgroup::remove`] removes it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cgroup {
    name: PathBuf,
    path: PathBuf,
}

impl Cgroup {
    /// Makes the group `hopyard/NAME`, or opens it where it exists. `name` may have several
    /// components ("LAB/ENDPOINT").
    ///
    /// # Errors
    /// [`Error::Unsupported`] without a cgroup2 mount, [`Error::Invalid`] for a name that is empty
    /// or leaves `hopyard/`.
    pub fn create(name: &str) -> Result<Self> {
        let group = Self::at(name)?;
        make_directories(&group.path)
            .map_err(|error| Error::from_io(group.doing("create"), error))?;
        Ok(group)
    }

    /// The names of the groups directly below `hopyard/`, sorted; none where it does not exist.
    ///
    /// # Errors
    /// [`Error::Unsupported`] without a cgroup2 mount.
    pub fn list() -> Result<Vec<String>> {
        let home = home()?;
        let entries = match fs::read_dir(&home) {
            Ok(entries) => entries,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(Error::from_io(format!("read `{}`", home.display()), error)),
        };
        let mut names: Vec<String> = entries
            .filter_map(io::Result::ok)
            .filter(|entry| entry.path().is_dir())
            .filter_map(|entry| entry.file_name().into_string().ok())
            .collect();
        names.sort();
        Ok(names)
    }

    /// Opens an existing group.
    ///
    /// # Errors
    /// [`Error::Missing`] if there is none of that name, otherwise as [`Cgroup::create`].
    pub fn open(name: &str) -> Result<Self> {
        let group = Self::at(name)?;
        if group.path.is_dir() {
            return Ok(group);
        }
        Err(Error::Missing {
            what: group.doing("open"),
            object: format!("directory `{}`", group.path.display()),
        })
    }

    /// The directory of the group.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Moves one process, with all its threads, into the group. What it starts from then on is born
    /// here.
    ///
    /// # Errors
    /// [`Error::Missing`] if there is no such process.
    pub fn add(&self, pid: u32) -> Result<()> {
        let what = || self.doing(&format!("move process {pid} into"));
        // Writing "0" would move the caller.
        if pid == 0 {
            return Err(Error::invalid(what(), "0 is no process"));
        }
        fs::write(self.path.join("cgroup.procs"), pid.to_string()).map_err(|error| {
            match error.raw_os_error() {
                Some(libc::ESRCH) => Error::Missing {
                    what: what(),
                    object: format!("process {pid}"),
                },
                _ => Error::from_io(what(), error),
            }
        })
    }

    /// Has a command be born in the group: its process joins before it becomes the program, so that
    /// nothing can come between.
    ///
    /// # Errors
    /// [`Error::Kernel`] if the group is gone. Whether the process could join is known when the
    /// command is started.
    pub fn adopt(&self, command: &mut Command) -> Result<()> {
        let procs = fs::OpenOptions::new()
            .write(true)
            .open(self.path.join("cgroup.procs"))
            .map_err(|error| Error::from_io(self.doing("open the list of processes of"), error))?;
        let join = move || {
            // "0" is the process that writes.
            nix::unistd::write(&procs, b"0")?;
            Ok(())
        };
        // SAFETY: between fork and exec the closure makes one write(2) on a descriptor that is open
        // already, which is async-signal-safe; it allocates nothing and takes no lock.
        unsafe { command.pre_exec(join) };
        Ok(())
    }

    /// Can groups have shares of the CPU (`cpu.weight`) here?
    ///
    /// # Errors
    /// [`Error::Unsupported`] without the `cpu` controller in groups of ours.
    pub fn check_cpu_shares() -> Result<()> {
        let what = "give processes shares of the CPU by control group";
        let home = home()?;
        let top = home.parent().unwrap_or(&home);
        // What the groups directly below may use is what the top hands down.
        let path = top.join("cgroup.subtree_control");
        let handed_down = fs::read_to_string(&path)
            .map_err(|error| Error::from_io(format!("read `{}`", path.display()), error))?;
        if handed_down.split_whitespace().any(|name| name == "cpu") {
            return Ok(());
        }
        Err(Error::Unsupported {
            what: what.into(),
            feature: "cgroup2 controller cpu".into(),
            remedy: format!(
                "it takes `cpu` in {}: `echo +cpu` to it, where a mount of cgroup v1 does not have that \
                 controller",
                path.display()
            ),
        })
    }

    /// Gives the groups below this one equal shares of the CPU, however many processes each has.
    ///
    /// # Errors
    /// As [`Cgroup::check_cpu_shares`].
    pub fn share_cpu(&self) -> Result<()> {
        Self::check_cpu_shares()?;
        for directory in [&home()?, &self.path] {
            let path = directory.join("cgroup.subtree_control");
            fs::write(&path, "+cpu")
                .map_err(|error| Error::from_io(format!("write `{}`", path.display()), error))?;
        }
        Ok(())
    }

    /// CPU time used by all processes that are or were in the group and below, µs resolution.
    ///
    /// # Errors
    /// [`Error::Reply`] when `cpu.stat` has no `usage_usec`.
    pub fn usage(&self) -> Result<Duration> {
        let text = self.read("cpu.stat")?;
        parse_usage(&text).ok_or_else(|| Error::Reply {
            what: self.doing("read the CPU usage of"),
            why: "no usage_usec in cpu.stat".into(),
        })
    }

    /// The processes in the group itself.
    ///
    /// # Errors
    /// [`Error::Kernel`] if the group is gone.
    pub fn procs(&self) -> Result<Vec<u32>> {
        let text = self.read("cgroup.procs")?;
        Ok(text.lines().filter_map(|line| line.parse().ok()).collect())
    }

    /// The processes in the group and below.
    ///
    /// # Errors
    /// [`Error::Kernel`] if the group is gone.
    pub fn all_procs(&self) -> Result<Vec<u32>> {
        let mut all = self.procs()?;
        for child in self.children() {
            // One that just went had none.
            all.extend(child.all_procs().unwrap_or_default());
        }
        Ok(all)
    }

    /// Sends SIGKILL to every process in the group and below; does not wait for them.
    ///
    /// Uses `cgroup.kill` (Linux 5.14), which leaves no gap for forks; one by one on older kernels.
    ///
    /// # Errors
    /// [`Error::Kernel`] if the group is gone, [`Error::Denied`] without root.
    pub fn kill(&self) -> Result<()> {
        match fs::OpenOptions::new()
            .write(true)
            .open(self.path.join("cgroup.kill"))
        {
            Ok(mut file) => io::Write::write_all(&mut file, b"1")
                .map_err(|error| Error::from_io(self.doing("kill the processes of"), error)),
            Err(_) => self.kill_each(),
        }
    }

    fn kill_each(&self) -> Result<()> {
        for child in self.children() {
            child.kill_each()?;
        }
        for pid in self.procs()? {
            let Ok(pid) = i32::try_from(pid) else {
                continue;
            };
            match kill(Pid::from_raw(pid), Signal::SIGKILL) {
                Ok(()) | Err(nix::errno::Errno::ESRCH) => {}
                Err(errno) => {
                    return Err(Error::from_errno(
                        self.doing("kill the processes of"),
                        errno,
                    ));
                }
            }
        }
        Ok(())
    }

    /// Removes the group and those below it, and `hopyard/` with the last one. Waits up to two
    /// seconds for processes that are ending; kills none.
    ///
    /// # Errors
    /// [`Error::Kernel`] (`EBUSY`) while processes live in it. A group that is gone is no error.
    pub fn remove(&self) -> Result<()> {
        for child in self.children() {
            child.remove()?;
        }
        let deadline = Instant::now() + PATIENCE;
        loop {
            match owned::remove_directory(&self.path) {
                Err(error)
                    if error.raw_os_error() == Some(libc::EBUSY) && Instant::now() < deadline =>
                {
                    thread::sleep(Duration::from_millis(1));
                }
                Err(error) if error.kind() != io::ErrorKind::NotFound => {
                    return Err(Error::from_io(self.doing("remove"), error));
                }
                _ => break,
            }
        }
        // Fails, as it should, while other labs have groups there.
        if self
            .path
            .parent()
            .is_some_and(|parent| parent.ends_with(HOME))
            && let Some(parent) = self.path.parent()
        {
            owned::remove_directory(parent).ok();
        }
        Ok(())
    }

    fn at(name: &str) -> Result<Self> {
        let parts = Path::new(name);
        let plain = parts
            .components()
            .all(|part| matches!(part, Component::Normal(_)));
        if name.is_empty() || !plain {
            return Err(Error::invalid(
                format!("use control group `{name}`"),
                "give a relative name without `..`",
            ));
        }
        Ok(Self {
            name: parts.to_path_buf(),
            path: home()?.join(parts),
        })
    }

    fn children(&self) -> Vec<Self> {
        let Ok(entries) = fs::read_dir(&self.path) else {
            return Vec::new();
        };
        entries
            .filter_map(io::Result::ok)
            .filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()))
            .map(|entry| Self {
                name: self.name.join(entry.file_name()),
                path: entry.path(),
            })
            .collect()
    }

    fn read(&self, file: &str) -> Result<String> {
        fs::read_to_string(self.path.join(file))
            .map_err(|error| Error::from_io(self.doing(&format!("read {file} of")), error))
    }

    fn doing(&self, verb: &str) -> String {
        format!("{verb} control group `{HOME}/{}`", self.name.display())
    }
}

/// The directory of the control group (version 2) that the calling process is in.
///
/// # Errors
/// [`Error::Unsupported`] without a cgroup2 mount, [`Error::Reply`] where the mount does not show the group (another
/// cgroup namespace).
pub fn own_cgroup() -> Result<PathBuf> {
    let what = "find the control group of this process";
    let text =
        fs::read_to_string("/proc/self/cgroup").map_err(|error| Error::from_io(what, error))?;
    let path = text.lines().find_map(|line| line.strip_prefix("0::/"));
    let own = path.map(|path| mount().map(|mount| mount.join(path)));
    match own.transpose()? {
        Some(own) if own.is_dir() => Ok(own),
        _ => Err(Error::Reply {
            what: what.into(),
            why: "the cgroup2 mount has no directory of it".into(),
        }),
    }
}

fn home() -> Result<PathBuf> {
    Ok(mount()?.join(HOME))
}

fn mount() -> Result<PathBuf> {
    let what = "find the control groups";
    let text =
        fs::read_to_string("/proc/self/mountinfo").map_err(|error| Error::from_io(what, error))?;
    mount_points(&text, "cgroup2")
        .into_iter()
        .next()
        .ok_or_else(|| Error::Unsupported {
            what: what.into(),
            feature: "cgroup2".into(),
            remedy: "mount it: mount -t cgroup2 none /sys/fs/cgroup".into(),
        })
}

fn parse_usage(cpu_stat: &str) -> Option<Duration> {
    let value = cpu_stat
        .lines()
        .find_map(|line| line.strip_prefix("usage_usec "))?;
    value.trim().parse().ok().map(Duration::from_micros)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn usage_is_read_from_cpu_stat() {
        let text = "usage_usec 1234\nuser_usec 1000\nsystem_usec 234\n";
        assert_eq!(parse_usage(text), Some(Duration::from_micros(1234)));
        assert_eq!(parse_usage("user_usec 5\n"), None);
        assert_eq!(parse_usage("usage_usec x\n"), None);
    }

    #[test]
    fn names_stay_below_home() {
        for name in ["", "..", "a/../b", "/etc", "."] {
            assert!(
                matches!(Cgroup::create(name), Err(Error::Invalid { .. })),
                "{name:?}"
            );
        }
    }
}
