//! The files that come along, and what is wrong with others.

use super::*;

/// Every claim and question of the reports, by prefix: how many there are.
const ALL: [(&str, usize, usize); 5] = [
    ("NM", 11, 4),
    ("MQ", 17, 7),
    ("NS", 13, 6),
    ("ND", 13, 6),
    ("PL", 15, 6),
];

#[test]
fn every_claim_and_question_is_there_once() {
    let reports = reports().unwrap();
    assert_eq!(reports.len(), ALL.len());
    let mut all = 0;
    for (report, (prefix, claims, questions)) in reports.iter().zip(ALL) {
        let ids: Vec<&str> = report.claims.iter().map(|c| c.id.as_str()).collect();
        let right: Vec<String> = (1..=claims).map(|n| format!("{prefix}{n}")).collect();
        assert_eq!(ids, right);
        let ids: Vec<&str> = report.questions.iter().map(|q| q.id.as_str()).collect();
        let right: Vec<String> = (1..=questions).map(|n| format!("{prefix}-Q{n}")).collect();
        assert_eq!(ids, right);
        all += claims;
        for claim in &report.claims {
            for text in [
                &claim.statement,
                &claim.measure,
                &claim.rule,
                &claim.published,
            ] {
                assert!(!text.is_empty(), "{}", claim.id);
            }
            assert!(!claim.places.is_empty(), "{}", claim.id);
        }
        assert!(!report.source.is_empty());
    }
    assert_eq!(all, 69);
}

/// A check whose cells no plan has would be "cannot be tested" for ever.
#[test]
fn every_check_has_cells_in_its_plan() {
    for report in reports().unwrap() {
        for claim in report.claims.iter().chain(&report.asked) {
            let of_cells = claim.measured().filter(|check| check.of_cells().is_some());
            for check in of_cells {
                let name = check.plan.as_deref().unwrap_or(&report.plan);
                let cells = cells_without_a_host(&plan::find(name).unwrap());
                let pairs = demand::pairs(check, &cells);
                assert!(!pairs.is_empty(), "{} in plan {name}: {check:?}", claim.id);
                if let Some(given) = &check.given {
                    let pairs = demand::pairs(&given.check, &cells);
                    assert!(!pairs.is_empty(), "{}", claim.id);
                }
            }
            for (plan, kept) in &report.quick {
                let cells = cells_without_a_host(&plan::find(plan).unwrap());
                assert!(cells.iter().any(|cell| kept.allows(cell)), "{plan}");
            }
        }
    }
}

/// Claims run single cells: each must come back as itself.
#[test]
fn a_part_that_is_one_cell_expands_to_it() {
    let mut expanded = 0;
    for (file, text) in plan::PLANS {
        let mut plan = plan::parse(file, text).unwrap();
        if !plan
            .parts
            .iter()
            .all(|part| matches!(part.paths, Paths::Named(_)))
        {
            continue;
        }
        let cells = cells_without_a_host(&plan);
        for cell in cells.iter().filter(|cell| {
            let path = crate::lab::path(&cell.path).unwrap();
            // Not every host hands control groups the controller that an axis needs.
            path.available().is_ok() && path.available_with(&cell.axes).is_ok()
        }) {
            plan.parts = vec![demand::part(cell)];
            assert_eq!(
                plan::expand(&plan).unwrap().cells,
                std::slice::from_ref(cell),
                "{file}"
            );
            expanded += 1;
        }
    }
    assert!(expanded > 0);
}

#[test]
fn names_that_there_are_not_list_those_that_there_are() {
    let reports = reports().unwrap();
    let error = choose(reports, &["NM99".to_owned()])
        .unwrap_err()
        .to_string();
    assert_eq!(
        error,
        "there is no claim or report `NM99`: choose NM1 to NM11 (netns-macvlan-2007), MQ1 to MQ17 (multiqueue-tap-2011), NS1 to NS13 (namespace-switching-2014), ND1 to ND13 (netback-direct-2006), PL1 to PL15 (planetlab-containers-2007)"
    );
    let two = choose(
        reports,
        &["ns1".to_owned(), "netback-direct-2006".to_owned()],
    )
    .unwrap();
    assert_eq!(two.len(), 14);
    assert_eq!(two[0].claim.id, "NS1");
    assert_eq!(choose(reports, &[]).unwrap().len(), 69);
}

fn wrong(check: &str) -> String {
    let text = format!(
        "report = \"r\"\ntitle = \"t\"\nsource = \"s\"\nplan = \"p\"\n[[claim]]\nid = \"X1\"\nstatement = \"s\"\n\
         measure = \"m\"\nrule = \"r\"\npublished = \"p\"\nwhere = [\"HOST\"]\n{check}"
    );
    parse("mine.toml", &text).unwrap_err().to_string()
}

#[test]
fn wrong_files_say_what_is_wrong() {
    for (check, words) in [
        ("", &["X1: neither a check nor what is missing"][..]),
        (
            "colour = 1\n",
            &["mine.toml", "unknown field `colour`", "line 12"][..],
        ),
        (
            "[[claim.check]]\njudge = \"guess\"\n",
            &["unknown variant `guess`", "ratio"][..],
        ),
        (
            "[[claim.check]]\njudge = \"level\"\nat_least = 1.0\ncells = {}\n",
            &["needs `quantity`"][..],
        ),
        (
            "[[claim.check]]\njudge = \"level\"\nquantity = \"rate\"\ncells = {}\n",
            &["no bound: set `at_least`, `at_most` or both"][..],
        ),
        (
            "[[claim.check]]\njudge = \"level\"\nquantity = \"rate\"\ncells = {}\nat_most = nan\n",
            &["NaN is neither a bound nor a figure"][..],
        ),
        (
            "[[claim.check]]\njudge = \"level\"\nquantity = \"rate\"\ncells = {}\nat_most = 1.0\npublished = [{ cells = {}, value = inf }]\n",
            &["inf is neither a bound nor a figure"][..],
        ),
        (
            "[[claim.check]]\njudge = \"level\"\nquantity = \"rate\"\ncells = {}\nat_most = 1.0\nat_least = 2.0\n",
            &["nothing is at least 2 and at most 1"][..],
        ),
        (
            "[[claim.check]]\njudge = \"level\"\nquantity = \"speed\"\ncells = {}\nat_most = 1.0\n",
            &["there is no quantity `speed`", "goodput_bps", "rate, cost"][..],
        ),
        (
            "[[claim.check]]\njudge = \"level\"\nquantity = \"rate\"\ncells = { path = \"wormhole\" }\nat_most = 1.0\n",
            &["there is no path `wormhole`"][..],
        ),
        (
            "[[claim.check]]\njudge = \"level\"\nquantity = \"rate\"\ncells = { flows = 0 }\nat_most = 1.0\n",
            &["flows: `0` is out of bounds"][..],
        ),
        (
            "[[claim.check]]\njudge = \"ratio\"\nquantity = \"rate\"\ncells = {}\nto = [\"moon\"]\nat_most = 1.0\n",
            &["there is no path `moon`"][..],
        ),
        (
            "[[claim.check]]\njudge = \"level\"\nquantity = \"rate\"\ncells = {}\nat_most = 1.0\npublished = [{ cell = {}, value = 1.0 }]\n",
            &["unknown field `cell`", "line 17"][..],
        ),
        (
            "[[claim.check]]\njudge = \"level\"\nquantity = \"rate\"\ncells = {}\nat_most = 1.0\npublished = [{ cells = { flow = 1 }, value = 1.0 }]\n",
            &["there is no axis `flow`"][..],
        ),
        (
            "[[claim.check]]\njudge = \"level\"\nquantity = \"rate\"\ncells = {}\nat_most = 1.0\npublished = \"1\"\n",
            &["expected a figure, or a list of { cells = { … }, value = … }"][..],
        ),
        (
            "[[claim.check]]\njudge = \"peak\"\nquantity = \"rate\"\ncells = {}\naxis = \"flows\"\nlast = 2\nat_most = 1.0\nmean_over = [\"flows\"]\n",
            &["this judge takes no `mean_over`: ratio and level do"][..],
        ),
        (
            "[[claim.check]]\njudge = \"peak\"\nquantity = \"rate\"\ncells = {}\naxis = \"flows\"\nlast = 2\nat_most = 1.0\ngeometric = true\n",
            &["this judge takes no `geometric`: level does"][..],
        ),
        (
            "[[claim.check]]\njudge = \"does\"\ndoes = \"rule-stops-bridge\"\ncpus = 4\n",
            &["this judge takes no `cpus`: those of cells do"][..],
        ),
        (
            "[[claim.check]]\njudge = \"level\"\nquantity = \"rate\"\ncells = {}\nat_most = 1.0\ngrade = { called = \"Clearly\" }\n",
            &["a grade is `called` something, and has a bound"][..],
        ),
        (
            "[[claim.check]]\njudge = \"level\"\nquantity = \"rate\"\ncells = {}\nat_most = 1.0\ngrade = { called = \"Clearly\", at_most = nan }\n",
            &["is neither a bound nor a figure"][..],
        ),
        (
            "[[claim.check]]\njudge = \"level\"\nquantity = \"rate\"\ncells = {}\nat_most = 1.0\nbeyond = true\n",
            &["`beyond` takes `at_least` and `at_most`"][..],
        ),
        (
            "[[claim.check]]\njudge = \"level\"\nquantity = \"rate\"\ncells = {}\nat_most = 1.0\ngiven = { quantity = \"rate\", cells = {}, otherwise = \"no\" }\n",
            &["`given` has no bound"][..],
        ),
        (
            "[[claim.check]]\njudge = \"level\"\nquantity = \"rate\"\ncells = {}\nat_most = 1.0\nto_quantity = \"cost\"\n",
            &["this judge takes no `to_quantity`: ratio does"][..],
        ),
        (
            "[[claim.check]]\njudge = \"corrected\"\nquantity = \"rate\"\ncells = {}\nto = [\"veth\"]\nat_most = 1.0\n",
            &["needs `less`"][..],
        ),
        (
            "[[claim.check]]\njudge = \"level\"\nquantity = \"rate\"\ncells = {}\nat_most = 1.0\nsays = { inside = \"i\", outside = \"o\", across = \"a\" }\n",
            &["a rule takes no `says`"][..],
        ),
        (
            "missing = \"m\"\n[[question]]\nid = \"X-Q1\"\nquestion = \"q\"\nmethod = \"a\"\n",
            &["X-Q1: neither a figure nor what is missing"][..],
        ),
        (
            "missing = \"m\"\n[[question]]\nid = \"X-Q1\"\nquestion = \"q\"\nmethod = \"a\"\n[[question.figure]]\njudge = \"level\"\nquantity = \"rate\"\ncells = {}\nsays = { inside = \"i\", outside = \"o\", across = \"a\" }\n",
            &["`says` takes `at_least`, `at_most` or both"][..],
        ),
        (
            "[[claim.check]]\njudge = \"does\"\ndoes = \"fly\"\n",
            &["there is no deed `fly`"][..],
        ),
        (
            "[[claim.check]]\njudge = \"level\"\nquantity = \"share nothing\"\ncells = {}\nat_most = 1.0\n",
            &["there is no subsystem `nothing`"][..],
        ),
    ] {
        let error = wrong(check);
        for word in words {
            assert!(error.contains(word), "{word}: {error}");
        }
    }
}

const NS: &str = "namespace-switching-2014";

/// What these claims need of the plan of their report, on a machine with so many CPUs: why it is not run, and how many claims it judges.
fn needed(ids: &[&str], cpus: u32) -> (Option<String>, u32) {
    let names: Vec<String> = ids.iter().map(|id| (*id).to_owned()).collect();
    let chosen = choose(reports().unwrap(), &names).unwrap();
    let lacks = |path: &str| ["veth", "ovs-internal"].contains(&path);
    let lacking = |path: &str| lacks(path).then(|| "no module".to_owned());
    let host = demand::Host {
        cpus,
        lacking: &lacking,
    };
    let (demand, by_plan) = demand::sort_by_plan(&chosen, false, &host);
    let claims = by_plan.get(NS).map_or(0, |all| demand::count_claims(all));
    (demand.not_run.get(NS).cloned(), claims)
}

/// Nothing is measured of a plan if all that it is asked for is about more CPUs than there are.
#[test]
fn nothing_is_measured_of_what_takes_more_cpus() {
    // Of the paths that are missing, those that are asked for are said, once.
    let said = "it is about 4 CPUs or more, and this machine has 2; veth: no module".to_owned();
    assert_eq!(needed(&["NS10", "NS12"], 2), (Some(said), 0));
    assert_eq!(needed(&["NS10", "NS12"], 4), (None, 2));
    assert_eq!(needed(&["NS10", "NS12"], u32::MAX), (None, 2));
}

/// A plan's share of time goes by the claims that it can judge here.
#[test]
fn claims_about_more_cpus_take_no_time_from_others() {
    // NS13 is about any number of CPUs.
    assert_eq!(needed(&["NS10", "NS12", "NS13"], 2), (None, 1));
    assert_eq!(needed(&["NS10", "NS12", "NS13"], 4), (None, 3));
}
