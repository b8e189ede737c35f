use super::*;
use crate::plot::{Across, Curve, Curves, Line, Mark};

/// All texts of a picture.
fn texts(drawing: Drawing) -> Vec<String> {
    let picture = draw(&Plot::new("title", "ns", drawing)).unwrap();
    let texts = picture.inside.split("<text").skip(1);
    texts
        .map(|text| {
            let text = &text[text.find('>').unwrap() + 1..text.find("</text>").unwrap()];
            text.trim().to_owned()
        })
        .collect()
}

#[track_caller]
fn has_apart(texts: &[String], begin: &str, end: [&str; 2]) {
    for end in end {
        let own = |text: &&String| text.starts_with(begin) && text.ends_with(end);
        assert_eq!(texts.iter().filter(own).count(), 1, "{end}: {texts:?}");
    }
}

#[test]
fn names_that_differ_at_their_end_stay_different() {
    let curve = |name: &str| Curve {
        name: name.to_owned(),
        hue: 0,
        marks: vec![Some(Mark::lone(1.0)), Some(Mark::lone(2.0))],
        is_points: false,
    };
    let rulesets = ["old", "new"].map(|name| format!("/etc/nftables.d/{name}.nft"));
    let curves = texts(Drawing::Curves(Curves {
        across: Across::of("ruleset", rulesets.to_vec()),
        curves: vec![
            curve("veth-route · containers native"),
            curve("veth-route · containers own"),
        ],
        found: Vec::new(),
    }));
    has_apart(&curves, "veth-route · containers ", ["native", "own"]);
    has_apart(&curves, "/etc", ["old.nft", "new.nft"]);

    let names = ["on", "off"].map(|value| format!("direct · 64 B messages · offload {value}"));
    let line = |name: &String| Line {
        name: name.clone(),
        hue: 0,
        mark: Some(Mark::lone(1.0)),
    };
    let rows = texts(Drawing::Rows(names.iter().map(line).collect()));
    has_apart(&rows, "direct · 64 B messages · offload ", ["on", "off"]);

    let bar = |name: &String| (name.clone(), vec![1.0]);
    let bars = texts(Drawing::Stacks {
        parts: vec!["udp".to_owned()],
        bars: names.iter().map(bar).collect(),
    });
    has_apart(&bars, "direct · 64 B messages · offload ", ["on", "off"]);
}
