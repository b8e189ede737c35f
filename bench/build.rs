//! Compiles the program of known cost.

fn main() {
    hopyard_bpf_build::compile("the experiment with a known cost", &["bpf/burn.bpf.c"]);
}
