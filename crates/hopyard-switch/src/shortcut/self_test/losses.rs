//! What joined sockets may lack.

use std::io::{Read, Write};
use std::os::fd::{AsFd, AsRawFd};
use std::thread;
use std::time::Duration;

use hopyard_net::{allow_zerocopy, readable_bytes};
use nix::errno::Errno;
use nix::fcntl::{SpliceFFlags, splice};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::socket::{MsgFlags, recv, send, setsockopt, sockopt::TcpUlp};
use nix::unistd::pipe;

use super::checks::reset;
use super::{Bench, Checked, Loss, ensure, read_on, said};

/// Do joined sockets keep it?
type Keeps = fn(&Bench) -> Checked<bool>;

pub(super) const KEEPS: [(Loss, Keeps); 8] = [
    (Loss::Blocking, read_while_sending),
    (Loss::WaitAll, wait_all),
    (Loss::Splice, from_socket_to_pipe),
    (Loss::FionRead, fionread),
    (Loss::Urgent, urgent),
    (Loss::Reset, read_after_reset),
    (Loss::ZeroCopy, zerocopy),
    (Loss::KernelTls, has_no_kernel_tls),
];

const MESSAGE: [u8; 100] = [7; 100];

/// Lets the other end have what was sent. A joined socket has it at once.
fn settle() {
    thread::sleep(Duration::from_millis(20));
}

/// One thread waits for an answer while another sends more than there is room for. What is sent goes by frames by and by,
/// and the room that comes wakes both.
fn read_while_sending(bench: &Bench) -> Checked<bool> {
    const LONG: usize = 8 << 20;
    let (client, mut server) = bench.joined()?;
    let (mut reads, mut writes) = (&client, &client);
    thread::scope(|scope| {
        let reader = scope.spawn(move || reads.read_exact(&mut [0]));
        let writer = scope.spawn(move || writes.write_all(&vec![0; LONG]));
        settle();
        let mut buffer = vec![0; 1 << 20];
        let (mut left, mut for_nothing) = (LONG, 0);
        while left > 0 {
            let (n, woken) = read_on(&server, &mut buffer)?;
            ensure(n > 0, || format!("the stream ended {left} octets early"))?;
            left -= n;
            for_nothing += woken;
        }
        said("answer", server.write_all(b"y"))?;
        let sent = writer.join().map_err(|_| "the writer panicked")?;
        said("send", sent)?;
        let got = reader.join().map_err(|_| "the reader panicked")?;
        Ok(got.is_ok() && for_nothing == 0)
    })
}

/// One message, a while, another.
fn wait_all(bench: &Bench) -> Checked<bool> {
    let (mut client, server) = bench.joined()?;
    thread::scope(|scope| {
        let reader = scope.spawn(|| {
            let mut got = [0; 2 * MESSAGE.len()];
            recv(server.as_raw_fd(), &mut got, MsgFlags::MSG_WAITALL)
        });
        for _ in 0..2 {
            settle();
            said("send", client.write_all(&MESSAGE))?;
        }
        let got = reader.join().map_err(|_| "the reader panicked")?;
        Ok(got == Ok(2 * MESSAGE.len()))
    })
}

fn from_socket_to_pipe(bench: &Bench) -> Checked<bool> {
    let (mut client, server) = bench.joined()?;
    let (_out, into) = pipe().map_err(|errno| format!("pipe: {errno}"))?;
    said("send", client.write_all(&MESSAGE))?;
    settle();
    said("set a socket up", server.set_nonblocking(true))?;
    let flags = SpliceFFlags::SPLICE_F_NONBLOCK;
    let moved = splice(&server, None, &into, None, MESSAGE.len(), flags);
    Ok(moved == Ok(MESSAGE.len()))
}

fn fionread(bench: &Bench) -> Checked<bool> {
    let (mut client, server) = bench.joined()?;
    said("send", client.write_all(&MESSAGE))?;
    settle();
    let count = readable_bytes(&server).map_err(|error| error.to_string())?;
    Ok(count == MESSAGE.len())
}

/// An urgent byte is not among the others, and can be had by itself.
fn urgent(bench: &Bench) -> Checked<bool> {
    let (mut client, mut server) = bench.joined()?;
    send(client.as_raw_fd(), b"!", MsgFlags::MSG_OOB)
        .map_err(|errno| format!("send urgent data: {errno}"))?;
    said("send", client.write_all(&MESSAGE))?;
    settle();
    let mut byte = [0];
    let alone = recv(server.as_raw_fd(), &mut byte, MsgFlags::MSG_OOB);
    let mut first = [0];
    said("receive", server.read_exact(&mut first))?;
    Ok(alone == Ok(1) && byte == *b"!" && first[0] == MESSAGE[0])
}

fn read_after_reset(bench: &Bench) -> Checked<bool> {
    let (mut client, mut server) = bench.joined()?;
    said("send", client.write_all(&MESSAGE))?;
    settle();
    reset(client)?;
    settle();
    let mut got = [0; MESSAGE.len()];
    Ok(server.read_exact(&mut got).is_ok() && got == MESSAGE)
}

fn zerocopy(bench: &Bench) -> Checked<bool> {
    let (client, mut server) = bench.joined()?;
    allow_zerocopy(&client).map_err(|error| error.to_string())?;
    let zerocopy = MsgFlags::from_bits_retain(nix::libc::MSG_ZEROCOPY);
    send(client.as_raw_fd(), &MESSAGE, zerocopy)
        .map_err(|errno| format!("send without a copy: {errno}"))?;
    said("receive", server.read_exact(&mut [0; MESSAGE.len()]))?;
    // Errors are always waited for, and a notification is one.
    let mut polled = [PollFd::new(client.as_fd(), PollFlags::empty())];
    let ready = poll(&mut polled, PollTimeout::from(300_u16));
    Ok(ready == Ok(1))
}

/// Where the kernel has none, libraries go on in user space, and nothing is lost.
fn has_no_kernel_tls(bench: &Bench) -> Checked<bool> {
    let (client, _server) = bench.joined()?;
    match setsockopt(&client, TcpUlp::default(), b"tls") {
        Ok(()) => Ok(!bench.joins),
        Err(Errno::ENOENT) => Ok(true),
        Err(errno) => Err(format!("set TCP_ULP: {errno}")),
    }
}
