//! What can go wrong with a directory of claims.

use std::io;
use std::path::PathBuf;

use super::SCHEMA;
use crate::run;
use crate::store;

/// What can go wrong with a directory of claims.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// It cannot be written.
    #[error("cannot write {}; choose another directory with --out", .file.display())]
    Write {
        file: PathBuf,
        #[source]
        source: io::Error,
    },
    /// It holds claims already.
    #[error("{} holds claims already: choose another --out, or `--resume` it", .0.display())]
    Taken(PathBuf),
    /// It cannot be read.
    #[error("cannot read {}", .file.display())]
    Read {
        file: PathBuf,
        #[source]
        source: io::Error,
    },
    /// It holds neither claims nor a run.
    #[error("{} holds neither claims nor a run: name what `hopyard claims` or `hopyard run` wrote", .0.display())]
    Nothing(PathBuf),
    /// It is damaged.
    #[error("{} is damaged", .file.display())]
    Damaged {
        file: PathBuf,
        #[source]
        source: serde_json::Error,
    },
    /// Another version wrote it.
    #[error("{} is of schema `{found}`, this hopyard reads `{SCHEMA}`: use the version that wrote it", .file.display())]
    Schema {
        file: PathBuf,
        /// Its schema.
        found: String,
    },
    /// Runs, deeds and benches of two machines.
    #[error(
        "{a} and {b} were made on two machines ({what} `{of_a}` and `{of_b}`): judge those of each by themselves"
    )]
    Machines {
        /// A run, or deeds and benches.
        a: String,
        /// Another.
        b: String,
        /// What tells the machines apart.
        what: &'static str,
        /// What it is of the one.
        of_a: String,
        /// And of the other.
        of_b: String,
    },
    /// A run.
    #[error(transparent)]
    Store(#[from] store::Error),
    /// A run that cannot be made or gone on with.
    #[error(transparent)]
    Run(#[from] run::Error),
}
