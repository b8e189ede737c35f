//! `[endpoint.client]` and `[endpoint.server]`: the endpoints of path `as-is`.

use std::net::IpAddr;

use serde::Deserialize;
use toml::Spanned;

use super::source::{Error, Source};
use crate::lab::Endpoints;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Raw {
    client: Client,
    server: Server,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Client {
    connect: Spanned<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Server {
    connect: Spanned<String>,
    address: Option<Spanned<String>>,
}

pub(super) fn endpoints(source: &Source<'_>, raw: &Raw) -> Result<Endpoints, Error> {
    let address = raw.server.address.as_ref();
    Ok(Endpoints {
        client: source.read("connect", &raw.client.connect, str::parse)?,
        server: source.read("connect", &raw.server.connect, str::parse)?,
        server_address: address
            .map(|address| source.read("address", address, str::parse::<IpAddr>))
            .transpose()?,
        uplink: None,
    })
}
