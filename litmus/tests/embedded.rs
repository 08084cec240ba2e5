//! The embedded corpus and suites are consistent.

use std::collections::BTreeSet;

use litmus::{ParseOptions, Suite, corpus};

#[test]
fn every_embedded_test_is_valid_and_has_a_unique_id() {
    let strict = ParseOptions { strict_metadata: true };
    let mut ids = BTreeSet::new();
    for entry in corpus::tests().into_iter().chain(corpus::model_only_tests()).chain(corpus::progress_tests())
    {
        let test = litmus::parse_with(entry.text, &entry.path, strict).unwrap();
        assert_eq!(litmus::parse(&litmus::print(&test), &entry.path).unwrap(), test, "{}", entry.path);
        assert!(entry.path.contains(&entry.id), "{} in {}", entry.id, entry.path);
        assert!(entry.id.ends_with(&test.name), "{} is named {}", entry.path, test.name);
        assert!(ids.insert(entry.id.clone()), "{}", entry.id);
    }
    assert!(ids.len() >= 60, "only {} tests", ids.len());
}

#[test]
fn every_suite_selects_corpus_tests() {
    let tests = corpus::tests();
    let suites = corpus::suites();
    let names: Vec<&str> = suites.iter().map(|suite| suite.id.as_str()).collect();
    assert!(names.contains(&"quick") && names.contains(&"full"), "{names:?}");
    for entry in &suites {
        let suite = Suite::parse(entry.text, &entry.path).unwrap();
        let chosen = suite.select(tests.iter().map(|test| test.id.as_str())).unwrap();
        assert!(!chosen.is_empty(), "{}", entry.path);
        assert!(entry.id != "full" || chosen.len() == tests.len(), "full leaves tests out");
    }
}
