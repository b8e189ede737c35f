//! Compiles the programs of a wire that pauses.

fn main() {
    hopyard_bpf_build::objects("a wire that pauses", &["bpf/wire.bpf.c"]);
}
