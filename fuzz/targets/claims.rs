//! Claims: TOML that comes along or that somebody wrote.
#![no_main]

use hopyard::claims;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    match claims::parse("my.toml", text) {
        Ok(report) => {
            for check in report.claims.iter().flat_map(|claim| &claim.checks) {
                let words = check.in_words() + &check.bounds_in_words();
                assert!(!words.contains("NaN") && !words.contains("inf"), "{words}");
            }
        }
        Err(error) => assert!(error.to_string().starts_with("my.toml: "), "{error}"),
    }
});
