//! The program under test, as a user runs it.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::io::Read;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill, killpg};
use nix::unistd::Pid;

use super::plan::Room;
use super::procs::{self, Process};
use super::traces;

pub(crate) const PROGRAM: &str = env!("CARGO_BIN_EXE_hopyard");
/// No command of these tests takes so long, not even where the hypervisor takes time and blocks are measured twice.
pub(crate) const PATIENCE: Duration = Duration::from_secs(400);

/// The program with arguments.
pub(crate) fn hopyard(arguments: &[&str]) -> Command {
    let mut command = Command::new(PROGRAM);
    command.args(arguments);
    command
}

/// Runs the program to its end in a room, without any privilege.
pub(crate) fn nobody(room: &Room, arguments: &[&str]) -> Said {
    // Where it was built may not be open to others.
    let program = room.at("hopyard");
    if !program.exists() && std::fs::hard_link(PROGRAM, &program).is_err() {
        std::fs::copy(PROGRAM, &program).unwrap();
    }
    let mut command = Command::new(&program);
    command.args(arguments).current_dir(room.path());
    command.uid(65534).gid(65534);
    Running::start(command).wait()
}

/// Runs the program to its end.
pub(crate) fn run(arguments: &[&str]) -> Said {
    Running::start(hopyard(arguments)).wait()
}

/// What a program said, and how it ended.
#[derive(Debug)]
pub(crate) struct Said {
    pub(crate) pid: u32,
    pub(crate) what: String,
    pub(crate) status: ExitStatus,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
    pub(crate) took: Duration,
}

impl Said {
    /// It ended with this exit status, and not in a panic.
    #[track_caller]
    pub(crate) fn exits(&self, code: i32) -> &Self {
        for text in [&self.stdout, &self.stderr] {
            assert!(!text.contains("panicked at"), "{self}");
        }
        assert_eq!(self.status.code(), Some(code), "{self}");
        self
    }

    /// Its diagnostics have each of these words.
    #[track_caller]
    pub(crate) fn says(&self, words: &[&str]) -> &Self {
        for word in words {
            assert!(self.stderr.contains(word), "`{word}` is missing: {self}");
        }
        self
    }

    /// Its results have each of these words.
    #[track_caller]
    pub(crate) fn prints(&self, words: &[&str]) -> &Self {
        for word in words {
            assert!(self.stdout.contains(word), "`{word}` is missing: {self}");
        }
        self
    }

    #[track_caller]
    pub(crate) fn json(&self) -> serde_json::Value {
        serde_json::from_str(&self.stdout).unwrap_or_else(|e| panic!("{e}: {self}"))
    }
}

impl std::fmt::Display for Said {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "{}: {} after {:?}\n--- stdout\n{}\n--- stderr\n{}",
            self.what, self.status, self.took, self.stdout, self.stderr
        )
    }
}

/// A program that runs, in a process group of its own. Its children can be told by their environment.
pub(crate) struct Running {
    child: Child,
    what: String,
    mark: String,
    began: Instant,
    output: Option<[JoinHandle<String>; 2]>,
}

impl Running {
    pub(crate) fn start(mut command: Command) -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(1);
        let value = format!("{}-{}", std::process::id(), NEXT.fetch_add(1, Relaxed));
        let what = std::iter::once(command.get_program())
            .chain(command.get_args())
            .map(OsStr::to_string_lossy)
            .collect::<Vec<_>>()
            .join(" ");
        let mut child = command
            .env("HOPYARD_TEST", &value)
            .process_group(0)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap_or_else(|e| panic!("{what}: {e}"));
        let output = [
            collect(child.stdout.take().unwrap()),
            collect(child.stderr.take().unwrap()),
        ];
        Self {
            child,
            what,
            mark: format!("HOPYARD_TEST={value}"),
            began: Instant::now(),
            output: Some(output),
        }
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    pub(crate) fn signal(&self, signal: Signal) {
        kill(pid(self.pid()), signal).unwrap();
    }

    /// As a terminal does: to the whole foreground process group.
    pub(crate) fn signal_group(&self, signal: Signal) {
        killpg(pid(self.pid()), signal).unwrap();
    }

    /// The process itself and all that descend from it, wherever they went.
    pub(crate) fn processes(&self) -> Vec<Process> {
        procs::marked(&self.mark)
    }

    /// Workers in namespaces of a lab.
    pub(crate) fn lab_workers(&self) -> Vec<Process> {
        in_labs(self.processes())
    }

    /// Its processes while traffic flows between the two workers of a sample, and those workers; none at any other time.
    pub(crate) fn in_traffic(&self) -> Option<(Vec<Process>, Vec<Process>)> {
        self.in_traffic_of(2)
    }

    /// The same where labs stand side by side, with so many workers in all.
    pub(crate) fn in_traffic_of(&self, count: usize) -> Option<(Vec<Process>, Vec<Process>)> {
        let all = self.processes();
        let workers = in_labs(all.clone());
        (workers.len() == count && workers.iter().all(has_traffic)).then_some((all, workers))
    }

    /// The guest that it boots.
    pub(crate) fn qemu(&self) -> Option<u32> {
        let of = |pid: u32| std::fs::read_to_string(format!("/proc/{pid}/cmdline"));
        let is_qemu = |pid: &u32| of(*pid).is_ok_and(|c| c.contains("qemu-system-"));
        self.processes().into_iter().map(|p| p.pid).find(is_qemu)
    }

    /// Namespaces it made, as far as they stand now.
    pub(crate) fn namespaces(&self) -> BTreeSet<u64> {
        let own = procs::namespaces(std::process::id());
        let mut found = procs::namespaces(self.pid());
        for process in self.processes() {
            found.extend(procs::namespaces(process.pid));
        }
        found.difference(&own).copied().collect()
    }

    pub(crate) fn has_ended(&mut self) -> bool {
        self.child.try_wait().unwrap().is_some()
    }

    /// Waits for its end.
    pub(crate) fn wait(self) -> Said {
        self.wait_for(PATIENCE)
    }

    /// Waits for its end, which takes longer than others'.
    pub(crate) fn wait_for(mut self, patience: Duration) -> Said {
        let deadline = self.began + patience;
        let status = loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                break status;
            }
            assert!(
                Instant::now() < deadline,
                "{}: still running after {patience:?}",
                self.what
            );
            // Many wait at a time, most of them for seconds: looking each ms takes CPU time from the programs.
            let pause = self.began.elapsed() / 50;
            let [least, most] = [1, 20].map(Duration::from_millis);
            std::thread::sleep(pause.clamp(least, most));
        };
        let took = self.began.elapsed();
        let [stdout, stderr] = self.output.take().unwrap().map(|t| t.join().unwrap());
        Said {
            pid: self.pid(),
            what: self.what.clone(),
            status,
            stdout,
            stderr,
            took,
        }
    }

    /// Waits for its end without its output, which what it left behind may hold open.
    pub(crate) fn gone(mut self) -> ExitStatus {
        self.output = None;
        self.child.wait().unwrap()
    }

    /// Waits for its end; then no process of it, none of these namespaces and no control group is left.
    #[track_caller]
    pub(crate) fn wait_for_nothing_left(self, namespaces: &BTreeSet<u64>) -> Said {
        let (mark, pid) = (self.mark.clone(), self.pid());
        let said = self.wait();
        nothing_left(&mark, namespaces);
        let groups = traces::groups_of(pid);
        assert!(groups.is_empty(), "{groups:?} left: {said}");
        said
    }

    /// After SIGKILL: processes and namespaces must be gone; control groups may stay for `clean`.
    #[track_caller]
    pub(crate) fn wait_for_no_process(self, namespaces: &BTreeSet<u64>) -> Said {
        let mark = self.mark.clone();
        let said = self.wait();
        nothing_left(&mark, namespaces);
        said
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if self.output.is_some() && !matches!(self.child.try_wait(), Ok(Some(_))) {
            // A test failed: end the program and what belongs to it.
            for process in self.processes() {
                let _ = kill(pid(process.pid), Signal::SIGKILL);
            }
            let _ = self.child.wait();
        }
    }
}

#[track_caller]
fn nothing_left(mark: &str, namespaces: &BTreeSet<u64>) {
    let deadline = Instant::now() + Duration::from_secs(3);
    loop {
        let looked = Instant::now();
        let (processes, held) = (procs::marked(mark), procs::held(namespaces, Some(mark)));
        if processes.is_empty() && held.is_empty() {
            return;
        }
        assert!(
            Instant::now() < deadline,
            "processes left: {processes:?}, namespaces left: {held:?}"
        );
        super::pause_after(looked.elapsed());
    }
}

/// The workers in namespaces of a lab among some processes.
fn in_labs(among: Vec<Process>) -> Vec<Process> {
    let here = procs::namespaces(std::process::id());
    let mut workers = among;
    workers.retain(|p| {
        let there = std::fs::read_link(format!("/proc/{}/ns/net", p.pid));
        p.is_worker() && there.is_ok() && procs::namespaces(p.pid).is_disjoint(&here)
    });
    workers
}

/// Has more passed a worker's device than connecting takes?
pub(crate) fn has_traffic(worker: &Process) -> bool {
    const FLOWING: u64 = 1 << 20;
    bytes_on_eth0(worker.pid).is_some_and(|n| n > FLOWING)
}

/// What the device of an endpoint has received and sent, in the namespace of a process (`proc_pid_net(5)`).
fn bytes_on_eth0(pid: u32) -> Option<u64> {
    let text = std::fs::read_to_string(format!("/proc/{pid}/net/dev")).ok()?;
    let mut lines = text.lines();
    let line = lines.find_map(|line| line.trim_start().strip_prefix("eth0:"))?;
    let figures = line.split_ascii_whitespace().map(str::parse::<u64>);
    let figures: Vec<u64> = figures.collect::<Result<_, _>>().ok()?;
    Some(figures.first()? + figures.get(8)?)
}

pub(crate) fn pid(pid: u32) -> Pid {
    Pid::from_raw(i32::try_from(pid).unwrap())
}

fn collect(mut from: impl Read + Send + 'static) -> JoinHandle<String> {
    std::thread::spawn(move || {
        let mut bytes = Vec::new();
        // What came before an error is worth showing.
        let _ = from.read_to_end(&mut bytes);
        String::from_utf8_lossy(&bytes).into_owned()
    })
}
