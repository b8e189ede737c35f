//! A guest whose device is down.

use crate::site::Site;

#[test]
fn show_names_a_guest_that_is_down() {
    let site = Site::silent("down", 2);
    site.connect(false, |_, _| {});
    let named = || {
        let warnings = site.show().warnings;
        let about = |warning: &&String| warning.starts_with("the other end of `p1` is down");
        (warnings.iter().filter(about).count(), warnings.len())
    };
    assert_eq!(named(), (0, 0));
    site.guests[1].set_down("eth0").unwrap();
    assert_eq!(named(), (1, 1));
    site.guests[1].set_up("eth0").unwrap();
    assert_eq!(named(), (0, 0));
}
