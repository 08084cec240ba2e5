//! The engine against the witness: a second reading of the text that shares neither code nor cat files with it.
#![expect(clippy::expect_used, clippy::panic, clippy::unwrap_used, reason = "tests")]

mod minimal;

use std::collections::BTreeMap;
use std::time::Duration;

use litmus::{Dialect, QuestionKind, Race, Reachability, Test};
use model::mutation::{Difference, MUTATED, Mutant, mutants};
use model::{Model, predict, verdict};
use witness::generate::{Family, program};
use witness::{Answer, Options, Profile, Races, Refusal, judge};

fn model_of(profile: Profile) -> Model {
    Model::shipped(profile.name()).unwrap_or_else(|| panic!("no model {}", profile.name())).unwrap()
}

/// What engine and witness say differently of a test; `None` where they agree.
fn difference(test: &Test, model: &Model, answer: &Answer, bound: u32) -> Option<String> {
    let options = model::Options { timeout: Some(Duration::from_secs(60)), unroll: bound };
    let prediction = predict(test, model, &options).unwrap_or_else(|e| panic!("{}: {e}", test.name));
    let mut found = Vec::new();
    let race = match answer.races {
        Races::Never => Race::Free,
        Races::OutOfThinAir | Races::Sometimes => Race::Racy,
    };
    if prediction.race != race {
        found.push(format!("the engine says {:?}, the witness {:?}", prediction.race, answer.races));
    }
    for (outcome, predicted) in &prediction.outcomes {
        let thin_air = answer.outcomes.get(outcome);
        if predicted.allowed != thin_air.is_some() {
            found.push(format!("{outcome:?}: the engine {}, the witness {thin_air:?}", predicted.allowed));
        }
    }
    for (outcome, thin_air) in &answer.outcomes {
        if !prediction.outcomes.contains_key(outcome) {
            found.push(format!("{outcome:?}: unknown to the engine, the witness allows it ({thin_air})"));
        }
    }
    (!found.is_empty()).then(|| found.join("\n"))
}

fn corpus() -> impl Iterator<Item = (String, Test)> {
    litmus::corpus::tests().into_iter().chain(litmus::corpus::model_only()).filter_map(|entry| {
        let test = litmus::parse(entry.text, &entry.id).unwrap_or_else(|e| panic!("{}: {e:?}", entry.id));
        (test.dialect == Dialect::Vulkan).then_some((entry.id, test))
    })
}

/// The corpus says of itself what the witness says of it.
#[test]
fn the_witness_confirms_the_corpus() {
    let mut wrong = Vec::new();
    let mut checked = 0;
    for (id, test) in corpus() {
        for expectation in &test.metadata.expectations {
            let Some(profile) = Profile::all().find(|profile| profile.name() == expectation.model) else {
                continue;
            };
            let answer = match judge(&test, profile, &Options::default()) {
                Ok(answer) => answer,
                Err(refusal) => {
                    println!("{id}: {refusal}");
                    continue;
                }
            };
            checked += 1;
            let observables = test.observables();
            let wanted = test.question.as_ref().map(|question| &question.condition);
            let reached = answer.outcomes.keys().any(|outcome| {
                let meets = |condition| outcome.meets(&test, &observables, condition);
                let asked = wanted.is_none_or(meets);
                let forall = test.question.as_ref().is_some_and(|q| q.kind == QuestionKind::Forall);
                test.filter.as_ref().is_none_or(meets) && asked != forall
            });
            if reached != (expectation.reachability == Reachability::Allowed) {
                wrong.push(format!("{id} under {}: reached {reached}", profile.name()));
            }
            let races = answer.races != Races::Never;
            if expectation.race.is_some_and(|race| (race == Race::Racy) != races) {
                wrong.push(format!("{id} under {}: {:?}", profile.name(), answer.races));
            }
        }
    }
    println!("{checked} expectations checked");
    assert!(checked > 0);
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Every test of the corpus in the witness' reach, under every profile.
#[test]
fn the_corpus_has_one_answer() {
    let mut wrong = Vec::new();
    let mut compared = 0;
    for profile in Profile::all() {
        let model = model_of(profile);
        for (id, test) in corpus() {
            match judge(&test, profile, &Options::default()) {
                Ok(answer) => {
                    compared += 1;
                    if let Some(difference) = difference(&test, &model, &answer, 1) {
                        wrong.push(format!("{id} under {}:\n{difference}", profile.name()));
                    }
                }
                Err(Refusal::Executions) => println!("{id}: too large"),
                Err(_) => {}
            }
        }
    }
    println!("{compared} answers compared");
    assert!(compared > 0);
    assert!(wrong.is_empty(), "{} of {compared}:\n{}", wrong.len(), wrong.join("\n"));
}

/// Random programs a profile: few in every run of the tests, many where `VK_LITMUS_WITNESS_PROGRAMS` says so.
fn programs() -> u64 {
    let wanted = std::env::var("VK_LITMUS_WITNESS_PROGRAMS").ok();
    wanted.map_or(2_000, |text| text.parse().expect("VK_LITMUS_WITNESS_PROGRAMS is a number"))
}

/// The first seed, `VK_LITMUS_WITNESS_SEED`.
fn first_seed() -> u64 {
    let wanted = std::env::var("VK_LITMUS_WITNESS_SEED").ok();
    wanted.map_or(0, |text| text.parse().expect("VK_LITMUS_WITNESS_SEED is a number"))
}

/// What engine and witness say differently of a program, if the witness answers it.
fn disagreement(test: &Test, profile: Profile, model: &Model, bound: u32) -> Option<String> {
    let options = Options { bound, ..Options::default() };
    // Where no thread can end within the bound, nothing is known of outcomes.
    let answer = judge(test, profile, &options).ok().filter(|answer| !answer.outcomes.is_empty())?;
    difference(test, model, &answer, bound)
}

/// Random programs, under every profile; two profiles at a time.
#[test]
fn random_programs_have_one_answer() {
    let profiles: Vec<Profile> = Profile::all().collect();
    let failures: Vec<String> = std::thread::scope(|scope| {
        let halves: Vec<_> =
            profiles.chunks(profiles.len().div_ceil(2)).map(|half| scope.spawn(|| compare(half))).collect();
        halves.into_iter().flat_map(|half| half.join().expect("no panic")).collect()
    });
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

/// The disagreements on the random programs of some profiles, at most a few of them, made small.
fn compare(profiles: &[Profile]) -> Vec<String> {
    const SHOWN: usize = 8;
    let mut shown = Vec::new();
    for profile in profiles {
        let model = model_of(*profile);
        let mut compared: BTreeMap<Family, u64> = BTreeMap::new();
        let mut different = 0;
        for seed in first_seed()..first_seed() + programs() {
            let program = program(seed);
            let test = litmus::parse(&program.text, "random.litmus")
                .unwrap_or_else(|errors| panic!("{seed}: {errors:?}\n{}", program.text));
            *compared.entry(program.family).or_default() += 1;
            if disagreement(&test, *profile, &model, program.bound).is_none() {
                continue;
            }
            different += 1;
            if different <= SHOWN {
                let differs = |test: &Test| disagreement(test, *profile, &model, program.bound).is_some();
                let small = minimal::minimal(&test, &differs);
                let why = disagreement(&small, *profile, &model, program.bound).unwrap_or_default();
                let text = litmus::print(&small);
                shown.push(format!(
                    "seed {seed} under {}, bound {}:\n{text}{why}",
                    profile.name(),
                    program.bound
                ));
            }
        }
        println!("{}: {different} differences of {compared:?}", profile.name());
    }
    shown
}

/// Random programs that the coverage of the generator is measured with.
const COVERAGE: u64 = 6_000;

/// What the generator reaches: each mutant of a statement of the model is told apart by some random program, but for those
/// listed here.
#[test]
fn random_programs_need_the_statements() {
    let mut report = String::new();
    let options = model::Options { timeout: Some(Duration::from_secs(60)), unroll: 1 };
    for (name, file) in MUTATED.iter().filter(|(name, _)| *name != "hsa") {
        let model = Model::shipped(name).unwrap().unwrap();
        let mut alive = mutants(&model, &|source| file.is_none_or(|file| file == source));
        let all = alive.len();
        for seed in 0..COVERAGE {
            let program = program(seed);
            let test = litmus::parse(&program.text, "random.litmus").unwrap();
            let options = model::Options { unroll: program.bound, ..options.clone() };
            let Ok(expected) = verdict(&test, &model, &options) else { continue };
            let told = |mutant: &Mutant| {
                let shown = verdict(&test, &mutant.model, &options).ok();
                shown.and_then(|shown| Difference::between(&expected, &shown)).is_some()
            };
            alive.retain(|mutant| !told(mutant));
        }
        report += &format!("{name}: {} of {all} mutants are told apart\n", all - alive.len());
        for mutant in &alive {
            report += &format!("{} {}\n", mutant.mutation.statement, mutant.mutation.change);
        }
    }
    insta::assert_snapshot!("coverage", report);
}
