//! The guarded events of a program, with their values.

use std::collections::{BTreeMap, BTreeSet};

use litmus::{LocationId, Observable, ThreadId};
use solver::{Bit, BitVector, Circuit, MAX_CASES};

use super::orders::cyclic_components;
use crate::PredictError;
use crate::bounded_test::BoundedTest;
use crate::cat::{CompiledModel, PlanNode};
use crate::matrix::{Matrix, with_smallest_matrix};
use crate::path::ThreadPath;
use crate::path::unroll::{
    Dependencies, GuardedThread, PossibleValues, Requirements, UnrollOptions, VALUE_BITS, ValueSet,
    new_read_value, to_constant, unroll_thread,
};
use crate::rmw_chain::{CounterLocations, RmwChain};
use crate::skeleton::{Event, FinalValueSource, Owner, Skeleton, Tags, build_skeletons};
use crate::symbolic::SymbolicValue;

/// All events of all paths.
pub(crate) struct GuardedProgram {
    pub(super) skeleton: Skeleton,
    /// The bit of each event that holds if it executes.
    pub(super) executes: Vec<Bit>,
    /// The value that each event reads.
    pub(super) read: Vec<Option<BitVector>>,
    /// The value that each event writes.
    pub(super) written: Vec<Option<BitVector>>,
    /// For each event, the reads that its written value is computed from, each with the bit under which it is.
    pub(super) sources: Vec<Vec<(usize, Bit)>>,
    /// The final value of each observable; `None` for that of the last write to a storage.
    pub(super) finals: Vec<Option<BitVector>>,
    /// Holds if every thread runs to its end.
    pub(crate) ended: Bit,
    /// Holds if the loop bound ends some thread.
    pub(crate) cut: Bit,
    pub(super) requirements: Requirements,
    /// The bits of the pairs of base relations and sets that depend on the path of a thread.
    path_bits: BTreeMap<(&'static str, usize, usize), Bit>,
    /// The storages that only read-modify-writes change.
    pub(super) rmw_chains: Vec<RmwChain>,
    /// The storages whose writes are all mutually ordered atomics through one name.
    pub(super) ordered_storages: Vec<LocationId>,
}

/// Base relations and sets that depend on the path of a thread by more than its events.
const PATH_BASES: [&str; 4] = ["addr", "ctrl", "data", "DECISIVE"];

/// Returns true if an axiom or flag depends on dependencies.
fn uses_dependencies(plan: &CompiledModel) -> bool {
    let needed = plan.mark_needed(plan.axioms.iter().map(|axiom| axiom.node));
    plan.nodes.iter().zip(needed).any(|(node, is_needed)| match node {
        PlanNode::BaseSet(base) | PlanNode::BaseRelation(base) => {
            is_needed && PATH_BASES.contains(&plan.name_text(base.name))
        }
        _ => false,
    })
}

/// The events of a step.
#[derive(Clone, Default)]
struct StepEvents {
    first: Option<usize>,
    reads: Vec<usize>,
    writes: Vec<usize>,
}

impl GuardedProgram {
    /// Executes a program on all of its paths; `None` if it is not supported here.
    ///
    /// `possible` has the values that reads of each storage may return.
    pub(super) fn new(
        bounded: BoundedTest<'_>,
        possible: &PossibleValues,
        circuit: &mut Circuit,
    ) -> Result<Option<GuardedProgram>, PredictError> {
        let BoundedTest { test, observables, semantic, unroll, .. } = bounded;
        if test.khronos.is_some() || test.has_undefined_locations() {
            return Ok(None);
        }
        let mut requirements = Vec::new();
        let options = UnrollOptions {
            unroll,
            knows_text: semantic.is_shipped_vulkan,
            tracks_dependencies: uses_dependencies(&bounded.compiled.plan),
        };
        let threads = (0..test.threads.len()).map(|thread| {
            unroll_thread(test, ThreadId(thread as u16), options, possible, circuit, &mut requirements)
        });
        let Some(threads) = threads.collect::<Option<Vec<GuardedThread>>>() else { return Ok(None) };
        // A thread that waits for the end of another one executes nothing if that one does not end.
        if !test.system_sync.is_empty() && threads.iter().any(|thread| thread.ended != Bit::TRUE) {
            return Ok(None);
        }
        let paths: Vec<&ThreadPath> = threads.iter().map(|thread| &thread.path).collect();
        let mut skeletons = match build_skeletons(test, observables, &paths, semantic) {
            Err(PredictError::TooManyEvents { .. }) => return Ok(None),
            skeletons => skeletons?,
        };
        let Some(skeleton) = skeletons.pop().filter(|skeleton| skeletons.is_empty() && skeleton.terminated)
        else {
            return Ok(None);
        };
        let all_ended: Vec<Bit> = threads.iter().map(|thread| thread.ended).collect();
        let some_cut: Vec<Bit> = threads.iter().map(|thread| thread.cut).collect();
        let count = skeleton.len();
        let mut program = GuardedProgram {
            skeleton,
            executes: vec![Bit::TRUE; count],
            read: vec![None; count],
            written: vec![None; count],
            sources: vec![Vec::new(); count],
            finals: Vec::new(),
            ended: circuit.all(&all_ended),
            cut: circuit.any(&some_cut),
            requirements,
            path_bits: BTreeMap::new(),
            rmw_chains: Vec::new(),
            ordered_storages: Vec::new(),
        };
        let supported = program.add_values(&threads, possible, circuit);
        if semantic.is_shipped_vulkan {
            let paths: Vec<Vec<ThreadPath>> =
                threads.iter().map(|thread| vec![thread.path.clone()]).collect();
            let counters = CounterLocations::new(test, &paths);
            program.rmw_chains = counters.chains_in(&program.skeleton);
            let depends_on_own_read = |(read, write): &(usize, usize)| {
                program.sources[*write].iter().all(|(source, _)| source == read)
            };
            program.rmw_chains.retain(|chain| chain.rmw_events.iter().all(depends_on_own_read));
            program.ordered_storages = counters.ordered;
            let split = program.split_storages(test.locations.len());
            program.rmw_chains.retain(|chain| !split.contains(&chain.storage));
            program.ordered_storages.retain(|storage| !split.contains(storage));
        }
        let finals = observables.iter().enumerate().map(|(index, observable)| match observable {
            Observable::Register(thread, register) => {
                let thread = threads.get(usize::from(thread.0))?;
                Some(Some(thread.registers.get(usize::from(register.0))?.clone()))
            }
            Observable::Location(..) => match program.skeleton.final_values.get(index)? {
                FinalValueSource::Expression(value) => program.final_value(value, circuit).map(Some),
                FinalValueSource::LastWrite(_) => Some(None),
            },
        });
        let Some(finals) = finals.collect::<Option<Vec<_>>>() else { return Ok(None) };
        program.finals = finals;
        Ok(supported.map(|()| program))
    }

    /// Returns true if coherence orders two writes of one thread by program order, if both execute.
    pub(super) fn are_ordered_writes(&self, first: usize, second: usize) -> bool {
        let [one, other] = [first, second].map(|event| &self.skeleton.events[event]);
        let is_write = |event: &Event| event.tags.has(Tags::W) && matches!(event.owner, Owner::Thread(_));
        // Events of one thread are contiguous and in program order.
        first < second
            && one.owner == other.owner
            && one.storage == other.storage
            && is_write(one)
            && is_write(other)
            && one.storage.is_some_and(|storage| self.ordered_storages.contains(&storage))
    }

    /// Returns the final value that is read; `None` for the result of an operation.
    fn final_value(&self, value: &SymbolicValue<u16>, circuit: &mut Circuit) -> Option<BitVector> {
        match value {
            SymbolicValue::Known(value) => Some(to_constant(*value)),
            SymbolicValue::Read(event) => self.read.get(usize::from(*event))?.clone(),
            SymbolicValue::Join(parts) => {
                let mut whole = BitVector::constant(VALUE_BITS, 0);
                for (bytes_before, part) in parts {
                    let low = BitVector::constant(8 * *bytes_before as usize, 0);
                    let part = low.concatenate(&self.final_value(part, circuit)?).resize(VALUE_BITS);
                    whole = circuit.bit_or(&whole, &part);
                }
                Some(whole)
            }
            SymbolicValue::Operation(..) | SymbolicValue::Part(..) => None,
        }
    }

    /// Adds the guards, values and dependencies of the events.
    fn add_values(
        &mut self,
        threads: &[GuardedThread],
        possible: &PossibleValues,
        circuit: &mut Circuit,
    ) -> Option<()> {
        let mut step_events: Vec<Vec<StepEvents>> =
            threads.iter().map(|thread| vec![StepEvents::default(); thread.steps.len()]).collect();
        for (number, event) in self.skeleton.events.iter().enumerate() {
            let (reads, does_write) = (event.tags.has(Tags::R), event.tags.has(Tags::W));
            let in_cell = |value: &BitVector| match event.piece.filter(|piece| !piece.is_whole_access) {
                Some(piece) => {
                    value.slice(8 * piece.access_offset as usize, 8 * piece.bytes as usize).resize(VALUE_BITS)
                }
                None => value.clone(),
            };
            match event.owner {
                Owner::Initial => {
                    self.written[number] = Some(to_constant(event.stored_value.as_ref()?.known_value()?));
                }
                Owner::Thread(thread) => {
                    let thread = usize::from(thread.0);
                    let index = usize::from(event.step?);
                    let step = threads.get(thread)?.steps.get(index)?;
                    self.executes[number] = step.guard;
                    let events = &mut step_events[thread][index];
                    events.first.get_or_insert(number);
                    if reads {
                        self.read[number] = Some(in_cell(step.read.as_ref()?));
                        events.reads.push(number);
                    }
                    if does_write {
                        self.written[number] = Some(in_cell(step.written.as_ref()?));
                        events.writes.push(number);
                    }
                }
                Owner::CooperativeInvocation(..) => return None,
                Owner::Final => {
                    self.executes[number] = self.ended;
                    if reads {
                        let values = event.storage.and_then(|storage| possible.of_storage(storage));
                        let value = new_read_value(circuit, &mut self.requirements, values, u64::BITS);
                        self.read[number] = Some(value);
                    }
                }
            }
        }
        for (thread, all) in threads.iter().zip(&step_events) {
            // The events that reads are computed from, with the bits of the dependencies.
            let to_events = |reads: &Dependencies| -> Vec<(usize, Bit)> {
                let with_bit = |(step, bit): (&usize, &Bit)| {
                    let bit = *bit;
                    all[*step].reads.iter().map(move |read| (*read, bit)).collect::<Vec<_>>()
                };
                reads.iter().flat_map(with_bit).collect()
            };
            for (read, bit) in to_events(&thread.decisive) {
                self.path_bits.insert(("DECISIVE", read, read), bit);
            }
            for (step, events) in thread.steps.iter().zip(all) {
                for write in &events.writes {
                    self.sources[*write] = to_events(&step.sources);
                    for (read, bit) in to_events(&step.sources).into_iter().filter(|(read, _)| read != write)
                    {
                        self.path_bits.insert(("data", read, *write), bit);
                    }
                }
                for (name, reads) in [("addr", &step.address), ("ctrl", &step.control)] {
                    for (read, bit) in to_events(reads) {
                        self.path_bits.insert((name, read, events.first?), bit);
                    }
                }
            }
        }
        self.path_bits.retain(|_, bit| *bit != Bit::FALSE);
        self.add_path_pairs();
        Some(())
    }

    /// Adds the possible pairs of the relations and sets that depend on paths to the event structure.
    fn add_path_pairs(&mut self) {
        let skeleton = &mut self.skeleton;
        skeleton.data_dependencies.clear();
        for &(name, from, to) in self.path_bits.keys() {
            let pair = (from as u16, to as u16);
            match name {
                "addr" => skeleton.address_dependencies.push(pair),
                "ctrl" => skeleton.control_dependencies.push(pair),
                "data" => skeleton.data_dependencies.push(pair),
                _ => skeleton.events[from].tags.add(Tags::DECISIVE),
            }
        }
    }

    /// Returns the bit of a possible pair of a base relation or set.
    pub(super) fn path_bit(&self, name: &str, from: usize, to: usize) -> Bit {
        let bits: &BTreeMap<(&str, usize, usize), Bit> = &self.path_bits;
        match PATH_BASES.contains(&name) {
            true => bits.get(&(name, from, to)).copied().unwrap_or(Bit::FALSE),
            false => Bit::TRUE,
        }
    }

    /// Returns the storages of several cells, given the number of locations: the other cells have higher numbers.
    fn split_storages(&self, locations: usize) -> BTreeSet<LocationId> {
        let cells = self
            .skeleton
            .events
            .iter()
            .filter(|event| event.storage.is_some_and(|cell| usize::from(cell.0) >= locations));
        cells.filter_map(|event| Some(event.extent?.storage)).collect()
    }

    /// Adds the values that the writes of each storage may store; returns true if some are new.
    ///
    /// The values of a counter are known. A value that depends on itself may be any, and so may that of a cell. `widens`:
    /// sets that still grow have all values from now on.
    pub(super) fn grow_values(&self, possible: &mut PossibleValues, widens: bool) -> bool {
        let mut grows = false;
        let counts: BTreeMap<LocationId, ValueSet> =
            self.rmw_chains.iter().filter_map(|chain| Some((chain.storage, self.counts(chain)?))).collect();
        for (storage, counts) in &counts {
            if let Some(known) = possible.sets.get_mut(usize::from(storage.0)) {
                grows |= known != counts;
                known.clone_from(counts);
            }
        }
        for (event, written) in self.skeleton.events.iter().zip(&self.written) {
            if let (Some(storage), Some(written)) = (event.storage, written)
                && let Some(known) = possible.sets.get_mut(usize::from(storage.0))
                && !counts.contains_key(&storage)
            {
                grows |= known.include(written, widens);
            }
        }
        let count = self.skeleton.len();
        let cycles = with_smallest_matrix!(count, M => {
            cyclic_components(&M::from_pairs(count, self.read_dependencies()), count)
        });
        let circular = cycles.into_iter().flatten().filter_map(|read| self.skeleton.events[read].storage);
        for storage in circular.chain(self.split_storages(possible.sets.len())) {
            if let Some(known) = possible.sets.get_mut(usize::from(storage.0)) {
                grows |= *known != ValueSet::ANY;
                *known = ValueSet::ANY;
            }
        }
        grows
    }

    /// Returns the values of a counter: sums of some of its increments.
    fn counts(&self, chain: &RmwChain) -> Option<ValueSet> {
        let (added, last) = chain.increments(&self.skeleton)?;
        let mut sums = BTreeSet::from([last]);
        for amount in added {
            if sums.len() > MAX_CASES {
                return Some(ValueSet::Masked(u64::MAX.checked_shr(last.leading_zeros()).unwrap_or(0)));
            }
            sums.extend(sums.clone().into_iter().map(|sum| sum - amount));
        }
        Some(ValueSet::Few(sums))
    }

    /// Returns the pairs of events whose first executes only if the second does.
    pub(super) fn implied_events<M: Matrix>(&self, circuit: &Circuit) -> M {
        let n = self.skeleton.len();
        let mut implied = M::empty(n);
        for from in 0..n {
            // The conjuncts of a guard, of these again.
            let mut known = vec![self.executes[from], Bit::TRUE];
            let mut next = 0;
            while let Some(bit) = known.get(next).copied() {
                next += 1;
                for conjunct in circuit.conjuncts(bit) {
                    if !known.contains(&conjunct) {
                        known.push(conjunct);
                    }
                }
            }
            (0..n).filter(|to| known.contains(&self.executes[*to])).for_each(|to| implied.insert(from, to));
        }
        implied
    }

    /// Returns for each read the reads whose values may flow into its result through one write, as pairs.
    ///
    /// The values of a chain of read-modify-writes depend on no other storage, and have an order.
    pub(super) fn read_dependencies(&self) -> Vec<(usize, usize)> {
        let mut depends = Vec::new();
        for read in (0..self.skeleton.len()).filter(|event| self.read[*event].is_some()) {
            let storage = self.skeleton.events[read].storage;
            if self.rmw_chains.iter().any(|chain| Some(chain.storage) == storage) {
                continue;
            }
            for write in self.skeleton.candidate_writes(read) {
                depends.extend(self.sources[write].iter().map(|(source, _)| (read, *source)));
            }
        }
        depends
    }
}
