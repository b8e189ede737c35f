//! The devices that traffic must pass.

use super::Direction;

/// A device that the traffic must pass.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hop {
    /// Namespace by its role in the lab.
    pub namespace: &'static str,
    /// Name of the device in its namespace.
    pub device: String,
    /// Its counters that count packets from client to server.
    pub forward: &'static [Direction],
    /// Its counters that count packets from server to client; loopback counts both directions as forward.
    pub backward: &'static [Direction],
}

impl Hop {
    fn new(
        namespace: &'static str,
        device: &str,
        forward: &'static [Direction],
        backward: &'static [Direction],
    ) -> Self {
        Self {
            namespace,
            device: device.to_owned(),
            forward,
            backward,
        }
    }

    /// A device that sends the packets from client to server.
    #[must_use]
    pub fn tx(namespace: &'static str, device: &str) -> Self {
        Self::new(namespace, device, &[Direction::Tx], &[Direction::Rx])
    }

    /// A device that receives the packets from client to server.
    #[must_use]
    pub fn rx(namespace: &'static str, device: &str) -> Self {
        Self::new(namespace, device, &[Direction::Rx], &[Direction::Tx])
    }

    /// Loopback, which sends and receives every packet.
    #[must_use]
    pub fn loopback(namespace: &'static str, device: &str) -> Self {
        Self::new(namespace, device, &[Direction::Tx, Direction::Rx], &[])
    }

    /// A device that receives what goes either way, and sends nothing of it.
    #[must_use]
    pub fn rx_of_both(namespace: &'static str, device: &str) -> Self {
        Self::new(namespace, device, &[Direction::Rx], &[])
    }

    /// A device that receives from the client what goes to the server, while what comes back is
    /// handed past it.
    #[must_use]
    pub fn rx_from_client(namespace: &'static str, device: &str) -> Self {
        Self::new(namespace, device, &[Direction::Rx], &[])
    }

    /// A device that receives the server's packets to the client, while packets to the server bypass it.
    #[must_use]
    pub fn rx_from_server(namespace: &'static str, device: &str) -> Self {
        Self::new(namespace, device, &[], &[Direction::Rx])
    }

    /// A device that sends to the server, while what comes back is handed past it.
    #[must_use]
    pub fn tx_to_server(namespace: &'static str, device: &str) -> Self {
        Self::new(namespace, device, &[Direction::Tx], &[])
    }

    /// A device that sends to the client, while what goes to the server is handed past it.
    #[must_use]
    pub fn tx_to_client(namespace: &'static str, device: &str) -> Self {
        Self::new(namespace, device, &[], &[Direction::Tx])
    }

    /// A device that what goes between client and server may pass, or pass by.
    #[must_use]
    pub fn any(namespace: &'static str, device: &str) -> Self {
        Self::new(namespace, device, &[], &[])
    }
}
