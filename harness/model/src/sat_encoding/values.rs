//! Value encoding: the value that each read returns and each write stores.
//!
//! A read has one literal for each value that it may return. The values are collected in advance, by
//! propagating the written values through the program. If there are too many, the event structure is not
//! encoded.

use litmus::Value;

use super::{BooleanTerm, SatEncoding};
use crate::choice::ReadChoice;
use crate::matrix::Matrix;
use crate::outcome_collector::ValueRules;
use crate::rmw_chain::RmwChain;
use crate::skeleton::Skeleton;
use crate::symbolic::{Constraint, SymbolicValue};
use crate::valuation::reads_of;
use solver::{Literal, SatSolver};

/// Limit of values that one read may return.
const MAX_VALUES: usize = 256;

/// Limit of value combinations of one expression or condition.
const MAX_COMBINATIONS: usize = 4096;

/// The value of a read, if known.
pub(super) type ReadLookup<'k> = dyn Fn(u16) -> Option<Value> + 'k;

/// The possible values of each read and each write.
#[derive(Debug)]
pub(crate) struct EventDomains {
    /// The values that each event may return, by event number; empty for events that do not read.
    returned: Vec<Vec<Value>>,
    /// The values that each event may store, by event number; empty for events that do not write.
    stored: Vec<Vec<Value>>,
    /// True if reads may take their values from each other in a cycle.
    pub(super) is_circular: bool,
    /// The RMW chains, whose values follow their modification order.
    pub(super) rmw_chains: Vec<RmwChain>,
}

impl EventDomains {
    /// Computes the values of an event structure's reads and writes; `None` if there are too many.
    pub(crate) fn new(
        skeleton: &Skeleton,
        reads: &[ReadChoice],
        rules: &ValueRules<'_>,
        rmw_chains: &[RmwChain],
    ) -> Option<EventDomains> {
        let mut returned: Vec<Vec<Value>> = vec![Vec::new(); skeleton.len()];
        let mut stored = returned.clone();
        let mut computed = Vec::new();
        for (event, expression) in skeleton.events.iter().enumerate() {
            match &expression.stored_value {
                Some(SymbolicValue::Known(value)) => stored[event].push(*value),
                Some(expression) => computed.push((event, expression, reads_of(expression))),
                None => {}
            }
        }
        let depends = read_dependencies(skeleton, reads, rmw_chains);
        let cycles = dependency_cycles(&depends);
        let is_circular = rules.out_of_thin_air && !cycles.is_empty();
        if is_circular {
            // A value on such a cycle may come out of thin air, so the domain of the whole program
            // applies, not only the written values.
            for read in cycles.into_iter().flatten() {
                let possible =
                    rules.domain.values().iter().filter(|value| permits_value(skeleton, read, **value));
                returned[read].extend(possible);
            }
        }
        // Without cycles, no value passes through more writes than lead to the read. With a cycle, it returns
        // to its start.
        let computes = |write: &usize| computed.iter().any(|(event, ..)| event == write);
        let write_limits = reads.iter().map(|choice| {
            if let Some(passed) = count_passed_writes(skeleton, choice.read, rmw_chains) {
                return passed;
            }
            let before = reached_events(&depends, choice.read);
            let sources = reads.iter().filter(|other| before[other.read] || other.read == choice.read);
            let mut writes: Vec<usize> =
                sources.flat_map(|other| other.candidates.iter().copied().filter(computes)).collect();
            writes.sort_unstable();
            writes.dedup();
            if is_circular { 2 * writes.len() + 1 } else { writes.len() }
        });
        let write_limits: Vec<usize> = write_limits.collect();
        // Each round propagates values through one more write. Without a bound, a loop that
        // increments would produce new values for ever.
        for round in 0..=write_limits.iter().copied().max().unwrap_or(0) {
            let mut changed = false;
            for (choice, _) in reads.iter().zip(&write_limits).filter(|(_, leading)| round <= **leading) {
                let found = &mut returned[choice.read];
                for value in choice.candidates.iter().flat_map(|write| &stored[*write]) {
                    if !found.contains(value) && permits_value(skeleton, choice.read, *value) {
                        found.push(*value);
                        changed = true;
                    }
                }
                if found.len() > MAX_VALUES {
                    return None;
                }
            }
            for (event, expression, reads) in &computed {
                let found = &mut stored[*event];
                let is_enumerated = for_each_value_combination(reads, &returned, &mut |known| {
                    if let Some(value) = expression.evaluate(&mut |read| known(read))
                        && !found.contains(&value)
                    {
                        found.push(value);
                        changed = true;
                    }
                });
                if !is_enumerated || found.len() > MAX_VALUES {
                    return None;
                }
            }
            if !changed {
                break;
            }
        }
        let domains = EventDomains { returned, stored, is_circular, rmw_chains: rmw_chains.to_vec() };
        // A constraint is encoded by the combinations of the values that it reads.
        let is_encodable = |constraint: &Constraint<u16>| {
            let mut reads = reads_of(&constraint.left);
            reads.extend(reads_of(&constraint.right));
            domains.has_few_combinations(&reads)
        };
        skeleton.constraints.iter().all(is_encodable).then_some(domains)
    }

    /// Returns the values that a read may return.
    pub(super) fn returned_values(&self, read: usize) -> &[Value] {
        self.returned.get(read).map_or(&[], Vec::as_slice)
    }

    /// Returns true if these reads have few enough value combinations.
    pub(super) fn has_few_combinations(&self, reads: &[u16]) -> bool {
        let mut reads = reads.to_vec();
        reads.sort_unstable();
        reads.dedup();
        count_combinations(&reads, &self.returned).is_some()
    }
}

/// Returns true if the path constraints on this read alone permit a value.
fn permits_value(skeleton: &Skeleton, read: usize, value: Value) -> bool {
    skeleton.constraints.iter().all(|constraint| {
        constraint.is_satisfied(&mut |other| (usize::from(other) == read).then_some(value)) != Some(false)
    })
}

/// Returns the number of value combinations of these events; `None` if there are too many.
fn count_combinations(reads: &[u16], values: &[Vec<Value>]) -> Option<usize> {
    reads
        .iter()
        .try_fold(1usize, |product, read| product.checked_mul(values[usize::from(*read)].len()))
        .filter(|product| *product <= MAX_COMBINATIONS)
}

/// Visits every combination of the values that these reads return; false if there are too many.
fn for_each_value_combination(
    reads: &[u16],
    values: &[Vec<Value>],
    visit: &mut dyn FnMut(&ReadLookup<'_>),
) -> bool {
    let mut reads = reads.to_vec();
    reads.sort_unstable();
    reads.dedup();
    let Some(count) = count_combinations(&reads, values) else { return false };
    // `number` in mixed radix: one digit per read, its value the index of the chosen value.
    for number in 0..count {
        let mut rest = number;
        let chosen: Vec<Value> = reads
            .iter()
            .map(|read| {
                let all = &values[usize::from(*read)];
                let value = all[rest % all.len()];
                rest /= all.len();
                value
            })
            .collect();
        visit(&|read| reads.iter().position(|r| *r == read).map(|index| chosen[index]));
    }
    true
}

/// Returns the number of writes that a value read from an RMW chain may have passed through. An RMW never
/// reads its own write.
fn count_passed_writes(skeleton: &Skeleton, read: usize, rmw_chains: &[RmwChain]) -> Option<usize> {
    let chain = rmw_chains.iter().find(|line| Some(line.storage) == skeleton.events[read].storage)?;
    let is_in_chain = chain.rmw_events.iter().any(|(link, _)| *link == read);
    Some(chain.rmw_events.len() - usize::from(is_in_chain))
}

/// Returns for each event the reads whose values may flow into its result through one read.
///
/// A value read from an RMW chain comes from that chain alone, without a cycle.
pub(super) fn read_dependencies(
    skeleton: &Skeleton,
    reads: &[ReadChoice],
    rmw_chains: &[RmwChain],
) -> Vec<Vec<usize>> {
    let mut depends = vec![Vec::new(); skeleton.len()];
    let is_in_chain = |read: usize| count_passed_writes(skeleton, read, rmw_chains).is_some();
    for choice in reads.iter().filter(|choice| !is_in_chain(choice.read)) {
        for &write in &choice.candidates {
            let sources = skeleton.events[write].stored_value.as_ref().map(reads_of).unwrap_or_default();
            depends[choice.read].extend(sources.into_iter().map(usize::from));
        }
        depends[choice.read].sort_unstable();
        depends[choice.read].dedup();
    }
    depends
}

/// Returns the events that one event reaches; itself only through a cycle.
fn reached_events(depends: &[Vec<usize>], from: usize) -> Vec<bool> {
    let (mut seen, mut open) = (vec![false; depends.len()], depends[from].clone());
    while let Some(next) = open.pop() {
        if !std::mem::replace(&mut seen[next], true) {
            open.extend(&depends[next]);
        }
    }
    seen
}

/// Returns the strongly connected components that contain a cycle, with events in ascending order.
pub(crate) fn dependency_cycles(depends: &[Vec<usize>]) -> Vec<Vec<usize>> {
    let n = depends.len();
    let reaches: Vec<Vec<bool>> = (0..n).map(|from| reached_events(depends, from)).collect();
    let mut components: Vec<Vec<usize>> = Vec::new();
    for event in (0..n).filter(|event| reaches[*event][*event]) {
        match components.iter_mut().find(|c| reaches[c[0]][event] && reaches[event][c[0]]) {
            Some(component) => component.push(event),
            None => components.push(vec![event]),
        }
    }
    components
}

impl<M: Matrix, S: SatSolver> SatEncoding<'_, M, S> {
    /// Returns the term of each value of a read; exactly one of them holds.
    pub(super) fn returned_value_terms(&mut self, read: usize) -> Vec<(Value, BooleanTerm)> {
        if let Some(cached) = self.returned.get(&read) {
            return cached.clone();
        }
        let terms = self.new_value_terms(self.domains.returned[read].clone());
        self.returned.insert(read, terms.clone());
        // Only queued: to define the read now would recurse along chains of dependent values.
        self.undefined_reads.push(read);
        terms
    }

    /// Encodes that each requested read returns the value that its source stores.
    pub(super) fn define_values(&mut self) {
        while let Some(read) = self.undefined_reads.pop() {
            if self.solver.is_exhausted() {
                return;
            }
            let returned = self.returned_value_terms(read);
            for (write, source) in self.source_terms(read) {
                self.encode_stored_value(source, write, &returned);
            }
        }
    }

    /// Encodes that `source` implies that the write stores this value.
    fn encode_stored_value(&mut self, source: BooleanTerm, write: usize, value: &[(Value, BooleanTerm)]) {
        for (stored, term) in self.stored_value_terms(write) {
            let same = value
                .iter()
                .find(|(value, _)| *value == stored)
                .map_or(BooleanTerm::False, |(_, term)| *term);
            self.add_implication(&[source, term], same);
        }
    }

    /// Returns the term of each value that a write may store; exactly one of them holds.
    fn stored_value_terms(&mut self, write: usize) -> Vec<(Value, BooleanTerm)> {
        if let Some(cached) = self.stored.get(&write) {
            return cached.clone();
        }
        let skeleton = self.skeleton;
        let terms = match &skeleton.events[write].stored_value {
            None => Vec::new(),
            Some(SymbolicValue::Known(value)) => vec![(*value, BooleanTerm::True)],
            // A copied value needs no additional literals.
            Some(SymbolicValue::Read(read)) => self.returned_value_terms(usize::from(*read)),
            Some(stored) => {
                let terms = self.new_value_terms(self.domains.stored[write].clone());
                self.for_each_combination(&reads_of(stored), &mut |me, given, known| {
                    let value = stored.evaluate(&mut |read| known(read));
                    let same = terms.iter().find(|(other, _)| Some(*other) == value);
                    me.add_implication(given, same.map_or(BooleanTerm::False, |(_, term)| *term));
                });
                terms
            }
        };
        self.stored.insert(write, terms.clone());
        terms
    }

    /// Returns a literal for each value; exactly one of them holds.
    fn new_value_terms(&mut self, values: Vec<Value>) -> Vec<(Value, BooleanTerm)> {
        if let [value] = values.as_slice() {
            return vec![(*value, BooleanTerm::True)];
        }
        let terms: Vec<(Value, Literal)> =
            values.into_iter().map(|value| (value, self.solver.new_variable())).collect();
        let all: Vec<Literal> = terms.iter().map(|(_, literal)| *literal).collect();
        self.add_exactly_one(&all);
        terms.into_iter().map(|(value, literal)| (value, BooleanTerm::Literal(literal))).collect()
    }

    /// Visits every value combination of some reads, with the terms that it stands for.
    pub(super) fn for_each_combination(
        &mut self,
        reads: &[u16],
        visit: &mut dyn FnMut(&mut Self, &[BooleanTerm], &ReadLookup<'_>),
    ) {
        let mut reads = reads.to_vec();
        reads.sort_unstable();
        reads.dedup();
        let returned: Vec<Vec<(Value, BooleanTerm)>> =
            reads.iter().map(|read| self.returned_value_terms(usize::from(*read))).collect();
        let domains = self.domains.clone();
        for_each_value_combination(&reads, &domains.returned, &mut |known| {
            let term = |(read, terms): (&u16, &Vec<(Value, BooleanTerm)>)| {
                terms.iter().find(|(value, _)| known(*read) == Some(*value)).map(|(_, term)| *term)
            };
            let given: Vec<BooleanTerm> = reads.iter().zip(&returned).filter_map(term).collect();
            visit(self, &given, known);
        });
    }

    /// Encodes the path constraints of the program.
    pub(super) fn encode_path_constraints(&mut self) {
        let skeleton = self.skeleton;
        for constraint in &skeleton.constraints {
            let mut reads = reads_of(&constraint.left);
            reads.extend(reads_of(&constraint.right));
            self.for_each_combination(&reads, &mut |me, given, known| {
                if constraint.is_satisfied(&mut |read| known(read)) == Some(false) {
                    me.add_implication(given, BooleanTerm::False);
                }
            });
        }
    }

    /// Encodes that no value depends on itself, conditional on the literal.
    pub(super) fn encode_groundedness(&mut self, grounded: Literal) {
        let static_bounds = self.static_bounds;
        let depends = read_dependencies(self.skeleton, &static_bounds.reads, &self.domains.rmw_chains);
        for component in dependency_cycles(&depends) {
            let before = self.new_total_order(&component);
            for &read in &component {
                for (write, source) in self.source_terms(read) {
                    let through =
                        self.skeleton.events[write].stored_value.as_ref().map(reads_of).unwrap_or_default();
                    // A value that is the same for all reads needs no read.
                    let open = self.domains.stored[write].len() > 1;
                    for from in through.into_iter().map(usize::from).filter(|_| open) {
                        if component.contains(&from) {
                            let ordered = super::order_literal(&before, from, read)
                                .map_or(BooleanTerm::False, BooleanTerm::Literal);
                            self.add_implication(&[BooleanTerm::Literal(grounded), source], ordered);
                        }
                    }
                }
            }
        }
    }

    /// Returns the writes that a read may read from, each with its reads-from term.
    pub(super) fn source_terms(&mut self, read: usize) -> Vec<(usize, BooleanTerm)> {
        let static_bounds = self.static_bounds;
        let Some(choice) = static_bounds.reads.iter().find(|choice| choice.read == read) else {
            return Vec::new();
        };
        match choice.candidates.as_slice() {
            [write] => vec![(*write, BooleanTerm::True)],
            writes => writes.iter().map(|write| (*write, self.reads_from_term(*write, read))).collect(),
        }
    }

    /// Returns the writes that may be last in a storage, each with its term.
    pub(super) fn last_write_terms(&mut self, storage: litmus::LocationId) -> Vec<(usize, BooleanTerm)> {
        let writes = self.thread_writes(Some(storage));
        match writes.as_slice() {
            [] => self.initial_write(storage).map(|write| (write, BooleanTerm::True)).into_iter().collect(),
            [write] => vec![(*write, BooleanTerm::True)],
            _ => {
                let mut last = Vec::new();
                for &write in &writes {
                    // One direction suffices: at most one write can follow all others, and the
                    // clause below requires one.
                    let literal = self.solver.new_variable();
                    for &other in writes.iter().filter(|other| **other != write) {
                        let before = self.order_term(other, write);
                        self.add_implication(&[BooleanTerm::Literal(literal)], before);
                    }
                    last.push((write, literal));
                }
                let all: Vec<Literal> = last.iter().map(|(_, literal)| *literal).collect();
                self.solver.add_clause(&all);
                last.into_iter().map(|(write, literal)| (write, BooleanTerm::Literal(literal))).collect()
            }
        }
    }

    /// Returns the term of each final value of a storage, from the last write to it.
    pub(super) fn final_value_terms(&mut self, storage: litmus::LocationId) -> Vec<(Value, BooleanTerm)> {
        if let Some(cached) = self.finals.get(&storage) {
            return cached.clone();
        }
        let last = self.last_write_terms(storage);
        let mut values: Vec<Value> = Vec::new();
        for (write, _) in &last {
            for value in &self.domains.stored[*write] {
                if !values.contains(value) {
                    values.push(*value);
                }
            }
        }
        let terms = self.new_value_terms(values);
        for (write, is_last) in last {
            self.encode_stored_value(is_last, write, &terms);
        }
        self.finals.insert(storage, terms.clone());
        terms
    }

    /// Encodes the implication `premises` → `conclusion`.
    pub(super) fn add_implication(&mut self, premises: &[BooleanTerm], conclusion: BooleanTerm) {
        let mut clause: Vec<Literal> = Vec::with_capacity(premises.len() + 1);
        for term in premises {
            match term {
                BooleanTerm::False => return,
                BooleanTerm::True => {}
                BooleanTerm::Literal(literal) => clause.push(!*literal),
            }
        }
        match conclusion {
            BooleanTerm::True => return,
            BooleanTerm::False => {}
            BooleanTerm::Literal(literal) => clause.push(literal),
        }
        self.solver.add_clause(&clause);
    }

    pub(super) fn add_exactly_one(&mut self, literals: &[Literal]) {
        self.solver.add_clause(literals);
        for (index, first) in literals.iter().enumerate() {
            for second in &literals[index + 1..] {
                self.solver.add_clause(&[!*first, !*second]);
            }
        }
    }
}
