//! What directories of claims keep, and how several of them are one evidence.

use std::time::Duration;

use super::*;
use crate::kept::{Asked, Place, evidence_from};

struct Quiet;

impl crate::run::Observer for Quiet {}

#[test]
fn of_two_runs_of_a_plan_the_first_counts() {
    let run = |id: &str, plan: &str| {
        let mut run = hand_made(&["veth"]);
        run.header.id = id.to_owned();
        run.header.plan = plan.to_owned();
        run
    };
    let mut evidence = Evidence::default();
    evidence.add(Evidence {
        runs: vec![run("thorough", "a")],
        asked: vec![vec!["PL1".to_owned()]],
        ..Evidence::default()
    });
    evidence.add(Evidence {
        runs: vec![run("quick", "a"), run("quick", "b")],
        asked: vec![Vec::new()],
        first_looks: ["a", "b"].map(str::to_owned).into(),
        ..Evidence::default()
    });
    let ids: Vec<&str> = evidence.runs.iter().map(|r| r.header.id.as_str()).collect();
    assert_eq!(ids, ["thorough", "quick"]);
    assert_eq!(evidence.first_looks, ["b".to_owned()].into());
    assert_eq!(evidence.asked.len(), 2);
}

#[test]
fn a_directory_is_opened_as_it_was_kept() {
    let home = tempfile::tempdir().unwrap();
    let at = home.path().join("claims");
    let mut asked = Asked::new(&["NM4".to_owned()], true);
    asked.time_limit = Some(Duration::from_secs(6));
    asked.seed = Some(7);
    let mut place = Place::create(&at, asked.clone()).unwrap();
    let taken = Place::create(&at, asked).unwrap_err().to_string();
    assert!(taken.contains("holds claims already"), "{taken}");
    place
        .asked
        .done
        .insert("deed".to_owned(), Err("no".to_owned()));
    place.keep().unwrap();
    let again = Place::open(&at).unwrap();
    assert_eq!(again.asked.time_limit, Some(Duration::from_secs(6)));
    assert_eq!((again.asked.seed, again.asked.quick), (Some(7), true));
    let evidence = evidence_from(std::slice::from_ref(&at)).unwrap();
    assert_eq!(evidence.done["deed"], Err("no".to_owned()));
    assert_eq!(evidence.asked, [["NM4".to_owned()]]);
    // Deeds of this machine and of another one do not answer together.
    place.asked.machine = Some(run::this_machine().unwrap());
    place.keep().unwrap();
    let elsewhere = home.path().join("elsewhere");
    let mut asked = Asked::new(&["NM6".to_owned()], true);
    asked.machine = place.asked.machine.clone();
    if let Some(machine) = &mut asked.machine {
        machine.kernel_release = "2.6.18".to_owned();
    }
    let mut other = Place::create(&elsewhere, asked).unwrap();
    let error = evidence_from(&[at.clone(), elsewhere]).unwrap_err();
    assert!(
        error.to_string().contains("on two machines (kernel `"),
        "{error}"
    );
    let refused = other.try_out(&Demand::default(), &mut Quiet).unwrap_err();
    assert!(chain(&refused).contains("2.6.18"), "{refused:?}");
    // Of a version before seeds and limits were kept, and of one to come.
    let file = at.join("claims.json");
    let old = r#"{ "schema": "hopyard/claims-store/1", "names": [], "quick": false }"#;
    std::fs::write(&file, old).unwrap();
    assert!(!Place::open(&at).unwrap().asked.in_guest);
    std::fs::write(&file, old.replace("store/1", "store/9")).unwrap();
    let error = Place::open(&at).unwrap_err().to_string();
    assert!(error.contains("hopyard/claims-store/9"), "{error}");
}
