//! Compiles what hands frames from one device of a lab to another.

fn main() {
    hopyard_bpf_build::objects("paths that forward by eBPF", &["bpf/redirect.bpf.c"]);
}
