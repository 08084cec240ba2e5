//! What comes out of a test: outcomes, the prediction of a model, the histogram of a device.

use std::collections::BTreeMap;

use crate::condition::{Comparison, Condition, Term};
use crate::test::{LocationId, RegisterId, ScalarType, Test, ThreadId};
use crate::value::Value;

/// Something whose final value belongs to the outcome.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Observable {
    /// A register that the code assigns.
    Register(ThreadId, RegisterId),
    /// A location that the condition names: a component where it is a vector, else component 0, which is all of it.
    Location(LocationId, u8),
}

/// The final values of [`Test::observables`], in that order.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Outcome(pub Vec<Value>);

impl Outcome {
    /// Whether the outcome of `test` meets `condition`.
    pub fn meets(&self, test: &Test, observables: &[Observable], condition: &Condition) -> bool {
        decided(test, observables, condition, &mut |index| self.0.get(index).copied()).unwrap_or(false)
    }
}

/// Whether an outcome meets `condition`, as far as its values are known: `value` gives them by their index among
/// `observables`.
pub fn decided(
    test: &Test,
    observables: &[Observable],
    condition: &Condition,
    value: &mut impl FnMut(usize) -> Option<Value>,
) -> Option<bool> {
    condition.decided(&mut |term, other| side(test, observables, term, other).value(value))
}

/// A condition with its terms looked up, for whoever asks about many outcomes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ResolvedCondition {
    /// Always true or always false.
    Known(bool),
    /// A comparison.
    Compare(Side, Comparison, Side),
    /// Both hold.
    And(Box<(ResolvedCondition, ResolvedCondition)>),
    /// At least one holds.
    Or(Box<(ResolvedCondition, ResolvedCondition)>),
    /// It does not hold.
    Not(Box<ResolvedCondition>),
}

/// A side of a comparison with its meaning looked up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// The value at this index among the observables, signed as a value of this type.
    Observed(usize, ScalarType),
    /// A number.
    Number(i64),
}

impl Side {
    fn value(self, value: &mut impl FnMut(usize) -> Option<Value>) -> Option<i64> {
        match self {
            Side::Observed(index, ty) => Some(value(index)?.signed(ty)),
            Side::Number(number) => Some(number),
        }
    }
}

impl ResolvedCondition {
    /// Looks up the terms of a condition of `test`.
    pub fn new(test: &Test, observables: &[Observable], condition: &Condition) -> ResolvedCondition {
        let both = |left: &Condition, right: &Condition| {
            let inner = |condition| ResolvedCondition::new(test, observables, condition);
            Box::new((inner(left), inner(right)))
        };
        match condition {
            Condition::True => ResolvedCondition::Known(true),
            Condition::Compare { left, comparison, right } => ResolvedCondition::Compare(
                side(test, observables, left, right),
                *comparison,
                side(test, observables, right, left),
            ),
            Condition::And(left, right) => ResolvedCondition::And(both(left, right)),
            Condition::Or(left, right) => ResolvedCondition::Or(both(left, right)),
            Condition::Not(inner) => {
                ResolvedCondition::Not(Box::new(ResolvedCondition::new(test, observables, inner)))
            }
        }
    }

    /// Whether the condition holds as far as values are known; see [`decided`].
    pub fn decided(&self, value: &mut impl FnMut(usize) -> Option<Value>) -> Option<bool> {
        match self {
            ResolvedCondition::Known(holds) => Some(*holds),
            ResolvedCondition::Compare(left, comparison, right) => {
                Some(comparison.holds(left.value(value)?, right.value(value)?))
            }
            ResolvedCondition::And(both) => match (both.0.decided(value), both.1.decided(value)) {
                (Some(false), _) | (_, Some(false)) => Some(false),
                (Some(true), Some(true)) => Some(true),
                _ => None,
            },
            ResolvedCondition::Or(both) => match (both.0.decided(value), both.1.decided(value)) {
                (Some(true), _) | (_, Some(true)) => Some(true),
                (Some(false), Some(false)) => Some(false),
                _ => None,
            },
            ResolvedCondition::Not(inner) => inner.decided(value).map(|holds| !holds),
        }
    }
}

/// What a term means beside the other side of its comparison.
fn side(test: &Test, observables: &[Observable], term: &Term, other: &Term) -> Side {
    let (observable, initial) = match term {
        Term::Register(thread, register) => {
            (Observable::Register(*thread, *register), test.initial_register(*thread, *register))
        }
        Term::Location(location, component) => {
            (Observable::Location(*location, *component), test.initial_value(*location, *component))
        }
        Term::Address(location) => return Side::Number(test.address_of(*location)),
        Term::Constant(constant) => return Side::Number(constant_beside(*constant, term_type(test, other))),
    };
    let ty = term_type(test, term).unwrap_or_default();
    // What is not observed is what the code never assigns: it keeps its initial value.
    match observables.iter().position(|o| *o == observable) {
        Some(index) => Side::Observed(index, ty),
        None => Side::Number(initial.signed(ty)),
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

/// A constant compared with a value of type `ty`: `4294967295` beside a `u32` is the same bits as `-1`, and comparisons
/// are signed. A constant that does not fit stays what it is, and so equals nothing.
fn constant_beside(constant: i64, ty: Option<ScalarType>) -> i64 {
    let Some(ty) = ty else { return constant };
    let cut = Value::from_constant(constant, ty);
    if cut.0 as i64 == constant { cut.signed(ty) } else { constant }
}

/// Whether a program has a data race in some consistent execution.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Race {
    /// No consistent execution races.
    Free,
    /// Some consistent execution races: the program has no defined outcome.
    Racy,
    /// The answer was not reached within the time given.
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

/// The answer of a model to a test.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Prediction {
    /// Name of the model.
    pub model: String,
    /// What the outcomes list, in order; [`Test::observables`].
    pub observables: Vec<Observable>,
    /// Every outcome of a candidate execution before the axioms.
    pub outcomes: BTreeMap<Outcome, PredictedOutcome>,
    /// Whether the program races; `Unknown` also where no race was found and runs were cut off.
    pub race: Race,
    /// Whether it races only in executions with values out of thin air: such a race is by the letter, and no implementation
    /// is known to have it. Runs of such a program are judged.
    pub race_thin_air: bool,
    /// Whether in some consistent execution inside the filter a thread, or who looks at final values, reads an initial value
    /// that is undefined: what it returns may be anything. `None` where none was found and that is not known. Other values
    /// and the order of accesses stay defined.
    pub uninitialised_read: Option<bool>,
    /// How often a loop body was run at most.
    pub bound: u32,
    /// How many of the `runs` were cut off at the bound. Where there are any, nothing may be concluded from what was not
    /// found.
    pub cut: u64,
    /// The combinations of the threads' paths of control that some consistent execution takes, as far as they were counted.
    pub runs: u64,
    /// HSA only.
    pub level: Option<Undefinedness>,
    /// Candidate executions: control-flow paths × reads-from × modification orders that the model can tell apart.
    pub candidate_executions: u64,
    /// Those of them that pass every axiom; only those that were counted where there are so many that outcomes were asked
    /// about one by one.
    pub consistent_executions: u64,
    /// Whether some allowed outcome inside the filter meets the condition of the question; `None` when that is not known.
    /// Known also where there are too many outcomes to list.
    pub meets: Option<bool>,
    /// Whether some allowed outcome inside the filter misses the condition of the question; `None` when that is not known.
    pub misses: Option<bool>,
    /// False when the search was cut short or the outcomes are too many to list: then nothing may be concluded from an
    /// outcome's absence.
    pub complete: bool,
}

/// What a model says of one outcome.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PredictedOutcome {
    /// Some consistent execution shows it.
    pub allowed: bool,
    /// Sequential consistency cannot produce it.
    pub weak: bool,
    /// Some serial order of whole threads produces it. An instance with any other outcome was *interleaved*.
    pub serial: bool,
    /// The test's `filter` excludes it.
    pub filtered: bool,
    /// It is allowed, and only by executions in which values depend on themselves: out of thin air. No rule of the Vulkan
    /// specification excludes them (VK-AC-06), and no implementation is known to show them.
    pub thin_air: bool,
}

impl Prediction {
    /// Whether the program has no defined outcomes: it races, and not merely by values out of thin air.
    pub fn is_undefined(&self) -> bool {
        self.race == Race::Racy && !self.race_thin_air
    }
}

/// How often each outcome was seen, in the order of outcomes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Histogram {
    /// Counts by outcome.
    pub counts: BTreeMap<Outcome, u64>,
}

impl Histogram {
    /// Counts one more sighting of `outcome`, `count` times.
    pub fn add(&mut self, outcome: Outcome, count: u64) {
        *self.counts.entry(outcome).or_default() += count;
    }

    /// All sightings together.
    pub fn total(&self) -> u64 {
        self.counts.values().sum()
    }
}

/// What a device showed of one test: the answer of a runner.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Observation {
    /// Complete outcomes by their count, whether any model allows them or not.
    pub histogram: Histogram,
    /// Raw result words of instances that were written only in part, by their count.
    pub unexpected: BTreeMap<Vec<u32>, u64>,
    /// Instances that ran into the bound of a spin loop.
    pub unresolved: u64,
    /// Complete outcomes past as many different ones as are told apart: what they were is not known.
    pub not_told_apart: u64,
    /// Instances that left no trace in their result memory. Their dispatches are discarded and count nowhere else.
    pub not_executed: u64,
    /// Invocations that ran once more than they had to, in stages that may repeat them: they returned at once.
    pub repeated: u64,
    /// Dispatches made.
    pub dispatches: u64,
    /// Dispatches among them that were discarded because an instance was not executed.
    pub discarded_dispatches: u64,
    /// Wall-clock time of all dispatches, in seconds.
    pub seconds: f64,
    /// What is independent, on a device where that is no single instance.
    pub batches: Option<Batches>,
    /// Outcomes of consecutive stretches of a run, each of as many dispatches as the others; of the run with most stretches
    /// where several were added up.
    pub stretches: Vec<Histogram>,
}

/// Batches of instances: those of one share choices of the device, those of two do not. Where there are any, they are
/// what confidence figures count.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Batches {
    /// All of them.
    pub total: u64,
    /// By complete outcome: the batches that showed it at least once.
    pub by_outcome: BTreeMap<Outcome, u64>,
}

impl Batches {
    fn add(&mut self, more: &Batches) {
        self.total += more.total;
        for (outcome, count) in &more.by_outcome {
            *self.by_outcome.entry(outcome.clone()).or_default() += count;
        }
    }
}

impl Observation {
    /// Adds what was seen elsewhere of the same test.
    pub fn add(&mut self, more: &Observation) {
        match (&mut self.batches, &more.batches) {
            (Some(own), Some(more)) => own.add(more),
            (None, Some(more)) if self.dispatches == 0 => self.batches = Some(more.clone()),
            // Counts without batches make the batches of the others too few.
            _ if more.dispatches > 0 => self.batches = None,
            _ => {}
        }
        for (outcome, count) in &more.histogram.counts {
            self.histogram.add(outcome.clone(), *count);
        }
        for (raw, count) in &more.unexpected {
            *self.unexpected.entry(raw.clone()).or_default() += count;
        }
        // Runs apart from one another may differ: what matters is whether one of them does from itself.
        if more.stretches.len() > self.stretches.len() {
            self.stretches.clone_from(&more.stretches);
        }
        self.unresolved += more.unresolved;
        self.not_told_apart += more.not_told_apart;
        self.not_executed += more.not_executed;
        self.repeated += more.repeated;
        self.dispatches += more.dispatches;
        self.discarded_dispatches += more.discarded_dispatches;
        self.seconds += more.seconds;
    }

    /// All instances that are accounted for: complete, unexpected and unresolved ones.
    pub fn instances(&self) -> u64 {
        let told = self.histogram.total() + self.unexpected.values().sum::<u64>();
        told + self.unresolved + self.not_told_apart
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn batches_add_up_where_all_runs_have_them() {
        let one = |total| Observation {
            dispatches: 1,
            batches: Some(Batches { total, by_outcome: BTreeMap::from([(Outcome(vec![Value(1)]), 2)]) }),
            ..Observation::default()
        };
        let mut seen = Observation::default();
        seen.add(&one(5));
        seen.add(&one(7));
        let both = BTreeMap::from([(Outcome(vec![Value(1)]), 4)]);
        assert_eq!(seen.batches, Some(Batches { total: 12, by_outcome: both }));
        seen.add(&Observation { dispatches: 1, ..Observation::default() });
        assert_eq!(seen.batches, None);
    }

    #[test]
    fn constants_mean_the_bits_of_what_they_are_compared_with() {
        let text = "VULKAN t\n{ u8 b = 0; P0:r1 = 3; } P0@host ; ld.sc0 r0, x ; ld.sc0 r2, b; add r3, r1, 1;";
        let test = crate::parse(text, "t").unwrap();
        let observables = test.observables();
        let values = |x: u64, b: u64| Outcome(vec![Value(x), Value(b), Value(4)]);
        let meets = |outcome: &Outcome, condition: &str| {
            let condition = crate::parse_condition(condition, "condition", &test).unwrap();
            outcome.meets(&test, &observables, &condition)
        };
        let outcome = values(0xFFFF_FFFF, 0xFF);
        for condition in [
            "P0:r0 == 4294967295",
            "P0:r0 == -1",
            "0xffffffff == P0:r0",
            "P0:r2 == 255",
            "P0:r2 == -1",
            "P0:r0 < 0",
            "P0:r0 != 255",
            "P0:r0 == P0:r2",
            "P0:r1 == 3 /\\ P0:r3 == 4",
            "4294967295 != -1",
        ] {
            assert!(meets(&outcome, condition), "{condition}");
        }
        for condition in ["P0:r0 == 4294967294", "P0:r2 == 127", "P0:r1 == 0"] {
            assert!(!meets(&outcome, condition), "{condition}");
        }
        // What can never be is a mistake, and no answer.
        for condition in ["P0:r0 == 4294967296", "~(511 == P0:r2)", "P0:r0 == 0 /\\ P0:r2 == 4294967295"] {
            assert!(crate::parse_condition(condition, "condition", &test).is_err(), "{condition}");
        }
    }
}
