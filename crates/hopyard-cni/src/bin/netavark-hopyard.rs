//! netavark driver `hopyard`: makes podman's containers ports of the direct switch. `docs/netavark.md` tells how to use it.

use std::process::ExitCode;

fn main() -> ExitCode {
    hopyard_cni::netavark()
}
