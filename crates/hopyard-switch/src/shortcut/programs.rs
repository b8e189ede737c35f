//! Loading the programs of the shortcut and attaching them to a control group.

use std::fs::File;
use std::os::fd::AsFd;
use std::path::Path;

use aya::programs::links::FdLink;
use aya::programs::{CgroupAttachMode, SchedClassifier, SkMsg, SockOps, TestRun, TestRunOptions};
use aya::{Ebpf, EbpfLoader, include_bytes_aligned};
use hopyard_net::attach_message_program;

use super::layout::GuestSeen;
use crate::error::{Error, Result};
use crate::kernel_function;
use crate::shortcut_files::{OWN, SOCKETS};

static OBJECT: &[u8] = include_bytes_aligned!(concat!(env!("OUT_DIR"), "/shortcut.bpf.o"));

/// Maps of the switch that the shortcut reads.
pub(crate) const PORTS: &str = "ports";
pub(crate) const STATIONS: &str = "stations";

/// The program that the loader runs for each port.
const GUEST: &str = "hopyard_guest";
const JOINS: &str = "hopyard_joins";
const MESSAGE: &str = "hopyard_message";

/// Loads all, with the maps pinned in a switch's directory, made there if they are missing; `None`: with maps of their
/// own that end with the value.
pub(crate) fn load(directory: Option<&Path>) -> Result<Ebpf> {
    let object = kernel_function::linked(OBJECT)?;
    let mut loader = EbpfLoader::new();
    if let Some(directory) = directory {
        for map in OWN.into_iter().chain([PORTS, STATIONS]) {
            loader.map_pin_path(map, directory.join(map));
        }
    }
    let mut object = loader
        .load(&object)
        .map_err(Error::bpf("load the maps of the shortcut"))?;
    program::<SchedClassifier>(&mut object, GUEST)?
        .load()
        .map_err(failed(GUEST))?;
    program::<SockOps>(&mut object, JOINS)?
        .load()
        .map_err(failed(JOINS))?;
    // The map stays in the object: without a descriptor or a pin of it the kernel takes its programs off.
    let sockets = object.map(SOCKETS).ok_or_else(|| built_wrongly(SOCKETS))?;
    let sockets = aya::maps::SockHash::<_, u64>::try_from(sockets)
        .map_err(Error::bpf(format!("open the map {SOCKETS}")))?
        .fd()
        .as_fd()
        .try_clone_to_owned()
        .map_err(Error::bpf(format!("open the map {SOCKETS} once more")))?;
    let message: &mut SkMsg = program(&mut object, MESSAGE)?;
    message.load().map_err(failed(MESSAGE))?;
    // It goes with its map; a link of aya's would take it off when it is dropped, or keep two descriptors for good.
    let attached = message.fd().map_err(failed(MESSAGE))?;
    attach_message_program(attached, &sockets)?;
    Ok(object)
}

fn failed<E>(program: &str) -> impl FnOnce(E) -> Error + use<E>
where
    E: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    Error::bpf(format!("load the program {program}"))
}

fn built_wrongly(name: &str) -> Error {
    Error::invalid(
        format!("load {name} of the shortcut"),
        "it is not in the object: built wrongly",
    )
}

fn program<'a, P>(object: &'a mut Ebpf, name: &str) -> Result<&'a mut P>
where
    &'a mut P: TryFrom<&'a mut aya::programs::Program>,
    <&'a mut P as TryFrom<&'a mut aya::programs::Program>>::Error:
        std::error::Error + Send + Sync + 'static,
{
    let program = object
        .program_mut(name)
        .ok_or_else(|| built_wrongly(name))?;
    program
        .try_into()
        .map_err(Error::bpf(format!("load the program {name}")))
}

/// Attaches what sees sockets to a control group. Ends with the value, unless it is pinned.
pub(crate) fn attach(object: &mut Ebpf, cgroup: &File, path: &Path) -> Result<FdLink> {
    let what = || format!("attach the shortcut to control group {}", path.display());
    let joins: &mut SockOps = program(object, JOINS)?;
    let id = joins
        // A link leaves room for others as it is, and takes no flag for it.
        .attach(cgroup, CgroupAttachMode::Single)
        .map_err(Error::bpf(what()))?;
    let joins = joins.take_link(id).map_err(Error::bpf(what()))?;
    joins.try_into().map_err(Error::bpf(what()))
}

/// Pins the program that knows guests.
pub(crate) fn pin_guest(object: &mut Ebpf, file: &Path) -> Result<()> {
    program::<SchedClassifier>(object, GUEST)?
        .pin(file)
        .map_err(failed(GUEST))
}

/// The other end of a pair of which one end is in the calling thread's namespace; `None`: not to be told.
pub(crate) fn guest_of(object: &mut Ebpf, index: u32) -> Result<Option<GuestSeen>> {
    seen(program(object, GUEST)?, index)
}

/// As [`guest_of`], by the pinned program.
pub(crate) fn guest_by_pin(file: &Path, index: u32) -> Result<Option<GuestSeen>> {
    let program = SchedClassifier::from_pin(file).map_err(failed(GUEST))?;
    seen(&program, index)
}

fn seen(program: &SchedClassifier, index: u32) -> Result<Option<GuestSeen>> {
    // `ifindex` of `struct __sk_buff`.
    const IFINDEX: usize = 40;
    let mut context = [0; IFINDEX + 4];
    context[IFINDEX..].copy_from_slice(&index.to_ne_bytes());
    let mut frame = [0; 60];
    let result = program
        .test_run(TestRunOptions {
            data_in: Some(&[0; 60]),
            data_out: Some(&mut frame),
            ctx_in: Some(&context),
            ..TestRunOptions::new()
        })
        .map_err(Error::bpf(format!("look behind device {index}")))?;
    if result.return_value != 0 {
        return Ok(None);
    }
    let (netns, rest) = frame.split_at(8);
    let (address, rest) = rest.split_at(8);
    let number = |octets: &[u8]| octets.iter().rev().fold(0, |n, o| n << 8 | u64::from(*o));
    Ok(Some(GuestSeen {
        netns: number(netns),
        address: number(address),
        ifindex: u32::try_from(number(&rest[..4])).unwrap_or_default(),
        unused: 0,
    }))
}
