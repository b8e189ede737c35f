//! Classification of call chains by their functions; `subsystems.toml` assigns functions to subsystems.
//!
//! Not by process, because on veth the receiver's stack runs in the sender's softirq.

use std::collections::HashMap;
use std::sync::LazyLock;

use serde::Deserialize;

/// The table of functions.
const TABLE: &str = include_str!("subsystems.toml");
/// Functions without a rule.
pub const UNCLASSIFIED: &str = "unclassified";

/// The contents of the file.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    subsystem: Vec<Subsystem>,
    helper: Vec<Helper>,
    idle: Idle,
}

/// A subsystem of the kernel.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Subsystem {
    /// Name in reports.
    pub name: String,
    /// A line about it.
    pub about: String,
    /// Whether it connects devices, so that its time is a path's cost besides the stacks at both ends.
    #[serde(default)]
    pub switches: bool,
    functions: Vec<String>,
    /// Beginnings of names of BPF programs.
    #[serde(default)]
    programs: Vec<String>,
    #[serde(default)]
    modules: Vec<String>,
}

/// Functions whose time belongs to their callers.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Helper {
    #[expect(dead_code, reason = "for readers of the file")]
    about: String,
    otherwise: String,
    functions: Vec<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Idle {
    functions: Vec<String>,
}

/// The class of a function.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Class<'a> {
    Of(&'a str),
    Caller { otherwise: &'a str },
    Idle,
}

/// The place of a sample.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place<'a> {
    /// On an idle CPU.
    Idle,
    /// On a busy CPU.
    Busy {
        /// The subsystem.
        subsystem: &'static str,
        /// The function: the innermost that is not a helper.
        function: &'a str,
    },
}

static FILE: LazyLock<File> = LazyLock::new(|| toml::from_str(TABLE).unwrap_or_default());
static RULES: LazyLock<Rules<'static>> = LazyLock::new(|| Rules::of(&FILE));

/// Every subsystem in the order of the file, without [`UNCLASSIFIED`].
#[must_use]
pub fn subsystems() -> &'static [Subsystem] {
    &FILE.subsystem
}

/// The place of a call chain. The outermost entry comes first: who ran, then functions.
#[must_use]
pub fn place<'a>(stack: &[&'a str]) -> Place<'a> {
    let functions = stack.get(1..).unwrap_or_default();
    let innermost = functions.last().or(stack.first()).copied().unwrap_or("");
    let mut fallback = None;
    for function in functions.iter().rev() {
        match RULES.class(function) {
            Some(Class::Of(subsystem)) => {
                return Place::Busy {
                    subsystem,
                    function,
                };
            }
            Some(Class::Idle) => return Place::Idle,
            Some(Class::Caller { otherwise }) => fallback = fallback.or(Some(otherwise)),
            None => break,
        }
    }
    Place::Busy {
        subsystem: fallback.unwrap_or(UNCLASSIFIED),
        function: innermost,
    }
}

/// A function's name without compiler suffixes, which differ between kernels.
#[must_use]
pub fn plain_name(function: &str) -> &str {
    match function.split_once(['.', ' ']) {
        Some((name, _)) if !name.is_empty() => name,
        _ => function,
    }
}

/// Whether there is a rule for a function.
#[must_use]
pub fn is_known(function: &str) -> bool {
    RULES.class(function).is_some()
}

/// The file inverted: from patterns to their class.
struct Rules<'a> {
    names: HashMap<&'a str, Class<'a>>,
    /// The longest first.
    prefixes: Vec<(&'a str, Class<'a>)>,
    /// Beginnings of names of BPF programs.
    programs: Vec<(&'a str, Class<'a>)>,
    modules: HashMap<&'a str, Class<'a>>,
}

impl<'a> Rules<'a> {
    fn of(file: &'a File) -> Self {
        let mut rules = Self {
            names: HashMap::new(),
            prefixes: Vec::new(),
            programs: Vec::new(),
            modules: HashMap::new(),
        };
        for (pattern, class) in patterns(file) {
            match pattern.strip_suffix('*') {
                Some(prefix) => rules.prefixes.push((prefix, class)),
                None => drop(rules.names.insert(pattern, class)),
            }
        }
        rules
            .prefixes
            .sort_by_key(|(prefix, _)| std::cmp::Reverse(prefix.len()));
        for subsystem in &file.subsystem {
            let class = Class::Of(&subsystem.name);
            let programs = subsystem.programs.iter().map(|p| (p.as_str(), class));
            rules.programs.extend(programs);
            let modules = subsystem.modules.iter().map(|m| (m.as_str(), class));
            rules.modules.extend(modules);
        }
        rules
    }

    /// The class of a function as written in a stack: `nft_do_chain [nf_tables]`.
    fn class(&self, frame: &str) -> Option<Class<'a>> {
        let (function, module) = match frame.split_once(" [") {
            Some((function, module)) => (function, module.strip_suffix(']')),
            None => (frame, None),
        };
        let function = match function.split_once('.') {
            Some((name, _)) if !name.is_empty() => name,
            _ => function,
        };
        let begins = |rules: &[(&str, Class<'a>)], name: &str| {
            let found = rules.iter().find(|(prefix, _)| name.starts_with(prefix));
            found.map(|(_, class)| *class)
        };
        let of_program = || begins(&self.programs, program_name(function)?);
        let named = || self.names.get(function).copied();
        let prefixed = || begins(&self.prefixes, function);
        let of_module = || module.and_then(|module| self.modules.get(module).copied());
        of_program()
            .or_else(named)
            .or_else(prefixed)
            .or_else(of_module)
    }
}

/// The name of a BPF program in that of its compiled function, `bpf_prog_TAG_NAME` (kernel/bpf/core.c).
fn program_name(function: &str) -> Option<&str> {
    let (_tag, name) = function.strip_prefix("bpf_prog_")?.split_once('_')?;
    Some(name)
}

/// Every pattern with its class.
fn patterns(file: &File) -> impl Iterator<Item = (&str, Class<'_>)> {
    fn with<'a>(
        functions: &'a [String],
        class: Class<'a>,
    ) -> impl Iterator<Item = (&'a str, Class<'a>)> {
        functions
            .iter()
            .map(move |pattern| (pattern.as_str(), class))
    }
    let subsystems = file.subsystem.iter();
    let subsystems = subsystems.flat_map(|s| with(&s.functions, Class::Of(&s.name)));
    let helpers = file.helper.iter();
    let helpers = helpers.flat_map(|h| {
        let otherwise = &h.otherwise;
        with(&h.functions, Class::Caller { otherwise })
    });
    let idle = with(&file.idle.functions, Class::Idle);
    subsystems.chain(helpers).chain(idle)
}

#[cfg(test)]
mod tests;
