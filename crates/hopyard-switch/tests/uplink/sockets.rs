//! ND8 and ND11: host, guests and wire reach each other by plain sockets, with a device for each guest
//! and no other.

use std::io::{ErrorKind, Read, Write};
use std::net::{IpAddr, TcpListener, TcpStream};
use std::time::{Duration, Instant};

use hopyard_net::Handle;

use crate::site::{FAR, HOST, Site, guest, v4, v6};

const PATIENCE: Duration = Duration::from_secs(10);

/// The next connection; none within the time is a failure.
fn accept(listener: &TcpListener) -> TcpStream {
    let end = Instant::now() + PATIENCE;
    listener.set_nonblocking(true).unwrap();
    loop {
        match listener.accept() {
            Ok((stream, _)) => {
                stream.set_nonblocking(false).unwrap();
                stream.set_read_timeout(Some(PATIENCE)).unwrap();
                return stream;
            }
            Err(error) => assert_eq!(error.kind(), ErrorKind::WouldBlock),
        }
        assert!(Instant::now() < end, "nobody connected");
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// Connects two places; what is written to one stream comes out of the other.
#[track_caller]
pub(crate) fn connect(from: &Handle, to: &Handle, address: IpAddr) -> [TcpStream; 2] {
    let listener = to.ns().run(|| TcpListener::bind((address, 0))).unwrap();
    let listener = listener.unwrap();
    let there = listener.local_addr().unwrap();
    let stream = from
        .ns()
        .run(|| TcpStream::connect_timeout(&there, PATIENCE));
    let stream = stream.unwrap().unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    [stream, accept(&listener)]
}

/// Connects, sends `size` bytes and gets them all back.
#[track_caller]
pub(crate) fn exchange(from: &Handle, to: &Handle, address: IpAddr, size: usize) {
    let [mut near, mut far] = connect(from, to, address);
    let message: Vec<u8> = (0..size).map(|n| n as u8).collect();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut all = vec![0; size];
            far.read_exact(&mut all).unwrap();
            far.write_all(&all).unwrap();
        });
        near.write_all(&message).unwrap();
        let mut back = vec![0; size];
        near.read_exact(&mut back).unwrap();
        assert!(back == message, "something else came back");
    });
}

#[test]
fn host_guests_and_wire_reach_each_other_without_another_device() {
    all_reach_each_other(&Site::new("sockets", 2));
}

#[test]
fn so_they_do_where_the_programs_are_classifiers() {
    all_reach_each_other(&Site::with_classifiers("sockets", 2));
}

fn all_reach_each_other(site: &Site) {
    let names = |handle: &Handle| -> Vec<String> {
        let links = handle.links().unwrap();
        links.into_iter().map(|link| link.name).collect()
    };
    site.connect(false, |_, _| {});
    assert_eq!(names(&site.hub), ["lo", "up0", "p0", "p1"]);
    let parties = [
        (&site.hub, HOST),
        (&site.far, FAR),
        (&site.guests[0], guest(0)),
        (&site.guests[1], guest(1)),
    ];
    for (from, this) in parties {
        for (to, that) in parties.into_iter().filter(|(_, that)| *that != this) {
            exchange(from, to, v4(that), 1000);
            exchange(from, to, v6(that).into(), 100_000);
        }
    }
    for party in ["p0", "p1", "wire", "host"] {
        assert_eq!(site.drops(party), [], "{party}");
    }
}
