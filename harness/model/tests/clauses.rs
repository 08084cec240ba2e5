//! The inventory of clauses, and mutation tests of the statements of models.
#![expect(clippy::unwrap_used, reason = "tests")]

use crate::mutant_programs;
use crate::oracle::UNLIMITED;

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use litmus::Test;
use model::clauses::{Disposition, Specification, list_citations, list_clauses};
use model::mutation::{
    Difference, MUTATED_MODELS, Mutant, Mutation, SurvivingMutant, find_killing_test, generate_mutants,
    list_surviving_mutants,
};
use model::synthesis::{collect_comparison_tests, count_operations, weaken_test};
use model::{BASE_RELATIONS, BASE_SETS, Model, PredictionSummary, predict_summary};

fn tests() -> Vec<(String, Test)> {
    let entries = litmus::corpus::tests().into_iter().chain(litmus::corpus::model_only_tests());
    entries.map(|entry| (entry.id, litmus::parse(entry.text, &entry.path).unwrap())).collect()
}

#[test]
fn no_clause_is_missing() {
    let all = list_clauses();
    let ids: BTreeSet<&str> = all.iter().map(|clause| clause.id).collect();
    assert_eq!(ids.len(), all.len(), "an id stands twice");
    let count = |specification| all.iter().filter(|clause| clause.specification == specification).count();
    assert_eq!((count(Specification::Vulkan), count(Specification::Hsa)), (243, 211));
    // The source inventories are part of the peers' corpora.
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
    assert_eq!(list_clauses().len(), lines);
}

#[test]
fn statements_and_tests_cite_known_clauses() {
    let known: BTreeSet<&str> = list_clauses().iter().map(|clause| clause.id).collect();
    for citation in list_citations().unwrap() {
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
fn clauses_have_a_statement_or_a_reason() {
    let cited: BTreeSet<String> = list_citations().unwrap().into_iter().flat_map(|c| c.clauses).collect();
    let names: BTreeSet<&str> = BASE_SETS
        .iter()
        .chain(BASE_RELATIONS)
        .map(|(name, _)| *name)
        .chain(["SC", "GLOBAL", "GROUP"])
        .collect();
    for clause in list_clauses() {
        assert!(!clause.statement.is_empty(), "{}", clause.id);
        for name in &clause.engine_names {
            assert!(names.contains(name), "{}: the engine has no {name}", clause.id);
        }
        match clause.disposition {
            Disposition::Encoded => {
                assert!(
                    cited.contains(clause.id) || !clause.engine_names.is_empty(),
                    "{}: by what?",
                    clause.id
                );
                assert_eq!(clause.why, None, "{}", clause.id);
            }
            _ => {
                assert!(clause.why.is_some(), "{}: why not encoded?", clause.id);
                assert!(clause.engine_names.is_empty(), "{}", clause.id);
            }
        }
    }
}

/// Returns the tests in the dialect of a model with their verdicts, small ones first.
fn judge_tests(model: &Model) -> Vec<(String, Test, PredictionSummary)> {
    let mut own_tests: Vec<(String, Test)> = tests();
    own_tests.retain(|(_, test)| model.supports_dialect(test.dialect));
    own_tests.sort_by_key(|(_, test)| count_operations(test));
    // Older texts do not define every operation.
    own_tests
        .into_iter()
        .filter_map(|(id, test)| {
            let verdict = predict_summary(&test, model, &UNLIMITED).ok()?;
            Some((id, test, verdict))
        })
        .collect()
}

fn find_killer(mutant: &Mutant, judged: &[(String, Test, PredictionSummary)]) -> Option<String> {
    let candidates = judged.iter().map(|(id, test, verdict)| (id, test, verdict));
    find_killing_test(&mutant.model, candidates, &UNLIMITED).map(|(id, _)| id.clone())
}

#[test]
fn mutants_are_changes_of_named_statements() {
    for (name, file) in MUTATED_MODELS {
        let model = Model::shipped(name).unwrap().unwrap();
        let all = generate_mutants(&model, &|source, _| file.is_none_or(|file| file == source));
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

/// Without any of the pillars of a model, a test of the corpus has another verdict.
#[test]
fn tests_detect_the_removal_of_each_pillar() {
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
        let all = generate_mutants(&model, &|_, _| true);
        let judged = judge_tests(&model);
        for (_, statement, change) in pillars.iter().filter(|(of, ..)| *of == name) {
            let mutant = all
                .iter()
                .find(|mutant| mutant.mutation.statement == *statement && mutant.mutation.change == *change);
            let mutant = mutant.unwrap_or_else(|| panic!("{name} has no {statement} {change}"));
            assert!(find_killer(mutant, &judged).is_some(), "nothing notices {statement} {change}");
        }
    }
}

/// No test distinguishes a model from itself.
#[test]
fn a_model_is_never_distinguished_from_itself() {
    for name in ["vulkan", "hsa"] {
        let model = Model::shipped(name).unwrap().unwrap();
        let unchanged = Model::shipped(name).unwrap().unwrap();
        let judged_tests = judge_tests(&model);
        let killing_test = find_killing_test(
            &unchanged,
            judged_tests.iter().map(|(id, test, verdict)| (id, test, verdict)),
            &UNLIMITED,
        );
        assert_eq!(killing_test, None::<(&String, Difference)>);
    }
}

/// Bound of the exhaustive search, in operations, for mutants that survive the embedded tests.
const SEARCH_SIZE: usize = 2;
/// Number of additional random programs for surviving mutants.
const RANDOM_PROGRAMS: u64 = 20_000;
/// Sampling interval of the exhaustive search in normal runs.
const SEARCH_SAMPLING_INTERVAL: usize = 6000;
/// Sampling interval of the embedded tests in normal runs.
const TEST_SAMPLING_INTERVAL: usize = 30;

fn list_entry(name: &str, mutation: &Mutation, known: &[SurvivingMutant]) -> Option<SurvivingMutant> {
    let same = |listed: &&SurvivingMutant| {
        listed.model == name && listed.statement == mutation.statement && listed.change == mutation.change
    };
    known.iter().find(same).cloned()
}

/// Finds, for each mutant, the first program that distinguishes it from the model, as text.
fn find_killers(model: &Model, mutants: &[&Mutant], programs: &[Test]) -> Vec<(usize, String)> {
    let distinguished: Vec<AtomicBool> = mutants.iter().map(|_| AtomicBool::new(false)).collect();
    let next = AtomicUsize::new(0);
    let work = || {
        let mut found = Vec::new();
        while let Some(test) = programs.get(next.fetch_add(1, Ordering::Relaxed)) {
            let Ok(expected) = predict_summary(test, model, &UNLIMITED) else { continue };
            for (index, mutant) in mutants.iter().enumerate() {
                if distinguished[index].load(Ordering::Relaxed) {
                    continue;
                }
                let candidates = std::iter::once((test, test, &expected));
                if find_killing_test(&mutant.model, candidates, &UNLIMITED).is_some()
                    && !distinguished[index].swap(true, Ordering::Relaxed)
                {
                    found.push((index, litmus::print(test)));
                }
            }
        }
        found
    };
    std::thread::scope(|scope| {
        let count = std::thread::available_parallelism().map_or(1, usize::from);
        let workers: Vec<_> = (0..count).map(|_| scope.spawn(work)).collect();
        workers.into_iter().flat_map(|worker| worker.join().unwrap()).collect()
    })
}

/// No program of the search kills a mutant in the committed list.
///
/// Normal runs search a sample; `VK_LITMUS_SOAK` searches all programs. `VK_LITMUS_MUTANT_PROGRAMS` is the
/// number of random ones. In the full search, the list also equals the survivors of the embedded tests.
/// `VK_LITMUS_BLESS=1` rewrites the list with the search bound and preserves its arguments.
#[test]
fn no_searched_program_kills_a_listed_mutant() {
    let full = std::env::var_os("VK_LITMUS_SOAK").is_some();
    let bless = std::env::var_os("VK_LITMUS_BLESS").is_some();
    let (bound, known) = list_surviving_mutants();
    assert!(!bound.contains('\t'), "the first line says how far the search went");
    let mut alive = Vec::new();
    let mut written = String::new();
    let mut listed = 0;
    let mut sizes = (0, 0);
    for (name, file) in MUTATED_MODELS {
        let model = Model::shipped(name).unwrap().unwrap();
        let judged_tests = if full || bless { judge_tests(&model) } else { Vec::new() };
        let embedded_tests = tests().into_iter().filter(|(_, test)| model.supports_dialect(test.dialect));
        let given: Vec<Test> = embedded_tests
            .map(|(_, test)| test)
            .step_by(if full || bless { 1 } else { TEST_SAMPLING_INTERVAL })
            .collect();
        let mut programs = if name == &"hsa" {
            weaken_twice(&given)
        } else {
            collect_comparison_tests(&model, SEARCH_SIZE, &given)
        };
        sizes.0 += programs.len();
        let requested_programs =
            std::env::var("VK_LITMUS_MUTANT_PROGRAMS").ok().and_then(|text| text.parse().ok());
        let drawn = requested_programs.unwrap_or(if full {
            RANDOM_PROGRAMS
        } else {
            RANDOM_PROGRAMS / SEARCH_SAMPLING_INTERVAL as u64
        });
        if !full {
            programs = programs.into_iter().step_by(SEARCH_SAMPLING_INTERVAL).collect();
        }
        let random = mutant_programs::generate_programs(&model, 0, drawn);
        sizes.1 += random.len();
        programs.extend(random);
        let all = generate_mutants(&model, &|source, _| file.is_none_or(|file| file == source));
        let surviving: Vec<&Mutant> = all
            .iter()
            .filter(|mutant| match full || bless {
                true => find_killer(mutant, &judged_tests).is_none(),
                false => list_entry(name, &mutant.mutation, &known).is_some(),
            })
            .collect();
        listed += surviving.len();
        for (index, program) in find_killers(&model, &surviving, &programs) {
            let Mutation { statement, change, .. } = &surviving[index].mutation;
            alive.push(format!("{name} {statement} {change}:\n{program}"));
        }
        for mutant in surviving {
            let Mutation { statement, change, .. } = &mutant.mutation;
            let argument =
                list_entry(name, &mutant.mutation, &known).and_then(|listed| listed.equivalence_proof);
            let (word, text) = argument.map_or(("-", "-"), |(reason, text)| (reason.name(), text));
            written += &format!("{name}\t{statement}\t{change}\t{word}\t{text}\n");
        }
    }
    assert!(alive.is_empty(), "{}", alive.join("\n"));
    if bless {
        let written = format!(
            "{} programs{}: all of up to {SEARCH_SIZE} operations, the shapes, the embedded tests, and what is one step \
             weaker; {} random ones\n{written}",
            sizes.0,
            if full {
                String::new()
            } else {
                format!(", of which one in {SEARCH_SAMPLING_INTERVAL} was tried")
            },
            sizes.1
        );
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("clauses/unkilled.tsv");
        std::fs::write(&path, &written).unwrap();
        return;
    }
    assert_eq!(listed, known.len(), "the list names what is no mutant, or not all that is left");
}

/// Each surviving mutant in the list has an argument for its equivalence, or a note that none is known.
#[test]
fn every_line_of_the_list_is_a_mutant() {
    let lines: Vec<&str> = include_str!("../clauses/unkilled.tsv").lines().skip(1).collect();
    let (_, known) = list_surviving_mutants();
    assert_eq!(known.len(), lines.len());
    for (line, listed) in lines.iter().zip(known) {
        let fields: Vec<&str> = line.split('\t').collect();
        assert_eq!(fields.len(), 5, "{line}");
        assert_eq!(listed.equivalence_proof.is_none(), fields[3..] == ["-", "-"], "{line}");
        assert!(listed.equivalence_proof.is_none_or(|(_, text)| text.ends_with('.')), "{line}");
    }
}

/// Returns all tests that are one or two steps weaker.
fn weaken_twice(tests: &[Test]) -> Vec<Test> {
    let once: Vec<Test> = tests.iter().flat_map(weaken_test).map(|weaker| weaker.test).collect();
    let twice: Vec<Test> = once.iter().flat_map(weaken_test).map(|weaker| weaker.test).collect();
    let mut seen = BTreeSet::new();
    once.into_iter().chain(twice).filter(|test| seen.insert(litmus::print(test))).collect()
}
