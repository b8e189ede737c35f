//! What programs ask that attach a guest and end: one lock, and no look at ports that are no concern of theirs.

use crate::bpffs::{Lock, check_name, directory, is_directory};
use crate::error::Result;
use crate::port::NewPort;
use crate::state::{Stage, State, stage};
use crate::switch::{Switch, no_switch};

impl Switch {
    /// Binds a device to the switch of a name as a port, as [`Switch::open`] and [`Switch::add_port`] do.
    ///
    /// # Errors
    /// Theirs.
    pub fn add_port_to(name: &str, new: &NewPort<'_>) -> Result<()> {
        let lock = Self::locked(name)?;
        let (mut switch, lock) = lock.ok_or_else(|| no_switch(name))?;
        switch.add_under(&lock, std::slice::from_ref(new))
    }

    /// The switch of a name under the lock, as it is; `None`: there is none that is whole.
    pub(crate) fn locked(name: &str) -> Result<Option<(Self, Lock)>> {
        check_name("find a switch", name)?;
        let directory = directory(name);
        let Some(lock) = Lock::at_home()?.filter(|_| is_directory(&directory)) else {
            return Ok(None);
        };
        match stage(&directory)? {
            Stage::Unfinished => return Ok(None),
            found => found.check_layout(name)?,
        }
        let switch = Self {
            name: name.to_owned(),
            state: State::open(&directory)?,
            directory,
            forgotten: Vec::new(),
        };
        Ok(Some((switch, lock)))
    }
}
