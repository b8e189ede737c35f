//! The direction of this crate, held by a test: a module uses modules of earlier stages alone.
//!
//! The compiler keeps no order between the modules of a crate. This test reads the sources, without tests and comments, and fails
//! where a module uses one of a later stage, and where the modules of a folder use each other in a circle.

mod sources;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::path::Path;

use sources::{Source, sources};

/// The stages, the lowest first; each is called by the first of its modules. A module without a stage fails the test.
const STAGES: &[&[&str]] = &[
    &["units"],
    &["plain"],
    // Functions of `lib.rs`.
    &["note", "chain"],
    &["signals"],
    &["bounded"],
    &["owner"],
    &["programs"],
    &["stats"],
    &["model"],
    &["load"],
    &["loads"],
    &["meter"],
    &["profile"],
    &["settings"],
    &["store"],
    &["tapswitch"],
    &["guest"],
    &["lab"],
    &["assess"],
    &["plan"],
    &["measure"],
    &["run"],
    &["report"],
    &["claims"],
    &["cli"],
];

/// Uses of a later stage that are still there: user, used, files. The list may get shorter, not longer.
const UPWARDS: &[(&str, &str, usize)] = &[];

/// Circles within a folder that are still there: the folder, its modules. The list may get shorter, not longer.
const CIRCLES: &[(&str, &[&str])] = &[
    (
        "lab",
        &[
            "axes",
            "builder",
            "clients",
            "daemon",
            "error",
            "group",
            "guests",
            "keep",
            "offloads",
            "ovs",
            "part",
            "paths",
            "standing",
            "switching",
            "tap",
            "topology",
            "wire",
        ],
    ),
    (
        "report",
        &[
            "curves", "document", "figures", "header", "notes", "plot", "sweep",
        ],
    ),
];

type Uses<'a> = BTreeMap<(&'a str, &'a str), BTreeSet<&'a str>>;

/// Place and name of the stage of a path: the one with the longest module that the path begins with.
fn stage<'a>(stages: &[&[&'a str]], path: &[String]) -> Option<(usize, &'a str)> {
    let path = path.join("::");
    let begins = |module: &str| {
        let rest = path.strip_prefix(module)?;
        (rest.is_empty() || rest.starts_with("::")).then_some(module.len())
    };
    let stages = stages.iter().enumerate();
    let modules = stages.flat_map(|(place, stage)| stage.iter().map(move |m| (place, stage[0], m)));
    let found = modules.filter_map(|(place, name, m)| Some((begins(m)?, place, name)));
    found.max().map(|(_, place, name)| (place, name))
}

/// The files that use a later stage.
fn upwards<'a>(stages: &[&[&'a str]], sources: &'a [Source]) -> Uses<'a> {
    let need = |file: &str, path: &[String]| {
        stage(stages, path).unwrap_or_else(|| panic!("{file}: no stage has `{}`", path.join("::")))
    };
    let mut found = Uses::new();
    for source in sources {
        let (from, user) = need(&source.file, &source.module);
        for path in &source.uses {
            let (to, used) = need(&source.file, path);
            if to > from {
                found.entry((user, used)).or_default().insert(&source.file);
            }
        }
    }
    found
}

/// What differs between the uses that are there and those that are known.
fn differences(found: &Uses<'_>, known: &[(&str, &str, usize)]) -> String {
    let mut text = String::new();
    for ((user, used), files) in found {
        let count = files.len();
        if !known.contains(&(*user, *used, count)) {
            let files: Vec<&str> = files.iter().copied().collect();
            let _ = writeln!(
                text,
                "(\"{user}\", \"{used}\", {count}): {}",
                files.join(", ")
            );
        }
    }
    for (user, used, count) in known {
        if !found.contains_key(&(*user, *used)) {
            let _ = writeln!(
                text,
                "(\"{user}\", \"{used}\", {count}) is gone: take it out"
            );
        }
    }
    text
}

/// Circles among the modules of a folder, whose own file (`mod.rs`) gathers them and is left out.
fn circles<'a>(folder: &str, sources: &'a [Source]) -> BTreeSet<Vec<&'a str>> {
    let own = sources.iter().find(|s| s.module == [folder]);
    let inside: Vec<&Source> = sources
        .iter()
        .filter(|s| s.module.len() > 1 && s.module[0] == folder)
        .collect();
    let names: BTreeSet<&str> = inside.iter().map(|s| s.module[1].as_str()).collect();
    // What the folder's own file takes from a module under the same name is that module's.
    let taken: BTreeMap<&str, &str> = own
        .iter()
        .flat_map(|own| &own.uses)
        .filter(|path| path.len() > 2 && path[0] == folder)
        .map(|path| (path[path.len() - 1].as_str(), path[1].as_str()))
        .collect();
    let mut reach: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for source in &inside {
        let from = reach.entry(&source.module[1]).or_default();
        let used = source
            .uses
            .iter()
            .filter(|path| path.len() > 1 && path[0] == folder);
        from.extend(used.filter_map(|path| {
            let name = path[1].as_str();
            names.get(name).or_else(|| taken.get(name)).copied()
        }));
    }
    // Warshall: whatever is reached by way of `by` is reached.
    for by in &names {
        let beyond = reach[by].clone();
        for to in reach.values_mut().filter(|to| to.contains(by)) {
            to.extend(&beyond);
        }
    }
    let circle = |name: &&'a str| -> Vec<&'a str> {
        let both = |other: &&&str| reach[*name].contains(**other) && reach[**other].contains(name);
        names.iter().filter(both).copied().collect()
    };
    names.iter().map(circle).filter(|c| c.len() > 1).collect()
}

fn of_this_crate() -> Vec<Source> {
    sources(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src"))
}

#[test]
fn no_module_uses_a_later_stage() {
    let sources = of_this_crate();
    let differences = differences(&upwards(STAGES, &sources), UPWARDS);
    assert!(
        differences.is_empty(),
        "uses of a later stage:\n{differences}"
    );
}

#[test]
fn no_modules_of_a_folder_use_each_other_in_a_circle() {
    let sources = of_this_crate();
    let folders: BTreeSet<&str> = sources.iter().map(|s| s.module[0].as_str()).collect();
    let mut found = BTreeSet::new();
    for folder in folders {
        found.extend(circles(folder, &sources).into_iter().map(|c| (folder, c)));
    }
    let known: BTreeSet<_> = CIRCLES.iter().map(|(f, c)| (*f, c.to_vec())).collect();
    let new: Vec<_> = found.difference(&known).collect();
    let gone: Vec<_> = known.difference(&found).collect();
    assert!(
        new.is_empty() && gone.is_empty(),
        "new: {new:#?}, gone: {gone:#?}"
    );
}

fn made_up(files: &[(&str, &str)]) -> Vec<Source> {
    files
        .iter()
        .map(|(file, text)| Source::read(file, text))
        .collect()
}

#[test]
fn a_use_of_a_later_stage_is_found() {
    let stages: &[&[&str]] = &[&["low", "high::data"], &["middle"], &["high"]];
    let texts = [
        (
            "low/mod.rs",
            "//! crate::high\nfn f() { let _ = \"crate::high\"; super::middle::g(1) }",
        ),
        (
            "low/part.rs",
            "use crate::{high::{Data, data::Plain}, low};\n#[cfg(test)]\nuse crate::middle;",
        ),
        (
            "low/said.rs",
            "fn f() { println!(\"{}\", crate::high::text()) }",
        ),
        ("high/data.rs", "use super::super::low::part;"),
        (
            "high/mod.rs",
            "use crate::{low, middle};\n#[cfg(test)]\nmod tests { use crate::nothing; }",
        ),
    ];
    let sources = made_up(&texts);
    let found = upwards(stages, &sources);
    let expected = Uses::from([
        (
            ("low", "high"),
            BTreeSet::from(["low/part.rs", "low/said.rs"]),
        ),
        (("low", "middle"), BTreeSet::from(["low/mod.rs"])),
    ]);
    assert_eq!(found, expected);
    assert_eq!(
        differences(&found, &[("low", "high", 2), ("low", "middle", 1)]),
        ""
    );
    // One file more, and one that is gone.
    let known = [
        ("low", "high", 1),
        ("low", "middle", 1),
        ("middle", "high", 1),
    ];
    let expected = "(\"low\", \"high\", 2): low/part.rs, low/said.rs\n(\"middle\", \"high\", 1) is gone: take it out\n";
    assert_eq!(differences(&found, &known), expected);
}

#[test]
fn a_circle_in_a_folder_is_found() {
    let texts = [
        (
            "lab/mod.rs",
            "pub use self::wire::Wire; mod wire; use hub::Hub; struct Own;",
        ),
        ("lab/hub.rs", "use super::Wire;"),
        ("lab/wire.rs", "use crate::lab::tap;"),
        ("lab/tap/mod.rs", "mod queue;"),
        ("lab/tap/queue.rs", "use super::super::Own;"),
        ("lab/over.rs", "use super::{Own, wire};"),
    ];
    assert_eq!(circles("lab", &made_up(&texts)), BTreeSet::new());
    let mut texts = texts.to_vec();
    texts[0].1 = "pub use self::wire::Wire; use self::hub::Hub; struct Own;";
    texts[4].1 = "use super::super::{Hub, Own};";
    assert_eq!(
        circles("lab", &made_up(&texts)),
        BTreeSet::from([vec!["hub", "tap", "wire"]])
    );
}
