//! Compiles what hands frames from one device of a lab to another, and the programs of a wire that pauses.

fn main() {
    let sources = ["bpf/redirect.bpf.c", "bpf/sockets.bpf.c", "bpf/wire.bpf.c"];
    hopyard_bpf_build::objects("labs", &sources);
}
