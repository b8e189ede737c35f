//! Many namespaces at once.

use std::panic::resume_unwind;
use std::thread;

use crate::error::{Error, Result};
use crate::handle::Handle;
use crate::netns::leave_for_new;
use crate::{ipv6, sysctl};

/// More threads than this gain nothing: the kernel makes namespaces under one lock (`pernet_ops_rwsem`).
const MOST_THREADS: usize = 4;

impl Handle {
    /// Makes namespaces where IPv6 is quiet (see [`Handle::quiet_ipv6`]), these sysctls are set and the
    /// loopback device is up.
    ///
    /// A thread makes one after another and does everything while it is inside, so that a namespace costs
    /// no thread of its own, nor each of its settings.
    ///
    /// # Errors
    /// [`Error::Denied`] without `CAP_SYS_ADMIN`; [`Error::Kernel`] without room for more, or for a
    /// setting that the kernel refuses. None is left then.
    pub fn create_many(count: usize, sysctls: &[(&str, &str)]) -> Result<Vec<Self>> {
        let what = "create network namespaces";
        let cpus = thread::available_parallelism().map_or(1, usize::from);
        let each = count.div_ceil(cpus.min(MOST_THREADS)).max(1);
        thread::scope(|scope| {
            let mut threads = Vec::new();
            for begun in (0..count).step_by(each) {
                let some = move || create_some(each.min(count - begun), sysctls);
                let thread = thread::Builder::new()
                    .name("netns".into())
                    .spawn_scoped(scope, some)
                    .map_err(|error| Error::from_io(what, error))?;
                threads.push(thread);
            }
            let mut handles = Vec::with_capacity(count);
            for thread in threads {
                handles.extend(thread.join().unwrap_or_else(|panic| resume_unwind(panic))?);
            }
            Ok(handles)
        })
    }
}

fn create_some(count: usize, sysctls: &[(&str, &str)]) -> Result<Vec<Handle>> {
    let mut handles = Vec::with_capacity(count);
    for _ in 0..count {
        leave_for_new()?;
        ipv6::quiet_here()?;
        for (key, value) in sysctls {
            sysctl::set_here(key, value)?;
        }
        let handle = Handle::here()?;
        handle.set_up("lo")?;
        handles.push(handle);
    }
    Ok(handles)
}
