//! Manifests say which targets have no tests and which crates no examples, so that `cargo test` need not build and look: it would run
//! none that comes later.

use std::fs;
use std::path::{Path, PathBuf};

use super::crates;

/// Directories of crates, each with its manifest.
fn manifests() -> Vec<(PathBuf, String)> {
    let own = fs::read_dir(crates()).unwrap();
    let mut homes: Vec<PathBuf> = own.map(|entry| entry.unwrap().path()).collect();
    homes.push(crates().with_file_name("bench"));
    let read = |home: PathBuf| {
        let manifest = fs::read_to_string(home.join("Cargo.toml")).unwrap();
        (home, manifest)
    };
    homes.into_iter().map(read).collect()
}

/// The files in a directory and below it.
fn files(directory: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(directory).unwrap();
    let paths = entries.map(|entry| entry.unwrap().path());
    paths
        .flat_map(|path| {
            if path.is_dir() {
                files(&path)
            } else {
                vec![path]
            }
        })
        .collect()
}

/// Blocks of documentation that are not marked as `text`.
fn examples(source: &str) -> Vec<&str> {
    let comments = source.lines().map(str::trim_start).filter_map(|line| {
        let outer = line.strip_prefix("///");
        outer.or_else(|| line.strip_prefix("//!"))
    });
    let fences = comments
        .map(str::trim)
        .filter(|line| line.starts_with("```"));
    // Each second one ends a block.
    let opening = fences.step_by(2);
    opening.filter(|fence| *fence != "```text").collect()
}

#[test]
fn no_example_stands_where_none_is_run() {
    let mut without = 0;
    for (home, manifest) in manifests() {
        if !manifest.contains("\ndoctest = false\n") {
            continue;
        }
        without += 1;
        for file in files(&home.join("src")) {
            let source = fs::read(&file).unwrap();
            let source = String::from_utf8_lossy(&source);
            let found = examples(&source);
            assert!(found.is_empty(), "{}: {found:?}", file.display());
        }
    }
    assert!(without > 0);
    let text = "/// ```text\n/// a\n/// ```\n//! ```no_run\n//! ```\n";
    assert_eq!(examples(text), ["```no_run"]);
}

/// The sources of a target, by the path that its manifest gives it.
fn sources_of(home: &Path, target: &str) -> Vec<PathBuf> {
    let file = home.join(target);
    let directory = file.parent().unwrap();
    match target {
        // The modules beside it are the library's.
        "src/main.rs" => vec![file],
        "src/lib.rs" => {
            let mut own = files(directory);
            own.retain(|path| path.parent() == Some(directory));
            own
        }
        _ => files(directory),
    }
}

#[test]
fn no_test_stands_where_none_is_run() {
    let mut without = 0;
    for (home, manifest) in manifests() {
        let targets = manifest.split("\n[");
        for target in targets.filter(|target| target.contains("\ntest = false\n")) {
            without += 1;
            let mut lines = target.lines();
            let path = lines.find_map(|line| line.strip_prefix("path = "));
            let path = path.map_or("src/lib.rs", |path| path.trim_matches('"'));
            for file in sources_of(&home, path) {
                let source = fs::read_to_string(&file).unwrap();
                let is_tested = source.contains("#[test]") || source.contains("cfg(test)");
                assert!(!is_tested, "{} has a test", file.display());
                let has_modules = path == "src/main.rs" && source.contains("\nmod ");
                assert!(!has_modules, "{} has modules", file.display());
            }
        }
    }
    assert!(without > 0);
}
