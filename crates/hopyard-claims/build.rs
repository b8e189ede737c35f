//! Compiles what counts copies and drops of packets.

fn main() {
    let sources = ["bpf/copies.bpf.c", "bpf/drops.bpf.c"];
    hopyard_bpf_build::objects("counting copies and drops of packets", &sources);
}
