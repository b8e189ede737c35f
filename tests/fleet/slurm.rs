//! A real Slurm: Debian's slurmctld, munged and a slurmd for each node, in namespaces of one machine (`tests/slurm/cluster.sh`).
//!
//! What is tried here of `srun` is in docs/fleet.md; a stand-in that checks its flags is in `tests/fleet.rs`, for machines without.

use std::path::Path;
use std::process::{Child, Stdio};

use super::*;
use crate::support::cli::PATIENCE;
use crate::support::procs;
use crate::support::skip;

const SCRIPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/slurm/cluster.sh");
/// What a cluster has that is no part of a job.
const OF_CLUSTER: [&str; 8] = [
    "bash",
    "munged",
    "sh",
    "sleep",
    "slurmctld",
    "slurmd",
    "slurmscriptd",
    "unshare",
];
/// Windows so short that a pair takes a second.
const BRIEF: &str = "--loads tcp_rr --window 100ms --warm-up 20ms --blocks 2";

/// A cluster; it ends with the value.
struct Cluster {
    room: Room,
    child: Child,
    init: u32,
}

impl Cluster {
    /// `None` where Slurm is not installed, which counts as skipped.
    fn start(nodes: usize) -> Option<Self> {
        let is_there = |program: &str| Path::new(program).exists();
        let programs = [
            "/usr/sbin/slurmctld",
            "/usr/sbin/slurmd",
            "/usr/sbin/munged",
        ];
        if !programs.into_iter().all(is_there) {
            let reason = "install slurmctld slurmd slurm-client munge";
            skip("Slurm", false, reason);
            return None;
        }
        use std::os::unix::fs::PermissionsExt;
        let room = Room::new();
        // munged takes no key from a directory that others may write.
        std::fs::set_permissions(room.path(), std::fs::Permissions::from_mode(0o755)).unwrap();
        let said = std::fs::File::create(room.at("cluster.out")).unwrap();
        let child = Command::new("unshare")
            .args(["--mount", "--pid", "--fork", "--kill-child", "--mount-proc"])
            .args(["--net", "--uts", "bash", SCRIPT])
            .args([room.path().to_str().unwrap(), &nodes.to_string()])
            .stdin(Stdio::null())
            .stdout(said.try_clone().unwrap())
            .stderr(said)
            .spawn()
            .unwrap();
        let mut cluster = Self {
            room,
            child,
            init: 0,
        };
        let out = cluster.room.at("cluster.out");
        let heard = || std::fs::read_to_string(&out).unwrap_or_default();
        let began = std::time::Instant::now();
        until("the cluster is ready", Duration::from_secs(60), || {
            let ended = cluster.child.try_wait().unwrap();
            assert!(ended.is_none(), "the cluster ended: {}", heard());
            heard().contains("ready")
        });
        tell(&format!(
            "{nodes} nodes are idle after {:?}",
            began.elapsed()
        ));
        let own = cluster.child.id();
        let init = procs::all().into_iter().find(|p| p.parent == own);
        cluster.init = init.unwrap().pid;
        Some(cluster)
    }

    /// A shell on the machine that users log in to.
    fn shell(&self, script: &str) -> Command {
        let mut command = Command::new("nsenter");
        command.args([
            "-t",
            &self.init.to_string(),
            "-m",
            "-p",
            "-n",
            "-u",
            "-r",
            "-w",
        ]);
        command.args(["bash", "-c", script]);
        command.current_dir(self.room.path());
        let programs = Path::new(PROGRAM).parent().unwrap().display().to_string();
        let path = std::env::var("PATH").unwrap();
        command.env("PATH", format!("{programs}:{path}:/usr/sbin"));
        command.env("SLURM_CONF", self.room.at("slurm.conf"));
        command.env("TMPDIR", self.room.path());
        command
    }

    /// What a script there prints; it succeeds.
    #[track_caller]
    fn said(&self, script: &str) -> String {
        let output = self
            .shell(&format!("cd {}; {script}", self.room.path().display()))
            .output()
            .unwrap();
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        assert!(
            output.status.success(),
            "{script}: {}{}",
            text(&output.stdout),
            text(&output.stderr)
        );
        text(&output.stdout)
    }

    /// Hands a batch job in; its number. The fleet goes to `DIRECTORY`, what it says to `DIRECTORY.log`.
    fn submit(&self, directory: &str, more: &str, flags: &str) -> String {
        let script = format!("#!/bin/bash\nexec hopyard fleet run --slurm -o {directory} {more}\n");
        self.room.file(&format!("{directory}.sh"), script);
        let place = self.room.path().display();
        let job = self.said(&format!(
            "sbatch --parsable --no-kill {flags} -D {place} -o {directory}.log {directory}.sh"
        ));
        job.trim().to_owned()
    }

    fn log(&self, directory: &str) -> String {
        std::fs::read_to_string(self.room.at(&format!("{directory}.log"))).unwrap_or_default()
    }

    /// Pairs that are kept so far.
    fn kept(&self, directory: &str) -> usize {
        let file = self.room.at(directory).join("pairs.jsonl");
        let text = std::fs::read_to_string(file).unwrap_or_default();
        text.lines()
            .filter(|line| line.starts_with("{\"pair\"") && line.contains("\"measured\""))
            .count()
    }

    #[track_caller]
    fn until_kept(&self, directory: &str, count: usize) {
        let deadline = std::time::Instant::now() + PATIENCE;
        while self.kept(directory) < count {
            assert!(
                std::time::Instant::now() < deadline,
                "{}",
                self.log(directory)
            );
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// The job is over and gone from the queue.
    #[track_caller]
    fn until_over(&self, job: &str, patience: Duration) {
        let deadline = std::time::Instant::now() + patience;
        loop {
            std::thread::sleep(Duration::from_millis(200));
            let output = self
                .shell(&format!("squeue -h -j {job} -o '%T %r %N'"))
                .output()
                .unwrap();
            // A job that is long over is no job any more, which is an error.
            let said = String::from_utf8_lossy(&output.stdout).trim().to_owned();
            let why = String::from_utf8_lossy(&output.stderr);
            if said.is_empty() && (output.status.success() || why.contains("Invalid job id")) {
                return;
            }
            assert!(
                std::time::Instant::now() < deadline,
                "job {job} is not over after {patience:?}: {said} {why}; steps: {}",
                self.said(&format!("squeue -h -s -j {job}"))
            );
        }
    }

    /// Programs of jobs that run anywhere in the cluster.
    fn of_jobs(&self) -> Vec<procs::Process> {
        let space = |pid: u32| std::fs::read_link(format!("/proc/{pid}/ns/pid")).ok();
        let own = space(self.init);
        let is_ours =
            |p: &procs::Process| p.state != 'Z' && space(p.pid) == own && p.pid != self.init;
        let name = |p: &procs::Process| {
            std::fs::read_to_string(format!("/proc/{}/comm", p.pid))
                .unwrap_or_default()
                .trim()
                .to_owned()
        };
        let all = procs::all().into_iter().filter(is_ours);
        all.filter(|p| !OF_CLUSTER.contains(&&name(p)[..]))
            .collect()
    }

    /// Neither a step, nor a worker, nor a run is left at any node.
    #[track_caller]
    fn nothing_runs(&self, patience: Duration) {
        let began = std::time::Instant::now();
        loop {
            let left = self.of_jobs();
            if left.is_empty() {
                tell(&format!("nothing is left after {:?}", began.elapsed()));
                return;
            }
            assert!(began.elapsed() < patience, "left: {left:#?}");
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    #[track_caller]
    fn until_idle(&self, nodes: usize) {
        until("all nodes are idle", Duration::from_secs(90), || {
            std::thread::sleep(Duration::from_millis(200));
            self.said("sinfo -h -t idle -o %D || true").trim() == nodes.to_string()
        });
    }

    fn document(&self, directory: &str) -> Value {
        let said = self.said(&format!("hopyard fleet show {directory} --json || true"));
        serde_json::from_str(&said).unwrap_or_else(|e| panic!("{e}: {said}"))
    }

    fn slurmd(&self, node: usize) -> u32 {
        let file = self.room.at(&format!("slurmd.node{node}.pid"));
        let inside: u32 = std::fs::read_to_string(file)
            .unwrap()
            .trim()
            .parse()
            .unwrap();
        self.outside(inside)
    }

    fn slurmctld(&self) -> u32 {
        let inside = std::fs::read_to_string(self.room.at("slurmctld.pid")).unwrap();
        self.outside(inside.trim().parse().unwrap())
    }

    /// The number that a process of the cluster has for us.
    fn outside(&self, inside: u32) -> u32 {
        let space = |pid: u32| std::fs::read_link(format!("/proc/{pid}/ns/pid")).ok();
        let own = space(self.init);
        let number = |pid: u32| {
            let status = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
            let line = status.lines().find_map(|l| l.strip_prefix("NSpid:"))?;
            line.split_whitespace().last()?.parse::<u32>().ok()
        };
        let mut all = procs::all().into_iter().map(|p| p.pid);
        all.find(|pid| space(*pid) == own && number(*pid) == Some(inside))
            .unwrap()
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        // The first process of the PID namespace goes with `unshare`, and all others with that.
        let _ = self.child.kill();
        let _ = self.child.wait();
        let began = std::time::Instant::now();
        while Path::new(&format!("/proc/{}", self.init)).exists()
            && began.elapsed() < Duration::from_secs(5)
        {
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}

/// All pairs of a batch job, one step a worker; no machine in two pairs.
fn all_pairs(cluster: &Cluster, nodes: usize) {
    let began = std::time::Instant::now();
    let job = cluster.submit("whole", BRIEF, &format!("-N{nodes}"));
    cluster.until_over(&job, PATIENCE);
    let document = cluster.document("whole");
    let log = cluster.log("whole");
    let pairs = pairs(&document);
    assert_eq!(
        document["counts"]["measured"],
        nodes * (nodes - 1) / 2,
        "{log}"
    );
    let took = began.elapsed();
    tell(&format!(
        "{} pairs of {nodes} nodes in {took:?}: {log}",
        pairs.len()
    ));
    for (name, pair) in &pairs {
        let span = |pair: &Value| {
            let [began, took] = ["began_ms", "took_ms"].map(|f| pair[f].as_u64().unwrap());
            began..began + took
        };
        let ends = |pair: &Value| [pair["client"].clone(), pair["server"].clone()];
        for (other, beside) in pairs.iter().filter(|(other, _)| *other != name) {
            let shares = ends(pair).iter().any(|end| ends(beside).contains(end));
            let (a, b) = (span(pair), span(beside));
            assert!(
                !shares || a.end <= b.start || b.end <= a.start,
                "{name} and {other}"
            );
        }
    }
    cluster.nothing_runs(Duration::from_secs(20));
}

/// SIGKILL of a slurmd: its node takes no further steps; the pairs of the others go on, since the job was submitted with `--no-kill`.
fn a_slurmd_dies(cluster: &Cluster, nodes: usize) {
    let job = cluster.submit("dies", BRIEF, &format!("-N{nodes}"));
    cluster.until_kept("dies", 1);
    let victim = nodes;
    nix::sys::signal::kill(
        crate::support::cli::pid(cluster.slurmd(victim)),
        nix::sys::signal::Signal::SIGKILL,
    )
    .unwrap();
    cluster.until_over(&job, PATIENCE);
    let (document, log) = (cluster.document("dies"), cluster.log("dies"));
    tell(&format!("a slurmd died: {log}"));
    let name = format!("node{victim}");
    for (pair, found) in pairs(&document) {
        let is_of_victim = pair.contains(&name);
        assert!(
            is_of_victim || found["state"] == "measured",
            "{pair}: {found} {log}"
        );
        assert_eq!(
            found["cause"].is_string(),
            found["state"] != "measured",
            "{pair}: {found}"
        );
    }
    let is_lost = |m: &Value| m["name"] == name[..] && m["lost"].is_string();
    assert!(
        document["machines"].as_array().unwrap().iter().any(is_lost),
        "{log}"
    );
    cluster.said(&format!(
        "nsenter -t $(cat node{victim}.pid) -n -u slurmd -N {name}"
    ));
    cluster.nothing_runs(Duration::from_secs(40));
    cluster.until_idle(nodes);
}

/// What was measured stays when the job is cancelled, and the next job goes on with it.
fn the_job_is_cancelled(cluster: &Cluster, nodes: usize) {
    let job = cluster.submit("cancelled", BRIEF, &format!("-N{nodes}"));
    cluster.until_kept("cancelled", 1);
    cluster.said(&format!("scancel {job}"));
    cluster.until_over(&job, PATIENCE);
    cluster.nothing_runs(Duration::from_secs(40));
    let before = pairs(&cluster.document("cancelled"));
    let measured = before
        .iter()
        .filter(|(_, pair)| pair["state"] == "measured");
    let measured: Vec<_> = measured.collect();
    assert!(!measured.is_empty());
    cluster.until_idle(nodes);
    let job = cluster.submit("cancelled", "--resume", &format!("-N{nodes}"));
    cluster.until_over(&job, PATIENCE);
    let after = cluster.document("cancelled");
    assert_eq!(
        after["counts"]["measured"],
        nodes * (nodes - 1) / 2,
        "{}",
        cluster.log("cancelled")
    );
    let after = pairs(&after);
    for (name, pair) in measured {
        assert_eq!(*pair, after[name], "{name}");
    }
}

/// Slurm's controller dies: steps that run go on, and no further one starts until it is back.
fn the_controller_of_slurm_dies(cluster: &Cluster, nodes: usize) {
    let job = cluster.submit(
        "without",
        &format!("{BRIEF} --pair-limit 20s"),
        &format!("-N{nodes}"),
    );
    cluster.until_kept("without", 1);
    let before = pairs(&cluster.document("without"));
    nix::sys::signal::kill(
        crate::support::cli::pid(cluster.slurmctld()),
        nix::sys::signal::Signal::SIGKILL,
    )
    .unwrap();
    std::thread::sleep(Duration::from_secs(5));
    cluster.said("slurmctld");
    cluster.until_over(&job, PATIENCE);
    tell(&format!("slurmctld died: {}", cluster.log("without")));
    let after = pairs(&cluster.document("without"));
    for (name, pair) in before
        .iter()
        .filter(|(_, pair)| pair["state"] == "measured")
    {
        assert_eq!(*pair, after[name], "{name}");
    }
    // A slurmstepd that could not tell the controller that its step is over tries again after 60 s, whatever the fleet does.
    cluster.nothing_runs(Duration::from_secs(100));
    cluster.until_idle(nodes);
}

/// The fleet itself is killed: the batch script ends, and with it the job and all steps.
fn the_fleet_is_killed(cluster: &Cluster, nodes: usize) {
    let job = cluster.submit("killed", BRIEF, &format!("-N{nodes}"));
    cluster.until_kept("killed", 1);
    let is_fleet = |p: &&procs::Process| p.arguments.get(1).is_some_and(|word| word == "fleet");
    let fleet = cluster.of_jobs().iter().find(is_fleet).unwrap().pid;
    nix::sys::signal::kill(
        crate::support::cli::pid(fleet),
        nix::sys::signal::Signal::SIGKILL,
    )
    .unwrap();
    cluster.until_over(&job, PATIENCE);
    cluster.nothing_runs(Duration::from_secs(40));
    assert!(cluster.document("killed")["counts"]["measured"].as_u64() >= Some(1));
    cluster.until_idle(nodes);
}

#[test]
fn a_batch_job_of_a_real_slurm_measures_its_nodes_and_what_it_measured_outlives_it() {
    let _beside = beside();
    unharmed(|| {
        let Some(cluster) = Cluster::start(3) else {
            return;
        };
        all_pairs(&cluster, 3);
        the_job_is_cancelled(&cluster, 3);
    });
}

#[test]
#[ignore = "takes minutes: make test-slurm"]
fn slurm_eight_nodes_in_full_and_with_parts_that_die() {
    let _beside = beside();
    unharmed(|| {
        let Some(cluster) = Cluster::start(8) else {
            return;
        };
        all_pairs(&cluster, 8);
        a_slurmd_dies(&cluster, 8);
        the_job_is_cancelled(&cluster, 8);
        the_controller_of_slurm_dies(&cluster, 8);
        the_fleet_is_killed(&cluster, 8);
    });
}
