//! An io_uring with memory of its own: sends and receives of sockets as requests, from and to areas of that memory.
//!
//! An area is the kernel's from a request to its answer, and nobody can change it meanwhile; several sends may share one. `io_uring(7)`,
//! Linux 6.1.

mod allowed;

use std::io;
use std::mem::ManuallyDrop;
use std::ops::Range;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::time::{Duration, Instant};

use io_uring::types::{CancelBuilder, Fd, SubmitArgs, Timespec};
use io_uring::{IoUring, Probe, cqueue, opcode, squeue};

use crate::error::{Error, Result};
use allowed::explained;
pub use allowed::probe;

/// Most requests that are told to the kernel at once.
const MOST_ENTRIES: usize = 4096;
/// `IORING_SEND_ZC_REPORT_USAGE` (`include/uapi/linux/io_uring.h`, Linux 6.2).
const REPORT_USAGE: u16 = 1 << 3;
/// `IORING_NOTIF_USAGE_ZC_COPIED` (the same).
const COPIED: u32 = 1 << 31;
/// How long requests may take to be cancelled before their memory is given up.
const PATIENCE: Duration = Duration::from_secs(1);

/// What the kernel is asked to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Call {
    /// `send`, of a stream all of it (`MSG_WAITALL`).
    Send,
    /// The same from the memory itself, without a copy where the path allows it (Linux 6.2).
    SendZeroCopy,
    /// `recv`.
    Receive,
    /// `write` to a file.
    Write,
    /// `read` from a file.
    Read,
}

/// A request: a call with a part of an area of memory.
#[derive(Debug, Clone)]
pub struct Request<'a> {
    /// Its number, below the ring's count of requests.
    pub tag: usize,
    /// The call.
    pub call: Call,
    /// The socket or file.
    pub fd: BorrowedFd<'a>,
    /// Which area.
    pub area: usize,
    /// Which part of it.
    pub part: Range<usize>,
}

/// What the kernel says of a request.
#[derive(Debug)]
pub struct Done {
    /// Its number.
    pub tag: usize,
    /// The request before it ([`Ring::ask_both`]), where that went, too; the kernel says nothing else of it.
    pub before: Option<usize>,
    /// What became of it.
    pub outcome: Outcome,
    /// Has the kernel its memory still? Of a zero-copy send, until [`Outcome::Released`].
    pub is_held: bool,
}

/// What became of a request.
#[derive(Debug)]
pub enum Outcome {
    /// So many bytes went.
    Went(usize),
    /// The call failed.
    Failed(io::Error),
    /// The kernel needs the memory of a zero-copy send no longer.
    Released {
        /// Had it copied the bytes all the same?
        copied: bool,
    },
}

/// An io_uring, to be used by the thread that made it.
pub struct Ring {
    ring: IoUring,
    /// All areas, one after the other; never moved or resized.
    memory: ManuallyDrop<Vec<u8>>,
    areas: Vec<Area>,
    /// By tag: what the kernel has.
    asked: Vec<Option<Asked>>,
    /// How many that are.
    held: usize,
}

struct Area {
    place: Range<usize>,
    /// Requests that read it.
    readers: usize,
    /// Does one write to it?
    is_written: bool,
}

#[derive(Clone, Copy)]
struct Asked {
    area: usize,
    writes: bool,
    /// The request that it waits for, ...
    before: Option<usize>,
    /// ... and the one that waits for it.
    after: Option<usize>,
}

impl Ring {
    /// A ring for so many requests at a time, with an area of each of these sizes, filled with this byte.
    ///
    /// # Errors
    /// [`Error::Unsupported`] where the kernel has or allows none; [`Error::Kernel`].
    pub fn new(requests: usize, areas: &[usize], fill: u8) -> Result<Self> {
        let entries = requests.next_power_of_two().clamp(8, MOST_ENTRIES);
        let ring = IoUring::builder()
            .setup_single_issuer()
            // What is done is heard of when it is asked for.
            .setup_defer_taskrun()
            .build(u32::try_from(entries).unwrap_or(u32::MAX))
            .map_err(explained)?;
        let mut places = Vec::with_capacity(areas.len());
        let mut end = 0;
        for size in areas {
            places.push(Area {
                place: end..end + size,
                readers: 0,
                is_written: false,
            });
            end += size;
        }
        Ok(Self {
            ring,
            memory: ManuallyDrop::new(vec![fill; end]),
            areas: places,
            asked: vec![None; requests],
            held: 0,
        })
    }

    /// Can zero-copy sends say whether the kernel copied?
    ///
    /// # Errors
    /// [`Error::Unsupported`] where there are none, or they cannot.
    pub fn require_zero_copy(&self) -> Result<()> {
        let what = "send without copies by io_uring";
        let mut known = Probe::new();
        self.ring
            .submitter()
            .register_probe(&mut known)
            .map_err(|error| Error::from_io(what, error))?;
        // The first of Linux 6.0, the second of 6.1; the report of 6.2 has no probe, and a send that asks for it fails there.
        if known.is_supported(opcode::SendZc::CODE) && known.is_supported(opcode::SendMsgZc::CODE) {
            return Ok(());
        }
        Err(Error::Unsupported {
            what: what.into(),
            feature: "IORING_OP_SEND_ZC".into(),
            remedy: "it takes Linux 6.2".into(),
        })
    }

    /// Is it one for so many requests, with areas of these sizes?
    #[must_use]
    pub fn is_for(&self, requests: usize, areas: &[usize]) -> bool {
        let sizes = self.areas.iter().map(|area| area.place.len());
        self.asked.len() == requests && sizes.eq(areas.iter().copied())
    }

    /// How many requests the kernel has.
    #[must_use]
    pub fn held(&self) -> usize {
        self.held
    }

    /// Has the kernel this request?
    #[inline]
    #[must_use]
    pub fn has(&self, tag: usize) -> bool {
        self.asked.get(tag).is_some_and(Option::is_some)
    }

    /// An area; `None` where there is no such, or a request has it.
    #[inline]
    pub fn area(&mut self, area: usize) -> Option<&mut [u8]> {
        let of = self.areas.get(area)?;
        let is_free = of.readers == 0 && !of.is_written;
        is_free.then(|| &mut self.memory[of.place.clone()])
    }

    /// Asks for a call; the kernel hears of it in [`Ring::wait`].
    ///
    /// # Errors
    /// `InvalidInput` where the kernel has a request of this number or that uses the area, or there is no such part.
    #[inline]
    pub fn ask(&mut self, request: &Request<'_>) -> io::Result<()> {
        let entry = self.entry(request, None)?;
        self.push(&entry)
    }

    /// Asks for a call, and for another one that begins when the first went. The kernel says nothing of the first unless it
    /// fails, and then nothing of the second, which does not begin (`req_set_fail`, `io_uring/io_uring.h`).
    ///
    /// # Errors
    /// As [`Ring::ask`].
    #[inline]
    pub fn ask_both(&mut self, first: &Request<'_>, second: &Request<'_>) -> io::Result<()> {
        let first_entry = self
            .entry(first, None)?
            .flags(squeue::Flags::IO_LINK | squeue::Flags::SKIP_SUCCESS);
        let second_entry = match self.entry(second, Some(first.tag)) {
            Ok(entry) => entry,
            Err(error) => {
                self.give_back(first.tag);
                return Err(error);
            }
        };
        if let Some(asked) = &mut self.asked[first.tag] {
            asked.after = Some(second.tag);
        }
        // A chain has to be told to the kernel in one call.
        let submission = self.ring.submission();
        if submission.capacity() - submission.len() < 2 {
            drop(submission);
            passing(self.ring.submit())?;
        } else {
            drop(submission);
        }
        self.push(&first_entry)?;
        self.push(&second_entry)
    }

    /// Marks the memory of a request as the kernel's, and describes it.
    fn entry(&mut self, request: &Request<'_>, before: Option<usize>) -> io::Result<squeue::Entry> {
        let writes = matches!(request.call, Call::Receive | Call::Read);
        let refused = |why: &str| io::Error::new(io::ErrorKind::InvalidInput, why.to_owned());
        if self.asked.get(request.tag).is_none_or(Option::is_some) {
            return Err(refused("no free request of that number"));
        }
        let area = self.areas.get_mut(request.area);
        let area = area.ok_or_else(|| refused("no such area"))?;
        if area.is_written || (writes && area.readers > 0) {
            return Err(refused("a request has that area"));
        }
        let memory = self.memory[area.place.clone()].get_mut(request.part.clone());
        let memory = memory.ok_or_else(|| refused("no such part of an area"))?;
        let bytes = u32::try_from(memory.len()).map_err(io::Error::other)?;
        let (fd, start) = (Fd(request.fd.as_raw_fd()), memory.as_mut_ptr());
        if writes {
            area.is_written = true;
        } else {
            area.readers += 1;
        }
        self.asked[request.tag] = Some(Asked {
            area: request.area,
            writes,
            before,
            after: None,
        });
        self.held += 1;
        let entry = match request.call {
            Call::Send => opcode::Send::new(fd, start, bytes)
                .flags(libc::MSG_WAITALL)
                .build(),
            Call::SendZeroCopy => opcode::SendZc::new(fd, start, bytes)
                .flags(libc::MSG_WAITALL)
                .zc_flags(REPORT_USAGE)
                .build(),
            Call::Receive => opcode::Recv::new(fd, start, bytes).build(),
            Call::Write => opcode::Write::new(fd, start, bytes).build(),
            Call::Read => opcode::Read::new(fd, start, bytes).build(),
        };
        Ok(entry.user_data(request.tag as u64))
    }

    fn push(&mut self, entry: &squeue::Entry) -> io::Result<()> {
        loop {
            // SAFETY: the memory of a request lies in an area that is marked as its own, is not freed before the kernel gave it
            // back (`drop`), and that nobody writes to until then (`area`, `entry`). The kernel keeps the file open by itself.
            if unsafe { self.ring.submission().push(entry) }.is_ok() {
                return Ok(());
            }
            // Full: what is in it goes first.
            passing(self.ring.submit())?;
        }
    }

    /// Tells the kernel what was asked for, and waits until something is done, or for so long.
    ///
    /// # Errors
    /// As `io_uring_enter(2)`; signals and the end of the time are none.
    #[inline]
    pub fn wait(&mut self, limit: Option<Duration>) -> io::Result<()> {
        let Some(limit) = limit else {
            return passing(self.ring.submit_and_wait(1));
        };
        let limit = Timespec::from(limit);
        let args = SubmitArgs::new().timespec(&limit);
        passing(self.ring.submitter().submit_with_args(1, &args))
    }

    /// The next of what is done.
    #[inline]
    pub fn done(&mut self) -> Option<Done> {
        let entry = self.ring.completion().next()?;
        let tag = usize::try_from(entry.user_data()).ok()?;
        let (result, flags) = (entry.result(), entry.flags());
        let outcome = if cqueue::notif(flags) {
            Outcome::Released {
                copied: result.cast_unsigned() & COPIED != 0,
            }
        } else {
            match usize::try_from(result) {
                Ok(bytes) => Outcome::Went(bytes),
                Err(_) => Outcome::Failed(io::Error::from_raw_os_error(-result)),
            }
        };
        let is_held = cqueue::more(flags);
        let asked = if is_held { None } else { self.give_back(tag) };
        if let Some(after) = asked.and_then(|asked| asked.after) {
            self.give_back(after);
        }
        let before = asked.and_then(|asked| asked.before);
        let before = before.filter(|before| self.give_back(*before).is_some());
        Some(Done {
            tag,
            before: before.filter(|_| result != -libc::ECANCELED),
            outcome,
            is_held,
        })
    }

    /// The kernel has a request no longer.
    fn give_back(&mut self, tag: usize) -> Option<Asked> {
        let asked = self.asked.get_mut(tag)?.take()?;
        let area = &mut self.areas[asked.area];
        if asked.writes {
            area.is_written = false;
        } else {
            area.readers -= 1;
        }
        self.held -= 1;
        Some(asked)
    }
}

impl Drop for Ring {
    fn drop(&mut self) {
        let until = Instant::now() + PATIENCE;
        while self.held > 0 && Instant::now() < until {
            // It fails where there is nothing to cancel, which the answers then say.
            let all = CancelBuilder::any();
            let _ = self.ring.submitter().register_sync_cancel(None, all);
            if self.wait(Some(Duration::from_millis(20))).is_err() {
                break;
            }
            while self.done().is_some() {}
        }
        if self.held == 0 {
            // SAFETY: the kernel has no request, and nobody uses the memory after this.
            unsafe { ManuallyDrop::drop(&mut self.memory) };
        }
    }
}

/// No failure: a signal, the end of the time, want of memory for a moment, or answers that wait to be taken.
fn passing(entered: io::Result<usize>) -> io::Result<()> {
    match entered {
        Err(error)
            if !matches!(
                error.raw_os_error(),
                Some(libc::EINTR | libc::ETIME | libc::EAGAIN | libc::EBUSY)
            ) =>
        {
            Err(error)
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests;
