//! Versions of the specification: the profile of each version, and the verdicts that each change since
//! `vulkan-1.4.305` affects.
//!
//! `specifications.tsv` lists the versions and `texts.tsv` the changes; the affected tests are computed.
//! `VK_LITMUS_BLESS=1` rewrites `docs/explanation/texts.md`.
#![expect(clippy::unwrap_used, clippy::panic, reason = "tests")]

use std::collections::BTreeSet;
use std::fmt::Write;
use std::path::Path;

use litmus::{Dialect, Race, Test};
use model::mutation::Difference;
use model::synthesis::{ConditionVerdict, classify_condition};
use model::{Budget, Model, PredictOptions, PredictionSummary, predict_summary};

const OLD_MODEL: &str = "vulkan-1.4.305";
const NEW_MODEL: &str = "vulkan";

/// A change of the appendix.
struct TextChange {
    version: &'static str,
    date: &'static str,
    clauses: Vec<&'static str>,
    description: &'static str,
    /// Text for a change that affects no verdict.
    reverted_model: &'static str,
}

fn fields<const N: usize>(text: &'static str) -> impl Iterator<Item = [&'static str; N]> {
    text.lines().map(|line| {
        line.split('\t').collect::<Vec<_>>().try_into().unwrap_or_else(|_| panic!("not a row: {line}"))
    })
}

fn changes() -> Vec<TextChange> {
    let rows = fields(include_str!("texts.tsv"));
    let change = |[version, date, clauses, what, without]: [&'static str; 5]| TextChange {
        version,
        date,
        clauses: clauses.split(' ').collect(),
        description: what,
        reverted_model: without,
    };
    rows.map(change).collect()
}

/// Returns the verdict on the outcome of the test, and on races.
fn verdict_text(test: &Test, verdict: &PredictionSummary) -> String {
    let free = PredictionSummary { race: Race::Free, ..verdict.clone() };
    let reachable =
        if classify_condition(test, &free) == ConditionVerdict::Allowed { "allowed" } else { "forbidden" };
    match verdict.race {
        Race::Racy => format!("{reachable}, racy"),
        _ => reachable.to_owned(),
    }
}

/// A test with different verdicts under two texts.
struct DifferingTest {
    id: String,
    clauses: Vec<String>,
    old: String,
    new: String,
}

/// Returns the number of embedded tests with a verdict under both texts, and those with different verdicts.
fn compare_texts() -> (usize, Vec<DifferingTest>) {
    let [old, new] = [OLD_MODEL, NEW_MODEL].map(|name| Model::shipped(name).unwrap().unwrap());
    let options = PredictOptions { budget: Budget::from_steps(500_000), unroll: 1 };
    let mut differing = Vec::new();
    let mut compared = 0;
    for entry in litmus::corpus::tests().into_iter().chain(litmus::corpus::model_only_tests()) {
        let test = litmus::parse(entry.text, &entry.path).unwrap();
        // Other languages have operations that Vulkan does not have.
        let is_of_vulkan = test.metadata.expectations.iter().any(|expectation| expectation.model == "vulkan");
        if test.dialect == Dialect::Hsa || !is_of_vulkan {
            continue;
        }
        let ask =
            |model| predict_summary(&test, model, &options).unwrap_or_else(|e| panic!("{}: {e}", entry.id));
        let (first, second) = (ask(&old), ask(&new));
        compared += 1;
        if Difference::compare(&first, &second).is_some() {
            let (old, new) = (verdict_text(&test, &first), verdict_text(&test, &second));
            let clauses = test.metadata.clauses.clone();
            differing.push(DifferingTest { id: entry.id, clauses, old, new });
        }
    }
    (compared, differing)
}

fn render_page() -> String {
    let (compared, differing) = compare_texts();
    let mut page = String::from(
        "# The texts of the specification\n\n\
         The memory model is an appendix of the Vulkan specification and changes with it. A profile is a model of one text; each has a\n\
         `-nochains` twin for devices without `vulkanMemoryModelAvailabilityVisibilityChains`. The default is\n\
         `vulkan`; `--model` selects another. `harness/model/tests/texts.rs` generates this page.\n\n\
         ## Profile of each version\n\n\
         | specification | since | profile | change |\n|---|---|---|---|\n",
    );
    for [versions, since, profile, what] in fields(include_str!("specifications.tsv")) {
        writeln!(page, "| {versions} | {since} | {profile} | {what} |").unwrap();
    }
    write!(
        page,
        "\n## Effect of each change\n\n\
         `vk-litmus compare --model {OLD_MODEL} --model {NEW_MODEL}` over the {compared} embedded tests: they differ on {}. The tables\n\
         list the answers of both models to the condition of each test.\n",
        differing.len()
    )
    .unwrap();
    let mut attributed: BTreeSet<&str> = BTreeSet::new();
    for TextChange { version, date, clauses, description: what, reverted_model: without } in changes() {
        write!(page, "\n### {version} ({date}): {}\n\n{what}\n", clauses.join(", ")).unwrap();
        let own_tests: Vec<&DifferingTest> = differing
            .iter()
            .filter(|test| test.clauses.iter().any(|clause| clauses.contains(&clause.as_str())))
            .collect();
        if own_tests.is_empty() {
            write!(page, "\nNo test is judged differently. {without}\n").unwrap();
            continue;
        }
        write!(page, "\n| test | {OLD_MODEL} | {NEW_MODEL} |\n|---|---|---|\n").unwrap();
        for test in own_tests {
            writeln!(page, "| `{}` | {} | {} |", test.id, test.old, test.new).unwrap();
            attributed.insert(&test.id);
        }
    }
    let unexplained: Vec<&str> =
        differing.iter().map(|test| test.id.as_str()).filter(|id| !attributed.contains(id)).collect();
    assert!(
        unexplained.is_empty(),
        "no change of the text explains {unexplained:?}: which clause do they turn on?"
    );
    page
}

#[test]
fn the_page_has_the_current_changes() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/explanation/texts.md");
    let current = render_page();
    if std::env::var_os("VK_LITMUS_BLESS").is_some() {
        std::fs::write(&path, &current).unwrap();
    }
    let committed = std::fs::read_to_string(&path).unwrap();
    assert!(
        committed == current,
        "docs/explanation/texts.md is not what the models say: VK_LITMUS_BLESS=1 writes it"
    );
}

#[test]
fn changes_name_known_clauses_and_versions_known_profiles() {
    let clauses: BTreeSet<&str> = model::clauses::list_clauses().iter().map(|clause| clause.id).collect();
    for change in changes() {
        for clause in change.clauses {
            assert!(clauses.contains(clause), "{clause}");
        }
    }
    for [versions, _, profile, _] in fields(include_str!("specifications.tsv")) {
        assert!(Model::shipped(profile.trim_matches('`')).is_some(), "{versions}: {profile}");
    }
}
