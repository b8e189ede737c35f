//! A closed io_uring makes the thread that used it do work some 40 ms later (`io_ring_exit_work`,
//! `io_uring/io_uring.c`). The verifier returns `EAGAIN` on a thread with such work (`do_check`,
//! `kernel/bpf/verifier.c`). aya takes that for an error, also when it probes what the kernel can do.

use std::io;
use std::time::{Duration, Instant};

use hopyard_net::on_fresh_thread;

/// How often the kernel gives up verifying a program of 4000 instructions, tried for 60 ms.
fn broken_off() -> io::Result<usize> {
    let program = [vec![0xb7; 4000], vec![0x95]].concat();
    let began = Instant::now();
    let mut count = 0;
    while began.elapsed() < Duration::from_millis(60) {
        match load(&program) {
            Err(error) if error.raw_os_error() == Some(libc::EAGAIN) => count += 1,
            other => other?,
        }
    }
    Ok(count)
}

/// Loads a socket filter, and closes it.
fn load(instructions: &[u64]) -> io::Result<()> {
    let mut attr = [0_u64; 16];
    attr[0] = 1 | (instructions.len() as u64) << 32;
    attr[1] = instructions.as_ptr().expose_provenance() as u64;
    attr[2] = c"GPL".as_ptr().expose_provenance() as u64;
    // SAFETY: `attr` is longer than what the kernel reads of it, and everything it points to outlives the call.
    let fd = unsafe { libc::syscall(libc::SYS_bpf, 5, attr.as_ptr(), size_of_val(&attr)) };
    if fd < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the descriptor was just made and is not shared.
    unsafe { libc::close(fd as i32) };
    Ok(())
}

#[test]
fn what_asks_for_io_uring_does_not_break_off_the_verifier() {
    for _ in 0..10 {
        crate::switch::supported().unwrap();
        assert_eq!(broken_off().unwrap(), 0);
    }
}

#[test]
fn a_closed_ring_breaks_off_the_verifier_but_not_on_a_fresh_thread() {
    let close = || crate::ring::Ring::new(8, 4096).map(drop).unwrap();
    let disturbed = |_| {
        close();
        broken_off().unwrap()
    };
    let undisturbed = |_| {
        close();
        on_fresh_thread("fresh", broken_off).unwrap().unwrap()
    };
    assert!((0..10).map(disturbed).sum::<usize>() > 0);
    assert_eq!((0..10).map(undisturbed).sum::<usize>(), 0);
}
