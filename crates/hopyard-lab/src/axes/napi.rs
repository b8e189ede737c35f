//! Has kernel threads poll every device that has NAPI.

use hopyard_net::Handle;

use super::{OnLab, need_no_guests};
use crate::model::Napi;
use crate::{Builder, Error, Result};

const AXIS: &str = "napi";
/// The value that does something.
const THREADED: &str = "threaded";

pub(super) struct Threads;

impl OnLab for Threads {
    /// After offloads: a veth has NAPI only while its GRO is on or an XDP program is attached, and gives it what comes from a peer
    /// without TSO alone (`veth_skb_is_eligible_for_gro`).
    fn apply(&self, lab: &mut Builder) -> Result<()> {
        if lab.axes().napi != Some(Napi::Threaded) {
            return Ok(());
        }
        need_no_guests(lab, AXIS, THREADED, "is polled by the guest")?;
        let (mut threaded, mut idle) = (0, 0);
        for (role, device, handle) in lab.devices_in_reach() {
            if !handle.set_threaded_napi(device, true)? {
                continue;
            }
            if !handle.threaded_napi(device)? {
                let why = "the kernel goes on polling it by softirqs; leave `napi` out";
                return Err(Error::refused(
                    format!("{role}/{device}"),
                    AXIS,
                    THREADED,
                    why,
                ));
            }
            threaded += 1;
            idle += usize::from(has_peer_with_tso(lab, handle, device)?);
        }
        if threaded == 0 {
            let why = "no device of this lab has NAPI: set `gro=on` and `tso=off`, with which veth has it, or choose \
                       another path";
            return Err(Error::refused("eth0", AXIS, THREADED, why));
        }
        if idle == threaded {
            let why = "a veth gives NAPI only what comes from a device without TSO: set `tso=off`, or the threads have \
                       nothing to do";
            return Err(Error::refused("eth0", AXIS, THREADED, why));
        }
        Ok(())
    }
}

/// Is this a veth whose peer has TSO? Such a peer bypasses NAPI. False if the lab cannot see the peer.
fn has_peer_with_tso(lab: &Builder, handle: &Handle, device: &str) -> Result<bool> {
    let link = handle.link(device)?;
    if link.kind.as_deref() != Some("veth") {
        return Ok(false);
    }
    let Some(peer) = handle.lower_of(&link)? else {
        return Ok(false);
    };
    for (_, name, there) in lab.devices_in_reach().filter(|one| one.1 == peer.name) {
        if there.link(name)?.mac == peer.mac {
            return Ok(there.offloads(name)?.tso.is_on() != Some(false));
        }
    }
    Ok(false)
}
