//! Taps and tuns with one queue or many, on Linux's `/dev/net/tun` (`drivers/net/tun.c`).
//!
//! A device is an interface of the kernel whose other end is a program: what the kernel sends through the
//! interface, the program reads, and what the program writes, the kernel receives. A *tap* carries Ethernet
//! frames, a *tun* IP packets; both are called frames here.
//!
//! [`NewDevice`] makes one, [`Device::open`] finds one that persists. Each [`Queue`] is a file of its own, so
//! that one thread can serve one queue; queues come and go while the device is in use. Who gets a frame is up
//! to the kernel's flow table, or to an eBPF program ([`Steering`]). With a [`VnetHeader`] before each frame
//! and [`Offloads`] agreed on, 64 KiB segments pass whole and checksums stay undone.
//!
//! ```no_run
//! use hopyard_tap::{NewDevice, Queues};
//!
//! let (device, queues) = NewDevice { queues: Queues::Multi(2), ..NewDevice::tap("tap%d") }.create()?;
//! println!("{} has index {}", device.name(), device.index());
//! let mut frame = [0; 1514];
//! let length = queues[0].read(&mut frame).unwrap();
//! queues[1].detach()?; // its frames go to the other one from now on
//! # Ok::<(), hopyard_tap::Error>(())
//! ```
//!
//! Everything about a device that any interface has (up, addresses, MTU, queue length) is for
//! [`hopyard_net::Handle`]. Devices are made in the network namespace of the calling thread; for another one see
//! [`hopyard_net::NetNs::run`].
#![warn(missing_docs)]

/// Runs its examples as tests.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

mod control;
mod device;
mod error;
mod flow;
mod new;
mod offload;
mod open;
mod queue;
mod ring;
#[cfg(test)]
mod ring_exit;
mod steering;
pub mod switch;
mod sys;
mod vnet;

pub use device::Device;
pub use error::{Error, Result};
pub use flow::Flow;
pub use hopyard_net::{TunLayer, TunLink};
pub use new::{NewDevice, Queues};
pub use offload::Offloads;
pub use queue::{Queue, State};
pub use steering::{Pins, Steering};
pub use vnet::{BadVnetHeader, Checksum, SegmentKind, Segmentation, VnetHeader, VnetHeaderSize};

/// The most queues of one device, detached ones included (`MAX_TAP_QUEUES`, Linux 4.0 and later).
pub const MAX_QUEUES: usize = 256;

/// Bytes that hold every frame of a device without `BIG TCP`: 64 KiB of IP, an Ethernet header and a VLAN tag. Add the
/// size of a [`VnetHeader`] if it is read into the same buffer.
pub const LARGEST_FRAME: usize = 65_536 + 14 + 4;
