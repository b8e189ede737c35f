//! Queue selection: eBPF programs in place of the kernel's flow table (`TUNSETSTEERINGEBPF`, Linux 4.16).

use std::os::fd::{AsFd, AsRawFd, BorrowedFd};

use aya::maps::{HashMap, MapData};
use aya::programs::{ProgramFd, SocketFilter};
use aya::{Ebpf, EbpfLoader, include_bytes_aligned};
use hopyard_net::{TunLayer, on_fresh_thread};

use crate::error::{Error, Result};
use crate::flow::{Flow, KEY};
use crate::queue::Queue;
use crate::sys;

/// The compiled programs.
static OBJECT: &[u8] = include_bytes_aligned!(concat!(env!("OUT_DIR"), "/steering.bpf.o"));

const ETHERNET_HEADER: u32 = 14;

/// What chooses the queue of a frame that leaves the kernel.
///
/// Queues are numbered from 0 in the order of attaching; detaching one gives its number to the last one. The kernel
/// takes the number that a program returns modulo the count of attached queues.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub enum Steering<'a> {
    /// The kernel (`tun_automq_select_queue`): a flow uses the queue where the program last wrote a frame of it, for
    /// three seconds after the last one; otherwise the kernel's hash of the flow decides. So with [`Queue::write`] on a
    /// queue, the program influences the choice.
    Kernel,
    /// By addresses, protocol and ports, read from the frame; both directions alike. [`Flow::queue`] predicts it.
    /// Frames that are not IP go to queue 0.
    Hash,
    /// As [`Steering::Hash`], among this many of the first queues. The others become empty, and can be detached without
    /// losing a frame. 0 means all.
    HashAmong(u16),
    /// By the CPU that sends, usually the sender's own.
    Cpu,
    /// Each flow to the queue it is pinned to; other flows as [`Steering::Hash`].
    Pinned(&'a Pins),
    /// A program of the caller, of type `BPF_PROG_TYPE_SOCKET_FILTER`. It sees an Ethernet frame, or an IP packet on a
    /// tun; the low 16 bits of its return value count.
    Program(BorrowedFd<'a>),
}

impl Queue {
    /// Sets the queue selection for the whole device, from the next frame on. The device holds the program until it
    /// ends or another selection is set.
    ///
    /// # Errors
    /// [`Error::Unsupported`] before Linux 4.16; [`Error::Bpf`] if the kernel refuses the program, as it does without
    /// `CAP_BPF` if `kernel.unprivileged_bpf_disabled` is set; [`Error::Invalid`] for a file that is not such a
    /// program; [`Error::Gone`].
    pub fn steer(&self, steering: Steering<'_>) -> Result<()> {
        let layer = self.device().layer();
        match steering {
            Steering::Kernel => self.set_steering(-1),
            Steering::Hash => self.set_program("hopyard_hash", 0),
            Steering::HashAmong(queues) => self.set_program("hopyard_hash", queues),
            Steering::Cpu => self.set_program("hopyard_cpu", 0),
            Steering::Pinned(pins) if pins.layer != layer => Err(Error::invalid(
                self.what_device("set the steering"),
                "the pins are for devices of the other layer",
            )),
            Steering::Pinned(pins) => self.set_steering(pins.program.as_fd().as_raw_fd()),
            Steering::Program(program) => self.set_steering(program.as_raw_fd()),
        }
    }

    fn set_program(&self, name: &str, queues: u16) -> Result<()> {
        let (_, program) = load(self.device().layer(), name, queues)?;
        self.set_steering(program.as_fd().as_raw_fd())
    }

    fn set_steering(&self, program: i32) -> Result<()> {
        let what = self.what_device("set the steering");
        sys::set_int(self.as_fd(), sys::TUNSETSTEERINGEBPF, program).map_err(|error| {
            match error.raw_os_error() {
                Some(libc::EINVAL | libc::EBADF) if program >= 0 => Error::invalid(
                    what,
                    "the file is no eBPF program of type socket filter, or this kernel is older than 4.16",
                ),
                _ => Error::on_queue(what, error),
            }
        })
    }
}

/// Assignment of flows to queues. It can steer several devices of its layer; they keep the pins after it is dropped.
pub struct Pins {
    layer: TunLayer,
    program: ProgramFd,
    map: HashMap<MapData, [u8; KEY], u32>,
}

impl std::fmt::Debug for Pins {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let layer = &self.layer;
        f.debug_struct("Pins")
            .field("layer", layer)
            .finish_non_exhaustive()
    }
}

impl Pins {
    /// The most flows that can be pinned.
    pub const MOST: usize = 65_536;

    /// No pins yet, for taps or tuns.
    ///
    /// # Errors
    /// [`Error::Bpf`] if the kernel refuses the program or its map.
    pub fn new(layer: TunLayer) -> Result<Self> {
        let (mut object, program) = load(layer, "hopyard_pinned", 0)?;
        let what = "open the map of pinned flows";
        let map = object
            .take_map("pins")
            .ok_or_else(|| Error::invalid(what, "it is not in the object: built wrongly"))?;
        let map = HashMap::try_from(map).map_err(Error::bpf(what))?;
        Ok(Self {
            layer,
            program,
            map,
        })
    }

    /// Sends a flow to a queue from its next frame on, by the queue's number.
    ///
    /// # Errors
    /// [`Error::Invalid`] for ends of different families; [`Error::Bpf`] (`E2BIG`) beyond [`Pins::MOST`].
    pub fn pin(&mut self, flow: &Flow, queue: u16) -> Result<()> {
        let what = || format!("pin the flow {} to {}", flow.source, flow.destination);
        if flow.source.is_ipv4() != flow.destination.is_ipv4() {
            return Err(Error::invalid(what(), "its ends are of different families"));
        }
        self.map
            .insert(flow.key(), u32::from(queue), 0)
            .map_err(|error| Error::bpf(what())(error))
    }

    /// Removes a pin, so that the hash decides; `false` if the flow was not pinned.
    ///
    /// # Errors
    /// [`Error::Bpf`].
    pub fn unpin(&mut self, flow: &Flow) -> Result<bool> {
        match self.map.remove(&flow.key()) {
            Ok(()) => Ok(true),
            Err(aya::maps::MapError::KeyNotFound) => Ok(false),
            Err(error) if is_missing(&error) => Ok(false),
            Err(error) => {
                let what = format!("unpin the flow {} to {}", flow.source, flow.destination);
                Err(Error::bpf(what)(error))
            }
        }
    }

    /// The queue that a flow is pinned to.
    ///
    /// # Errors
    /// [`Error::Bpf`].
    pub fn queue_of(&self, flow: &Flow) -> Result<Option<u16>> {
        match self.map.get(&flow.key(), 0) {
            Ok(queue) => Ok(u16::try_from(queue).ok()),
            Err(aya::maps::MapError::KeyNotFound) => Ok(None),
            Err(error) => Err(Error::bpf("read a pinned flow")(error)),
        }
    }
}

fn is_missing(error: &aya::maps::MapError) -> bool {
    match error {
        aya::maps::MapError::SyscallError(call) => {
            call.io_error.raw_os_error() == Some(libc::ENOENT)
        }
        _ => false,
    }
}

/// One of the programs, for devices of a layer, with its object; it hashes among the first `queues`, or among all for
/// 0.
fn load(layer: TunLayer, name: &str, queues: u16) -> Result<(Ebpf, ProgramFd)> {
    let what = || format!("load the steering program {name}");
    // The verifier fails on a thread that closed an io_uring (ring_exit.rs).
    on_fresh_thread("steering", || {
        let mut object = maps(layer, queues)?;
        let program = program(&mut object, name, &what())?;
        Ok((object, program))
    })
    .map_err(|error| Error::on_queue(what(), error))?
}

fn maps(layer: TunLayer, queues: u16) -> Result<Ebpf> {
    let header = match layer {
        TunLayer::Tap => ETHERNET_HEADER,
        TunLayer::Tun => 0,
    };
    EbpfLoader::new()
        .override_global("link_header", &header, true)
        .override_global("queues", &u32::from(queues), true)
        .load(OBJECT)
        .map_err(Error::bpf("load the steering programs' maps"))
}

/// Loads a program and returns a descriptor of its own.
fn program(object: &mut Ebpf, name: &str, what: &str) -> Result<ProgramFd> {
    let program: &mut SocketFilter = object
        .program_mut(name)
        .ok_or_else(|| Error::invalid(what, "it is not in the object: built wrongly"))?
        .try_into()
        .map_err(Error::bpf(what))?;
    program.load().map_err(Error::bpf(what))?;
    let fd = program.fd().map_err(Error::bpf(what))?;
    fd.try_clone().map_err(Error::bpf(what))
}
