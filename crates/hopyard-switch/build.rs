//! Compiles the switch's programs.

fn main() {
    hopyard_bpf_build::compile("the direct switch", &["bpf/switch.bpf.c"]);
}
