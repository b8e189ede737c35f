//! Slows packets of one length by a known time, in every lab on this machine.
//!
//! The program of known cost (`bpf/burn.bpf.c`) is attached to the control group `hopyard/`, below which each lab of
//! any version of hopyard has a group for its programs. It recognizes packets by their length, so that of two cells
//! with different message sizes one is slow.

use std::fs::File;

use aya::maps::Array;
use aya::programs::{CgroupAttachMode, CgroupSkb, CgroupSkbAttachType};
use aya::{Ebpf, EbpfLoader, include_bytes_aligned};
use hopyard_net::Cgroup;

use crate::error::{Error, Result};

/// The compiled program.
static OBJECT: &[u8] = include_bytes_aligned!(concat!(env!("OUT_DIR"), "/burn.bpf.o"));
const PROGRAM: &str = "hopyard_slow";
/// Its global variables.
const ACCOUNT: &str = ".bss";

/// The attached program. Dropping it detaches it.
#[derive(Debug)]
pub(super) struct Slow {
    object: Ebpf,
    /// Keeps the directory `hopyard/` between labs.
    group: Cgroup,
}

impl Slow {
    /// Slows packets of `length` bytes, from the IP header on, by `burn_ns`.
    pub(super) fn attach(length: u32, burn_ns: u64) -> Result<Self> {
        let mut object = EbpfLoader::new()
            .override_global("burn_ns", &burn_ns, true)
            .override_global("slow_length", &length, true)
            .load(OBJECT)
            .map_err(Error::bpf("load the program of known cost"))?;
        let group = Cgroup::create(&format!("slow-{}", std::process::id()))?;
        let slow = |object: &mut Ebpf| -> Result<()> {
            let program: &mut CgroupSkb = object
                .program_mut(PROGRAM)
                .ok_or_else(missing)?
                .try_into()
                .map_err(Error::bpf("find the program of known cost"))?;
            program
                .load()
                .map_err(Error::bpf("load the program of known cost"))?;
            let home = File::open(group.path().with_file_name("")).map_err(|source| Error::Io {
                doing: "cannot open the control group of all labs",
                source,
            })?;
            let attached = program.attach(
                home,
                CgroupSkbAttachType::Egress,
                // A link coexists with others in any mode, and the kernel accepts only this one.
                CgroupAttachMode::Single,
            );
            attached.map_err(Error::bpf("attach the program of known cost"))?;
            Ok(())
        };
        match slow(&mut object) {
            Ok(()) => Ok(Self { object, group }),
            Err(error) => {
                // The first error is the one to report.
                let _ = group.remove();
                Err(error)
            }
        }
    }

    /// Time spent on each packet slowed so far, ns. An error if there was none, because then no cell was slow.
    pub(super) fn per_packet_ns(&self) -> Result<f64> {
        let map = self.object.map(ACCOUNT).ok_or_else(missing)?;
        let account: Array<_, [u64; 2]> = map
            .try_into()
            .map_err(Error::bpf("find the account of the program"))?;
        let [packets, ns] = account
            .get(&0, 0)
            .map_err(Error::bpf("read the account of the program"))?;
        if packets == 0 {
            return Err(Error::Program {
                program: "the program of known cost".to_owned(),
                what: "saw no packet to slow: do labs have control groups here?".to_owned(),
            });
        }
        Ok(ns as f64 / packets as f64)
    }
}

fn missing() -> Error {
    Error::Program {
        program: "the program of known cost".to_owned(),
        what: "is not in the object that was compiled".to_owned(),
    }
}

impl Drop for Slow {
    fn drop(&mut self) {
        // The links are removed with the object; labs may have removed the directory already.
        if let Err(error) = self.group.remove() {
            hopyard::note(format_args!("{}", hopyard::chain(&error)));
        }
    }
}
