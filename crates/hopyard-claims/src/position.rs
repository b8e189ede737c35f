//! The position of a figure: inside its bounds, outside, or across them.

use super::bounds::Bounds;
use super::figure::Figure;
use crate::model::{BoundPosition, FOR_A_VERDICT};
use crate::stats::Estimate;

/// The position of a figure. That it is inside is judged by the first interval, that it is outside by the second.
pub(super) fn position(
    bounds: Bounds,
    figure: &Figure,
    (own, wide): (&Estimate, &Estimate),
) -> BoundPosition {
    match figure {
        Figure::Windows { values, disturbed } if bounds.ask_for_none() => {
            of_none(values, disturbed, own)
        }
        Figure::AtLeast { .. } => by_intervals(bounds, &upwards(own), &upwards(wide)),
        _ => by_intervals(bounds, own, wide),
    }
}

/// The same interval without an upper end.
fn upwards(estimate: &Estimate) -> Estimate {
    Estimate {
        high: f64::INFINITY,
        ..estimate.clone()
    }
}

/// The position of what should not be there. Windows are counted; the mean is not judged: if one window is above 0, its interval still
/// contains 0, however many blocks there are. One undisturbed window above 0 shows that there is some. That there is none takes enough
/// windows without any.
fn of_none(values: &[f64], disturbed: &[bool], own: &Estimate) -> BoundPosition {
    let above = |(value, _): &(&f64, &bool)| **value > 0.0;
    let mut seen = values.iter().zip(disturbed).filter(above);
    if seen.clone().any(|(_, disturbed)| !disturbed) {
        BoundPosition::Outside
    } else if seen.next().is_some() || !is_enough(own) {
        BoundPosition::Across
    } else {
        BoundPosition::Inside
    }
}

/// Are there enough blocks for a verdict (docs/method.md, "Statistics")?
fn is_enough(estimate: &Estimate) -> bool {
    estimate.n >= FOR_A_VERDICT as usize
}

/// The position by two intervals: inside is judged by the first, outside by the second.
pub(super) fn by_intervals(bounds: Bounds, own: &Estimate, wide: &Estimate) -> BoundPosition {
    if !is_enough(own) {
        return BoundPosition::Across;
    }
    match bounds.lies(own) {
        BoundPosition::Inside => BoundPosition::Inside,
        _ if bounds.lies(wide) == BoundPosition::Outside => BoundPosition::Outside,
        _ => BoundPosition::Across,
    }
}
