//! The values of reads and the outcomes that a choice of sources determines.

use litmus::{ArithmeticOperation, BranchRelation, ScalarType, Value};

use crate::format::{EventStructure, ObservedValue, PathConstraint, ValueExpression};

/// A predicate: the first write certainly precedes the second.
pub type CertainOrder<'o> = dyn Fn(usize, usize) -> bool + 'o;

/// Limit of the computed values that are tried for a read of a cycle, in addition to the domain.
const MAX_COMPUTED_VALUES: usize = 8;
/// Limit of the values that are tried for the reads of cycles of one execution, together.
const MAX_GUESSES: usize = 1 << 16;

impl ValueExpression {
    /// An operation on two values of a type.
    pub fn new_operation(
        operation: ArithmeticOperation,
        scalar: ScalarType,
        left: ValueExpression,
        right: ValueExpression,
    ) -> ValueExpression {
        let (operation, scalar) = (operation.keyword(), scalar.keyword());
        ValueExpression::Apply(operation.to_owned(), scalar.to_owned(), Box::new((left, right)))
    }

    /// Returns true if all words are known and `is_read` holds for every read.
    pub(crate) fn is_valid(&self, is_read: &dyn Fn(usize) -> bool) -> bool {
        match self {
            ValueExpression::Known(_) => true,
            ValueExpression::Read(read) => is_read(*read),
            ValueExpression::Apply(operation, scalar, operands) => {
                ArithmeticOperation::from_keyword(operation).is_some()
                    && ScalarType::from_keyword(scalar).is_some()
                    && operands.0.is_valid(is_read)
                    && operands.1.is_valid(is_read)
            }
            ValueExpression::Part(before, bytes, whole) => {
                *before < 8 && (1..=8).contains(bytes) && whole.is_valid(is_read)
            }
            ValueExpression::Join(parts) => parts.iter().all(|(at, part)| *at < 8 && part.is_valid(is_read)),
        }
    }

    /// Returns the value; `None` if it depends on an unknown read.
    pub(crate) fn evaluate(&self, read: &dyn Fn(usize) -> Option<u64>) -> Option<u64> {
        match self {
            ValueExpression::Known(value) => Some(*value),
            ValueExpression::Read(event) => read(*event),
            ValueExpression::Apply(operation, scalar, operands) => {
                let (left, right) = (operands.0.evaluate(read)?, operands.1.evaluate(read)?);
                let operation = ArithmeticOperation::from_keyword(operation)?;
                let scalar = ScalarType::from_keyword(scalar)?;
                Some(operation.apply(Value(left), Value(right), scalar).0)
            }
            ValueExpression::Part(before, bytes, whole) => {
                let shifted = whole.evaluate(read)? >> (8 * before);
                Some(if *bytes < 8 { shifted & ((1 << (8 * bytes)) - 1) } else { shifted })
            }
            ValueExpression::Join(parts) => {
                parts.iter().try_fold(0, |all, (at, part)| Some(all | part.evaluate(read)? << (8 * at)))
            }
        }
    }

    /// Adds the reads that the value depends on.
    fn collect_reads(&self, reads: &mut Vec<usize>) {
        match self {
            ValueExpression::Known(_) => {}
            ValueExpression::Read(read) => reads.push(*read),
            ValueExpression::Apply(_, _, operands) => {
                operands.0.collect_reads(reads);
                operands.1.collect_reads(reads);
            }
            ValueExpression::Part(_, _, whole) => whole.collect_reads(reads),
            ValueExpression::Join(parts) => parts.iter().for_each(|(_, part)| part.collect_reads(reads)),
        }
    }
}

impl PathConstraint {
    /// A comparison of two values as signed numbers of a type.
    pub fn new(
        relation: BranchRelation,
        holds: bool,
        sides: (ValueExpression, ValueExpression),
        scalar: ScalarType,
    ) -> PathConstraint {
        let (relation, scalar) = (relation.keyword(), scalar.keyword());
        let (left, right) = sides;
        PathConstraint { relation: relation.to_owned(), holds, left, right, scalar: scalar.to_owned() }
    }

    pub(crate) fn is_valid(&self, is_read: &dyn Fn(usize) -> bool) -> bool {
        BranchRelation::from_keyword(&self.relation).is_some()
            && ScalarType::from_keyword(&self.scalar).is_some()
            && self.left.is_valid(is_read)
            && self.right.is_valid(is_read)
    }

    /// Returns true if the values contradict it; false also while they are unknown.
    pub(crate) fn is_violated(&self, read: &dyn Fn(usize) -> Option<u64>) -> bool {
        let violated = || {
            let scalar = ScalarType::from_keyword(&self.scalar)?;
            let signed = |side: &ValueExpression| Some(Value(side.evaluate(read)?).to_signed(scalar));
            let (left, right) = (signed(&self.left)?, signed(&self.right)?);
            Some(BranchRelation::from_keyword(&self.relation)?.holds(left, right) != self.holds)
        };
        violated() == Some(true)
    }
}

/// Returns the outcomes of all executions with these sources of reads, or more; `None` if the sources do not
/// determine them, or too many values would have to be tried.
///
/// `before` is the known part of modification order. If a value depends on itself, each value of `domain` is
/// tried; if `domain` is `None`, no execution has such values. With `complete`, every read must have a value.
pub fn find_outcomes(
    structure: &EventStructure,
    sources: &[Option<usize>],
    before: &CertainOrder<'_>,
    domain: Option<&[u64]>,
    complete: bool,
) -> Option<Vec<Vec<u64>>> {
    let mut found = Vec::new();
    let search = OutcomeSearch { structure, sources, before, domain, complete };
    search.collect_outcomes(vec![None; structure.events], &mut found, &mut 0)?;
    Some(found)
}

struct OutcomeSearch<'a> {
    structure: &'a EventStructure,
    sources: &'a [Option<usize>],
    before: &'a CertainOrder<'a>,
    domain: Option<&'a [u64]>,
    complete: bool,
}

impl OutcomeSearch<'_> {
    fn stored_value(&self, write: usize, values: &[Option<u64>]) -> Option<u64> {
        self.structure.stored.get(write)?.as_ref()?.evaluate(&|read| values[read])
    }

    /// Propagates values from writes to reads; the error is the value that a write stores instead of the
    /// guessed one.
    fn propagate(&self, values: &mut [Option<u64>]) -> Result<(), u64> {
        let mut changed = true;
        while std::mem::take(&mut changed) {
            for (read, source) in self.sources.iter().enumerate() {
                let stored = source.and_then(|write| self.stored_value(write, values));
                match (values[read], stored) {
                    (None, Some(value)) => {
                        values[read] = Some(value);
                        changed = true;
                    }
                    (Some(value), Some(stored)) if value != stored => return Err(stored),
                    _ => {}
                }
            }
        }
        Ok(())
    }

    /// Adds the outcomes that extend these values; `None` if they are not determined.
    fn collect_outcomes(
        &self,
        mut values: Vec<Option<u64>>,
        found: &mut Vec<Vec<u64>>,
        guesses: &mut usize,
    ) -> Option<()> {
        if self.propagate(&mut values).is_err() {
            return Some(());
        }
        if self.structure.constraints.iter().any(|constraint| constraint.is_violated(&|read| values[read])) {
            return Some(());
        }
        let unknown = self.needed_reads()?.into_iter().filter(|read| values[*read].is_none());
        // All values that these depend on have a source, so that some depend on themselves.
        let circular = unknown.filter(|read| self.depends_on_itself(*read, &values));
        let Some(self_dependent) = circular.min() else {
            let finals = self.structure.finals.iter();
            let outcome = finals.map(|value| match value {
                ObservedValue::Expression(expression) => expression.evaluate(&|read| values[read]),
                ObservedValue::LastWrite(storage) => self.stored_value(self.last_write(*storage)?, &values),
            });
            found.push(outcome.collect::<Option<Vec<u64>>>()?);
            return Some(());
        };
        let mut candidates = self.domain.map(<[u64]>::to_vec).unwrap_or_default();
        let max_candidates = candidates.len() + MAX_COMPUTED_VALUES;
        let mut next = 0;
        while let Some(value) = candidates.get(next).copied().filter(|_| next < max_candidates) {
            next += 1;
            *guesses += 1;
            if *guesses > MAX_GUESSES {
                return None;
            }
            let mut guess = values.clone();
            guess[self_dependent] = Some(value);
            match self.propagate(&mut guess) {
                Ok(()) => self.collect_outcomes(guess, found, guesses)?,
                // A value that the cycle computes may be one that it keeps, as in `x ^ x`.
                Err(stored) if !candidates.contains(&stored) => candidates.push(stored),
                Err(_) => {}
            }
        }
        Some(())
    }

    /// Returns true if a read's value is computed from itself, by way of reads whose values are unknown.
    fn depends_on_itself(&self, read: usize, values: &[Option<u64>]) -> bool {
        let (mut worklist, mut seen) = (vec![read], Vec::new());
        while let Some(next) = worklist.pop() {
            let stored =
                self.sources.get(next).copied().flatten().and_then(|write| self.structure.stored.get(write));
            let mut operands = Vec::new();
            stored.into_iter().flatten().for_each(|value| value.collect_reads(&mut operands));
            for operand in operands.into_iter().filter(|operand| values[*operand].is_none()) {
                if operand == read {
                    return true;
                }
                if !seen.contains(&operand) {
                    seen.push(operand);
                    worklist.push(operand);
                }
            }
        }
        false
    }

    /// The reads that the outcome depends on; `None` if one has no source or a last write is open.
    fn needed_reads(&self) -> Option<Vec<usize>> {
        let mut worklist = Vec::new();
        if self.complete {
            worklist.extend((0..self.sources.len()).filter(|read| self.sources[*read].is_some()));
        }
        for value in &self.structure.finals {
            match value {
                ObservedValue::Expression(expression) => expression.collect_reads(&mut worklist),
                ObservedValue::LastWrite(storage) => {
                    let last = self.structure.stored.get(self.last_write(*storage)?)?.as_ref()?;
                    last.collect_reads(&mut worklist);
                }
            }
        }
        let mut needed = Vec::new();
        while let Some(read) = worklist.pop() {
            if !needed.contains(&read) {
                needed.push(read);
                let source = self.sources.get(read).copied().flatten()?;
                self.structure.stored.get(source)?.as_ref()?.collect_reads(&mut worklist);
            }
        }
        Some(needed)
    }

    /// The write to a storage that no other write can follow.
    fn last_write(&self, storage: u16) -> Option<usize> {
        let is_write = |event: &usize| {
            self.structure.stored[*event].is_some() && self.structure.storages[*event] == Some(storage)
        };
        let writes: Vec<usize> = (0..self.structure.events).filter(is_write).collect();
        writes
            .iter()
            .copied()
            .find(|last| writes.iter().all(|other| other == last || (self.before)(*other, *last)))
    }
}
