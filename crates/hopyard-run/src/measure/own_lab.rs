//! Labs for one window each, and the time until the kernel has removed them.

use std::thread;
use std::time::{Duration, Instant};

use hopyard_net::clock;

use super::{Error, wait_until};
use crate::lab::{self, Endpoints, Lab};
use crate::meter;
use crate::model::Cell;
use crate::units::ns;

/// Typical time the kernel takes to remove a lab's namespaces in the background; a thousand take longer.
pub(super) const DUST: Duration = Duration::from_millis(100);
/// The namespaces of this many containers are gone before the next lab's warm-up is over. After more, the next lab
/// waits.
const FEW: u32 = 8;

/// Does something in a cell's own lab. The removal of the lab, or of what there was of one that failed, does not disturb what follows.
pub(super) fn in_own_lab<T>(
    cell: &Cell,
    endpoints: Option<&Endpoints>,
    work: impl FnOnce(&Lab) -> Result<T, Error>,
) -> Result<T, Error> {
    let path = lab::path(&cell.path).map_err(lab::Error::from)?;
    let built = Lab::build_between(path, cell.peer, &cell.axes, endpoints);
    let done = built.map_err(Error::from).and_then(|lab| work(&lab));
    if leaves_much(cell) {
        wait_for_netns_cleanup()?;
    }
    done
}

/// Whether the kernel removes the cell's lab for longer than the next one's warm-up takes.
fn leaves_much(cell: &Cell) -> bool {
    cell.axes.container_count().is_some_and(|count| count > FEW)
}

/// Waits until the kernel has had no namespaces to remove for a while. False if it did not come to that.
pub(super) fn wait_for_netns_cleanup() -> Result<bool, Error> {
    meter::let_namespaces_go(DUST, |time| wait_until(clock::monotonic_ns() + ns(time)))
}

/// Waits until the kernel has removed the namespaces of labs that have just gone. It begins to do so at once, so this returns at once if
/// there are no such labs. Ctrl-C ends the wait.
pub(crate) fn let_netns_cleanup_end() -> Result<(), Error> {
    /// Give up after this time: these may be the namespaces of other programs.
    const MOST: Duration = Duration::from_millis(300);
    wait_for_removal(MOST, meter::namespaces_are_going, |time| {
        wait_until(clock::monotonic_ns() + ns(time))
    })
}

/// The same before the command of `--restore`, which may need what the last labs used. Ctrl-C does not end this wait: the host is usually
/// restored after it.
pub(crate) fn let_netns_cleanup_end_to_restore() -> Result<(), Error> {
    /// Nothing is measured any more, and removing many containers takes a second.
    const MOST: Duration = Duration::from_secs(3);
    wait_for_removal(MOST, meter::namespaces_are_going, |time| {
        thread::sleep(time);
        Ok(())
    })
}

/// Waits while namespaces are being removed, at most `most`.
fn wait_for_removal<E: Into<Error>>(
    most: Duration,
    are_going: impl Fn() -> Result<bool, E>,
    pause: impl Fn(Duration) -> Result<(), Error>,
) -> Result<(), Error> {
    const PAUSE: Duration = Duration::from_millis(10);
    let began = Instant::now();
    while are_going().map_err(Into::into)? && began.elapsed() < most {
        pause(PAUSE)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::cell::Cell as Count;

    use super::*;
    use crate::model::{Axes, Containers, LoadKind, Peer};

    #[test]
    fn it_waits_until_namespaces_are_gone_or_its_time_is_over() {
        let looks = Count::new(0);
        let go_after = |count| {
            looks.set(0);
            let looks = &looks;
            move || {
                looks.set(looks.get() + 1);
                Ok::<_, Error>(looks.get() <= count)
            }
        };
        let sleep = |time| {
            thread::sleep(time);
            Ok(())
        };
        wait_for_removal(Duration::from_secs(60), go_after(3), sleep).unwrap();
        assert_eq!(looks.get(), 4);
        wait_for_removal(Duration::from_millis(30), go_after(u32::MAX), sleep).unwrap();
        assert!((2..6).contains(&looks.get()), "{looks:?}");
        let interrupted = |_| Err(Error::Interrupted);
        wait_for_removal(Duration::from_secs(60), go_after(1), interrupted).unwrap_err();
    }

    #[test]
    fn a_failed_lab_of_many_containers_is_waited_for() {
        let took = |flows| {
            let load = LoadKind::TcpStream;
            let mut axes = Axes::default().for_cell(load, Peer::Local, &[]);
            (axes.containers, axes.flows) = (Some(Containers::Own), flows);
            // The path needs no containers, so its lab cannot be built.
            let cell = Cell {
                path: "native".to_owned(),
                peer: Peer::Local,
                load,
                axes,
            };
            let began = Instant::now();
            in_own_lab(&cell, None, |_| Ok(())).unwrap_err();
            began.elapsed()
        };
        assert!(took(FEW + 1) >= DUST);
    }
}
