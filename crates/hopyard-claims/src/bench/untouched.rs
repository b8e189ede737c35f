//! ND7, ND8 and ND10: what the direct switch leaves alone, and what it does not need.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use std::net::{SocketAddr, UdpSocket};

use hopyard_net::{Handle, Heard, Link, Monitor};
use hopyard_switch::Switch;

use super::site::{FAR, HOST, Site, guest, mac, reaches, v4};
use super::{FunctionalCheck, Result, socket};

/// How long switches come and go under traffic.
const SPAN: Duration = Duration::from_millis(1500);
/// Between two datagrams of a flow: below what fills a socket.
const PACE: Duration = Duration::from_micros(200);
const PORT: u16 = 9001;

/// One way of traffic: numbered datagrams, and what came of them.
struct Flow {
    from: UdpSocket,
    to: UdpSocket,
}

impl Flow {
    fn new(from: &Handle, to: &Handle, address: SocketAddr) -> Result<Self> {
        let what = "open a UDP socket in a namespace";
        let bind = |at: &Handle, port| -> Result<UdpSocket> {
            let socket_at = at.ns().run(|| UdpSocket::bind(("0.0.0.0", port)))?;
            socket_at.map_err(socket(what))
        };
        let (from, to) = (bind(from, 0)?, bind(to, address.port())?);
        from.connect(address).map_err(socket(what))?;
        to.set_read_timeout(Some(Duration::from_millis(300)))
            .map_err(socket(what))?;
        Ok(Self { from, to })
    }

    /// Sends until told to end; how many it sent.
    fn send(&self, going: &AtomicBool) -> u64 {
        let mut sent = 0_u64;
        while going.load(Ordering::Relaxed) {
            sent += u64::from(self.from.send(&sent.to_be_bytes()).is_ok());
            thread::sleep(PACE);
        }
        sent
    }

    /// Receives until nothing comes any more; how many came.
    fn receive(&self, going: &AtomicBool) -> u64 {
        let mut room = [0; 64];
        let mut received = 0;
        loop {
            match self.to.recv(&mut room) {
                Ok(_) => received += 1,
                Err(_) if !going.load(Ordering::Relaxed) => return received,
                Err(_) => {}
            }
        }
    }
}

/// The addresses and routes of the host, as the kernel lists them.
pub(super) fn configuration(site: &Site) -> Result<String> {
    let read = || {
        let files = ["fib_trie", "route", "if_inet6", "ipv6_route"];
        let texts: std::io::Result<Vec<String>> = files
            .iter()
            .map(|file| std::fs::read_to_string(format!("/proc/thread-self/net/{file}")))
            .collect();
        // Use counts of IPv6 routes move with traffic.
        let stable = |text: String| {
            text.lines()
                .map(|l| l.split_whitespace().take(4).collect::<Vec<_>>().join(" "))
                .collect::<Vec<_>>()
                .join("\n")
        };
        Ok(texts?
            .into_iter()
            .map(stable)
            .collect::<Vec<_>>()
            .join("\n"))
    };
    site.hub
        .ns()
        .run(read)?
        .map_err(socket("read addresses and routes"))
}

/// A switch comes, gets guests, loses them and goes. While it is there, the uplink takes all frames, as an adapter in hardware has to.
fn life(site: &Site) -> Result<()> {
    let uplink = &site.sides[0].uplink;
    site.create(0)?;
    site.hub.take_all_frames(uplink)?;
    site.bind(0, 0)?;
    site.bind(0, 1)?;
    let (switch, port) = (&site.sides[0].switch, site.sides[0].port(0));
    site.with_switch(switch, |switch| switch.remove_port(&port))?;
    site.hub.take_own_frames(uplink)?;
    site.hub.ns().run(|| Switch::open(switch)?.delete())??;
    Ok(())
}

/// Is it an announcement that a device takes all frames, or does no longer, and nothing else? It is no event of the link.
fn is_of_promiscuity_alone(heard: &Heard, known: &Link) -> bool {
    let usual = |link: &Link| {
        let mut link = link.clone();
        (link.promiscuous, link.takes_all) = (false, false);
        link
    };
    matches!(heard, Heard::Link(link) if usual(link) == usual(known))
}

/// Tells both ends of the uplink of each other, so that nothing waits for an answer.
fn acquaint(site: &Site) -> Result<()> {
    let side = &site.sides[0];
    let host = site.hub.link(&side.uplink)?.mac.unwrap_or_default();
    site.hub
        .add_neighbour(&side.uplink, v4(0, FAR), mac(0, FAR))?;
    side.far.add_neighbour("far0", v4(0, HOST), host)?;
    Ok(())
}

/// Switches come and go while the host talks over the uplink: no event of the link, no datagram lost, the same
/// addresses and routes.
pub(super) fn uplink_is_left_alone() -> Result<FunctionalCheck> {
    let site = Site::new(1, 2)?;
    site.hub.add_route(None, Some(v4(0, FAR)), None)?;
    acquaint(&site)?;
    let far = &site.sides[0].far;
    let flows = [
        Flow::new(&site.hub, far, (v4(0, FAR), PORT).into())?,
        Flow::new(far, &site.hub, (v4(0, HOST), PORT).into())?,
    ];
    let link = site.hub.link(&site.sides[0].uplink)?;
    let before = configuration(&site)?;
    let monitor = Monitor::open(site.hub.ns())?;
    let [sending, receiving] = [AtomicBool::new(true), AtomicBool::new(true)];
    let (lives, sent, received) = thread::scope(|scope| -> Result<_> {
        let receivers: Vec<_> = flows
            .iter()
            .map(|f| scope.spawn(|| f.receive(&receiving)))
            .collect();
        let senders: Vec<_> = flows
            .iter()
            .map(|f| scope.spawn(|| f.send(&sending)))
            .collect();
        let lives = lives(&site);
        let sum = |threads: Vec<thread::ScopedJoinHandle<'_, u64>>| -> u64 {
            threads.into_iter().map(|t| t.join().unwrap_or(0)).sum()
        };
        sending.store(false, Ordering::Relaxed);
        let sent = sum(senders);
        receiving.store(false, Ordering::Relaxed);
        Ok((lives?, sent, sum(receivers)))
    })?;
    let announced = monitor.heard();
    let is_event = |heard: &&Heard| !is_of_promiscuity_alone(heard, &link);
    let events = announced.iter().filter(is_event).count();
    let same = configuration(&site)? == before && site.hub.link(&site.sides[0].uplink)? == link;
    let kept = if same {
        "addresses, routes and flags stayed"
    } else {
        "addresses, routes or flags changed"
    };
    Ok(FunctionalCheck {
        passed: events == 0 && sent == received && sent > 0 && same,
        seen: format!(
            "while {lives} switches came and went, {} of {sent} datagrams over the uplink were lost, the kernel announced {events} changes of a device, an address or a route and {} times that the uplink takes all frames or no longer, and {kept}",
            sent.saturating_sub(received),
            announced.len() - events
        ),
    })
}

fn lives(site: &Site) -> Result<u32> {
    let end = Instant::now() + SPAN;
    let mut lives = 0;
    while Instant::now() < end || lives < 2 {
        life(site)?;
        lives += 1;
    }
    Ok(lives)
}

/// The host talks to guests and to the wire with nothing but the uplink and a pair for each guest.
pub(super) fn host_needs_no_pair() -> Result<FunctionalCheck> {
    let mut site = Site::new(1, 0)?;
    let bare = site.hub.links()?.len();
    site.create(0)?;
    let with_switch = site.hub.links()?.len();
    let guests = 3;
    for n in 0..guests {
        site.add_guest(0)?;
        site.bind(0, n)?;
    }
    let added = site.hub.links()?.len() - bare;
    let mut works = reaches(&site.hub, &site.sides[0].far, v4(0, FAR))?;
    for (n, own) in site.sides[0].guests.iter().enumerate() {
        works &= reaches(&site.hub, own, v4(0, guest(n)))? && reaches(own, &site.hub, v4(0, HOST))?;
    }
    let does = if works { "reaches" } else { "does not reach" };
    Ok(FunctionalCheck {
        passed: works && with_switch == bare && added == guests,
        seen: format!(
            "the host {does} wire and guests through the uplink itself; the switch added {} devices, {guests} guests {added}",
            with_switch - bare
        ),
    })
}

/// Guests on twelve physical devices, one switch for each.
pub(super) fn twelve_uplinks() -> Result<FunctionalCheck> {
    const DEVICES: u8 = 12;
    let site = Site::whole(DEVICES, 1)?;
    let mut served = 0;
    for side in &site.sides {
        let own = &side.guests[0];
        let works = reaches(own, &side.far, v4(side.net, FAR))?;
        served += u8::from(works);
    }
    Ok(FunctionalCheck {
        passed: served == DEVICES,
        seen: format!(
            "guests on {served} of {DEVICES} devices reach what is beyond theirs; the report's limit was 8"
        ),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// ND7: an uplink that goes down, or anything else than its promiscuity that changes, is an event.
    #[test]
    fn promiscuity_is_no_event_of_the_link() {
        let mut known = Link::default();
        (known.name, known.up, known.carrier) = ("up0".to_owned(), true, true);
        let changed = |change: &dyn Fn(&mut Link)| {
            let mut link = known.clone();
            change(&mut link);
            is_of_promiscuity_alone(&Heard::Link(Box::new(link)), &known)
        };
        assert!(changed(&|link| link.promiscuous = true));
        assert!(changed(&|link| {
            (link.promiscuous, link.takes_all) = (true, true);
        }));
        assert!(changed(&|_| ()), "back to what it was");
        assert!(!changed(&|link| link.up = false));
        assert!(!changed(
            &|link| (link.promiscuous, link.carrier) = (true, false)
        ));
        assert!(!changed(&|link| link.master = Some(4)));
        assert!(!changed(&|link| link.name = "p0-0".to_owned()));
        assert!(!is_of_promiscuity_alone(&Heard::Other, &known));
    }
}
