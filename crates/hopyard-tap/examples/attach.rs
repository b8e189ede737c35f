//! Detaches and attaches a queue, opens and closes one, and prints the kernel's status of the device each time. Run it
//! as root.

#![expect(clippy::print_stdout, reason = "an example prints")]

use hopyard_net::{Handle, NetNs};
use hopyard_tap::{NewDevice, Queues};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let ns = NetNs::create()?;
    let new = NewDevice {
        queues: Queues::Multi(2),
        ..NewDevice::tap("tap%d")
    };
    let (device, queues) = ns.run(|| new.create())??;
    let handle = Handle::new(&ns)?;
    let show = |did: &str| -> Result<(), hopyard_net::Error> {
        let link = handle.tun_link(device.name())?;
        let (attached, detached) = link.map_or((None, None), |link| (link.attached, link.detached));
        println!("{did:22} attached {attached:?}, detached {detached:?}");
        Ok(())
    };
    show("made")?;
    queues[1].detach()?;
    show("detached one")?;
    if let Err(error) = queues[1].detach() {
        println!("{error}");
    }
    let third = device.open_queue()?;
    show("opened another")?;
    queues[1].attach()?;
    show("attached the first")?;
    drop(third);
    show("closed the other")?;
    drop(queues);
    println!(
        "closed all: device {} is {}",
        device.name(),
        match handle.link(device.name()) {
            Ok(_) => "still there",
            Err(_) => "gone",
        }
    );
    Ok(())
}
