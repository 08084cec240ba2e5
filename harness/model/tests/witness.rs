//! The engine compared with the witness: a second implementation of the text that shares neither code nor cat
//! files with it.
#![expect(clippy::expect_used, clippy::panic, clippy::unwrap_used, reason = "tests")]

use std::collections::BTreeMap;

use litmus::minimize::descend;
use litmus::{Dialect, QuestionKind, Race, Reachability, Test};
use model::mutation::{Difference, MUTATED_MODELS, Mutant, generate_mutants};
use model::synthesis::smaller_tests;
use model::{Model, PredictError, complete_prediction, predict, predict_summary};
use witness::generate::{
    Corner, ProgramFamily, RandomProgram, generate_calls_program, generate_classes_program,
    generate_guarded_program, generate_program, generate_split_program, generate_subgroup_program,
    generate_undefined_program,
};
use witness::hosts::with_calls_as_agents;
use witness::{Races, SearchBounds, TextProfile, UnsupportedTest, WitnessAnswer, judge};

fn model_of(profile: TextProfile) -> Model {
    Model::shipped(profile.name()).unwrap_or_else(|| panic!("no model {}", profile.name())).unwrap()
}

/// Differences between engine and witness on a test.
#[derive(Debug, Default)]
struct Differences {
    /// One line per difference.
    text: Vec<String>,
    /// True if all are races that only the engine finds.
    only_race: bool,
    /// True if all are values of a dependency cycle that only one of the two tries.
    only_values: bool,
}

/// Compares engine and witness on a test; `None` if they agree.
fn compare_answers(test: &Test, model: &Model, answer: &WitnessAnswer, bound: u32) -> Option<Differences> {
    let options = model::PredictOptions { budget: model::Budget::UNLIMITED, unroll: bound };
    let prediction = match predict(test, model, &options) {
        Ok(prediction) => prediction,
        Err(PredictError::NotAvailable { what }) => {
            println!("{}: {what}", test.name);
            return None;
        }
        Err(error) => panic!("{}: {error}", test.name),
    };
    // If the engine cannot list the outcomes, they are queried individually, as for results of devices.
    let unlisted = !prediction.complete && prediction.outcomes.is_empty();
    let listed = if unlisted {
        let observed = answer.outcomes.keys();
        match complete_prediction(&prediction, test, model, observed, &options) {
            Ok(settled) => settled,
            // Sequential consistency does not support all of these operations, so it is unknown which
            // outcomes are weak.
            Err(PredictError::NotAvailable { .. }) => None,
            Err(error) => panic!("{}: {error}", test.name),
        }
    } else {
        Some(prediction.clone())
    };
    let mut found = Differences { text: Vec::new(), only_race: true, only_values: true };
    let race = match answer.races {
        Races::Never => Race::Free,
        Races::OutOfThinAir | Races::Sometimes => Race::Racy,
    };
    // Runs cut off at the bound may race.
    let unknown = prediction.truncated_runs > 0 && (prediction.race, race) == (Race::Unknown, Race::Free);
    let marked = !prediction.race_thin_air || answer.races == Races::OutOfThinAir;
    if !unknown && (prediction.race != race || !marked) {
        found.only_race &= answer.races == Races::Never;
        found.only_values = false;
        found.text.push(format!("the engine says {:?}, the witness {:?}", prediction.race, answer.races));
    }
    // A truncated run may have an uninitialized read, unless every location has a value.
    let is_decided =
        prediction.truncated_runs == 0 || answer.reads_uninitialised || !test.has_undefined_locations();
    let expected = is_decided.then_some(answer.reads_uninitialised);
    if prediction.uninitialised_read != expected {
        found.only_race &= !answer.reads_uninitialised;
        found.only_values = false;
        found.text.push(format!(
            "of uninitialised reads the engine says {:?}, the witness {}",
            prediction.uninitialised_read, answer.reads_uninitialised
        ));
    }
    // Individual outcomes are also unknown if runs are truncated.
    let Some(listed) = listed else {
        println!("{}: outcomes are not listed", test.name);
        return (!found.text.is_empty()).then_some(found);
    };
    for (outcome, predicted) in &listed.outcomes {
        let thin_air = answer.outcomes.get(outcome);
        // The engine determines the value in some dependency cycles; the witness marks every cycle.
        let engine = predicted.allowed.then_some(predicted.thin_air);
        let agree = match (engine, thin_air) {
            // The answer to a single query has no thin-air mark.
            (Some(_), Some(_)) if unlisted => true,
            (Some(engine), Some(witness)) => !engine || *witness,
            (engine, witness) => engine.is_none() == witness.is_none(),
        };
        if !agree {
            found.only_race = false;
            found.only_values &= matches!((engine, thin_air), (Some(true), None) | (None, Some(true)));
            found.text.push(format!(
                "{outcome:?}: the engine {engine:?}, the witness {thin_air:?} (out of thin air)"
            ));
        }
    }
    for (outcome, thin_air) in &answer.outcomes {
        if !listed.outcomes.contains_key(outcome) {
            found.only_race = false;
            found.only_values &= *thin_air;
            found.text.push(format!(
                "{outcome:?}: unknown to the engine, the witness allows it (thin air: {thin_air})"
            ));
        }
    }
    (!found.text.is_empty()).then_some(found)
}

/// Both tools mark a dependency cycle of values, and each tries other values.
const OPEN_VALUE_CYCLES: &str = "values of a circle that any value would do for (VK-AC-06)";

/// Open questions of the text: differences in them are counted and listed, but are not failures.
fn open_question(answer: &WitnessAnswer, found: &Differences) -> Option<&'static str> {
    // The witness only considers executions that end.
    let endless = answer.is_truncated || answer.has_endless_wait;
    if found.only_values {
        return Some(OPEN_VALUE_CYCLES);
    }
    (endless && found.only_race).then_some("races of executions that do not end (VK-DR-03, VK-SSW-01)")
}

fn corpus() -> impl Iterator<Item = (String, Test)> {
    litmus::corpus::tests().into_iter().chain(litmus::corpus::model_only_tests()).filter_map(|entry| {
        let test = litmus::parse(entry.text, &entry.id).unwrap_or_else(|e| panic!("{}: {e:?}", entry.id));
        (test.dialect == Dialect::Vulkan).then_some((entry.id, test))
    })
}

/// Bound on loop iterations within which the witness searches for an allowed outcome of the corpus.
const MAX_ITERATIONS: u32 = 3;

/// The witness confirms the verdicts in the corpus.
#[test]
fn the_witness_confirms_the_corpus() {
    let mut wrong = Vec::new();
    let mut checked = 0;
    for (id, test) in corpus() {
        for expectation in &test.metadata.expectations {
            let Some(profile) =
                TextProfile::all_profiles().find(|profile| profile.name() == expectation.model)
            else {
                continue;
            };
            let mut answer = match judge(&test, profile, &SearchBounds::default()) {
                Ok(answer) => answer,
                Err(refusal) => {
                    println!("{id}: {refusal}");
                    continue;
                }
            };
            checked += 1;
            let observables = test.observables();
            let test_condition = test.question.as_ref().map(|question| &question.condition);
            let asked_for = |outcome: &litmus::Outcome| {
                let meets = |condition| outcome.meets_condition(&test, &observables, condition);
                let is_allowed = test_condition.is_none_or(meets);
                let forall = test.question.as_ref().is_some_and(|q| q.kind == QuestionKind::Forall);
                test.filter.as_ref().is_none_or(meets) && is_allowed != forall
            };
            let reached = |answer: &WitnessAnswer| answer.outcomes.keys().any(&asked_for);
            let expected = expectation.reachability == Reachability::Allowed;
            // A loop with effects may need more than one turn.
            for bound in 2..=MAX_ITERATIONS {
                if !expected || !answer.is_truncated || reached(&answer) {
                    break;
                }
                answer =
                    judge(&test, profile, &SearchBounds { loop_bound: bound, ..SearchBounds::default() })
                        .expect("an answer");
            }
            if reached(&answer) != expected {
                wrong.push(format!("{id} under {}: reached {}", profile.name(), !expected));
            }
            let races = answer.races != Races::Never;
            if expectation.race.is_some_and(|race| (race == Race::Racy) != races) {
                wrong.push(format!("{id} under {}: {:?}", profile.name(), answer.races));
            }
            if expectation.race.is_some() && expectation.uninitialised != answer.reads_uninitialised {
                wrong.push(format!(
                    "{id} under {}: uninitialised {}",
                    profile.name(),
                    answer.reads_uninitialised
                ));
            }
        }
    }
    println!("{checked} expectations checked");
    assert!(checked > 0);
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Compares every corpus test that the witness supports, under every profile.
#[test]
fn the_corpus_has_one_answer() {
    let mut wrong = Vec::new();
    let mut compared = 0;
    for profile in TextProfile::all_profiles() {
        let model = model_of(profile);
        for (id, test) in corpus() {
            match judge(&test, profile, &SearchBounds::default()) {
                Ok(answer) => {
                    compared += 1;
                    let Some(found) = compare_answers(&test, &model, &answer, 1) else { continue };
                    match open_question(&answer, &found) {
                        Some(corner) => println!("{id} under {}: {corner}", profile.name()),
                        None => {
                            wrong.push(format!("{id} under {}:\n{}", profile.name(), found.text.join("\n")))
                        }
                    }
                }
                Err(UnsupportedTest::Executions) => println!("{id}: too large"),
                Err(_) => {}
            }
        }
    }
    println!("{compared} answers compared");
    assert!(compared > 0);
    assert!(wrong.is_empty(), "{} of {compared}:\n{}", wrong.len(), wrong.join("\n"));
}

/// Returns the number of random programs per profile: small by default, or `VK_LITMUS_WITNESS_PROGRAMS`.
fn random_program_count() -> u64 {
    let requested_programs = std::env::var("VK_LITMUS_WITNESS_PROGRAMS").ok();
    requested_programs.map_or(120, |text| text.parse().expect("VK_LITMUS_WITNESS_PROGRAMS is a number"))
}

/// The first seed, `VK_LITMUS_WITNESS_SEED`.
fn first_seed() -> u64 {
    let requested_seed = std::env::var("VK_LITMUS_WITNESS_SEED").ok();
    requested_seed.map_or(0, |text| text.parse().expect("VK_LITMUS_WITNESS_SEED is a number"))
}

/// Compares engine and witness on a program, and returns the open question that explains a difference.
fn disagreement(
    test: &Test,
    profile: TextProfile,
    model: &Model,
    bound: u32,
) -> Option<(Differences, Option<&'static str>)> {
    let options = SearchBounds { loop_bound: bound, ..SearchBounds::default() };
    // If no thread can end within the bound, the outcomes are unknown.
    // The witness has calls as agents, not the relations that the parser derives from them.
    let explicit = with_calls_as_agents(test);
    let answer = judge(explicit.as_ref().unwrap_or(test), profile, &options).ok();
    let answer = answer.filter(|answer| !answer.outcomes.is_empty())?;
    let found = compare_answers(test, model, &answer, bound)?;
    let corner = open_question(&answer, &found);
    Some((found, corner))
}

/// Returns the profiles with these names.
fn profiles(names: &[&str]) -> Vec<TextProfile> {
    let found: Vec<TextProfile> =
        TextProfile::all_profiles().filter(|known| names.contains(&known.name())).collect();
    assert_eq!(found.len(), names.len());
    found
}

/// Random programs under every profile, two profiles at a time.
#[test]
fn random_programs_have_one_answer() {
    compare_under_every(&TextProfile::all_profiles().collect::<Vec<_>>(), &generate_program);
}

macro_rules! corners {
    ($($name:ident: $corner:ident;)*) => {$(
        /// Random programs of one corner case, under the current text with and without chains, and the oldest
        /// text.
        #[test]
        fn $name() {
            let profiles = profiles(&["vulkan", "vulkan-nochains", "vulkan-2019"]);
            compare_under_every(&profiles, &|seed| Corner::$corner.generate_program(seed));
        }
    )*};
}

corners! {
    random_links_of_chains_have_one_answer: Links;
    random_classes_beside_barriers_have_one_answer: Beside;
    random_failures_have_one_answer: Failure;
    random_loops_that_count_have_one_answer: Turns;
    random_relays_have_one_answer: Relay;
    random_circles_have_one_answer: Circle;
    random_sizes_have_one_answer: Sizes;
    random_filters_have_one_answer: Filter;
    random_hosts_have_one_answer: Host;
}

/// Random chains with links of different classes, under every profile.
#[test]
fn random_chains_of_classes_have_one_answer() {
    compare_under_every(&TextProfile::all_profiles().collect::<Vec<_>>(), &generate_classes_program);
}

/// Random rounds of split barriers under the texts that have them, by round and by the literal text.
#[test]
fn random_split_barriers_have_one_answer() {
    compare_under_every(
        &profiles(&["vulkan", "vulkan-nochains", "vulkan-by-letter"]),
        &generate_split_program,
    );
}

/// In this program a wait ends by the host's signal or by that of a queue, which is submitted after it.
const SIGNAL_AFTER_SUBMISSION: &str = include_str!("../witness/tests/known/signal-after-submission.litmus");

/// Random programs with calls of hosts and queues, under the current text and the oldest one.
#[test]
fn random_calls_have_one_answer() {
    let generate = |seed| match generate_calls_program(seed) {
        first if seed == first_seed() => RandomProgram { text: SIGNAL_AFTER_SUBMISSION.to_owned(), ..first },
        other => other,
    };
    compare_under_every(&profiles(&["vulkan", "vulkan-2019"]), &generate);
}

/// Random programs with subgroup operations, which order nothing in any text.
#[test]
fn random_subgroup_operations_have_one_answer() {
    compare_under_every(&profiles(&["vulkan", "vulkan-nochains", "vulkan-2019"]), &generate_subgroup_program);
}

/// Random programs with subgroup operations that branches skip, under each reading of reconvergence.
#[test]
fn random_divergence_has_one_answer() {
    compare_under_every(&TextProfile::divergence_readings().collect::<Vec<_>>(), &generate_guarded_program);
}

/// The answers differ on some programs; otherwise the profiles would be equivalent.
#[test]
fn answers_to_divergence_differ() {
    let models: Vec<Model> = TextProfile::divergence_readings().map(model_of).collect();
    let mut different = [0; 3];
    for seed in 0..100 {
        let test = litmus::parse(&generate_guarded_program(seed).text, "random.litmus").unwrap();
        let shown: Vec<_> = models
            .iter()
            .map(|model| predict_summary(&test, model, &Default::default()).unwrap().allowed)
            .collect();
        let [any, apart, together] = <[_; 3]>::try_from(shown).unwrap();
        assert!(apart.is_subset(&any) && together.is_subset(&any), "{seed}: {}", litmus::print(&test));
        different[0] += usize::from(any != apart);
        different[1] += usize::from(any != together);
        different[2] += usize::from(apart != together);
    }
    assert!(different.iter().all(|count| (5..95).contains(count)), "{different:?}");
}

/// Random programs with undefined initial values, under every profile.
#[test]
fn random_undefined_values_have_one_answer() {
    compare_under_every(&TextProfile::all_profiles().collect::<Vec<_>>(), &generate_undefined_program);
}

fn compare_under_every(profiles: &[TextProfile], make: &(impl Fn(u64) -> RandomProgram + Sync)) {
    let failures: Vec<String> = std::thread::scope(|scope| {
        let halves: Vec<_> = profiles
            .chunks(profiles.len().div_ceil(2))
            .map(|half| scope.spawn(|| find_disagreements(half, make)))
            .collect();
        halves.into_iter().flat_map(|half| half.join().expect("no panic")).collect()
    });
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

/// Returns a few reduced disagreements on the random programs of some profiles.
fn find_disagreements(profiles: &[TextProfile], make: &impl Fn(u64) -> RandomProgram) -> Vec<String> {
    const MAX_SHOWN: usize = 8;
    let mut shown = Vec::new();
    for profile in profiles {
        let model = model_of(*profile);
        let mut compared: BTreeMap<ProgramFamily, u64> = BTreeMap::new();
        let mut open: BTreeMap<&str, u64> = BTreeMap::new();
        let mut different = 0;
        for seed in first_seed()..first_seed() + random_program_count() {
            let program = make(seed);
            let test = litmus::parse(&program.text, "random.litmus")
                .unwrap_or_else(|errors| panic!("{seed}: {errors:?}\n{}", program.text));
            *compared.entry(program.family).or_default() += 1;
            // In cycles without arithmetic that must come out true, both try the same values.
            let strict = program.family == ProgramFamily::Corner(Corner::Circle);
            let is_open = |test: &Test| {
                let found = disagreement(test, *profile, &model, program.bound);
                found.map(|(_, corner)| corner.filter(|corner| !strict || *corner != OPEN_VALUE_CYCLES))
            };
            match is_open(&test) {
                None => continue,
                Some(Some(corner)) => {
                    *open.entry(corner).or_default() += 1;
                    continue;
                }
                Some(None) => different += 1,
            }
            if different <= MAX_SHOWN {
                let mut small = test.clone();
                let stays_open = |smaller, _: &Test| {
                    Ok::<_, std::convert::Infallible>(
                        Some(smaller).filter(|test| is_open(test) == Some(None)),
                    )
                };
                let Ok(()) = descend(&mut small, smaller_tests, stays_open);
                let why = disagreement(&small, *profile, &model, program.bound).unwrap_or_default().0.text;
                shown.push(format!(
                    "seed {seed} under {}, bound {}:\n{}{}",
                    profile.name(),
                    program.bound,
                    litmus::print(&small),
                    why.join("\n")
                ));
            }
        }
        // They are rare; more of them would be a bug in one of the two.
        let circles = open.get(OPEN_VALUE_CYCLES).copied().unwrap_or_default();
        if circles * 1_000 > random_program_count().max(3_000) {
            shown.push(format!("{}: {circles} programs differ in {OPEN_VALUE_CYCLES}", profile.name()));
        }
        println!("{}: {different} differences of {compared:?}, unsettled: {open:?}", profile.name());
    }
    shown
}

/// Number of random programs to measure coverage, and the number that every run of the tests tries.
const COVERAGE_PROGRAMS: (u64, u64) = (3_000, 40);
/// Sampling interval of the mutants without `VK_LITMUS_SOAK`.
const SAMPLED_MUTANTS: usize = 8;

/// Coverage of the generator: random programs kill mutants of the statements of the model. With
/// `VK_LITMUS_SOAK`, more programs are tried and the survivors are listed.
#[test]
fn random_programs_need_the_statements() {
    let full = std::env::var_os("VK_LITMUS_SOAK").is_some();
    let mut report = String::new();
    for (name, file) in MUTATED_MODELS.iter().filter(|(name, _)| *name != "hsa") {
        let model = Model::shipped(name).unwrap().unwrap();
        let mut alive = generate_mutants(&model, &|source, _| file.is_none_or(|file| file == source));
        if !full {
            alive = alive.into_iter().step_by(SAMPLED_MUTANTS).collect();
        }
        let all = alive.len();
        for seed in 0..if full { COVERAGE_PROGRAMS.0 } else { COVERAGE_PROGRAMS.1 } {
            let program = generate_program(seed);
            let test = litmus::parse(&program.text, "random.litmus").unwrap();
            let options = model::PredictOptions { budget: model::Budget::UNLIMITED, unroll: program.bound };
            let Ok(expected) = predict_summary(&test, &model, &options) else { continue };
            let is_distinguished = |mutant: &Mutant| {
                let summary = predict_summary(&test, &mutant.model, &options).ok();
                summary.and_then(|shown| Difference::compare(&expected, &shown)).is_some()
            };
            alive.retain(|mutant| !is_distinguished(mutant));
        }
        let distinguished_count = all - alive.len();
        for mutant in &alive {
            report += &format!("{name}: {} {}\n", mutant.mutation.statement, mutant.mutation.change);
        }
        println!("{name}: {distinguished_count} of {all} mutants are distinguished");
        assert!(
            distinguished_count * 5 > all,
            "the generator distinguishes {distinguished_count} of {all} mutants of {name}"
        );
    }
    println!("not distinguished:\n{report}");
}
