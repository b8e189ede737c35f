//! Compiles what hands frames from one device of a lab to another.

fn main() {
    let sources = ["bpf/redirect.bpf.c", "bpf/sockets.bpf.c"];
    hopyard_bpf_build::objects("paths that forward by eBPF", &sources);
}
