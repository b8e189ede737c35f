//! A wire that pauses: it sends at full speed, and rests when that was worth a pause at its rate.
//!
//! A shaper that holds back each frame has a timer for each, whose interrupts take more of the sender's CPU time than its sending does on a
//! virtual machine ([How hopyard measures](../../../docs/method.md)). This one has a timer for each pause, and none for a sender that
//! keeps below the rate: what does not have to wait never meets a queue. What has to wait takes a pair of devices beside the wire.

use std::time::Duration;

use aya::programs::tc::{NlOptions, TcAttachOptions, TcHandle};
use aya::programs::{ProgramError, SchedClassifier, TcAttachType};
use aya::{Ebpf, EbpfLoader, include_bytes_aligned};
use hopyard_net::{DeviceHook, Handle, LinkKind, NetNs, NewLink, Pauses};
use nix::errno::Errno;

use crate::{Error, Result};

/// The compiled programs.
static OBJECT: &[u8] = include_bytes_aligned!(concat!(env!("OUT_DIR"), "/wire.bpf.o"));
/// The pair of devices beside the wire: frames that have to wait go into the first one and come out of the second.
pub(super) const SIDE: [&str; 2] = ["pause0", "pause1"];
/// Large enough for what any wire takes, bytes.
const MOST_MTU: u32 = 65535;
/// Behind the programs of a switch at the same device.
const LAST: u16 = 0xe000;
/// What `byte_ns_scaled` of the program is in, of a nanosecond.
const SCALE: u128 = 1 << 20;
/// Pauses by which frames may be ahead of the rate. A sender that rests for a pause as well is up to one more late.
const AHEAD: u32 = 2;

/// Shapes what a device sends by pauses.
pub(super) fn shape(handle: &Handle, device: &str, rate_bps: u64, pause: Duration) -> Result<()> {
    let [side_in, side_out] = SIDE;
    let kind = LinkKind::veth(side_out, None);
    handle.add_link(&NewLink {
        mtu: Some(MOST_MTU),
        ..NewLink::new(side_in, kind)
    })?;
    SIDE.iter().try_for_each(|side| handle.set_up(side))?;
    let pauses = handle.shape_by_pauses(side_in, rate_bps, pause)?;
    let scaled = |bytes: u32| {
        let ns_scaled = u128::from(bytes) * 8_000_000_000 * SCALE / u128::from(rate_bps);
        i64::try_from(ns_scaled).unwrap_or(i64::MAX)
    };
    let time = |bytes: u32| scaled(bytes) >> SCALE.ilog2();
    let mut object = EbpfLoader::new()
        .override_global("batch_bytes", &i64::from(pauses.batch_bytes), true)
        .override_global("byte_ns_scaled", &scaled(1), true)
        .override_global("ahead_ns", &time(AHEAD * pauses.batch_bytes), true)
        .override_global("saved_ns", &time(pauses.saved_bytes), true)
        .override_global("pause_bytes", &Pauses::FRAME_BYTES, true)
        .override_global("table_size", &Pauses::TABLE, true)
        .override_global("wire_ifindex", &handle.index(device)?, true)
        .override_global("side_ifindex", &handle.index(side_in)?, true)
        .load(OBJECT)
        .map_err(|error| refused(device, error))?;
    for (device, name, side) in [
        (side_in, "hopyard_side_in", TcAttachType::Egress),
        (side_out, "hopyard_side_out", TcAttachType::Ingress),
        (device, "hopyard_wire_out", TcAttachType::Egress),
    ] {
        attach(handle, &mut object, name, side, device)?;
    }
    Ok(())
}

/// Can this host have such a wire?
pub(crate) fn probe() -> hopyard_net::Result<()> {
    let handle = Handle::new(&NetNs::create()?)?;
    let device = "probe";
    let kind = LinkKind::veth("peer", None);
    handle.add_link(&NewLink::new(device, kind))?;
    shape(&handle, device, 1_000_000_000, Duration::from_millis(1)).map_err(|error| match error {
        Error::Net(error) => error.or("leave `wire_pause` out"),
        error => hopyard_net::Error::Unsupported {
            what: "have a wire that pauses".to_owned(),
            feature: "eBPF classifiers".to_owned(),
            remedy: format!(
                "run as root on Linux 5.12 or newer (before 6.6 with module `cls_bpf`), or leave `wire_pause` out ({})",
                crate::chain(&error)
            ),
        },
    })
}

/// Attaches a program, which stays as long as its device, at the cheapest hook that the kernel has.
fn attach(
    handle: &Handle,
    object: &mut Ebpf,
    name: &str,
    side: TcAttachType,
    device: &str,
) -> Result<()> {
    let program = loaded(object, name).map_err(|error| refused(device, error))?;
    let hook = match side {
        TcAttachType::Ingress => DeviceHook::TcxIngress,
        _ => DeviceHook::TcxEgress,
    };
    let fd = program.fd().map_err(|error| refused(device, error))?;
    match handle.attach_program(device, fd, hook) {
        // Before Linux 6.6.
        Err(error) if error.errno() == Some(Errno::EINVAL as i32) => {}
        attached => return Ok(attached?),
    }
    handle.add_clsact(device)?;
    let attached = handle.ns().run(|| classify(program, side, device))?;
    attached.map_err(|error| refused(device, error))
}

fn loaded<'a>(
    object: &'a mut Ebpf,
    name: &str,
) -> std::result::Result<&'a mut SchedClassifier, ProgramError> {
    let program = object.program_mut(name);
    let program = program.unwrap_or_else(|| unreachable!("`{name}` is in the object"));
    let program: &mut SchedClassifier = program.try_into()?;
    program.load()?;
    Ok(program)
}

/// As a filter of `clsact`.
fn classify(
    program: &mut SchedClassifier,
    side: TcAttachType,
    device: &str,
) -> std::result::Result<(), ProgramError> {
    let options = TcAttachOptions::Netlink(NlOptions {
        priority: LAST,
        handle: TcHandle::new(0, 1),
        classid: None,
    });
    let link = program.attach_with_options(device, side, options)?;
    // A link detaches its program when it is dropped.
    std::mem::forget(program.take_link(link)?);
    Ok(())
}

fn refused(device: &str, source: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Error {
    Error::Pauses {
        device: device.to_owned(),
        source: source.into(),
    }
}
