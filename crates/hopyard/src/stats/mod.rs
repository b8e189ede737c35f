//! Statistics: pure functions on slices.
