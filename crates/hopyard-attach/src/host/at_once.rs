//! Doing the same with many containers.

use std::sync::Barrier;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

/// So many containers that stay are made and removed side by side.
const AT_ONCE: usize = 16;

/// Does something with each, some side by side; the answers are in the order of the things.
pub(super) fn side_by_side<T: Sync, A: Send>(
    things: &[T],
    act: impl Fn(usize, &T) -> A + Sync,
) -> Vec<A> {
    let next = AtomicUsize::new(0);
    let work = || {
        let mut done = Vec::new();
        loop {
            let n = next.fetch_add(1, Ordering::Relaxed);
            let Some(thing) = things.get(n) else {
                return done;
            };
            done.push((n, act(n, thing)));
        }
    };
    let mut done: Vec<(usize, A)> = thread::scope(|scope| {
        let workers: Vec<_> = (0..AT_ONCE.min(things.len()))
            .map(|_| scope.spawn(work))
            .collect();
        let done = workers.into_iter().map(thread::ScopedJoinHandle::join);
        done.flat_map(|done| done.unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
            .collect()
    });
    done.sort_by_key(|(n, _)| *n);
    done.into_iter().map(|(_, answer)| answer).collect()
}

/// Does something so many times, all beginning together.
pub(super) fn at_once<A: Send>(count: usize, act: impl Fn(usize) -> A + Sync) -> Vec<A> {
    let all = Barrier::new(count);
    thread::scope(|scope| {
        let (all, act) = (&all, &act);
        let threads: Vec<_> = (0..count)
            .map(|n| {
                scope.spawn(move || {
                    all.wait();
                    act(n)
                })
            })
            .collect();
        let done = threads.into_iter().map(thread::ScopedJoinHandle::join);
        done.map(|done| done.unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
            .collect()
    })
}
