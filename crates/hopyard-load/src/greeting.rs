//! How the ends of a datagram flow find each other: before any traffic the client greets until the server has answered.

use std::collections::HashMap;
use std::io;
use std::net::SocketAddr;
use std::os::fd::AsRawFd;
use std::time::{Duration, Instant};

use hopyard_net::clock;
use nix::errno::Errno;
use nix::sys::epoll::{Epoll, EpollCreateFlags, EpollEvent, EpollFlags, EpollTimeout};
use nix::sys::socket::{MsgFlags, SockaddrStorage, recv, recvfrom};
use socket2::Socket;

/// Between two greetings of a flow that has not been answered.
pub(crate) const EVERY: Duration = Duration::from_millis(50);
/// Datagram of a flow before any traffic: tells the server whom to talk to.
const GREETING: &[u8] = b"hopyard?";
/// First datagram of a fresh socket that is timed and then closed: it is answered, and makes no flow.
const FIRST: &[u8] = b"hopyard1";
/// The answer to it; a flow of numbered datagrams also learns its number, four bytes, low byte first.
const ANSWER: &[u8; 8] = b"hopyard!";

/// Time from the first datagram of a connected socket to its answer, ns; `None` if there was none in the socket's time.
///
/// # Errors
/// As `send(2)` and `recv(2)`.
pub(crate) fn first_exchange(socket: &Socket) -> io::Result<Option<u64>> {
    let mut buffer = [0u8; 16];
    let sent_ns = clock::monotonic_ns();
    socket.send(FIRST)?;
    match receive(socket, &mut buffer) {
        Ok(_) => Ok(Some(clock::monotonic_ns() - sent_ns)),
        Err(e) if e.kind() == io::ErrorKind::WouldBlock => Ok(None),
        Err(e) => Err(e),
    }
}

/// Greets the server of a connected socket until it answers; the flow's number, where the server gives it one.
///
/// # Errors
/// There is no answer within `patience`, or the socket fails.
pub(crate) fn greet(socket: &Socket, patience: Duration) -> io::Result<Option<u32>> {
    let deadline = Instant::now() + patience;
    socket.set_read_timeout(Some(EVERY))?;
    let mut buffer = [0u8; 16];
    while Instant::now() < deadline {
        socket.send(GREETING)?;
        match receive(socket, &mut buffer) {
            Ok(n) if buffer[..n].starts_with(ANSWER) => {
                let number = buffer[ANSWER.len()..n].first_chunk();
                return Ok(number.map(|number| u32::from_le_bytes(*number)));
            }
            Ok(_) => {}
            Err(e) if e.kind() == io::ErrorKind::WouldBlock => {}
            Err(e) => return Err(e),
        }
    }
    Err(io::Error::new(
        io::ErrorKind::TimedOut,
        format!("nothing came back for {} ms", patience.as_millis()),
    ))
}

/// The clients of a server's socket, each with the answer to its greeting.
#[derive(Default)]
pub(crate) struct Greeted(HashMap<SocketAddr, Vec<u8>>);

impl Greeted {
    /// Takes the first greeting at each of these sockets, in whatever order they come, connects the socket to its client and
    /// answers. Clients connect their flows one after the other, and may greet once more or send first datagrams anywhere
    /// meanwhile: these are answered, too.
    ///
    /// # Errors
    /// A socket was shut down, or failed, before a client came.
    pub(crate) fn by_each(sockets: &[&Socket]) -> io::Result<Vec<Self>> {
        // A first exchange is timed: a call that waits for any socket would be a part of it.
        if let [socket] = sockets {
            return Ok(vec![Self::answering(socket, hear(socket)?)?]);
        }
        let epoll = Epoll::new(EpollCreateFlags::EPOLL_CLOEXEC)?;
        for (index, socket) in (0..).zip(sockets) {
            epoll.add(socket, EpollEvent::new(EpollFlags::EPOLLIN, index))?;
        }
        let mut greeted: Vec<Self> = sockets.iter().map(|_| Self::default()).collect();
        let mut left = sockets.len();
        while left > 0 {
            let index = wait_for_one(&epoll)?;
            let (socket, one) = (sockets[index], &mut greeted[index]);
            if !one.is_empty() {
                one.answer_again(socket)?;
            } else if let Some(from) = take(socket)? {
                *one = Self::answering(socket, from)?;
                left -= 1;
                // Its traffic may come before all are greeted, and is not read here: edge-triggered, it wakes this loop only once.
                let mut once =
                    EpollEvent::new(EpollFlags::EPOLLIN | EpollFlags::EPOLLET, index as u64);
                epoll.modify(socket, &mut once)?;
            }
        }
        Ok(greeted)
    }

    /// Connects a socket to its client and answers.
    fn answering(socket: &Socket, client: SocketAddr) -> io::Result<Self> {
        socket.connect(&client.into())?;
        socket.send(ANSWER)?;
        Ok(Self([(client, ANSWER.to_vec())].into()))
    }

    /// Answers greetings until so many clients have come, each with its number in the order of their coming.
    ///
    /// # Errors
    /// The socket was shut down, or failed, before all clients came.
    pub(crate) fn by_several(socket: &Socket, flows: u32) -> io::Result<Self> {
        let mut answers: HashMap<SocketAddr, Vec<u8>> = HashMap::new();
        while answers.len() < flows as usize {
            let from = hear(socket)?;
            let next = u32::try_from(answers.len()).unwrap_or(u32::MAX);
            let answer = answers
                .entry(from)
                .or_insert_with(|| [&ANSWER[..], &next.to_le_bytes()].concat());
            socket.send_to(answer, &from.into())?;
        }
        Ok(Self(answers))
    }

    /// Is there no client to be answered?
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Answers clients that greet once more because their answer was lost; were there any? Traffic stays where it is.
    ///
    /// # Errors
    /// The socket failed.
    pub(crate) fn answer_again(&self, socket: &Socket) -> io::Result<bool> {
        let mut is_any = false;
        while has_come(socket)? {
            if let Some(from) = take(socket)?
                && let Some(answer) = self.0.get(&from)
            {
                socket.send_to(answer, &from.into())?;
                is_any = true;
            }
        }
        Ok(is_any)
    }
}

/// Waits until there is something to take; which socket has it.
fn wait_for_one(epoll: &Epoll) -> io::Result<usize> {
    let mut events = [EpollEvent::empty()];
    loop {
        match epoll.wait(&mut events, EpollTimeout::NONE) {
            Ok(0) | Err(Errno::EINTR) => {}
            Ok(_) => return Ok(usize::try_from(events[0].data()).unwrap_or(usize::MAX)),
            Err(errno) => return Err(errno.into()),
        }
    }
}

/// Waits for a greeting; whom it comes from. First datagrams of other sockets are answered meanwhile.
fn hear(socket: &Socket) -> io::Result<SocketAddr> {
    loop {
        if let Some(from) = take(socket)? {
            return Ok(from);
        }
    }
}

/// Takes a datagram, and answers it if it is the first of another socket; of a greeting, whom it comes from.
fn take(socket: &Socket) -> io::Result<Option<SocketAddr>> {
    let mut buffer = [0u8; 16];
    let (n, from) = recvfrom::<SockaddrStorage>(socket.as_raw_fd(), &mut buffer)?;
    let Some(from) = from.as_ref().and_then(to_std) else {
        return Err(io::Error::new(
            io::ErrorKind::NotConnected,
            "the socket was shut down",
        ));
    };
    if &buffer[..n] == FIRST {
        socket.send_to(ANSWER, &from.into())?;
    }
    Ok((&buffer[..n] == GREETING).then_some(from))
}

/// Is the next datagram a greeting, or the first of another socket?
fn has_come(socket: &Socket) -> io::Result<bool> {
    let mut buffer = [0u8; 16];
    let look = MsgFlags::MSG_PEEK | MsgFlags::MSG_DONTWAIT;
    match recv(socket.as_raw_fd(), &mut buffer, look) {
        Ok(n) => Ok(buffer[..n] == *GREETING || buffer[..n] == *FIRST),
        Err(Errno::EAGAIN) => Ok(false),
        Err(errno) => Err(errno.into()),
    }
}

fn to_std(from: &SockaddrStorage) -> Option<SocketAddr> {
    if let Some(v4) = from.as_sockaddr_in() {
        return Some(SocketAddr::new(v4.ip().into(), v4.port()));
    }
    from.as_sockaddr_in6()
        .map(|v6| SocketAddr::new(v6.ip().into(), v6.port()))
}

fn receive(socket: &Socket, buffer: &mut [u8]) -> io::Result<usize> {
    Ok(recv(socket.as_raw_fd(), buffer, MsgFlags::empty())?)
}

#[cfg(test)]
mod tests {
    use std::net::UdpSocket;

    use nix::time::{ClockId, clock_gettime};

    use super::*;

    const SOON: Duration = Duration::from_secs(2);

    /// A server's socket, and clients connected to it.
    fn sockets<const N: usize>() -> (Socket, [UdpSocket; N]) {
        let server = UdpSocket::bind("127.0.0.1:0").unwrap();
        let clients = std::array::from_fn(|_| {
            let client = UdpSocket::bind("127.0.0.1:0").unwrap();
            client.connect(server.local_addr().unwrap()).unwrap();
            client.set_read_timeout(Some(SOON)).unwrap();
            client
        });
        (server.into(), clients)
    }

    fn by_one(server: &Socket) -> Greeted {
        Greeted::by_each(&[server]).unwrap().remove(0)
    }

    /// The next datagram.
    fn heard(client: &UdpSocket) -> Vec<u8> {
        let mut buffer = [0; 32];
        let n = client.recv(&mut buffer).unwrap();
        buffer[..n].to_vec()
    }

    #[test]
    fn a_client_that_greets_again_is_answered_again() {
        let (server, [client]) = sockets();
        client.send(GREETING).unwrap();
        let greeted = by_one(&server);
        assert_eq!(heard(&client), ANSWER);
        assert!(!greeted.answer_again(&server).unwrap());
        for _ in 0..2 {
            client.send(GREETING).unwrap();
            assert!(greeted.answer_again(&server).unwrap());
            assert_eq!(heard(&client), ANSWER);
        }
        client.send(b"traffic").unwrap();
        client.send(GREETING).unwrap();
        assert!(!greeted.answer_again(&server).unwrap());
        let mut buffer = [0; 16];
        let left = receive(&server, &mut buffer).unwrap();
        assert_eq!(&buffer[..left], b"traffic");
    }

    #[test]
    fn each_client_is_answered_by_its_own_number_again() {
        let (server, [one, other, stranger]) = sockets();
        for client in [&one, &other] {
            client.send(GREETING).unwrap();
        }
        let greeted = Greeted::by_several(&server, 2).unwrap();
        let answers = [&one, &other].map(heard);
        assert_eq!(answers, [*b"hopyard!\0\0\0\0", *b"hopyard!\x01\0\0\0"]);
        for client in [&stranger, &other, &one] {
            client.send(GREETING).unwrap();
        }
        assert!(greeted.answer_again(&server).unwrap());
        assert_eq!([&one, &other].map(heard), answers);
        stranger.set_nonblocking(true).unwrap();
        assert!(stranger.recv(&mut [0; 32]).is_err());
    }

    /// Ends the waits for greetings, also when a test fails.
    struct Ends<'a>([&'a Socket; 2]);

    impl Drop for Ends<'_> {
        fn drop(&mut self) {
            for socket in self.0 {
                let _ = socket.shutdown(std::net::Shutdown::Both);
            }
        }
    }

    #[test]
    fn sockets_of_one_thread_are_greeted_in_any_order() {
        let ((one, [to_one, fresh]), (other, [to_other])) = (sockets(), sockets());
        let greeted = std::thread::scope(|scope| {
            let greeted = scope.spawn(|| Greeted::by_each(&[&one, &other]).unwrap());
            let _ends = Ends([&one, &other]);
            to_other.send(FIRST).unwrap();
            assert_eq!(heard(&to_other), ANSWER);
            // As where the answer to the first greeting was lost.
            for _ in 0..2 {
                to_other.send(GREETING).unwrap();
                assert_eq!(heard(&to_other), ANSWER);
            }
            for (client, message) in [(&fresh, FIRST), (&to_one, GREETING)] {
                client.send(message).unwrap();
                assert_eq!(heard(client), ANSWER);
            }
            greeted.join().unwrap()
        });
        assert!(greeted.iter().all(|one| !one.is_empty()));
    }

    /// CPU time that the calling thread has used.
    fn cpu_time() -> Duration {
        clock_gettime(ClockId::CLOCK_THREAD_CPUTIME_ID)
            .unwrap()
            .into()
    }

    #[test]
    fn traffic_at_one_socket_keeps_no_cpu_busy_until_the_others_are_greeted() {
        let ((one, [to_one]), (other, [to_other])) = (sockets(), sockets());
        let used = std::thread::scope(|scope| {
            let waiting = scope.spawn(|| {
                let before = cpu_time();
                Greeted::by_each(&[&one, &other]).unwrap();
                cpu_time() - before
            });
            let _ends = Ends([&one, &other]);
            to_other.send(GREETING).unwrap();
            assert_eq!(heard(&to_other), ANSWER);
            to_other.send(b"traffic").unwrap();
            // Time enough to see whether it spins; one that does uses most of it.
            std::thread::sleep(Duration::from_millis(400));
            to_one.send(GREETING).unwrap();
            assert_eq!(heard(&to_one), ANSWER);
            waiting.join().unwrap()
        });
        assert!(used < Duration::from_millis(40), "{used:?}");
    }

    #[test]
    fn nobody_greets_a_socket_that_was_shut_down() {
        let (server, [client]) = sockets();
        client.send(GREETING).unwrap();
        let greeted = by_one(&server);
        server.shutdown(std::net::Shutdown::Both).unwrap();
        assert!(!greeted.answer_again(&server).unwrap());
    }
}
