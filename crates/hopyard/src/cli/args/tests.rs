use clap::CommandFactory;

use super::*;

#[test]
fn the_definition_is_sound() {
    Args::command().debug_assert();
}

#[test]
fn axes_are_checked_where_they_are_typed() {
    assert!(axis_values("flows=1,2,4").is_ok());
    assert!(axis_values("flows").is_err());
    assert!(
        axis_values("flows=2,placement=same")
            .unwrap_err()
            .contains("--set placement=same")
    );
    assert!(
        axis_values("flows=0")
            .unwrap_err()
            .contains("out of bounds")
    );
    assert!(
        axis_values("colour=red")
            .unwrap_err()
            .contains("there is no axis `colour`")
    );
}
