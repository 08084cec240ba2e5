//! Disagreements between the texts and other tools: the documentation page has the current verdicts.
//!
//! `disagreements.tsv` lists the disagreements with their tests and decisions; the verdicts in
//! `docs/explanation/disagreements.md` are computed. `VK_LITMUS_BLESS=1` rewrites the page.
#![expect(clippy::unwrap_used, clippy::panic, reason = "tests")]

use crate::oracle::UNLIMITED;
use std::fmt::Write;
use std::path::Path;

use litmus::{Race, Test};
use model::synthesis::{ConditionVerdict, classify_condition};
use model::{Model, PredictError, predict_summary};

const MODELS: &[&str] = &["vulkan", "vulkan-2024", "vulkan-1.2", "vulkan-2019", "khronos-alloy", "dartagnan"];

struct DisagreementRow {
    name: &'static str,
    topic: &'static str,
    tests: Vec<&'static str>,
    decision: &'static str,
}

fn rows() -> Vec<DisagreementRow> {
    include_str!("disagreements.tsv")
        .lines()
        .map(|line| {
            let [name, topic, tests, decision] = line.split('\t').collect::<Vec<_>>()[..] else {
                panic!("not a row: {line}");
            };
            DisagreementRow {
                name,
                topic,
                tests: tests.split(' ').filter(|test| *test != "-").collect(),
                decision,
            }
        })
        .collect()
}

fn test_of(id: &str) -> Test {
    let entries = litmus::corpus::tests().into_iter().chain(litmus::corpus::model_only_tests());
    let entry = entries.into_iter().find(|entry| entry.id == id).unwrap_or_else(|| panic!("no test {id}"));
    litmus::parse(entry.text, &entry.path).unwrap()
}

/// Returns the verdict on the outcome, and on races.
fn verdict_text(model: &Model, test: &Test) -> String {
    let verdict = match predict_summary(test, model, &UNLIMITED) {
        Ok(verdict) => verdict,
        Err(PredictError::NotAvailable { .. }) => return "not expressible".to_owned(),
        Err(error) => panic!("{}: {error}", test.name),
    };
    let free = model::PredictionSummary { race: Race::Free, ..verdict.clone() };
    let reachable = match classify_condition(test, &free) {
        ConditionVerdict::Allowed => "allowed",
        _ => "forbidden",
    };
    match verdict.race {
        Race::Racy => format!("{reachable}, racy"),
        _ => reachable.to_owned(),
    }
}

fn render_page() -> String {
    let models: Vec<Model> = MODELS.iter().map(|name| Model::shipped(name).unwrap().unwrap()).collect();
    let mut page = String::from(
        "# Where the texts and the peers disagree\n\n\
         Cat files, tests and `decisions.md` refer to the disagreements by name (D1 to D23). The tables list the answer of each model to the\n\
         condition of each test. `racy` means that the program has no defined outcome, even if consistent executions show one. A test\n\
         compares this page with the models; its source is `harness/model/tests/disagreements.tsv`.\n",
    );
    for DisagreementRow { name, topic, tests, decision } in rows() {
        write!(page, "\n## {name}: {topic}\n\n{decision}\n").unwrap();
        if tests.is_empty() {
            continue;
        }
        writeln!(page, "\n| test | {} |\n|---|{}", MODELS.join(" | "), "---|".repeat(MODELS.len())).unwrap();
        for id in tests {
            let test = test_of(id);
            let cells: Vec<String> = models.iter().map(|model| verdict_text(model, &test)).collect();
            writeln!(page, "| `{id}` | {} |", cells.join(" | ")).unwrap();
        }
    }
    page
}

#[test]
fn the_page_has_the_current_verdicts() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/explanation/disagreements.md");
    let current = render_page();
    if std::env::var_os("VK_LITMUS_BLESS").is_some() {
        std::fs::write(&path, &current).unwrap();
    }
    let committed = std::fs::read_to_string(&path).unwrap();
    assert!(
        committed == current,
        "docs/explanation/disagreements.md is not what the models say: VK_LITMUS_BLESS=1 writes it"
    );
}

#[test]
fn every_disagreement_is_listed() {
    let names: Vec<&str> = rows().iter().map(|row| row.name).collect();
    let expected: Vec<String> = (1..=23).map(|number| format!("D{number}")).collect();
    assert_eq!(names, expected);
}
