//! `--client`, `--server`, `--server-address`; `--uplink`, `--far`, `--far-uplink`.

use std::collections::BTreeSet;
use std::net::IpAddr;

use clap::Args as ClapArgs;

use super::RunArgs;
use crate::cli::Failure;
use crate::lab::{self, Endpoints, NoPrefix, Prefix, Uplink};
use crate::model::Peer;
use crate::plan::{Part, Plan};

/// Axes of a wire that hopyard makes: a cable is as it is.
const OF_A_MADE_WIRE: [&str; 2] = ["rate", "wire_pause"];

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
    /// Card of this machine that is the wire of labs towards --far, and theirs alone meanwhile (docs/uplink.md)
    #[arg(long, value_name = "CARD", requires = "far", conflicts_with_all = ["kernel", "client", "server", "server_address"])]
    uplink: Option<String>,
    /// Command that runs the rest of its arguments on the machine at the other end of the uplink, as root, as in 'ssh host2'
    #[arg(long, value_name = "PREFIX", requires = "uplink")]
    far: Option<Prefix>,
    /// Card of that machine (default: the name of --uplink)
    #[arg(long, value_name = "CARD", requires = "uplink")]
    far_uplink: Option<String>,
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
        if let (Some(card), Some(far)) = (&self.uplink, &self.far) {
            let far_card = self.far_uplink.as_ref().unwrap_or(card).clone();
            return Ok(Some(Endpoints {
                client: "env"
                    .parse()
                    .map_err(|e: NoPrefix| Failure::request(e.to_string()))?,
                server: far.clone(),
                server_address: None,
                uplink: Some(Uplink {
                    card: card.clone(),
                    far_card,
                }),
            }));
        }
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
                uplink: None,
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

    /// Puts them into a plan. `args`: what else the command line says.
    ///
    /// # Errors
    /// One is missing, no path of the plan uses them, or labs of an uplink cannot be as asked.
    pub(in crate::cli) fn apply(&self, plan: &mut Plan, args: &RunArgs) -> Result<(), Failure> {
        let is_given =
            self.client.is_some() || self.server.is_some() || self.server_address.is_some();
        plan.endpoints = self.endpoints(plan.endpoints.as_ref())?;
        if self.uplink.is_some() {
            check_uplink(args)?;
            // One lab at a time has the card.
            plan.turns = false;
            let is_of_the_plan = |axis: &str| !args.sets(axis);
            let mut left_out = BTreeSet::new();
            for part in &mut plan.parts {
                part.peers = vec![Peer::Far];
                let wire = part.set.extract_if(.., |(axis, _)| {
                    OF_A_MADE_WIRE.contains(&axis.as_str()) && is_of_the_plan(axis)
                });
                left_out.extend(wire.map(|(axis, values)| format!("{axis}={}", values.join(","))));
            }
            if !left_out.is_empty() {
                let left_out: Vec<String> = left_out.into_iter().collect();
                crate::note(format_args!(
                    "the cable takes the place of the plan's wire: {} left out",
                    left_out.join(" and ")
                ));
            }
            return Ok(());
        }
        if !plan.parts.iter().any(is_between_endpoints) {
            if is_given {
                return Err(Failure::request(
                    "--client and --server are for path as-is, which the run does not have: add --paths as-is".to_owned(),
                ));
            }
            // The plan's are for paths that were not asked for.
            plan.endpoints = None;
        }
        Ok(())
    }
}

/// Refuses what labs of an uplink cannot be.
fn check_uplink(args: &RunArgs) -> Result<(), Failure> {
    let elsewhere = |peer: &&Peer| **peer != Peer::Far;
    let why = if args.sets("wire_pause") {
        "a real cable makes no pauses: leave `wire_pause` out".to_owned()
    } else if let Some(peer) = args.peer.iter().flatten().find(elsewhere) {
        format!("the server of --uplink is the machine of --far: leave `--peer {peer}` out")
    } else if args.turns == Some(true) {
        "one lab at a time has the card of --uplink: leave `--turns on` out".to_owned()
    } else {
        return Ok(());
    };
    Err(Failure::request(why))
}

fn is_between_endpoints(part: &Part) -> bool {
    let mut paths = part
        .paths
        .named()
        .iter()
        .filter_map(|name| lab::path(name).ok());
    paths.any(|path| !path.is_built)
}
