//! A page of OpenMetrics 1.0 text (<https://prometheus.io/docs/specs/om/open_metrics_spec/>): families, each with its samples.

use crate::plain;

pub type Label = (&'static str, String);

#[derive(Default)]
pub struct Page {
    text: String,
}

impl Page {
    /// Begins a family; its samples follow. A name ends with its unit, if it has one.
    pub fn family(&mut self, name: &str, kind: &str, unit: &str, help: &str) {
        self.line(&format!("# TYPE {name} {kind}"));
        if !unit.is_empty() {
            self.line(&format!("# UNIT {name} {unit}"));
        }
        self.line(&format!("# HELP {name} {}", escaped(help)));
    }

    /// Writes a sample, except for a value that was not measured.
    pub fn sample(&mut self, name: &str, labels: &[Label], value: &str) {
        if value.is_empty() {
            return;
        }
        let labels: Vec<String> = labels
            .iter()
            .map(|(name, value)| format!("{name}=\"{}\"", escaped(value)))
            .collect();
        if labels.is_empty() {
            self.line(&format!("{name} {value}"));
        } else {
            self.line(&format!("{name}{{{}}} {value}", labels.join(",")));
        }
    }

    /// The page with its end mark.
    pub fn finish(mut self) -> String {
        self.line("# EOF");
        self.text
    }

    fn line(&mut self, line: &str) {
        self.text.push_str(line);
        self.text.push('\n');
    }
}

/// Escaped as the specification requires: `\\`, `\"` and `\n`.
fn escaped(text: &str) -> String {
    plain::document(text)
        .replace('\\', "\\\\")
        .replace('"', "\\\"")
        .replace('\n', "\\n")
}
