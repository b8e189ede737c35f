//! The switch under real traffic, in throw-away namespaces. Needs root.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a test fails by panicking"
)]

mod churn;
mod frames;
mod growth;
mod hostile;
mod pressure;
mod rules;
mod stations;
mod threads;
mod whole;
