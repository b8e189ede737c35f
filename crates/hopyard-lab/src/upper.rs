//! Devices on top of a card of this machine.

use hopyard_net::{Handle, NetNs};

use super::part::{Part, Undone};

/// A device on top of a card, in another namespace. It would stay on the card when that leaves the lab, until the kernel comes to remove
/// the other namespace, and keep the next lab's bridge from taking the card.
#[derive(Debug)]
pub(super) struct Upper {
    ns: NetNs,
    name: String,
}

impl Upper {
    pub(super) fn new(ns: NetNs, name: &str) -> Self {
        Self {
            ns,
            name: name.to_owned(),
        }
    }
}

impl Part for Upper {
    fn undo(&mut self) -> Undone {
        let gone = Handle::new(&self.ns).and_then(|handle| handle.delete_link(&self.name));
        Undone::of(format!("device `{}`", self.name), gone)
    }
}
