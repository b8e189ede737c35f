//! Sanitizing of text from outside: names, causes and notes of run directories, guests, workers and other programs.
//!
//! Such a text may contain characters that command a terminal (colours, titles, the clipboard), reverse or hide their
//! neighbours, or begin lines of their own. Everything that hopyard prints passes through here: single texts through
//! [`line`], whole documents through [`document`] or [`json`], diagnostics through [`message`].

use std::borrow::Cow;

/// Whether a character shows only as itself.
///
/// Control characters do not. Nor do characters that change direction or join (Unicode's `Cf`: bidirectional controls,
/// zero-width characters, tags), and separators of lines and paragraphs.
#[must_use]
pub fn is_plain(c: char) -> bool {
    !c.is_control()
        && !matches!(c,
            '\u{ad}' | '\u{600}'..='\u{605}' | '\u{61c}' | '\u{6dd}' | '\u{70f}' | '\u{180e}'
            | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}'
            | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{110bd}' | '\u{13430}'..='\u{1343f}'
            | '\u{1bca0}'..='\u{1bca3}' | '\u{1d173}'..='\u{1d17a}' | '\u{e0000}'..='\u{e007f}')
}

/// A text in one line: characters that are not plain, and any white space, become blanks.
#[must_use]
pub fn line(text: &str) -> String {
    let words: Vec<_> = text
        .split(|c: char| c.is_whitespace() || !is_plain(c))
        .filter(|word| !word.is_empty())
        .collect();
    words.join(" ")
}

/// A whole document: lines stay, and every other character that is not plain becomes `\u{1b}` or the like.
#[must_use]
pub fn document(text: &str) -> Cow<'_, str> {
    shown(text, |c, into| into.extend(c.escape_unicode()))
}

/// A JSON document with characters that are not plain escaped, which every JSON reader reads as the same document.
#[must_use]
pub fn json(text: &str) -> Cow<'_, str> {
    shown(text, |c, into| {
        for unit in c.encode_utf16(&mut [0; 2]) {
            into.push_str(&format!("\\u{unit:04x}"));
        }
    })
}

/// A diagnostic: a document whose further lines are indented, so that none of them looks like a diagnostic of its own.
#[must_use]
pub fn message(text: &str) -> String {
    document(text.trim_end()).replace('\n', "\n  ")
}

/// An error with all its sources, each once: "cannot do this: because of that".
#[must_use]
pub fn chain(error: &(dyn std::error::Error + 'static)) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(below) = cause {
        let said = below.to_string();
        if !text.ends_with(&said) {
            text = format!("{text}: {said}");
        }
        cause = below.source();
    }
    text
}

fn shown(text: &str, write: impl Fn(char, &mut String)) -> Cow<'_, str> {
    let stays = |c: char| is_plain(c) || c == '\n';
    if text.chars().all(stays) {
        return text.into();
    }
    let mut plain = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        if stays(c) {
            plain.push(c);
        } else {
            write(c, &mut plain);
        }
    }
    plain.into()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn what_commands_a_terminal_is_shown_or_left_out() {
        let hostile = "a\u{1b}[31mb\u{9b}2J\u{202e}c\r\nd\te";
        assert_eq!(line(hostile), "a [31mb 2J c d e");
        assert_eq!(
            document(hostile),
            "a\\u{1b}[31mb\\u{9b}2J\\u{202e}c\\u{d}\nd\\u{9}e"
        );
        assert_eq!(message("one\ntwo\u{7}\n"), "one\n  two\\u{7}");
        let plain = "größer · ≥ 1 µs\n  next";
        assert!(matches!(document(plain), Cow::Borrowed(_)) && document(plain) == plain);
    }

    proptest! {
        #[test]
        fn nothing_but_plain_text_comes_out(text in any::<String>()) {
            prop_assert!(line(&text).chars().all(is_plain));
            let lines = document(&text);
            prop_assert!(lines.chars().all(|c| is_plain(c) || c == '\n'));
        }

        #[test]
        fn json_stays_the_same_document(text in any::<String>()) {
            let written = serde_json::to_string(&text).unwrap();
            let plain = json(&written);
            prop_assert!(plain.chars().all(is_plain));
            prop_assert_eq!(serde_json::from_str::<String>(&plain).unwrap(), text);
        }
    }
}
