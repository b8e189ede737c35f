//! Where the server listens, found apart from the way that its worker is spoken to.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use super::Started;
use crate::model::Family;
use crate::{Error, Result};

/// An address that was given, where it is the server's own, and of the family that the cells are about.
pub(super) fn given(server: &mut Started, address: IpAddr, family: Family) -> Result<IpAddr> {
    of_family(address, family)?;
    // Its kernel knows all of its own addresses, also whole ranges that are routed to it.
    if server.way(address)?.device == "lo" {
        return Ok(address);
    }
    Err(Error::NotItsAddress {
        address,
        own: listed(&of(&server.facts.addresses, family)),
    })
}

fn listed(addresses: &[IpAddr]) -> String {
    let texts: Vec<_> = addresses.iter().map(IpAddr::to_string).collect();
    texts.join(", ")
}

fn of_family(address: IpAddr, family: Family) -> Result<IpAddr> {
    if is_of(&address, family) {
        return Ok(address);
    }
    Err(Error::OtherFamily { address, family })
}

/// The server's only address; of several, the one that it has towards the client.
pub(super) fn find(client: &mut Started, server: &mut Started, family: Family) -> Result<IpAddr> {
    let own = of(&server.facts.addresses, family);
    let others = of(&client.facts.addresses, family);
    let in_one_namespace =
        client.facts.is_with(&server.facts) && client.facts.net_ns == server.facts.net_ns;
    if in_one_namespace {
        return Ok(own.first().copied().unwrap_or(loopback(family)));
    }
    if let [only] = own[..] {
        return Ok(only);
    }
    let mut towards = Vec::new();
    if !own.is_empty() {
        for to in others {
            // Both may have an address of the same kind for themselves, as that of a bridge of containers.
            match server.way(to) {
                Ok(way) if way.device != "lo" => towards.extend(way.source),
                // No route to one of its addresses says nothing of the others.
                Ok(_) | Err(Error::Worker(crate::load::remote::Error::Failed { .. })) => {}
                Err(error) => return Err(error),
            }
        }
    }
    choose(&own, towards, family)
}

/// The only address that the server has towards the client.
fn choose(own: &[IpAddr], mut towards: Vec<IpAddr>, family: Family) -> Result<IpAddr> {
    towards.retain(|address| own.contains(address));
    towards.sort_unstable();
    towards.dedup();
    match (&towards[..], own) {
        ([only], _) => Ok(*only),
        (_, []) => Err(Error::NoAddress { family }),
        _ => Err(Error::AddressUnclear {
            candidates: listed(own),
        }),
    }
}

fn of(addresses: &[IpAddr], family: Family) -> Vec<IpAddr> {
    let mut of: Vec<IpAddr> = addresses.to_vec();
    of.retain(|address| is_of(address, family));
    of.sort_unstable();
    of.dedup();
    of
}

fn is_of(address: &IpAddr, family: Family) -> bool {
    address.is_ipv4() == (family == Family::V4)
}

fn loopback(family: Family) -> IpAddr {
    match family {
        Family::V4 => Ipv4Addr::LOCALHOST.into(),
        Family::V6 => Ipv6Addr::LOCALHOST.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ip(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    #[test]
    fn of_several_addresses_the_one_towards_the_client_is_taken() {
        let own = [ip("10.0.0.6"), ip("172.17.0.1")];
        let towards = vec![ip("10.0.0.6"), ip("10.0.0.6")];
        assert_eq!(choose(&own, towards, Family::V4).unwrap(), own[0]);
    }

    #[test]
    fn what_is_unclear_is_refused_with_the_candidates() {
        let own = [ip("10.0.0.6"), ip("172.17.0.1")];
        let error = choose(&own, own.to_vec(), Family::V4).unwrap_err();
        assert_eq!(
            error.to_string(),
            "the server has several addresses, and it is not clear which of them leads to the client: choose one of \
             10.0.0.6, 172.17.0.1 with --server-address"
        );
        let error = choose(&[], Vec::new(), Family::V6).unwrap_err().to_string();
        assert!(
            error.starts_with("the server has no address of family 6"),
            "{error}"
        );
    }

    #[test]
    fn a_given_address_has_to_be_of_the_family() {
        assert!(of_family(ip("10.0.0.6"), Family::V4).is_ok());
        let error = of_family(ip("fd00::1"), Family::V4).unwrap_err();
        assert_eq!(
            error.to_string(),
            "the server's address fd00::1 is not of family 4, which the cells are about: set `family`, or give another \
             address"
        );
    }
}
