//! CNI plugin `hopyard`: makes containers ports of the direct switch. `docs/cni.md` tells how to use it.

use std::process::ExitCode;

fn main() -> ExitCode {
    hopyard_cni::main()
}
