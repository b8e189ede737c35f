//! DEL, and taking away what an attachment has: also for GC and for an ADD that fails.

use std::collections::BTreeMap;
use std::panic::resume_unwind;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::{self, ScopedJoinHandle};

use hopyard_net::{Error as NetError, Handle};
use hopyard_switch::switches_are_hidden;

use crate::call::Call;
use crate::error::{Error, Result, code};
use crate::ipam::{Ipam, Kind};
use crate::names::{self, SwitchName};
use crate::record::{Attachment, Entry, Record};
use crate::switch;

/// What is to go.
pub(crate) struct Leaving {
    pub(crate) attachment: Attachment,
    netns: PathBuf,
    device: String,
    switch: SwitchName,
    made: Made,
    /// The IPAM plugin, and the configuration and `CNI_ARGS` that it gets.
    ipam: Option<Kind>,
    conf: String,
    /// The same plugin by the configuration of the call, where ADD had another one.
    by_now: Option<(Kind, String)>,
    args: String,
    path: String,
}

/// Where ADD can have made a port, by the inode of the network namespace.
enum Made {
    /// ADD writes its record before.
    Nowhere,
    In(u64),
    Somewhere,
}

impl Made {
    fn by(record: Option<&Record>) -> Self {
        let Some(record) = record else {
            return Self::Nowhere;
        };
        match &record.entry {
            Some(entry) if entry.of_del => Self::Nowhere,
            Some(entry) => entry.home.map_or(Self::Somewhere, Self::In),
            None => Self::Somewhere,
        }
    }

    fn can_be_in(&self, netns: u64) -> bool {
        match self {
            Self::Nowhere => false,
            Self::In(home) => *home == netns,
            Self::Somewhere => true,
        }
    }
}

/// Takes the container of a call off the switch. What is gone already is fine.
pub(crate) fn del(call: &Call) -> Result<()> {
    let here = Handle::here()?;
    let attachment = call.attachment();
    loop {
        if let Some(record) = Record::of(&attachment)? {
            let leaving = Leaving::of_record(call, &attachment, Some(&record))?;
            return finish(detach(&here, &leaving, Some(&record)), Some(record));
        }
        // ADD refuses such a configuration before it makes anything.
        let Ok(leaving) = Leaving::of_record(call, &attachment, None) else {
            return Ok(());
        };
        // An ADD that begins meanwhile waits for this record. Where none can be written, ADD makes nothing.
        let own = match Record::create(&attachment, &leaving.entry(&here)?) {
            Ok(None) => continue,
            own => own.ok().flatten(),
        };
        let mut problems = detach(&here, &leaving, own.as_ref());
        problems.extend(own.and_then(|own| own.remove().err()));
        return Error::all(problems).map_or(Ok(()), Err);
    }
}

/// Removes the record where nothing is left that it names.
pub(crate) fn finish(mut problems: Vec<Error>, record: Option<Record>) -> Result<()> {
    if problems.is_empty()
        && let Some(record) = record
        && let Err(error) = record.remove()
    {
        problems.push(error);
    }
    Error::all(problems).map_or(Ok(()), Err)
}

/// The IPAM plugin and the configuration of a call, if it names the same plugin.
fn by_now(call: &Call, args: &str, recorded: &Kind) -> Option<(Kind, String)> {
    let kind = Kind::of(&call.conf, args, &call.path).ok()??;
    (kind.name == recorded.name).then(|| (kind, call.text.clone()))
}

impl Leaving {
    /// What the record names; without one, or without one that can be read, what the configuration of the call gives.
    pub(crate) fn of_record(
        call: &Call,
        attachment: &Attachment,
        record: Option<&Record>,
    ) -> Result<Self> {
        let entry = record.and_then(|record| record.entry.as_ref());
        let recorded = entry.and_then(|entry| entry.conf_with_result_of(&call.conf));
        let (conf, text) = match recorded {
            Some(conf) => (conf.clone(), conf.to_string()),
            None => (call.conf.clone(), call.text.clone()),
        };
        let (device, switch) = match entry {
            Some(entry) => {
                let switch = SwitchName {
                    name: entry.switch.clone(),
                    is_own: entry.own_switch,
                };
                (entry.device.clone(), switch)
            }
            None => (
                names::device(
                    &attachment.network,
                    &attachment.container,
                    &attachment.ifname,
                ),
                SwitchName::of(&call.conf, &attachment.network)?,
            ),
        };
        let args = entry.map_or(&call.args, |entry| &entry.args);
        let mut ipam = Kind::of(&conf, args, &call.path)?;
        if let Some(kind) = &mut ipam {
            // Whoever has reserved addresses, or was about to, frees them, whatever the key says by now: the program may not be there.
            kind.in_process |= entry.is_some_and(Entry::is_reserved_here);
        }
        let by_now = match &ipam {
            Some(kind) if conf != call.conf => by_now(call, args, kind),
            _ => None,
        };
        Ok(Self {
            attachment: attachment.clone(),
            netns: call.netns.clone(),
            device,
            switch,
            made: Made::by(record),
            ipam,
            conf: text,
            by_now,
            args: args.clone(),
            path: call.path.clone(),
        })
    }

    fn ipam<'a>(&'a self, kind: &'a Kind, conf: &'a str) -> Ipam<'a> {
        Ipam {
            kind,
            network: &self.attachment.network,
            path: &self.path,
            container: &self.attachment.container,
            netns: &self.netns,
            ifname: &self.attachment.ifname,
            args: &self.args,
            conf,
        }
    }

    /// What a record says of it.
    fn entry(&self, here: &Handle) -> Result<Entry> {
        Ok(Entry {
            device: self.device.clone(),
            switch: self.switch.name.clone(),
            own_switch: self.switch.is_own,
            home: Some(here.ns().inode()?),
            of_del: true,
            args: self.args.clone(),
            conf: self.conf.clone(),
            in_process: false,
            reserved: Vec::new(),
        })
    }

    /// Takes the device, which is about to be removed, off the switch. A switch of a namespace in which ADD made nothing has no such port.
    fn release_port(&self, here: &Handle) -> Result<()> {
        if let Made::In(home) = self.made
            && home != here.ns().inode()?
            && switches_are_hidden()
        {
            return Err(hidden_switches(&self.device, home));
        }
        let can_be_in = |netns| self.made.can_be_in(netns);
        switch::release_port(&self.switch.name, &self.device, can_be_in)
    }

    /// Has the IPAM plugin take back what it gave, if this is the time: one that tells a server so does it while the port is there, every
    /// other one when the port is gone.
    fn give_back(&self, has_port: bool, record: Option<&Record>) -> Result<()> {
        let kind = self.ipam.as_ref();
        let Some(kind) = kind.filter(|kind| kind.asks_on_the_wire() == has_port) else {
            return Ok(());
        };
        let ipam = self.ipam(kind, &self.conf);
        // Without a record, a plugin that cannot have reserved anything is not asked.
        if matches!(self.made, Made::Nowhere) && !ipam.can_have_reserved() {
            return Ok(());
        }
        match (ipam.del(record), &self.by_now) {
            // It may refuse what it was given for ADD. Then somebody may have corrected that since.
            (Err(mut error), Some((kind, conf))) if error.is_of_ipam => {
                self.ipam(kind, conf).del(record).map_err(|other| {
                    error.also(&other);
                    error
                })
            }
            (done, _) => done,
        }
    }
}

/// Nobody can say whether the switch is there. If it is, its port stays, and so do the addresses.
fn hidden_switches(device: &str, home: u64) -> Error {
    let msg = format!(
        "cannot take `{device}` off its switch: the container was added in network namespace net:[{home}], and here no BPF file system \
         is to be seen, in which the switches are (`ip netns exec` hides it): run the plugin where ADD ran"
    );
    Error::new(code::KERNEL, msg)
}

/// Takes away port, addresses, device and, after its last port, the switch. Goes on after errors, and gives all of them; but a port that stays
/// keeps its addresses.
pub(crate) fn detach(here: &Handle, leaving: &Leaving, record: Option<&Record>) -> Vec<Error> {
    let mut problems = Vec::new();
    problems.extend(leaving.give_back(true, record).err());
    // Before the device, whose number the kernel may give to another one, and before the addresses, which then may be given to others.
    let released = leaving.release_port(here);
    let is_released = released.is_ok();
    problems.extend(released.err());
    let (given_back, deleted) = thread::scope(|scope| {
        let give_back = || match is_released {
            true => leaving.give_back(false, record),
            false => Ok(()),
        };
        let given_back = scope.spawn(give_back);
        let deleted = delete_device(here, &leaving.device);
        let given_back = given_back.join();
        (
            given_back.unwrap_or_else(|panic| resume_unwind(panic)),
            deleted,
        )
    });
    let unused = switch::remove_unused(&leaving.switch);
    let done = [given_back, deleted, unused].into_iter();
    problems.extend(done.filter_map(Result::err));
    problems
}

fn delete_device(here: &Handle, device: &str) -> Result<()> {
    match here.delete_link_unawaited(device) {
        Err(NetError::Missing { .. }) => Ok(()),
        deleted => Ok(deleted?),
    }
}

/// Takes away several, with one wait for the kernel. Gives the errors of each.
pub(crate) fn detach_many(here: &Handle, leaving: &[(Leaving, Record)]) -> Vec<Vec<Error>> {
    let mut problems: Vec<Vec<Error>> = leaving.iter().map(|_| Vec::new()).collect();
    let mut are_released = Vec::with_capacity(leaving.len());
    for ((leaving, record), problems) in leaving.iter().zip(&mut problems) {
        problems.extend(leaving.give_back(true, Some(record)).err());
        let released = leaving.release_port(here);
        are_released.push(released.is_ok());
        problems.extend(released.err());
    }
    let next = AtomicUsize::new(0);
    let (given_back, deleted) = thread::scope(|scope| {
        let give_back = || {
            let mut done = Vec::new();
            loop {
                let at = next.fetch_add(1, Ordering::Relaxed);
                let Some((leaving, record)) = leaving.get(at) else {
                    return done;
                };
                if are_released[at] {
                    let given_back = leaving.give_back(false, Some(record));
                    done.push((leaving.device.as_str(), given_back));
                }
            }
        };
        let cpus = thread::available_parallelism().map_or(1, usize::from);
        let workers: Vec<_> = (0..cpus).map(|_| scope.spawn(give_back)).collect();
        let deleted = delete_devices(here, leaving);
        let done = workers.into_iter().map(ScopedJoinHandle::join);
        let done = done.flat_map(|done| done.unwrap_or_else(|panic| resume_unwind(panic)));
        (done.collect::<BTreeMap<_, _>>(), deleted)
    });
    let mut given_back = given_back;
    for (((leaving, _), problems), deleted) in leaving.iter().zip(&mut problems).zip(deleted) {
        let given_back = given_back.remove(leaving.device.as_str()).transpose();
        problems.extend(given_back.err());
        problems.extend(deleted.err());
        problems.extend(switch::remove_unused(&leaving.switch).err());
    }
    problems
}

fn delete_devices(here: &Handle, leaving: &[(Leaving, Record)]) -> Vec<Result<()>> {
    let devices: Vec<&str> = leaving.iter().map(|(one, _)| one.device.as_str()).collect();
    match here.delete_links(&devices) {
        Ok(()) => devices.iter().map(|_| Ok(())).collect(),
        // None is deleted then: each alone, to say which.
        Err(_) => devices.iter().map(|one| delete_device(here, one)).collect(),
    }
}

impl Call {
    pub(crate) fn attachment(&self) -> Attachment {
        Attachment {
            network: self.network.clone(),
            container: self.container.clone(),
            ifname: self.ifname.clone(),
        }
    }

    /// Which IPAM plugin this call names.
    pub(crate) fn ipam_kind(&self) -> Result<Option<Kind>> {
        Kind::of(&self.conf, &self.args, &self.path)
    }

    /// The IPAM plugin as this call runs it.
    pub(crate) fn ipam<'a>(&'a self, kind: &'a Kind) -> Ipam<'a> {
        Ipam {
            kind,
            network: &self.network,
            path: &self.path,
            container: &self.container,
            netns: Path::new(&self.netns),
            ifname: &self.ifname,
            args: &self.args,
            conf: &self.text,
        }
    }
}
