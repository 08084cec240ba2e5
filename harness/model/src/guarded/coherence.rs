//! Coherence of single storages as clauses.
//!
//! If all writes of a storage are mutually ordered atomics through one name, its accesses of one thread agree with
//! the modification order, and no write comes between the two halves of a read-modify-write. The axioms imply
//! these clauses: a violation is a cycle of location order, reads-from, from-reads and the order of the
//! atomics, or violates atomicity (VK-COH-01 to VK-COH-05). They are few compared with the axioms, and exclude most
//! combinations of paths without them.
//!
//! The values of a counter, which every write increases, grow along that order.

use solver::{Bit, BitVector};

use super::encoding::GuardedEncoding;
use crate::matrix::Matrix;
use crate::path::unroll::VALUE_BITS;
use crate::skeleton::{Owner, Tags};

/// Limit of accesses of one storage, since the number of clauses grows with its cube.
const MAX_COHERENT_ACCESSES: usize = 64;

/// Limit of the sum of the additions to a counter.
const MAX_COUNTED: u64 = 256;

impl<M: Matrix> GuardedEncoding<'_, M> {
    /// Encodes the coherence of the ordered storages.
    pub(super) fn encode_coherence(&mut self) {
        let program = self.program.clone();
        let all = &program.skeleton.events;
        for storage in &program.ordered_storages {
            let is_access = |event: &usize| {
                all[*event].storage == Some(*storage) && matches!(all[*event].owner, Owner::Thread(_))
            };
            let events: Vec<usize> = (0..all.len()).filter(is_access).collect();
            if events.len() > MAX_COHERENT_ACCESSES {
                continue;
            }
            for (index, &first) in events.iter().enumerate() {
                // Events of one thread are contiguous and in program order.
                let is_same_thread = |event: &&usize| all[**event].owner == all[first].owner;
                for &second in events[index + 1..].iter().take_while(is_same_thread) {
                    self.encode_program_order(first, second);
                }
                if let Some(write) = all[first].write_half() {
                    self.encode_atomicity(first, write);
                }
            }
        }
    }

    /// Returns the writes that may be the position of an access in the modification order: its own or its sources.
    fn positions(&self, event: usize) -> Vec<(usize, Bit)> {
        if self.program.skeleton.events[event].tags.has(Tags::W) {
            return vec![(event, self.program.executes[event])];
        }
        self.sources.get(&event).cloned().unwrap_or_default()
    }

    /// Encodes that two accesses of one thread to one storage agree with its modification order.
    fn encode_program_order(&mut self, first: usize, second: usize) {
        let is_later_write = self.program.skeleton.events[second].tags.has(Tags::W);
        for (before, is_before) in self.positions(first) {
            for (after, is_after) in self.positions(second) {
                let agrees = match before == after {
                    // A read cannot read from a later write of its thread.
                    true => Bit::from(!is_later_write),
                    false => self.co_bit(before, after),
                };
                self.solver.require_any(&[!is_before, !is_after, agrees]);
            }
        }
    }

    /// Encodes that no write comes between the source of a read-modify-write and its own write.
    fn encode_atomicity(&mut self, read: usize, write: usize) {
        let program = self.program.clone();
        for (source, is_source) in self.positions(read) {
            for other in self.writes_of(program.skeleton.events[write].storage) {
                if other != write && other != source {
                    let (after_source, after_write) = (self.co_bit(source, other), self.co_bit(write, other));
                    let clause = [!is_source, !program.executes[other], !after_source, after_write];
                    self.solver.require_any(&clause);
                }
            }
        }
    }

    /// Encodes that later additions to a counter read at least what earlier ones wrote, by induction over those between
    /// them, and that some addition reads each intermediate value if all amounts are equal. An addition that does not
    /// execute constrains nothing.
    pub(super) fn encode_counters(&mut self) {
        let program = self.program.clone();
        let constant = |number: u64| BitVector::single_case(VALUE_BITS, number);
        for chain in &program.rmw_chains {
            let Some((added, last)) = chain.increments(&program.skeleton) else { continue };
            let first = last - added.iter().sum::<u64>();
            if last - first > MAX_COUNTED {
                continue;
            }
            // For each addition and each number from `first` to `last`: the bit that it reads at least this number.
            let mut at_least: Vec<Vec<Bit>> = Vec::new();
            for read in chain.rmw_events.iter().filter_map(|(read, _)| program.read[*read].as_ref()) {
                let circuit = &mut self.solver.circuit;
                at_least.push((first..=last).map(|n| circuit.less_or_equal(&constant(n), read)).collect());
            }
            for pair in at_least.iter().flat_map(|bits| bits.windows(2)) {
                self.solver.require_any(&[pair[0], !pair[1]]);
            }
            let executes = |addition: usize| program.executes[chain.rmw_events[addition].0];
            // No addition leads beyond the last value.
            for (one, (bits, amount)) in at_least.iter().zip(&added).enumerate() {
                let exceeds = bits[(last - first - amount) as usize + 1];
                self.solver.require_any(&[!executes(one), !exceeds]);
            }
            for (one, (_, write)) in chain.rmw_events.iter().enumerate() {
                for (other, (later_read, later)) in chain.rmw_events.iter().enumerate() {
                    if one == other {
                        continue;
                    }
                    let (is_before, source) =
                        (self.co_bit(*write, *later), self.reads_from_bit(*write, *later_read));
                    for (less, more) in at_least[one].iter().zip(&at_least[other][added[one] as usize..]) {
                        let follows = [!executes(one), !executes(other), !is_before, !*less, *more];
                        self.solver.require_any(&follows);
                        self.solver.require_any(&[!source, *less, !*more]);
                    }
                }
            }
            let [step, rest @ ..] = added.as_slice() else { continue };
            if rest.iter().any(|other| other != step) {
                continue;
            }
            let step = *step as usize;
            for number in (0..(last - first) as usize).step_by(step) {
                let reads_number = |(one, bits): (usize, &Vec<Bit>)| {
                    self.solver.circuit.all(&[executes(one), bits[number], !bits[number + step]])
                };
                let readers: Vec<Bit> = at_least.iter().enumerate().map(reads_number).collect();
                let is_read = self.solver.circuit.any(&readers);
                let is_complete = (0..at_least.len()).all(|one| executes(one) == Bit::TRUE);
                if is_complete {
                    self.solver.require(is_read);
                }
                for (one, bits) in at_least.iter().enumerate().filter(|_| !is_complete) {
                    self.solver.require_any(&[!executes(one), !bits[number], is_read]);
                }
            }
        }
    }
}
