//! Outcomes of a test, the prediction of a model and the histogram of a device.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::condition::{Condition, Term};
use crate::test::{LocationId, RegisterId, ScalarType, Test, ThreadId};
use crate::value::Value;

/// A register or location whose final value is part of the outcome.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Observable {
    /// A register that the code assigns.
    Register(ThreadId, RegisterId),
    /// A location that the condition names: one component of a vector; component 0 of a scalar.
    Location(LocationId, u8),
}

/// The final values of [`Test::observables`], in that order.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Outcome(pub Vec<Value>);

impl Outcome {
    /// Returns true if the outcome of `test` meets `condition`.
    pub fn meets_condition(&self, test: &Test, observables: &[Observable], condition: &Condition) -> bool {
        evaluate_condition(test, observables, condition, &mut |index| self.0.get(index).copied())
            .unwrap_or(false)
    }
}

/// Evaluates `condition` on a partially known outcome; `None` if it depends on an unknown value.
///
/// `value` gives the known values by their index among `observables`.
pub fn evaluate_condition(
    test: &Test,
    observables: &[Observable],
    condition: &Condition,
    value: &mut impl FnMut(usize) -> Option<Value>,
) -> Option<bool> {
    condition
        .evaluate_partial(&mut |term, other| resolve_side(test, observables, term, other).signed_value(value))
}

/// A condition with resolved terms, for evaluation on many outcomes.
pub type ResolvedCondition = Condition<ConditionSide>;

/// A side of a comparison with its resolved meaning.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConditionSide {
    /// The observed value at this index, signed as a value of this type.
    Observed(usize, ScalarType),
    /// A number.
    Number(i64),
}

impl ConditionSide {
    fn signed_value(self, value: &mut impl FnMut(usize) -> Option<Value>) -> Option<i64> {
        match self {
            ConditionSide::Observed(index, ty) => Some(value(index)?.to_signed(ty)),
            ConditionSide::Number(number) => Some(number),
        }
    }
}

impl ResolvedCondition {
    /// Resolves the terms of a condition of `test`.
    pub fn new(test: &Test, observables: &[Observable], condition: &Condition) -> ResolvedCondition {
        condition.map_sides(&mut |term, other| resolve_side(test, observables, term, other))
    }

    /// Evaluates the condition as far as values are known.
    pub fn evaluate_known(&self, value: &mut impl FnMut(usize) -> Option<Value>) -> Option<bool> {
        self.evaluate_partial(&mut |side, _| side.signed_value(value))
    }
}

/// Resolves a term; the other side of its comparison gives the type of a constant.
fn resolve_side(test: &Test, observables: &[Observable], term: &Term, other: &Term) -> ConditionSide {
    let (observable, initial) = match term {
        Term::Register(thread, register) => {
            (Observable::Register(*thread, *register), test.initial_register(*thread, *register))
        }
        Term::Location(location, component) => {
            (Observable::Location(*location, *component), test.initial_value(*location, *component))
        }
        Term::Address(location) => return ConditionSide::Number(test.address_of(*location)),
        Term::Constant(constant) => {
            return ConditionSide::Number(constant_for_comparison(*constant, term_type(test, other)));
        }
    };
    let ty = term_type(test, term).unwrap_or_default();
    // The code never assigns an unobserved value, so it keeps its initial value.
    match observables.iter().position(|o| *o == observable) {
        Some(index) => ConditionSide::Observed(index, ty),
        None => ConditionSide::Number(initial.to_signed(ty)),
    }
}

/// The type of a term, if it has one.
fn term_type(test: &Test, term: &Term) -> Option<ScalarType> {
    match term {
        Term::Register(thread, register) => Some(test.register_type(*thread, *register)),
        Term::Location(location, _) => Some(test.location(*location).scalar_type()),
        Term::Address(_) | Term::Constant(_) => None,
    }
}

/// Returns the number that represents a constant in a comparison with a value of type `ty`.
///
/// Comparisons are signed: next to a `u32`, `4294967295` has the same bits as `-1`. A constant that does not
/// fit is unchanged, and so equals no value.
fn constant_for_comparison(constant: i64, ty: Option<ScalarType>) -> i64 {
    let Some(ty) = ty else { return constant };
    let truncated = Value::from_constant(constant, ty);
    if truncated.0 as i64 == constant { truncated.to_signed(ty) } else { constant }
}

/// Data races in the consistent executions of a program.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Race {
    /// No consistent execution races.
    Free,
    /// Some consistent execution races: the program has no defined outcome.
    Racy,
    /// The budget ran out before an answer was reached.
    #[default]
    Unknown,
}

/// HSA's two levels of undefinedness.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Undefinedness {
    /// A race makes values undefined.
    Value,
    /// An execution as a whole is undefined.
    Program,
}

/// A model's answer for one test; the default is a search that found nothing and did not end.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Prediction {
    /// Name of the model.
    pub model: String,
    /// The observables of the outcomes, in order; [`Test::observables`].
    pub observables: Vec<Observable>,
    /// Every outcome of a candidate execution before the axioms.
    pub outcomes: BTreeMap<Outcome, PredictedOutcome>,
    /// Race freedom of the program; `Unknown` also if no race was found and runs were truncated.
    pub race: Race,
    /// True if it races only in executions with out-of-thin-air values.
    ///
    /// The model allows such a race, but no known implementation shows it. Runs of
    /// such a program are judged.
    pub race_thin_air: bool,
    /// True if a consistent execution inside the filter reads an undefined initial value, in a thread or as a
    /// final value.
    ///
    /// Such a read may return anything; other values and the order of accesses stay defined. `None` if none
    /// was found and the search was incomplete.
    pub uninitialised_read: Option<bool>,
    /// The loop bound: the maximum number of iterations of a loop body.
    pub bound: u32,
    /// The number of `runs` that were cut off at the bound. If it is nonzero, absence proves nothing.
    pub truncated_runs: u64,
    /// Combinations of control-flow paths that some consistent execution takes, as far as they were counted.
    pub runs: u64,
    /// The level of undefinedness; HSA only.
    pub undefinedness: Option<Undefinedness>,
    /// The number of candidate executions: control-flow paths × reads-from × modification orders, without
    /// differences that the model does not distinguish.
    pub candidate_executions: u64,
    /// The candidate executions that satisfy every axiom.
    ///
    /// Only those that were counted, if outcomes were queried one by one.
    pub consistent_executions: u64,
    /// True if some allowed outcome inside the filter meets the condition of the question; `None` if unknown.
    ///
    /// Known also if there are too many outcomes to list.
    pub can_meet_condition: Option<bool>,
    /// True if some allowed outcome inside the filter misses the condition of the question; `None` if
    /// unknown.
    pub can_miss_condition: Option<bool>,
    /// False if the search ended early or the outcomes were too many to list. Then the absence of an
    /// outcome proves nothing.
    pub complete: bool,
}

/// A model's verdict on one outcome.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct PredictedOutcome {
    /// Some consistent execution shows it.
    pub allowed: bool,
    /// Sequential consistency cannot produce it. False also if that is unknown.
    pub weak: bool,
    /// Some serial order of whole threads produces it. An instance with any other outcome was *interleaved*.
    /// True also if that is unknown.
    pub serial: bool,
    /// The test's `filter` excludes it.
    pub filtered: bool,
    /// It is allowed, but only by executions with out-of-thin-air values (values that depend on themselves).
    ///
    /// The Vulkan specification does not exclude them (VK-AC-06), and no implementation is known to show
    /// them.
    pub thin_air: bool,
}

impl Prediction {
    /// Returns true if the program has no defined outcomes: it races, and not only through out-of-thin-air
    /// values.
    pub fn is_undefined(&self) -> bool {
        self.race == Race::Racy && !self.race_thin_air
    }
}

/// Maps as lists of pairs: a map of JSON has only strings as keys.
mod pairs {
    use std::collections::BTreeMap;

    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    pub fn serialize<K: Serialize, S: Serializer>(
        map: &BTreeMap<K, u64>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(map)
    }

    pub fn deserialize<'de, K: Deserialize<'de> + Ord, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<BTreeMap<K, u64>, D::Error> {
        Ok(Vec::deserialize(deserializer)?.into_iter().collect())
    }
}

/// The number of occurrences of each outcome.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Histogram {
    /// Counts by outcome.
    #[serde(with = "pairs")]
    pub counts: BTreeMap<Outcome, u64>,
}

impl Histogram {
    /// Adds `count` occurrences of `outcome`.
    pub fn add_count(&mut self, outcome: Outcome, count: u64) {
        *self.counts.entry(outcome).or_default() += count;
    }

    /// Returns the total number of occurrences.
    pub fn total_count(&self) -> u64 {
        self.counts.values().sum()
    }
}

/// The observed results of one test on a device.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Observation {
    /// Complete outcomes with their counts, allowed by a model or not.
    pub histogram: Histogram,
    /// Raw result words of instances with a wrong end mark, with their counts.
    #[serde(with = "pairs")]
    pub unexpected: BTreeMap<Vec<u32>, u64>,
    /// Instances that reached the bound of a spin loop.
    pub unresolved: u64,
    /// Complete outcomes beyond the limit of distinct ones that are recorded; their values are unknown.
    pub unrecorded_outcomes: u64,
    /// Instances that left result words unwritten. Their dispatches are discarded and not counted elsewhere.
    pub not_executed: u64,
    /// Instances of `not_executed` that wrote some of their result words.
    pub partially_written: u64,
    /// Repeated invocations, in stages that may repeat them: they returned immediately.
    pub repeated: u64,
    /// Invocations executed by the driver although their dispatch or draw does not have them. These dispatches are
    /// discarded: their instances are among those not executed.
    pub outside_grid: u64,
    /// The number of dispatches with a checksum of the device that differs from the words that the host read.
    /// They are discarded: their instances are among those not executed.
    pub misread_dispatches: u64,
    /// The number of dispatches.
    pub dispatches: u64,
    /// Dispatches that were discarded because an instance was not executed.
    pub discarded_dispatches: u64,
    /// Wall-clock time of all dispatches, in seconds.
    pub seconds: f64,
    /// The independent samples, if they are batches and not single instances.
    pub batches: Option<Batches>,
    /// Outcomes of consecutive intervals of a run, with an equal number of dispatches each.
    ///
    /// If several runs were merged: of the run with the most intervals.
    pub stretches: Vec<Histogram>,
    /// Outcomes of consecutive parts of a run, each with its own seed and memory; empty on devices with batches.
    pub parts: Vec<Histogram>,
}

/// Batches of instances: instances of one batch share choices of the device, instances of two batches do not.
///
/// If present, confidence figures count batches.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Batches {
    /// The number of batches.
    pub total: u64,
    /// By complete outcome: the batches that showed it at least once.
    #[serde(with = "pairs")]
    pub by_outcome: BTreeMap<Outcome, u64>,
}

impl Batches {
    fn merge_from(&mut self, other: &Batches) {
        self.total += other.total;
        for (outcome, count) in &other.by_outcome {
            *self.by_outcome.entry(outcome.clone()).or_default() += count;
        }
    }
}

impl Observation {
    /// Adds another observation of the same test.
    pub fn merge_from(&mut self, other: &Observation) {
        match (&mut self.batches, &other.batches) {
            (Some(own), Some(more)) => own.merge_from(more),
            (None, Some(more)) if self.dispatches == 0 => self.batches = Some(more.clone()),
            // Without batches for all counts, the number of batches would be too small.
            _ if other.dispatches > 0 => self.batches = None,
            _ => {}
        }
        for (outcome, count) in &other.histogram.counts {
            self.histogram.add_count(outcome.clone(), *count);
        }
        for (raw, count) in &other.unexpected {
            *self.unexpected.entry(raw.clone()).or_default() += count;
        }
        // Separate runs may legitimately differ; intervals detect change within one run.
        if other.stretches.len() > self.stretches.len() {
            self.stretches.clone_from(&other.stretches);
        }
        self.parts.extend_from_slice(&other.parts);
        self.unresolved += other.unresolved;
        self.unrecorded_outcomes += other.unrecorded_outcomes;
        self.not_executed += other.not_executed;
        self.partially_written += other.partially_written;
        self.repeated += other.repeated;
        self.outside_grid += other.outside_grid;
        self.misread_dispatches += other.misread_dispatches;
        self.dispatches += other.dispatches;
        self.discarded_dispatches += other.discarded_dispatches;
        self.seconds += other.seconds;
    }

    /// Returns the number of accounted instances: complete, unexpected and unresolved ones.
    pub fn accounted_instances(&self) -> u64 {
        let recorded = self.histogram.total_count() + self.unexpected.values().sum::<u64>();
        recorded + self.unresolved + self.unrecorded_outcomes
    }
}
