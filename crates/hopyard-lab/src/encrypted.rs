//! Ends of a lab between which IPsec encrypts, and what it has encrypted, counted in place of a device.

use std::net::IpAddr;

use hopyard_net::{EspDirection, EspMode, EspState, Handle};

use super::part::{Part, Undone};
use super::random::key;
use super::topology::Addresses;
use super::{Builder, Result};
use crate::model::{DeviceCount, Hop};

/// What stands for the states of a namespace among its devices.
pub(super) const ESP: &str = "esp";
/// The first number of a state; those below 256 are reserved (RFC 4303).
const FIRST_SPI: u32 = 256;

/// An end of what is encrypted.
#[derive(Debug, Clone, Copy)]
pub(super) struct End {
    /// Its namespace.
    pub(super) role: &'static str,
    /// Addresses of what is encrypted.
    pub(super) inner: Addresses,
    /// Addresses of what is sent; in transport mode the same.
    pub(super) outer: Addresses,
}

/// Both ends. States and policies go with their namespaces.
#[derive(Debug)]
struct Encrypted([(End, Handle); 2]);

impl Part for Encrypted {
    fn undo(&mut self) -> Undone {
        Undone::default()
    }

    fn counted(&self) -> Result<Vec<DeviceCount>> {
        let counts = self.0.iter().map(|(end, handle)| {
            let own = [IpAddr::from(end.outer.v4), end.outer.v6.into()];
            let mut count = DeviceCount::new(end.role, ESP, [0, 0, 0, 0]);
            for state in handle.esp_traffic()? {
                let (packets, bytes) = match own.contains(&state.to) {
                    true => (&mut count.rx_packets, &mut count.rx_bytes),
                    false => (&mut count.tx_packets, &mut count.tx_bytes),
                };
                *packets += state.packets;
                *bytes += state.bytes;
            }
            Ok(count)
        });
        counts.collect()
    }
}

impl Builder {
    /// Has everything between two ends encrypted, and nothing else let in. Gives what counts it: at the client's end, at the
    /// server's.
    pub(super) fn encrypt(&mut self, mode: EspMode, ends: [End; 2]) -> Result<[Hop; 2]> {
        let [near, far] = ends;
        let near = (near, Handle::new(self.space(near.role)?.ns())?);
        let far = (far, Handle::new(self.space(far.role)?.ns())?);
        self.push(Encrypted([near, far]));
        let versions: [fn(Addresses) -> IpAddr; 2] = [|a| a.v4.into(), |a| a.v6.into()];
        let mut spi = FIRST_SPI;
        for [from, to] in [ends, [ends[1], ends[0]]] {
            let mut state = None;
            for version in versions {
                // A tunnel is over IPv4 and carries both.
                let state = match (mode, state) {
                    (EspMode::Tunnel, Some(state)) => state,
                    _ => {
                        let outer = match mode {
                            EspMode::Transport => version,
                            EspMode::Tunnel => versions[0],
                        };
                        let new = EspState {
                            from: outer(from.outer),
                            to: outer(to.outer),
                            spi,
                            key: key()?,
                            mode,
                        };
                        spi += 1;
                        for end in ends {
                            self.space(end.role)?.add_esp_state(&new)?;
                        }
                        *state.insert(new)
                    }
                };
                let networks = [from, to].map(|end| {
                    let ip = version(end.inner);
                    (ip, if ip.is_ipv4() { 32 } else { 128 })
                });
                for (end, direction) in [(from, EspDirection::Out), (to, EspDirection::In)] {
                    let handle = self.space(end.role)?;
                    handle.add_esp_policy(direction, &state, networks)?;
                }
            }
        }
        Ok([Hop::tx(ends[0].role, ESP), Hop::rx(ends[1].role, ESP)])
    }
}
