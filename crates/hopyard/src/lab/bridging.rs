//! A Linux bridge of the hub.

use hopyard_net::LinkKind;

use super::topology::role;
use super::{Builder, Result};

impl Builder {
    /// A bridge of that name in the hub, with netfilter's calls off or on. A new namespace has them on where
    /// br_netfilter is loaded; a kernel without it has them off.
    ///
    /// # Errors
    /// The kernel cannot or will not.
    pub fn bridge(&mut self, name: &str, netfilter: bool) -> Result<()> {
        self.link(role::HUB, name, LinkKind::Bridge)?;
        let hub = self.space(role::HUB)?;
        let value = if netfilter { "1" } else { "0" };
        for protocol in ["iptables", "ip6tables", "arptables"] {
            let key = format!("net/bridge/bridge-nf-call-{protocol}");
            if netfilter || hub.has_sysctl(&key) {
                hub.set_sysctl(&key, value)?;
            }
        }
        Ok(())
    }
}
