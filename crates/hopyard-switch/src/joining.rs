//! Giving a switch a shortcut, telling it of ports and their guests, and taking it away.

use std::fs::{self, File};
use std::os::linux::fs::MetadataExt;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf, absolute};

use aya::maps::{Array, HashMap, MapData, PerCpuArray, PerCpuValues};
use hopyard_net::Link;
use nix::sys::statfs::{CGROUP2_SUPER_MAGIC, statfs};

use crate::error::{Error, Result, unless_gone};
use crate::here::{Here, device_name, is_pair};
use crate::shortcut::layout::{GuestKey, PATH_LEN, SHORTCUT_VERSION, Settings};
use crate::shortcut::{
    Loss, NewShortcut, SHORTCUT_MAX_MESSAGE, SelfTest, Shortcut, ShortcutCounters, programs,
    remove, settings_map, sum_of, test_shortcut,
};
use crate::shortcut_files::{COUNTS, GUEST_FILE, GUESTS, LINK, LIVES};
use crate::state::pinned;
use crate::switch::Switch;

/// The control group of a directory, opened.
pub(crate) fn open_cgroup(what: &str, path: &Path) -> Result<File> {
    let shown = path.display();
    let file = File::open(path)
        .map_err(|error| Error::invalid(what, format!("control group `{shown}`: {error}")))?;
    if statfs(path).map(|fs| fs.filesystem_type()) != Ok(CGROUP2_SUPER_MAGIC) {
        let why =
            format!("`{shown}` is no directory of a cgroup2 mount (`mount -t cgroup2` lists them)");
        return Err(Error::invalid(what, why));
    }
    Ok(file)
}

impl Switch {
    /// Joins TCP connections between two ports whose sockets are both in a control group, from now on; instead of the
    /// shortcut there was. The self-test runs first, which takes a second or two. **Experimental.**
    ///
    /// # Errors
    /// The self-test fails, or finds something lost that is not accepted; no control group of version 2; the kernel refuses
    /// a program. The switch then has no shortcut.
    pub fn set_shortcut(&mut self, new: &NewShortcut<'_>) -> Result<()> {
        let what = format!("give switch `{}` a shortcut", self.name);
        let cgroup = open_cgroup(&what, new.cgroup)?;
        test_shortcut()?.check(&what, new.accept)?;
        self.start_shortcut(&what, &cgroup, new)
    }

    /// As [`Switch::set_shortcut`], for who has seen the outcome of a self-test on this kernel.
    ///
    /// # Errors
    /// As there.
    pub fn set_tested_shortcut(&mut self, new: &NewShortcut<'_>, test: &SelfTest) -> Result<()> {
        let what = format!("give switch `{}` a shortcut", self.name);
        let cgroup = open_cgroup(&what, new.cgroup)?;
        test.check(&what, new.accept)?;
        self.start_shortcut(&what, &cgroup, new)
    }

    /// Notes what else, or what no longer, joined sockets of the shortcut may lack. Connections stay joined.
    ///
    /// # Errors
    /// The self-test failed, or found something lost that is not accepted; the switch has no shortcut.
    pub fn accept_for_shortcut(&mut self, accept: &[Loss], test: &SelfTest) -> Result<()> {
        let what = format!("change the shortcut of switch `{}`", self.name);
        test.check(&what, accept)?;
        let _lock = self.lock()?;
        self.repair()?;
        if !self.has_shortcut() {
            return Err(Error::invalid(what, "it has none"));
        }
        let mut map = settings_map(&self.directory)?;
        let settings = map.get(&0, 0).map_err(Error::bpf(what.clone()))?;
        let accepted = Loss::to_bits(accept);
        map.set(
            0,
            Settings {
                accepted,
                ..settings
            },
            0,
        )
        .map_err(Error::bpf(what))
    }

    fn start_shortcut(&mut self, what: &str, cgroup: &File, new: &NewShortcut<'_>) -> Result<()> {
        let _lock = self.lock()?;
        self.repair()?;
        let here = self.here(what)?;
        remove(&self.directory)?;
        let made = self.make_shortcut(what, &here, cgroup, new);
        if made.is_err() {
            // The first problem is the one to report.
            let _ = remove(&self.directory);
        }
        made
    }

    fn make_shortcut(
        &self,
        what: &str,
        here: &Here,
        cgroup: &File,
        new: &NewShortcut<'_>,
    ) -> Result<()> {
        // Whoever looks at it may be elsewhere.
        let path = absolute(new.cgroup).map_err(|error| Error::invalid(what, error.to_string()))?;
        if path.as_os_str().len() >= PATH_LEN {
            let shown = path.display();
            let why = format!("the path `{shown}` is longer than {} octets", PATH_LEN - 1);
            return Err(Error::invalid(what, why));
        }
        let mut object = programs::load(Some(&self.directory))?;
        programs::pin_guest(&mut object, &self.directory.join(GUEST_FILE))?;
        let mut kept = [0; PATH_LEN];
        for (to, from) in kept.iter_mut().zip(path.as_os_str().as_bytes()) {
            *to = *from;
        }
        let inode = cgroup
            .metadata()
            .map(|data| data.st_ino())
            .unwrap_or_default();
        settings_map(&self.directory)?
            .set(
                0,
                Settings {
                    version: SHORTCUT_VERSION,
                    on: 1,
                    max_message: SHORTCUT_MAX_MESSAGE,
                    accepted: Loss::to_bits(new.accept),
                    cgroup: inode,
                    lives: 0,
                    path: kept,
                },
                0,
            )
            .map_err(Error::bpf("write the shortcut's settings"))?;
        for (slot, record) in self.state.ports()? {
            self.learn_guest_at(here, slot, record.device)?;
        }
        programs::attach(&mut object, cgroup, &path)?
            .pin(self.directory.join(LINK))
            .map_err(Error::bpf("keep the shortcut"))?;
        Ok(())
    }

    /// Ends the shortcut. Connections that stand go on by frames.
    ///
    /// # Errors
    /// Something of it cannot be removed.
    pub fn remove_shortcut(&mut self) -> Result<()> {
        let _lock = self.lock()?;
        self.repair()?;
        remove(&self.directory)
    }

    /// The shortcut, where the switch has one.
    ///
    /// # Errors
    /// The kernel's maps cannot be read.
    pub fn shortcut(&self) -> Result<Option<Shortcut>> {
        if !self.has_shortcut() {
            return Ok(None);
        }
        let settings = settings_map(&self.directory)?
            .get(&0, 0)
            .map_err(Error::bpf("read the shortcut's settings"))?;
        let path: Vec<u8> = settings
            .path
            .into_iter()
            .take_while(|octet| *octet != 0)
            .collect();
        let cgroup = PathBuf::from(std::ffi::OsString::from(
            String::from_utf8_lossy(&path).into_owned(),
        ));
        let has_cgroup = fs::metadata(&cgroup).is_ok_and(|data| data.st_ino() == settings.cgroup);
        Ok(Some(Shortcut {
            cgroup,
            has_cgroup,
            accepted: Loss::from_bits(settings.accepted),
        }))
    }

    pub(crate) fn has_shortcut(&self) -> bool {
        self.directory.join(LINK).exists()
    }

    /// As [`Switch::learn_guest`], by the index of the port's device, which may go at any time.
    fn learn_guest_at(&self, here: &Here, slot: u32, device: u32) -> Result<()> {
        let Some(name) = device_name(device) else {
            return Ok(());
        };
        let link = here.handle.link(&name).map_err(Error::from);
        match link.and_then(|link| self.learn_guest(here, slot, &link)) {
            Err(_) if device_name(device).is_none() => Ok(()),
            learned => learned,
        }
    }

    /// Lets the shortcut know whose sockets are behind a port. A device without a guest in another namespace has none, nor has one whose
    /// guest ends just now.
    pub(crate) fn learn_guest(&self, here: &Here, slot: u32, link: &Link) -> Result<()> {
        let file = self.directory.join(GUEST_FILE);
        if !file.exists() || !is_pair(link) || link.lower_ns.is_none() {
            return Ok(());
        }
        let peer = match here.handle.lower_of(link) {
            Err(hopyard_net::Error::Missing { .. }) => return Ok(()),
            peer => peer?,
        };
        let Some(seen) = programs::guest_by_pin(&file, link.index)? else {
            return Ok(());
        };
        // What was read from the kernel's memory must be what the kernel says.
        if peer.is_none_or(|peer| peer.index != seen.ifindex) {
            return Ok(());
        }
        let key = GuestKey {
            netns: seen.netns,
            ifindex: seen.ifindex,
            unused: 0,
        };
        let what = format!("write the guest of port record {slot}");
        let mut map = settings_map(&self.directory)?;
        let settings = map.get(&0, 0).map_err(Error::bpf(what.clone()))?;
        let lives = settings.lives + 1;
        map.set(0, Settings { lives, ..settings }, 0)
            .map_err(Error::bpf(what.clone()))?;
        self.lives()?
            .set(slot, lives, 0)
            .map_err(Error::bpf(what.clone()))?;
        self.guests()?
            .insert(key, slot, 0)
            .map_err(Error::bpf(what))
    }

    /// Takes away what the shortcut knows of a slot.
    pub(crate) fn forget_guest(&self, slot: u32) -> Result<()> {
        if !self.has_shortcut() {
            return Ok(());
        }
        let what = format!("remove the guest of port record {slot}");
        // From here on its connections go by frames, for good.
        self.lives()?
            .set(slot, 0, 0)
            .map_err(Error::bpf(what.clone()))?;
        let mut guests = self.guests()?;
        let of_slot: Vec<GuestKey> = guests
            .iter()
            .flatten()
            .filter(|(_, of)| *of == slot)
            .map(|(key, _)| key)
            .collect();
        for key in of_slot {
            unless_gone(guests.remove(&key)).map_err(Error::bpf(what.clone()))?;
        }
        let cpus = aya::util::nr_cpus().map_err(|(file, source)| Error::File {
            what: "read",
            path: PathBuf::from(file),
            source,
        })?;
        let what = format!("clear the shortcut's counters of slot {slot}");
        let zeros = PerCpuValues::try_from(vec![ShortcutCounters::default(); cpus])
            .map_err(Error::bpf(what.clone()))?;
        self.shortcut_counts()?
            .set(slot, zeros, 0)
            .map_err(Error::bpf(what))
    }

    fn guests(&self) -> Result<HashMap<MapData, GuestKey, u32>> {
        pinned(&self.directory, GUESTS)
    }

    fn lives(&self) -> Result<Array<MapData, u64>> {
        pinned(&self.directory, LIVES)
    }

    fn shortcut_counts(&self) -> Result<PerCpuArray<MapData, ShortcutCounters>> {
        pinned(&self.directory, COUNTS)
    }

    /// What of a slot's traffic went by the shortcut; `None`: there is none.
    pub(crate) fn shortcut_counters(&self, slot: u32) -> Result<Option<ShortcutCounters>> {
        if !self.has_shortcut() {
            return Ok(None);
        }
        Ok(Some(sum_of(&self.shortcut_counts()?, slot)?))
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use hopyard_net::{Handle, LinkKind, NetNs, NewLink};

    use super::*;
    use crate::layout::FIRST_PORT;
    use crate::{NewPort, NewSwitch};

    /// Needs root, as it makes a switch.
    #[test]
    fn a_guest_that_ends_just_then_is_none() {
        let name = format!("ends-{}", std::process::id());
        let (ns, guest) = (NetNs::create().unwrap(), NetNs::create().unwrap());
        let hub = Handle::new(&ns).unwrap();
        let kind = LinkKind::veth("eth0", Some(&guest));
        hub.add_link(&NewLink::new("p0", kind)).unwrap();
        let link = hub.link("p0").unwrap();
        ns.run(|| {
            let new = NewSwitch {
                name: &name,
                ..NewSwitch::default()
            };
            let mut switch = Switch::create(&new).unwrap();
            let port = NewPort {
                device: "p0",
                ..NewPort::default()
            };
            switch.add_port(&port).unwrap();
            let mut object = programs::load(Some(&switch.directory)).unwrap();
            let file = switch.directory.join(GUEST_FILE);
            programs::pin_guest(&mut object, &file).unwrap();
            let here = Here::new().unwrap();
            switch.learn_guest(&here, FIRST_PORT, &link).unwrap();
            assert_eq!(switch.guests().unwrap().keys().count(), 1);
            drop(guest);
            let end = Instant::now() + Duration::from_secs(30);
            while hub.link("p0").is_ok() {
                assert!(Instant::now() < end, "the device stays");
                std::thread::sleep(Duration::from_millis(1));
            }
            // Who looked the device up before that goes on with it.
            switch.learn_guest(&here, FIRST_PORT, &link).unwrap();
            switch
                .learn_guest_at(&here, FIRST_PORT, link.index)
                .unwrap();
            switch.delete().unwrap();
        })
        .unwrap();
    }
}
