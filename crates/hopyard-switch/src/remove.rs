//! Removing switches.

use crate::bpffs::{check_name, directory, is_directory};
use crate::error::Result;
use crate::lock::Lock;
use crate::switch::{Switch, no_switch};
use crate::teardown::all;

impl Switch {
    /// Removes whatever there is under a name, whole or not, of whichever version; nothing is fine.
    ///
    /// # Errors
    /// Something cannot be removed.
    pub fn discard(name: &str) -> Result<()> {
        check_name("remove a switch", name)?;
        let Some(_lock) = Lock::at_home()? else {
            return Ok(());
        };
        all(&directory(name))
    }

    /// Removes the switch of a name, of whichever version. Its devices stay. From another namespace than the switch's a
    /// classifier stays as well, and drops what its device sends until that goes; that of another layout goes on forwarding.
    ///
    /// # Errors
    /// There is none of that name; something of it cannot be removed.
    pub fn remove(name: &str) -> Result<()> {
        check_name("remove a switch", name)?;
        let directory = directory(name);
        // Looked for first, because whoever takes the lock also removes a switch whose removal was interrupted.
        let was_there = is_directory(&directory);
        // Without privilege no switch can be seen. Taking the lock fails then, which is the error to report.
        let lock = Lock::at_home()?;
        if !was_there {
            return Err(no_switch(name));
        }
        let Some(_lock) = lock else {
            return Ok(());
        };
        all(&directory)
    }

    /// Removes this switch. Its devices stay.
    ///
    /// # Errors
    /// Something of it cannot be removed; asking again goes on from there.
    pub fn delete(self) -> Result<()> {
        let _lock = self.lock()?;
        all(&self.directory)
    }
}
