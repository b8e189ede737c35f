//! Messages on stderr that are neither results nor fatal errors.

use hopyard_model::plain;

/// Prints a message on stderr, sanitized.
pub fn note(message: std::fmt::Arguments<'_>) {
    use std::io::Write;
    // With `2>&1 | head -1` the reader may be gone. That is no reason to end or to panic, as eprintln does.
    let _ = writeln!(
        std::io::stderr(),
        "hopyard: {}",
        plain::message(&message.to_string())
    );
}
