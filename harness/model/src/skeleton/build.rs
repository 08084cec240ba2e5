//! Builds event structures from the paths of the threads.
//!
//! Long because every kind of instruction has an arm in one match.

#![deny(clippy::wildcard_enum_match_arm)]

use litmus::{
    Dialect, InstructionKind, InterlockEnd, InterlockOrder, LocationId, Observable, Order, Reference, Scope,
    Semantics, SplitHalf, StorageClass, SystemOperation, Test, ThreadId, ThreadPlace, Value,
};

use super::barriers::{Arrival, PathAssignment, control_barrier_at, split_barrier_at};
use super::subgroup::{SubgroupResults, subgroup_order};
use super::tangles::Tangles;
use super::vocabulary::Tags;
use super::{Event, ExecutedBarrierHalf, ExecutionSemantics, FinalValueSource, MAX_EVENTS, Owner, Skeleton};
use crate::PredictError;
use crate::cells::{AccessPiece, CellPartition, Extent};
use crate::constants::value_domain;
use crate::forced::forced_reads;
use crate::path::{StepAccess, StepKind, ThreadPath, ThreadStep};
use crate::symbolic::{ReadIndex, SymbolicValue};
use crate::system::{self, InstructionMark};

/// Returns every event structure of a combination of paths, one path per thread.
///
/// Several exist only if a quorum or the tangles of subgroup operations leave a choice. None exists if the
/// exchanged values make the paths infeasible.
pub(crate) fn build_skeletons(
    test: &Test,
    observables: &[Observable],
    paths: &[&ThreadPath],
    semantic: ExecutionSemantics,
) -> Result<Vec<Skeleton>, PredictError> {
    let mut all = Vec::new();
    for tangles in Tangles::enumerate_assignments(test, paths, semantic.tangle_rule)? {
        all.extend(build_with_tangles(test, observables, paths, semantic, &tangles)?);
    }
    Ok(all)
}

/// Returns the event structures with some tangles.
fn build_with_tangles(
    test: &Test,
    observables: &[Observable],
    paths: &[&ThreadPath],
    semantic: ExecutionSemantics,
    tangles: &Tangles,
) -> Result<Vec<Skeleton>, PredictError> {
    let schedule = PathAssignment { test, paths, semantic, tangles };
    let executed = schedule.executed_lengths();
    let terminated =
        paths.iter().zip(&executed).all(|(path, count)| path.terminated && *count == path.steps.len());
    let steps = paths.iter().zip(&executed).map(|(path, count)| path.steps.get(..*count).unwrap_or_default());
    let mut builder = Builder::new(test, observables, semantic, steps.collect());
    builder.skeleton.terminated = terminated;
    builder.skeleton.is_truncated = paths.iter().any(|path| path.truncated);
    builder.add_initial_writes();
    builder.compute_subgroup_results(paths, tangles);
    for (index, path) in paths.iter().enumerate() {
        builder.add_thread(ThreadId(index as u16), path);
    }
    if builder.is_infeasible {
        return Ok(Vec::new());
    }
    // After all threads: a value that another lane sent may refer to events of a later thread.
    for (index, path) in paths.iter().enumerate() {
        builder.mark_decisive(ThreadId(index as u16), path);
    }
    builder.add_final_values(paths);
    builder.skeleton.add_data_dependencies();
    let events = builder.skeleton.events.len();
    if events > MAX_EVENTS {
        return Err(PredictError::TooManyEvents { events, bound: MAX_EVENTS });
    }
    builder.add_system_sync();
    builder.add_system_relations(tangles);
    let Builder { mut skeleton, arrivals, .. } = builder;
    if let Some(khronos) = &test.khronos {
        skeleton.forced_reads_from = forced_reads(&skeleton, khronos);
    }
    // Unordered sections may execute in any order: each order is another event structure.
    if test.interlock_order() != Some(InterlockOrder::Unordered) {
        return Ok(schedule.add_barrier_sync(skeleton, &arrivals));
    }
    let mut all = Vec::new();
    for order in system::interlock_orders(test) {
        let sections = system::interlock_order(test, &skeleton.events, &order);
        all.extend(
            schedule.add_barrier_sync(Skeleton { interlock_order: sections, ..skeleton.clone() }, &arrivals),
        );
    }
    Ok(all)
}

/// Returns the memory that a step accesses.
fn step_access(step: &ThreadStep) -> Option<&StepAccess> {
    match &step.kind {
        StepKind::Read(memory) | StepKind::Write(memory, _) | StepKind::Rmw(memory, _) => Some(memory),
        StepKind::Fence(..)
        | StepKind::ControlBarrier
        | StepKind::SplitBarrier
        | StepKind::Subgroup(_)
        | StepKind::System => None,
    }
}

/// Returns the storage of a name that is a block in workgroup memory.
fn workgroup_block(test: &Test, name: LocationId) -> Option<LocationId> {
    matches!(test.location(name).reference, Some(Reference::Workgroup)).then(|| test.storage_of(name))
}

/// Extracts the part of a stored value that is in a piece of its access.
fn extract_piece(stored: &SymbolicValue<u16>, piece: AccessPiece) -> SymbolicValue<u16> {
    if piece.is_whole_access {
        stored.clone()
    } else {
        stored.clone().extract_bytes(piece.access_offset, piece.bytes)
    }
}

/// An event structure under construction, with the inputs for its events.
#[derive(Clone)]
struct Builder<'t> {
    test: &'t Test,
    semantic: ExecutionSemantics,
    /// The executed steps of each thread.
    steps: Vec<&'t [ThreadStep]>,
    /// [`Test::observables`].
    observables: &'t [Observable],
    cells: CellPartition,
    skeleton: Skeleton,
    /// The values that each thread has read, by the number of the read.
    reads: Vec<Vec<SymbolicValue<u16>>>,
    arrivals: Vec<Arrival<'t>>,
    marks: Vec<InstructionMark>,
    /// Results of subgroup operations.
    results: SubgroupResults,
    /// True if no values allow control to take these paths.
    is_infeasible: bool,
}

impl<'t> Builder<'t> {
    fn new(
        test: &'t Test,
        observables: &'t [Observable],
        semantic: ExecutionSemantics,
        steps: Vec<&'t [ThreadStep]>,
    ) -> Builder<'t> {
        let observed = observables.iter().filter_map(|observable| match observable {
            Observable::Location(location, component) => {
                Some(Extent::from_component(test, *location, *component))
            }
            Observable::Register(..) => None,
        });
        let accesses = steps.iter().flat_map(|steps| steps.iter()).filter_map(step_access);
        let extents = accesses.map(|memory| memory.extent).chain(observed);
        let cells = CellPartition::new(test, extents, semantic.has_byte_cells);
        let (mut skeleton, reads) = (Skeleton::default(), vec![Vec::new(); steps.len()]);
        let executed: usize = steps.iter().map(|steps| steps.len()).sum();
        skeleton.events.reserve(executed + test.locations.len() + observables.len());
        let (arrivals, marks, results) = (Vec::new(), Vec::new(), SubgroupResults::default());
        Builder {
            test,
            semantic,
            steps,
            observables,
            cells,
            skeleton,
            reads,
            arrivals,
            marks,
            results,
            is_infeasible: false,
        }
    }

    /// Returns the number of the next event.
    fn next_event(&self) -> u16 {
        self.skeleton.events.len() as u16
    }

    fn add_initial_writes(&mut self) {
        let accesses = self.steps.iter().flat_map(|steps| steps.iter()).filter_map(step_access);
        let mut used: Vec<LocationId> = accesses.map(|memory| memory.location).collect();
        for observable in self.observables {
            if let Observable::Location(location, _) = observable {
                used.push(*location);
            }
        }
        if !self.semantic.has_initial_write_per_name {
            used.iter_mut().for_each(|location| *location = self.test.storage_of(*location));
        }
        used.sort_unstable();
        used.dedup();
        let possible_values =
            if self.test.has_undefined_locations() { value_domain(self.test) } else { Vec::new() };
        for location in used {
            if self.test.has_undefined_init(location) {
                self.add_undefined_writes(location, &possible_values);
                continue;
            }
            let extent = Extent::from_name(self.test, location);
            let bits = self.test.initial_bits(location);
            let mut event = Event::new(Owner::Initial, None, self.next_event(), None);
            event.tags.add(Tags::IW | Tags::W);
            event.reference = Some(location);
            event.block = workgroup_block(self.test, location);
            event.extent = Some(extent);
            for piece in self.cells.split_access(extent).iter().copied() {
                let mut event = event.clone();
                event.storage = Some(piece.cell);
                if self.test.location(location).is_vector() {
                    event.extent = Some(extent.piece_extent(self.test, piece));
                }
                let part = SymbolicValue::Known(Value((bits >> (8 * piece.access_offset)) as u64));
                event.stored_value = Some(part.extract_bytes(0, piece.bytes));
                self.skeleton.events.push(event);
            }
        }
    }

    /// Adds an initial write for each value that a read of an undefined initial value may return. Each read
    /// chooses independently in every cell.
    fn add_undefined_writes(&mut self, location: LocationId, any: &[Value]) {
        let extent = Extent::from_name(self.test, location);
        let declared = self.test.location(location);
        let bytes = declared.scalar_type().bytes();
        for piece in self.cells.split_access(extent).iter().copied() {
            let mut values: Vec<SymbolicValue<u16>> = Vec::new();
            for value in any {
                let part =
                    SymbolicValue::Known(*value).extract_bytes(piece.access_offset % bytes, piece.bytes);
                if !values.contains(&part) {
                    values.push(part);
                }
            }
            // One initial write for each possible value; they exclude each other.
            for value in values {
                let mut event = Event::new(Owner::Initial, None, self.next_event(), None);
                event.tags.add(Tags::IW | Tags::UW | Tags::W);
                event.reference = Some(location);
                event.block = workgroup_block(self.test, location);
                event.extent =
                    Some(if declared.is_vector() { extent.piece_extent(self.test, piece) } else { extent });
                event.storage = Some(piece.cell);
                event.stored_value = Some(value);
                self.skeleton.events.push(event);
            }
        }
    }

    /// Computes the results of subgroup operations. The events of reads must be numbered before, since the
    /// result of a lane is computed from values that other lanes have read.
    fn compute_subgroup_results(&mut self, paths: &[&ThreadPath], tangles: &Tangles) {
        if !self.test.has_subgroup_operations() {
            return;
        }
        let mut draft = self.clone();
        for (index, path) in paths.iter().enumerate() {
            draft.add_thread(ThreadId(index as u16), path);
        }
        self.results = SubgroupResults::compute(self.test, tangles, &self.steps, &draft.reads);
    }

    /// Adds the events of a thread and the constraints of its path on the values read.
    fn add_thread(&mut self, thread: ThreadId, path: &ThreadPath) {
        let steps = self.steps[usize::from(thread.0)];
        let mut cooperative =
            steps.iter().any(|step| step.cooperative).then(|| self.with_thread_events(thread));
        for (index, step) in steps.iter().enumerate() {
            let first = self.skeleton.events.len();
            if let Some(company) = cooperative.as_mut().filter(|_| step.cooperative) {
                // The access is numbered among the reads of the thread, although its events belong
                // to another invocation. So both builders use one list of reads.
                std::mem::swap(&mut self.reads, &mut company.reads);
                company.add_cooperative_access(thread, step);
                std::mem::swap(&mut self.reads, &mut company.reads);
            } else {
                self.add_step(thread, step);
            }
            self.skeleton.events[first..].iter_mut().for_each(|event| event.step = Some(index as u16));
        }
        // `with_thread_events` has numbered these events after all events of the thread itself.
        if let Some(mut company) = cooperative {
            let first_new = self.skeleton.events.len();
            self.skeleton.events.extend(company.skeleton.events.drain(first_new..));
            self.arrivals.append(&mut company.arrivals);
        }
        let reads = &self.reads[usize::from(thread.0)];
        for constraint in &path.constraints {
            let mut is_known = true;
            let mut check = |read: u16| is_known &= usize::from(read) < reads.len();
            constraint.left.for_each_read(&mut check);
            constraint.right.for_each_read(&mut check);
            // A condition on a read after a barrier that blocks for ever is never evaluated.
            if is_known {
                let over_events = constraint.substitute(&|read| reads[usize::from(read)].clone());
                // Exchanged values may decide the condition before any read.
                match over_events.is_satisfied(&mut |_| None) {
                    Some(is_satisfied) => self.is_infeasible |= !is_satisfied,
                    None => self.skeleton.constraints.push(over_events),
                }
            }
        }
    }

    /// Marks the reads that decide control flow: the thread's reads, and reads of lanes that sent it a value.
    fn mark_decisive(&mut self, thread: ThreadId, path: &ThreadPath) {
        let reads = &self.reads[usize::from(thread.0)];
        for value in path.decisive_reads.iter().filter_map(|read| reads.get(usize::from(*read))) {
            value.for_each_read(&mut |event| {
                self.skeleton.events[usize::from(event)].tags.add(Tags::DECISIVE);
            });
        }
    }

    /// Returns a builder with the thread's existing events, for operations that other invocations perform for
    /// it. Their events are later.
    fn with_thread_events(&self, thread: ThreadId) -> Builder<'t> {
        let mut builder = self.clone();
        for step in self.steps[usize::from(thread.0)] {
            if !step.cooperative {
                builder.add_step(thread, step);
            } else if let StepKind::Read(_) = step.kind {
                // Only the number of events matters here.
                builder.reads[usize::from(thread.0)].push(SymbolicValue::Known(Value(0)));
            }
        }
        builder.arrivals.clear();
        builder
    }

    /// Adds the operations of the invocation that performs a cooperative access: the access and the barriers
    /// around it.
    fn add_cooperative_access(&mut self, thread: ThreadId, access: &ThreadStep) {
        let first = self.skeleton.events.len();
        for step in self.steps[usize::from(thread.0)] {
            if std::ptr::eq(step, access) {
                self.add_step(thread, step);
            } else if let StepKind::ControlBarrier | StepKind::Fence(..) = step.kind {
                // The dependencies of a barrier are those of the thread.
                let step = ThreadStep { address: Vec::new(), control: Vec::new(), ..step.clone() };
                self.add_step(thread, &step);
            }
        }
        for event in &mut self.skeleton.events[first..] {
            event.owner = Owner::CooperativeInvocation(thread, access.instruction);
        }
    }

    fn add_step(&mut self, thread: ThreadId, step: &ThreadStep) {
        let here = self.next_event();
        let index = usize::from(thread.0);
        let Skeleton { address_dependencies: address, control_dependencies: control, .. } =
            &mut self.skeleton;
        for (dependent, pairs) in [(&step.address, address), (&step.control, control)] {
            // A dependency on a value is one on every event that the value is computed from.
            for read in dependent {
                self.reads[index][usize::from(*read)].for_each_read(&mut |event| pairs.push((event, here)));
            }
        }
        let (place, host) = match self.test.thread(thread).place {
            ThreadPlace::Device(placement) => (Some(placement), false),
            ThreadPlace::Host => (None, true),
        };
        let mut event = Event::new(Owner::Thread(thread), Some(step.instruction), here, place);
        // Another component of the same vector access.
        if step.is_continuation
            && let Some(before) = self.skeleton.events.last()
        {
            event.first_of_vector = before.first_of_vector;
            if self.semantic.has_whole_vectors {
                event.first_of_operation = before.first_of_operation;
            }
        }
        if host {
            event.tags.add(Tags::HOST);
        }
        match &step.kind {
            StepKind::Read(memory) => {
                self.set_accessed_memory(&mut event, memory, host);
                event.tags.add(Tags::R);
                event.tags.add_read_access(memory.access);
                self.add_read(thread, &event, &self.cells.split_access(memory.extent));
            }
            StepKind::Write(memory, stored) => {
                self.set_accessed_memory(&mut event, memory, host);
                event.tags.add(Tags::W);
                event.tags.add_write_access(memory.access);
                self.push_write(
                    &event,
                    &self.to_event_value(thread, stored),
                    &self.cells.split_access(memory.extent),
                );
            }
            StepKind::Rmw(memory, stored) => {
                self.set_accessed_memory(&mut event, memory, host);
                self.add_rmw(thread, event, memory, stored.as_ref());
            }
            StepKind::Fence(scope, semantics) => {
                event.add_fence_tags(*scope, semantics);
                self.skeleton.events.push(event);
            }
            StepKind::ControlBarrier => {
                event.tags.add(Tags::CBAR);
                if let Some(barrier) = control_barrier_at(self.test, thread, step.instruction) {
                    let (instruction, occurrence) = (step.instruction, step.occurrence);
                    self.arrivals.push(Arrival { event: here, thread, instruction, barrier, occurrence });
                    event.add_barrier_tags(barrier.memory_scope, barrier.semantics.as_ref());
                }
                self.skeleton.events.push(event);
            }
            StepKind::SplitBarrier => {
                if let Some(barrier) = split_barrier_at(self.test, thread, step.instruction) {
                    let (scope, half) = (barrier.execution_scope, barrier.half);
                    // The n-th arrival of a thread pairs with the n-th wait of the others, so each
                    // half counts its earlier executions.
                    let earlier = self.skeleton.barrier_halves.iter().filter(|known| {
                        let owner = self.skeleton.events[usize::from(known.event)].owner;
                        owner == Owner::Thread(thread) && (known.scope, known.half) == (scope, half)
                    });
                    let round = earlier.count() as u16;
                    self.skeleton.barrier_halves.push(ExecutedBarrierHalf {
                        event: here,
                        half,
                        scope,
                        round,
                        id: barrier.id.clone(),
                    });
                    event.tags.add(match half {
                        SplitHalf::Arrive => Tags::ARRIVE,
                        SplitHalf::Wait => Tags::WAIT,
                    });
                    event.add_barrier_tags(barrier.memory_scope, barrier.semantics.as_ref());
                }
                self.skeleton.events.push(event);
            }
            StepKind::Subgroup(_) => {
                let result = self.results.get(thread, step.instruction);
                self.reads[index].push(result);
                self.marks.push(InstructionMark { thread, instruction: step.instruction, next: here });
            }
            StepKind::System => self.add_system_event(thread, step.instruction, &event),
        }
    }

    /// Sets the memory that an event accesses.
    fn set_accessed_memory(&self, event: &mut Event, memory: &StepAccess, host: bool) {
        event.reference = Some(memory.location);
        event.block =
            (memory.class == StorageClass::Workgroup).then(|| self.test.storage_of(memory.location));
        event.extent = Some(memory.extent);
        event.tags.storage_classes = 1 << memory.class.index();
        if host {
            // A host has no private accesses: its language orders them.
            event.tags.add(Tags::NONPRIV);
            let is_noncoherent = |name: LocationId| self.test.location(name).noncoherent;
            if is_noncoherent(memory.location) || is_noncoherent(memory.extent.storage) {
                event.tags.add(Tags::NONCOHERENT);
            }
        }
    }

    /// Returns a value of a thread as an expression over the events of the execution.
    fn to_event_value(&self, thread: ThreadId, value: &SymbolicValue<ReadIndex>) -> SymbolicValue<u16> {
        let reads = &self.reads[usize::from(thread.0)];
        value.substitute(&|read| reads[usize::from(read)].clone())
    }

    fn add_rmw(
        &mut self,
        thread: ThreadId,
        mut event: Event,
        memory: &StepAccess,
        stored: Option<&SymbolicValue<ReadIndex>>,
    ) {
        let here = usize::from(self.next_event());
        let pieces = self.cells.split_access(memory.extent);
        let fused = self.semantic.has_fused_rmw;
        let mut write = event.clone();
        event.tags.add(Tags::R);
        event.tags.add_read_access(memory.access);
        if stored.is_some() {
            event.tags.add(Tags::RMW);
        }
        // Models with fused RMWs have one event that is both read and write; the others have two
        // events and the relation `rmw`.
        if stored.is_some() && fused {
            event.tags.add(Tags::W);
            event.tags.add_write_access(memory.access);
        }
        self.add_read(thread, &event, &pieces);
        let Some(stored) = stored else { return };
        let stored = self.to_event_value(thread, stored);
        if fused {
            for (event, piece) in self.skeleton.events[here..].iter_mut().zip(&*pieces) {
                event.stored_value = Some(extract_piece(&stored, *piece));
            }
        } else {
            (write.first_of_operation, write.first_of_vector) = (self.next_event(), self.next_event());
            write.tags.add(Tags::W | Tags::RMW);
            write.tags.add_write_access(memory.access);
            // The write half of each cell has the same position among its pieces as the read half.
            for (event, half) in self.skeleton.events[here..].iter_mut().zip(write.first_of_operation..) {
                event.write_half = Some(half);
            }
            self.push_write(&write, &stored, &pieces);
        }
    }

    /// Adds a read of a thread, and records the value that is read.
    fn add_read(&mut self, thread: ThreadId, event: &Event, pieces: &[AccessPiece]) {
        let value = self.push_read(event, pieces);
        self.reads[usize::from(thread.0)].push(value);
    }

    /// Adds an event for each piece of a read, and returns the value that is read.
    fn push_read(&mut self, event: &Event, pieces: &[AccessPiece]) -> SymbolicValue<u16> {
        let first = self.next_event();
        for piece in pieces {
            let mut part = event.clone();
            (part.storage, part.piece) = (Some(piece.cell), Some(*piece));
            self.skeleton.events.push(part);
        }
        match pieces {
            [_] => SymbolicValue::Read(first),
            // An access of several cells reads a concatenation: each part with its offset in bytes.
            _ => {
                let parts = pieces.iter().zip(first..);
                SymbolicValue::Join(
                    parts.map(|(piece, read)| (piece.access_offset, SymbolicValue::Read(read))).collect(),
                )
            }
        }
    }

    /// Adds an event for each piece of a write.
    fn push_write(&mut self, event: &Event, stored: &SymbolicValue<u16>, pieces: &[AccessPiece]) {
        for piece in pieces {
            let mut part = event.clone();
            (part.storage, part.piece) = (Some(piece.cell), Some(*piece));
            part.stored_value = Some(extract_piece(stored, *piece));
            self.skeleton.events.push(part);
        }
    }

    /// Adds the events of an operation of the API, of an interlocked section or of a shader call.
    fn add_system_event(&mut self, thread: ThreadId, instruction: u16, event: &Event) {
        let before = self.next_event();
        let kind = &self.test.thread(thread).instructions[usize::from(instruction)].kind;
        match kind {
            InstructionKind::System(operation) => {
                for tags in system::operation_tags(operation) {
                    let mut event = event.clone();
                    (event.first_of_operation, event.first_of_vector) =
                        (self.next_event(), self.next_event());
                    event.tags.add(*tags);
                    self.skeleton.events.push(event);
                }
            }
            InstructionKind::Interlock(interlock) => {
                let mut event = event.clone();
                event.tags.add_scope(Scope::FragmentInterlock);
                // The end releases and the begin acquires UniformMemory and ImageMemory; neither is a memory barrier.
                event.tags.semantics =
                    (1 << StorageClass::Buffer.index()) | (1 << StorageClass::Image.index());
                event.tags.add(match interlock.end {
                    InterlockEnd::Begin => Tags::ACQ,
                    InterlockEnd::End => Tags::REL,
                });
                self.skeleton.events.push(event);
            }
            // Shader-call order passes through it where the caller does nothing else.
            InstructionKind::ShaderCall(_) => self.skeleton.events.push(event.clone()),
            // These have separate kinds of steps.
            InstructionKind::Access(_)
            | InstructionKind::Fence { .. }
            | InstructionKind::ControlBarrier(_)
            | InstructionKind::SplitBarrier(_)
            | InstructionKind::Subgroup(_)
            | InstructionKind::Compute(_)
            | InstructionKind::Flow(_) => {}
        }
        // The operation of a wait takes place after the awaited work, so its mark precedes its events.
        let waits = matches!(kind, InstructionKind::System(SystemOperation::Wait(_)));
        let next = if waits { before } else { self.next_event() };
        self.marks.push(InstructionMark { thread, instruction, next });
    }

    fn add_final_values(&mut self, paths: &[&ThreadPath]) {
        let (test, terminated) = (self.test, self.skeleton.terminated);
        let device_read = self.semantic.has_final_device_read;
        let has_reader = terminated
            && device_read
            && self.observables.iter().any(|o| matches!(o, Observable::Location(..)));
        // HSA memory has no device domain that values have to leave.
        if has_reader && test.dialect != Dialect::Hsa {
            let hosts = test.threads.iter().any(|thread| thread.place == ThreadPlace::Host);
            // Host writes reach the device domain in two steps: availability to the host domain,
            // then a domain operation.
            let from_hosts: &[u64] = if hosts { &[Tags::AVHOST, Tags::DOMDEVICE] } else { &[] };
            for tags in from_hosts.iter().chain(&[Tags::AVDEVICE, Tags::VISDEVICE]) {
                let reader = self.new_final_event(*tags);
                self.skeleton.events.push(reader);
            }
        }
        for observable in self.observables.iter().copied() {
            let value = match observable {
                Observable::Register(thread, register) => {
                    let index = usize::from(thread.0);
                    let value = &paths[index].registers[usize::from(register.0)];
                    let mut is_known = true;
                    value.for_each_read(&mut |read| is_known &= usize::from(read) < self.reads[index].len());
                    // After a barrier that blocks for ever, a register has its initial value.
                    FinalValueSource::Expression(if is_known {
                        self.to_event_value(thread, value)
                    } else {
                        SymbolicValue::Known(test.initial_register(thread, register))
                    })
                }
                Observable::Location(location, component) if !terminated => FinalValueSource::Expression(
                    SymbolicValue::Known(test.initial_value(location, component)),
                ),
                Observable::Location(location, component) if device_read => {
                    FinalValueSource::Expression(self.add_final_read(location, component))
                }
                Observable::Location(location, component) if self.is_unwritten(location, component) => {
                    FinalValueSource::Expression(self.add_final_read(location, component))
                }
                Observable::Location(location, component) => {
                    let pieces = self.cells.split_access(Extent::from_component(test, location, component));
                    // Models whose final value is the last write do not cover accesses to parts of a number.
                    let cell = pieces.first().map_or(test.storage_of(location), |piece| piece.cell);
                    FinalValueSource::LastWrite(cell)
                }
            };
            self.skeleton.final_values.push(value);
        }
    }

    /// Returns true if the initial value of a component is undefined and no thread writes it, so that there
    /// is no last write.
    fn is_unwritten(&self, location: LocationId, component: u8) -> bool {
        let pieces = self.cells.split_access(Extent::from_component(self.test, location, component));
        let is_thread_write = |event: &Event| {
            event.tags.has(Tags::W)
                && !event.tags.has(Tags::IW)
                && pieces.iter().any(|piece| event.storage == Some(piece.cell))
        };
        self.test.has_undefined_init(location) && !self.skeleton.events.iter().any(is_thread_write)
    }

    /// Adds the read of a final value.
    fn add_final_read(&mut self, location: LocationId, component: u8) -> SymbolicValue<u16> {
        let mut event = self.new_final_event(Tags::R | Tags::FINAL);
        let extent = Extent::from_component(self.test, location, component);
        event.reference = Some(location);
        event.block = workgroup_block(self.test, location);
        event.extent = Some(extent);
        self.push_read(&event, &self.cells.split_access(extent))
    }

    /// Returns an event of the reader of final values.
    fn new_final_event(&self, tags: u64) -> Event {
        let mut event = Event::new(Owner::Final, None, self.next_event(), None);
        event.tags.add(tags);
        event
    }

    fn add_system_sync(&mut self) {
        let Skeleton { events, system_sync, .. } = &mut self.skeleton;
        for sync in &self.test.system_sync {
            // Program order covers a thread and itself.
            if sync.from.thread == sync.to.thread
                && sync.from.instruction.is_none()
                && sync.to.instruction.is_none()
            {
                continue;
            }
            for (from, left) in events.iter().enumerate() {
                let matches = |event: &Event, point: &litmus::SyncPoint| {
                    event.thread() == Some(point.thread)
                        && point.instruction.is_none_or(|i| event.instruction == Some(i))
                };
                if !matches(left, &sync.from) {
                    continue;
                }
                for (to, right) in events.iter().enumerate() {
                    if from != to && matches(right, &sync.to) {
                        system_sync.push((from as u16, to as u16));
                    }
                }
            }
        }
        // The reader of final values follows every thread.
        for (to, reader) in events.iter().enumerate() {
            if reader.owner == Owner::Final {
                for (from, event) in events.iter().enumerate() {
                    if event.thread().is_some() {
                        system_sync.push((from as u16, to as u16));
                    }
                }
            }
        }
    }

    /// Adds the relations of submissions, waits, access masks, shader calls, interlocked sections and subgroup operations.
    fn add_system_relations(&mut self, tangles: &Tangles) {
        if self.marks.is_empty() {
            return;
        }
        let (test, skeleton) = (self.test, &mut self.skeleton);
        skeleton.system_sync.extend(system::submission_order(test, &skeleton.events, &self.marks));
        skeleton.shader_call_order = system::shader_call_order(test, &skeleton.events, &self.marks);
        skeleton.subgroup_order = subgroup_order(&skeleton.events, &self.marks, tangles);
        skeleton.shader_call_groups = system::shader_call_groups(test);
        let columns: Vec<ThreadId> = (0..test.threads.len()).map(|index| ThreadId(index as u16)).collect();
        skeleton.interlock_order = system::interlock_order(test, &skeleton.events, &columns);
        skeleton.uncovered_pairs = system::uncovered_pairs(test, &skeleton.events);
        for left in 0..test.threads.len() as u16 {
            for right in 0..test.threads.len() as u16 {
                if system::have_overlapping_sections(test, ThreadId(left), ThreadId(right)) {
                    skeleton.overlapping_fragments.push((ThreadId(left), ThreadId(right)));
                }
            }
        }
    }
}

impl Skeleton {
    /// Adds the pairs of a write and a read that the written value is computed from.
    fn add_data_dependencies(&mut self) {
        for (write, event) in (0..).zip(&self.events) {
            if let Some(stored) = &event.stored_value {
                // A fused read-modify-write does not depend on itself.
                stored.for_each_read(&mut |read| {
                    if read != write {
                        self.data_dependencies.push((read, write));
                    }
                });
            }
        }
    }
}

impl Event {
    fn add_barrier_tags(&mut self, scope: Scope, semantics: Option<&Semantics>) {
        match semantics {
            Some(semantics) => self.add_fence_tags(scope, semantics),
            None => self.tags.add_scope(scope),
        }
    }

    fn add_fence_tags(&mut self, scope: Scope, semantics: &Semantics) {
        self.tags.add_scope(scope);
        if semantics.order != Order::Relaxed {
            self.tags.add(Tags::F);
        }
        self.tags.add_release(semantics);
        self.tags.add_acquire(semantics);
    }
}
