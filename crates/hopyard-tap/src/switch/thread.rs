//! Threads of the switch.

use std::thread::{self, JoinHandle};

use crate::error::{Error, Result};

pub(super) fn spawn(name: &str, run: impl FnOnce() + Send + 'static) -> Result<JoinHandle<()>> {
    thread::Builder::new()
        .name(name.into())
        .spawn(run)
        .map_err(|source| Error::Kernel {
            what: format!("start thread `{name}` of the tap switch"),
            source,
        })
}
