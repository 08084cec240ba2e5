//! `generate`: the minimal forbidden tests of a model with their twins, or the smallest tests that
//! discriminate a clause.

use std::collections::BTreeSet;
use std::path::Path;

use campaign::models;
use campaign::parallel::process_in_order;
use litmus::{Dialect, Expectation, Race, Reachability, Span, Test};
use model::mutation::generate_mutants;
use model::synthesis::{
    MinimalTests, SHAPES, ShapeVariant, WeakenedTest, count_operations, find_distinction, find_minimal_tests,
    placements,
};
use model::{Budget, Model, PredictOptions};

use crate::arguments::Generate;
use crate::exit::{Failure, Outcome};
use crate::output::{StandardOutput, check_empty_folder, create_folder, print_message, write_file};

const TEST_BUDGET: PredictOptions = PredictOptions { budget: Budget::from_steps(500_000), unroll: 1 };
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
        Some(clause) => write_clause_tests(&chosen.model, clause, arguments.events, &mut destination, quiet)?,
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
    let size = |number: u32| usize::try_from(number).unwrap_or(usize::MAX);
    let cells = strongest_cells(size(arguments.threads), size(arguments.events));
    let mut written_programs: BTreeSet<String> = BTreeSet::new();
    let (mut minimal, mut twins, mut examined, mut incomplete) = (0, 0, 0, 0);
    process_in_order(
        &cells,
        |cell| {
            (cell.name(), find_minimal_tests(&cell.strongest_test(), model, &TEST_BUDGET, MAX_WEAKENED_TESTS))
        },
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
            "warning: the search of {incomplete} shapes is incomplete: tests may be missing"
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
fn write_clause_tests(
    model: &Model,
    clause: &str,
    events: u32,
    destination: &mut Destination<'_>,
    quiet: bool,
) -> Result<(), Failure> {
    let changed = generate_mutants(model, &|_, clauses| clauses.iter().any(|cited| cited == clause));
    if changed.is_empty() {
        let name = model.name();
        return Err(Failure::input_message(format!(
            "no statement of {name} that can be mutated cites `{clause}` (`clauses` lists them)"
        )));
    }
    let events = usize::try_from(events).unwrap_or(usize::MAX);
    let mut written_programs: BTreeSet<String> = BTreeSet::new();
    for mutant in &changed {
        let mutation = &mutant.mutation;
        let what = format!("{} {}", mutation.statement, mutation.change);
        match find_distinction(model, &mutant.model, events, &TEST_BUDGET).map_err(Failure::input_error)? {
            Some(found) if written_programs.insert(program_text(&found.test)) => {
                let mut test = found.test;
                test.name = format!("{clause}.{}", written_programs.len());
                test.metadata.expectations.truncate(1);
                test.metadata.clauses = vec![clause.to_owned()];
                test.metadata.why = vec![format!("Notices {what}.")];
                destination.write(&test)?;
            }
            Some(_) => {}
            None if quiet => {}
            None => print_message(&format!("no test with at most {events} operations detects {what}")),
        }
    }
    Ok(())
}
