//! What reports show for each load.

use crate::assess::quantity;
use crate::loads::Shown;
use crate::model::LoadKind;

#[test]
fn every_report_shows_quantities_that_the_load_has() {
    for load in LoadKind::ALL {
        let info = load.info();
        let Shown {
            beside,
            columns,
            grids,
            curves,
            ..
        } = info.shown;
        let main = [info.main_figure, info.unit.cost()];
        for name in [&main, info.repeated, beside, columns, grids, curves].concat() {
            let quantity = quantity(name).unwrap();
            assert!(quantity.applies(load), "{load}: {name}");
        }
        let main = quantity(info.main_figure).unwrap();
        assert_eq!(main.more_is_better(), Some(info.shown.saying.up), "{load}");
        let (rate, _) = info.unit.rate();
        assert!(quantity(rate).unwrap().applies(load), "{load}: {rate}");
    }
}
