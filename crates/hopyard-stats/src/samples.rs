//! A list of samples that cannot hold NaN and is never empty.

use std::ops::Deref;

/// Non-empty list of finite numbers, in the order they were taken.
///
/// Building one is the only check that interval functions need: it excludes empty lists, NaN and infinity.
#[derive(Clone, Debug, PartialEq)]
pub struct Samples(Vec<f64>);

/// Why a list of numbers cannot be [`Samples`].
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
pub enum NotFinite {
    /// The list is empty.
    #[error("no samples at all")]
    Empty,
    /// A value is NaN or infinite.
    #[error("sample {index} is not a finite number")]
    Value {
        /// Position of the first such value, from 0.
        index: usize,
    },
}

impl Samples {
    /// Copies a slice.
    ///
    /// # Errors
    /// [`NotFinite`] if the slice is empty or holds NaN or an infinity.
    pub fn new(x: &[f64]) -> Result<Self, NotFinite> {
        Self::try_from(x.to_vec())
    }
}

impl TryFrom<Vec<f64>> for Samples {
    type Error = NotFinite;

    fn try_from(x: Vec<f64>) -> Result<Self, NotFinite> {
        if x.is_empty() {
            return Err(NotFinite::Empty);
        }
        match x.iter().position(|v| !v.is_finite()) {
            Some(index) => Err(NotFinite::Value { index }),
            None => Ok(Self(x)),
        }
    }
}

impl Deref for Samples {
    type Target = [f64];

    fn deref(&self) -> &[f64] {
        &self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refuses_what_cannot_be_averaged() {
        assert_eq!(Samples::new(&[]), Err(NotFinite::Empty));
        assert_eq!(
            Samples::new(&[1.0, f64::NAN]),
            Err(NotFinite::Value { index: 1 })
        );
        assert_eq!(
            Samples::new(&[f64::NEG_INFINITY]),
            Err(NotFinite::Value { index: 0 })
        );
        assert_eq!(Samples::new(&[1.0, -2.0]).unwrap().len(), 2);
    }
}
