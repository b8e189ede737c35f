//! The page of `hopyard attach` in a real browser.

use std::path::Path;

use serde_json::Value;

use crate::support::browser::Browser;
use crate::support::cli::run;
use crate::support::plan::Room;

/// The page of eight blocks: the two that were measured, over and over.
pub(super) fn is_shown(room: &Room, mut document: Value) {
    let whole = &mut document["run"];
    whole["plan"]["blocks"] = 8.into();
    let measured = whole["visits"].as_array().unwrap().clone();
    let blocks = (0..8).flat_map(|block| {
        let own = measured.iter().filter(move |v| v["block"] == block % 2);
        own.cloned().map(move |mut visit| {
            visit["block"] = block.into();
            visit
        })
    });
    whole["visits"] = blocks.collect();
    let networks = whole["plan"]["networks"].as_array().unwrap().len();
    let kept = room.file("eight.json", document.to_string());
    let file = room.name("attach.html");
    let text = run(&["attach", "--from", &kept]);
    let wanted = ["--format", "html", "-o", &file];
    run(&[&["attach", "--from", &kept][..], &wanted].concat()).exits(0);
    let Some(mut browser) = Browser::start(room) else {
        return;
    };
    browser.open(Path::new(&file));
    let answer = browser.evaluate("document.querySelector('.answer').textContent");
    let answer = answer.as_str().unwrap();
    assert!(text.exits(0).stdout.starts_with(answer), "{answer}: {text}");
    // A picture, a table and a column of the matrix for each number of containers and of ADDs side by side.
    for (what, count) in [
        ("figure svg[role=img]", 4),
        ("table", 5),
        (".matrix thead th.number", 4),
        (".matrix tbody tr", 4 * (networks - 1)),
        ("figure circle", 4 * 2 * networks),
    ] {
        let found = browser.evaluate(&format!("document.querySelectorAll('{what}').length"));
        assert_eq!(found, count, "{what}");
    }
    for picture in browser.fits_any_screen() {
        assert!(picture.len() > 20_000, "an empty page?");
    }
    browser.is_quiet(Path::new(&file));
}
