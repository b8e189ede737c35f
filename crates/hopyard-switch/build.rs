//! Compiles the switch's programs, and those that its tests put beside them.

fn main() {
    hopyard_bpf_build::objects(
        "the direct switch",
        &[
            "bpf/switch.bpf.c",
            "bpf/shortcut.bpf.c",
            "tests/foreign/foreign.bpf.c",
        ],
    );
}
