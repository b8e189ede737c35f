//! Which paths a source file uses, read from its tokens: comments and texts are none.

use std::collections::BTreeSet;
use std::fs;
use std::iter::Peekable;
use std::path::Path;

use proc_macro2::token_stream::IntoIter;
use proc_macro2::{Delimiter, Group, TokenStream, TokenTree};

/// A source file.
#[derive(Debug)]
pub(super) struct Source {
    /// Its path below `src`.
    pub(super) file: String,
    /// Its module, from the crate's root.
    pub(super) module: Vec<String>,
    /// Paths of this crate that it uses, from the root; what is there for tests alone is left out.
    pub(super) uses: BTreeSet<Vec<String>>,
}

/// All sources below a directory, but for tests and what belongs to no module.
pub(super) fn sources(root: &Path) -> Vec<Source> {
    let mut found = Vec::new();
    let mut directories = vec![root.to_owned()];
    while let Some(directory) = directories.pop() {
        for entry in fs::read_dir(directory).unwrap() {
            let path = entry.unwrap().path();
            let file = path.strip_prefix(root).unwrap().to_str().unwrap();
            let name = path.file_name().unwrap().to_str().unwrap();
            let is_test = name == "tests" || name == "tests.rs" || file == "direction";
            if is_test || file == "main.rs" || file == "lib.rs" {
                continue;
            }
            if path.is_dir() {
                directories.push(path);
            } else if name.ends_with(".rs") {
                found.push(Source::read(file, &fs::read_to_string(&path).unwrap()));
            }
        }
    }
    assert!(found.len() > 1, "no sources below {}", root.display());
    found
}

impl Source {
    /// Of a file with this path below `src`.
    pub(super) fn read(file: &str, text: &str) -> Self {
        let path = file.strip_suffix(".rs").unwrap();
        let path = path.strip_suffix("/mod").unwrap_or(path);
        let module: Vec<String> = path.split('/').map(str::to_owned).collect();
        let tokens: TokenStream = text.parse().unwrap_or_else(|e| panic!("{file}: {e}"));
        let mut uses = BTreeSet::new();
        read(&module, tokens, &mut uses);
        Self {
            file: file.to_owned(),
            module,
            uses,
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

/// All uses in the code of a module.
fn read(module: &[String], code: TokenStream, uses: &mut BTreeSet<Vec<String>>) {
    let mut tokens = code.into_iter().peekable();
    while let Some(token) = tokens.next() {
        let text = match token {
            TokenTree::Group(group) => {
                read(module, group.stream(), uses);
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
                    let _ = tokens.find(ends);
                }
            }
            "mod" => {
                let name = tokens.next().map(|t| t.to_string());
                if let Some(inner) = tokens.next_if(|t| braces(t).is_some()) {
                    let inside: Vec<_> = module.iter().cloned().chain(name).collect();
                    let code = braces(&inner).unwrap().stream();
                    read(&inside, code, uses);
                }
            }
            "crate" if take_colons(&mut tokens) => follow(Vec::new(), &mut tokens, uses),
            "self" if take_colons(&mut tokens) => follow(module.to_vec(), &mut tokens, uses),
            "super" if take_colons(&mut tokens) => {
                let above = module[..module.len() - 1].to_vec();
                follow(above, &mut tokens, uses);
            }
            // In the file of a folder: `use part::Name` without `self`.
            "use" => {
                let is_local = |t: &TokenTree| {
                    matches!(t, TokenTree::Ident(name)
                        if !["crate", "self", "super"].contains(&name.to_string().as_str()))
                };
                if tokens.peek().is_some_and(is_local) {
                    follow(module.to_vec(), &mut tokens, uses);
                }
            }
            _ => {}
        }
    }
}

/// The rest of a path: names, and lists in braces.
fn follow(mut path: Vec<String>, tokens: &mut Tokens, uses: &mut BTreeSet<Vec<String>>) {
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
    uses.insert(path);
}
