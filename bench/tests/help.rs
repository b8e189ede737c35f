//! The help of each program, and what it says to a wrong option. `cargo test` builds, and so lints, a program without unit tests only
//! because this test starts it.

use std::process::Command;

#[test]
fn each_says_how_it_is_called_and_refuses_what_it_does_not_know() {
    for program in [
        env!("CARGO_BIN_EXE_peers"),
        env!("CARGO_BIN_EXE_verify"),
        env!("CARGO_BIN_EXE_taps"),
        env!("CARGO_BIN_EXE_fleet"),
    ] {
        let said = |word| Command::new(program).arg(word).output().unwrap();
        let help = said("--help");
        assert!(help.status.success(), "{program}: {help:?}");
        let text = String::from_utf8_lossy(&help.stdout);
        assert!(text.contains("Usage:"), "{program}: {text}");
        let refused = said("--no-such-word");
        assert_eq!(refused.status.code(), Some(2), "{program}: {refused:?}");
        let why = String::from_utf8_lossy(&refused.stderr);
        assert!(why.contains("--no-such-word"), "{program}: {why}");
    }
}
