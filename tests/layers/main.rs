//! The order of modules: in the program each uses modules of earlier stages alone, and in no crate do modules use each other in a
//! circle. The compiler keeps such an order between crates, but not within one.
//!
//! And that nothing is left out of `make test` by what manifests say.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod sources;
mod unrun;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use sources::{Source, sources, without_tests};

/// The stages of crates hopyard-run and hopyard, the lowest first; each is called by the first of its modules. A module without a stage fails the
/// test.
const STAGES: &[&[&str]] = &[
    &["units"],
    &["plain"],
    &["openmetrics"],
    // Functions of `lib.rs`.
    &["note", "chain"],
    &["bounded", "owner", "programs", "signals"],
    &["stats"],
    &["model"],
    &["load"],
    &["loads"],
    &["lab", "guest", "tapswitch"],
    &["assess"],
    &["meter"],
    &["profile"],
    &["settings"],
    &["store"],
    &["plan"],
    &["measure"],
    &["run"],
    &["report"],
    &["claims"],
    &["cli"],
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
    for source in sources.iter().filter(|s| !s.module.is_empty()) {
        let (from, user) = need(&source.file, &source.module);
        for path in source.uses.iter().map(|used| &used.path) {
            let (to, used) = need(&source.file, path);
            if to > from {
                found.entry((user, used)).or_default().insert(&source.file);
            }
        }
    }
    found
}

/// Circles among the modules of a folder (of the crate, where it has no names). Its own file gathers them and is left out.
fn circles<'a>(folder: &[String], sources: &'a [Source]) -> BTreeSet<Vec<&'a str>> {
    let depth = folder.len();
    let own = sources.iter().find(|s| s.module == folder);
    let inside = sources
        .iter()
        .filter(|s| s.module.len() > depth && s.module.starts_with(folder));
    let names: BTreeSet<&str> = inside.clone().map(|s| &s.module[depth][..]).collect();
    let module = |path: &'a [String]| {
        let below = path.strip_prefix(folder)?;
        below.first().map(|name| &name[..])
    };
    // What the folder's own file takes from a module is that module's under its name there, too.
    let taken: BTreeMap<&str, &str> = own
        .iter()
        .flat_map(|own| &own.uses)
        .filter_map(|used| Some((&used.name[..], module(&used.path)?)))
        .collect();
    let mut reach: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for source in inside {
        let from = reach.entry(&source.module[depth]).or_default();
        let used = source.uses.iter().filter_map(|used| module(&used.path));
        from.extend(used.filter_map(|name| names.get(name).or_else(|| taken.get(name)).copied()));
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

/// Where the crates are.
fn crates() -> PathBuf {
    let own = Path::new(env!("CARGO_MANIFEST_DIR"));
    own.parent().unwrap().to_owned()
}

#[test]
fn no_module_of_the_program_uses_a_later_stage() {
    for home in ["hopyard-run/src", "hopyard/src"] {
        let sources = sources(&crates().join(home));
        assert_eq!(upwards(STAGES, &sources), Uses::new(), "{home}");
    }
}

#[test]
fn no_modules_use_each_other_in_a_circle() {
    let mut found = BTreeSet::new();
    for entry in fs::read_dir(crates()).unwrap() {
        let home = entry.unwrap().path();
        let name = home.file_name().unwrap().to_str().unwrap().to_owned();
        let sources = sources(&home.join("src"));
        let folders = sources.iter().filter(|s| s.module.len() > 1);
        let mut folders: BTreeSet<&[String]> = folders.map(|s| &s.module[..1]).collect();
        folders.insert(&[]);
        for folder in folders {
            let place: Vec<&str> = [&name[..]]
                .into_iter()
                .chain(folder.iter().map(|f| &f[..]))
                .collect();
            for circle in circles(folder, &sources) {
                let circle: Vec<String> = circle.into_iter().map(str::to_owned).collect();
                found.insert((place.join("/"), circle));
            }
        }
    }
    assert!(found.is_empty(), "{found:#?}");
}

fn made_up(files: &[(&str, &str)]) -> Vec<Source> {
    without_tests(
        files
            .iter()
            .map(|(file, text)| Source::read(file, text))
            .collect(),
    )
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
    assert_eq!(
        circles(&["lab".to_owned()], &made_up(&texts)),
        BTreeSet::new()
    );
    let mut texts = texts.to_vec();
    texts[0].1 = "pub use self::wire::Wire; use self::hub::Hub; struct Own;";
    texts[4].1 = "use super::super::{Hub, Own};";
    assert_eq!(
        circles(&["lab".to_owned()], &made_up(&texts)),
        BTreeSet::from([vec!["hub", "tap", "wire"]])
    );
}

#[test]
fn a_circle_is_found_however_it_is_written() {
    let found = |files: &[(&str, &str)]| -> Option<Vec<String>> {
        let sources = made_up(files);
        let circle = circles(&[], &sources).into_iter().next()?;
        Some(circle.into_iter().map(str::to_owned).collect())
    };
    let root = (
        "lib.rs",
        "mod a;\nmod b;\npub use b::{Thing, other as another};",
    );
    let circle = Some(vec!["a".to_owned(), "b".to_owned()]);
    let b = ("b.rs", "use super::a;");
    for a in [
        "use super::b::Thing;",
        "use crate::{c, b::{self, Thing}};",
        "use super::Thing;",
        "use super::another;",
        "fn f() { crate::b::f() }",
        "fn f() -> super::Thing { \"// \\\" use\"; super::Thing }",
    ] {
        assert_eq!(found(&[root, ("a.rs", a), b]), circle, "{a}");
    }
    // A file of a directory counts as its directory, with paths of its own.
    assert_eq!(
        found(&[
            root,
            ("a/mod.rs", "mod d;"),
            ("a/d.rs", "use super::super::b;"),
            b
        ]),
        circle
    );
    assert_eq!(
        found(&[root, ("a.rs", ""), ("a/d.rs", "use super::super::b;"), b]),
        circle
    );
    for a in [
        "use super::c;",
        "// use super::b;",
        "fn f() { g(\"crate::b\") }",
        "#[cfg(test)]\nmod tests { fn f() { use crate::b; } }",
        "#[cfg(test)]\nuse crate::b;",
        "use b::Thing;",
    ] {
        assert_eq!(found(&[root, ("a.rs", a), b]), None, "{a}");
    }
    for tests in ["mod t;", "pub(crate) mod t;", "pub mod t;"] {
        let a = format!("#[cfg(test)]\n{tests}");
        let t = ("a/t.rs", "use crate::b;");
        assert_eq!(found(&[root, ("a.rs", &a), t, b]), None, "{tests}");
    }
}
