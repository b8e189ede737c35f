//! No modules of a crate need each other in a circle: each crate's modules have an order, as the crates themselves have.
//!
//! What counts is each file directly in `src`, with the directory of its name, and what it takes from others by `use` or
//! by a path that begins with `crate::` or `super::`. Tests may look anywhere.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// Crates that still have a circle. Whoever undoes it takes the name off.
const NOT_YET: &[&str] = &["hopyard-net", "hopyard-switch", "hopyard-tap"];

/// Module, and modules that it takes something from.
type Needs = BTreeMap<String, BTreeSet<String>>;

#[test]
fn no_modules_need_each_other_in_a_circle() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let mut circles = BTreeMap::new();
    for entry in fs::read_dir(crates).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap().to_owned();
        if let Some(circle) = circle(&needs(&files(&path.join("src")))) {
            circles.insert(name, circle);
        }
    }
    let found: Vec<_> = circles.keys().collect();
    assert_eq!(found, NOT_YET, "{circles:#?}");
}

#[test]
fn a_circle_is_found_however_it_is_written() {
    let found = |files: &[(&str, &str)]| {
        let owned = files
            .iter()
            .map(|(path, text)| (path.into(), (*text).to_owned()));
        circle(&needs(&owned.collect::<Vec<_>>()))
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

/// The source files below a directory, by their paths in it.
fn files(root: &Path) -> Vec<(PathBuf, String)> {
    let mut found = Vec::new();
    let mut directories = vec![root.to_owned()];
    while let Some(directory) = directories.pop() {
        for entry in fs::read_dir(directory).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                directories.push(path);
            } else if path.extension().is_some_and(|end| end == "rs") {
                let text = fs::read_to_string(&path).unwrap();
                found.push((path.strip_prefix(root).unwrap().to_owned(), text));
            }
        }
    }
    found
}

/// What each module takes from others.
fn needs(files: &[(PathBuf, String)]) -> Needs {
    let code: Vec<_> = files
        .iter()
        .map(|(path, text)| (module(path), without_tests(&words(text))))
        .collect();
    let tests: BTreeSet<_> = code
        .iter()
        .flat_map(|(module, (_, tests))| {
            tests
                .iter()
                .map(|test| [&module[..], std::slice::from_ref(test)].concat())
        })
        .collect();
    let of_tests = |module: &[String]| (0..=module.len()).any(|end| tests.contains(&module[..end]));
    let mut needs: Needs = code
        .iter()
        .filter(|(module, _)| !of_tests(module))
        .filter_map(|(module, _)| Some((module.first()?.clone(), BTreeSet::new())))
        .collect();
    // What the root passes on, by the module that has it.
    let mut passed_on = BTreeMap::new();
    for (_, (words, _)) in code.iter().filter(|(module, _)| module.is_empty()) {
        for (path, name) in paths(words) {
            let path: Vec<_> = path
                .into_iter()
                .skip_while(|word| word == "crate" || word == "self")
                .collect();
            if let Some(first) = path.first().filter(|first| needs.contains_key(*first)) {
                passed_on.insert(name, first.clone());
            }
        }
    }
    for (module, (words, _)) in &code {
        let Some(own) = module.first().filter(|_| !of_tests(module)) else {
            continue;
        };
        for (path, _) in paths(words) {
            let Some(first) = resolved(module, &path) else {
                continue;
            };
            let module = if needs.contains_key(&first) {
                Some(&first)
            } else {
                passed_on.get(&first)
            };
            if let (Some(other), Some(needs)) = (
                module.cloned().filter(|other| other != own),
                needs.get_mut(own),
            ) {
                needs.insert(other);
            }
        }
    }
    needs
}

/// The path of the module that a file has: none for the root.
fn module(file: &Path) -> Vec<String> {
    let file = file.with_extension("");
    let mut names: Vec<String> = file
        .iter()
        .map(|name| name.to_str().unwrap().to_owned())
        .collect();
    if matches!(names.last().unwrap().as_str(), "lib" | "main" | "mod") {
        names.pop();
    }
    names
}

/// The first name of a path as seen from the root of its crate, if it begins there.
fn resolved(module: &[String], path: &[String]) -> Option<String> {
    let ups = path.iter().take_while(|word| *word == "super").count();
    let rest = match path.first()?.as_str() {
        "crate" => &path[1..],
        "super" if ups == module.len() => &path[ups..],
        _ => return None,
    };
    rest.first().cloned()
}

/// Names, `::`, and single characters; no comments, no text in quotes.
fn words(text: &str) -> Vec<String> {
    let chars: Vec<char> = text.chars().collect();
    let at = |i: usize| chars.get(i).copied().unwrap_or('\0');
    let (mut words, mut i) = (Vec::new(), 0);
    while i < chars.len() {
        let begin = i;
        match at(i) {
            '/' if at(i + 1) == '/' => {
                while i < chars.len() && at(i) != '\n' {
                    i += 1;
                }
            }
            '/' if at(i + 1) == '*' => {
                while i < chars.len() && !(at(i) == '*' && at(i + 1) == '/') {
                    i += 1;
                }
                i += 2;
            }
            'r' if at(i + 1) == '"' || (at(i + 1) == '#' && matches!(at(i + 2), '"' | '#')) => {
                let hashes = chars[i + 1..].iter().take_while(|c| **c == '#').count();
                i += hashes + 2;
                while i < chars.len() && !(at(i) == '"' && (1..=hashes).all(|n| at(i + n) == '#')) {
                    i += 1;
                }
                i += hashes + 1;
            }
            '"' => {
                i += 1;
                while i < chars.len() && at(i) != '"' {
                    i += if at(i) == '\\' { 2 } else { 1 };
                }
                i += 1;
            }
            '\'' if at(i + 1) == '\\' || at(i + 2) == '\'' => {
                i += 2;
                while i < chars.len() && at(i) != '\'' {
                    i += 1;
                }
                i += 1;
            }
            c if c.is_alphanumeric() || c == '_' => {
                while at(i).is_alphanumeric() || at(i) == '_' {
                    i += 1;
                }
                words.push(chars[begin..i].iter().collect());
            }
            ':' if at(i + 1) == ':' => {
                i += 2;
                words.push("::".to_owned());
            }
            c => {
                i += 1;
                if !c.is_whitespace() {
                    words.push(c.to_string());
                }
            }
        }
    }
    words
}

/// The words without items that are for tests alone, and the names of modules among these.
fn without_tests(words: &[String]) -> (Vec<String>, Vec<String>) {
    const MARK: [&str; 7] = ["#", "[", "cfg", "(", "test", ")", "]"];
    let (mut rest, mut modules, mut i) = (Vec::new(), Vec::new(), 0);
    while i < words.len() {
        if !words[i..].iter().take(MARK.len()).eq(MARK.iter()) {
            rest.push(words[i].clone());
            i += 1;
            continue;
        }
        i += MARK.len();
        let shown = visibility(&words[i..]);
        if words.get(i + shown).is_some_and(|word| word == "mod") {
            modules.extend(words.get(i + shown + 1).cloned());
        }
        // To the end of the item: a semicolon, or the last of its braces, but not those of a `use`.
        let is_use = words.get(i).is_some_and(|word| word == "use");
        let mut depth = 0;
        while let Some(word) = words.get(i) {
            i += 1;
            match word.as_str() {
                "{" => depth += 1,
                "}" => depth -= 1,
                _ => {}
            }
            if depth == 0 && (word == ";" || (word == "}" && !is_use)) {
                break;
            }
        }
    }
    (rest, modules)
}

/// How many words an item's visibility takes: `pub`, `pub(crate)`, none.
fn visibility(words: &[String]) -> usize {
    if words.first().is_none_or(|word| word != "pub") {
        0
    } else if words.get(1).is_some_and(|word| word == "(") {
        words.iter().take_while(|word| *word != ")").count() + 1
    } else {
        1
    }
}

/// Every path, those in braces one by one, with the name that it gets.
fn paths(words: &[String]) -> Vec<(Vec<String>, String)> {
    let mut found = Vec::new();
    let mut i = 0;
    while i < words.len() {
        let follows = i > 0 && words[i - 1] == "::";
        if !follows && words.get(i + 1).is_some_and(|word| word == "::") {
            i = tree(words, i, &[], &mut found);
        } else {
            i += 1;
        }
    }
    found
}

/// Reads a path and its branches from a word on; gives the place of the word after it.
fn tree(
    words: &[String],
    mut i: usize,
    before: &[String],
    found: &mut Vec<(Vec<String>, String)>,
) -> usize {
    let mut path = before.to_vec();
    while let Some(word) = words.get(i) {
        i += 1;
        match word.as_str() {
            "::" => {}
            "{" => {
                while words.get(i).is_some_and(|word| word != "}") {
                    i = tree(words, i, &path, found);
                    if words.get(i).is_some_and(|word| word == ",") {
                        i += 1;
                    }
                }
                return i + 1;
            }
            name => path.push(name.to_owned()),
        }
        if words.get(i).is_none_or(|word| word != "::")
            && words.get(i - 1).is_some_and(|word| word != "::")
        {
            break;
        }
    }
    let mut name = path.last().cloned().unwrap_or_default();
    if words.get(i).is_some_and(|word| word == "as") {
        name = words.get(i + 1).cloned().unwrap_or_default();
        i += 2;
    }
    found.push((path, name));
    i
}

/// Modules that need themselves, by way of others; none where there is an order.
fn circle(needs: &Needs) -> Option<Vec<String>> {
    let needs_itself = |module: &String| {
        let mut seen = BTreeSet::new();
        let mut open = vec![module];
        while let Some(next) = open.pop() {
            let more = needs.get(next).into_iter().flatten();
            open.extend(more.filter(|other| seen.insert(*other)));
        }
        seen.contains(module)
    };
    let found: Vec<_> = needs
        .keys()
        .filter(|module| needs_itself(module))
        .cloned()
        .collect();
    (!found.is_empty()).then_some(found)
}
