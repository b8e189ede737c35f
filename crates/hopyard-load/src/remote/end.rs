//! How a worker ends, by itself or with the value that stands for it.

use std::time::{Duration, Instant};

use hopyard_net::{is_ending, kill_group};

use super::words::Words;
use super::{Error, PROMPT, Remote};

impl Remote {
    /// How it ended, if it did.
    ///
    /// Its pipes and sockets close a moment before its end can be seen, so this waits for a moment, and for longer where it
    /// is on its way out.
    pub fn death(&mut self) -> Option<Error> {
        const MOMENT: Duration = Duration::from_millis(200);
        let began = Instant::now();
        while began.elapsed() < MOMENT || (began.elapsed() < PROMPT && is_ending(self.child.id())) {
            if let Ok(Some(how)) = self.child.try_wait() {
                return Some(Error::Died {
                    endpoint: self.endpoint.clone(),
                    doing: self.doing,
                    how,
                    said: self.words.as_ref().map(Words::last).unwrap_or_default(),
                });
            }
            std::thread::sleep(Duration::from_millis(2));
        }
        None
    }

    /// Why a stream of its is closed.
    pub(super) fn gone(&mut self, stream: &'static str) -> Error {
        self.death().unwrap_or_else(|| Error::Closed {
            endpoint: self.endpoint.clone(),
            stream,
            doing: self.doing,
        })
    }
}

impl Drop for Remote {
    fn drop(&mut self) {
        // Closing stdin ends a worker at once; one that is stopped or stuck is killed.
        self.dismiss();
        let deadline = Instant::now() + Duration::from_millis(500);
        while Instant::now() < deadline {
            match self.child.try_wait() {
                Ok(None) => std::thread::sleep(Duration::from_millis(1)),
                Ok(Some(_)) | Err(_) => return,
            }
        }
        // A command of the user may have started others, which are of its group where it leads one. It has not been waited
        // for, so no other process has its id.
        kill_group(self.child.id());
        // Fails only if it ended meanwhile; either way it is reaped below.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
