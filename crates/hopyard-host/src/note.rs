//! What is neither a result nor the end of the program.

use hopyard_model::plain;

/// Says something on stderr, harmless wherever it is from.
pub fn note(message: std::fmt::Arguments<'_>) {
    use std::io::Write;
    // `2>&1 | head -1` has stopped listening; that is no reason to end, and none to panic as eprintln does.
    let _ = writeln!(
        std::io::stderr(),
        "hopyard: {}",
        plain::message(&message.to_string())
    );
}
