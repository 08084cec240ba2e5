//! Enumerates candidate executions: paths, sources of reads and modification orders. Checks consistency and
//! collects outcomes.
//!
//! Long because one search holds the state that all candidate executions of a choice of paths share.

use std::collections::{BTreeMap, HashMap};
use std::rc::Rc;

use litmus::{
    ControlBarrier, InstructionKind, LocationId, Observable, Outcome, Scope, SplitHalf, Test, ThreadId, Value,
};

use crate::answer::{Races, SearchBounds, WitnessAnswer};
use crate::happens::{Sources, WritePositions};
use crate::instances::Instances;
use crate::operation::{OperationGraph, Relation, Set, holds, members};
use crate::path::{EnumeratedPaths, NameTable, enumerate_paths};
use crate::profile::TextProfile;
use crate::refusal::UnsupportedTest;
use crate::sections::fragment_orders;
use crate::tangle::{self, DynamicInstances};
use crate::thread_path::{InstructionEffect, LocationCell, ThreadPath};
use crate::values::{evaluate_node, is_condition_met, self_dependent_candidates, undefined_value_candidates};

/// State of a test before the choice of paths.
struct PathSearch<'a> {
    test: &'a Test,
    observables: Vec<Observable>,
    guesses: Vec<Value>,
    /// Candidate values of an undefined initial value.
    undefined_values: Vec<Value>,
    executions_left: u64,
    answer: WitnessAnswer,
}

pub fn judge(
    test: &Test,
    profile: TextProfile,
    options: &SearchBounds,
) -> Result<WitnessAnswer, UnsupportedTest> {
    let names = NameTable::new(test, profile)?;
    let instances = Instances::new(test, profile)?;
    let mut search = PathSearch {
        test,
        observables: test.observables(),
        guesses: self_dependent_candidates(test),
        undefined_values: if test.has_undefined_locations() {
            undefined_value_candidates(test)
        } else {
            Vec::new()
        },
        executions_left: options.max_executions,
        answer: WitnessAnswer {
            outcomes: BTreeMap::new(),
            races: Races::Never,
            reads_uninitialised: false,
            is_truncated: false,
            has_endless_wait: false,
        },
    };
    let thread_paths: Vec<EnumeratedPaths> = (0..test.threads.len())
        .map(|thread| enumerate_paths(test, &names, ThreadId(thread as u16), options.loop_bound))
        .collect();
    search.answer.is_truncated = thread_paths.iter().any(|way| way.is_truncated);
    let mut chosen = vec![0; thread_paths.len()];
    if thread_paths.iter().any(|way| way.paths.is_empty()) {
        return Err(UnsupportedTest::Endless);
    }
    loop {
        let paths: Vec<&ThreadPath> =
            thread_paths.iter().zip(&chosen).map(|(way, index)| &way.paths[*index]).collect();
        // A combination of paths in which some barrier waits for ever has no complete execution.
        if all_barriers_complete(test, &instances, &paths) && all_waits_complete(test, &instances, &paths) {
            for tangles in tangle::enumerate_instances(test, profile, &paths) {
                for fragments in fragment_orders(test) {
                    let frame = OperationGraph::new(test, profile, &instances, &paths, &tangles, &fragments)?;
                    CandidateExecutions::new(&frame, &instances, &paths, &tangles, &mut search).run()?;
                }
            }
        } else {
            search.answer.has_endless_wait = true;
        }
        // The next choice: an odometer over the paths of all threads.
        let Some(place) =
            (0..thread_paths.len()).find(|way| chosen[*way] + 1 < thread_paths[*way].paths.len())
        else {
            return Ok(search.answer);
        };
        chosen[place] += 1;
        chosen[..place].fill(0);
    }
}

/// SPIR-V, OpControlBarrier: a barrier waits for all participating invocations of its execution scope.
///
/// An execution ends only if each participant has executed the barrier equally often. If a branch excludes
/// some lanes of a subgroup, the lanes that reach the barrier participate, and each of them reaches it.
fn all_barriers_complete(test: &Test, instances: &Instances, paths: &[&ThreadPath]) -> bool {
    let count = |thread: usize, barrier_to_count: &ControlBarrier| {
        let is_same_barrier = |instruction: &InstructionKind| match instruction {
            InstructionKind::ControlBarrier(barrier) => {
                barrier.id == barrier_to_count.id
                    && barrier.resource == barrier_to_count.resource
                    && barrier.execution_scope == barrier_to_count.execution_scope
            }
            _ => false,
        };
        let code = &test.threads[thread].instructions;
        let executed = paths[thread]
            .steps
            .iter()
            .filter(|step| is_same_barrier(&code[usize::from(step.instruction)].kind));
        code.iter().any(|instruction| is_same_barrier(&instruction.kind)).then(|| executed.count())
    };
    (0..paths.len()).all(|thread| {
        test.threads[thread].instructions.iter().enumerate().all(|(at, instruction)| {
            let InstructionKind::ControlBarrier(barrier) = &instruction.kind else { return true };
            if tangle::is_divergent_barrier(test, thread, at) {
                return true;
            }
            let own_count = count(thread, barrier);
            (0..paths.len())
                .filter(|other| instances.includes_thread(barrier.execution_scope, thread, *other))
                .all(|other| count(other, barrier).is_none_or(|met| Some(met) == own_count))
        })
    })
}

/// Returns true if every wait ends: each awaited invocation has arrived as often as the waiting one.
///
/// A wait is for the invocations of the workgroup that have an arrival. Within a subgroup, it is for
/// those that execute the same arrival, since others have left the tangle.
fn all_waits_complete(test: &Test, instances: &Instances, paths: &[&ThreadPath]) -> bool {
    let count = |thread: usize, counted_half: SplitHalf, scope: Scope| {
        let halves = paths[thread].steps.iter().filter(|step| {
            matches!(&step.effect, InstructionEffect::Split { half, execution_scope, .. }
                if (*half, *execution_scope) == (counted_half, scope))
        });
        halves.count()
    };
    let arrivals = |thread: usize, scope: Scope| -> Vec<&str> {
        let code = test.threads[thread].instructions.iter();
        let ids = code.filter_map(|instruction| match &instruction.kind {
            InstructionKind::SplitBarrier(barrier)
                if barrier.execution_scope == scope && barrier.half == SplitHalf::Arrive =>
            {
                Some(if scope == Scope::Subgroup { barrier.id.as_str() } else { "" })
            }
            _ => None,
        });
        ids.collect()
    };
    [Scope::Workgroup, Scope::Subgroup].into_iter().all(|scope| {
        (0..paths.len()).all(|thread| {
            let wait_count = count(thread, SplitHalf::Wait, scope);
            let own_arrivals = arrivals(thread, scope);
            (0..paths.len())
                .filter(|other| instances.includes_thread(scope, thread, *other))
                .filter(|other| arrivals(*other, scope).iter().any(|name| own_arrivals.contains(name)))
                .all(|other| count(other, SplitHalf::Arrive, scope) >= wait_count)
        })
    })
}

/// The candidate executions of a choice of paths.
struct CandidateExecutions<'a, 'b> {
    frame: &'a OperationGraph<'a>,
    instances: &'a Instances,
    paths: &'a [&'a ThreadPath],
    tangles: &'a DynamicInstances,
    search: &'a mut PathSearch<'b>,
    /// Of each read in order: its thread and its number there.
    reads: Vec<(usize, usize)>,
    /// Of each cell of each read: the operation, which of its cells, and the sources that it may have there.
    read_parts: Vec<(usize, usize, Vec<Option<usize>>)>,
    /// The thread and node of the value of each write, by operation.
    write_values: Vec<Option<(usize, usize)>>,
    /// The modification orders of all locations together.
    modification_orders: Vec<WritePositions>,
    /// Location order by synchronization relation.
    location_orders: HashMap<Relation, Rc<Vec<Relation>>>,
}

/// Values of the reads of each thread, followed by the results of its subgroup operations.
type ReadValues = Vec<Vec<Option<Value>>>;

impl<'a, 'b> CandidateExecutions<'a, 'b> {
    fn new(
        frame: &'a OperationGraph<'a>,
        instances: &'a Instances,
        paths: &'a [&'a ThreadPath],
        tangles: &'a DynamicInstances,
        search: &'a mut PathSearch<'b>,
    ) -> Self {
        let mut write_values = vec![None; frame.operations.len()];
        for (operation, thread, node) in &frame.writes {
            write_values[*operation] = Some((*thread, *node));
        }
        let mut counts = vec![0; paths.len()];
        let reads = frame
            .reads
            .iter()
            .map(|read| {
                let thread = frame.operations[*read].thread;
                let number = counts[thread];
                counts[thread] += 1;
                (thread, number)
            })
            .collect();
        // A read of several cells chooses a source for each cell independently.
        let parts = |read: &usize| frame.accessed_cells(*read).map(|cell| (*read, cell)).collect::<Vec<_>>();
        let read_parts = frame.reads.iter().flat_map(parts).map(|(read, cell)| {
            (read, cell - frame.accessed_cells(read).start, possible_sources(frame, read, cell))
        });
        let open = read_parts.collect();
        let orders = modification_orders(frame);
        CandidateExecutions {
            frame,
            instances,
            paths,
            tangles,
            search,
            reads,
            read_parts: open,
            write_values,
            modification_orders: orders,
            location_orders: HashMap::new(),
        }
    }

    fn run(&mut self) -> Result<(), UnsupportedTest> {
        let frame = self.frame;
        let no_sources = |read: usize| vec![None; frame.accessed_cells(read).len()];
        let mut sources: Sources = (0..frame.operations.len()).map(no_sources).collect();
        self.choose_sources(0, &mut sources)
    }

    /// VK-AC-01: every source for every cell of every read (VK-VT-03).
    fn choose_sources(&mut self, next: usize, sources: &mut Sources) -> Result<(), UnsupportedTest> {
        let Some((read, part, candidates)) = self.read_parts.get(next) else {
            return self.evaluate_values(sources);
        };
        let (read, part) = (*read, *part);
        for source in candidates.clone() {
            sources[read][part] = source;
            self.choose_sources(next + 1, sources)?;
        }
        Ok(())
    }

    /// Values by evaluation; for self-dependent values, by guesses that are consistent (VK-AC-06).
    fn evaluate_values(&mut self, sources: &Sources) -> Result<(), UnsupportedTest> {
        let no_values = |path: &&ThreadPath| vec![None; path.reads.len() + path.exchanges.len()];
        let values: ReadValues = self.paths.iter().map(no_values).collect();
        let uninitialised_reads: Vec<usize> =
            (0..self.reads.len()).filter(|read| self.is_uninitialised(sources, *read)).collect();
        self.assume_initial_values(sources, values, &uninitialised_reads)
    }

    /// Returns true if a read reads an undefined initial value.
    fn is_uninitialised(&self, sources: &Sources, read: usize) -> bool {
        let (thread, number) = self.reads[read];
        let location = LocationId(self.paths[thread].reads[number].0);
        sources[self.frame.reads[read]].contains(&None) && self.search.test.has_undefined_init(location)
    }

    /// VK-ALLOC-04: each of the `uninitialised_reads` returns an arbitrary value.
    fn assume_initial_values(
        &mut self,
        sources: &Sources,
        values: ReadValues,
        uninitialised_reads: &[usize],
    ) -> Result<(), UnsupportedTest> {
        let Some((first, rest)) = uninitialised_reads.split_first() else {
            return self.derive_values(sources, values, false);
        };
        let (thread, number) = self.reads[*first];
        for assumed in self.undefined_initial_values(LocationId(self.paths[thread].reads[number].0)) {
            let mut values = values.clone();
            values[thread][number] = Some(assumed);
            self.assume_initial_values(sources, values, rest)?;
        }
        Ok(())
    }

    /// Returns the candidate values of a location's undefined initial value.
    fn undefined_initial_values(&self, location: LocationId) -> Vec<Value> {
        let ty = self.search.test.location(location).scalar_type();
        let mut found: Vec<Value> =
            self.search.undefined_values.iter().map(|value| value.truncate_to(ty)).collect();
        found.sort_unstable();
        found.dedup();
        found
    }

    fn derive_values(
        &mut self,
        sources: &Sources,
        mut values: ReadValues,
        thin_air: bool,
    ) -> Result<(), UnsupportedTest> {
        loop {
            let mut progress = false;
            for (index, (thread, number)) in self.reads.iter().enumerate() {
                if values[*thread][*number].is_some() {
                    continue;
                }
                if let Some(found) = self.source_value(sources, &values, index) {
                    values[*thread][*number] = Some(found);
                    progress = true;
                }
            }
            for (thread, path) in self.paths.iter().enumerate() {
                for number in 0..path.exchanges.len() {
                    let place = path.reads.len() + number;
                    if values[thread][place].is_none() {
                        let (test, instances) = (self.search.test, self.instances);
                        let result = tangle::exchange_result(
                            test,
                            instances,
                            self.paths,
                            self.tangles,
                            &values,
                            thread,
                            number,
                        );
                        values[thread][place] = result;
                        progress |= result.is_some();
                    }
                }
            }
            if !progress {
                break;
            }
        }
        // Prune early: a path whose branch conditions fail is infeasible.
        for (path, values) in self.paths.iter().zip(&values) {
            if path.conditions.iter().any(|demand| is_condition_met(path, demand, values) == Some(false)) {
                return Ok(());
            }
        }
        let unknown = self.reads.iter().position(|(thread, number)| values[*thread][*number].is_none());
        if let Some(unknown) = unknown {
            let (thread, number) = self.reads[unknown];
            let ty = self.paths[thread].reads[number].1;
            let mut tried = Vec::new();
            for guess in self.search.guesses.clone() {
                let guess = guess.truncate_to(ty);
                // Truncation to a narrow type can make guesses equal.
                if !tried.contains(&guess) {
                    tried.push(guess);
                    let mut values = values.clone();
                    values[thread][number] = Some(guess);
                    self.derive_values(sources, values, true)?;
                }
            }
            return Ok(());
        }
        let is_justified = |index: usize| {
            let (thread, number) = self.reads[index];
            self.source_value(sources, &values, index) == values[thread][number]
        };
        // A guess must be consistent: each read returns the value that its sources write.
        if thin_air && !(0..self.reads.len()).all(is_justified) {
            return Ok(());
        }
        self.try_modification_orders(sources, &values, thin_air)
    }

    /// The value of the sources of a read, cell by cell.
    fn source_value(&self, sources: &Sources, values: &ReadValues, read: usize) -> Option<Value> {
        // The assumed value of the read.
        if self.is_uninitialised(sources, read) {
            let (thread, number) = self.reads[read];
            return values[thread][number];
        }
        let operation = self.frame.reads[read];
        let cells = self.frame.accessed_cells(operation);
        let start = self.frame.cells[cells.start].bytes.0;
        let mut all = Value(0);
        for (cell, source) in cells.zip(&sources[operation]) {
            let part = match source {
                Some(write) => self.written_part(*write, cell, values)?,
                None => self.initial_part(cell),
            };
            all.0 |= self.frame.cells[cell].place_part(part, start).0;
        }
        Some(all)
    }

    /// Returns the part of a write's value in a cell.
    fn written_part(&self, write: usize, cell: usize, values: &ReadValues) -> Option<Value> {
        let (thread, node) = self.write_values[write]?;
        let start = self.frame.cells[self.frame.accessed_cells(write).start].bytes.0;
        Some(
            self.frame.cells[cell]
                .extract_part(evaluate_node(self.paths[thread], node, &values[thread])?, start),
        )
    }

    /// VK-ALLOC-01: returns the initial value of a cell.
    fn initial_part(&self, cell: usize) -> Value {
        let cell = &self.frame.cells[cell];
        cell.extract_part(self.search.test.initial_value(cell.storage, 0), 0)
    }

    fn try_modification_orders(
        &mut self,
        sources: &Sources,
        values: &ReadValues,
        thin_air: bool,
    ) -> Result<(), UnsupportedTest> {
        let frame = self.frame;
        for index in 0..self.modification_orders.len() {
            if self.search.executions_left == 0 {
                return Err(UnsupportedTest::Executions);
            }
            self.search.executions_left -= 1;
            let places = &self.modification_orders[index];
            let synchronizes = frame.synchronizes_with(sources, places);
            // Many combinations of sources synchronize alike, and location order depends on nothing
            // else.
            let location_order = match self.location_orders.get(&synchronizes) {
                Some(known) => Rc::clone(known),
                None => {
                    let found = Rc::new(frame.location_order(&frame.happens_before(&synchronizes)));
                    self.location_orders.insert(synchronizes, Rc::clone(&found));
                    found
                }
            };
            let execution = EnumeratedExecution { frame, sources, places, location_order: &location_order };
            if !execution.is_consistent() {
                continue;
            }
            let races = execution.has_race();
            // A racy execution is undefined as a whole, so its plain reads are not restricted to
            // visible writes.
            if !races && !execution.reads_visible_writes() {
                continue;
            }
            let test = self.search.test;
            let finals = self.final_values(&execution, values, races);
            let outcomes = self.list_outcomes(values, &finals);
            let observables = &self.search.observables;
            // A filter leaves executions out.
            let passes_filter = |outcome: &Outcome| {
                test.filter.as_ref().is_none_or(|filter| outcome.meets_condition(test, observables, filter))
            };
            if outcomes.iter().any(passes_filter) {
                if races {
                    let found = if thin_air { Races::OutOfThinAir } else { Races::Sometimes };
                    self.search.answer.races = self.search.answer.races.max(found);
                }
                let unwritten = finals.keys().any(|cell| {
                    test.has_undefined_init(frame.cells[*cell].storage)
                        && execution.last_writes(*cell, races).is_none()
                });
                let uninitialised = (0..self.reads.len()).any(|read| self.is_uninitialised(sources, read));
                self.search.answer.reads_uninitialised |= uninitialised || unwritten;
            }
            for outcome in outcomes {
                let known = self.search.answer.outcomes.entry(outcome);
                // An outcome is marked as out of thin air only if every execution with it is.
                known.and_modify(|only_thin_air| *only_thin_air &= thin_air).or_insert(thin_air);
            }
        }
        Ok(())
    }

    fn observed_cells(&self, location: LocationId) -> impl Iterator<Item = usize> {
        let test = self.search.test;
        let (storage, bytes) = (test.storage_of(location), test.location(location).bytes());
        let is_inside = move |cell: &LocationCell| cell.storage == storage && cell.bytes.1 <= bytes;
        let cells = self.frame.cells.iter().enumerate();
        cells.filter(move |(_, cell)| is_inside(cell)).map(|(index, _)| index)
    }

    /// The values that each observed cell may have at the end.
    fn final_values(
        &self,
        execution: &EnumeratedExecution<'_>,
        values: &ReadValues,
        races: bool,
    ) -> BTreeMap<usize, Vec<Value>> {
        let test = self.search.test;
        let mut found = BTreeMap::new();
        for observable in &self.search.observables {
            let Observable::Location(location, _) = observable else { continue };
            for cell in self.observed_cells(*location) {
                let storage = self.frame.cells[cell].storage;
                found.entry(cell).or_insert_with(|| match execution.last_writes(cell, races) {
                    Some(writes) => writes
                        .into_iter()
                        .filter_map(|write| self.written_part(write, cell, values))
                        .collect(),
                    None if test.has_undefined_init(storage) => self.undefined_initial_values(storage),
                    None => vec![self.initial_part(cell)],
                });
            }
        }
        found
    }

    /// Returns the outcomes of an execution with these final cell values.
    fn list_outcomes(&self, values: &ReadValues, finals: &BTreeMap<usize, Vec<Value>>) -> Vec<Outcome> {
        let mut chosen = vec![BTreeMap::new()];
        for (cell, parts) in finals {
            chosen = chosen
                .into_iter()
                .flat_map(|chosen: BTreeMap<usize, Value>| {
                    parts.iter().map(move |part| {
                        let mut chosen = chosen.clone();
                        chosen.insert(*cell, *part);
                        chosen
                    })
                })
                .collect();
        }
        let outcome = |finals: BTreeMap<usize, Value>| {
            let state = self.search.observables.iter().map(|observable| match observable {
                Observable::Register(thread, register) => {
                    let path = self.paths[usize::from(thread.0)];
                    let node = path.registers[usize::from(register.0)];
                    evaluate_node(path, node, &values[usize::from(thread.0)]).unwrap_or_default()
                }
                Observable::Location(location, _) => {
                    let whole = |cell: usize| {
                        let part = finals.get(&cell).copied().unwrap_or_default();
                        self.frame.cells[cell].place_part(part, 0).0
                    };
                    Value(self.observed_cells(*location).map(whole).fold(0, |all, part| all | part))
                }
            });
            Outcome(state.collect())
        };
        chosen.into_iter().map(outcome).collect()
    }
}

/// Returns the writes that a read may read from in a cell.
///
/// A write of the same agent through the same reference must not be overwritten by a later one; the same
/// holds for the initial value. All other cases have a cycle (VK-LO-01, VK-AC-03, VK-AC-04).
fn possible_sources(frame: &OperationGraph<'_>, read: usize, cell: usize) -> Vec<Option<usize>> {
    let Some(read_touch) = frame.operations[read].footprint() else { return Vec::new() };
    let mut found = Vec::new();
    let mut may_read_initial = true;
    for (write, _, _) in &frame.writes {
        let Some(write_touch) = frame.operations[*write].footprint() else { continue };
        if !write_touch.has_cell(cell) {
            continue;
        }
        let same_reference = write_touch.reference == read_touch.reference;
        if same_reference && holds(&frame.program_order, *write, read) {
            may_read_initial = false;
        }
        let same_instruction =
            frame.operations[*write].execution_number == frame.operations[read].execution_number;
        if !(same_instruction || same_reference && holds(&frame.program_order, read, *write)) {
            found.push(Some(*write));
        }
    }
    if may_read_initial {
        found.push(None);
    }
    found
}

/// VK-SMO-01: the orders of the atomic writes of each set of locations; those of one agent through one reference in program
/// order.
fn modification_orders(frame: &OperationGraph<'_>) -> Vec<WritePositions> {
    let mut by_cells: BTreeMap<(usize, usize), Vec<usize>> = BTreeMap::new();
    for (write, _, _) in &frame.writes {
        if let Some(touch) = frame.operations[*write].footprint()
            && touch.atomic
        {
            // Scoped modification order relates atomics on the same set of locations only, so each
            // set is ordered by itself.
            by_cells.entry(touch.cells).or_default().push(*write);
        }
    }
    let mut found = vec![vec![0; frame.operations.len()]];
    for writes in by_cells.values() {
        let mut permutations = Vec::new();
        permute(frame, writes, &mut Vec::new(), &mut permutations);
        found = found
            .into_iter()
            .flat_map(|places| {
                permutations.iter().map(move |permutation| {
                    let mut places = places.clone();
                    for (place, write) in permutation.iter().enumerate() {
                        places[*write] = place as u32;
                    }
                    places
                })
            })
            .collect();
    }
    found
}

fn permute(
    frame: &OperationGraph<'_>,
    writes: &[usize],
    chosen: &mut Vec<usize>,
    found: &mut Vec<Vec<usize>>,
) {
    if chosen.len() == writes.len() {
        found.push(chosen.clone());
        return;
    }
    for write in writes {
        let reference = |index: usize| frame.operations[index].footprint().map(|touch| touch.reference);
        // A write is placed only after all writes that program order puts before it.
        let is_blocked = writes.iter().any(|other| {
            !chosen.contains(other)
                && holds(&frame.program_order, *other, *write)
                && reference(*other) == reference(*write)
        });
        if !is_blocked && !chosen.contains(write) {
            chosen.push(*write);
            permute(frame, writes, chosen, found);
            chosen.pop();
        }
    }
}

/// A candidate execution.
struct EnumeratedExecution<'a> {
    frame: &'a OperationGraph<'a>,
    sources: &'a Sources,
    places: &'a WritePositions,
    /// Of each cell.
    location_order: &'a [Relation],
}

impl EnumeratedExecution<'_> {
    fn writes_to(&self, cell: usize) -> impl Iterator<Item = usize> {
        self.frame.writes.iter().map(|(write, _, _)| *write).filter(move |write| {
            self.frame.operations[*write].footprint().is_some_and(|touch| touch.has_cell(cell))
        })
    }

    /// VK-AC-02: returns true if `source` is earlier than `write`: in scoped modification order, and in the
    /// newest text in location order too.
    fn is_earlier(&self, source: usize, write: usize, cell: usize) -> bool {
        self.frame.is_scoped_before(self.places, source, write)
            || self.frame.profile.follows_location_order_in_from_reads()
                && holds(&self.location_order[cell], source, write)
    }

    /// The sources of a read: the cell, and the write.
    fn source_pairs(&self, read: usize) -> impl Iterator<Item = (usize, Option<usize>)> {
        self.frame.accessed_cells(read).zip(self.sources[read].iter().copied())
    }

    /// VK-AC-02, VK-AC-03: from-reads, the writes that a read comes before.
    fn fr_successors(&self, read: usize) -> Set {
        let of_cell = |(cell, source): (usize, Option<usize>)| {
            let later = |write: &usize| source.is_none_or(|source| self.is_earlier(source, *write, cell));
            self.writes_to(cell).filter(later).fold(0, |set: Set, write| set | 1 << write)
        };
        self.source_pairs(read).map(of_cell).fold(0, |set, more| set | more)
    }

    /// VK-AC-04: location order, scoped modification order, reads-from and from-reads have no cycle across
    /// all cells.
    ///
    /// VK-COH-05: a read-modify-write directly follows the write it read. A modification order does not
    /// contradict location order.
    fn is_consistent(&self) -> bool {
        let frame = self.frame;
        let mut union: Relation = vec![0; frame.operations.len()];
        for order in self.location_order {
            for (row, more) in union.iter_mut().zip(order) {
                *row |= more;
            }
        }
        for (a, _, _) in &frame.writes {
            for (b, _, _) in &frame.writes {
                let (Some(here), Some(there)) =
                    (frame.operations[*a].footprint(), frame.operations[*b].footprint())
                else {
                    continue;
                };
                // Positions are comparable only within one order.
                let share_order = here.atomic && there.atomic && here.cells == there.cells;
                if share_order && holds(&union, *a, *b) && self.places[*a] > self.places[*b] {
                    return false;
                }
            }
        }
        for (a, _, _) in &frame.writes {
            for (b, _, _) in &frame.writes {
                if frame.is_scoped_before(self.places, *a, *b) {
                    union[*a] |= 1 << *b;
                }
            }
        }
        for read in &frame.reads {
            for (_, source) in self.source_pairs(*read) {
                if let Some(source) = source {
                    union[source] |= 1 << *read;
                }
            }
            union[*read] |= self.fr_successors(*read);
        }
        for (write, _, _) in &frame.writes {
            if let Some(read) = frame.read_half(*write) {
                let has_write_between = members(self.fr_successors(read))
                    .any(|other| other != *write && frame.is_scoped_before(self.places, other, *write));
                if has_write_between {
                    return false;
                }
            }
        }
        is_acyclic(&union)
    }

    /// VK-DR-01 to -04: two accesses of overlapping locations, one a write, not mutually ordered, without location order for
    /// one of these.
    fn has_race(&self) -> bool {
        let operations = &self.frame.operations;
        (0..operations.len()).any(|a| {
            (a + 1..operations.len()).any(|b| {
                let (Some(here), Some(there)) = (operations[a].footprint(), operations[b].footprint()) else {
                    return false;
                };
                let unordered = |cell: usize| {
                    let order = &self.location_order[cell];
                    !holds(order, a, b) && !holds(order, b, a)
                };
                (operations[a].is_write() || operations[b].is_write())
                    && operations[a].execution_number != operations[b].execution_number
                    && !holds(&self.frame.mutually_ordered, a, b)
                    && here.shared_cells(there).any(unordered)
            })
        })
    }

    /// VK-VT-01: the writes of a cell that location order puts before a read and that none overwrites in between.
    fn visible_writes(&self, before: &dyn Fn(usize) -> bool, cell: usize) -> Vec<usize> {
        let order = &self.location_order[cell];
        let candidates: Vec<usize> = self.writes_to(cell).filter(|write| before(*write)).collect();
        let is_overwritten = |write: usize| candidates.iter().any(|between| holds(order, write, *between));
        candidates.iter().copied().filter(|write| !is_overwritten(*write)).collect()
    }

    /// VK-VT-02, VK-VT-03: a plain read reads a visible write; one of them if several mutually ordered writes are visible.
    fn reads_visible_writes(&self) -> bool {
        self.frame.reads.iter().all(|read| {
            self.frame.operations[*read].is_atomic()
                || self.source_pairs(*read).all(|(cell, source)| {
                    let before = |write: usize| holds(&self.location_order[cell], write, *read);
                    let visible = self.visible_writes(&before, cell);
                    visible.is_empty() || source.is_some_and(|source| visible.contains(&source))
                })
        })
    }

    /// Returns the writes that a plain device-domain read after all threads may read; `None` if the cell is
    /// unwritten.
    fn last_writes(&self, cell: usize, races: bool) -> Option<Vec<usize>> {
        let all: Vec<usize> = self.writes_to(cell).collect();
        if all.is_empty() {
            return None;
        }
        // From-reads of the last read to a write would be a cycle.
        let is_last = |write: usize| !all.iter().any(|other| self.is_earlier(write, *other, cell));
        let mut found: Vec<usize> = all.iter().copied().filter(|write| is_last(*write)).collect();
        if !races {
            let visible = self.visible_writes(&|_| true, cell);
            found.retain(|write| visible.contains(write));
        }
        Some(found)
    }
}

/// Returns true if a relation is acyclic, by repeated removal of elements without successors.
fn is_acyclic(relation: &Relation) -> bool {
    // A shift by 64 would overflow.
    let mut remaining: Set = if relation.len() == 64 { !0 } else { (1 << relation.len()) - 1 };
    loop {
        let sinks = members(remaining)
            .filter(|index| relation[*index] & remaining == 0)
            .fold(0, |set, i| set | 1 << i);
        if sinks == 0 {
            return remaining == 0;
        }
        remaining &= !sinks;
    }
}
