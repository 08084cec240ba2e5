//! The inventory of clauses, and the mutants of the models' statements.
#![expect(clippy::unwrap_used, reason = "tests")]

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use litmus::Test;
use model::clauses::{Disposition, Specification, citations, clauses};
use model::mutation::{Difference, MUTATED, Mutant, equivalents, killer, mutants};
use model::synthesis::{operations, pool, weakenings};
use model::{BASE_RELATIONS, BASE_SETS, Budget, Model, Options, Verdict, verdict};

fn tests() -> Vec<(String, Test)> {
    let entries = litmus::corpus::tests().into_iter().chain(litmus::corpus::model_only());
    entries.map(|entry| (entry.id, litmus::parse(entry.text, &entry.path).unwrap())).collect()
}

#[test]
fn no_clause_is_missing() {
    let all = clauses();
    let ids: BTreeSet<&str> = all.iter().map(|clause| clause.id).collect();
    assert_eq!(ids.len(), all.len(), "an id stands twice");
    let count = |specification| all.iter().filter(|clause| clause.specification == specification).count();
    assert_eq!((count(Specification::Vulkan), count(Specification::Hsa)), (227, 211));
    // The inventories that the ids come from lie beside the peers' corpora.
    let Some(corpora) = std::env::var_os("VK_LITMUS_CORPORA") else {
        println!("skipped: 1 (VK_LITMUS_CORPORA is not set)");
        return;
    };
    for file in ["vulkan-clauses.csv", "hsa-clauses.csv"] {
        let Some(path) = Path::new(&corpora).parent().map(|parent| parent.join("reference").join(file))
        else {
            continue;
        };
        let Ok(text) = std::fs::read_to_string(&path) else {
            println!("skipped: 1 (no inventory beside VK_LITMUS_CORPORA)");
            continue;
        };
        let first_words = text.lines().skip(1).filter_map(|line| line.split(',').next());
        let missing: Vec<&str> = first_words
            .filter(|word| word.starts_with("VK-") || word.starts_with("HSA-"))
            .filter(|id| !ids.contains(id))
            .collect();
        assert!(missing.is_empty(), "{missing:?}");
    }
}

#[test]
fn every_line_of_the_lists_is_a_clause() {
    let lines = include_str!("../clauses/vulkan.tsv").lines().count() - 1
        + include_str!("../clauses/hsa.tsv").lines().count()
        - 1;
    assert_eq!(clauses().len(), lines);
}

#[test]
fn statements_and_tests_cite_known_clauses() {
    let known: BTreeSet<&str> = clauses().iter().map(|clause| clause.id).collect();
    for citation in citations().unwrap() {
        for clause in &citation.clauses {
            assert!(known.contains(clause.as_str()), "{}:{} cites {clause}", citation.file, citation.line);
        }
    }
    for (id, test) in tests() {
        for clause in &test.metadata.clauses {
            assert!(known.contains(clause.as_str()), "{id} cites {clause}");
        }
    }
}

#[test]
fn every_encoded_clause_has_what_encodes_it_and_every_other_a_reason() {
    let cited: BTreeSet<String> = citations().unwrap().into_iter().flat_map(|c| c.clauses).collect();
    let names: BTreeSet<&str> = BASE_SETS
        .iter()
        .chain(BASE_RELATIONS)
        .map(|(name, _)| *name)
        .chain(["SC", "GLOBAL", "GROUP"])
        .collect();
    for clause in clauses() {
        assert!(!clause.statement.is_empty(), "{}", clause.id);
        for name in &clause.engine {
            assert!(names.contains(name), "{}: the engine has no {name}", clause.id);
        }
        match clause.disposition {
            Disposition::Encoded => {
                assert!(cited.contains(clause.id) || !clause.engine.is_empty(), "{}: by what?", clause.id);
                assert_eq!(clause.why, None, "{}", clause.id);
            }
            _ => {
                assert!(clause.why.is_some(), "{}: why not encoded?", clause.id);
                assert!(clause.engine.is_empty(), "{}", clause.id);
            }
        }
    }
}

const PATIENCE: Options = Options { budget: Budget::UNLIMITED, unroll: 1 };

/// The tests of a model's language with its verdicts, small ones first.
fn judged(model: &Model) -> Vec<(String, Test, Verdict)> {
    let mut own: Vec<(String, Test)> = tests();
    own.retain(|(_, test)| model.judges(test.dialect));
    own.sort_by_key(|(_, test)| operations(test));
    // An older text need not have words for everything.
    own.into_iter()
        .filter_map(|(id, test)| {
            let verdict = verdict(&test, model, &PATIENCE).ok()?;
            Some((id, test, verdict))
        })
        .collect()
}

fn killed_by(mutant: &Mutant, judged: &[(String, Test, Verdict)]) -> Option<String> {
    let asked = judged.iter().map(|(id, test, verdict)| (id, test, verdict));
    killer(&mutant.model, asked, &PATIENCE).map(|(id, _)| id.clone())
}

#[test]
fn mutants_are_changes_of_named_statements() {
    for (name, file) in MUTATED {
        let model = Model::shipped(name).unwrap().unwrap();
        let all = mutants(&model, &|source| file.is_none_or(|file| file == source));
        assert!(!all.is_empty(), "{name}");
        let mut places: BTreeMap<(String, String), u32> = BTreeMap::new();
        for mutant in &all {
            let mutation = &mutant.mutation;
            *places.entry((mutation.statement.clone(), mutation.change.clone())).or_default() += 1;
        }
        let twice: Vec<_> = places.iter().filter(|(_, count)| **count > 1).collect();
        assert!(twice.is_empty(), "{name}: {twice:?}");
    }
}

/// What the models stand on: without any of it some test of ours answers differently.
#[test]
fn tests_notice_when_a_pillar_of_a_model_falls() {
    let pillars = [
        ("vulkan", "consistency", "dropped"),
        ("vulkan", "atomicity", "dropped"),
        ("vulkan", "race", "dropped"),
        ("vulkan", "sw", "without the case `sw-control-barrier`"),
        ("vulkan", "sw", "without the case `sw-atomic-atomic`"),
        ("vulkan", "fr-order", "without the case `locord`"),
        ("vulkan", "mutord", "without the case `(candidates \\ of-two-kinds)`"),
        ("hsa", "global-dependence", "dropped"),
        ("hsa", "synchronizing-order", "dropped"),
    ];
    for name in ["vulkan", "hsa"] {
        let model = Model::shipped(name).unwrap().unwrap();
        let all = mutants(&model, &|_| true);
        let judged = judged(&model);
        for (_, statement, change) in pillars.iter().filter(|(of, ..)| *of == name) {
            let mutant = all
                .iter()
                .find(|mutant| mutant.mutation.statement == *statement && mutant.mutation.change == *change);
            let mutant = mutant.unwrap_or_else(|| panic!("{name} has no {statement} {change}"));
            assert!(killed_by(mutant, &judged).is_some(), "nothing notices {statement} {change}");
        }
    }
}

/// A model is no mutant of itself: whatever the tests are, nothing tells them apart.
#[test]
fn a_model_is_never_told_from_itself() {
    for name in ["vulkan", "hsa"] {
        let model = Model::shipped(name).unwrap().unwrap();
        let again = Model::shipped(name).unwrap().unwrap();
        let asked = judged(&model);
        let told = killer(&again, asked.iter().map(|(id, test, verdict)| (id, test, verdict)), &PATIENCE);
        assert_eq!(told, None::<(&String, Difference)>);
    }
}

/// The operations up to which all programs are tried on mutants that no embedded test tells apart.
const SEARCHED: usize = 2;

/// The committed list of mutants that nothing tells apart is what a search finds: all of it where `VK_LITMUS_SOAK` is set,
/// else a part of the search. `VK_LITMUS_BLESS=1` with `VK_LITMUS_SOAK=1` writes it anew.
#[test]
fn equivalent_mutants_are_not_told_apart_by_a_search() {
    let full = std::env::var_os("VK_LITMUS_SOAK").is_some();
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("clauses/equivalents.tsv");
    let (bound, known) = equivalents();
    let mut written = String::new();
    let mut sizes = Vec::new();
    for (name, file) in MUTATED {
        let model = Model::shipped(name).unwrap().unwrap();
        let own = judged(&model);
        let given: Vec<Test> = own.iter().map(|(_, test, _)| test.clone()).collect();
        let mut searched = if name == &"hsa" { weakened(&given) } else { pool(&model, SEARCHED, &given) };
        if !full {
            // One test in fifty, so that a wrong entry is likely to show here already.
            searched = searched.into_iter().step_by(50).collect();
        }
        sizes.push(searched.len());
        let pool: Vec<(Test, Verdict)> = searched
            .into_iter()
            .filter_map(|test| Some((verdict(&test, &model, &PATIENCE).ok()?, test)))
            .map(|(verdict, test)| (test, verdict))
            .collect();
        for mutant in mutants(&model, &|source| file.is_none_or(|file| file == source)) {
            let mutation = &mutant.mutation;
            let listed = known.iter().any(|equivalent| {
                equivalent.model == *name
                    && equivalent.statement == mutation.statement
                    && equivalent.change == mutation.change
            });
            if full && killed_by(&mutant, &own).is_some() || !full && !listed {
                continue;
            }
            let asked = pool.iter().map(|(test, verdict)| (test, test, verdict));
            match killer(&mutant.model, asked, &PATIENCE) {
                None => written += &format!("{name}\t{}\t{}\n", mutation.statement, mutation.change),
                Some((test, difference)) => {
                    assert!(
                        full,
                        "{name}: {} {} is no equivalent:\n{}",
                        mutation.statement,
                        mutation.change,
                        litmus::print(test)
                    );
                    println!(
                        "ALIVE {difference:?} {name} {} {}\n{}",
                        mutation.statement,
                        mutation.change,
                        litmus::print(test)
                    );
                }
            }
        }
    }
    if !full {
        assert_eq!(written.lines().count(), known.len(), "the list names what is no mutant");
        return;
    }
    let written = format!(
        "{} synthesized tests: all programs of up to {SEARCHED} operations, the shapes, the embedded tests, and what is one step weaker\n{written}",
        sizes.iter().sum::<usize>()
    );
    if std::env::var_os("VK_LITMUS_BLESS").is_some() {
        std::fs::write(&path, &written).unwrap();
        return;
    }
    assert_eq!(written.lines().next(), Some(bound));
    assert_eq!(written, std::fs::read_to_string(&path).unwrap());
}

/// Everything one and two steps below the tests.
fn weakened(tests: &[Test]) -> Vec<Test> {
    let once: Vec<Test> = tests.iter().flat_map(weakenings).map(|weaker| weaker.test).collect();
    let twice: Vec<Test> = once.iter().flat_map(weakenings).map(|weaker| weaker.test).collect();
    let mut seen = BTreeSet::new();
    once.into_iter().chain(twice).filter(|test| seen.insert(litmus::print(test))).collect()
}
