//! `generate`: the minimal forbidden tests of a model with their twins, or the smallest tests that
//! discriminate a clause.

use std::collections::BTreeSet;
use std::path::Path;
use std::time::Instant;

use campaign::parallel::{parallel_map, process_in_order};
use campaign::{inputs, models};
use humantime::format_duration;
use litmus::{Dialect, Expectation, Race, Reachability, Span, Test};
use model::mutation::{Mutant, Mutation, SurvivingMutant, generate_mutants, list_surviving_mutants};
use model::synthesis::{
    MinimalTests, SHAPES, ShapeVariant, TestConstraints, WeakenedTest, count_operations, find_distinctions,
    find_minimal_tests, placements, reduce_distinction,
};
use model::{Budget, Model, PredictOptions};
use results::write::number::plural;

use crate::arguments::Generate;
use crate::exit::{Failure, Outcome};
use crate::output::{StandardOutput, check_empty_folder, create_folder, print_message, write_file};

/// Steps of the prediction of one test.
const TEST_STEPS: u64 = 500_000;
/// Largest number of weakened tests examined below one strongest test.
const MAX_WEAKENED_TESTS: usize = 20_000;

/// Runs the command.
///
/// # Errors
/// Returns an error if the model or the clause is unknown, or the tests cannot be written.
pub fn generate(arguments: &Generate, quiet: bool) -> Result<Outcome, Failure> {
    let chosen = models::load(&arguments.model)?;
    if !chosen.model.supports_dialect(Dialect::Vulkan) {
        return Err(Failure::not_available("`generate` for models of the HSA dialect"));
    }
    let mut destination = Destination::new(arguments.out.as_deref())?;
    match &arguments.clause {
        Some(clause) => write_clause_tests(&chosen.model, clause, arguments, &mut destination, quiet)?,
        None => write_minimal(&chosen.model, arguments, &mut destination, quiet)?,
    }
    Ok(Outcome::Success)
}

/// The destination of tests: a folder or standard output.
struct Destination<'a> {
    folder: Option<&'a Path>,
    data: StandardOutput,
    count: usize,
}

impl<'a> Destination<'a> {
    fn new(folder: Option<&'a Path>) -> Result<Destination<'a>, Failure> {
        if let Some(folder) = folder {
            check_empty_folder(folder)?;
            create_folder(folder)?;
        }
        Ok(Destination { folder, data: StandardOutput::new(), count: 0 })
    }

    fn write(&mut self, test: &Test) -> Result<(), Failure> {
        let text = litmus::print(test);
        match self.folder {
            Some(folder) => {
                let file = folder.join(format!("{}.litmus", test.name));
                write_file(&file, text.as_bytes())?;
            }
            None => {
                let gap = if self.count == 0 { "" } else { "\n" };
                self.data.print(&format!("{gap}{text}"))?;
            }
        }
        self.count += 1;
        Ok(())
    }
}

/// Returns the most synchronized test of each shape and placement within the bounds.
fn strongest_cells(threads: usize, events: usize) -> Vec<ShapeVariant> {
    SHAPES
        .iter()
        .filter(|shape| shape.thread_count() <= threads)
        .flat_map(|shape| {
            placements(shape.thread_count(), false)
                .into_iter()
                .flat_map(move |places| shape.variants(&places))
        })
        .filter(|cell| count_operations(&cell.strongest_test()) <= events)
        .collect()
}

fn write_minimal(
    model: &Model,
    arguments: &Generate,
    destination: &mut Destination<'_>,
    quiet: bool,
) -> Result<(), Failure> {
    let start = Instant::now();
    let is_over = || start.elapsed() >= arguments.time;
    let options = PredictOptions { budget: Budget::until(&is_over).with_step_limit(TEST_STEPS), unroll: 1 };
    let size = |number: u32| usize::try_from(number).unwrap_or(usize::MAX);
    let cells = strongest_cells(size(arguments.threads), size(arguments.events));
    let mut written_programs: BTreeSet<String> = BTreeSet::new();
    let (mut minimal, mut twins, mut examined, mut incomplete) = (0, 0, 0, 0);
    process_in_order(
        &cells,
        |cell| (cell.name(), find_minimal_tests(&cell.strongest_test(), model, &options, MAX_WEAKENED_TESTS)),
        |(name, below)| {
            let MinimalTests { minimal: found, judged_tests: now, complete } =
                below.map_err(Failure::input_error)?;
            examined += now;
            incomplete += usize::from(!complete);
            let several = found.len() > 1;
            for (index, test) in found.into_iter().enumerate() {
                let name = if several { format!("{name}.{}", index + 1) } else { name.clone() };
                if !written_programs.insert(program_text(&test.test)) {
                    continue;
                }
                minimal += 1;
                let why = "Minimal: one step of synchronization less, and the outcome is allowed or the program races.";
                destination.write(&describe_test(test.test, &name, model, Reachability::Forbidden, why))?;
                for (number, WeakenedTest { step, test }) in test.twins.into_iter().enumerate() {
                    if written_programs.insert(program_text(&test)) {
                        twins += 1;
                        let twin = format!("{name}.twin{}", number + 1);
                        let why = format!("Twin of {name}: {step}.");
                        destination.write(&describe_test(test, &twin, model, Reachability::Allowed, &why))?;
                    }
                }
            }
            Ok::<(), Failure>(())
        },
    )?;
    if !quiet {
        print_message(&format!(
            "{minimal} minimal tests and {twins} twins of {} shapes; {examined} tests checked",
            cells.len()
        ));
    }
    if incomplete > 0 {
        print_message(&format!(
            "warning: the search of {incomplete} shapes is incomplete: tests may be missing (--time continues)"
        ));
    }
    Ok(())
}

/// Prints a test without its name and header, to detect duplicates.
fn program_text(test: &Test) -> String {
    let mut bare = test.clone();
    bare.name = "program".to_owned();
    litmus::print(&bare)
}

fn describe_test(mut test: Test, name: &str, model: &Model, reachability: Reachability, why: &str) -> Test {
    test.name = name.to_owned();
    test.metadata.expectations = vec![Expectation {
        model: model.name().to_owned(),
        reachability,
        race: Some(Race::Free),
        uninitialised: false,
        span: Span::default(),
    }];
    test.metadata.why = vec![why.to_owned()];
    test
}

/// Writes, for each mutation of a statement that cites the clause, the smallest test that detects it.
///
/// The search deepens: all programs of one size are tried for every mutation before those of the next size. A
/// mutation left when the time is over gets a reduced test of the corpus, which need not be the smallest.
fn write_clause_tests(
    model: &Model,
    clause: &str,
    arguments: &Generate,
    destination: &mut Destination<'_>,
    quiet: bool,
) -> Result<(), Failure> {
    let mut undetected = generate_mutants(model, &|_, clauses| clauses.iter().any(|cited| cited == clause));
    if undetected.is_empty() {
        let name = model.name();
        return Err(Failure::input_message(format!(
            "no statement of {name} that can be mutated cites `{clause}` (`clauses` lists them)"
        )));
    }
    let start = Instant::now();
    let time = arguments.time;
    let (_, known) = list_surviving_mutants();
    undetected.retain(|Mutant { mutation, .. }| {
        let is_same = |known: &&SurvivingMutant| {
            (known.model, known.statement, known.change)
                == (model.name(), mutation.statement.as_str(), mutation.change.as_str())
        };
        let proof = known.iter().find(is_same).and_then(|known| known.equivalence_proof);
        if let (Some((_, why)), false) = (proof, quiet) {
            print_message(&format!("no test detects {} {}: {why}", mutation.statement, mutation.change));
        }
        proof.is_none()
    });
    if !quiet {
        print_message(&format!(
            "searching tests for {} of {clause}",
            plural(undetected.len() as u64, "mutation")
        ));
    }
    let mut written_programs: BTreeSet<String> = BTreeSet::new();
    let mut write = |mut test: Test, mutation: &Mutation| {
        if written_programs.insert(program_text(&test)) {
            test.name = format!("{clause}.{}", written_programs.len());
            test.metadata.expectations.truncate(1);
            test.metadata.clauses = vec![clause.to_owned()];
            test.metadata.why = vec![format!("Notices {} {}.", mutation.statement, mutation.change)];
            destination.write(&test)?;
        }
        Ok::<(), Failure>(())
    };
    let max_operations = usize::try_from(arguments.events).unwrap_or(usize::MAX);
    // A corpus test for each mutation, as a substitute, takes a part of the time.
    let is_over = |part: f64| start.elapsed() >= time.mul_f64(part);
    let corpus_over = || is_over(CORPUS_TIME_SHARE);
    let corpus = corpus_tests(clause);
    let options =
        PredictOptions { budget: Budget::until(&corpus_over).with_step_limit(TEST_STEPS), unroll: 1 };
    let substitutes: Vec<Option<Test>> = parallel_map(&undetected, |mutant: &Mutant| {
        let mut reduced = corpus.iter().map_while(|test| {
            (!corpus_over()).then(|| reduce_distinction(test, model, &mutant.model, &options).ok().flatten())
        });
        reduced.find_map(|found| {
            found.map(|found| found.test).filter(|test| count_operations(test) <= max_operations)
        })
    });
    let mut undetected: Vec<_> = undetected.drain(..).zip(substitutes).collect();
    let search_over = || is_over(1.0);
    let options =
        PredictOptions { budget: Budget::until(&search_over).with_step_limit(TEST_STEPS), unroll: 1 };
    let mut searched_size = 0;
    for size in 1..=max_operations {
        let constraints = TestConstraints { min_operations: size, ..TestConstraints::single_test(size) };
        let mut left = Vec::new();
        for (mutant, substitute) in undetected {
            // Nothing smaller exists than a substitute of this size.
            let known = substitute.clone().filter(|test| count_operations(test) <= size);
            let found = match known {
                Some(test) => Some(test),
                None => find_distinctions(model, &mutant.model, &constraints, &options)
                    .map_err(Failure::input_error)?
                    .pop()
                    .map(|found| found.test),
            };
            match found {
                Some(test) => write(test, &mutant.mutation)?,
                None => left.push((mutant, substitute)),
            }
        }
        undetected = left;
        if is_over(1.0) {
            break;
        }
        searched_size = size;
    }
    let searched = if searched_size == max_operations {
        String::new()
    } else {
        format!(" (searched up to {searched_size} operations in {}; --time continues)", format_duration(time))
    };
    for (mutant, substitute) in undetected {
        match substitute {
            Some(test) => write(test, &mutant.mutation)?,
            None if quiet => {}
            None => print_message(&format!(
                "no test with at most {max_operations} operations detects {} {}{searched}",
                mutant.mutation.statement, mutant.mutation.change
            )),
        }
    }
    Ok(())
}

/// The part of the time for tests of the corpus.
const CORPUS_TIME_SHARE: f64 = 0.4;

/// Returns the tests of the corpus that may detect a mutation of a clause: those that name it first, then by size.
fn corpus_tests(clause: &str) -> Vec<Test> {
    let sources = inputs::embedded_tests().into_iter().filter_map(|source| source.load().ok());
    let mut tests: Vec<Test> = sources
        .map(|loaded| loaded.test)
        .filter(|test| test.dialect == Dialect::Vulkan && test.khronos.is_none())
        .collect();
    tests.sort_by_key(|test| {
        (!test.metadata.clauses.iter().any(|named| named == clause), count_operations(test))
    });
    tests
}
