use std::net::{TcpListener, TcpStream};
use std::os::fd::AsFd;

use super::*;

fn pair() -> (TcpStream, TcpStream) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    (client, listener.accept().unwrap().0)
}

fn next(ring: &mut Ring) -> Done {
    ring.wait(Some(Duration::from_secs(5))).unwrap();
    ring.done().expect("an answer within 5 s")
}

fn ask(
    ring: &mut Ring,
    call: Call,
    socket: &TcpStream,
    [tag, area, bytes]: [usize; 3],
) -> io::Result<()> {
    ring.ask(&request(call, socket, [tag, area, bytes]))
}

fn request(call: Call, socket: &TcpStream, [tag, area, bytes]: [usize; 3]) -> Request<'_> {
    Request {
        tag,
        call,
        fd: socket.as_fd(),
        area,
        part: 0..bytes,
    }
}

#[test]
fn what_is_sent_from_one_area_is_received_into_another() {
    let (client, server) = pair();
    let mut ring = Ring::new(3, &[6, 100], 7).unwrap();
    ask(&mut ring, Call::Receive, &server, [0, 1, 100]).unwrap();
    ask(&mut ring, Call::Send, &client, [1, 0, 6]).unwrap();
    // Both are the kernel's until it says what became of them.
    assert!(ring.area(0).is_none() && ring.area(1).is_none());
    assert!(ask(&mut ring, Call::Send, &client, [1, 0, 6]).is_err());
    assert!(ask(&mut ring, Call::Receive, &client, [2, 0, 6]).is_err());
    assert!(ask(&mut ring, Call::Receive, &client, [2, 1, 6]).is_err());
    for _ in 0..2 {
        assert!(matches!(next(&mut ring).outcome, Outcome::Went(6)));
    }
    assert_eq!(ring.held(), 0);
    assert_eq!(&ring.area(1).unwrap()[..7], [7; 7]);
    for wrong in [[0, 0, 7], [0, 2, 1], [3, 0, 1]] {
        assert!(ask(&mut ring, Call::Send, &client, wrong).is_err());
    }
    // Sends may share an area.
    for tag in 0..3 {
        ask(&mut ring, Call::Send, &client, [tag, 0, 6]).unwrap();
    }
    for _ in 0..3 {
        assert!(matches!(next(&mut ring).outcome, Outcome::Went(6)));
    }
    assert!(ring.area(0).is_some());
}

#[test]
fn a_receive_that_follows_a_send_speaks_for_both() {
    let (client, server) = pair();
    let mut ring = Ring::new(4, &[6, 100, 6, 100], 7).unwrap();
    ask(&mut ring, Call::Receive, &server, [2, 3, 100]).unwrap();
    let first = request(Call::Send, &client, [0, 0, 6]);
    ring.ask_both(&first, &request(Call::Receive, &client, [1, 1, 100]))
        .unwrap();
    assert_eq!(next(&mut ring).tag, 2);
    assert_eq!(ring.held(), 2);
    ask(&mut ring, Call::Send, &server, [3, 2, 4]).unwrap();
    let mut told = Vec::new();
    while ring.held() > 0 {
        let done = next(&mut ring);
        told.push((done.tag, done.before));
    }
    told.sort_unstable();
    assert_eq!(told, [(1, Some(0)), (3, None)]);
    // A send that fails says so itself, and for the receive that does not begin.
    drop(server);
    client.shutdown(std::net::Shutdown::Both).unwrap();
    ring.ask_both(&first, &request(Call::Receive, &client, [1, 1, 100]))
        .unwrap();
    let failed = next(&mut ring);
    assert!(matches!(failed.outcome, Outcome::Failed(_)), "{failed:?}");
    assert_eq!((failed.tag, failed.before, ring.held()), (0, None, 0));
    assert!(ring.area(0).is_some() && ring.area(1).is_some());
}

#[test]
fn a_zero_copy_send_over_loopback_is_copied() {
    let (client, server) = pair();
    let mut ring = Ring::new(2, &[8192, 8192], 1).unwrap();
    ring.require_zero_copy().unwrap();
    ask(&mut ring, Call::SendZeroCopy, &client, [0, 0, 8192]).unwrap();
    let sent = next(&mut ring);
    assert!(matches!(sent.outcome, Outcome::Went(8192)) && sent.is_held);
    assert!(ring.area(0).is_none());
    ask(&mut ring, Call::Receive, &server, [1, 1, 8192]).unwrap();
    let mut copied = None;
    while ring.held() > 0 {
        if let Outcome::Released { copied: told } = next(&mut ring).outcome {
            copied = Some(told);
        }
    }
    assert_eq!(copied, Some(true));
}

#[test]
fn a_ring_ends_with_requests_that_nobody_answers() {
    let (client, server) = pair();
    let mut ring = Ring::new(3, &[100; 3], 0).unwrap();
    ask(&mut ring, Call::Receive, &server, [0, 0, 100]).unwrap();
    ask(&mut ring, Call::Receive, &client, [1, 1, 100]).unwrap();
    ring.wait(Some(Duration::from_millis(5))).unwrap();
    // One that the kernel has not been told.
    ask(&mut ring, Call::Receive, &client, [2, 2, 100]).unwrap();
    let began = Instant::now();
    drop(ring);
    assert!(began.elapsed() < PATIENCE);
}

#[test]
fn a_refusal_says_what_would_allow_it() {
    let refused = explained(io::Error::from_raw_os_error(libc::ENOSYS));
    assert!(refused.is_unsupported());
    assert!(refused.to_string().contains("io_uring"), "{refused}");
}
