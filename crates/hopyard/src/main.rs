//! The program.
use hopyard::{lab, measure, model};
fn main() {
    if std::env::args().nth(1).as_deref() == Some("worker") {
        hopyard::load::worker::main().unwrap();
        return;
    }
    let s = measure::Sampler::new(
        std::time::Duration::from_millis(300),
        std::time::Duration::from_millis(100),
    )
    .unwrap();
    let q = s.quiet_cores().unwrap();
    println!("quiet {q}");
    for p in lab::PATHS {
        if let Err(e) = p.available() {
            println!("{}: {}", p.name(), hopyard::chain(&e));
            continue;
        }
        for &peer in p.peers() {
            for load in model::LoadKind::ALL {
                let cell = model::Cell {
                    path: p.name().into(),
                    peer,
                    load,
                    axes: model::Axes::default().for_cell(load, peer),
                };
                let t = std::time::Instant::now();
                match s.measure(&cell, q) {
                    Ok(m) => println!(
                        "{cell}: {:.2}Gb/s {:.0}tx/s {:.0}pps busy {:.2} foreign {:.3} ctl {:.3} work {:?} p50 {:?} way {:?} skb {:?} tcp {:?} clos {:.2} {:?}",
                        m.received.bytes as f64 * 8. / m.window_ns as f64,
                        m.received.transactions as f64 * 1e9 / m.window_ns as f64,
                        m.received.messages as f64 * 1e9 / m.window_ns as f64,
                        m.cpu.net_ns() / m.cpu.elapsed_ns,
                        m.cpu.foreign_ns / m.cpu.elapsed_ns,
                        m.cpu.controller_ns / m.cpu.elapsed_ns,
                        m.cpu.workers_ns.map(|w| w / m.cpu.elapsed_ns),
                        m.latency.map(|l| l.quantiles[4]),
                        m.way.problems,
                        m.arrived.map(|a| a.bytes / a.skbs.max(1)),
                        m.tcp,
                        m.cpu.closure,
                        t.elapsed()
                    ),
                    Err(e) => println!("{cell}: ERR {}", hopyard::chain(&e)),
                }
            }
        }
    }
}
