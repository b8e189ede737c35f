//! Which frames are dropped, and why: their headers, as the programs drop them.
//!
//! A tracer writes into a map whose drops it wants to be told of, for the next two seconds, and again and again while it
//! waits. The programs look there when they drop a frame, and put it into a ring buffer (`bpf/trace.h`). So a tracer that is
//! killed asks for nothing a moment later, and frames that are not dropped cost the same all the time.

use std::fs::File;
use std::os::fd::AsFd;
use std::time::{Duration, Instant, SystemTime};

use aya::maps::{Array, MapData, RingBuf};
use nix::errno::Errno;
use nix::fcntl::{Flock, FlockArg};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::time::{ClockId, clock_gettime};

use crate::bpffs::{directory, is_directory, stands_at};
use crate::error::{Error, Result};
use crate::layout::{
    DROP_REASONS, FIRST_PORT, NOBODY, SLOT_HOST, SLOT_WIRE, TOLD_OCTETS, TraceWish,
};
use crate::lock;
use crate::state::pinned;
use crate::switch::{Role, Switch};

/// For so long a tracer asks.
const AHEAD: Duration = Duration::from_secs(2);
/// And after so long it asks again.
const PERIOD: Duration = Duration::from_millis(500);

/// Whose frames are to be told of: those from it, and those that it should have got.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Traced {
    /// What is beyond the uplink.
    Wire,
    /// The host's own stack.
    Host,
    /// The guest behind a device.
    Port(String),
}

/// A frame that was dropped.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Dropped {
    /// When.
    pub at: SystemTime,
    /// Whom it came from.
    pub from: Party,
    /// Who did not get it, where that is known: one of those that a broadcast is for.
    pub to: Option<Party>,
    /// Why, as in [`DROP_REASONS`].
    pub reason: &'static str,
    /// What that means.
    pub meaning: &'static str,
    /// Its length, or that of the GSO packet.
    pub len: u32,
    /// Bytes of contents of each frame that a GSO packet is cut into.
    pub gso_size: Option<u32>,
    /// A tag that is beside the frame: its Ethernet type and its contents (priority and VLAN).
    pub tag: Option<(u16, u16)>,
    /// Its first octets, from the Ethernet header on.
    pub octets: Vec<u8>,
}

/// One end of a frame's way.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Party {
    /// What it is.
    pub role: Role,
    /// The device of a port that is still there.
    pub device: Option<String>,
}

/// Frames of a party that are dropped, as long as this value lives.
pub struct Trace {
    switch: Switch,
    party: Traced,
    wish: TraceWish,
    asked: Instant,
    wishes: Array<MapData, TraceWish>,
    told: RingBuf<MapData>,
    /// When it began, by the programs' clock.
    began: u64,
    /// When that clock began.
    epoch: SystemTime,
    /// One tracer at a time: whoever reads the ring buffer takes frames out of it.
    lock: Option<Flock<File>>,
}

impl Switch {
    /// Tells of the frames of a party that are dropped from now on: of the first [`MOST_TOLD`](crate::MOST_TOLD) surely, and of more
    /// if they are read as fast as they come.
    ///
    /// # Errors
    /// The device is no port of this switch, there is no uplink, or somebody traces this switch already.
    pub fn trace(self, party: Traced) -> Result<Trace> {
        let what = format!("trace switch `{}`", self.name);
        let slot = self.slot_of_party(&what, &party)?;
        let mac = match party {
            Traced::Wire => 0,
            Traced::Host => self.state.config()?.host_mac,
            Traced::Port(_) => self.state.port(slot)?.mac,
        };
        let directory = directory(&self.name);
        let lock = File::open(&directory).map_err(Error::bpf(what.clone()))?;
        let lock = Flock::lock(lock, FlockArg::LockExclusiveNonblock).map_err(|(_, errno)| {
            if errno == Errno::EWOULDBLOCK {
                let why = "somebody traces it already, and one can at a time";
                return Error::invalid(what.clone(), why);
            }
            Error::bpf(what.clone())(std::io::Error::from(errno))
        })?;
        let now = clock(&what)?;
        let mut trace = Trace {
            party,
            wish: TraceWish {
                until: 0,
                mac,
                slot,
                missed: 0,
            },
            asked: Instant::now(),
            wishes: pinned(&directory, "traced")?,
            told: pinned(&directory, "drops_told")?,
            began: nanoseconds(now),
            epoch: SystemTime::now() - now,
            switch: self,
            lock: Some(lock),
        };
        // What is left of somebody who was killed; later frames of theirs are passed over by their time.
        while trace.told.next().is_some() {}
        trace.ask(0)?;
        Ok(trace)
    }

    fn slot_of_party(&self, what: &str, party: &Traced) -> Result<u32> {
        let slot = match party {
            Traced::Wire => SLOT_WIRE,
            Traced::Host => SLOT_HOST,
            Traced::Port(device) => {
                return self.slot_of_port(what, &self.here(what)?, device);
            }
        };
        if self.state.config()?.uplink == 0 {
            return Err(Error::invalid(what, "it has no uplink"));
        }
        Ok(slot)
    }

    fn party_of_slot(&self, slot: u32) -> Option<Party> {
        let role = match slot {
            NOBODY => return None,
            SLOT_WIRE => Role::Wire,
            SLOT_HOST => Role::Host,
            _ => Role::Port,
        };
        let device = || {
            self.name_of(self.state.port(slot).ok()?.device)
                .ok()
                .flatten()
        };
        Some(Party {
            role,
            device: (slot >= FIRST_PORT).then(device).flatten(),
        })
    }
}

impl Trace {
    /// The next frame, within some time.
    ///
    /// # Errors
    /// The port or the switch is no longer there.
    pub fn next(&mut self, within: Duration) -> Result<Option<Dropped>> {
        let end = Instant::now() + within;
        loop {
            if self.asked.elapsed() >= PERIOD {
                self.ask_again()?;
            }
            let event = self.told.next().map(|event| Event::read(&event));
            if let Some(event) = event {
                match event.filter(|event| self.concerns(event)) {
                    Some(event) => return Ok(Some(self.dropped(event))),
                    None => continue,
                }
            }
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Ok(None);
            }
            // Up to a millisecond more, so that it does not turn in circles for the last of it.
            let wait = left.min(PERIOD).as_millis() + 1;
            let wait = PollTimeout::try_from(wait).unwrap_or(PollTimeout::MAX);
            let mut ready = [PollFd::new(self.told.as_fd(), PollFlags::POLLIN)];
            match poll(&mut ready, wait) {
                Ok(_) => {}
                // A signal: whoever called may want to look at it.
                Err(Errno::EINTR) => return Ok(None),
                Err(errno) => {
                    let error = std::io::Error::from(errno);
                    return Err(Error::bpf("wait for a dropped frame")(error));
                }
            }
        }
    }

    /// How many frames of the party were dropped that this cannot tell of: they came faster than others were read. A frame
    /// that is dropped while the trace renews its request, twice a second, may be missing from the count.
    ///
    /// # Errors
    /// The kernel's maps cannot be read.
    pub fn missed(&self) -> Result<u32> {
        let wish = self.wishes.get(&0, 0);
        let wish = wish.map_err(Error::bpf("read how many dropped frames were missed"))?;
        Ok(wish.missed)
    }

    fn ask(&mut self, missed: u32) -> Result<()> {
        let what = "ask for dropped frames";
        self.wish.until = nanoseconds(clock(what)? + AHEAD);
        self.wish.missed = missed;
        self.asked = Instant::now();
        self.wishes.set(0, self.wish, 0).map_err(Error::bpf(what))
    }

    fn ask_again(&mut self) -> Result<()> {
        let what = format!("trace switch `{}`", self.switch.name);
        // Another switch may have come by the name since, and another port by the device.
        let directory = directory(&self.switch.name);
        let is_same = self
            .lock
            .as_ref()
            .is_some_and(|lock| stands_at(lock, &directory));
        let now = Switch::open(&self.switch.name)?;
        if !is_same || now.slot_of_party(&what, &self.party)? != self.wish.slot {
            let why = "it was made again meanwhile, or the port was";
            return Err(Error::invalid(what, why));
        }
        let missed = self.missed()?;
        self.ask(missed)
    }

    fn concerns(&self, event: &Event) -> bool {
        let to_it = || {
            let destination = event.octets.first_chunk::<6>();
            self.wish.mac != 0
                && destination.is_some_and(|mac| crate::Mac(*mac).to_number() == self.wish.mac)
        };
        event.at >= self.began
            && (event.from == self.wish.slot || event.to == self.wish.slot || to_it())
    }

    fn dropped(&self, event: Event) -> Dropped {
        let (reason, meaning) = event.reason;
        let Event { from, to, tag, .. } = event;
        Dropped {
            at: self.epoch + Duration::from_nanos(event.at),
            from: self.switch.party_of_slot(from).unwrap_or(Party {
                role: Role::Port,
                device: None,
            }),
            to: self.switch.party_of_slot(to),
            reason,
            meaning,
            len: event.len,
            gso_size: (event.gso_size != 0).then_some(event.gso_size),
            tag: (tag != 0).then_some(((tag >> 16) as u16, tag as u16)),
            octets: event.octets,
        }
    }
}

impl Drop for Trace {
    /// Best effort: it would end by itself.
    fn drop(&mut self) {
        let _ = self.wishes.set(0, TraceWish::default(), 0);
        // Who removed the last switch meanwhile could not unmount a file system in use.
        self.lock = None;
        if !is_directory(&directory(&self.switch.name)) {
            lock::tidy();
        }
    }
}

impl std::fmt::Debug for Trace {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Trace")
            .field("party", &self.party)
            .finish_non_exhaustive()
    }
}

/// The programs' clock.
fn clock(what: &str) -> Result<Duration> {
    let now = clock_gettime(ClockId::CLOCK_MONOTONIC);
    let now = now.map_err(|errno| Error::bpf(what)(std::io::Error::from(errno)))?;
    Ok(Duration::from(now))
}

fn nanoseconds(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

/// `struct dropped` of `bpf/layout.h`.
struct Event {
    at: u64,
    from: u32,
    to: u32,
    reason: (&'static str, &'static str),
    len: u32,
    tag: u32,
    gso_size: u32,
    octets: Vec<u8>,
}

impl Event {
    fn read(event: &[u8]) -> Option<Self> {
        let (at, rest) = event.split_first_chunk::<8>()?;
        let (words, octets) = rest.split_first_chunk::<32>()?;
        let word = |n: usize| {
            let octets = words.get(4 * n..4 * n + 4)?.try_into().ok()?;
            Some(u32::from_ne_bytes(octets))
        };
        let captured = usize::try_from(word(6)?).ok()?.min(TOLD_OCTETS);
        Some(Self {
            at: u64::from_ne_bytes(*at),
            from: word(0)?,
            to: word(1)?,
            reason: *DROP_REASONS.get(usize::try_from(word(2)?).ok()?)?,
            len: word(3)?,
            tag: word(4)?,
            gso_size: word(5)?,
            octets: octets.get(..captured)?.to_vec(),
        })
    }
}
