//! Writing to a program that may not read.

use std::io::{self, ErrorKind, Write};
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

use nix::fcntl::{FcntlArg, OFlag, fcntl};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

/// Whoever takes at least so many bytes a second is waited for.
const SLOWEST: u64 = 64 << 10;

/// Writes all of it to a pipe whose other end may take nothing more: `patience` long, and longer the more there is to write. The
/// pipe's own end does not block from then on.
///
/// # Errors
/// It cannot be written, or of kind [`ErrorKind::TimedOut`]: a part may be written then.
pub fn write_within(
    to: &mut (impl Write + AsFd),
    mut bytes: &[u8],
    patience: Duration,
) -> io::Result<()> {
    let flags = OFlag::from_bits_retain(fcntl(to.as_fd(), FcntlArg::F_GETFL)?);
    fcntl(to.as_fd(), FcntlArg::F_SETFL(flags | OFlag::O_NONBLOCK))?;
    let deadline = Instant::now() + patience + Duration::from_secs(bytes.len() as u64 / SLOWEST);
    while !bytes.is_empty() {
        match to.write(bytes) {
            Ok(0) => return Err(ErrorKind::WriteZero.into()),
            Ok(written) => bytes = &bytes[written..],
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) if error.kind() == ErrorKind::WouldBlock => wait(to, deadline)?,
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Waits until it takes something, or until a signal comes.
fn wait(to: &impl AsFd, deadline: Instant) -> io::Result<()> {
    let left = deadline.saturating_duration_since(Instant::now());
    if left.is_zero() {
        return Err(ErrorKind::TimedOut.into());
    }
    let mut fds = [PollFd::new(to.as_fd(), PollFlags::POLLOUT)];
    let left = PollTimeout::try_from(left).unwrap_or(PollTimeout::MAX);
    match poll(&mut fds, left) {
        Ok(_) | Err(nix::errno::Errno::EINTR) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read;
    use std::thread;

    use super::*;

    #[test]
    fn whoever_reads_gets_all_of_it_and_whoever_does_not_is_left() {
        let text = vec![7; 1 << 20];
        let (mut from, mut to) = io::pipe().unwrap();
        let reader = thread::spawn(move || {
            let mut read = Vec::new();
            from.read_to_end(&mut read).unwrap();
            read
        });
        write_within(&mut to, &text, Duration::from_secs(60)).unwrap();
        drop(to);
        assert_eq!(reader.join().unwrap(), text);

        let (from, mut to) = io::pipe().unwrap();
        let began = Instant::now();
        // Less than a second's worth, and more than a pipe holds after the first.
        let short = &text[..60 << 10];
        write_within(&mut to, short, Duration::ZERO).unwrap();
        let error = write_within(&mut to, short, Duration::from_millis(100)).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::TimedOut);
        assert!(began.elapsed() >= Duration::from_millis(100));
        drop(from);
        let error = write_within(&mut to, short, Duration::ZERO).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::BrokenPipe);
    }
}
