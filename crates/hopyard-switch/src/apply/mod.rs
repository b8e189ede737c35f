//! A switch as somebody describes it, beside the switch there is: what differs, and the steps from one to the other.
//!
//! [`SwitchSpec::compare`] looks at the devices and at the switch, checks everything, and gives a [`Plan`]; nothing has
//! changed by then. [`Plan::carry_out`] takes its steps one after another. Each step is one operation of [`Switch`], which
//! whoever comes next finishes or undoes; so after an interruption at any point, comparing again gives the steps that are
//! left.
//!
//! Ports that are not in the description are removed if they were made from one ([`NewPort::declared`]), and left alone
//! otherwise: they are somebody else's, as those of the CNI plugin.
//!
//! [`Switch`]: crate::Switch
//! [`NewPort::declared`]: crate::NewPort::declared

mod carry;
mod check;
mod claim;
mod devices;
mod model;
mod plan;
mod present;
mod problem;
mod settings;
mod shortcut;
mod turn;

pub use devices::Ends;
pub use model::{GuestEnd, PortSpec, Present, PresentPort, ShortcutSpec, SwitchSpec};
pub use plan::{Change, Difference, Plan, Why};
pub use problem::Problem;
pub use settings::{SETTINGS, Setting, Value};
pub use turn::Turn;

#[cfg(test)]
mod tests;
