//! The far end of a lab whose wire is a real cable: a namespace `far` on another machine, with that machine's card in it.
//!
//! `hopyard far` is started there by the user's command. It is told on stdin what to make, says on stdout where that is, and undoes it
//! at the end of its stdin, or when nothing has come for a while: a network that is gone closes nothing.

use std::io::Write;
use std::net::IpAddr;
use std::process::{Child, ChildStdin, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use hopyard_net::{Handle, LinkKind, NewLink, end_within, pipe};
use serde::{Deserialize, Serialize};

use super::builder::SYSCTLS;
use super::card::{self, Card};
use super::endpoints::Prefix;
use super::error::Cable;
use super::part::{Part, Undone};
use super::topology::{Addresses, Endpoint, Subnet, host, role};
use super::wire::{FAR_END, UPLINK};
use super::{Builder, Error, LabId, Result, flags};
use crate::bounded::lines_as_they_come;
use crate::load::{lines, remote};
use crate::model::{Hop, OffloadState};

/// Nothing came for so long: whoever asked is gone.
const SILENCE: Duration = Duration::from_secs(15);
const BEAT: Duration = Duration::from_secs(3);
/// How often to look whether the user wants an end.
const LOOK: Duration = Duration::from_millis(100);
/// For a login, and a card that needs some seconds to come up.
const PATIENCE: Duration = Duration::from_secs(45);
/// A line from elsewhere.
const LONGEST_LINE: u64 = 16 << 10;

/// What is to be made there.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Order {
    /// Version of this.
    version: u32,
    /// MTU of the card, bytes.
    mtu: u32,
    /// Addresses of the card with their prefixes.
    addresses: Vec<(IpAddr, u8)>,
    /// Offloads of its devices, which the card has back as they were at the end.
    offloads: Vec<flags::Asked>,
    /// Routers or a tunnel, where it has such.
    extra: Extra,
}

/// What the far end has besides its addresses.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Extra {
    /// Nothing: the near end is on its own network.
    Nothing,
    /// Routers, one for each IP version, for all that is not on the cable.
    Routers(Vec<IpAddr>),
    Vxlan(Vxlan),
}

impl Extra {
    /// The devices of a far end that has it.
    fn devices(&self) -> Vec<&str> {
        match self {
            Self::Nothing | Self::Routers(_) => vec![FAR_END],
            Self::Vxlan(tunnel) => vec![FAR_END, &tunnel.device],
        }
    }
}

/// The far end of a tunnel.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Vxlan {
    /// Name of its device.
    pub(crate) device: String,
    /// Network identifier.
    pub(crate) vni: u32,
    /// UDP port.
    pub(crate) port: u16,
    /// Outer address there.
    pub(crate) local: IpAddr,
    /// Outer address here.
    pub(crate) remote: IpAddr,
    /// MTU inside, bytes.
    pub(crate) mtu: u32,
    /// Addresses inside, with their prefixes.
    pub(crate) addresses: Vec<(IpAddr, u8)>,
}

const VERSION: u32 = 3;

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Made {
    Stands(Stands),
    /// It does not, and why.
    Failed(String),
}

/// What stands there.
#[derive(Debug, Serialize, Deserialize)]
struct Stands {
    /// The file that stands for its namespace.
    namespace: String,
    /// Offloads of its devices, as read back.
    offloads: Vec<OffloadState>,
}

/// Plays the far machine: does what stdin says, until its end.
///
/// # Errors
/// The card cannot be had, or what was made cannot be undone.
pub fn serve(card: &str) -> Result<()> {
    let lines = lines_as_they_come(std::io::stdin(), LONGEST_LINE);
    let order = lines.recv_timeout(SILENCE).map_err(|_| {
        Error::Cable(Cable::Far {
            prefix: "hopyard far".to_owned(),
            why: "nobody said what to make".to_owned(),
        })
    })?;
    let made = serde_json::from_str(&order)
        .map_err(|e| e.to_string())
        .and_then(|order: Order| match order.version {
            VERSION => make(card, &order).map_err(|e| crate::chain(&e)),
            other => Err(format!("this hopyard knows version {VERSION} of what is asked, not {other}: use the same on both machines")),
        });
    let (mut stands, said) = match made {
        Ok((card, space, offloads)) => {
            let namespace = space.ns().proc_path().display().to_string();
            let stands = Stands {
                namespace,
                offloads,
            };
            (Some((card, space)), Made::Stands(stands))
        }
        Err(why) => (None, Made::Failed(why)),
    };
    let text = serde_json::to_string(&said).unwrap_or_default();
    // Whoever asked may be gone already, which the next look shows.
    let _written = writeln!(std::io::stdout(), "{text}");
    if stands.is_some() {
        while !crate::signals::interrupted() {
            match lines.recv_timeout(SILENCE) {
                Ok(_beat) => {}
                Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => break,
            }
        }
    }
    let Some((taken, _)) = &mut stands else {
        return Ok(());
    };
    let undone = taken.undo();
    if undone.problems.is_empty() {
        return Ok(());
    }
    Err(Error::Cable(Cable::Card {
        card: card.to_owned(),
        why: undone.problems.join("; "),
    }))
}

fn make(card: &str, order: &Order) -> Result<(Card, Handle, Vec<OffloadState>)> {
    let space = Handle::create_many(1, &SYSCTLS)?
        .pop()
        .ok_or_else(|| Error::Kept("no namespace was made".to_owned()))?;
    let mut taken = card::take(LabId::next(), card, &space, FAR_END, order.mtu)?;
    let furnished: Result<Vec<OffloadState>> = (|| {
        // A card may lose its carrier for a moment by that.
        flags::set(&space, FAR_END, &order.offloads)?;
        card::wait_for_carrier(&space, card, FAR_END)?;
        for (address, prefix) in &order.addresses {
            space.add_address(FAR_END, *address, *prefix)?;
        }
        match &order.extra {
            Extra::Nothing => {}
            Extra::Routers(routers) => {
                for router in routers {
                    space.add_route(None, Some(*router), None)?;
                }
            }
            Extra::Vxlan(tunnel) => {
                make_tunnel(&space, tunnel)?;
                flags::set(&space, &tunnel.device, &order.offloads)?;
            }
        }
        let devices = order.extra.devices().into_iter();
        let states = devices.map(|device| flags::read_back(&space, device, &order.offloads));
        Ok(states.collect::<Result<Vec<_>>>()?.concat())
    })();
    match furnished {
        Ok(offloads) => Ok((taken, space, offloads)),
        Err(error) => {
            for problem in taken.undo().problems {
                crate::note(format_args!("{problem}"));
            }
            Err(error)
        }
    }
}

fn make_tunnel(space: &Handle, tunnel: &Vxlan) -> Result<()> {
    let kind = LinkKind::Vxlan {
        vni: tunnel.vni,
        local: tunnel.local,
        remote: tunnel.remote,
        port: tunnel.port,
        lower: None,
    };
    space.add_link(&NewLink {
        mtu: Some(tunnel.mtu),
        up: true,
        ..NewLink::new(&tunnel.device, kind)
    })?;
    for (address, prefix) in &tunnel.addresses {
        space.add_address(&tunnel.device, *address, *prefix)?;
    }
    Ok(())
}

/// The far machine as a part of a lab here.
#[derive(Debug)]
pub(super) struct FarMachine {
    child: Child,
    beats: Option<(Sender<()>, JoinHandle<()>)>,
    stands: Stands,
}

impl FarMachine {
    fn start(prefix: &Prefix, card: &str, order: &Order) -> Result<Self> {
        let failed = |why: String| {
            Error::Cable(Cable::Far {
                prefix: prefix.to_string(),
                why,
            })
        };
        let mut command = prefix.command(&["hopyard", "far", card]);
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command
            .spawn()
            .map_err(|e| failed(format!("cannot be started: {e}")))?;
        let (Some(mut to), Some(from)) = (child.stdin.take(), child.stdout.take()) else {
            return Err(failed("it has no pipes".to_owned()));
        };
        let heard = match lines::say_within(&mut to, order, PATIENCE) {
            Ok(()) => answer(&lines_as_they_come(from, LONGEST_LINE)),
            Err(error) => Err(error.to_string()),
        };
        if crate::signals::interrupted() {
            drop(to);
            let _ended = end_within(&mut child, SILENCE);
            return Err(Error::Worker(remote::Error::Interrupted));
        }
        let made = heard.and_then(|line| {
            serde_json::from_str::<Made>(&line).map_err(|_| {
                format!(
                    "`hopyard far` was expected to say what it made, not `{}`",
                    crate::model::plain::line(line.trim())
                )
            })
        });
        let made = match made {
            Ok(Made::Stands(stands)) => Ok(stands),
            Ok(Made::Failed(why)) | Err(why) => Err(why),
        };
        match made {
            Ok(stands) => Ok(Self {
                child,
                beats: Some(beat(to)),
                stands,
            }),
            Err(why) => {
                drop(to);
                let _ended = end_within(&mut child, SILENCE);
                Err(failed(why))
            }
        }
    }

    /// The file that stands for the namespace there.
    pub(super) fn namespace(&self) -> &str {
        &self.stands.namespace
    }

    /// Offloads of the devices there, as read back.
    pub(super) fn offloads(&self) -> &[OffloadState] {
        &self.stands.offloads
    }
}

/// The first line from there. An interruption ends the wait: the card of this machine is in the lab already.
fn answer(lines: &Receiver<String>) -> std::result::Result<String, String> {
    let deadline = Instant::now() + PATIENCE;
    while Instant::now() < deadline && !crate::signals::interrupted() {
        match lines.recv_timeout(LOOK) {
            Ok(line) => return Ok(line),
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => break,
        }
    }
    Err("`hopyard far` said nothing: is hopyard in PATH there, and are you root?".to_owned())
}

/// Says every now and then that we live, until the channel ends.
fn beat(mut to: ChildStdin) -> (Sender<()>, JoinHandle<()>) {
    let (end, ended) = channel();
    let thread = std::thread::spawn(move || {
        while ended.recv_timeout(BEAT) == Err(RecvTimeoutError::Timeout) {
            // It undoes everything by itself when it hears nothing.
            if pipe::write_within(&mut to, b"beat\n", SILENCE).is_err() {
                return;
            }
        }
    });
    (end, thread)
}

impl Part for FarMachine {
    /// Its stdin ends, and with that what it made.
    fn undo(&mut self) -> Undone {
        if let Some((stop, thread)) = self.beats.take() {
            drop(stop);
            // Its pipe closes with it.
            let _joined = thread.join();
        }
        match end_within(&mut self.child, SILENCE) {
            Ok(status) if status.success() => Undone::default(),
            _ => Undone {
                removed: None,
                problems: vec![
                    "the far machine did not confirm that it restored its card: run `hopyard clean` there"
                        .to_owned(),
                ],
            },
        }
    }
}

impl Builder {
    /// Is the wire of this lab a real cable to another machine?
    pub(super) fn has_real_wire(&self) -> bool {
        self.endpoints.as_ref().is_some_and(|e| e.uplink.is_some())
    }

    /// The far end of the wire as the server: traffic leaves the hub by the uplink.
    ///
    /// # Errors
    /// The kernel refused.
    pub(crate) fn far_end(&mut self, subnet: Subnet, way: &mut Vec<Hop>) -> Result<Endpoint> {
        way.extend([Hop::tx(role::HUB, UPLINK), Hop::rx(role::FAR, FAR_END)]);
        let own = subnet.host(host::FAR);
        if self.has_real_wire() {
            self.make_far_end(own, Extra::Nothing)?;
            return Ok(Endpoint::new(role::FAR, FAR_END, own));
        }
        self.endpoint(role::FAR, FAR_END, own)
    }

    /// The far end on a network of its own, which reaches all others by a router at the hub's end.
    ///
    /// # Errors
    /// The kernel refused.
    pub(crate) fn far_end_behind(&mut self, router: Addresses, subnet: Subnet) -> Result<Endpoint> {
        let own = subnet.host(host::FAR);
        if self.has_real_wire() {
            let routers = router.alone().map(|(router, _)| router);
            self.make_far_end(own, Extra::Routers(routers.into()))?;
            return Ok(Endpoint::new(role::FAR, FAR_END, own));
        }
        let far = self.endpoint(role::FAR, FAR_END, own)?;
        self.default_route(role::FAR, router)?;
        Ok(far)
    }

    /// Has the far machine give its card these addresses, and what goes with them.
    pub(super) fn make_far_end(&mut self, outer: Addresses, extra: Extra) -> Result<()> {
        let Some((prefix, uplink)) = self
            .endpoints
            .as_ref()
            .and_then(|e| Some((e.server.clone(), e.uplink.clone()?)))
        else {
            return Err(Error::Kept(format!("namespace `{}` is gone", role::FAR)));
        };
        let order = Order {
            version: VERSION,
            mtu: self.mtu(),
            addresses: outer.with_prefixes().into(),
            offloads: flags::asked_of_far(self.axes(), &extra.devices()),
            extra,
        };
        let far = FarMachine::start(&prefix, &uplink.far_card, &order)?;
        self.push(far);
        self.wait_for_cable()
    }
}
