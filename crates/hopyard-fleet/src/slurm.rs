//! The allocation of Slurm that we are in, as endpoints.

use std::process::{Command, Stdio};

use crate::endpoints::{Endpoint, FOR_PAIRS};
use crate::error::{Error, Result};

/// A command for one node of the job we are in.
///
/// - One task: `srun` gives stdin to every task.
/// - `--overlap`: since 20.11 a step has its CPUs for itself, and a pair's second step would wait for them for ever.
/// - No `--unbuffered`, which would give the worker a terminal for its stdout. `srun` holds back what comes after the last
///   newline, but the worker's messages end with one.
/// - `--mpi=none`, `--quiet`: nothing else may speak on the worker's stdin and stdout.
///
/// Its exit status is 0 when the node has failed, so nobody goes by it: a run ends with a message of the worker.
fn connect(node: &str) -> String {
    format!("srun --nodes=1 --ntasks=1 --nodelist={node} --overlap --mpi=none --quiet")
}

/// The nodes of the job around us.
///
/// # Errors
/// There is none, or `scontrol` does not say its nodes.
pub fn endpoints() -> Result<Vec<Endpoint>> {
    let list = std::env::var("SLURM_JOB_NODELIST").map_err(|_| {
        Error::Wrong(
            "SLURM_JOB_NODELIST is not set, so this is no Slurm allocation: use --slurm inside `salloc` or `sbatch`"
                .to_owned(),
        )
    })?;
    let output = Command::new("scontrol")
        .args(["show", "hostnames", &list])
        .stdin(Stdio::null())
        .output();
    let output = output.map_err(|e| {
        Error::Wrong(format!(
            "cannot start `scontrol show hostnames`, which lists the nodes of the allocation: {e}; put it into PATH"
        ))
    })?;
    if !output.status.success() {
        return Err(Error::Wrong(format!(
            "`scontrol show hostnames` failed: {}",
            hopyard_model::plain::line(&String::from_utf8_lossy(&output.stderr))
        )));
    }
    let endpoints = of(&String::from_utf8_lossy(&output.stdout));
    crate::endpoints::check(&endpoints, FOR_PAIRS)
        .map_err(|why| Error::Wrong(format!("the allocation {list}: {why}")))?;
    Ok(endpoints)
}

fn of(names: &str) -> Vec<Endpoint> {
    let names = names.lines().map(str::trim).filter(|n| !n.is_empty());
    let one = |node: &str| Endpoint {
        name: node.to_owned(),
        connect: connect(node),
        address: None,
        rack: None,
        kind: None,
    };
    names.map(one).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_node_is_an_endpoint() {
        let nodes = of("node1\nnode2\n");
        assert_eq!(nodes[1].name, "node2");
        assert!(
            nodes[1].connect.starts_with("srun ") && nodes[1].connect.contains("--nodelist=node2 ")
        );
        assert!(crate::endpoints::check(&nodes, FOR_PAIRS).is_ok());
        assert!(crate::endpoints::check(&of("node1\n-x y\n"), FOR_PAIRS).is_err());
    }
}
