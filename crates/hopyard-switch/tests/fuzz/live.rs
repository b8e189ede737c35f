//! The same frames for real, through sockets: a run of a program does not tell where it redirects to.

use std::io::IoSliceMut;
use std::os::fd::{AsRawFd, OwnedFd};
use std::time::{Duration, Instant};

use hopyard_switch::{Counters, Switch};
use nix::errno::Errno;
use nix::sys::socket::{
    AddressFamily, ControlMessageOwned, MsgFlags, SockFlag, SockProtocol, SockType, recvmsg, socket,
};

use crate::model::{Outcome, Party, Rules, Tag, Verdict, received};
use crate::packet::{VLAN_TAG, tagged};
use crate::world::{World, bind_packet};
use crate::{hex, index};

/// All Ethernet types (`ETH_P_ALL`): hears what a device sends, too.
const ALL: u16 = 3;
/// A frame that is to come has come by then.
const QUIET: Duration = Duration::from_millis(20);
/// `struct tpacket_auxdata`: where status, TCI and type of a tag beside the frame are.
const AUX_STATUS: usize = 0;
const AUX_TCI: usize = 16;
const AUX_TYPE: usize = 18;
const AUX_LEN: usize = 20;

/// A frame that somebody heard, with who it was.
type Heard = (String, Vec<u8>);

/// A packet socket that also tells the tag beside a frame.
struct Ear {
    party: String,
    socket: OwnedFd,
    /// The program's end of a tap, which hears what the tap is given.
    is_tap: bool,
}

impl Ear {
    fn open(world: &World, party: Party) -> Self {
        let (party, device) = match party {
            Party::Wire => (name(party), "far0"),
            _ => (name(party), "eth0"),
        };
        if let Some(tap) = world.tap(&party) {
            let socket = tap.0.try_clone().unwrap().into();
            return Self {
                party,
                socket,
                is_tap: true,
            };
        }
        let socket = world.inside(&party, || {
            let flags = SockFlag::SOCK_CLOEXEC | SockFlag::SOCK_NONBLOCK;
            let family = AddressFamily::Packet;
            let fd = socket(family, SockType::Raw, flags, None::<SockProtocol>).unwrap();
            tell_tags(&fd);
            bind_packet(&fd, device, ALL);
            fd
        });
        Self {
            party,
            socket,
            is_tap: false,
        }
    }

    fn hear(&self) -> Option<Vec<u8>> {
        let mut buffer = [0; 1 << 16];
        if self.is_tap {
            let octets = nix::unistd::read(&self.socket, &mut buffer).ok()?;
            return Some(buffer[..octets].to_vec());
        }
        let mut control = nix::cmsg_space!([u8; AUX_LEN]);
        let mut parts = [IoSliceMut::new(&mut buffer)];
        let fd = self.socket.as_raw_fd();
        let message = recvmsg::<()>(fd, &mut parts, Some(&mut control), MsgFlags::empty()).ok()?;
        let tag = message.cmsgs().unwrap().find_map(|control| match control {
            ControlMessageOwned::Unknown(aux) => tag_of(&aux.data_bytes),
            _ => None,
        });
        let octets = message.bytes;
        Some(with_tag(tag, &buffer[..octets]))
    }
}

fn tell_tags(fd: &OwnedFd) {
    let on: libc::c_int = 1;
    // SAFETY: the option is an int that lives through the call.
    let set = unsafe {
        libc::setsockopt(
            fd.as_raw_fd(),
            libc::SOL_PACKET,
            libc::PACKET_AUXDATA,
            (&raw const on).cast(),
            size_of::<libc::c_int>() as libc::socklen_t,
        )
    };
    assert_eq!(set, 0, "{}", std::io::Error::last_os_error());
}

fn tag_of(aux: &[u8]) -> Option<Tag> {
    let half = |at: usize| u16::from_ne_bytes([aux[at], aux[at + 1]]);
    let is_tagged = u32::from(half(AUX_STATUS)) & libc::TP_STATUS_VLAN_VALID != 0;
    is_tagged.then(|| (half(AUX_TYPE), half(AUX_TCI)))
}

fn with_tag(tag: Option<Tag>, frame: &[u8]) -> Vec<u8> {
    tag.map_or_else(|| frame.to_vec(), |(kind, tci)| tagged(frame, kind, tci))
}

pub(crate) struct Live<'a> {
    world: &'a World,
    rules: &'a Rules,
    switch: Switch,
    ears: Vec<Ear>,
}

fn name(party: Party) -> String {
    match party {
        Party::Wire => "wire".to_owned(),
        Party::Host => "host".to_owned(),
        Party::Port(n) => format!("g{n}"),
        Party::Nobody => unreachable!("it has no ear"),
    }
}

impl<'a> Live<'a> {
    pub(crate) fn open(world: &'a World, rules: &'a Rules) -> Self {
        let guests = (0..rules.ports.len()).map(Party::Port);
        let parties = guests.chain([Party::Wire]);
        Self {
            world,
            rules,
            switch: world.in_hub(|| Switch::open(world.name()).unwrap()),
            ears: parties.map(|party| Ear::open(world, party)).collect(),
        }
    }

    fn counters(&self) -> Vec<Counters> {
        let stats = self.world.in_hub(|| self.switch.stats().unwrap());
        stats.into_iter().map(|party| party.counters).collect()
    }

    fn send(&self, origin: Party, frame: &[u8]) -> bool {
        match self.world.try_send(&name(origin), frame) {
            Ok(octets) => octets == frame.len(),
            // Longer than its own device takes.
            Err(errno) => {
                assert_eq!(errno, Errno::EMSGSIZE);
                false
            }
        }
    }

    /// Adds what a frame does to what is heard and counted. What its sender may be told of its length: heard by chance.
    fn expect(
        &self,
        origin: Party,
        frame: &[u8],
        heard: &mut Vec<Heard>,
        counters: &mut [Counters],
    ) -> Option<(Party, Vec<u8>)> {
        if origin != Party::Host && self.world.tap(&name(origin)).is_none() {
            // By the ear at the sender's own device.
            heard.push((name(origin), frame.to_vec()));
        }
        // The host sends at its hook, the others before theirs.
        let seen = match origin {
            Party::Host => Some((None, frame.to_vec())),
            _ => received(frame),
        };
        let (beside, octets) = seen?;
        let outcome: Outcome = self.rules.judge(origin, beside, &octets);
        outcome.count(counters, |party| index(self.rules, party));
        for party in outcome.receivers().filter(|party| *party != Party::Host) {
            // The wire is a trunk: what comes from a port has its VLAN's tag, an answer the question's.
            let tag = match (party, origin) {
                (Party::Wire, Party::Wire) => beside,
                (Party::Wire, Party::Port(n)) if self.rules.ports[n].vlan > 0 => {
                    Some((VLAN_TAG, self.rules.ports[n].vlan))
                }
                _ => None,
            };
            heard.push((name(party), with_tag(tag, &outcome.frame)));
        }
        // As if there were no switch; too short a frame is lost on the way.
        let goes_on = origin == Party::Host && outcome.verdict == Verdict::GoesOn;
        if goes_on && received(&outcome.frame).is_some() {
            heard.push((name(Party::Wire), frame.to_vec()));
        }
        outcome.told.map(|told| (origin, told))
    }

    fn heard(&self) -> Vec<Heard> {
        let mut all = Vec::new();
        let mut deadline = Instant::now() + QUIET;
        loop {
            // Before the look: the last one begins when the while is over, and finds nothing.
            let looked = Instant::now();
            for ear in &self.ears {
                while let Some(frame) = ear.hear() {
                    all.push((ear.party.clone(), frame));
                    deadline = Instant::now() + QUIET;
                }
            }
            if looked >= deadline {
                return all;
            }
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    /// Sends frames; the error says how what was heard or counted differs.
    fn try_frames(&self, frames: &[(Party, Vec<u8>)]) -> Result<(), String> {
        let mut counters = self.counters();
        let mut expected = Vec::new();
        let mut told = Vec::new();
        for (origin, frame) in frames {
            if self.send(*origin, frame) {
                told.extend(self.expect(*origin, frame, &mut expected, &mut counters));
            }
        }
        let mut heard = self.heard();
        for (origin, message) in told {
            let is = |(who, frame): &Heard| *who == name(origin) && *frame == message;
            if let Some(place) = heard.iter().position(is) {
                heard.remove(place);
                counters[index(self.rules, origin)].too_big += 1;
            }
        }
        heard.sort();
        expected.sort();
        if heard != expected {
            let only = |one: &[Heard], other: &[Heard]| -> Vec<String> {
                let missing = one.iter().filter(|heard| !other.contains(heard));
                missing
                    .map(|(who, frame)| format!("{who}: {}", hex(frame)))
                    .collect()
            };
            let (more, less) = (only(&heard, &expected), only(&expected, &heard));
            return Err(format!("heard wrongly: {more:?}, not heard: {less:?}"));
        }
        let counted = self.counters();
        if counted != counters {
            return Err(format!("counters {counted:?}, not {counters:?}"));
        }
        Ok(())
    }

    /// Sends frames, and one by one again if something differs.
    pub(crate) fn check(&self, frames: &[(Party, Vec<u8>)], seed: u64) {
        let Err(all) = self.try_frames(frames) else {
            return;
        };
        for one in frames {
            if let Err(why) = self.try_frames(std::slice::from_ref(one)) {
                panic!(
                    "HOPYARD_FUZZ_SEED={seed}, from {:?}: {}\n{why}",
                    one.0,
                    hex(&one.1)
                );
            }
        }
        panic!("HOPYARD_FUZZ_SEED={seed}, not again one by one: {all}");
    }
}
