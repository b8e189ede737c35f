//! The HTML report in a real browser.

use std::path::PathBuf;
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use flate2::read::GzDecoder;
use serde_json::{Value, json};

use crate::support::browser::Browser;
use crate::support::cli::run;
use crate::support::host::unharmed;
use crate::support::plan::{Room, measured, samples, without_steal};
use crate::support::{beside, tell};

/// Would be markup, the end of an attribute, and code, were it not for escaping.
const HOSTILE: &str =
    "</title><script>console.log(1)</script><img src=x onerror=alert(1)>\\\"'`&amp;";

/// CPU time of a browser that opens a page of 500 cells, all its processes together. 1.5 s were seen on a machine at rest, and
/// more than 2 s where others fill the CPUs' caches.
const OPENS_WITHIN: Duration = Duration::from_secs(4);

/// A small run with a sweep, and its page.
fn page(room: &Room, blocks: &str) -> PathBuf {
    measured(room, blocks, &["--set", "flows=1,2"]);
    without_steal(room);
    written(room, "page.html")
}

fn written(room: &Room, name: &str) -> PathBuf {
    let file = room.name(name);
    run(&["report", &room.name("run"), "--format", "html", "-o", &file]).exits(0);
    room.at(name)
}

/// Names in the run's header as somebody else could have written them.
fn make_hostile(room: &Room) {
    let header = room.at("run").join("run.json");
    let text = std::fs::read_to_string(&header).unwrap();
    let mut json: Value = serde_json::from_str(&text).unwrap();
    for key in [
        "/plan",
        "/id",
        "/environment/hostname",
        "/environment/cpu_model",
    ] {
        *json.pointer_mut(key).unwrap() = HOSTILE.into();
    }
    for cell in json["cells"].as_array_mut().unwrap() {
        if cell["cell"]["path"] == "bridge" {
            cell["cell"]["path"] = HOSTILE.into();
        }
    }
    std::fs::write(&header, json.to_string()).unwrap();
}

#[test]
fn a_browser_shows_it_on_any_screen() {
    let _beside = beside();
    unharmed(|| {
        let room = Room::new();
        let file = page(&room, "8");
        let Some(mut browser) = Browser::start(&room) else {
            return;
        };
        browser.open(&file);
        structure(&mut browser);
        names(&mut browser);
        let pictures = browser.fits_any_screen();
        for (place, picture) in pictures.iter().enumerate() {
            assert!(picture.len() > 20_000, "an empty page?");
            assert!(
                !pictures[..place].contains(picture),
                "light and dark look the same"
            );
        }
        let paper = browser.call("Page.printToPDF", &json!({}))["data"]
            .as_str()
            .unwrap()
            .len();
        assert!(paper > 20_000);
        data(&mut browser, samples(&room));
        sorting(&mut browser);
        browser.is_quiet(&file);
        crowd(&mut browser, &room);
        matrix(&mut browser, &room);
    });
}

/// Headings in order, tables with captions and scopes, a link past the contents first.
fn structure(browser: &mut Browser) {
    let levels =
        browser.evaluate("[...document.querySelectorAll('h1,h2,h3,h4')].map(h => +h.tagName[1])");
    let levels: Vec<u64> = serde_json::from_value(levels).unwrap();
    assert_eq!(
        levels.iter().filter(|level| **level == 1).count(),
        1,
        "{levels:?}"
    );
    assert_eq!(levels[0], 1);
    assert!(
        levels.windows(2).all(|pair| pair[1] <= pair[0] + 1),
        "{levels:?}"
    );
    // Transactions and CPU cost by flows, the quantiles at both numbers of flows, the devices, what the paths offer, the
    // environment.
    assert_eq!(
        browser.evaluate("document.querySelectorAll('table').length"),
        7
    );
    let bad = "[...document.querySelectorAll('table')].filter(t => !t.caption || !t.caption.textContent.trim() \
               || [...t.querySelectorAll('th')].some(h => !['row', 'col'].includes(h.scope))).length";
    assert_eq!(browser.evaluate(bad), 0);
    assert_eq!(
        browser.evaluate("document.querySelectorAll('figure svg[role=img]').length"),
        4
    );
    // The one that sorts.
    assert_eq!(browser.evaluate("document.scripts.length"), 1);
    browser.press("Tab");
    assert_eq!(
        browser.evaluate("document.activeElement.getAttribute('href')"),
        "#content"
    );
    let lost = "[...document.querySelectorAll('a[href^=\"#\"]')].filter(a => \
                !document.getElementById(a.getAttribute('href').slice(1))).length";
    assert_eq!(browser.evaluate(lost), 0);
}

/// What a screen reader would say of pictures, tables, links and what scrolls.
fn names(browser: &mut Browser) {
    let tree = browser.call("Accessibility.getFullAXTree", &json!({}));
    let mut seen = std::collections::BTreeMap::new();
    for node in tree["nodes"].as_array().unwrap() {
        let role = node["role"]["value"].as_str().unwrap_or_default();
        if [
            "image",
            "img",
            "table",
            "link",
            "region",
            "navigation",
            "button",
        ]
        .contains(&role)
        {
            let name = node["name"]["value"].as_str().unwrap_or_default();
            assert!(!name.trim().is_empty(), "{node:#}");
            *seen.entry(role.to_owned()).or_insert(0) += 1;
        }
    }
    for role in ["table", "link", "region", "navigation", "button"] {
        assert!(seen.contains_key(role), "{seen:?}");
    }
    assert_eq!(seen.get("image").or(seen.get("img")), Some(&4), "{seen:?}");
}

/// A table by the keyboard alone: by value, rising, falling, and as it was.
fn sorting(browser: &mut Browser) {
    let columns = "[...document.querySelectorAll('table.sortable')].map(t => \
                   [t.tHead.rows[0].cells.length, t.querySelectorAll('th[scope=col] button').length])";
    for pair in browser.evaluate(columns).as_array().unwrap() {
        assert_eq!(pair[0], pair[1], "a heading that does not sort");
    }
    // From the end of the contents to the first heading, and to the one of a path beside it.
    for _ in 0..60 {
        if browser.evaluate("document.activeElement.closest('th') !== null") == true {
            break;
        }
        browser.press("Tab");
    }
    browser.press("Tab");
    let outline = "(s => s.outlineStyle !== 'none' && parseFloat(s.outlineWidth) >= 2)(getComputedStyle(document.activeElement))";
    assert_eq!(browser.evaluate(outline), true, "focus cannot be seen");
    let plan = order(browser);
    let mut rising = plan.clone();
    rising.sort_by(f64::total_cmp);
    let falling: Vec<f64> = rising.iter().rev().copied().collect();
    for (key, sorted, values) in [
        ("Enter", json!("ascending"), &rising),
        (" ", json!("descending"), &falling),
        ("Enter", json!(null), &plan),
    ] {
        browser.press(key);
        assert_eq!(
            browser.evaluate("document.activeElement.closest('th').getAttribute('aria-sort')"),
            sorted
        );
        assert_eq!(order(browser), *values, "{sorted}");
    }
}

/// The values of the column of which the heading has the focus.
fn order(browser: &mut Browser) -> Vec<f64> {
    let script = "(th => [...th.closest('table').tBodies[0].rows].map(row => \
                  Number(row.cells[th.cellIndex].dataset.value)))(document.activeElement.closest('th'))";
    serde_json::from_value(browser.evaluate(script)).unwrap()
}

/// The page of a run with as many cells as few have opens at once, and is not large for what it holds.
fn crowd(browser: &mut Browser, room: &Room) {
    let run = hopyard::store::load(&room.at("run")).unwrap();
    let mut report = hopyard::assess::assess(&run);
    let observations = hopyard::assess::observations(&run);
    let times = 125;
    report.cells = many(&report.cells, times, |cell, size| {
        cell.axes.request_size_bytes = Some(size);
    });
    let observations = many(&observations, times, |seen, size| {
        seen.cell.axes.request_size_bytes = Some(size);
    });
    assert_eq!(report.cells.len(), 500);
    let html = hopyard::report::export("html").unwrap();
    let page = html.render(&report, &observations).unwrap();
    assert!(page.len() < 10_000_000, "{} bytes", page.len());
    let file = room.at("crowd.html");
    std::fs::write(&file, page).unwrap();
    browser.show(1280, "light");
    let before = browser.cpu_time();
    browser.open(&file);
    assert_eq!(
        browser.evaluate("document.querySelectorAll('tbody tr').length > 500"),
        true
    );
    // The answer waits until all is laid out.
    browser.evaluate("document.body.getBoundingClientRect().height");
    let taken = browser.cpu_time().saturating_sub(before);
    tell(&format!(
        "a page of 500 cells takes {taken:.2?} of CPU time"
    ));
    assert!(taken > Duration::ZERO && taken < OPENS_WITHIN, "{taken:?}");
}

/// All comparisons of two loads in one table, on any screen: each has a sign beside its colour, and the sentence stands first.
fn matrix(browser: &mut Browser, room: &Room) {
    let run = hopyard::store::load(&room.at("run")).unwrap();
    let mut report = hopyard::assess::assess(&run);
    report.cells.retain(|cell| cell.axes.flows == 1);
    let mut second = report.cells.clone();
    for cell in &mut second {
        cell.load = hopyard::model::LoadKind::UdpRr;
    }
    report.cells.extend(second);
    for cell in &mut report.cells {
        if cell.path == "bridge" {
            cell.path = "bridge-whose-name-is-longer-than-a-telephone-is-wide".to_owned();
        }
    }
    let html = hopyard::report::export("html").unwrap();
    let page = html.render(&report, &[]).unwrap();
    let file = room.at("matrix.html");
    std::fs::write(&file, page).unwrap();
    browser.open(&file);
    let shape = "(t => [t.tHead.rows[0].cells.length, t.tBodies[0].rows.length])(document.querySelector('.matrix table'))";
    assert_eq!(browser.evaluate(shape), json!([3, 2]));
    let unsigned = "[...document.querySelectorAll('.matrix td span:not(.heard)')].filter(s => !/[≠=?]/.test(s.textContent)).length";
    assert_eq!(browser.evaluate(unsigned), 0);
    // Rate and cost under both loads.
    assert_eq!(
        browser.evaluate("document.querySelectorAll('.matrix td span:not(.heard)').length"),
        4
    );
    let first = "document.querySelector('main').firstElementChild.className";
    assert_eq!(browser.evaluate(first), "answer");
    browser.fits_any_screen();
    // The names stay in place while the rest scrolls, and leave room for it.
    let names = "document.querySelector('.matrix tbody th').offsetWidth / innerWidth";
    let share = browser.evaluate(names).as_f64().unwrap();
    assert!(share <= 0.41, "{share} of the window");
}

/// Each of them at so many sizes.
fn many<T: Clone>(these: &[T], times: u32, set: impl Fn(&mut T, u32)) -> Vec<T> {
    let mut all = Vec::new();
    for size in 1..=times {
        for one in these {
            let mut one = one.clone();
            set(&mut one, size);
            all.push(one);
        }
    }
    all
}

/// What can be taken home reads as what it is called.
fn data(browser: &mut Browser, samples: usize) {
    let script = "(() => { const [json, csv] = [...document.querySelectorAll('a[download]')].map(a => a.href); \
                  return {document: json.split(',')[1], \
                  rows: decodeURIComponent(csv.slice(csv.indexOf(',') + 1)).trim().split('\\n').length}; })()";
    let data = browser.evaluate(script);
    let packed = STANDARD.decode(data["document"].as_str().unwrap()).unwrap();
    let document: Value = serde_json::from_reader(GzDecoder::new(&*packed)).unwrap();
    assert_eq!(document["schema"], "hopyard/run/1");
    assert_eq!(document["cells"].as_array().unwrap().len(), 4);
    // A row for the names of the columns.
    assert_eq!(data["rows"], samples + 1);
}

#[test]
fn hostile_names_are_text() {
    let _beside = beside();
    let room = Room::new();
    page(&room, "2");
    make_hostile(&room);
    let file = written(&room, "hostile.html");
    let Some(mut browser) = Browser::start(&room) else {
        return;
    };
    browser.open(&file);
    assert_eq!(
        browser.evaluate("document.querySelectorAll('body > script').length"),
        1
    );
    assert_eq!(
        browser.evaluate("document.querySelectorAll(':not(body) > script, img, [onerror]').length"),
        0
    );
    let shown = browser
        .evaluate("[...document.querySelectorAll('th')].map(th => th.textContent).join('|')");
    assert!(
        shown
            .as_str()
            .unwrap()
            .contains("<script>console.log(1)</script>"),
        "{shown}"
    );
    browser.is_quiet(&file);
}
