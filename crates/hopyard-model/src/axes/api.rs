//! By which calls of the kernel a load sends and receives.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::axis::{Decides, shown_by_name};
use super::descriptor::{Descriptor, word};

/// By which calls the two ends of a load use their sockets.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Api {
    /// Calls that wait: `send` and `recv`.
    #[default]
    Sockets,
    /// Sockets that do not block, and `epoll_wait` for all of a thread.
    Epoll,
    /// Requests to an io_uring.
    Uring,
}

shown_by_name!(Api);

/// The calls of both ends.
pub(super) const API: Descriptor<Option<Api>> = Descriptor {
    name: "api",
    summary: "by which calls both ends send and receive: waiting socket calls, or an event loop",
    values: "sockets, epoll, uring (default sockets)",
    other: "epoll",
    fits: |load, _| load.has_event_loops(),
    ..word(Decides::Message)
};
