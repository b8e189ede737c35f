use super::*;
use crate::model::axis;

fn with(line: &str, instead: &str) -> String {
    let text = super::super::PLANS[0].1;
    assert!(text.contains(line));
    parse("my.toml", &text.replace(line, instead))
        .unwrap_err()
        .to_string()
}

#[test]
fn a_wrong_key_names_file_line_and_key() {
    insta::assert_snapshot!(with("peers = [", "colour = [\"red\"]\npeers = ["), @r#"
    my.toml: TOML parse error at line 6, column 1
      |
    6 | colour = ["red"]
      | ^^^^^^
    unknown field `colour`, expected one of `name`, `summary`, `paths`, `peers`, `loads`, `set`, `cells`, `base`, `window`, `warm_up`, `profile_window`, `blocks`, `half_width`, `confidence`, `margin`, `time_limit`, `turns`, `where_installed`, `endpoint`, `published`
    "#);
}

#[test]
fn a_wrong_value_names_file_line_and_key() {
    assert_eq!(
        with("\"200ms\"", "\"200\""),
        "my.toml:9: window: `200` is not a time: write a time with its unit as in 300ms, 1s, 2m or 8m30s"
    );
    assert_eq!(
        with("\"200ms\"", "\"1ms\""),
        "my.toml:9: window: a window of 1ms is out of bounds: from 50ms to 10m"
    );
}

#[test]
fn blocks_are_a_range_or_a_number() {
    let text = super::super::PLANS[0].1;
    let line = text
        .lines()
        .find(|line| line.starts_with("blocks = "))
        .unwrap();
    for (written, blocks) in [("\"8..9\"", (8, 9)), ("\"8\"", (8, 8)), ("8", (8, 8))] {
        let plan = parse(
            "my.toml",
            &text.replace(line, &format!("blocks = {written}")),
        );
        let found = plan.unwrap().blocks;
        assert_eq!((found.min, found.max), blocks, "{written}");
    }
    for wrong in ["0", "-1", "1.5", "true"] {
        let error = with(line, &format!("blocks = {wrong}"));
        assert!(error.starts_with("my.toml:11: blocks: "), "{error}");
    }
}

#[test]
fn what_nothing_can_reach_names_file_line_and_key() {
    let said = |line: &str, instead: &str| with(line, instead).replace('\n', " ");
    assert!(
        said("half_width = \"2.5%\"", "half_width = \"0%\"").starts_with(
            "my.toml:12: half_width: `0%` is not a half-width: write a share above 0%"
        )
    );
    assert!(
        said("margin = \"2%\"", "margin = \"0%\"")
            .starts_with("my.toml:14: margin: `0%` is not a margin: write a share above 0%")
    );
    for limit in ["0s", "499ms"] {
        let error = time_limit(limit).unwrap_err();
        assert_eq!(
            error,
            format!(
                "a time limit of {limit} is out of bounds: from 500ms, since less measures nothing"
            )
        );
    }
    assert_eq!(time_limit("500ms"), Ok(Duration::from_millis(500)));
}

#[test]
fn a_warm_up_may_be_none_but_not_endless() {
    assert_eq!(warm_up("0s"), Ok(Duration::ZERO));
    assert_eq!(
        warm_up("2h").unwrap_err(),
        "a warm-up of 2h is out of bounds: from 0s to 10m"
    );
}

#[test]
fn a_profile_may_have_windows_of_its_own_length() {
    let text = super::super::PLANS[0].1;
    let parsed = |profile: &str| {
        let line = format!("profile_window = \"{profile}\"\nblocks = ");
        parse("my.toml", &text.replacen("blocks = ", &line, 1))
    };
    assert_eq!(parse("my.toml", text).unwrap().profile_window, None);
    let two = Some(Duration::from_secs(2));
    assert_eq!(parsed("2s").unwrap().profile_window, two);
    for length in ["499ms", "5001ms"] {
        let error = parsed(length).unwrap_err().to_string();
        let why = format!(
            "profile_window: a profile's window of {length} is out of bounds: from 500ms to 5s"
        );
        assert!(error.contains(&why), "{error}");
    }
}

#[test]
fn unknown_names_and_axes() {
    assert!(
        with("\"tcp_rr\"", "\"tcp_rrr\"")
            .starts_with("my.toml:7: loads: there is no load `tcp_rrr`")
    );
    assert!(with("\"all\"", "\"alle\"").starts_with("my.toml:5: paths: there is no path `alle`"));
    let text = format!("{}\n[set]\nflows = [1, 9999]\n", super::super::PLANS[0].1);
    assert_eq!(
        parse("my.toml", &text).unwrap_err().to_string(),
        "my.toml:18: flows: `9999` is out of bounds: flows goes from 1 to 1000"
    );
}

#[test]
fn cells_of_their_own_take_the_rest_from_the_top() {
    let text = format!(
        "{}\n[set]\nflows = 2\nmtu = 9000\n\n[[cells]]\npaths = [\"veth\"]\nset = {{ flows = [1, 4] }}\n\n\
         [[cells]]\nloads = [\"tcp_rr\"]\n",
        super::super::PLANS[0].1
    );
    let plan = parse("my.toml", &text).unwrap();
    let value = |part: &Part, axis: &str| {
        let set = part.set.iter().find(|(name, _)| name == axis);
        set.map(|(_, values)| values.join(","))
    };
    let [first, second] = &plan.parts[..] else {
        panic!("{:?}", plan.parts);
    };
    assert_eq!(first.paths, Paths::from_names(&["veth".to_owned()]));
    assert_eq!(value(first, "flows").as_deref(), Some("1,4"));
    assert_eq!(value(first, "mtu").as_deref(), Some("9000"));
    assert_eq!(
        (second.loads.as_slice(), second.paths.clone()),
        (&[LoadKind::TcpRr][..], Paths::All(Vec::new()))
    );
    assert_eq!(value(second, "flows").as_deref(), Some("2"));
    let wrong = text.replace("loads = [\"tcp_rr\"]", "loads = [\"tcp_rrr\"]");
    let error = parse("my.toml", &wrong).unwrap_err().to_string();
    assert!(
        error.starts_with("my.toml:26: loads: there is no load `tcp_rrr`"),
        "{error}"
    );
    // The same key is right at the top.
    let wrong = text.replace("flows = [1, 4]", "flows = [1, 0]");
    let error = parse("my.toml", &wrong).unwrap_err().to_string();
    assert!(error.starts_with("my.toml:23: flows: "), "{error}");
}

/// Switches of several devices are one axis, of which a part may name some.
#[test]
fn a_part_keeps_the_switches_of_devices_that_it_does_not_name() {
    let set = |own: &str| {
        let text = format!(
            "{}\n[set]\n\"gro@hub/br0\" = \"off\"\n\"tso@a/eth0\" = \"on\"\n\n[[cells]]\nset = {{ {own} }}\n",
            super::super::PLANS[0].1
        );
        let plan = parse("my.toml", &text).unwrap();
        let mut set = plan.parts[0].set.iter();
        let (_, values) = set.find(|(name, _)| name == "device_offload").unwrap();
        values.clone()
    };
    let switched = |text: &str| text.parse::<crate::model::DeviceOffloads>().unwrap();
    let is = |own: &str, wanted: &str| {
        let values = set(own);
        assert_eq!(values.len(), 1, "{values:?}");
        assert_eq!(switched(&values[0]), switched(wanted), "{own}");
    };
    is("flows = 2", "gro@hub/br0=off+tso@a/eth0=on");
    is("\"tso@a/eth0\" = \"off\"", "gro@hub/br0=off+tso@a/eth0=off");
    is(
        "\"gso@b/eth0\" = \"off\"",
        "gro@hub/br0=off+tso@a/eth0=on+gso@b/eth0=off",
    );
    is("device_offload = \"none\"", "none");
}

#[test]
fn sets_take_numbers_texts_and_lists() {
    let text = format!(
        "{}\n[set]\nflows = [1, 4]\nmtu = 9000\nrate = \"1gbit\"\n",
        super::super::PLANS[0].1
    );
    let plan = parse("my.toml", &text).unwrap();
    let set = &plan.parts[0].set;
    assert_eq!(set.len(), 3);
    assert!(set.contains(&("flows".to_owned(), vec!["1".to_owned(), "4".to_owned()])));
}

#[test]
fn a_published_figure_is_a_number() {
    for number in ["nan", "-inf"] {
        let text = format!(
            "{}\n[[published]]\nsource = \"s\"\nquantity = \"goodput_bps\"\nwhat = \"w\"\nremark = \"r\"\nfigures = [\n\
             {{ path = \"veth\", load = \"tcp_stream\", called = \"c\", value = {number} }},\n]\n",
            super::super::PLANS[0].1
        );
        let error = parse("my.toml", &text).unwrap_err().to_string();
        let words = "my.toml:23: figures: a figure that is no number: write what was published, or leave it out";
        assert_eq!(error, words);
    }
}

/// The example that the docs have of a plan.
#[test]
fn the_documented_plan_is_one() {
    let page = include_str!("../../../../../docs/plans.md");
    let text = page
        .split("```")
        .find_map(|block| block.strip_prefix("toml\n"));
    let plan = parse("docs/plans.md", text.unwrap()).unwrap();
    assert_eq!(
        (plan.name.as_str(), plan.parts.len()),
        ("small-and-large", 2)
    );
    // What the second part sets itself is of its load.
    let [first, second] = &plan.parts[..] else {
        unreachable!()
    };
    let (load, peer) = (second.loads[0], second.peers[0]);
    let mut own = second.set.iter().filter(|one| !first.set.contains(one));
    let is_of_load = |name: &str| axis(name).unwrap().applies(load, peer, &[]);
    assert!(own.clone().count() > 0 && own.all(|(name, _)| is_of_load(name)));
    // Each key of the table is one that plans have, and none is missing in it.
    let row = |line: &'static str| {
        line.strip_prefix("| `")?
            .split_once(" |")
            .map(|(keys, _)| keys)
    };
    let keys: String = page.lines().filter_map(row).collect::<Vec<_>>().join(" ");
    for key in [
        "name",
        "summary",
        "paths",
        "peers",
        "loads",
        "[set]",
        "[[cells]]",
        "base",
        "window",
        "warm_up",
        "blocks",
        "half_width",
        "confidence",
        "margin",
        "time_limit",
        "turns",
        "profile_window",
        "where_installed",
        "[endpoint.client]",
        "[[published]]",
    ] {
        assert!(keys.contains(key), "{key} is missing in: {keys}");
    }
}
