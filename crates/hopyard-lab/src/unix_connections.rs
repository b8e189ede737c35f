//! Where a lab's server listens, and what the kernel says of connections between Unix sockets.

use std::path::Path;

use hopyard_net::unix_sockets;

use super::topology::Topology;
use super::{Lab, Result};
use crate::load::{Place, Sockets};
use crate::model::Axes;

impl Lab {
    /// Where the load's server listens: at its address, or in the directory.
    #[must_use]
    pub fn server_place(&self, axes: &Axes) -> Place {
        match self.builder.sockets_in() {
            Some(directory) if self.path.sockets != Sockets::Internet => {
                Place::Directory(directory)
            }
            Some(_) | None => Place::Address(self.topology.server.addresses.of(axes.family)),
        }
    }

    /// How many connections there are in the directory, as the kernel lists them; `None` where sockets have addresses.
    ///
    /// A connection is in the namespace of who asked for it, and its server's end has the name of the socket that it asked.
    ///
    /// # Errors
    /// The kernel's list cannot be read.
    pub fn unix_connections(&self) -> Result<Option<u64>> {
        let Some(directory) = self.builder.sockets_in() else {
            return Ok(None);
        };
        let Topology { client, .. } = &self.topology;
        let sockets = unix_sockets(self.space(client.role)?.handle.ns())?;
        let own = sockets.iter().filter(|socket| {
            let parent = socket.path.as_deref().and_then(Path::parent);
            socket.is_connected && parent == Some(&*directory)
        });
        Ok(Some(own.count() as u64))
    }
}
