//! Searches for the smallest test on which two models differ.

use std::collections::{HashSet, VecDeque};
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicUsize, Ordering};

use litmus::{
    Access, Expectation, Flow, InstructionKind, Metadata, Observable, Outcome, Race, Reachability, Span,
    StorageClass, Term, Test, ThreadId,
};

use super::draft::question;
use super::enumerate::{FormVocabulary, LARGEST};
use super::minimal::{TestStanding, standing_of};
use super::shape::{SHAPES, Telling, operations, placements};
use super::weaken::weakenings;
use crate::mutation::Difference;
use crate::{Model, PredictError, PredictOptions, PredictionSummary, predict_summary};

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
const BATCH: usize = 1024;
/// Bound on the tests below one strongest test of a shape.
const MOST_BELOW: usize = 200;
/// Number of strongest tests whose weakenings are searched in parallel.
const TOPS: usize = 32;

/// Constraints on the wanted tests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TestConstraints {
    /// Number of tests.
    pub tests: usize,
    /// The most operations of a test.
    pub operations: usize,
    /// The most threads of a test.
    pub threads: usize,
    /// True if all its accesses are atomic.
    pub atomic: bool,
}

impl TestConstraints {
    /// Requests one test with at most `operations` operations, without further constraints.
    pub fn one(operations: usize) -> TestConstraints {
        TestConstraints { tests: 1, operations, threads: usize::MAX, atomic: false }
    }

    /// Bound on the stored tests of one size. Several may coincide after reduction.
    fn kept(&self) -> usize {
        if self.tests == 1 { 1 } else { self.tests.saturating_mul(8) }
    }

    fn fits(&self, test: &Test) -> bool {
        let atomic = |kind: &InstructionKind| match kind {
            InstructionKind::Access(access) => matches!(access.strength, Access::Atomic { .. }),
            _ => true,
        };
        let kinds = || {
            test.threads.iter().flat_map(|thread| &thread.instructions).map(|instruction| &instruction.kind)
        };
        test.threads.len() <= self.threads && (!self.atomic || kinds().all(atomic))
    }
}

/// Finds the smallest distinguishing test of at most `events` operations, as the first result of
/// [`distinguish_all`].
///
/// # Errors
/// As for [`predict_summary`].
pub fn distinguish(
    first: &Model,
    second: &Model,
    events: usize,
    options: &PredictOptions,
) -> Result<Option<Distinction>, PredictError> {
    Ok(distinguish_all(first, second, &TestConstraints::one(events), options)?.pop())
}

/// Finds the smallest tests on which two models differ, in order of size.
///
/// It searches all programs of up to [`LARGEST`] operations over the [`FormVocabulary`], then the weakenings of
/// the [`SHAPES`]. Tests that are racy under both models follow only if there are too few others. The order
/// within one size is fixed.
///
/// # Errors
/// As for [`predict_summary`].
pub fn distinguish_all(
    first: &Model,
    second: &Model,
    wanted: &TestConstraints,
    options: &PredictOptions,
) -> Result<Vec<Distinction>, PredictError> {
    let pair = ModelPair { first, second, options: *options, wanted: *wanted };
    let vocabulary = FormVocabulary::of(&[first, second]);
    let mut all = Vec::new();
    let mut known = HashSet::new();
    let mut fallback = Vec::new();
    for size in 1..=wanted.operations {
        let mut found = Best::new(wanted.kept());
        if size <= LARGEST {
            pair.scan(size, &vocabulary, &mut found)?;
        }
        if !found.is_full() {
            pair.walk_shapes(size, &mut found)?;
        }
        for (test, difference) in found.tests {
            if difference == Difference::Executions {
                fallback.push(test);
            } else if pair.take(test, &mut known, &mut all)? {
                return Ok(all);
            }
        }
    }
    for test in fallback {
        if pair.take(test, &mut known, &mut all)? {
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
pub fn reduced(
    test: &Test,
    first: &Model,
    second: &Model,
    options: &PredictOptions,
) -> Result<Option<Distinction>, PredictError> {
    let pair = ModelPair { first, second, options: *options, wanted: TestConstraints::one(usize::MAX) };
    if pair.difference(test)?.is_none() {
        return Ok(None);
    }
    pair.finish(test.clone()).map(Some)
}

/// Does `work` for every item on all processors; the results are in the order of the items.
fn on_all_processors<T: Sync, R: Send>(items: &[T], work: impl Fn(&T) -> R + Sync) -> Vec<R> {
    let next = AtomicUsize::new(0);
    let workers = std::thread::available_parallelism().map_or(1, usize::from).min(items.len());
    let mut found: Vec<(usize, R)> = std::thread::scope(|scope| {
        let worker = || {
            let mut mine = Vec::new();
            loop {
                let index = next.fetch_add(1, Ordering::Relaxed);
                let Some(item) = items.get(index) else { return mine };
                mine.push((index, work(item)));
            }
        };
        let start = |_| std::thread::Builder::new().spawn_scoped(scope, worker).ok();
        let handles: Vec<_> = (0..workers).map_while(start).collect();
        // If no thread can be created, this one does the work.
        let mut found = if handles.is_empty() { worker() } else { Vec::with_capacity(items.len()) };
        for handle in handles {
            match handle.join() {
                Ok(mine) => found.extend(mine),
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
pub fn pool(model: &Model, operations: usize, given: &[Test]) -> Vec<Test> {
    let mut tests = Vec::new();
    let mut seen = HashSet::new();
    let mut add = |mut test: Test| {
        test.name = "pool".to_owned();
        test.metadata = Metadata::default();
        if seen.insert(litmus::print(&test)) {
            tests.push(test);
        }
    };
    let vocabulary = FormVocabulary::of(&[model]);
    for size in 1..=operations.min(LARGEST) {
        // The visitor never breaks off.
        let _ = vocabulary.for_each(size, &mut |test| {
            add(test);
            ControlFlow::Continue(())
        });
    }
    let tops = SHAPES.iter().flat_map(|shape| {
        placements(shape.threads(), false).into_iter().flat_map(|places| shape.cells(&places))
    });
    for test in tops.flat_map(variants).map(|cell| cell.top()).chain(given.iter().cloned()) {
        weakenings(&test).into_iter().for_each(|weaker| add(weaker.test));
        add(test);
    }
    tests
}

/// Two models and the options of their queries.
struct ModelPair<'a> {
    first: &'a Model,
    second: &'a Model,
    options: PredictOptions<'a>,
    wanted: TestConstraints,
}

/// The best tests of one size, strongest difference first, then in order of discovery.
struct Best {
    most: usize,
    tests: Vec<(Test, Difference)>,
}

impl Best {
    fn new(most: usize) -> Best {
        Best { most, tests: Vec::new() }
    }

    /// Inserts a test if there is room, or if it replaces one with a weaker difference.
    fn keep(&mut self, test: &Test, difference: Difference) {
        // Equal differences stay in order of discovery.
        let at = self.tests.partition_point(|(_, known)| *known <= difference);
        if at < self.most {
            self.tests.insert(at, (test.clone(), difference));
            self.tests.truncate(self.most);
        }
    }

    /// Returns true if no later test can be better.
    fn is_full(&self) -> bool {
        self.tests.len() == self.most
            && self.tests.last().is_some_and(|(_, difference)| *difference == Difference::Outcome)
    }
}

impl ModelPair<'_> {
    fn verdicts(&self, test: &Test) -> Result<(PredictionSummary, PredictionSummary), PredictError> {
        Ok((
            predict_summary(test, self.first, &self.options)?,
            predict_summary(test, self.second, &self.options)?,
        ))
    }

    fn difference(&self, test: &Test) -> Result<Option<Difference>, PredictError> {
        let (first, second) = self.verdicts(test)?;
        Ok(Difference::between(&first, &second))
    }

    /// Tests all programs of one size.
    fn scan(&self, size: usize, vocabulary: &FormVocabulary, best: &mut Best) -> Result<(), PredictError> {
        let mut batch = Vec::with_capacity(BATCH);
        let mut failed = None;
        let flow = vocabulary.for_each(size, &mut |test| {
            if self.wanted.fits(&test) {
                batch.push(test);
            }
            if batch.len() < BATCH {
                return ControlFlow::Continue(());
            }
            match self.look(&batch, best) {
                Ok(()) => {}
                Err(error) => {
                    failed = Some(error);
                    return ControlFlow::Break(());
                }
            }
            batch.clear();
            if best.is_full() {
                return ControlFlow::Break(());
            }
            ControlFlow::Continue(())
        });
        match (failed, flow) {
            (Some(error), _) => Err(error),
            (None, ControlFlow::Continue(())) => self.look(&batch, best),
            (None, ControlFlow::Break(())) => Ok(()),
        }
    }

    /// Judges a batch on all processors. The selection does not depend on scheduling.
    fn look(&self, batch: &[Test], best: &mut Best) -> Result<(), PredictError> {
        let found = on_all_processors(batch, |test| self.difference(test));
        for (test, difference) in batch.iter().zip(found) {
            if let Some(difference) = difference? {
                best.keep(test, difference);
            }
        }
        Ok(())
    }

    /// Searches the strongest tests of one size of every shape, then their weakenings while one of the models
    /// forbids the outcome. The latter covers placements with equally distant threads only.
    fn walk_shapes(&self, size: usize, best: &mut Best) -> Result<(), PredictError> {
        let tops = |unequal: bool| -> Vec<Test> {
            let told = SHAPES.iter().flat_map(|shape| {
                placements(shape.threads(), unequal).into_iter().flat_map(|places| shape.cells(&places))
            });
            told.flat_map(variants)
                .map(|cell| cell.top())
                .filter(|top| operations(top) == size && self.wanted.fits(top))
                .collect()
        };
        self.look(&tops(true), best)?;
        for tops in tops(false).chunks(TOPS) {
            if best.is_full() {
                return Ok(());
            }
            for found in on_all_processors(tops, |top| self.walk(top)) {
                for (test, difference) in found?.tests {
                    best.keep(&test, difference);
                }
            }
        }
        Ok(())
    }

    /// Returns the tests with the strongest difference at or below `top`, nearest first.
    fn walk(&self, top: &Test) -> Result<Best, PredictError> {
        let mut best = Best::new(self.wanted.kept());
        let mut seen: HashSet<String> = HashSet::from([litmus::print(top)]);
        let mut open = VecDeque::from([top.clone()]);
        let mut asked = 0;
        while let Some(test) = open.pop_front() {
            let (first, second) = self.verdicts(&test)?;
            asked += 1;
            if let Some(difference) = Difference::between(&first, &second) {
                best.keep(&test, difference);
                if best.is_full() {
                    return Ok(best);
                }
            }
            let forbids = |verdict| standing_of(&test, verdict) == TestStanding::Forbidden;
            // Weakening only allows more outcomes, so if neither model forbids this one, neither
            // does further down.
            if asked >= MOST_BELOW || !(forbids(&first) || forbids(&second)) {
                continue;
            }
            for weaker in weakenings(&test).into_iter().filter(|weaker| self.wanted.fits(&weaker.test)) {
                if seen.len() < MOST_BELOW && seen.insert(litmus::print(&weaker.test)) {
                    open.push_back(weaker.test);
                }
            }
        }
        Ok(best)
    }

    /// Adds a reduced test if it is new; returns true if enough tests are found.
    fn take(
        &self,
        test: Test,
        known: &mut HashSet<String>,
        all: &mut Vec<Distinction>,
    ) -> Result<bool, PredictError> {
        let found = self.finish(test)?;
        if known.insert(litmus::print(&found.test)) {
            all.push(found);
        }
        Ok(all.len() == self.wanted.tests)
    }

    /// Reduces the test while the difference remains, and records the verdicts of both models.
    fn finish(&self, test: Test) -> Result<Distinction, PredictError> {
        let wanted = self.difference(&test)?;
        let mut test = without_question(test);
        // Without its question a test shows at least the same registers.
        let mut difference = self.difference(&test)?.or(wanted);
        loop {
            let mut smaller = None;
            for candidate in smaller_tests(&test).into_iter().filter(|smaller| self.wanted.fits(smaller)) {
                let now = self.difference(&candidate)?;
                // Stronger differences are smaller, so reduction never trades a difference for a
                // weaker one.
                if now.is_some() && now <= difference {
                    smaller = Some((candidate, now));
                    break;
                }
            }
            match smaller {
                Some((candidate, now)) => (test, difference) = (candidate, now),
                None => break,
            }
        }
        let (first, second) = self.verdicts(&test)?;
        let difference = Difference::between(&first, &second).unwrap_or(Difference::Executions);
        let observables = test.observables();
        if let Some(outcome) = distinguishing_outcome(&first, &second) {
            let wanted: Vec<(Term, i64)> = observables
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
            test.question = (!wanted.is_empty()).then(|| question(&wanted));
        }
        test.listed.clear();
        test.name = format!("{}-{}", self.first.name(), self.second.name());
        test.metadata = Metadata::default();
        for model in [self.first, self.second] {
            let verdict = predict_summary(&test, model, &self.options)?;
            test.metadata.expectations.push(expectation(&test, model, &verdict));
        }
        Ok(Distinction { test, difference, first, second })
    }
}

/// Returns the expectation that corresponds to a model's verdict.
pub fn expectation(test: &Test, model: &Model, verdict: &PredictionSummary) -> Expectation {
    let observables = test.observables();
    let meets = test.question.as_ref().is_none_or(|question| {
        verdict.allowed.iter().any(|outcome| outcome.meets_condition(test, &observables, &question.condition))
    });
    Expectation {
        model: model.name().to_owned(),
        reachability: if meets { Reachability::Allowed } else { Reachability::Forbidden },
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
    let alone = first.allowed.symmetric_difference(&second.allowed).next();
    alone.or_else(|| first.allowed.intersection(&second.allowed).last())
}

/// Returns the cell with payload and synchronization in one storage class and in two, and with the narrowest sufficient scopes.
fn variants(cell: Telling) -> Vec<Telling> {
    let two = |payload, carrier| Telling { payload, carrier, ..cell.clone() };
    let mut found = vec![
        cell.clone(),
        two(StorageClass::Workgroup, StorageClass::Buffer),
        two(StorageClass::Buffer, StorageClass::Workgroup),
    ];
    if cell.places.len() > 2 {
        found.push(Telling { tight: true, ..cell });
    }
    found
}

/// Removes the question, and keeps its final values observable.
fn without_question(mut test: Test) -> Test {
    if let Some(question) = test.question.take() {
        question.condition.for_each_term(&mut |term| {
            if matches!(term, Term::Location(..)) && !test.listed.contains(term) {
                test.listed.push(term.clone());
            }
        });
    }
    test
}

/// Returns tests without one instruction, then tests with one weakening step.
fn smaller_tests(test: &Test) -> Vec<Test> {
    let mut found = Vec::new();
    for (thread, column) in test.threads.iter().enumerate() {
        for (index, instruction) in column.instructions.iter().enumerate() {
            if !matches!(instruction.kind, InstructionKind::Flow(Flow::Label(_))) {
                let mut smaller = test.clone();
                smaller.threads[thread].instructions.remove(index);
                found.push(remove_unused(smaller));
            }
        }
    }
    found.extend(weakenings(test).into_iter().map(|weaker| remove_unused(weaker.test)));
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
    let kept: Vec<usize> =
        (0..test.threads.len()).filter(|index| !test.threads[*index].instructions.is_empty()).collect();
    // Instructions that refer to threads by number would need renumbering.
    let named = test.threads.iter().flat_map(|thread| &thread.instructions).any(|instruction| {
        match &instruction.kind {
            InstructionKind::ShaderCall(_) => true,
            InstructionKind::System(operation) => !operation.is_unmasked(),
            _ => false,
        }
    });
    if kept.len() < test.threads.len() && !named {
        let new_id = |old: ThreadId| {
            kept.iter().position(|kept| *kept == usize::from(old.0)).map(|new| ThreadId(new as u16))
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
        test.threads = kept.iter().map(|index| test.threads[*index].clone()).collect();
        for (number, thread) in test.threads.iter_mut().enumerate() {
            thread.number = number as u32;
        }
    }
    // Parsing the text again removes unused names.
    test
}
