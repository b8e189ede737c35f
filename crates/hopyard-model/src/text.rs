//! Values that documents store as text, in the form that users write.

/// Makes a type appear in documents as text, by its `Display` and `FromStr`. The type also needs
/// `#[serde(try_from = "String", into = "String")]` and `#[schemars(with = "String")]`.
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
