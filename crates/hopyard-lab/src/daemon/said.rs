//! What programs have to say, for the text of an error.

/// As much of it as fits an error.
const SHOWN: usize = 400;

/// The end of what a program said, in a line.
pub(crate) fn shown(said: &str) -> String {
    let lines: Vec<&str> = said
        .lines()
        .map(message)
        .filter(|l| !l.is_empty())
        .collect();
    let mut line = lines.join("; ");
    if line.is_empty() {
        return "it said nothing".to_owned();
    }
    if let Some((cut, _)) = line.char_indices().rev().nth(SHOWN) {
        line = format!("…{}", &line[cut..]);
    }
    line
}

/// A line of a log without time, number and level: `TIME|00001|module|LEVEL|message`.
fn message(line: &str) -> &str {
    let mut fields = line.splitn(5, '|');
    match fields.nth(1) {
        Some(number) if !number.is_empty() && number.bytes().all(|b| b.is_ascii_digit()) => {
            fields.nth(2).unwrap_or(line)
        }
        _ => line,
    }
    .trim()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn logs_are_shown_without_their_columns() {
        let log = "2026-11-21T10:33:07.450Z|00048|bridge|ERR|no such port\nplain\n\n";
        assert_eq!(shown(log), "no such port; plain");
        assert_eq!(shown(""), "it said nothing");
        assert!(shown(&"x".repeat(5000)).chars().count() <= SHOWN + 2);
    }
}
