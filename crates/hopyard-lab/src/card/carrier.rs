//! Waiting for a cable.

use std::time::{Duration, Instant};

use hopyard_net::Handle;

use crate::error::Cable;
use crate::load::remote;
use crate::{Error, Result};

/// A cable needs some seconds until both ends have agreed on a speed.
const CARRIER: Duration = Duration::from_secs(15);

/// Waits until the card `card`, which is called `within`, has a carrier.
pub(crate) fn wait_for_carrier(handle: &Handle, card: &str, within: &str) -> Result<()> {
    let deadline = Instant::now() + CARRIER;
    while !handle.settle(within)? {
        if crate::signals::interrupted() {
            return Err(Error::Worker(remote::Error::Interrupted));
        }
        if Instant::now() > deadline {
            return Err(Error::Cable(Cable::Card {
                card: card.to_owned(),
                why: format!(
                    "no carrier within {} s: is the other end connected and up?",
                    CARRIER.as_secs()
                ),
            }));
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    Ok(())
}
