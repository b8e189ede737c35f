//! Who polls a device: softirqs, or kernel threads (`Documentation/networking/napi.rst`, "Threaded NAPI").

use std::fs;
use std::io;

use crate::error::{Error, Result};
use crate::exec::own_sys;
use crate::handle::Handle;

impl Handle {
    /// Has kernel threads poll a device, or softirqs. False where the device has no NAPI instance: then nothing is changed.
    ///
    /// # Errors
    /// [`Error::Missing`] if there is no device of that name; [`Error::Unsupported`] on kernels before 5.12;
    /// [`Error::Denied`] without `CAP_SYS_ADMIN` and `CAP_NET_ADMIN`.
    pub fn set_threaded_napi(&self, name: &str, threaded: bool) -> Result<bool> {
        let what = format!("choose who polls `{name}`");
        let text = if threaded { "1" } else { "0" };
        self.at_threaded(&what, name, |file| match fs::write(file, text) {
            Ok(()) => Ok(true),
            Err(error) if error.raw_os_error() == Some(libc::EOPNOTSUPP) => Ok(false),
            Err(error) => Err(explain(&what, error)),
        })
    }

    /// Do kernel threads poll a device?
    ///
    /// # Errors
    /// As [`Handle::set_threaded_napi`].
    pub fn threaded_napi(&self, name: &str) -> Result<bool> {
        let what = format!("read who polls `{name}`");
        self.at_threaded(&what, name, |file| match fs::read_to_string(file) {
            Ok(text) => Ok(text.trim() == "1"),
            Err(error) => Err(explain(&what, error)),
        })
    }

    /// Does something with a device's file `threaded` in `/sys` of its namespace.
    fn at_threaded(
        &self,
        what: &str,
        name: &str,
        with: impl Fn(&str) -> Result<bool> + Sync,
    ) -> Result<bool> {
        self.index_for(what, name)?;
        let file = format!("/sys/class/net/{name}/threaded");
        self.ns().run(|| {
            own_sys()?;
            with(&file)
        })?
    }
}

fn explain(what: &str, error: io::Error) -> Error {
    match error.kind() {
        io::ErrorKind::NotFound => Error::Unsupported {
            what: what.to_owned(),
            feature: "threaded NAPI".to_owned(),
            remedy: "use Linux 5.12 or newer".to_owned(),
        },
        _ => Error::from_io(what, error),
    }
}
