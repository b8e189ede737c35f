//! A port: a tap with its open queues.

use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;

use hopyard_net::{Handle, TunLayer};

use super::pinner::Pinner;
use super::shared::HEADER;
use super::{Choice, NewPort, NewSwitch, Rules};
use crate::device::Device;
use crate::error::{Error, Result};
use crate::new::{NewDevice, Queues};
use crate::offload::Offloads;
use crate::queue::Queue;
use crate::steering::Steering;
use crate::sys;

/// Frames that each queue of a new device holds: a TCP window of 6 MiB (the most of `net.ipv4.tcp_rmem`) in Ethernet
/// frames of standard size. A tap gives its sender no sign before it overflows, and TCP overruns the default of 1000.
const QUEUE_LENGTH: u32 = 4096;

#[derive(Debug)]
pub(super) struct Port {
    device: Device,
    rules: Rules,
    steering: Choice,
    /// Set if flows are pinned.
    pinner: Option<Arc<Pinner>>,
    send_buffer: u32,
    /// Open queues by number; `None` if there was none. The attached ones come first.
    queues: Vec<Option<Arc<Queue>>>,
    /// Opened with the device, and not used yet.
    first: Option<Queue>,
    handle: Handle,
    /// Frames that its queues had dropped before the switch had one.
    dropped_before: u64,
}

impl Port {
    /// Opens or makes the device, and brings it up.
    pub(super) fn open(
        new: &NewPort,
        switch: &NewSwitch,
        pinner: Option<Arc<Pinner>>,
    ) -> Result<Self> {
        let handle = Handle::new(&new.ns)?;
        let dropped_before = dropped(&handle, &new.device).unwrap_or(0);
        let (device, first) = new.ns.run(|| open(&new.device, &handle))??;
        set_offloads(&first, switch.offloads)?;
        handle.set_up(&new.device)?;
        let port = Self {
            device,
            rules: new.rules.clone(),
            steering: switch.steering,
            pinner,
            send_buffer: switch.send_buffer,
            queues: Vec::new(),
            first: Some(first),
            handle,
            dropped_before,
        };
        port.steer(None)?;
        Ok(port)
    }

    pub(super) fn device(&self) -> &str {
        self.device.name()
    }

    pub(super) fn rules(&self) -> &Rules {
        &self.rules
    }

    /// One more attached queue. A port whose device was deleted needs none: any queue reports that it is gone.
    ///
    /// # Errors
    /// The device exists, but has no further queue. It is unchanged.
    pub(super) fn grow(&mut self, number: usize) -> Result<Arc<Queue>> {
        match self.attach(number) {
            Err(error) if self.is_there() => Err(error),
            Err(error) => self.stand_in().ok_or(error),
            attached => attached,
        }
    }

    fn attach(&mut self, number: usize) -> Result<Arc<Queue>> {
        if let Some(queue) = self.queue(number) {
            queue.attach()?;
            return Ok(Arc::clone(queue));
        }
        let queue = match (self.first.take(), self.queue(0)) {
            (Some(queue), _) => queue,
            (None, Some(queue)) => another(&self.device, queue)?,
            (None, None) => self.device.open_queue()?,
        };
        queue.set_nonblocking(true)?;
        // The limit belongs to each file, although the request looks like one for the device.
        queue.set_send_buffer(self.send_buffer)?;
        let queue = Arc::new(queue);
        self.queues.resize(number, None);
        self.queues.push(Some(Arc::clone(&queue)));
        Ok(queue)
    }

    /// A queue to write to, instead of one that is not available.
    pub(super) fn stand_in(&self) -> Option<Arc<Queue>> {
        self.queue(0).map(Arc::clone)
    }

    fn queue(&self, number: usize) -> Option<&Arc<Queue>> {
        self.queues.get(number).and_then(Option::as_ref)
    }

    /// Makes frames use only the first `count` queues, or all attached ones.
    pub(super) fn steer(&self, count: Option<u16>) -> Result<()> {
        let Some(queue) = self.queue(0).map(Arc::as_ref).or(self.first.as_ref()) else {
            return Ok(());
        };
        let steered = match (count, self.steering, &self.pinner) {
            (Some(count), ..) => queue.steer(Steering::HashAmong(count)),
            (None, Choice::Pinned, Some(pinner)) => pinner.steer(queue),
            (None, Choice::Kernel, _) => queue.steer(Steering::Kernel),
            (None, Choice::Hash | Choice::Pinned, _) => queue.steer(Steering::Hash),
            (None, Choice::Cpu, _) => queue.steer(Steering::Cpu),
        };
        self.unless_gone(steered)
    }

    /// The file of a queue.
    pub(super) fn file(&self, number: usize) -> Option<BorrowedFd<'_>> {
        self.queue(number).map(|queue| queue.as_fd())
    }

    /// Detaches a queue that was read empty.
    pub(super) fn shrink(&self, number: usize) -> Result<()> {
        match self.queue(number).map(|queue| queue.detach()) {
            None | Some(Err(Error::AlreadyDetached { .. })) => Ok(()),
            Some(detached) => self.unless_gone(detached),
        }
    }

    /// Closes the queues from this number on.
    pub(super) fn close(&mut self, from: usize) {
        self.queues.truncate(from);
    }

    /// Whether the device still exists.
    pub(super) fn is_there(&self) -> bool {
        let first = self.queue(0).map(Arc::as_ref).or(self.first.as_ref());
        first.is_some_and(|queue| queue.state().is_ok())
    }

    /// Ignores a failure if the device was deleted.
    fn unless_gone(&self, done: Result<()>) -> Result<()> {
        if done.is_err() && !self.is_there() {
            return Ok(());
        }
        done
    }

    /// Whether the device accepts TCP segments that are still to be cut. Not if that was switched off, or the device is
    /// gone.
    pub(super) fn takes_segments(&self) -> bool {
        let offloads = self.handle.offloads(self.device());
        offloads.is_ok_and(|offloads| offloads.tso.is_on() == Some(true))
    }

    /// Frames that the kernel dropped before the switch read them, since it began.
    pub(super) fn unread(&self) -> Option<u64> {
        let dropped = dropped(&self.handle, self.device())?;
        Some(dropped.saturating_sub(self.dropped_before))
    }
}

/// Frames that found no room in the queues of a device; `None` where there is none.
fn dropped(handle: &Handle, device: &str) -> Option<u64> {
    let stats = handle.device_stats().ok()?;
    let own = stats.into_iter().find(|stats| stats.name == device)?;
    Some(own.tx_dropped)
}

/// Opens one more queue of a device, even if it was renamed or moved to another namespace.
fn another(device: &Device, queue: &Queue) -> Result<Queue> {
    match device.open_queue() {
        Err(Error::Missing { .. }) => queue.find_device()?.open_queue(),
        opened => opened,
    }
}

fn open(name: &str, handle: &Handle) -> Result<(Device, Queue)> {
    // Before it is opened, which sets its header.
    if let Some(link) = Device::find(name)? {
        let what = format!("make `{name}` a port of the tap switch");
        if link.layer == TunLayer::Tun {
            return Err(Error::invalid(
                what,
                "it is a tun, whose packets have no Ethernet addresses",
            ));
        }
        if !link.multi_queue {
            return Err(Error::NotMultiQueue { what });
        }
    }
    match Device::open_with(name, Some(HEADER)) {
        Err(Error::Missing { .. }) => {}
        found => return found,
    }
    let new = NewDevice {
        queues: Queues::Multi(1),
        vnet_header: Some(HEADER),
        // Without an owner, everybody who may open `/dev/net/tun` could send and read as if he were the switch.
        owner: Some(sys::user()),
        ..NewDevice::tap(name)
    };
    let (device, mut queues) = new.create()?;
    let what = || format!("create tap `{name}`");
    handle.set_tx_queue_len(name, QUEUE_LENGTH)?;
    let queue = queues.pop();
    let queue = queue.ok_or_else(|| Error::invalid(what(), "it has no queue"))?;
    Ok((device, queue))
}

/// Sets offloads, without `uso` on a kernel that lacks it.
fn set_offloads(queue: &Queue, offloads: Offloads) -> Result<()> {
    match queue.set_offloads(offloads) {
        Err(Error::Unsupported { .. }) if offloads.uso => queue.set_offloads(Offloads {
            uso: false,
            ..offloads
        }),
        set => set,
    }
}
