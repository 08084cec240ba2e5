//! Tests of other tools parse, have equal printed forms, and have the conditions in the tables of the tools.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

/// Returns the folder of Dartagnan's tests, if it is installed.
fn dat3m() -> Option<PathBuf> {
    match std::env::var_os("VK_LITMUS_CORPORA") {
        Some(folder) => Some(Path::new(&folder).join("dat3m")),
        None => {
            println!("1 skipped: VK_LITMUS_CORPORA is not set");
            None
        }
    }
}

/// Returns every test under `folder` with its relative path.
fn tests(folder: &Path) -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(next) = folders.pop() {
        for entry in fs::read_dir(&next).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "litmus") {
                let name = path.strip_prefix(folder).unwrap().to_str().unwrap().to_owned();
                found.insert(name, fs::read_to_string(&path).unwrap());
            }
        }
    }
    found
}

#[test]
fn dartagnans_tests_round_trip() {
    let Some(folder) = dat3m() else { return };
    let tests = tests(&folder);
    assert!(tests.len() >= 300, "only {} tests in {}", tests.len(), folder.display());
    for (name, text) in &tests {
        let test =
            litmus::parse(text, name).unwrap_or_else(|errors| panic!("{errors}: {:#?}", errors.messages()));
        let printed = litmus::print(&test);
        let again = litmus::parse(&printed, name).unwrap_or_else(|errors| panic!("{errors}\n{printed}"));
        assert_eq!(test, again, "{name}\n{printed}");
        assert_eq!(printed, litmus::print(&again), "{name}");
        assert_eq!(test.metadata.unknown_keys, [], "{name}");
    }
    println!("{} tests", tests.len());
}

#[test]
fn conditions_have_the_text_in_dartagnans_table() {
    let Some(folder) = dat3m() else { return };
    let tests = tests(&folder);
    // The table has a blank after `(` where the file has a line break.
    let squeezed = |text: &str| text.replace("( ", "(");
    let rows = fs::read_to_string(folder.join("verdicts.csv")).unwrap();
    let mut checked = 0;
    for row in rows.lines().skip(1) {
        let cells: Vec<&str> = row.split(',').collect();
        let [path, _, query, ..] = cells[..] else { panic!("{row}") };
        let test = litmus::parse(&tests[path], path).unwrap();
        let text = match (query.strip_prefix("race-free"), &test.question, &test.filter) {
            (None, Some(question), None) => question.to_text(&test),
            (Some(_), _, Some(filter)) => format!("race-free [filter ({})]", filter.to_text(&test)),
            (Some(_), _, None) => "race-free".to_owned(),
            unexpected => panic!("{row}: {unexpected:?}"),
        };
        assert_eq!(text, squeezed(query), "{path}");
        checked += 1;
    }
    assert!(checked >= 150, "only {checked} rows");
}
