//! A wire that pauses: it sends at full speed, and rests when that was worth a pause at its rate.
//!
//! A shaper that holds back each frame has a timer for each, whose interrupts take more of the sender's CPU time than its sending does on a
//! virtual machine ([How hopyard measures](../../../docs/method.md)). This one has a timer for each pause.

use std::time::Duration;

use aya::programs::tc::{NlOptions, TcAttachOptions, TcHandle};
use aya::programs::{ProgramError, SchedClassifier, TcAttachType};
use aya::{Ebpf, EbpfLoader, include_bytes_aligned};
use hopyard_net::{Handle, LinkKind, NetNs, NewLink, Pauses};

use crate::{Error, Result};

/// The compiled programs.
static OBJECT: &[u8] = include_bytes_aligned!(concat!(env!("OUT_DIR"), "/wire.bpf.o"));
/// The programs, and where they stand among those of a switch at the same device: pauses are put behind all frames that leave,
/// and are taken away before anybody sees what came.
const PROGRAMS: [(&str, TcAttachType, u16); 2] = [
    ("hopyard_wire_out", TcAttachType::Egress, 0xe000),
    ("hopyard_wire_in", TcAttachType::Ingress, 1),
];

/// Shapes what a device sends by pauses, and takes away those that its other end sends.
pub(super) fn shape(handle: &Handle, device: &str, rate_bps: u64, pause: Duration) -> Result<()> {
    let pauses = handle.shape_by_pauses(device, rate_bps, pause)?;
    handle.add_clsact(device)?;
    let mut object = EbpfLoader::new()
        .override_global("batch_bytes", &i64::from(pauses.batch_bytes), true)
        .override_global("pause_bytes", &Pauses::FRAME_BYTES, true)
        .override_global("table_size", &Pauses::TABLE, true)
        .load(OBJECT)
        .map_err(|error| refused(device, error))?;
    for (name, side, priority) in PROGRAMS {
        let attached = handle
            .ns()
            .run(|| attach(&mut object, name, side, priority, device))?;
        attached.map_err(|error| refused(device, error))?;
    }
    Ok(())
}

/// Can this host have such a wire?
pub(crate) fn probe() -> hopyard_net::Result<()> {
    let handle = Handle::new(&NetNs::create()?)?;
    let device = "probe";
    let kind = LinkKind::Veth {
        peer: "peer".to_owned(),
        peer_ns: None,
        peer_mac: None,
    };
    handle.add_link(&NewLink::new(device, kind))?;
    shape(&handle, device, 1_000_000_000, Duration::from_millis(1)).map_err(|error| match error {
        Error::Net(error) => error.or("leave `wire_pause` out"),
        error => hopyard_net::Error::Unsupported {
            what: "have a wire that pauses".to_owned(),
            feature: "eBPF classifiers".to_owned(),
            remedy: format!(
                "load module `cls_bpf` (kernel option CONFIG_NET_CLS_BPF) and run as root, or leave `wire_pause` out ({})",
                crate::chain(&error)
            ),
        },
    })
}

/// It goes with its device, and stays when this process ends.
fn attach(
    object: &mut Ebpf,
    name: &str,
    side: TcAttachType,
    priority: u16,
    device: &str,
) -> std::result::Result<(), ProgramError> {
    let program = object.program_mut(name);
    let program = program.unwrap_or_else(|| unreachable!("`{name}` is in the object"));
    let program: &mut SchedClassifier = program.try_into()?;
    program.load()?;
    let options = TcAttachOptions::Netlink(NlOptions {
        priority,
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
