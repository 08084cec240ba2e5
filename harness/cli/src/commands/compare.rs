//! `compare`: the tests on which two models differ, and the smallest such test.

use campaign::choice::{self, Chosen};
use campaign::inputs;
use campaign::parallel::in_order;
use campaign::source::{Rejected, TestSource};
use litmus::{Observable, Race, Test};
use model::mutation::Difference;
use model::synthesis::{LARGEST, TestConstraints, distinguish_all, operations};
use model::{Budget, Options, Summary, verdict};
use results::state::state;
use results::wire::{
    COMPARE_SCHEMA, CompareRecord, CompareRow, DifferenceWord, NextTest, RaceWord, SynthesizedRecord,
};
use results::write::number;

use crate::arguments::{Compare, ListFormat};
use crate::commands::clauses::difference_word;
use crate::exit::{Failure, Outcome};
use crate::output::print_json;
use crate::output::{Data, reject, say};

/// Budget of one test under one model.
const PATIENCE: Options = Options { budget: Budget::steps(500_000), unroll: 1 };

/// Runs the command.
///
/// # Errors
/// Returns an error without exactly two models, or if the comparison cannot be printed.
pub fn compare(arguments: &Compare, quiet: bool) -> Result<Outcome, Failure> {
    let [first, second] = arguments.model.as_slice() else {
        return Err(Failure::input_message("`compare` takes two models: `--model A --model B`"));
    };
    let models = [choice::load(first)?, choice::load(second)?];
    let mut record = CompareRecord {
        schema: COMPARE_SCHEMA.to_owned(),
        models: [first.clone(), second.clone()],
        compared: 0,
        differences: Vec::new(),
        rejected: Vec::new(),
        synthesized: None,
    };
    let mut outcome = Outcome::Success;
    match arguments.synthesize {
        Some(events) => record.synthesized = Some(synthesize(&models, &wanted(arguments, events))?),
        None => outcome = over_tests(arguments, &models, &mut record)?,
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
                    say(&format!("{operations} operations: {}", words(difference, &record.models)));
                }
                let mut out = Data::new();
                out.print(test)?;
                for next in &found.next {
                    if !quiet {
                        say(&format!(
                            "{} operations: {}",
                            next.operations,
                            words(next.difference, &record.models)
                        ));
                    }
                    out.print(&format!("\n{}", next.test))?;
                }
                if !quiet && found.next.len() < arguments.next as usize {
                    say(&format!("found only {} of {} tests", 1 + found.next.len(), 1 + arguments.next));
                }
            }
            None => say(&format!(
                "no test with {}{} operations distinguishes {first} from {second}: searched all programs of up to {} operations of the \
                 vocabulary, and shapes beyond",
                describe_bounds(arguments),
                found.events,
                found.events.min(LARGEST)
            )),
        },
        None => Data::new().print(&text(&record))?,
    }
    Ok(outcome)
}

/// Describes the bounds of the search other than size.
fn describe_bounds(arguments: &Compare) -> String {
    let threads = arguments.threads.map_or_else(String::new, |most| format!("{most} threads and "));
    format!("{}at most {threads}", if arguments.atomic { "only atomic accesses and " } else { "" })
}

/// Converts the flags to search bounds.
fn wanted(arguments: &Compare, events: u32) -> TestConstraints {
    let number = |number: u32| usize::try_from(number).unwrap_or(usize::MAX);
    TestConstraints {
        tests: 1 + number(arguments.next),
        operations: number(events),
        threads: arguments.threads.map_or(usize::MAX, number),
        atomic: arguments.atomic,
    }
}

fn synthesize([first, second]: &[Chosen; 2], wanted: &TestConstraints) -> Result<SynthesizedRecord, Failure> {
    let vulkan = litmus::Dialect::Vulkan;
    if !first.model.judges(vulkan) || !second.model.judges(vulkan) {
        return Err(Failure::not_available("`--synthesize` for models of the HSA dialect"));
    }
    let found =
        distinguish_all(&first.model, &second.model, wanted, &PATIENCE).map_err(Failure::input_error)?;
    let mut tests = found.into_iter().enumerate().map(|(index, mut found)| {
        if index > 0 {
            found.test.name += &format!("-{}", index + 1);
        }
        NextTest {
            difference: difference_word(found.difference),
            operations: operations(&found.test),
            test: litmus::print(&found.test),
        }
    });
    let smallest = tests.next();
    Ok(SynthesizedRecord {
        events: wanted.operations,
        difference: smallest.as_ref().map(|found| found.difference),
        operations: smallest.as_ref().map(|found| found.operations),
        test: smallest.map(|found| found.test),
        next: tests.collect(),
    })
}

/// The comparison of one source.
enum Compared {
    /// Both models give the same answer.
    Same,
    /// The answers differ.
    Differs(Box<CompareRow>),
    /// The source is not a valid test, or a model cannot answer.
    Rejected(Rejected),
}

fn over_tests(
    arguments: &Compare,
    models: &[Chosen; 2],
    record: &mut CompareRecord,
) -> Result<Outcome, Failure> {
    let mut sources = inputs::collect(&arguments.tests, None, None, || Ok(inputs::all_embedded()))?;
    if arguments.tests.is_empty() {
        sources.retain(|source| models.iter().all(|chosen| source.suits(&chosen.model)));
    }
    let mut outcome = Outcome::Success;
    in_order(
        &sources,
        |source| compare_test(source.clone(), models),
        |compared| {
            match compared {
                Compared::Same => record.compared += 1,
                Compared::Differs(row) => {
                    record.compared += 1;
                    record.differences.push(*row);
                }
                Compared::Rejected(no_answer) => {
                    // Rejections of embedded tests are not printed: some operations exist in one model only.
                    if !arguments.tests.is_empty() {
                        reject(&mut outcome, &no_answer.failure);
                    }
                    record.rejected.push(no_answer.line);
                }
            }
            Ok::<(), Failure>(())
        },
    )?;
    Ok(outcome)
}

fn compare_test(source: TestSource, [first, second]: &[Chosen; 2]) -> Compared {
    let loaded = match source.load() {
        Ok(loaded) => loaded,
        Err(rejected) => return Compared::Rejected(rejected),
    };
    let file = &loaded.source.file;
    let test = &loaded.test;
    let ask = |chosen: &Chosen| verdict(test, &chosen.model, &PATIENCE);
    let (first, second) = match (ask(first), ask(second)) {
        (Ok(first), Ok(second)) => (first, second),
        (Err(error), _) | (_, Err(error)) => {
            return Compared::Rejected(Rejected::whole(file, error.to_string()));
        }
    };
    if first.race == Race::Unknown || second.race == Race::Unknown {
        return Compared::Rejected(Rejected::whole(file, "no answer in time".to_owned()));
    }
    match Difference::between(&first, &second) {
        None => Compared::Same,
        Some(difference) => Compared::Differs(Box::new(CompareRow {
            id: loaded.source.id.clone(),
            file: file.clone(),
            difference: difference_word(difference),
            race: [first.race.into(), second.race.into()],
            holds: question_holds(test, &first)
                .zip(question_holds(test, &second))
                .map(|(first, second)| [first, second]),
            only_first: outcomes_of_one(test, &first, &second),
            only_second: outcomes_of_one(test, &second, &first),
        })),
    }
}

/// Evaluates the question of a test under a model's verdict.
fn question_holds(test: &Test, verdict: &Summary) -> Option<bool> {
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
fn outcomes_of_one(test: &Test, one: &Summary, other: &Summary) -> Vec<results::state::State> {
    let observables: Vec<Observable> = test.observables();
    one.allowed.difference(&other.allowed).map(|outcome| state(test, &observables, outcome)).collect()
}

/// Describes a difference.
fn words(difference: DifferenceWord, [first, second]: &[String; 2]) -> String {
    match difference {
        DifferenceWord::Outcome => "race-free under both, and the allowed outcomes differ".to_owned(),
        DifferenceWord::RacyUnderSecond => format!("race-free under {first}, racy under {second}"),
        DifferenceWord::RacyUnderFirst => format!("racy under {first}, race-free under {second}"),
        DifferenceWord::Executions => "racy under both, and the consistent executions differ".to_owned(),
    }
}

fn text(record: &CompareRecord) -> String {
    let mut text = String::new();
    for row in &record.differences {
        text += &format!("{}  {}\n", row.id, words(row.difference, &record.models));
        if row.race.contains(&RaceWord::Free) || row.difference == DifferenceWord::Executions {
            let sides = record.models.iter().zip([&row.only_first, &row.only_second]);
            for (model, outcomes) in sides {
                for outcome in outcomes {
                    text += &format!("    only {model}: {}\n", results::state::text(outcome));
                }
            }
        }
    }
    let [first, second] = &record.models;
    let compared = number::plural(record.compared as u64, "test");
    text += &format!("{compared}: {first} and {second} differ on {}\n", record.differences.len());
    text
}
