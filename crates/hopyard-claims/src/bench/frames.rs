//! ND9 and ND12: who gets a frame through the direct switch, and how often.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use hopyard_net::PacketSocket;

use super::site::{FAR, Site, guest, mac};
use super::{FunctionalCheck, Result, socket};

const BROADCAST: [u8; 6] = [0xff; 6];
/// A group (RFC 1112) that nobody joined.
const GROUP: [u8; 6] = [1, 0, 0x5e, 0, 0, 0x63];
/// Nobody's address.
const STRANGER: [u8; 6] = [2, 0, 0, 0, 0xaa, 0xbb];
/// An Ethernet type for local experiments (IEEE 802).
const EXPERIMENT: u16 = 0x88b5;
/// Least length of a frame.
const LEAST: usize = 60;
/// A frame that is to come has come by then, and one that must not come would have.
const QUIET: Duration = Duration::from_millis(40);

/// A packet socket at each party of a site.
struct Parties(Vec<(String, [u8; 6], PacketSocket)>);

impl Parties {
    fn of(site: &Site) -> Result<Self> {
        let mut parties = Vec::new();
        let several = site.sides.len() > 1;
        for side in &site.sides {
            let name = |party: &str| {
                if several {
                    format!("{party} of device {}", side.net)
                } else {
                    party.to_owned()
                }
            };
            let host = site.hub.link(&side.uplink)?.mac.unwrap_or_default();
            let open = |handle: &hopyard_net::Handle, device: &str| {
                PacketSocket::open(handle.ns(), device, EXPERIMENT)
            };
            parties.push((name("the host"), host, open(&site.hub, &side.uplink)?));
            parties.push((
                name("the wire"),
                mac(side.net, FAR),
                open(&side.far, "far0")?,
            ));
            for (n, own) in side.guests.iter().enumerate() {
                let address = mac(side.net, guest(n));
                parties.push((name(&format!("guest {n}")), address, open(own, "eth0")?));
            }
        }
        Ok(Self(parties))
    }

    /// Sends a frame from a party and tells who heard it how often.
    fn send(&self, from: usize, to: [u8; 6]) -> Result<BTreeMap<String, u32>> {
        let (_, address, own) = &self.0[from];
        let mut frame = [&to[..], address, &EXPERIMENT.to_be_bytes()].concat();
        frame.resize(LEAST, 0);
        own.send(&frame).map_err(socket("send a frame"))?;
        let mut heard = BTreeMap::new();
        let mut end = Instant::now() + QUIET;
        let mut room = [0; 2048];
        loop {
            // Who was kept from looking looks once more.
            let is_last = Instant::now() >= end;
            for (name, _, party) in &self.0 {
                while party
                    .receive(&mut room)
                    .map_err(socket("receive a frame"))?
                    .is_some()
                {
                    *heard.entry(name.clone()).or_insert(0) += 1;
                    end = Instant::now() + QUIET;
                }
            }
            if is_last && Instant::now() >= end {
                break;
            }
            std::thread::sleep(Duration::from_millis(2));
        }
        Ok(heard)
    }

    fn name(&self, party: usize) -> &str {
        &self.0[party].0
    }

    /// The first thing that is not as it should be: who should hear what `from` sends to `to`.
    fn wrong(&self, from: usize, to: [u8; 6], should: &[&str]) -> Result<Option<String>> {
        self.wrong_but(from, to, should, None)
    }

    /// The same where another one may hear it or not.
    fn wrong_but(
        &self,
        from: usize,
        to: [u8; 6],
        should: &[&str],
        may: Option<&str>,
    ) -> Result<Option<String>> {
        let mut heard = self.send(from, to)?;
        heard.retain(|name, times| may != Some(name.as_str()) || *times > 1);
        let right: BTreeMap<String, u32> =
            should.iter().map(|name| ((*name).to_owned(), 1)).collect();
        let said = |who: &BTreeMap<String, u32>| {
            let each = who.iter().map(|(name, times)| format!("{name} ({times})"));
            let list: Vec<String> = each.collect();
            if list.is_empty() {
                "nobody".to_owned()
            } else {
                list.join(", ")
            }
        };
        Ok((heard != right).then(|| {
            format!(
                "what {} sent was heard by {}, and should be by {}",
                self.name(from),
                said(&heard),
                said(&right)
            )
        }))
    }
}

/// Broadcasts and multicasts from wire, host and guests: one copy to each other party, none to the sender.
pub(super) fn one_copy_of_a_broadcast() -> Result<FunctionalCheck> {
    let site = Site::whole(1, 3)?;
    let parties = Parties::of(&site)?;
    let mut frames = 0;
    for to in [BROADCAST, GROUP] {
        for from in 0..parties.0.len() {
            let others: Vec<&str> = (0..parties.0.len())
                .filter(|party| *party != from)
                .map(|party| parties.name(party))
                .collect();
            if let Some(seen) = parties.wrong(from, to, &others)? {
                return Ok(FunctionalCheck::failed(seen));
            }
            frames += 1;
        }
    }
    Ok(FunctionalCheck::passed(format!(
        "each of {frames} broadcasts and multicasts from host, wire and 3 guests reached every other party once and the sender never"
    )))
}

/// All pairs of parties on a device, those on another device, and an address that nobody has.
pub(super) fn by_address() -> Result<FunctionalCheck> {
    let site = Site::whole(2, 2)?;
    let parties = Parties::of(&site)?;
    let side = parties.0.len() / site.sides.len();
    let mut frames = 0;
    for from in 0..parties.0.len() {
        let mates = (0..parties.0.len()).filter(|to| *to != from && to / side == from / side);
        for to in mates {
            if let Some(seen) = parties.wrong(from, parties.0[to].1, &[parties.name(to)])? {
                return Ok(FunctionalCheck::failed(seen));
            }
            frames += 1;
        }
    }
    // What nobody on the device has goes to its wire alone, as does what a party of the other device has. What came from the wire goes
    // nowhere: the host's own device, which is on it, may still hear it.
    let mut unknown = 0;
    for from in 0..parties.0.len() {
        let [host, wire] = [0, 1].map(|party| parties.name(from / side * side + party));
        let elsewhere = (0..parties.0.len()).filter(|to| to / side != from / side);
        let addresses = elsewhere.map(|to| parties.0[to].1).chain([STRANGER]);
        for to in addresses {
            let wrong = if from % side == 1 {
                parties.wrong_but(from, to, &[], Some(host))?
            } else {
                parties.wrong(from, to, &[wire])?
            };
            if let Some(seen) = wrong {
                return Ok(FunctionalCheck::failed(seen));
            }
            unknown += 1;
        }
    }
    Ok(FunctionalCheck::passed(format!(
        "each of {frames} frames among host, wire and guests of two devices reached its owner alone; of {unknown} to addresses of the other device or of nobody, the wire alone had those that did not come from it, and none crossed between devices"
    )))
}
