//! Compiles the program of known cost.

fn main() {
    hopyard_bpf_build::objects("the experiment with a known cost", &["bpf/burn.bpf.c"]);
}
