//! The objects that travel with the crates are what their sources give.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "../../../tests/support/skip.rs"]
mod skip;

use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

use hopyard_bpf_build::{Check, Program};
use skip::{skip, skip_part};

/// All sources of the workspace: `DIRECTORY/bpf/*.bpf.c` of crates and benchmarks, and those of tests.
fn sources() -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut found = Vec::new();
    let mut directories = vec![root.join("crates"), root.join("bench")];
    while let Some(directory) = directories.pop() {
        for entry in fs::read_dir(directory).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                directories.push(path);
            } else if path.to_string_lossy().ends_with(".bpf.c") {
                found.push(path);
            }
        }
    }
    found.sort();
    found
}

/// Asked of a shell: can this machine compile BPF programs?
fn has_compiler() -> bool {
    let asked =
        "command -v clang && command -v llvm-strip && [ -e /usr/include/bpf/bpf_helpers.h ]";
    let answer = Command::new("sh").args(["-c", asked]).output().unwrap();
    answer.status.success()
}

/// A program of its own directory, for the test to change.
struct Copy(PathBuf);

impl Copy {
    fn new(test: &str) -> Self {
        let directory = env::temp_dir().join(format!("hopyard-bpf-{}-{test}", std::process::id()));
        let directory = directory.join("bpf");
        fs::create_dir_all(&directory).unwrap();
        let from = Path::new(env!("CARGO_MANIFEST_DIR")).join("../hopyard-tap/bpf");
        for entry in fs::read_dir(from).unwrap() {
            let entry = entry.unwrap();
            fs::copy(entry.path(), directory.join(entry.file_name())).unwrap();
        }
        Self(directory)
    }

    fn program(&self) -> Program {
        Program::new(self.0.join("steering.bpf.c"))
    }

    fn edit(&self, file: &str, edit: impl FnOnce(String) -> String) {
        let file = self.0.join(file);
        let text = fs::read_to_string(&file).unwrap();
        let edited = edit(text.clone());
        assert_ne!(text, edited);
        fs::write(file, edited).unwrap();
    }
}

impl Drop for Copy {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(self.0.parent().unwrap());
    }
}

#[test]
fn no_source_was_changed_after_its_object_was_made() {
    let sources = sources();
    assert!(sources.len() >= 6, "{sources:?}");
    for source in sources {
        let stale = Program::new(&source).stale().unwrap();
        assert_eq!(stale, None, "`make bpf` renews the objects");
    }
}

#[test]
fn compiling_the_sources_gives_the_objects() {
    if !has_compiler() {
        return skip("clang", has_compiler(), "nothing can be compiled here");
    }
    for source in sources() {
        match Program::new(&source).check().unwrap() {
            Check::Same => {}
            Check::OtherCompiler(why) => skip_part("compiler of the objects", false, &why),
            stale => panic!("{stale:?}: `make bpf` renews the objects"),
        }
    }
}

#[test]
fn a_changed_line_of_a_source_or_header_is_seen_without_a_compiler() {
    for file in ["steering.bpf.c", "flow.h"] {
        let copy = Copy::new(file);
        assert_eq!(copy.program().stale().unwrap(), None);
        copy.edit(file, |text| text + "\n");
        let stale = copy.program().stale().unwrap().unwrap();
        assert!(stale.contains("was changed after its object"), "{stale}");
    }
}

#[test]
fn an_object_of_another_source_is_seen_without_a_compiler() {
    let copy = Copy::new("object");
    fs::write(copy.0.join("steering.bpf.o"), "other").unwrap();
    let stale = copy.program().stale().unwrap().unwrap();
    assert!(stale.contains("is not the object of"), "{stale}");
    fs::remove_file(copy.0.join("steering.bpf.txt")).unwrap();
    assert!(copy.program().stale().unwrap().is_some());
}

#[test]
fn an_object_that_the_source_does_not_give_is_seen_whatever_its_record_says() {
    if !has_compiler() {
        return skip("clang", has_compiler(), "nothing can be compiled here");
    }
    let copy = Copy::new("forged");
    copy.program().renew().unwrap();
    assert_eq!(copy.program().check().unwrap(), Check::Same);
    let digest = |line: &str| {
        let record = fs::read_to_string(copy.0.join("steering.bpf.txt")).unwrap();
        let mut lines = record.lines();
        lines
            .find(|found| found.starts_with(line))
            .unwrap()
            .to_owned()
    };
    // The object of before, with the record that the changed source would have had.
    let old_object = fs::read(copy.0.join("steering.bpf.o")).unwrap();
    let old = digest("object");
    copy.edit("steering.bpf.c", |text| {
        text.replace("return 0;", "return 1;")
    });
    copy.program().renew().unwrap();
    let new = digest("object");
    assert_ne!(old, new);
    fs::write(copy.0.join("steering.bpf.o"), old_object).unwrap();
    copy.edit("steering.bpf.txt", |text| text.replace(&new, &old));
    assert_eq!(copy.program().stale().unwrap(), None);
    let check = copy.program().check().unwrap();
    assert!(
        matches!(&check, Check::Stale(why) if why.contains("is not what")),
        "{check:?}"
    );
}

#[test]
fn an_object_does_not_depend_on_where_it_is_compiled() {
    if !has_compiler() {
        return skip("clang", has_compiler(), "nothing can be compiled here");
    }
    let copy = Copy::new("elsewhere");
    copy.program().renew().unwrap();
    let object = fs::read(copy.0.join("steering.bpf.o")).unwrap();
    let home = copy.0.parent().unwrap().to_string_lossy().into_owned();
    let has = |text: &str| {
        object
            .windows(text.len())
            .any(|part| part == text.as_bytes())
    };
    assert!(has("bpf/steering.bpf.c"));
    assert!(!has(&home) && !has("/usr/include"));
}
