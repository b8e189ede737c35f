//! JSON schemas of documents.

/// A schema (2020-12) whose documents carry its name and version in `schema`.
#[must_use]
pub fn named_schema(schema: schemars::Schema, name: &str) -> serde_json::Value {
    let mut schema = schema.to_value();
    if let Some(root) = schema.as_object_mut() {
        root.insert("title".to_owned(), name.into());
    }
    if let Some(field) = schema.pointer_mut("/properties/schema") {
        field["const"] = name.into();
    }
    schema
}
