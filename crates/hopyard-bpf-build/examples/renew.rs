//! Compiles the named eBPF sources anew and writes their objects and records beside them: `make bpf`.

use std::process::ExitCode;

use hopyard_bpf_build::Program;

#[expect(clippy::print_stderr, reason = "this is a program")]
fn main() -> ExitCode {
    for source in std::env::args().skip(1) {
        if let Err(error) = Program::new(&source).renew() {
            eprintln!("{source}: {error}\nthis needs: apt-get install clang llvm libbpf-dev");
            return ExitCode::FAILURE;
        }
    }
    ExitCode::SUCCESS
}
