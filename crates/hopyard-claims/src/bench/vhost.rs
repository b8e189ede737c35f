//! MQ12: several queues of a tap, each served by vhost-net as it is for one.

use std::os::fd::AsFd;
use std::time::{Duration, Instant};

use hopyard_net::{PacketSocket, VhostQueue};
use hopyard_tap::NewDevice;

use super::site::space;
use super::taps::multi;
use super::{FunctionalCheck, Result, socket};

const QUEUES: usize = 4;
/// Frames by each queue.
const FRAMES: u8 = 16;
/// Of frames that nobody else sends (IEEE 802, local experimental).
const KIND: u16 = 0x88b5;
const TAP: &str = "tap0";
/// A frame that is to come has come by then; on an emulated CPU too.
const SOON: Duration = Duration::from_secs(2);

/// Why there is no vhost-net here.
pub(super) fn lacking() -> Option<String> {
    (!std::path::Path::new("/dev/vhost-net").exists()).then(|| {
        "/dev/vhost-net: load module `vhost_net` (kernel option CONFIG_VHOST_NET)".to_owned()
    })
}

/// What a guest sends by each of several queues comes out of the tap, each frame once, with an instance of vhost-net for each queue.
pub(super) fn queues_carry() -> Result<FunctionalCheck> {
    let handle = space()?;
    let new = multi(NewDevice::tap(TAP), QUEUES);
    let (_, queues) = handle.ns().run(|| new.create())??;
    handle.set_up(TAP)?;
    handle.settle(TAP)?;
    let heard = PacketSocket::open(handle.ns(), TAP, KIND)?;
    let mut taken = 0;
    for (number, queue) in (0..).zip(&queues) {
        let mut served = VhostQueue::serve(queue.as_fd())?;
        for frame in 0..FRAMES {
            taken += usize::from(served.send(&frame_of(number, frame), SOON)?);
        }
    }
    let mut came = Vec::new();
    let mut room = [0; 2048];
    let began = Instant::now();
    while came.len() < wanted().count() && began.elapsed() < SOON {
        let length = heard
            .receive(&mut room)
            .map_err(socket("hear frames of a tap"))?;
        match length {
            Some(length) => came.extend(of_ours(&room[..length])),
            None => std::thread::sleep(Duration::from_millis(1)),
        }
    }
    came.sort_unstable();
    let arrived = came.len();
    Ok(FunctionalCheck {
        passed: came.into_iter().eq(wanted()),
        seen: format!(
            "of {} frames that a guest's driver put into {QUEUES} queues, each with an instance of vhost-net of its own, the kernel took {taken} and \
             {arrived} came out of the tap",
            wanted().count()
        ),
    })
}

/// Every frame, by queue and number.
fn wanted() -> impl Iterator<Item = (u8, u8)> {
    (0..)
        .take(QUEUES)
        .flat_map(|queue| (0..FRAMES).map(move |frame| (queue, frame)))
}

fn frame_of(queue: u8, number: u8) -> Vec<u8> {
    let (to, from) = ([0xff; 6], [2, 0, 0, 0, 1, queue]);
    let mut frame = [&to[..], &from, &KIND.to_be_bytes(), &[queue, number]].concat();
    frame.resize(60, 0);
    frame
}

fn of_ours(frame: &[u8]) -> Option<(u8, u8)> {
    // It hears no other kind.
    Some((*frame.get(14)?, *frame.get(15)?))
}
