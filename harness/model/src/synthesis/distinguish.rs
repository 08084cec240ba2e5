//! Searches for the smallest test on which two models differ.

use std::collections::{HashSet, VecDeque};
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicUsize, Ordering};

use litmus::minimize::descend;
use litmus::{
    Access, Expectation, Flow, InstructionKind, Metadata, Observable, Outcome, Race, Reachability, Span,
    StorageClass, Term, Test, ThreadId,
};

use super::draft::exists_question;
use super::enumerate::{FormVocabulary, MAX_PROGRAM_SIZE};
use super::minimal::{ConditionVerdict, classify_condition};
use super::shape::{SHAPES, ShapeVariant, count_operations, placements};
use super::weaken::{replace_instruction, weaken_test};
use crate::mutation::Difference;
use crate::{Model, PredictError, PredictOptions, PredictionSummary, predict_summary};
use solver::BudgetTracker;

/// A test on which two models differ.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Distinction {
    /// The test. Its question concerns the difference, and its expectations are the verdicts of both models.
    pub test: Test,
    /// The difference of the verdicts.
    pub difference: Difference,
    /// Verdict of the first model.
    pub first: PredictionSummary,
    /// Verdict of the second model.
    pub second: PredictionSummary,
}

/// Number of tests in one parallel batch.
const BATCH_SIZE: usize = 1024;
/// Bound on the tests below one strongest test of a shape.
const MAX_WEAKENED_TESTS: usize = 200;
/// Number of strongest tests whose weakenings are searched in parallel.
const STRONGEST_BATCH_SIZE: usize = 32;

/// Constraints on the wanted tests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TestConstraints {
    pub max_tests: usize,
    /// The fewest operations of a program or shape that is tried; the reduced test may have fewer.
    pub min_operations: usize,
    /// The most operations of a test.
    pub max_operations: usize,
    /// The most threads of a test.
    pub max_threads: usize,
    /// True if all its accesses are atomic.
    pub only_atomic: bool,
    /// True if it is race-free under both models, so that an outcome distinguishes them.
    pub only_race_free: bool,
}

impl TestConstraints {
    /// Requests one test with at most `operations` operations, without further constraints.
    pub fn single_test(operations: usize) -> TestConstraints {
        TestConstraints {
            max_tests: 1,
            min_operations: 1,
            max_operations: operations,
            max_threads: usize::MAX,
            only_atomic: false,
            only_race_free: false,
        }
    }

    /// Bound on the stored tests of one size. Several may coincide after reduction.
    fn capacity(&self) -> usize {
        if self.max_tests == 1 { 1 } else { self.max_tests.saturating_mul(8) }
    }

    fn is_satisfied_by(&self, test: &Test) -> bool {
        let is_atomic = |kind: &InstructionKind| match kind {
            InstructionKind::Access(access) => matches!(access.strength, Access::Atomic { .. }),
            _ => true,
        };
        let kinds = || {
            test.threads.iter().flat_map(|thread| &thread.instructions).map(|instruction| &instruction.kind)
        };
        test.threads.len() <= self.max_threads && (!self.only_atomic || kinds().all(is_atomic))
    }
}

/// Finds the smallest tests on which two models differ, in order of size.
///
/// Searches all programs up to [`MAX_PROGRAM_SIZE`] operations over the [`FormVocabulary`], then the weakenings of
/// the [`SHAPES`]. Tests that are racy under both models follow only if there are too few others. The order
/// within one size is fixed. If the budget of `options` has a stop callback, it ends the search early.
///
/// # Errors
/// As for [`predict_summary`].
pub fn find_distinctions(
    first: &Model,
    second: &Model,
    constraints: &TestConstraints,
    options: &PredictOptions,
) -> Result<Vec<Distinction>, PredictError> {
    let pair = ModelPair { first, second, options: *options, constraints: *constraints };
    let vocabulary = FormVocabulary::from_models(&[first, second]);
    let mut all = Vec::new();
    let mut texts = HashSet::new();
    let mut fallback = Vec::new();
    for size in constraints.min_operations..=constraints.max_operations {
        if pair.is_stopped() {
            break;
        }
        let mut found = BestTests::new(constraints.capacity());
        if size <= MAX_PROGRAM_SIZE {
            pair.search_programs(size, &vocabulary, &mut found)?;
        }
        if !found.is_full() {
            pair.search_shapes(size, &mut found)?;
        }
        for (test, difference) in found.tests {
            if difference == Difference::Executions {
                fallback.push(test);
            } else if pair.add_reduced(test, &mut texts, &mut all)? {
                return Ok(all);
            }
        }
    }
    for test in fallback {
        if pair.add_reduced(test, &mut texts, &mut all)? {
            break;
        }
    }
    Ok(all)
}

/// Reduces a distinguishing test by single steps, while the difference is at least as strong. Returns `None`
/// if the given test does not distinguish the models.
///
/// # Errors
/// As for [`predict_summary`].
pub fn reduce_distinction(
    test: &Test,
    first: &Model,
    second: &Model,
    options: &PredictOptions,
) -> Result<Option<Distinction>, PredictError> {
    let pair =
        ModelPair { first, second, options: *options, constraints: TestConstraints::single_test(usize::MAX) };
    if pair.compare_models(test)?.is_none() {
        return Ok(None);
    }
    pair.reduce(test.clone()).map(Some)
}

/// Does `work` for every item on all processors; the results are in the order of the items.
fn map_in_parallel<T: Sync, R: Send>(items: &[T], work: impl Fn(&T) -> R + Sync) -> Vec<R> {
    let next = AtomicUsize::new(0);
    let workers = std::thread::available_parallelism().map_or(1, usize::from).min(items.len());
    let mut found: Vec<(usize, R)> = std::thread::scope(|scope| {
        let worker = || {
            let mut results = Vec::new();
            loop {
                let index = next.fetch_add(1, Ordering::Relaxed);
                let Some(item) = items.get(index) else { return results };
                results.push((index, work(item)));
            }
        };
        let start = |_| std::thread::Builder::new().spawn_scoped(scope, worker).ok();
        let handles: Vec<_> = (0..workers).map_while(start).collect();
        // If no thread can be created, this one does the work.
        let mut found = if handles.is_empty() { worker() } else { Vec::with_capacity(items.len()) };
        for handle in handles {
            match handle.join() {
                Ok(results) => found.extend(results),
                Err(panic) => std::panic::resume_unwind(panic),
            }
        }
        found
    });
    found.sort_by_key(|(index, _)| *index);
    found.into_iter().map(|(_, result)| result).collect()
}

/// Collects distinct tests for comparing models: all programs of `operations` operations over the model's
/// vocabulary, the strongest tests of the shapes, the given tests, and the single weakenings of the latter
/// two.
pub fn collect_comparison_tests(model: &Model, operations: usize, given: &[Test]) -> Vec<Test> {
    let mut tests = Vec::new();
    let mut texts = HashSet::new();
    let mut add = |mut test: Test| {
        test.name = "pool".to_owned();
        test.metadata = Metadata::default();
        if texts.insert(litmus::print(&test)) {
            tests.push(test);
        }
    };
    let vocabulary = FormVocabulary::from_models(&[model]);
    for size in 1..=operations.min(MAX_PROGRAM_SIZE) {
        // The visitor never breaks off.
        let _ = vocabulary.for_each_program(size, &mut |test| {
            add(test);
            ControlFlow::Continue(())
        });
    }
    let shape_variants = SHAPES.iter().flat_map(|shape| {
        placements(shape.thread_count(), false).into_iter().flat_map(|places| shape.variants(&places))
    });
    for test in shape_variants
        .flat_map(storage_class_variants)
        .map(|cell| cell.strongest_test())
        .chain(given.iter().cloned())
    {
        weaken_test(&test).into_iter().for_each(|weaker| add(weaker.test));
        add(test);
    }
    tests
}

/// Two models and the options of their queries.
struct ModelPair<'a> {
    first: &'a Model,
    second: &'a Model,
    options: PredictOptions<'a>,
    constraints: TestConstraints,
}

/// The best tests of one size, strongest difference first, then in order of discovery.
struct BestTests {
    capacity: usize,
    tests: Vec<(Test, Difference)>,
}

impl BestTests {
    fn new(capacity: usize) -> BestTests {
        BestTests { capacity, tests: Vec::new() }
    }

    /// Inserts a test if there is room, or if it replaces one with a weaker difference.
    fn insert(&mut self, test: &Test, difference: Difference) {
        // Equal differences stay in order of discovery.
        let position = self.tests.partition_point(|(_, known)| *known <= difference);
        if position < self.capacity {
            self.tests.insert(position, (test.clone(), difference));
            self.tests.truncate(self.capacity);
        }
    }

    /// Returns true if no later test can be better.
    fn is_full(&self) -> bool {
        self.tests.len() == self.capacity
            && self.tests.last().is_some_and(|(_, difference)| *difference == Difference::Outcome)
    }
}

impl ModelPair<'_> {
    fn predict_both(&self, test: &Test) -> Result<(PredictionSummary, PredictionSummary), PredictError> {
        Ok((
            predict_summary(test, self.first, &self.options)?,
            predict_summary(test, self.second, &self.options)?,
        ))
    }

    /// Returns true once the stop callback of the budget ends the search.
    fn is_stopped(&self) -> bool {
        BudgetTracker::new(self.options.budget).is_exhausted()
    }

    /// Compares the verdicts of both models about a test. One that a model does not support distinguishes nothing.
    fn compare_models(&self, test: &Test) -> Result<Option<Difference>, PredictError> {
        match self.predict_both(test) {
            Ok((first, second)) => Ok(self.find_difference(&first, &second)),
            Err(PredictError::NotAvailable { .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Returns the difference of two verdicts, if the constraints allow it.
    fn find_difference(&self, first: &PredictionSummary, second: &PredictionSummary) -> Option<Difference> {
        let is_wanted =
            |found: &Difference| !self.constraints.only_race_free || *found == Difference::Outcome;
        Difference::compare(first, second).filter(is_wanted)
    }

    /// Tests all programs of one size.
    fn search_programs(
        &self,
        size: usize,
        vocabulary: &FormVocabulary,
        best: &mut BestTests,
    ) -> Result<(), PredictError> {
        let mut batch = Vec::with_capacity(BATCH_SIZE);
        let mut failed = None;
        let flow = vocabulary.for_each_program(size, &mut |test| {
            if self.constraints.is_satisfied_by(&test) {
                batch.push(test);
            }
            if batch.len() < BATCH_SIZE {
                return ControlFlow::Continue(());
            }
            match self.judge_batch(&batch, best) {
                Ok(()) => {}
                Err(error) => {
                    failed = Some(error);
                    return ControlFlow::Break(());
                }
            }
            batch.clear();
            if best.is_full() || self.is_stopped() {
                return ControlFlow::Break(());
            }
            ControlFlow::Continue(())
        });
        match (failed, flow) {
            (Some(error), _) => Err(error),
            (None, ControlFlow::Continue(())) => self.judge_batch(&batch, best),
            (None, ControlFlow::Break(())) => Ok(()),
        }
    }

    /// Judges a batch on all processors. The selection does not depend on scheduling.
    fn judge_batch(&self, batch: &[Test], best: &mut BestTests) -> Result<(), PredictError> {
        let found = map_in_parallel(batch, |test| self.compare_models(test));
        for (test, difference) in batch.iter().zip(found) {
            if let Some(difference) = difference? {
                best.insert(test, difference);
            }
        }
        Ok(())
    }

    /// Searches the strongest tests of one size of every shape, then their weakenings while one of the models
    /// forbids the outcome. The latter covers placements with equally distant threads only.
    fn search_shapes(&self, size: usize, best: &mut BestTests) -> Result<(), PredictError> {
        let strongest_tests = |unequal: bool| -> Vec<Test> {
            let shape_variants = SHAPES.iter().flat_map(|shape| {
                placements(shape.thread_count(), unequal)
                    .into_iter()
                    .flat_map(|places| shape.variants(&places))
            });
            shape_variants
                .flat_map(storage_class_variants)
                .map(|cell| cell.strongest_test())
                .filter(|top| count_operations(top) == size && self.constraints.is_satisfied_by(top))
                .collect()
        };
        self.judge_batch(&strongest_tests(true), best)?;
        for chunk in strongest_tests(false).chunks(STRONGEST_BATCH_SIZE) {
            if best.is_full() || self.is_stopped() {
                return Ok(());
            }
            for found in map_in_parallel(chunk, |top| self.search_weakenings(top)) {
                for (test, difference) in found?.tests {
                    best.insert(&test, difference);
                }
            }
        }
        Ok(())
    }

    /// Returns the tests with the strongest difference at or below `top`, nearest first.
    fn search_weakenings(&self, top: &Test) -> Result<BestTests, PredictError> {
        let mut best = BestTests::new(self.constraints.capacity());
        let mut visited: HashSet<String> = HashSet::from([litmus::print(top)]);
        let mut worklist = VecDeque::from([top.clone()]);
        let mut judged = 0;
        while let Some(test) = worklist.pop_front() {
            let (first, second) = match self.predict_both(&test) {
                Err(PredictError::NotAvailable { .. }) => continue,
                verdicts => verdicts?,
            };
            judged += 1;
            if let Some(difference) = self.find_difference(&first, &second) {
                best.insert(&test, difference);
                if best.is_full() {
                    return Ok(best);
                }
            }
            let is_forbidden = |verdict| classify_condition(&test, verdict) == ConditionVerdict::Forbidden;
            // Weakening only allows more outcomes, so if neither model forbids this one, neither
            // does further down.
            if judged >= MAX_WEAKENED_TESTS || !(is_forbidden(&first) || is_forbidden(&second)) {
                continue;
            }
            for weaker in
                weaken_test(&test).into_iter().filter(|weaker| self.constraints.is_satisfied_by(&weaker.test))
            {
                if visited.len() < MAX_WEAKENED_TESTS && visited.insert(litmus::print(&weaker.test)) {
                    worklist.push_back(weaker.test);
                }
            }
        }
        Ok(best)
    }

    /// Adds a reduced test if it is new; returns true if enough tests are found.
    fn add_reduced(
        &self,
        test: Test,
        texts: &mut HashSet<String>,
        all: &mut Vec<Distinction>,
    ) -> Result<bool, PredictError> {
        let found = self.reduce(test)?;
        if texts.insert(litmus::print(&found.test)) {
            all.push(found);
        }
        Ok(all.len() == self.constraints.max_tests)
    }

    /// Reduces the test while the difference remains, and records the verdicts of both models.
    fn reduce(&self, test: Test) -> Result<Distinction, PredictError> {
        let initial_difference = self.compare_models(&test)?;
        let test = without_question(test);
        // Without its question a test shows at least the same registers.
        let difference = self.compare_models(&test)?.or(initial_difference);
        let mut best = (test, difference);
        let candidates = |(test, _): &(Test, Option<Difference>)| smaller_tests(test);
        descend(&mut best, candidates, |candidate, (_, difference)| {
            if !self.constraints.is_satisfied_by(&candidate) {
                return Ok(None);
            }
            // Stronger differences are smaller, so reduction never trades a difference for a weaker one.
            let now = self.compare_models(&candidate)?;
            Ok((now.is_some() && now <= *difference).then_some((candidate, now)))
        })?;
        let (mut test, _) = best;
        let (first, second) = self.predict_both(&test)?;
        let difference = Difference::compare(&first, &second).unwrap_or(Difference::Executions);
        let observables = test.observables();
        if let Some(outcome) = distinguishing_outcome(&first, &second) {
            let expected_values: Vec<(Term, i64)> = observables
                .iter()
                .zip(&outcome.0)
                .map(|(observable, value)| {
                    let term = match observable {
                        Observable::Register(thread, register) => Term::Register(*thread, *register),
                        Observable::Location(location, component) => Term::Location(*location, *component),
                    };
                    (term, value.to_signed(test.observable_type(*observable)))
                })
                .collect();
            test.question = (!expected_values.is_empty()).then(|| exists_question(&expected_values));
        }
        test.listed_terms.clear();
        test.name = format!("{}-{}", self.first.name(), self.second.name());
        test.metadata = Metadata::default();
        for model in [self.first, self.second] {
            let verdict = predict_summary(&test, model, &self.options)?;
            test.metadata.expectations.push(expectation_from_verdict(&test, model, &verdict));
        }
        Ok(Distinction { test, difference, first, second })
    }
}

/// Returns the expectation that corresponds to a model's verdict.
pub fn expectation_from_verdict(test: &Test, model: &Model, verdict: &PredictionSummary) -> Expectation {
    let observables = test.observables();
    let is_allowed = test.question.as_ref().is_none_or(|question| {
        verdict.allowed.iter().any(|outcome| outcome.meets_condition(test, &observables, &question.condition))
    });
    Expectation {
        model: model.name().to_owned(),
        reachability: if is_allowed { Reachability::Allowed } else { Reachability::Forbidden },
        race: Some(verdict.race).filter(|race| *race != Race::Unknown),
        uninitialised: false,
        span: Span::default(),
    }
}

/// Returns an outcome that only one of the models allows, or one that both allow if only the race differs.
fn distinguishing_outcome<'v>(
    first: &'v PredictionSummary,
    second: &'v PredictionSummary,
) -> Option<&'v Outcome> {
    let exclusive = first.allowed.symmetric_difference(&second.allowed).next();
    exclusive.or_else(|| first.allowed.intersection(&second.allowed).last())
}

/// Returns the cell with payload and synchronization in one storage class and in two, and with the narrowest sufficient scopes.
fn storage_class_variants(cell: ShapeVariant) -> Vec<ShapeVariant> {
    let with_classes = |payload, carrier| ShapeVariant { payload, carrier, ..cell.clone() };
    let mut found = vec![
        cell.clone(),
        with_classes(StorageClass::Workgroup, StorageClass::Buffer),
        with_classes(StorageClass::Buffer, StorageClass::Workgroup),
    ];
    if cell.places.len() > 2 {
        found.push(ShapeVariant { has_tight_scopes: true, ..cell });
    }
    found
}

/// Removes the question, and keeps its final values observable.
fn without_question(mut test: Test) -> Test {
    if let Some(question) = test.question.take() {
        question.condition.for_each_term(&mut |term| {
            if matches!(term, Term::Location(..)) && !test.listed_terms.contains(term) {
                test.listed_terms.push(term.clone());
            }
        });
    }
    test
}

/// Returns tests without one instruction, then tests with one weakening step.
pub fn smaller_tests(test: &Test) -> Vec<Test> {
    let mut found = Vec::new();
    for (thread, column) in test.threads.iter().enumerate() {
        for (index, instruction) in column.instructions.iter().enumerate() {
            if !matches!(instruction.kind, InstructionKind::Flow(Flow::Label(_))) {
                found.extend(replace_instruction(test, thread, index, Vec::new()).map(remove_unused));
            }
        }
    }
    found.extend(weaken_test(test).into_iter().map(|weaker| remove_unused(weaker.test)));
    found
}

/// Removes unused parts of a test: threads without instructions, labels without jumps.
fn remove_unused(mut test: Test) -> Test {
    for thread in &mut test.threads {
        let jumps = thread.instructions.iter().any(|instruction| {
            matches!(instruction.kind, InstructionKind::Flow(Flow::Branch { .. } | Flow::Goto(_)))
        });
        if !jumps {
            thread.instructions.retain(|i| !matches!(i.kind, InstructionKind::Flow(Flow::Label(_))));
            thread.labels.clear();
        }
    }
    let nonempty: Vec<usize> =
        (0..test.threads.len()).filter(|index| !test.threads[*index].instructions.is_empty()).collect();
    // Instructions that refer to threads by number would need renumbering.
    let refers_to_threads = test.threads.iter().flat_map(|thread| &thread.instructions).any(|instruction| {
        match &instruction.kind {
            InstructionKind::ShaderCall(_) => true,
            InstructionKind::System(operation) => !operation.is_unmasked(),
            _ => false,
        }
    });
    if nonempty.len() < test.threads.len() && !refers_to_threads {
        let new_id = |old: ThreadId| {
            nonempty.iter().position(|kept| *kept == usize::from(old.0)).map(|new| ThreadId(new as u16))
        };
        test.system_sync = test
            .system_sync
            .iter()
            .filter_map(|pair| {
                let mut pair = *pair;
                // A pair with a thread without instructions orders nothing and is removed.
                pair.from.thread = new_id(pair.from.thread)?;
                pair.to.thread = new_id(pair.to.thread)?;
                Some(pair)
            })
            .collect();
        test.threads = nonempty.iter().map(|index| test.threads[*index].clone()).collect();
        for (number, thread) in test.threads.iter_mut().enumerate() {
            thread.number = number as u32;
        }
    }
    // Parsing the text again removes unused names.
    test
}
