//! Resolves reads-from to values: the result of every read, and whether control could have taken its path.

use std::sync::OnceLock;

use litmus::{Test, Value};

use crate::constants::value_domain;
use crate::skeleton::{FinalValueSource, Skeleton};
use crate::symbolic::SymbolicValue;

/// The values of all reads, by event number; unset for other events.
pub(crate) type ReadValues = Vec<Option<Value>>;

/// The values that may appear out of thin air in a test, computed on demand.
#[derive(Debug)]
pub(crate) struct ValueDomain<'t> {
    test: &'t Test,
    values: OnceLock<Vec<Value>>,
}

impl<'t> ValueDomain<'t> {
    pub(crate) fn new(test: &'t Test) -> ValueDomain<'t> {
        ValueDomain { test, values: OnceLock::new() }
    }

    /// Returns the values.
    pub(crate) fn values(&self) -> &[Value] {
        self.values.get_or_init(|| value_domain(self.test))
    }
}

/// The values of an execution, and a flag for self-dependent ones.
#[derive(Clone, Debug)]
pub(crate) struct Valuation {
    pub(crate) values: ReadValues,
    pub(crate) thin_air: bool,
}

/// Returns every assignment of values to reads, if read `i` takes its value from write `rf[i]`.
///
/// The assignment is unique unless values depend on each other in a cycle. A written value that is
/// independent of the cycle's values (`x & 0`) is known even so: a compiler may fold it and drop the read.
/// For a true cycle with `out_of_thin_air`, one read tries each value of `domain` and the values that the
/// cycle computes from these. Without `out_of_thin_air`, a true cycle has no assignment.
pub(crate) fn enumerate_valuations(
    skeleton: &Skeleton,
    rf: &[Option<u16>],
    out_of_thin_air: bool,
    domain: &ValueDomain<'_>,
) -> Vec<Valuation> {
    enumerate_counted_valuations(skeleton, rf, out_of_thin_air, domain).0
}

/// As [`enumerate_valuations`], with the number of tried assignments.
pub(crate) fn enumerate_counted_valuations(
    skeleton: &Skeleton,
    rf: &[Option<u16>],
    out_of_thin_air: bool,
    domain: &ValueDomain<'_>,
) -> (Vec<Valuation>, u64) {
    let mut values: ReadValues = vec![None; skeleton.len()];
    let found = Vec::new();
    // If no value is computed from another, each is known immediately.
    let known = |write: u16| {
        skeleton.events[usize::from(write)].stored_value.as_ref().and_then(SymbolicValue::known_value)
    };
    let mut all = true;
    for (value, write) in values.iter_mut().zip(rf) {
        if let Some(write) = write {
            *value = known(*write);
            all &= value.is_some();
        }
    }
    if all {
        return (vec![Valuation { values, thin_air: false }], 1);
    }
    let domain = out_of_thin_air.then(|| domain.values());
    let mut resolver = ValueResolver { skeleton, rf, domain, found, computed_values: Vec::new(), tried: 0 };
    resolver.resolve(values, false);
    (resolver.found, resolver.tried)
}

/// Limit of the computed values tried for a read of a cycle, in addition to the domain.
const MAX_COMPUTED_VALUES: usize = 8;

struct ValueResolver<'a> {
    skeleton: &'a Skeleton,
    rf: &'a [Option<u16>],
    /// The values that may appear out of thin air, if the model permits any.
    domain: Option<&'a [Value]>,
    found: Vec<Valuation>,
    /// Values that were stored although another value was guessed: computed from the program's constants.
    computed_values: Vec<Value>,
    /// Number of tried assignments.
    tried: u64,
}

impl ValueResolver<'_> {
    fn resolve(&mut self, mut values: ReadValues, thin_air: bool) {
        let (skeleton, rf) = (self.skeleton, self.rf);
        self.tried += 1;
        loop {
            // Values flow from writes to reads until nothing changes.
            let mut changed = false;
            for read in 0..skeleton.len() {
                if values[read].is_none()
                    && let Some(write) = rf[read]
                    && let Some(value) = stored_value(skeleton, usize::from(write), &values)
                {
                    values[read] = Some(value);
                    changed = true;
                }
            }
            if changed {
                continue;
            }
            let independent = (0..skeleton.len()).find_map(|read| {
                let write = rf[read].filter(|_| values[read].is_none())?;
                Some((read, independent_value(skeleton, usize::from(write), &values)?))
            });
            let Some((read, value)) = independent else { break };
            values[read] = Some(value);
        }
        if thin_air && !self.is_consistent(&values) {
            return;
        }
        // Only true cycles are left. One guess may determine all other reads of its cycle.
        let mut reads = (0..skeleton.len()).filter(|&read| rf[read].is_some());
        let Some(open) = reads.find(|&read| values[read].is_none()) else {
            self.found.push(Valuation { values, thin_air });
            return;
        };
        let Some(domain) = self.domain else { return };
        let mut tried: Vec<Value> = Vec::new();
        // The list of computed values grows during the recursion, so it is read again for each
        // guess.
        while tried.len() < domain.len() + MAX_COMPUTED_VALUES {
            let untried = domain.iter().chain(&self.computed_values).find(|value| !tried.contains(value));
            let Some(value) = untried.copied() else { break };
            tried.push(value);
            let mut guess = values.clone();
            guess[open] = Some(value);
            self.resolve(guess, true);
        }
    }

    /// Returns true if each value equals the value that its write stores, as far as that is known.
    fn is_consistent(&mut self, values: &ReadValues) -> bool {
        let mut sound = true;
        for (value, write) in values.iter().zip(self.rf) {
            let stored = write.and_then(|write| stored_value(self.skeleton, usize::from(write), values));
            if let (Some(value), Some(stored)) = (value, stored)
                && *value != stored
            {
                sound = false;
                if self.computed_values.len() < MAX_COMPUTED_VALUES && !self.computed_values.contains(&stored)
                {
                    self.computed_values.push(stored);
                }
            }
        }
        sound
    }
}

/// Returns the stored value of a write if its inputs are known.
pub(crate) fn stored_value(skeleton: &Skeleton, write: usize, values: &ReadValues) -> Option<Value> {
    match &skeleton.events[write].stored_value {
        Some(stored) => stored.evaluate(&mut |read| values[usize::from(read)]),
        None => None,
    }
}

/// Number of values tried for each unknown read: zero, the smallest, the largest, every single bit, and more.
const SAMPLE_COUNT: u64 = 96;

/// Returns the stored value of a write if it does not depend on its unknown reads.
///
/// Independence is tested by sampling. An expression that only looks constant would permit a device too much;
/// none has been observed.
fn independent_value(skeleton: &Skeleton, write: usize, values: &ReadValues) -> Option<Value> {
    let stored = skeleton.events[write].stored_value.as_ref()?;
    let evaluate_sample = |turn: u64| {
        stored.evaluate(&mut |read| {
            // Different reads get different samples, so that `x - y` does not look constant.
            let sample = || sample_value((turn + 7 * u64::from(read)) % SAMPLE_COUNT);
            Some(values[usize::from(read)].unwrap_or_else(sample))
        })
    };
    let first = evaluate_sample(0)?;
    (1..SAMPLE_COUNT).all(|turn| evaluate_sample(turn) == Some(first)).then_some(first)
}

fn sample_value(turn: u64) -> Value {
    Value(match turn {
        0 | 1 => turn,
        2 => u64::MAX,
        3..67 => 1 << (turn - 3),
        // Odd multiples of a number without pattern (Fibonacci hashing).
        _ => turn.wrapping_mul(0x9e37_79b9_7f4a_7c15),
    })
}

/// Returns true if the known values satisfy the path constraints of the event structure.
pub(crate) fn satisfies_constraints(skeleton: &Skeleton, values: &ReadValues) -> bool {
    skeleton
        .constraints
        .iter()
        .all(|constraint| constraint.is_satisfied(&mut |read| values[usize::from(read)]) != Some(false))
}

/// The final value of an observable; `last_write` gives the last write in `co` to a storage.
pub(crate) fn final_value(
    skeleton: &Skeleton,
    final_value: &FinalValueSource,
    values: &ReadValues,
    last_write: &impl Fn(litmus::LocationId) -> Option<u16>,
) -> Value {
    match final_value {
        FinalValueSource::Expression(expression) => {
            expression.evaluate(&mut |read| values[usize::from(read)]).unwrap_or_default()
        }
        FinalValueSource::LastWrite(storage) => last_write(*storage)
            .and_then(|write| stored_value(skeleton, usize::from(write), values))
            .unwrap_or_default(),
    }
}

/// Returns true if every stored value and every condition is known or depends on a single read. Then the
/// values of different locations are independent.
pub(crate) fn has_independent_values(skeleton: &Skeleton) -> bool {
    let plain_writes = skeleton
        .events
        .iter()
        .all(|event| event.stored_value.as_ref().is_none_or(|s| s.known_value().is_some()));
    let plain_conditions = skeleton.constraints.iter().all(|constraint| {
        let mut first = None;
        let mut single = true;
        let mut visit = |read: u16| match first {
            None => first = Some(read),
            Some(known) => single &= known == read,
        };
        constraint.left.for_each_read(&mut visit);
        constraint.right.for_each_read(&mut visit);
        single
    });
    plain_writes && plain_conditions
}

/// Returns the reads that an expression depends on.
pub(crate) fn reads_of(expression: &SymbolicValue<u16>) -> Vec<u16> {
    let mut reads = Vec::new();
    expression.for_each_read(&mut |read| reads.push(read));
    reads
}
