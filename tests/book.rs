//! Every link of the README and of the book in `docs/` leads somewhere. No mdBook is needed for that.

use std::collections::BTreeSet;
use std::path::{Component, Path, PathBuf};

/// The pages that are checked, by their path below the root of the project.
struct Pages {
    root: PathBuf,
    names: Vec<PathBuf>,
}

impl Pages {
    /// The README and all that is in `docs`.
    fn of(root: &Path) -> Self {
        let mut names = vec![PathBuf::from("README.md")];
        let mut directories = vec![PathBuf::from("docs")];
        while let Some(directory) = directories.pop() {
            for entry in std::fs::read_dir(root.join(&directory)).unwrap() {
                let name = directory.join(entry.unwrap().file_name());
                if root.join(&name).is_dir() {
                    directories.push(name);
                } else if name.extension().is_some_and(|extension| extension == "md") {
                    names.push(name);
                }
            }
        }
        names.sort();
        Self {
            root: root.to_owned(),
            names,
        }
    }

    fn text(&self, page: &Path) -> String {
        std::fs::read_to_string(self.root.join(page)).unwrap()
    }

    /// What is wrong with the links of all pages, a line each.
    fn problems(&self) -> Vec<String> {
        let dead = self.names.iter().flat_map(|page| {
            let text = self.text(page);
            let problems = links(&text).into_iter().filter_map(|(line, target)| {
                let problem = self.problem(page, &target)?;
                Some(format!("{}:{line}: {target}: {problem}", page.display()))
            });
            problems.collect::<Vec<_>>()
        });
        let mut problems: Vec<String> = dead.collect();
        let contents = Path::new("docs/SUMMARY.md");
        let listed: BTreeSet<PathBuf> = links(&self.text(contents))
            .into_iter()
            .filter_map(|(_, target)| beside(contents, &target))
            .collect();
        let pages = self.names.iter().filter(|name| name.starts_with("docs"));
        let missing = pages.filter(|name| *name != contents && !listed.contains(*name));
        problems.extend(missing.map(|name| format!("{}: not in SUMMARY.md", name.display())));
        problems
    }

    /// Why a link leads nowhere.
    fn problem(&self, page: &Path, target: &str) -> Option<&'static str> {
        if target.contains("://") || target.starts_with("mailto:") {
            return None;
        }
        let (file, anchor) = target.split_once('#').unwrap_or((target, ""));
        let Some(name) = (match file {
            "" => Some(page.to_owned()),
            file => beside(page, file),
        }) else {
            return Some("leaves the project");
        };
        if page.starts_with("docs") && !name.starts_with("docs") {
            return Some("leaves the book");
        }
        if !self.root.join(&name).is_file() {
            return Some("no such file");
        }
        let is_page = name.extension().is_some_and(|extension| extension == "md");
        let leads = anchor.is_empty() || is_page && anchors(&self.text(&name)).contains(anchor);
        (!leads).then_some("no such heading")
    }
}

/// A link's file by its path below the root; `None` where that is outside.
fn beside(page: &Path, target: &str) -> Option<PathBuf> {
    let mut name = page.parent()?.to_owned();
    for part in Path::new(target).components() {
        match part {
            Component::Normal(part) => name.push(part),
            Component::CurDir => {}
            Component::ParentDir if name.pop() => {}
            _ => return None,
        }
    }
    Some(name)
}

/// The lines of a page that are prose, by their number: what is between fences is not.
fn prose(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut fenced = false;
    text.lines().enumerate().filter_map(move |(index, line)| {
        let is_fence = line.trim_start().starts_with("```");
        fenced ^= is_fence;
        (!fenced && !is_fence).then_some((index + 1, line))
    })
}

/// The targets of links and pictures, by line. What is between back-ticks is no link.
fn links(text: &str) -> Vec<(usize, String)> {
    let targets = |(number, line): (usize, &str)| {
        let mut code = false;
        let shown: String = line
            .chars()
            .filter(|c| {
                code ^= *c == '`';
                !code
            })
            .collect();
        let targets = shown.split("](").skip(1);
        let targets = targets.filter_map(|rest| rest.split_once(')'));
        let targets = targets.map(|(target, _)| (number, target.trim().to_owned()));
        targets.collect::<Vec<_>>()
    };
    prose(text).flat_map(targets).collect()
}

/// The anchors of a page, as GitHub and mdBook make them of its headings.
fn anchors(text: &str) -> BTreeSet<String> {
    let mut all = BTreeSet::new();
    let headings = prose(text).filter_map(|(_, line)| {
        let words = line.trim_start_matches('#');
        (words.len() < line.len() && words.starts_with(' ')).then(|| words.trim())
    });
    for heading in headings {
        let kept = heading.chars().filter_map(|c| match c {
            ' ' => Some('-'),
            '-' | '_' => Some(c),
            _ => c.is_alphanumeric().then_some(c),
        });
        let anchor: String = kept.flat_map(char::to_lowercase).collect();
        let again = (1..).map(|n| format!("{anchor}-{n}"));
        let mut names = std::iter::once(anchor.clone()).chain(again);
        let name = names.find(|name| !all.contains(name)).unwrap();
        all.insert(name);
    }
    all
}

#[test]
fn every_link_of_the_book_and_the_readme_leads_somewhere() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let pages = Pages::of(&root);
    assert!(pages.names.len() > 30, "{:?}", pages.names);
    let count: usize = pages
        .names
        .iter()
        .map(|page| links(&pages.text(page)).len())
        .sum();
    assert!(count > 100, "only {count} links were found");
    assert_eq!(pages.problems(), [""; 0]);
}

/// What somebody pastes into a shell: after the arguments of a command an explanation is a comment.
fn is_pasted_with_its_explanation(line: &str) -> bool {
    let is_command = ["hopyard ", "make ", "git "]
        .iter()
        .any(|name| line.starts_with(name));
    let is_output = line.starts_with("hopyard: ");
    // A name alone is in a table of names.
    let has_arguments = columns(line)
        .next()
        .is_some_and(|first| first.contains(' '));
    is_command && has_arguments && !is_output && is_explained(line)
}

fn columns(line: &str) -> impl Iterator<Item = &str> {
    let parts = line.trim().split("   ").map(str::trim);
    parts.filter(|part| !part.is_empty())
}

fn is_explained(line: &str) -> bool {
    columns(line)
        .nth(1)
        .is_some_and(|text| !text.starts_with(['#', '-']))
}

#[test]
fn explanations_beside_commands_are_comments() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let pages = Pages::of(&root);
    let mut wrong = Vec::new();
    for page in &pages.names {
        let text = pages.text(page);
        let prose: Vec<usize> = prose(&text).map(|(number, _)| number).collect();
        let fenced = text
            .lines()
            .enumerate()
            .filter(|(at, _)| !prose.contains(&(at + 1)));
        let mut goes_on = false;
        let pasted = fenced.filter(|(_, line)| {
            let is_wrong = is_pasted_with_its_explanation(line) || goes_on && is_explained(line);
            let is_command = line.starts_with("hopyard ") || goes_on;
            goes_on = is_command && line.ends_with('\\');
            is_wrong
        });
        wrong.extend(pasted.map(|(at, line)| format!("{}:{}: {line}", page.display(), at + 1)));
    }
    assert_eq!(wrong, [""; 0]);
    assert!(is_pasted_with_its_explanation(
        "hopyard run    measures all"
    ));
    assert!(!is_pasted_with_its_explanation(
        "hopyard run    # measures all"
    ));
}

#[test]
fn the_page_of_paths_has_a_row_for_each() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let page = std::fs::read_to_string(root.join("docs/paths.md")).unwrap();
    for path in hopyard::lab::PATHS {
        let row = format!("\n| `{}` |", path.name);
        assert!(page.contains(&row), "docs/paths.md lacks `{}`", path.name);
    }
}

#[test]
fn the_page_of_cables_names_the_paths_that_cross_them() {
    let crossing = hopyard::lab::PATHS.iter().filter(|path| path.crosses_cable);
    let names: Vec<String> = crossing.map(|path| format!("`{}`", path.name)).collect();
    let (last, first) = names.split_last().unwrap();
    let listed = format!("The paths are {} and {last};", first.join(", "));
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let page = std::fs::read_to_string(root.join("docs/uplink.md")).unwrap();
    assert!(page.contains(&listed), "docs/uplink.md lacks: {listed}");
}

/// Columns of the table that the registry knows: since which kernel, what it takes, who filters between two endpoints (or with the
/// first peer there is), whose MTU it is, and whether the host's own addresses are reached.
#[test]
fn the_table_of_paths_says_what_the_registry_does() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let page = std::fs::read_to_string(root.join("docs/paths.md")).unwrap();
    let missing = hopyard::lab::PATHS.iter().filter_map(|path| {
        let peer = path.peers[0];
        let filters = match path.filter_sees.contains(&peer) {
            true => "the host's rules",
            false => (path.rules_instead)(peer),
        };
        let needs: Vec<_> = path.needs.iter().map(|need| need.name).collect();
        let reaches = path.reaches_host(&hopyard::model::Axes::default());
        let row = format!(
            "\n| `{}` | {} | {} | {filters} | {} | {} |",
            path.name,
            path.since().unwrap_or("any"),
            match &*needs {
                [] => "nothing".to_owned(),
                needs => needs.join(", "),
            },
            path.mtu_owner,
            if reaches { "yes" } else { "no" },
        );
        (!page.contains(&row)).then_some(row)
    });
    let missing: Vec<String> = missing.collect();
    assert!(
        missing.is_empty(),
        "docs/paths.md lacks rows that begin with:{}",
        missing.concat()
    );
}

#[test]
fn a_link_that_leads_nowhere_is_found() {
    let room = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| std::fs::write(room.path().join(name), text).unwrap();
    std::fs::create_dir(room.path().join("docs")).unwrap();
    write(
        "README.md",
        "[a](docs/a.md) [b](docs/none.md) [c](docs/a.md#what-it-is)\n[d](docs/a.md#what-it-was)",
    );
    write("docs/SUMMARY.md", "- [A](a.md)\n");
    write(
        "docs/a.md",
        "# A\n\n## What it is\n\n`[x](code.md)` [`y`](gone.md) [z](#what-it-is)\n```\n# Z\n[fenced](f.md)\n```\n\
         [up](../README.md) [out](../../x.md) [web](https://example.org/x.md) [self](#z)\n",
    );
    write("docs/b.md", "# Nobody lists this\n");
    assert_eq!(
        Pages::of(room.path()).problems(),
        [
            "README.md:1: docs/none.md: no such file",
            "README.md:2: docs/a.md#what-it-was: no such heading",
            "docs/a.md:5: gone.md: no such file",
            "docs/a.md:10: ../README.md: leaves the book",
            "docs/a.md:10: ../../x.md: leaves the project",
            "docs/a.md:10: #z: no such heading",
            "docs/b.md: not in SUMMARY.md",
        ]
    );
}
