//! Which paths a source file uses, read from its tokens: comments and texts are none.

use std::collections::BTreeSet;
use std::fs;
use std::iter::Peekable;
use std::path::Path;

use proc_macro2::token_stream::IntoIter;
use proc_macro2::{Delimiter, Group, TokenStream, TokenTree};

/// A path of a crate that a source file uses.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Use {
    /// From the crate's root.
    pub(super) path: Vec<String>,
    /// What it is called there: its last name, or the one after `as`.
    pub(super) name: String,
}

/// A source file.
#[derive(Debug)]
pub(super) struct Source {
    /// Its path below `src`.
    pub(super) file: String,
    /// Its module, from the crate's root, which itself has none.
    pub(super) module: Vec<String>,
    /// What it uses of its crate, but for tests.
    pub(super) uses: BTreeSet<Use>,
    /// Modules that it declares for tests alone.
    tests: BTreeSet<Vec<String>>,
}

/// The sources below a directory, without those that are for tests alone.
pub(super) fn sources(root: &Path) -> Vec<Source> {
    let mut found = Vec::new();
    let mut directories = vec![root.to_owned()];
    while let Some(directory) = directories.pop() {
        for entry in fs::read_dir(directory).unwrap() {
            let path = entry.unwrap().path();
            let file = path.strip_prefix(root).unwrap().to_str().unwrap();
            if path.is_dir() {
                directories.push(path);
            } else if file.ends_with(".rs") && file != "main.rs" {
                found.push(Source::read(file, &fs::read_to_string(&path).unwrap()));
            }
        }
    }
    assert!(found.len() > 1, "no sources below {}", root.display());
    without_tests(found)
}

/// Those that no module for tests contains.
pub(super) fn without_tests(mut sources: Vec<Source>) -> Vec<Source> {
    let tests: BTreeSet<Vec<String>> = sources.iter().flat_map(|s| s.tests.clone()).collect();
    sources.retain(|s| !tests.iter().any(|test| s.module.starts_with(test)));
    sources
}

impl Source {
    /// Of a file with this path below `src`.
    pub(super) fn read(file: &str, text: &str) -> Self {
        let path = file.strip_suffix(".rs").unwrap();
        let path = path.strip_suffix("/mod").unwrap_or(path);
        let names = path.split('/').filter(|_| path != "lib");
        let tokens: TokenStream = text.parse().unwrap_or_else(|e| panic!("{file}: {e}"));
        let mut source = Self {
            file: file.to_owned(),
            module: names.map(str::to_owned).collect(),
            uses: BTreeSet::new(),
            tests: BTreeSet::new(),
        };
        source.add(&source.module.clone(), tokens);
        source
    }

    /// Adds what the code of a module uses.
    fn add(&mut self, module: &[String], code: TokenStream) {
        let mut tokens = code.into_iter().peekable();
        while let Some(token) = tokens.next() {
            let text = match token {
                TokenTree::Group(group) => {
                    self.add(module, group.stream());
                    continue;
                }
                other => other.to_string(),
            };
            match text.as_str() {
                "#" => {
                    if let Some(attribute) = tokens.next_if(|t| matches!(t, TokenTree::Group(_)))
                        && attribute.to_string().replace(' ', "") == "[cfg(test)]"
                    {
                        let ends = |t: &TokenTree| t.to_string() == ";" || braces(t).is_some();
                        let item: Vec<_> = tokens.by_ref().take_while(|t| !ends(t)).collect();
                        let name = item.iter().skip_while(|t| t.to_string() != "mod").nth(1);
                        let test = |name: &TokenTree| [module, &[name.to_string()]].concat();
                        self.tests.extend(name.map(test));
                    }
                }
                "mod" => {
                    let name = tokens.next().map(|t| t.to_string());
                    if let Some(inner) = tokens.next_if(|t| braces(t).is_some()) {
                        let inside: Vec<_> = module.iter().cloned().chain(name).collect();
                        let code = braces(&inner).unwrap().stream();
                        self.add(&inside, code);
                    }
                }
                "crate" if take_colons(&mut tokens) => {
                    follow(Vec::new(), &mut tokens, &mut self.uses);
                }
                "self" if take_colons(&mut tokens) => {
                    follow(module.to_vec(), &mut tokens, &mut self.uses);
                }
                "super" if take_colons(&mut tokens) => {
                    let above = module[..module.len().saturating_sub(1)].to_vec();
                    follow(above, &mut tokens, &mut self.uses);
                }
                // In the file of a folder: `use part::Name` without `self`.
                "use" => {
                    let is_local = |t: &TokenTree| {
                        matches!(t, TokenTree::Ident(name)
                        if !["crate", "self", "super"].contains(&name.to_string().as_str()))
                    };
                    if tokens.peek().is_some_and(is_local) {
                        follow(module.to_vec(), &mut tokens, &mut self.uses);
                    }
                }
                _ => {}
            }
        }
    }
}

type Tokens = Peekable<IntoIter>;

/// Takes the next token, if it is this one.
fn take(tokens: &mut Tokens, what: &str) -> bool {
    tokens.next_if(|t| t.to_string() == what).is_some()
}

fn take_colons(tokens: &mut Tokens) -> bool {
    take(tokens, ":") && take(tokens, ":")
}

fn braces(token: &TokenTree) -> Option<&Group> {
    match token {
        TokenTree::Group(group) if group.delimiter() == Delimiter::Brace => Some(group),
        _ => None,
    }
}

/// The rest of a path: names, and lists in braces.
fn follow(mut path: Vec<String>, tokens: &mut Tokens, uses: &mut BTreeSet<Use>) {
    loop {
        match tokens.peek() {
            Some(TokenTree::Ident(name)) => {
                match name.to_string().as_str() {
                    "super" => drop(path.pop()),
                    "self" => {}
                    name => path.push(name.to_owned()),
                }
                tokens.next();
            }
            Some(token) if braces(token).is_some() => {
                let list = braces(token).unwrap().stream();
                tokens.next();
                let mut list = list.into_iter().peekable();
                while list.peek().is_some() {
                    follow(path.clone(), &mut list, uses);
                    // To the next element, over `as NAME`.
                    let _ = list.find(|t| t.to_string() == ",");
                }
                return;
            }
            _ => break,
        }
        if !take_colons(tokens) {
            break;
        }
    }
    let other = take(tokens, "as").then(|| tokens.next()).flatten();
    let name = other.map(|name| name.to_string());
    if let Some(name) = name.or_else(|| path.last().cloned()) {
        uses.insert(Use { path, name });
    }
}
