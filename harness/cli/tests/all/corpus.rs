//! Every embedded test has its expected verdict, and every answer is valid under the schemas.

use std::collections::BTreeSet;

use crate::common::{Ran, assert_valid, schemas, vk_litmus};

#[test]
fn corpus_tests_have_their_expected_verdicts() {
    let ran = Ran::run(&mut vk_litmus(["check", "--format", "json"]));
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let lines = ran.json_lines();
    assert!(lines.len() >= 60, "{} tests", lines.len());
    let ids: BTreeSet<&str> = lines.iter().map(|line| line["id"].as_str().unwrap()).collect();
    assert_eq!(ids.len(), lines.len(), "ids are unique");
    let files: Vec<&str> = lines.iter().map(|line| line["file"].as_str().unwrap()).collect();
    assert!(files.is_sorted(), "lines come in the order of files");
    let schemas = schemas("check.schema.json", "check.schema.json");
    for line in &lines {
        schemas.iter().for_each(|schema| assert_valid(schema, line));
    }
    let expected = lines.iter().filter(|line| line["queries"][0]["expected"].is_boolean()).count();
    assert!(expected * 10 >= lines.len() * 9, "{expected} of {} tests expect something", lines.len());
}

#[test]
fn outcomes_name_registers_and_locations() {
    let ran = Ran::run(&mut vk_litmus(["check", "--format", "json", "sb/SB+rlx-rlx"]));
    let line = &ran.json_lines()[0];
    let outcomes = line["outcomes"].as_array().unwrap();
    assert_eq!(outcomes.len(), 4);
    for outcome in outcomes {
        let state = outcome["state"].as_object().unwrap();
        let names: BTreeSet<&str> = state.keys().map(String::as_str).collect();
        assert!(names.is_superset(&BTreeSet::from(["P0:r0", "P1:r0"])), "{names:?}");
        let both_zero = state.values().all(|value| value == 0);
        assert_eq!(outcome["weak"], both_zero);
        assert_eq!(outcome["allowed"], true);
    }
}

#[test]
fn an_undecided_expectation_is_an_environment_failure() {
    let ran = Ran::run(&mut vk_litmus(["check", "--format", "json", "--timeout", "1us", "iriw/IRIW+rlx"]));
    // The expectation of the test is not decided in time.
    assert_eq!(ran.code, 3, "{ran:?}");
    let line = &ran.json_lines()[0];
    assert_eq!(line["race"], "unknown");
    assert_eq!(line["queries"][0]["holds"], serde_json::Value::Null);
    assert!(ran.messages().contains("could not be checked"), "{}", ran.stderr);
}

/// The race is after a loop without a bound on its iterations.
#[test]
fn a_race_beyond_the_loop_bound_is_undecided() {
    let body = "{ x = 0; y = 0; }
P0@sg 0, wg 0, qf 0          | P1@sg 0, wg 1, qf 0 ;
LC00:                        | st.nonpriv.sc0 y, 2 ;
rmw.atom.dv.sc0.add r0, x, 1 |                     ;
blt r0, 200, LC00            |                     ;
st.nonpriv.sc0 y, 1          |                     ;
exists (y == 1)
";
    let folder = tempfile::tempdir().unwrap();
    for (claim, code) in [("", 0), ("expect: vulkan forbidden free\n", 3)] {
        std::fs::write(folder.path().join("late.litmus"), format!("VULKAN late\n{claim}{body}")).unwrap();
        let mut command = vk_litmus(["check", "--format", "json", "late.litmus"]);
        let ran = Ran::run(command.current_dir(folder.path()));
        assert_eq!(ran.code, code, "{ran:?}");
        let line = &ran.json_lines()[0];
        assert_eq!((&line["race"], &line["bound"], &line["cut"]), (&"unknown".into(), &32.into(), &1.into()));
        assert_eq!(line["queries"][0]["holds"], serde_json::Value::Null);
        assert!(ran.messages().contains("cut off at the bound"), "{}", ran.stderr);
    }
}

/// The expectation of a test survives conversion to Khronos' format, and is checked there.
#[test]
fn claims_survive_in_khronos_format() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("converted");
    let converted = Ran::run(vk_litmus(["convert", "*/*", "--to", "khronos", "--out"]).arg(&out));
    // Khronos' format cannot express some tests.
    assert_eq!(converted.code, 2, "{}", converted.stderr);
    let checked = Ran::run(vk_litmus(["check", "--format", "json"]).arg(&out));
    assert_eq!(checked.code, 0, "{}", checked.stderr);
    let lines = checked.json_lines();
    let claims = lines.iter().flat_map(|line| line["queries"].as_array().unwrap());
    let kinds: Vec<&str> =
        claims.map(|query| query["text"].as_str().unwrap().split(' ').next().unwrap()).collect();
    let count_of_kind = |kind: &str| kinds.iter().filter(|known| **known == kind).count();
    assert!(count_of_kind("SATISFIABLE") > 30 && count_of_kind("NOSOLUTION") > 60, "{}", kinds.len());
}
