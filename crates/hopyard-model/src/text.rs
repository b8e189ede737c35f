//! Values that documents have as people write them.

/// Has values stand in documents as text, by their `Display` and `FromStr`; they also take `#[serde(try_from =
/// "String", into = "String")]` and `#[schemars(with = "String")]`.
macro_rules! as_text {
    ($kind:ty) => {
        impl TryFrom<String> for $kind {
            type Error = <Self as std::str::FromStr>::Err;

            fn try_from(text: String) -> Result<Self, Self::Error> {
                text.parse()
            }
        }

        impl From<$kind> for String {
            fn from(value: $kind) -> Self {
                value.to_string()
            }
        }
    };
}

pub(super) use as_text;
