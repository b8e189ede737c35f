//! What can go wrong with an eBPF program of a path.

use std::error::Error;

/// An eBPF program cannot be loaded or used.
#[derive(Debug, thiserror::Error)]
#[error("cannot {what}")]
pub struct Bpf {
    /// Operation and object.
    what: String,
    #[source]
    source: Box<dyn Error + Send + Sync>,
}

impl Bpf {
    /// What an error of the library is in.
    pub(crate) fn of<E: Into<Box<dyn Error + Send + Sync>>>(
        what: impl Into<String>,
    ) -> impl FnOnce(E) -> Self {
        let what = what.into();
        move |source| Self {
            what,
            source: source.into(),
        }
    }

    pub(crate) fn built_wrongly(what: String) -> Self {
        Self::of(what)("it is not in the object: built wrongly")
    }
}
