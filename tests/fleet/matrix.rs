//! Matrices: cells on nodes that are stand-ins for machines, each measured by the real program.

use super::*;

const TEXT: &str = "base = \"veth\"\npaths = [\"bridge\", \"macvlan\"]\nloads = [\"tcp_rr\"]\nwindow = \"60ms\"\nblocks = \"2..2\"\n";

#[test]
fn cells_of_a_matrix_are_spread_over_nodes_and_compared_on_their_own() {
    let _beside = beside();
    unharmed(|| {
        let site = Site::new(0);
        let matrix = site
            .room
            .file("m.toml", format!("{TEXT}kinds = [\"big\", \"small\"]\n"));
        let node = |name: &str, kind: &str| {
            format!(
                "[[endpoint]]\nname = \"{name}\"\nconnect = \"env NODE={name}\"\nkind = \"{kind}\"\n"
            )
        };
        let nodes = [node("b1", "big"), node("s1", "small")].concat();
        let file = site.room.file("nodes.toml", nodes);
        let said = site.run(&["matrix", "run", &matrix, &file, "-o", "out"]);
        said.exits(0).prints(&[
            "4 of 4 cells measured",
            "big: against veth",
            "small: against veth",
            "(b1)",
            "(s1)",
        ]);
        tell(&said.stdout);
        let shown = site
            .run(&["matrix", "show", &matrix, "out", "--json"])
            .exits(0)
            .json();
        assert_eq!(shown["schema"], "hopyard/matrix/1");
        for cell in shown["cells"].as_array().unwrap() {
            let node = if cell["kind"] == "big" { "b1" } else { "s1" };
            assert_eq!(cell["node"], node, "{cell:#}");
            assert!(
                cell["verdicts"]["transactions_per_s"]["ratio"]["value"].is_number(),
                "{cell:#}"
            );
        }
        // A matrix whose kinds nobody has.
        let fewer = site
            .room
            .file("one.toml", [node("b1", "big"), node("b2", "big")].concat());
        site.run(&["matrix", "run", &matrix, &fewer, "-o", "none"])
            .exits(2)
            .says(&["`kind = \"small\"`"]);
        assert!(!site.room.at("none").exists());
    });
}

/// As over ssh, no signal reaches what runs on the node: only its standard input ends.
#[test]
fn an_interrupt_ends_what_runs_on_nodes() {
    let _beside = beside();
    unharmed(|| {
        let site = Site::new(0);
        let matrix = site.room.file("m.toml", TEXT.replace("60ms", "20s"));
        let nodes = site
            .room
            .file("nodes", "far setsid -w env\nnear setsid -w env A=1\n");
        let running = site.start(&["matrix", "run", &matrix, &nodes, "-o", "out"]);
        until("a worker runs", crate::support::cli::PATIENCE, || {
            let all = running.processes();
            all.iter().any(crate::support::procs::Process::is_worker)
        });
        running.signal(nix::sys::signal::Signal::SIGINT);
        let said = running.wait_for_nothing_left(&BTreeSet::new());
        assert!(said.took < Duration::from_secs(40), "{said}");
    });
}

/// As a job array does it: each task measures one cell, and one that is killed leaves the others.
#[test]
fn a_task_measures_the_cell_of_its_number() {
    let _beside = beside();
    unharmed(|| {
        let site = Site::new(0);
        let matrix = site.room.file("m.toml", TEXT);
        let task = |number: &str| {
            let mut command = site.command(&["matrix", "cell", &matrix, "-o", "out"]);
            command.env("SLURM_ARRAY_TASK_ID", number);
            Running::start(command)
        };
        task("1").wait_for_nothing_left(&BTreeSet::new()).exits(0);
        let shown = site.run(&["matrix", "show", &matrix, "out"]);
        shown
            .exits(1)
            .prints(&["1 of 2 cells measured", "not measured yet: 1 cell 0"]);
        // In another matrix, that number is another cell's. One of the nodes lets nobody in.
        let other = site.room.file(
            "other.toml",
            TEXT.replace("\"bridge\", \"macvlan\"", "\"macvlan\", \"bridge\""),
        );
        let nodes = site.room.file("nodes", "gone false\nhere env A=1\n");
        site.run(&["matrix", "run", &other, &nodes, "-o", "out"])
            .exits(0)
            .prints(&["2 of 2 cells measured"])
            .says(&["gone does not answer"]);
        task("7")
            .wait()
            .exits(2)
            .says(&["there is no cell 7: the matrix has 2 cells"]);
        task("x")
            .wait()
            .exits(2)
            .says(&["SLURM_ARRAY_TASK_ID is `x`"]);
        site.run(&["matrix", "cell", &matrix, "-o", "out"])
            .exits(2)
            .says(&["give --number"]);
        let planned = site.run(&["matrix", "plan", &matrix]);
        planned.exits(0).prints(&[
            "own · bridge · tcp_rr",
            "sbatch --array=0-1 --nodes=1 --exclusive --requeue --wrap ",
        ]);
    });
}
