//! A good run, with some of its values exchanged.

use std::sync::LazyLock;

use libfuzzer_sys::arbitrary::{self, Arbitrary};
use serde_json::Value;
use tempfile::TempDir;

use crate::{FILES, directory};

/// A run of four cells and eight blocks, as hopyard stored it, with shorter histograms.
pub static SEED: [&str; 4] = [
    include_str!("../seeds/run/run.json"),
    include_str!("../seeds/run/samples.jsonl"),
    include_str!("../seeds/run/profiles.jsonl"),
    include_str!("../seeds/run/end.json"),
];

/// A document of the run, and where in it there is something.
struct Document {
    file: usize,
    value: Value,
    places: Vec<String>,
}

static DOCUMENTS: LazyLock<Vec<Document>> = LazyLock::new(|| {
    let mut documents = Vec::new();
    for (file, text) in SEED.iter().enumerate() {
        for value in serde_json::Deserializer::from_str(text).into_iter::<Value>() {
            let value = value.expect("the seed is JSON");
            let mut places = Vec::new();
            find(&value, String::new(), &mut places);
            documents.push(Document {
                file,
                value,
                places,
            });
        }
    }
    documents
});

/// JSON pointers to a value and all below it.
fn find(value: &Value, at: String, found: &mut Vec<String>) {
    match value {
        Value::Array(items) => {
            items
                .iter()
                .enumerate()
                .for_each(|(n, v)| find(v, format!("{at}/{n}"), found));
        }
        Value::Object(fields) => fields
            .iter()
            .for_each(|(k, v)| find(v, format!("{at}/{k}"), found)),
        _ => {}
    }
    found.push(at);
}

/// What somebody does to a file.
#[derive(Debug, Clone, Arbitrary)]
pub struct Edit {
    document: u8,
    place: u16,
    deed: Deed,
}

#[derive(Debug, Clone, Arbitrary)]
enum Deed {
    Null,
    Bool(bool),
    Small(i8),
    Signed(i64),
    Unsigned(u64),
    /// 2 to this power, or a little beside it.
    Power(u8, i8),
    Real(f64),
    Text(String),
    /// What stands elsewhere in the same document.
    Other(u16),
    /// Out of its list or object.
    Remove,
    /// A list with itself once more.
    Double,
    Empty,
    /// The document as a whole, or without its end.
    RemoveDocument,
    RepeatDocument,
    Cut(u16),
}

/// A document and what stands after it in its file.
struct Edited {
    value: Option<Value>,
    after: String,
}

impl Edited {
    fn apply(&mut self, places: &[String], edit: &Edit) {
        let Some(value) = &mut self.value else {
            return;
        };
        let place = |number: u16| &places[usize::from(number) % places.len()];
        let at = place(edit.place);
        match &edit.deed {
            Deed::RemoveDocument => self.value = None,
            Deed::RepeatDocument => self.after = format!("{value}\n"),
            Deed::Cut(length) => {
                self.after = value.to_string();
                let end = self.after.floor_char_boundary(usize::from(*length));
                self.after.truncate(end);
                self.value = None;
            }
            Deed::Remove => remove(value, at),
            Deed::Other(other) => {
                if let Some(other) = value.pointer(place(*other)).cloned() {
                    set(value, at, |_| other);
                }
            }
            Deed::Double => set(value, at, |old| match old {
                Value::Array(all) => [&all[..], &all[..]].concat().into(),
                other => other.clone(),
            }),
            Deed::Empty => set(value, at, |old| match old {
                Value::Object(_) => Value::Object(serde_json::Map::new()),
                _ => Value::Array(Vec::new()),
            }),
            deed => set(value, at, |_| plain(deed)),
        }
    }

    /// As hopyard writes it: the header over many lines, all else in one.
    fn text(&self, file: usize) -> String {
        let text = self.value.as_ref().map(|value| match file {
            0 => format!("{value:#}\n"),
            _ => format!("{value}\n"),
        });
        text.unwrap_or_default() + &self.after
    }
}

/// The directory of the run after some edits.
pub fn edited(edits: &[Edit]) -> TempDir {
    let fresh = |document: &Document| Edited {
        value: Some(document.value.clone()),
        after: String::new(),
    };
    let mut all: Vec<Edited> = DOCUMENTS.iter().map(fresh).collect();
    for edit in edits {
        let which = usize::from(edit.document) % all.len();
        all[which].apply(&DOCUMENTS[which].places, edit);
    }
    let mut texts = [const { String::new() }; 4];
    for (document, edited) in DOCUMENTS.iter().zip(&all) {
        texts[document.file] += &edited.text(document.file);
    }
    directory(FILES.into_iter().zip(texts.iter().map(String::as_bytes)))
}

/// Exchanges what stands at a place, if it is there still.
fn set(document: &mut Value, at: &str, new: impl FnOnce(&Value) -> Value) {
    if let Some(place) = document.pointer_mut(at) {
        *place = new(place);
    }
}

fn plain(deed: &Deed) -> Value {
    match deed {
        Deed::Bool(is) => (*is).into(),
        Deed::Small(number) => (*number).into(),
        Deed::Signed(number) => (*number).into(),
        Deed::Unsigned(number) => (*number).into(),
        Deed::Power(power, beside) => 1_u64
            .rotate_left((*power).into())
            .wrapping_add_signed((*beside).into())
            .into(),
        Deed::Real(number) => (*number).into(),
        Deed::Text(text) => text.clone().into(),
        _ => Value::Null,
    }
}

fn remove(document: &mut Value, at: &str) {
    let Some((above, name)) = at.rsplit_once('/') else {
        return;
    };
    match document.pointer_mut(above) {
        Some(Value::Object(fields)) => drop(fields.remove(name)),
        Some(Value::Array(items)) => {
            if let Some(place) = name
                .parse::<usize>()
                .ok()
                .filter(|place| *place < items.len())
            {
                items.remove(place);
            }
        }
        _ => {}
    }
}
