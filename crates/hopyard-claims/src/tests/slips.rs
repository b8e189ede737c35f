//! A judge that reads rules wrongly is noticed: slips of the second judge, each of which has to show in some world.

use std::path::{Path, PathBuf};

use super::chance;
use super::twice::{by_hopyard, by_python, differences, has_python, judges, root, side_by_side};

/// A judge that reads a rule wrongly: which file of it, what stands there and what instead, and the report to which that matters.
struct Slip {
    file: &'static str,
    from: &'static str,
    to: &'static str,
    report: &'static str,
}

const fn slip(
    file: &'static str,
    from: &'static str,
    to: &'static str,
    report: &'static str,
) -> Slip {
    Slip {
        file,
        from,
        to,
        report,
    }
}

const NM: &str = "netns-macvlan-2007.toml";
const MQ: &str = "multiqueue-tap-2011.toml";
const NS: &str = "namespace-switching-2014.toml";
const ND: &str = "netback-direct-2006.toml";
const PL: &str = "planetlab-containers-2007.toml";

/// Looks at all properties of a cell.
const LOOKS: &str = "for name, wanted in cells.items())";

const SLIPS: &[Slip] = &[
    // Later blocks are not read, or of other cells.
    slip(
        "judge.py",
        "run.append([more",
        "run.append([] and [more",
        NM,
    ),
    slip(
        "runs.py",
        "cell = self.cells.index(more.cells[at])",
        "cell = at",
        NM,
    ),
    // The CPU time of both machines counts as that of one, or that of the other machine does.
    slip(
        "quantities.py",
        "if has_clients_machine else",
        "if False else",
        NM,
    ),
    slip(
        "quantities.py",
        "if machine[\"ends\"] == ends]",
        "if machine[\"ends\"] != ends]",
        NM,
    ),
    // A property that rules tell cells apart by is passed over.
    slip(
        "runs.py",
        LOOKS,
        "for name, wanted in cells.items() if name != \"path\")",
        NM,
    ),
    slip(
        "runs.py",
        LOOKS,
        "for name, wanted in cells.items() if name != \"load\")",
        NM,
    ),
    slip(
        "runs.py",
        LOOKS,
        "for name, wanted in cells.items() if name != \"peer\")",
        MQ,
    ),
    slip(
        "runs.py",
        LOOKS,
        "for name, wanted in cells.items() if name != \"queues\")",
        MQ,
    ),
    slip(
        "runs.py",
        LOOKS,
        "for name, wanted in cells.items() if name != \"steering\")",
        MQ,
    ),
    slip(
        "runs.py",
        LOOKS,
        "for name, wanted in cells.items() if name != \"offload\")",
        NS,
    ),
    slip(
        "runs.py",
        LOOKS,
        "for name, wanted in cells.items() if name != \"flows\")",
        NS,
    ),
    slip(
        "runs.py",
        LOOKS,
        "for name, wanted in cells.items() if name != \"message_size\")",
        PL,
    ),
    slip(
        "runs.py",
        LOOKS,
        "for name, wanted in cells.items() if name != \"containers\")",
        PL,
    ),
    slip(
        "runs.py",
        LOOKS,
        "for name, wanted in cells.items() if name != \"scheduler\")",
        PL,
    ),
    slip(
        "runs.py",
        "own.get(name, \"default\")",
        "own.get(name, \"\")",
        NM,
    ),
    // Other cells are compared.
    slip(
        "runs.py",
        "own | {name: value} == other",
        "own | {name: value, \"flows\": other[\"flows\"]} == other",
        MQ,
    ),
    slip(
        "runs.py",
        "| {\"path\": to} == other",
        "| {\"path\": to, \"load\": other[\"load\"]} == other",
        ND,
    ),
    slip("points.py", "check.get(\"mean_over\", [])", "[]", MQ),
    slip("points.py", "check.get(\"geometric\")", "False", PL),
    slip(
        "points.py",
        "check.get(\"to_quantity\", quantity)",
        "quantity",
        ND,
    ),
    slip(
        "points.py",
        "math.exp(math.fsum(map(math.log, values)) / len(values))",
        "sum(values) / len(values)",
        MQ,
    ),
    slip(
        "points.py",
        "(cell - less) / (cell - base)",
        "(cell - less) / (less - base)",
        ND,
    ),
    slip("points.py", "max(below, key=", "min(below, key=", NS),
    // Other samples count.
    slip("runs.py", "if userspace or ", "if ", NS),
    slip("runs.py", " or not m[\"way\"][\"proved\"]", "", NS),
    slip(
        "runs.py",
        "{} if quantity == \"settling_s\" and len(series) < len(samples) else series",
        "series",
        PL,
    ),
    slip(
        "quantities.py",
        "net / m[\"cpu\"][\"elapsed_ns\"] * m[\"window_ns\"]",
        "net",
        NM,
    ),
    slip(
        "quantities.py",
        "max((least + most) / 2, min(own, left))",
        "(least + most) / 2",
        NM,
    ),
    // Turns are not paired by rounds, or disturbed ones count.
    slip(
        "runs.py",
        "one[b] if logs[b] is None else other[b] * math.exp(logs[b])",
        "one[b]",
        MQ,
    ),
    slip(
        "runs.py",
        "[turn for turn in turns if is_quiet(turn)] or turns",
        "turns",
        MQ,
    ),
    // What was not measured is taken for known.
    slip("intervals.py", "min(less + 1, found.low)", "found.low", PL),
    slip(
        "runs.py",
        "unsettled(m) if time is None else time",
        "time",
        PL,
    ),
    // Other verdicts are drawn from the same figures.
    slip("judge.py", "max(n - within + 1, 1)", "max(n, 1)", MQ),
    slip("judge.py", "if of & cells", "", MQ),
    slip("points.py", "if value > 0]", "if value > 1]", PL),
    slip(
        "judge.py",
        "confidence = run.header[\"confidence\"]",
        "confidence = 0.90",
        NS,
    ),
    slip("judge.py", "== \"most\"", "== \"all\"", MQ),
    slip("runs.py", "least=1)", "least=0)", NM),
    slip("points.py", "curve.slopes(20)", "curve.slopes(16)", PL),
    slip(
        "intervals.py",
        "math.sqrt(n / (n - 1)) * t_value",
        "t_value",
        PL,
    ),
    slip(
        "intervals.py",
        "t_value(confidence, n - 1) * stdev",
        "t_value(confidence, n) * stdev",
        MQ,
    ),
];

/// A judge of ours with a slip.
fn with_slip(slip: &Slip, home: &Path) -> PathBuf {
    let own = home.join("tests/judge");
    std::fs::create_dir_all(&own).unwrap();
    std::os::unix::fs::symlink(root().join("crates"), home.join("crates")).unwrap();
    for file in [
        "judge.py",
        "points.py",
        "runs.py",
        "quantities.py",
        "intervals.py",
    ] {
        let mut text = std::fs::read_to_string(judges().join(file)).unwrap();
        if file == slip.file {
            assert_eq!(text.matches(slip.from).count(), 1, "{file}: {}", slip.from);
            text = text.replace(slip.from, slip.to);
        }
        std::fs::write(own.join(file), text).unwrap();
    }
    own
}

/// Worlds in which a slip shows, each at least in one of them.
const WORLDS_FOR_SLIPS: u64 = 32;

#[test]
#[ignore = "takes minutes: `cargo test -p hopyard-claims --lib -- --ignored a_slip_of_one_judge`"]
fn a_slip_of_one_judge_shows() {
    if !has_python() {
        return;
    }
    let worlds = side_by_side(WORLDS_FOR_SLIPS, |seed| {
        let directory = tempfile::tempdir().unwrap();
        chance::write(seed, directory.path());
        directory
    });
    let unseen = side_by_side(SLIPS.len() as u64, |at| {
        let slip = &SLIPS[at as usize];
        let home = tempfile::tempdir().unwrap();
        let judge = with_slip(slip, home.path());
        let files = [slip.report];
        let shows = worlds.iter().any(|world| {
            let own = by_hopyard(&files, world.path());
            !differences(&own, &by_python(&judge, &files, world.path())).is_empty()
        });
        (!shows).then(|| format!("{}: {}", slip.file, slip.to))
    });
    let unseen: Vec<String> = unseen.into_iter().flatten().collect();
    assert!(unseen.is_empty(), "nobody noticed:\n{}", unseen.join("\n"));
}
