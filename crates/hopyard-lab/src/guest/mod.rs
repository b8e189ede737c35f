//! Guests: a kernel of one's own, booted by QEMU with hopyard as its only program.
//!
//! The guest's file system is made here, in memory ([`Initramfs`]); its first process is `hopyard init`
//! ([`init`]), which starts what speaks to the host over a virtio-serial port: a runner, which carries a
//! whole plan out inside (module `run::guest`), or a worker, for a guest that is an endpoint of a path.

mod error;
pub mod fetch;
mod init;
mod initramfs;
mod kernel;
mod kit;
mod machine;
mod memory;
mod modules;
mod packed;
mod programs;
mod qemu;
mod scratch;
mod vmlinux;
mod worker;

pub use error::{Error, LastWords, Result};
pub use init::{Interface, Job, main as init, refused_modules};
pub use initramfs::{Carried, Contents, Initramfs};
pub use kernel::Kernel;
pub(crate) use kit::{Kit, probe};
pub use kit::{choose_kernel, chosen_kernel, release_of_kernel};
pub use machine::Machine;
pub use qemu::Accelerator;
pub use qemu::{Guest, MEMORY_MIB, program as qemu_program};
pub(crate) use worker::{Backend, Bootable, WorkerGuest, has_vhost};

/// What `fuzz/` has of a kernel's modules: what one depends on, from the bytes of its file, which xz or zstd may have packed.
///
/// # Errors
/// It is no module.
#[cfg(fuzzing)]
pub fn module(file: &std::path::Path, bytes: Vec<u8>) -> Result<Vec<String>> {
    modules::read(file, bytes).map(|(_, depends)| depends)
}

/// Name of the port by which host and guest speak.
const PORT: &str = "hopyard";
