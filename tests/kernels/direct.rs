//! The direct switch on another kernel than this machine's: each has a verifier of its own.

use super::one_guest::NEWEST;

#[test]
fn the_direct_switch_and_its_shortcut_work_inside_a_guest() {
    let measured = NEWEST.proved(|path, _| path.starts_with("direct"), &[]);
    assert_eq!(measured.cells.len(), 3, "{:#?}", measured.cells);
}
