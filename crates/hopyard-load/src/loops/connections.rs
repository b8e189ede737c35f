//! A connection for each transaction.

use super::{Loops, Origin, Run, Said, Work};
use crate::flow::{self, Responder, Times};

/// Connect, request, response, close.
pub(super) struct Connections;

impl Loops for Connections {
    /// In turns, the time of a transaction would hold the work on those of others.
    fn share_threads(&self) -> bool {
        false
    }

    fn prepare<'a>(&self, work: Work<'a>) -> Result<Run<'a>, String> {
        let Work {
            spec,
            settings,
            timetable,
            ..
        } = work;
        let flow = work.flow()?;
        let (origin, shared, context) = (flow.origin, flow.shared, flow.context);
        let mut responder = Responder::of(spec);
        match origin {
            Origin::Connector { server, .. } => {
                let times = || Times::of(&timetable);
                let (mut times, mut connects) = (times()?, times()?);
                Ok(Box::new(move || {
                    let both = (&mut times, &mut connects);
                    let to = (server, settings, shared);
                    flow::crr_client(to, &mut responder, both, context)?;
                    Ok(Said::Connections {
                        transactions: times.timings,
                        connects: connects.timings,
                    })
                }))
            }
            Origin::Server { listener } => Ok(Box::new(move || {
                flow::crr_server((listener, shared), &mut responder, context)
                    .map(|()| Said::Nothing)
            })),
            Origin::Client { .. } | Origin::Gatherer { .. } => {
                Err(format!("{}: a flow that is of another load", spec.kind))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::net::{Ipv4Addr, SocketAddr, TcpStream};
    use std::time::{Duration, Instant};

    use hopyard_model::{Axes, LoadKind, Peer};
    use hopyard_net::clock;
    use socket2::{Domain, Socket, Type};

    use crate::protocol::{Tallied, Timetable};
    use crate::session::{Beside, Session};
    use crate::sockets::Place;
    use crate::spec::LoadSpec;

    const MS: u64 = 1_000_000;
    const PATIENCE: Duration = Duration::from_secs(5);

    /// It accepts nothing: its kernel connects two, and is silent to more.
    fn silent() -> (Socket, SocketAddr) {
        let listener = Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
        let any = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        listener.bind(&any.into()).unwrap();
        listener.listen(1).unwrap();
        let address = listener.local_addr().unwrap().as_socket().unwrap();
        (listener, address)
    }

    /// Connections until the kernel is silent.
    fn fill(address: SocketAddr) -> Vec<TcpStream> {
        let connect = || TcpStream::connect_timeout(&address, Duration::from_millis(50)).ok();
        std::iter::from_fn(connect).take(10).collect()
    }

    /// What a client counts over a window of 100 ms, and how long it takes from the start of traffic, 150 ms before its end.
    fn carried(client: Session) -> (Tallied, Duration) {
        let start_ns = clock::monotonic_ns() + 5 * MS;
        let timetable = Timetable {
            start_ns,
            open_ns: start_ns,
            close_ns: start_ns + 100 * MS,
            stop_ns: start_ns + 150 * MS,
            slices: 1,
            other_behind_ns: 0,
            edge_ns: 0,
        };
        let wait = |until| clock::sleep_until_monotonic_ns(until).map_err(|e| e.to_string());
        let began = Instant::now();
        let seen = client.run(timetable, Beside::default(), wait).unwrap();
        (seen, began.elapsed())
    }

    #[test]
    fn a_connection_without_an_answer_ends_with_the_traffic_and_counts() {
        let axes = Axes::default().for_cell(LoadKind::TcpCrr, Peer::Local, &[]);
        let spec = LoadSpec::new(LoadKind::TcpCrr, &axes);
        for to_syn in [false, true] {
            let (_listener, address) = silent();
            let place = Place::from(address.ip());
            let client = Session::connect(&spec, &place, &[address.port()], &[], PATIENCE).unwrap();
            let _others = to_syn.then(|| fill(address));
            let (seen, took) = carried(client);
            assert!(took < Duration::from_secs(1), "{to_syn}: {took:?}");
            let latency = seen.latency.unwrap();
            assert_eq!(
                (latency.count, seen.received.transactions),
                (1, 0),
                "{to_syn}"
            );
            assert!(latency.max_ns >= 100 * MS, "{to_syn}: {latency:?}");
        }
    }

    /// A request that does not come holds up the server no longer than its traffic lasts.
    #[test]
    fn a_server_without_a_request_ends_with_the_traffic() {
        let axes = Axes::default().for_cell(LoadKind::TcpCrr, Peer::Local, &[]);
        let spec = LoadSpec::new(LoadKind::TcpCrr, &axes);
        let place = Place::from(std::net::IpAddr::from(Ipv4Addr::LOCALHOST));
        let (server, ports) = Session::serve(&spec, &place, &[]).unwrap();
        let _client = TcpStream::connect((Ipv4Addr::LOCALHOST, ports[0])).unwrap();
        let (_, took) = carried(server);
        assert!(took < Duration::from_secs(1), "{took:?}");
    }
}
