//! Pictures of all pairs: as SVG where there are few machines, as a bitmap with a dot for each pair where there are many.

use std::io::Write;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use flate2::write::ZlibEncoder;
use flate2::{Compression, Crc};
use maud::{Markup, html};

use crate::fleet::Fleet;
use crate::rank::{Ranks, standing};
use crate::report::with_unit;

/// Of an SVG with a name for each row.
const FEW_MACHINES: usize = 48;
/// How a pair stands against the median, below 1 worse, and its colour: red to blue, which the colour-blind can tell apart.
const STEPS: [(f64, [u8; 3], &str); 8] = [
    (0.5, [0xb2, 0x18, 0x2b], "below 0.5"),
    (0.8, [0xd6, 0x60, 0x4d], "0.5 to 0.8"),
    (0.9, [0xf4, 0xa5, 0x82], "0.8 to 0.9"),
    (0.97, [0xfd, 0xdb, 0xc7], "0.9 to 0.97"),
    (1.03, [0xf7, 0xf7, 0xf7], "0.97 to 1.03"),
    (1.1, [0xd1, 0xe5, 0xf0], "1.03 to 1.1"),
    (1.25, [0x92, 0xc5, 0xde], "1.1 to 1.25"),
    (f64::INFINITY, [0x43, 0x93, 0xc3], "above 1.25"),
];
const NO_FIGURE: [u8; 3] = [0x30, 0x30, 0x30];
const NO_PAIR: [u8; 3] = [0xc8, 0xc8, 0xc8];

/// A pair of a map: its place, and whether it is shown the other way round.
#[derive(Clone, Copy)]
struct Shown {
    place: usize,
    is_reverse: bool,
}

fn colour(standing: f64) -> [u8; 3] {
    let step = STEPS.iter().find(|(up_to, ..)| standing < *up_to);
    step.map_or(STEPS[STEPS.len() - 1].1, |(_, colour, _)| *colour)
}

fn hex([r, g, b]: [u8; 3]) -> String {
    format!("#{r:02x}{g:02x}{b:02x}")
}

/// Rows are clients, columns servers. Where a pair was measured one way only, both its fields show that.
pub(super) fn heat_map(fleet: &Fleet, ranks: &Ranks, main: usize) -> Markup {
    let machines = fleet.plan.endpoints.len();
    let mut map: Vec<Option<Shown>> = vec![None; machines * machines];
    for (place, pair) in fleet.pairs.iter().enumerate() {
        let [client, server] = pair.ends().map(usize::from);
        map[client * machines + server] = Some(Shown {
            place,
            is_reverse: false,
        });
        let back = &mut map[server * machines + client];
        back.get_or_insert(Shown {
            place,
            is_reverse: true,
        });
    }
    let at = ranks.main[main];
    let column = &fleet.columns[at];
    let median = ranks.medians[main];
    let value = |shown: &Shown| {
        fleet.outcomes[shown.place]
            .as_ref()?
            .figure(at)
            .map(|f| f.value)
    };
    let colour_of = |shown: &Option<Shown>| match shown {
        None => NO_PAIR,
        Some(shown) => {
            let standing = value(shown).and_then(|v| standing(column, v, median?));
            standing.map_or(NO_FIGURE, colour)
        }
    };
    let one_way = map.iter().flatten().any(|s| s.is_reverse);
    let title = format!("{} of each pair against the median", column.load);
    html! {
        figure {
            figcaption { (title) }
            @if machines <= FEW_MACHINES {
                (drawn(fleet, &map, &title, &colour_of, &|shown| {
                    let Some(shown) = shown else { return String::new() };
                    let [client, server] = fleet.pairs[shown.place].ends().map(|m| fleet.name(m));
                    let told = value(shown).map_or_else(|| "not measured".to_owned(), |v| with_unit(column, v));
                    format!("{client} → {server}: {told}")
                }))
            } @else {
                img.heat alt=(title) width=(machines) height=(machines)
                    src=(format!("data:image/png;base64,{}", STANDARD.encode(png(machines, map.iter().map(&colour_of)))));
            }
            p.notes {
                "Rows are clients, columns servers, in the order of the list."
                @if one_way { " A pair was measured one way; both its fields show that." }
            }
            (legend())
        }
    }
}

fn legend() -> Markup {
    let more = [(NO_FIGURE, "no figure"), (NO_PAIR, "no pair")];
    let steps = STEPS
        .iter()
        .map(|(_, colour, name)| (*colour, *name))
        .chain(more);
    html! {
        ul.facts { @for (colour, name) in steps { li {
            svg.swatch viewBox="0 0 10 10" aria-hidden="true" { rect width="10" height="10" fill=(hex(colour)) stroke="#888" {} }
            " " (name)
        } } }
    }
}

fn drawn(
    fleet: &Fleet,
    map: &[Option<Shown>],
    title: &str,
    colour: &dyn Fn(&Option<Shown>) -> [u8; 3],
    told: &dyn Fn(&Option<Shown>) -> String,
) -> Markup {
    const FIELD: usize = 16;
    let machines = fleet.plan.endpoints.len();
    let longest = fleet
        .plan
        .endpoints
        .iter()
        .map(|e| e.name.len())
        .max()
        .unwrap_or(0);
    let margin = 12 + longest.min(24) * 7;
    let size = margin + machines * FIELD + 4;
    let short = |name: &str| name.chars().take(24).collect::<String>();
    html! {
        svg viewBox=(format!("0 0 {size} {size}")) role="img" aria-label=(title) {
            @for (at, endpoint) in fleet.plan.endpoints.iter().enumerate() {
                @let middle = margin + at * FIELD + FIELD / 2 + 4;
                text x=(margin - 5) y=(middle) text-anchor="end" font-size="11" fill="currentColor" { (short(&endpoint.name)) }
                text transform=(format!("translate({middle} {}) rotate(-90)", margin - 5)) font-size="11" fill="currentColor" {
                    (short(&endpoint.name))
                }
            }
            @for (at, shown) in map.iter().enumerate() {
                @let (row, column) = (at / machines, at % machines);
                @if row != column {
                    rect x=(margin + column * FIELD) y=(margin + row * FIELD) width=(FIELD - 1) height=(FIELD - 1)
                        fill=(hex(colour(shown))) { title { (told(shown)) } }
                }
            }
        }
    }
}

/// How far from the median a picture of these logarithms of ratios reaches, and whether any lies farther out: at most one in a
/// hundred, since a single one at a tenth would leave all others in two bars.
fn reach(logs: &[f64]) -> (f64, bool) {
    const LEAST: f64 = 0.05;
    let mut distances: Vec<f64> = logs.iter().map(|log| log.abs()).collect();
    distances.sort_by(f64::total_cmp);
    let most = distances.get(distances.len() * 99 / 100);
    let reach = most.map_or(LEAST, |most| most.max(LEAST));
    let is_cut = distances.last().is_some_and(|last| *last > reach);
    (reach, is_cut)
}

/// How many pairs stand where against the median, in steps of equal ratio. What lies farther out than the picture reaches is in its
/// outermost bars.
pub(super) fn distribution(fleet: &Fleet, ranks: &Ranks, main: usize) -> Markup {
    const BINS: usize = 40;
    const WIDTH: f64 = 400.0;
    const HEIGHT: f64 = 150.0;
    let at = ranks.main[main];
    let column = &fleet.columns[at];
    let Some(median) = ranks.medians[main] else {
        return html! {};
    };
    let standings = fleet.outcomes.iter().flatten().filter_map(|o| o.figure(at));
    let logs: Vec<f64> = standings
        .filter_map(|f| standing(column, f.value, median))
        .filter(|s| *s > 0.0)
        .map(f64::ln)
        .collect();
    let (reach, is_cut) = reach(&logs);
    let mut bins = [0_usize; BINS];
    for log in &logs {
        let share = ((log + reach) / (2.0 * reach)).clamp(0.0, 1.0);
        bins[((share * BINS as f64) as usize).min(BINS - 1)] += 1;
    }
    let most = bins.iter().copied().max().unwrap_or(0).max(1);
    let width = WIDTH / BINS as f64;
    let middle = |bin: usize| ((bin as f64 + 0.5) / BINS as f64 * 2.0 - 1.0) * reach;
    let title = format!(
        "{}: how many pairs stand where against the median",
        column.load
    );
    html! {
        figure {
            figcaption { (title) }
            svg viewBox=(format!("-10 -14 {} {}", WIDTH + 20.0, HEIGHT + 36.0)) role="img" aria-label=(title) {
                @for (bin, count) in bins.iter().enumerate() {
                    @let tall = *count as f64 / most as f64 * HEIGHT;
                    @if *count > 0 {
                        rect x=(format!("{:.1}", bin as f64 * width)) y=(format!("{:.1}", HEIGHT - tall.max(1.0)))
                            width=(format!("{:.1}", width - 1.0)) height=(format!("{:.1}", tall.max(1.0)))
                            fill=(hex(colour(middle(bin).exp()))) stroke="#888" stroke-width="0.5" {
                            title { (count) " at " (format!("{:.2}×", middle(bin).exp())) }
                        }
                    }
                }
                line x1="0" x2=(WIDTH) y1=(HEIGHT) y2=(HEIGHT) stroke="currentColor" {}
                @for (x, anchor, log) in [(0.0, "start", -reach), (WIDTH / 2.0, "middle", 0.0), (WIDTH, "end", reach)] {
                    text x=(x) y=(HEIGHT + 16.0) text-anchor=(anchor) font-size="12" fill="currentColor" { (format!("{:.2}×", log.exp())) }
                }
                text x="0" y="-3" font-size="12" fill="currentColor" { (most) " pairs" }
            }
            p.notes {
                "Left of 1.00× is worse."
                @if is_cut { " The outermost bars also have the pairs that stand farther out, at most one in a hundred." }
            }
        }
    }
}

/// A square bitmap (PNG, ISO/IEC 15948): three bytes for each dot, row by row.
fn png(side: usize, dots: impl Iterator<Item = [u8; 3]>) -> Vec<u8> {
    let mut rows = Vec::with_capacity(side * (side * 3 + 1));
    for (at, dot) in dots.enumerate() {
        if at % side == 0 {
            // Each row names its filter: none.
            rows.push(0);
        }
        rows.extend(dot);
    }
    let mut packed = ZlibEncoder::new(Vec::new(), Compression::default());
    // Into memory, which takes all.
    let _written = packed.write_all(&rows);
    let packed = packed.finish().unwrap_or_default();
    let side = u32::try_from(side).unwrap_or(u32::MAX).to_be_bytes();
    let mut out = b"\x89PNG\r\n\x1a\n".to_vec();
    // Eight bits for each of red, green and blue.
    let head = [&side[..], &side, &[8, 2, 0, 0, 0]].concat();
    for (name, data) in [(b"IHDR", &head), (b"IDAT", &packed), (b"IEND", &Vec::new())] {
        out.extend(u32::try_from(data.len()).unwrap_or(u32::MAX).to_be_bytes());
        let mut sum = Crc::new();
        for part in [&name[..], data] {
            sum.update(part);
            out.extend(part);
        }
        out.extend(sum.sum().to_be_bytes());
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_pair_far_out_does_not_squeeze_the_others() {
        let mut logs: Vec<f64> = (0..200).map(|n| 0.002 * f64::from(n - 100)).collect();
        assert_eq!(reach(&logs), (0.198, true));
        logs.push(-2.3);
        assert_eq!(reach(&logs), (0.198, true));
        assert_eq!(reach(&[0.3, -0.1]), (0.3, false));
        assert_eq!(reach(&[0.01]), (0.05, false));
        assert_eq!(reach(&[]), (0.05, false));
    }

    #[test]
    fn a_bitmap_has_the_signature_and_sums_of_its_parts() {
        let bytes = png(2, [[1, 2, 3]; 4].into_iter());
        assert!(bytes.starts_with(b"\x89PNG\r\n\x1a\n\0\0\0\x0dIHDR\0\0\0\x02\0\0\0\x02\x08\x02"));
        // The sum of an empty IEND is known.
        assert!(bytes.ends_with(b"\0\0\0\0IEND\xae\x42\x60\x82"));
    }

    #[test]
    fn worse_is_red_and_better_is_blue() {
        assert_eq!(hex(colour(0.1)), "#b2182b");
        assert_eq!(hex(colour(1.0)), "#f7f7f7");
        assert_eq!(hex(colour(9.0)), "#4393c3");
    }
}
