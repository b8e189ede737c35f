//! The data of the page, embedded in it: the document, compressed, and a table of all samples.

use std::io::{self, Write};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use flate2::Compression;
use flate2::write::GzEncoder;
use maud::{Markup, html};

use crate::model::{Observation, RunReport};
use crate::plain;
use crate::tidy;

pub(super) fn links(report: &RunReport, observations: &[Observation]) -> Markup {
    let id = plain::line(&report.run.id).replace('/', "-");
    let document = serde_json::to_string(report)
        .unwrap_or_else(|error| serde_json::json!({ "error": error.to_string() }).to_string());
    let document =
        compressed(document.as_bytes()).unwrap_or_else(|error| error.to_string().into_bytes());
    let document = format!("data:application/gzip;base64,{}", STANDARD.encode(document));
    let samples = tidy::csv(&report.run.id, observations);
    let samples = format!("data:text/csv;charset=utf-8,{}", percent_encoded(&samples));
    html! {
        ul.screen {
            li { a download=(format!("{id}.json.gz")) href=(document) { "The whole document as JSON" }
                " (" code { "hopyard/run/1" } ", see " code { "hopyard schema" } "; " code { "gunzip" } " unpacks it)" }
            @if !observations.is_empty() {
                li { a download=(format!("{id}-samples.csv")) href=(samples) { "Every sample as CSV" }
                    " (a row for each, a column for each quantity)" }
            }
        }
    }
}

/// Gzip (RFC 1952), without a name or a time. It cannot fail in memory.
fn compressed(bytes: &[u8]) -> io::Result<Vec<u8>> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(bytes)?;
    encoder.finish()
}

/// Percent-encoding for a URL (RFC 3986): all bytes that are not unreserved or harmless in data.
fn percent_encoded(text: &str) -> String {
    let mut encoded = String::with_capacity(text.len());
    for byte in text.bytes() {
        match byte {
            b'A'..=b'Z'
            | b'a'..=b'z'
            | b'0'..=b'9'
            | b'-'
            | b'.'
            | b'_'
            | b'~'
            | b','
            | b'/'
            | b':' => {
                encoded.push(char::from(byte));
            }
            _ => encoded.push_str(&format!("%{byte:02X}")),
        }
    }
    encoded
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_ends_a_url_or_an_attribute_is_encoded() {
        assert_eq!(percent_encoded("a,b\n\"µ\"#%"), "a,b%0A%22%C2%B5%22%23%25");
    }
}
