//! Compiles the steering programs, and one that only tests use.

fn main() {
    let sources = ["bpf/steering.bpf.c", "tests/bpf/drops.bpf.c"];
    hopyard_bpf_build::objects("steering the queues of taps", &sources);
}
