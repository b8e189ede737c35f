//! Sizes, rates, times, shares, axes and names of the command line.
#![no_main]

use std::fmt::{Debug, Display};
use std::str::FromStr;

use hopyard::model::{AXES, Axes, Base, Blocks, LoadKind, Peer, SearchFor, Start};
use hopyard::units;
use hopyard_switch::Mac;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    if let Ok(bytes) = units::parse_bytes(text) {
        assert_eq!(units::parse_bytes(&units::show_bytes(bytes)), Ok(bytes));
    }
    if let Ok(span) = units::parse_duration(text) {
        let shown = units::show_duration(span);
        assert_eq!(
            units::parse_duration(&shown).map(units::show_duration),
            Ok(shown)
        );
    }
    for parse in [units::parse_loss, units::parse_difference] {
        // What is shown is rounded: to nothing or to all of it, which these refuse, near either end.
        if let Ok(share) = parse(text)
            && (1e-5..=0.999_99).contains(&share)
        {
            let again = parse(&units::show_share(share)).expect("as it is shown");
            assert!((again - share).abs() < 1e-6, "{share} {again}");
        }
    }
    if let Ok(level) = units::parse_confidence(text) {
        assert!((0.5..1.0).contains(&level));
    }
    for axis in AXES {
        let mut axes = Axes::default();
        if (axis.set)(&mut axes, text).is_err() {
            assert_eq!(axes, Axes::default(), "what is refused changes nothing");
            continue;
        }
        let Some(shown) = (axis.show)(&axes) else {
            continue;
        };
        let mut again = Axes::default();
        (axis.set)(&mut again, &shown).expect("as it is shown");
        assert_eq!(axes, again, "{}: {shown}", axis.name);
        hopyard_fuzz::same_again(&axes);
    }
    same::<SearchFor>(text);
    same::<Start>(text);
    same::<Peer>(text);
    same::<LoadKind>(text);
    same::<Mac>(text);
    let _ = (text.parse::<Blocks>(), Base::parse(text).is_ok());
});

fn same<T: FromStr + Display + PartialEq + Debug>(text: &str) {
    if let Ok(value) = text.parse::<T>() {
        assert_eq!(value.to_string().parse::<T>().ok(), Some(value));
    }
}
