//! `--client`, `--server`, `--server-address`.

use std::net::IpAddr;

use clap::Args as ClapArgs;

use crate::cli::Failure;
use crate::lab::{self, Endpoints, Prefix};
use crate::plan::{Part, Paths, Plan};

#[derive(Debug, ClapArgs)]
pub(in crate::cli) struct EndpointArgs {
    /// Command that runs the rest of its arguments at the client, for path as-is (docs/endpoints.md)
    #[arg(long, value_name = "PREFIX", conflicts_with = "kernel")]
    client: Option<Prefix>,
    /// Command that runs the rest of its arguments at the server, as in 'ssh host2'
    #[arg(long, value_name = "PREFIX", conflicts_with = "kernel")]
    server: Option<Prefix>,
    /// Address on which the server listens (default: found)
    #[arg(long, value_name = "ADDRESS", conflicts_with = "kernel")]
    server_address: Option<IpAddr>,
}

impl EndpointArgs {
    /// The endpoints, with missing values from a plan.
    ///
    /// # Errors
    /// One is missing.
    pub(in crate::cli) fn endpoints(
        &self,
        planned: Option<&Endpoints>,
    ) -> Result<Option<Endpoints>, Failure> {
        let client = self.client.clone().or(planned.map(|p| p.client.clone()));
        let server = self.server.clone().or(planned.map(|p| p.server.clone()));
        // An address belongs to the server with which it was given.
        let planned = planned.filter(|_| self.server.is_none());
        let server_address = self
            .server_address
            .or(planned.and_then(|p| p.server_address));
        match (client, server) {
            (Some(client), Some(server)) => Ok(Some(Endpoints {
                client,
                server,
                server_address,
            })),
            (None, None) if server_address.is_none() => Ok(None),
            (client, _) => Err(Failure::request(format!(
                "{} is missing: path as-is has two endpoints; `env` is the command for this host, as it is",
                if client.is_none() {
                    "--client"
                } else {
                    "--server"
                }
            ))),
        }
    }

    /// Puts them into a plan.
    ///
    /// # Errors
    /// One is missing, or no path of the plan uses them.
    pub(in crate::cli) fn apply(&self, plan: &mut Plan) -> Result<(), Failure> {
        let is_given =
            self.client.is_some() || self.server.is_some() || self.server_address.is_some();
        plan.endpoints = self.endpoints(plan.endpoints.as_ref())?;
        if is_given && !plan.parts.iter().any(is_between_endpoints) {
            return Err(Failure::request(
                "--client and --server are for path as-is, which the run does not have: add --paths as-is".to_owned(),
            ));
        }
        Ok(())
    }
}

fn is_between_endpoints(part: &Part) -> bool {
    let Paths::Named(names) = &part.paths else {
        return false;
    };
    let mut paths = names.iter().filter_map(|name| lab::path(name).ok());
    paths.any(|path| !path.is_built())
}
