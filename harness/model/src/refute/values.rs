//! Value encoding: the value that each read returns and each write stores.
//!
//! A read has one literal for each value that it may return. The values are collected in advance, by
//! propagating the written values through the program. If there are too many, the event structure is not
//! encoded.

use litmus::Value;

use super::{Refuter, RelationTerm};
use crate::choice::ReadChoice;
use crate::combine::ValueRules;
use crate::line::RmwChain;
use crate::matrix::Matrix;
use crate::sat::{Literal, Solver};
use crate::skeleton::Skeleton;
use crate::symbolic::{Constraint, Symbolic};
use crate::valuation::reads_of;

/// Limit of values that one read may return.
const VALUES: usize = 256;

/// Limit of value combinations of one expression or condition.
const COMBINATIONS: usize = 4096;

/// The value of a read, if known.
pub(super) type Known<'k> = dyn Fn(u16) -> Option<Value> + 'k;

/// The possible values of each read and each write.
#[derive(Debug)]
pub(crate) struct Domains {
    /// The values that each event may return, by event number; empty for events that do not read.
    returned: Vec<Vec<Value>>,
    /// The values that each event may store, by event number; empty for events that do not write.
    stored: Vec<Vec<Value>>,
    /// True if reads may take their values from each other in a cycle.
    pub(super) circular: bool,
    /// The RMW chains, whose values follow their modification order.
    pub(super) lines: Vec<RmwChain>,
}

impl Domains {
    /// Computes the values of an event structure's reads and writes; `None` if there are too many.
    pub(crate) fn new(
        skeleton: &Skeleton,
        reads: &[ReadChoice],
        rules: &ValueRules<'_>,
        lines: &[RmwChain],
    ) -> Option<Domains> {
        let mut returned: Vec<Vec<Value>> = vec![Vec::new(); skeleton.len()];
        let mut stored = returned.clone();
        let mut computed = Vec::new();
        for (event, expression) in skeleton.events.iter().enumerate() {
            match &expression.stored {
                Some(Symbolic::Known(value)) => stored[event].push(*value),
                Some(expression) => computed.push((event, expression, reads_of(expression))),
                None => {}
            }
        }
        let depends = dependencies(skeleton, reads, lines);
        let circles = components_of(&depends);
        let circular = rules.out_of_thin_air && !circles.is_empty();
        if circular {
            // A value on such a cycle may come out of thin air, so the domain of the whole program
            // applies, not only the written values.
            for read in circles.into_iter().flatten() {
                let possible =
                    rules.domain.values().iter().filter(|value| permits_value(skeleton, read, **value));
                returned[read].extend(possible);
            }
        }
        // Without cycles, no value passes through more writes than lead to the read. With a cycle, it returns
        // to its start.
        let computes = |write: &usize| computed.iter().any(|(event, ..)| event == write);
        let leading = reads.iter().map(|choice| {
            if let Some(passed) = passed_writes(skeleton, choice.read, lines) {
                return passed;
            }
            let before = reached_events(&depends, choice.read);
            let sources = reads.iter().filter(|other| before[other.read] || other.read == choice.read);
            let mut writes: Vec<usize> =
                sources.flat_map(|other| other.candidates.iter().copied().filter(computes)).collect();
            writes.sort_unstable();
            writes.dedup();
            if circular { 2 * writes.len() + 1 } else { writes.len() }
        });
        let leading: Vec<usize> = leading.collect();
        // Each round propagates values through one more write. Without a bound, a loop that
        // increments would produce new values for ever.
        for round in 0..=leading.iter().copied().max().unwrap_or(0) {
            let mut changed = false;
            for (choice, _) in reads.iter().zip(&leading).filter(|(_, leading)| round <= **leading) {
                let found = &mut returned[choice.read];
                for value in choice.candidates.iter().flat_map(|write| &stored[*write]) {
                    if !found.contains(value) && permits_value(skeleton, choice.read, *value) {
                        found.push(*value);
                        changed = true;
                    }
                }
                if found.len() > VALUES {
                    return None;
                }
            }
            for (event, expression, reads) in &computed {
                let found = &mut stored[*event];
                let tried = for_each(reads, &returned, &mut |known| {
                    if let Some(value) = expression.evaluate(&mut |read| known(read))
                        && !found.contains(&value)
                    {
                        found.push(value);
                        changed = true;
                    }
                });
                if !tried || found.len() > VALUES {
                    return None;
                }
            }
            if !changed {
                break;
            }
        }
        let domains = Domains { returned, stored, circular, lines: lines.to_vec() };
        // A constraint is encoded by the combinations of the values that it reads.
        let sayable = |constraint: &Constraint<u16>| {
            let mut reads = reads_of(&constraint.left);
            reads.extend(reads_of(&constraint.right));
            domains.can_combine(&reads)
        };
        skeleton.constraints.iter().all(sayable).then_some(domains)
    }

    /// Returns the values that a read may return.
    pub(super) fn returned(&self, read: usize) -> &[Value] {
        self.returned.get(read).map_or(&[], Vec::as_slice)
    }

    /// Returns true if these reads have few enough value combinations.
    pub(super) fn can_combine(&self, reads: &[u16]) -> bool {
        let mut reads = reads.to_vec();
        reads.sort_unstable();
        reads.dedup();
        count_combinations(&reads, &self.returned).is_some()
    }
}

/// Returns true if the path constraints on this read alone permit a value.
fn permits_value(skeleton: &Skeleton, read: usize, value: Value) -> bool {
    skeleton.constraints.iter().all(|constraint| {
        constraint.met(&mut |other| (usize::from(other) == read).then_some(value)) != Some(false)
    })
}

/// Returns the number of value combinations of these events; `None` if there are too many.
fn count_combinations(reads: &[u16], values: &[Vec<Value>]) -> Option<usize> {
    reads
        .iter()
        .try_fold(1usize, |product, read| product.checked_mul(values[usize::from(*read)].len()))
        .filter(|product| *product <= COMBINATIONS)
}

/// Visits every combination of the values that these reads return; false if there are too many.
fn for_each(reads: &[u16], values: &[Vec<Value>], visit: &mut dyn FnMut(&Known<'_>)) -> bool {
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
fn passed_writes(skeleton: &Skeleton, read: usize, lines: &[RmwChain]) -> Option<usize> {
    let line = lines.iter().find(|line| Some(line.storage) == skeleton.events[read].storage)?;
    let own = line.rmw_events.iter().any(|(link, _)| *link == read);
    Some(line.rmw_events.len() - usize::from(own))
}

/// Returns for each event the reads whose values may flow into its result through one read.
///
/// A value read from an RMW chain comes from that chain alone, without a cycle.
pub(super) fn dependencies(skeleton: &Skeleton, reads: &[ReadChoice], lines: &[RmwChain]) -> Vec<Vec<usize>> {
    let mut depends = vec![Vec::new(); skeleton.len()];
    let is_in_line = |read: usize| passed_writes(skeleton, read, lines).is_some();
    for choice in reads.iter().filter(|choice| !is_in_line(choice.read)) {
        for &write in &choice.candidates {
            let sources = skeleton.events[write].stored.as_ref().map(reads_of).unwrap_or_default();
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
pub(super) fn components_of(depends: &[Vec<usize>]) -> Vec<Vec<usize>> {
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

impl<M: Matrix, S: Solver> Refuter<'_, M, S> {
    /// Returns the term of each value of a read; exactly one of them holds.
    pub(super) fn returned(&mut self, read: usize) -> Vec<(Value, RelationTerm)> {
        if let Some(known) = self.returned.get(&read) {
            return known.clone();
        }
        let terms = self.one_of(self.domains.returned[read].clone());
        self.returned.insert(read, terms.clone());
        // Only queued: to define the read now would recurse along chains of dependent values.
        self.undefined.push(read);
        terms
    }

    /// Encodes that each requested read returns the value that its source stores.
    pub(super) fn define_values(&mut self) {
        while let Some(read) = self.undefined.pop() {
            if self.solver.is_spent() {
                return;
            }
            let returned = self.returned(read);
            for (write, source) in self.sources_of(read) {
                self.carries(source, write, &returned);
            }
        }
    }

    /// Encodes that `source` implies that the write stores this value.
    fn carries(&mut self, source: RelationTerm, write: usize, value: &[(Value, RelationTerm)]) {
        for (stored, term) in self.stored(write) {
            let same =
                value.iter().find(|(value, _)| *value == stored).map_or(RelationTerm::No, |(_, term)| *term);
            self.implies(&[source, term], same);
        }
    }

    /// Returns the term of each value that a write may store; exactly one of them holds.
    fn stored(&mut self, write: usize) -> Vec<(Value, RelationTerm)> {
        if let Some(known) = self.stored.get(&write) {
            return known.clone();
        }
        let skeleton = self.skeleton;
        let terms = match &skeleton.events[write].stored {
            None => Vec::new(),
            Some(Symbolic::Known(value)) => vec![(*value, RelationTerm::Yes)],
            // A copied value needs no additional literals.
            Some(Symbolic::Read(read)) => self.returned(usize::from(*read)),
            Some(stored) => {
                let terms = self.one_of(self.domains.stored[write].clone());
                self.for_each_combination(&reads_of(stored), &mut |me, given, known| {
                    let value = stored.evaluate(&mut |read| known(read));
                    let same = terms.iter().find(|(other, _)| Some(*other) == value);
                    me.implies(given, same.map_or(RelationTerm::No, |(_, term)| *term));
                });
                terms
            }
        };
        self.stored.insert(write, terms.clone());
        terms
    }

    /// Returns a literal for each value; exactly one of them holds.
    fn one_of(&mut self, values: Vec<Value>) -> Vec<(Value, RelationTerm)> {
        if let [value] = values.as_slice() {
            return vec![(*value, RelationTerm::Yes)];
        }
        let terms: Vec<(Value, Literal)> =
            values.into_iter().map(|value| (value, self.solver.variable())).collect();
        let all: Vec<Literal> = terms.iter().map(|(_, literal)| *literal).collect();
        self.exactly_one(&all);
        terms.into_iter().map(|(value, literal)| (value, RelationTerm::If(literal))).collect()
    }

    /// Visits every value combination of some reads, with the terms that it stands for.
    pub(super) fn for_each_combination(
        &mut self,
        reads: &[u16],
        visit: &mut dyn FnMut(&mut Self, &[RelationTerm], &Known<'_>),
    ) {
        let mut reads = reads.to_vec();
        reads.sort_unstable();
        reads.dedup();
        let returned: Vec<Vec<(Value, RelationTerm)>> =
            reads.iter().map(|read| self.returned(usize::from(*read))).collect();
        let domains = self.domains.clone();
        for_each(&reads, &domains.returned, &mut |known| {
            let term = |(read, terms): (&u16, &Vec<(Value, RelationTerm)>)| {
                terms.iter().find(|(value, _)| known(*read) == Some(*value)).map(|(_, term)| *term)
            };
            let given: Vec<RelationTerm> = reads.iter().zip(&returned).filter_map(term).collect();
            visit(self, &given, known);
        });
    }

    /// Encodes the path constraints of the program.
    pub(super) fn demand_paths(&mut self) {
        let skeleton = self.skeleton;
        for constraint in &skeleton.constraints {
            let mut reads = reads_of(&constraint.left);
            reads.extend(reads_of(&constraint.right));
            self.for_each_combination(&reads, &mut |me, given, known| {
                if constraint.met(&mut |read| known(read)) == Some(false) {
                    me.implies(given, RelationTerm::No);
                }
            });
        }
    }

    /// Encodes that no value depends on itself, conditional on the literal.
    pub(super) fn demand_ground(&mut self, grounded: Literal) {
        let ground = self.ground;
        let depends = dependencies(self.skeleton, &ground.reads, &self.domains.lines);
        for component in components_of(&depends) {
            let before = self.order(&component);
            for &read in &component {
                for (write, source) in self.sources_of(read) {
                    let through =
                        self.skeleton.events[write].stored.as_ref().map(reads_of).unwrap_or_default();
                    // A value that is the same for all reads needs no read.
                    let open = self.domains.stored[write].len() > 1;
                    for from in through.into_iter().map(usize::from).filter(|_| open) {
                        if component.contains(&from) {
                            let ordered = super::precedes(&before, from, read)
                                .map_or(RelationTerm::No, RelationTerm::If);
                            self.implies(&[RelationTerm::If(grounded), source], ordered);
                        }
                    }
                }
            }
        }
    }

    /// Returns the writes that a read may read from, each with its reads-from term.
    pub(super) fn sources_of(&mut self, read: usize) -> Vec<(usize, RelationTerm)> {
        let ground = self.ground;
        let Some(choice) = ground.reads.iter().find(|choice| choice.read == read) else { return Vec::new() };
        match choice.candidates.as_slice() {
            [write] => vec![(*write, RelationTerm::Yes)],
            writes => writes.iter().map(|write| (*write, self.reads_from(*write, read))).collect(),
        }
    }

    /// Returns the writes that may be last in a storage, each with its term.
    pub(super) fn last_writes(&mut self, storage: litmus::LocationId) -> Vec<(usize, RelationTerm)> {
        let writes = self.writes(Some(storage));
        match writes.as_slice() {
            [] => self.initial_write(storage).map(|write| (write, RelationTerm::Yes)).into_iter().collect(),
            [write] => vec![(*write, RelationTerm::Yes)],
            _ => {
                let mut last = Vec::new();
                for &write in &writes {
                    // One direction suffices: at most one write can follow all others, and the
                    // clause below requires one.
                    let literal = self.solver.variable();
                    for &other in writes.iter().filter(|other| **other != write) {
                        let before = self.ordered(other, write);
                        self.implies(&[RelationTerm::If(literal)], before);
                    }
                    last.push((write, literal));
                }
                let all: Vec<Literal> = last.iter().map(|(_, literal)| *literal).collect();
                self.solver.clause(&all);
                last.into_iter().map(|(write, literal)| (write, RelationTerm::If(literal))).collect()
            }
        }
    }

    /// Returns the term of each final value of a storage, from the last write to it.
    pub(super) fn final_values(&mut self, storage: litmus::LocationId) -> Vec<(Value, RelationTerm)> {
        if let Some(known) = self.finals.get(&storage) {
            return known.clone();
        }
        let last = self.last_writes(storage);
        let mut values: Vec<Value> = Vec::new();
        for (write, _) in &last {
            for value in &self.domains.stored[*write] {
                if !values.contains(value) {
                    values.push(*value);
                }
            }
        }
        let terms = self.one_of(values);
        for (write, is_last) in last {
            self.carries(is_last, write, &terms);
        }
        self.finals.insert(storage, terms.clone());
        terms
    }

    /// Encodes the implication `given` → `then`.
    pub(super) fn implies(&mut self, given: &[RelationTerm], then: RelationTerm) {
        let mut clause: Vec<Literal> = Vec::with_capacity(given.len() + 1);
        for term in given {
            match term {
                RelationTerm::No => return,
                RelationTerm::Yes => {}
                RelationTerm::If(literal) => clause.push(!*literal),
            }
        }
        match then {
            RelationTerm::Yes => return,
            RelationTerm::No => {}
            RelationTerm::If(literal) => clause.push(literal),
        }
        self.solver.clause(&clause);
    }

    pub(super) fn exactly_one(&mut self, literals: &[Literal]) {
        self.solver.clause(literals);
        for (index, first) in literals.iter().enumerate() {
            for second in &literals[index + 1..] {
                self.solver.clause(&[!*first, !*second]);
            }
        }
    }
}
