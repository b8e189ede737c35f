//! How long a container waits for its network: CNI plugins beside each other, by ADD, the first answered packet, and DEL.
//!
//! ```text
//! plan ──> measure ──> samples (Run) ──> assess ──> report, page
//!             │ a pipe
//!          inside: a host for each network, containers, calls by the CNI protocol
//! ```
//!
//! The caller of [`measure`] starts the program again as the first process of a PID namespace, which runs [`inside`]: all that
//! is made lives in namespaces that end with that process, and it ends with its stdin.

mod answer;
mod assess;
mod conflist;
mod document;
mod error;
mod host;
mod inside;
mod measure;
mod order;
mod page;
mod plan;
mod plugin;
mod probe;
mod report;
mod steal;

pub use assess::assess;
pub use conflist::Network;
pub use document::{Cell, Cleared, Document, Figure, Run, SCHEMA, Versus, Visit, read, schema};
pub use error::{Error, Result};
pub use inside::main as inside;
pub use measure::{Progress, measure};
pub use page::page;
pub use plan::{Changes, Plan};
pub use report::text;
