//! hopyard: build every path between two endpoints, load it, and say what it costs.

pub mod stats;
