//! By which calls of the kernel a load sends and receives.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::axis::{Decides, Descriptor, one_of, shown_as};
use crate::{LoadKind, Peer};

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

const APIS: [(&str, Api); 3] = [
    ("sockets", Api::Sockets),
    ("epoll", Api::Epoll),
    ("uring", Api::Uring),
];

shown_as!(Api: APIS);

/// The calls of both ends.
pub(super) struct ApiAxis;

impl Descriptor for ApiAxis {
    type Value = Option<Api>;
    const NAME: &'static str = "api";
    const SUMMARY: &'static str =
        "by which calls both ends send and receive: waiting socket calls, or an event loop";
    const VALUES: &'static str = "sockets, epoll, uring (default sockets)";
    const OTHER: &'static str = "epoll";
    const ABSENT: Self::Value = None;
    const DECIDES: Decides = Decides::Message;

    one_of!(APIS);

    fn fits(load: LoadKind, _: Peer) -> bool {
        load.has_event_loops()
    }
}
