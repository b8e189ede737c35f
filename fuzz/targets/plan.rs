//! Plans: TOML that somebody wrote.
#![no_main]

use hopyard::plan;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    match plan::parse("my.toml", text) {
        Ok(plan) => hopyard_fuzz::same_again(&plan),
        Err(error) => assert!(error.to_string().starts_with("my.toml:"), "{error}"),
    }
});
