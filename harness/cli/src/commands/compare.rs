//! `compare`: the tests on which two models differ, and the smallest such test.

use campaign::inputs;
use campaign::models::{self, LoadedModel};
use campaign::parallel::process_in_order;
use campaign::source::{RejectedSource, TestSource};
use litmus::{Observable, Race, Test};
use model::mutation::Difference;
use model::synthesis::{MAX_PROGRAM_SIZE, TestConstraints, count_operations, find_distinctions};
use model::{Budget, PredictOptions, PredictionSummary, predict_summary};
use results::state::state_from_outcome;
use results::wire::{
    COMPARE_SCHEMA, CompareRecord, CompareRow, DifferenceWord, NextTest, RaceWord, SynthesizedRecord,
};
use results::write::number;

use crate::arguments::{Compare, ListFormat};
use crate::commands::clauses::difference_word;
use crate::exit::{Failure, Outcome};
use crate::output::{StandardOutput, print_json, print_message, report_rejected};

/// Budget of one test under one model.
const TEST_BUDGET: PredictOptions = PredictOptions { budget: Budget::from_steps(500_000), unroll: 1 };

/// Runs the command.
///
/// # Errors
/// Returns an error without exactly two models, or if the comparison cannot be printed.
pub fn compare(arguments: &Compare, quiet: bool) -> Result<Outcome, Failure> {
    // Without `--model`, the first two words are the models.
    let named = if arguments.model.is_empty() { arguments.tests.len().min(2) } else { 0 };
    let (positional, tests) = arguments.tests.split_at(named);
    let (([first, second], _) | (_, [first, second])) = (arguments.model.as_slice(), positional) else {
        return Err(Failure::input_message(
            "`compare` takes two models: `compare A B`, or `--model A --model B`",
        ));
    };
    if arguments.synthesize.is_some() && !tests.is_empty() {
        return Err(Failure::input_message("`--synthesize` takes no tests: it searches for one"));
    }
    let models = [models::load(first)?, models::load(second)?];
    let mut record = CompareRecord {
        schema: COMPARE_SCHEMA.to_owned(),
        models: [first.clone(), second.clone()],
        ..CompareRecord::default()
    };
    let mut outcome = Outcome::Success;
    match arguments.synthesize {
        Some(events) => record.synthesized = Some(synthesize(&models, &test_constraints(arguments, events))?),
        None => outcome = compare_tests(tests, &models, &mut record)?,
    }
    if arguments.format == ListFormat::Json {
        print_json(&record)?;
        return Ok(outcome);
    }
    match &record.synthesized {
        Some(found) => match &found.test {
            Some(test) => {
                if let (false, Some(difference), Some(operations)) =
                    (quiet, found.difference, found.operations)
                {
                    print_message(&format!(
                        "{operations} operations: {}",
                        describe_difference(difference, &record.models)
                    ));
                }
                let mut out = StandardOutput::new();
                out.print(test)?;
                for next in &found.next {
                    if !quiet {
                        print_message(&format!(
                            "{} operations: {}",
                            next.operations,
                            describe_difference(next.difference, &record.models)
                        ));
                    }
                    out.print(&format!("\n{}", next.test))?;
                }
                if !quiet && found.next.len() < arguments.next as usize {
                    print_message(&format!(
                        "found only {} of {} tests",
                        1 + found.next.len(),
                        1 + arguments.next
                    ));
                }
            }
            None => print_message(&format!(
                "no test with {}{} operations distinguishes {first} from {second}: searched all programs of up to {} operations of the \
                 vocabulary, and shapes beyond",
                describe_bounds(arguments),
                found.events,
                found.events.min(MAX_PROGRAM_SIZE)
            )),
        },
        None => StandardOutput::new().print(&format_record(&record))?,
    }
    Ok(outcome)
}

/// Describes the bounds of the search other than size.
fn describe_bounds(arguments: &Compare) -> String {
    let threads =
        arguments.threads.map_or_else(String::new, |max_threads| format!("{max_threads} threads and "));
    let race_free = if arguments.race_free { "no race and " } else { "" };
    let atomic = if arguments.atomic { "only atomic accesses and " } else { "" };
    format!("{race_free}{atomic}at most {threads}")
}

/// Converts the flags to search bounds.
fn test_constraints(arguments: &Compare, events: u32) -> TestConstraints {
    let number = |number: u32| usize::try_from(number).unwrap_or(usize::MAX);
    TestConstraints {
        max_tests: 1 + number(arguments.next),
        min_operations: 1,
        max_operations: number(events),
        max_threads: arguments.threads.map_or(usize::MAX, number),
        only_atomic: arguments.atomic,
        only_race_free: arguments.race_free,
    }
}

fn synthesize(
    [first, second]: &[LoadedModel; 2],
    constraints: &TestConstraints,
) -> Result<SynthesizedRecord, Failure> {
    let vulkan = litmus::Dialect::Vulkan;
    if !first.model.supports_dialect(vulkan) || !second.model.supports_dialect(vulkan) {
        return Err(Failure::not_available("`--synthesize` for models of the HSA dialect"));
    }
    let found = find_distinctions(&first.model, &second.model, constraints, &TEST_BUDGET)
        .map_err(Failure::input_error)?;
    let mut tests = found.into_iter().enumerate().map(|(index, mut found)| {
        if index > 0 {
            found.test.name += &format!("-{}", index + 1);
        }
        NextTest {
            difference: difference_word(found.difference),
            operations: count_operations(&found.test),
            test: litmus::print(&found.test),
        }
    });
    let smallest = tests.next();
    Ok(SynthesizedRecord {
        events: constraints.max_operations,
        difference: smallest.as_ref().map(|found| found.difference),
        operations: smallest.as_ref().map(|found| found.operations),
        test: smallest.map(|found| found.test),
        next: tests.collect(),
    })
}

enum Comparison {
    /// Both models give the same answer.
    Same,
    Differs(Box<CompareRow>),
    /// The source is not a valid test, or a model cannot answer.
    Rejected(RejectedSource),
}

fn compare_tests(
    tests: &[String],
    models: &[LoadedModel; 2],
    record: &mut CompareRecord,
) -> Result<Outcome, Failure> {
    let mut sources = inputs::collect(tests, None, None, || Ok(inputs::embedded_tests()))?;
    if tests.is_empty() {
        sources.retain(|source| models.iter().all(|chosen| source.is_judged_by(&chosen.model)));
    }
    let mut outcome = Outcome::Success;
    process_in_order(
        &sources,
        |source| compare_test(source.clone(), models),
        |compared| {
            match compared {
                Comparison::Same => record.compared += 1,
                Comparison::Differs(row) => {
                    record.compared += 1;
                    record.differences.push(*row);
                }
                Comparison::Rejected(no_answer) => {
                    // Rejections of embedded tests are not printed: some operations exist in one model only.
                    if !tests.is_empty() {
                        report_rejected(&mut outcome, &no_answer.failure);
                    }
                    record.rejected.push(no_answer.line);
                }
            }
            Ok::<(), Failure>(())
        },
    )?;
    Ok(outcome)
}

fn compare_test(source: TestSource, [first, second]: &[LoadedModel; 2]) -> Comparison {
    let loaded = match source.load() {
        Ok(loaded) => loaded,
        Err(rejected) => return Comparison::Rejected(rejected),
    };
    let file = &loaded.source.file;
    let test = &loaded.test;
    let predict = |chosen: &LoadedModel| predict_summary(test, &chosen.model, &TEST_BUDGET);
    let (first, second) = match (predict(first), predict(second)) {
        (Ok(first), Ok(second)) => (first, second),
        // An error of the input is reported before a limit.
        (Err(error), _) | (_, Err(error)) if !error.is_limit() => {
            return Comparison::Rejected(RejectedSource::without_position(file, error.to_string()));
        }
        (Err(error), _) | (_, Err(error)) => {
            return Comparison::Rejected(RejectedSource::without_answer(file, &error.to_string()));
        }
    };
    if first.race == Race::Unknown || second.race == Race::Unknown {
        return Comparison::Rejected(RejectedSource::without_answer(file, "no answer in time"));
    }
    match Difference::compare(&first, &second) {
        None => Comparison::Same,
        Some(difference) => Comparison::Differs(Box::new(CompareRow {
            id: loaded.source.id.clone(),
            file: file.clone(),
            difference: difference_word(difference),
            race: [first.race.into(), second.race.into()],
            holds: question_holds(test, &first)
                .zip(question_holds(test, &second))
                .map(|(first, second)| [first, second]),
            only_first: outcomes_only_in_one(test, &first, &second),
            only_second: outcomes_only_in_one(test, &second, &first),
        })),
    }
}

/// Evaluates the question of a test under a model's verdict.
fn question_holds(test: &Test, verdict: &PredictionSummary) -> Option<bool> {
    let question = test.question.as_ref()?;
    let observables = test.observables();
    let mut meets = verdict
        .allowed
        .iter()
        .map(|outcome| outcome.meets_condition(test, &observables, &question.condition));
    Some(match question.kind {
        litmus::QuestionKind::Exists | litmus::QuestionKind::Final => meets.any(|meets| meets),
        litmus::QuestionKind::NotExists => !meets.any(|meets| meets),
        litmus::QuestionKind::Forall => meets.all(|meets| meets),
    })
}

/// Returns the outcomes that `one` allows and `other` does not.
fn outcomes_only_in_one(
    test: &Test,
    one: &PredictionSummary,
    other: &PredictionSummary,
) -> Vec<results::state::State> {
    let observables: Vec<Observable> = test.observables();
    one.allowed
        .difference(&other.allowed)
        .map(|outcome| state_from_outcome(test, &observables, outcome))
        .collect()
}

fn describe_difference(difference: DifferenceWord, [first, second]: &[String; 2]) -> String {
    match difference {
        DifferenceWord::Outcome => "race-free under both, and the allowed outcomes differ".to_owned(),
        DifferenceWord::RacyUnderSecond => format!("race-free under {first}, racy under {second}"),
        DifferenceWord::RacyUnderFirst => format!("racy under {first}, race-free under {second}"),
        DifferenceWord::Executions => "racy under both, and the consistent executions differ".to_owned(),
    }
}

fn format_record(record: &CompareRecord) -> String {
    let mut text = String::new();
    for row in &record.differences {
        text += &format!("{}  {}\n", row.id, describe_difference(row.difference, &record.models));
        if row.race.contains(&RaceWord::Free) || row.difference == DifferenceWord::Executions {
            let sides = record.models.iter().zip([&row.only_first, &row.only_second]);
            for (model, outcomes) in sides {
                for outcome in outcomes {
                    text += &format!("    only {model}: {}\n", results::state::format_state(outcome));
                }
            }
        }
    }
    let [first, second] = &record.models;
    let compared = number::plural(record.compared as u64, "test");
    text += &format!("{compared}: {first} and {second} differ on {}\n", record.differences.len());
    text
}
