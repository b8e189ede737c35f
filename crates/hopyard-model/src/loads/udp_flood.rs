//! Numbered datagrams from many parallel senders (docs/datagrams.md).

use super::{End, Load, Pace, Saying, Shape, Shown, udp_paced};
use crate::quantity::{
    GOODPUT, LOST, PACKETS, PDV, RECEIVER_BUSY, RECEIVER_DROPPED, REORDERED, RUN_LENGTH,
};

pub(super) const LOAD: Load = Load {
    name: "udp_flood",
    summary: "best-effort senders side by side: loss, jitter and bursts by flow",
    shape: Shape::Stream {
        sender: End::Client,
        // Stays under every MTU in use, as in the 2007 report.
        message_bytes: 1400,
        pace: Pace::Never,
        numbered: true,
    },
    timed: None,
    main_figure: GOODPUT,
    shown: Shown {
        saying: Saying::RATE,
        beside: &[PACKETS, LOST],
        columns: &[RUN_LENGTH, PDV, REORDERED, RECEIVER_BUSY, RECEIVER_DROPPED],
        grids: &[LOST, PDV, RUN_LENGTH],
        ..udp_paced::LOAD.shown
    },
    ..udp_paced::LOAD
};
