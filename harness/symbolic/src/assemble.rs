//! Assembles the litmus test of a kernel: invocations as threads, cells as locations.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use litmus::{
    Dialect, Instruction, InstructionKind, Label, LabelId, Location, LocationId, LocationInit, Metadata,
    Placement, Reference, Register, RegisterInit, Scope, Span, StorageClass, Term, Test, Thread, ThreadPlace,
};

use crate::context::LiftContext;
use crate::emit::{self, END_LABEL, ENTRY_REGISTER};
use crate::lifted::{LiftedCase, LiftedEntry};
use crate::round::{Emitted, EmittedThread, Round};
use crate::value::{NumberDomain, SymbolicNumber};
use entry_point::accessed_variable::accessed_variable;
use entry_point::layout::{MemoryCell, element_name_in};
use entry_point::{FindingCause, InvocationId, LiftFinding, Problem, Spot, unsupported};

/// Assembles the test from the last fixpoint iteration.
pub(crate) fn assemble_case(
    context: &LiftContext<'_>,
    entry: &LiftedEntry<'_>,
    round: Round,
    walked: &[EmittedThread],
    findings: &mut BTreeSet<LiftFinding>,
) -> Result<LiftedCase, Problem> {
    let mut cells: Vec<MemoryCell> = round.locations.keys().copied().collect();
    cells.sort_by_key(|cell| round.locations[cell]);
    let mut locations = Vec::with_capacity(cells.len());
    let mut domains = Vec::with_capacity(cells.len());
    let mut names = Vec::with_capacity(cells.len());
    let mut used_names = HashSet::new();
    let accessed = accessing_variables(context, &round.locations, walked);
    for cell in &cells {
        let variable = accessed.get(cell).copied().unwrap_or(cell.object.variable);
        let source_name = element_name_in(context.specialized, variable, cell.object.instance, cell.offset).0;
        let initial = initial_value_of(context, *cell)?;
        let test_name = unique_name(&source_name, &mut used_names);
        locations.push(assemble_location(context, *cell, test_name, initial)?);
        names.push(source_name);
        // The numbers that a read may return: the initial one, those that the kernel stores, and
        // those that others write.
        let mut domain = NumberDomain::from_value(initial);
        if let Some(stored) = round.facts.domains.get(cell) {
            domain.union_with(stored);
        }
        domain.union_with_open(context.open_memory(*cell), *cell);
        domains.push(domain);
    }
    let barriers = BarrierParticipants::new(entry.invocations, walked);
    barriers.report_divergence(findings, walked);
    barriers.check_subgroup_barriers(context, walked)?;
    let mut threads = Vec::with_capacity(walked.len());
    let mut origins = Vec::with_capacity(walked.len());
    for (index, walked) in walked.iter().enumerate() {
        let code = assemble_code(context, walked, &barriers.unreached_barriers(index))?;
        origins.push(code.instructions.iter().map(|emitted| spot_of(index, emitted)).collect());
        let identity = &entry.invocations[index];
        let place = ThreadPlace::Device(Placement {
            queue_family: 0,
            queue: 0,
            workgroup: identity.workgroup_index,
            subgroup: identity.local_index / context.subgroup_size,
        });
        threads.push(assemble_thread(context, index as u32, place, walked.registers, &code));
    }
    // An unwritten cell keeps its initial value.
    let initial = entry.question.cells.iter().map(|cell| Ok((*cell, initial_value_of(context, *cell)?)));
    let initial = initial.collect::<Result<BTreeMap<MemoryCell, u64>, Problem>>()?;
    let (question, filter) = entry.question.to_conditions(&|cell| match round.locations.get(&cell) {
        Some(location) => Term::Location(*location, 0),
        None => Term::Constant(initial.get(&cell).map_or(0, |value| *value as i64)),
    });
    let test = Test {
        metadata: Metadata { maximal_reconvergence: context.reconverges_maximally, ..Metadata::default() },
        locations,
        threads,
        filter,
        question,
        ..Test::new(entry.name, Dialect::Vulkan)
    };
    let (suspicions, opaque) = (round.suspicions, round.facts.opaque);
    Ok(LiftedCase { test, origins, names, cells, suspicions, domains, opaque })
}

/// Returns a name that tests may contain and that no other location has.
fn unique_name(source_name: &str, used_names: &mut HashSet<String>) -> String {
    let test_name: String =
        source_name.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '_' }).collect();
    let plain = test_name.trim_matches('_').to_owned();
    let mut unique =
        if plain.starts_with(|c: char| c.is_ascii_alphabetic()) { plain } else { format!("v{plain}") };
    // Source names may differ only in characters that names in tests cannot contain.
    while !used_names.insert(unique.clone()) {
        unique.push('x');
    }
    unique
}

fn assemble_location(
    context: &LiftContext<'_>,
    cell: MemoryCell,
    name: String,
    initial: u64,
) -> Result<Location, Problem> {
    let scalar = emit::scalar_of(cell.bytes);
    let scalar = scalar.ok_or_else(|| unsupported(format!("accesses of {} bytes", cell.bytes)))?;
    let reference = match context.class_of(cell.object.variable) {
        Some(StorageClass::Workgroup) => Reference::Workgroup,
        Some(StorageClass::Image) => Reference::Image,
        Some(StorageClass::Buffer | StorageClass::Output) | None => Reference::Buffer,
    };
    Ok(Location {
        reference: Some(reference),
        scalar: Some(scalar),
        init: LocationInit::Constant(initial as i64),
        ..Location::new(name)
    })
}

fn assemble_thread(
    context: &LiftContext<'_>,
    number: u32,
    place: ThreadPlace,
    registers: u16,
    code: &ThreadCode,
) -> Thread {
    let register = |register: u16| Register {
        name: format!("r{register}"),
        init: RegisterInit::Constant(0),
        declared: false,
    };
    let instruction = |emitted: &Emitted| {
        let span = Span { line: line_of(context, emitted), ..Span::default() };
        Instruction { kind: emitted.kind.clone(), span }
    };
    Thread {
        number,
        place,
        registers: (0..registers).map(register).collect(),
        labels: code.labels.iter().map(|label| Label { name: format!("LC{label:02}") }).collect(),
        instructions: code.instructions.iter().map(instruction).collect(),
        span: Span::default(),
    }
}

fn initial_value_of(context: &LiftContext<'_>, cell: MemoryCell) -> Result<u64, Problem> {
    Ok(match context.initial_value(cell)? {
        Some(value) => value,
        None => context.assigned_initial(cell),
    })
}

fn line_of(context: &LiftContext<'_>, emitted: &Emitted) -> u32 {
    let line = context.module().lines.get(emitted.line as usize).map_or(0, |line| line.line);
    match (line, emitted.place) {
        (0, spirv_reader::SourcePosition::Line(line)) => line,
        (line, _) => line,
    }
}

fn spot_of(thread: usize, emitted: &Emitted) -> Spot {
    let access = emit::access_writes(&emitted.kind);
    Spot { thread: thread as u16, line: emitted.line, place: emitted.place, writes: access }
}

/// The threads that may reach each barrier instance.
struct BarrierParticipants {
    /// An instruction of each instance, and the threads that reach it.
    reached: BTreeMap<usize, (Emitted, BTreeSet<usize>)>,
    /// The threads that should reach each instance.
    members: BTreeMap<usize, BTreeSet<usize>>,
}

impl BarrierParticipants {
    fn new(invocations: &[InvocationId], walked: &[EmittedThread]) -> BarrierParticipants {
        let mut barriers = BarrierParticipants { reached: BTreeMap::new(), members: BTreeMap::new() };
        for (thread, walked) in walked.iter().enumerate() {
            for segment in &walked.segments {
                let (Some(barrier), Some(instance)) = (&segment.barrier, segment.instance) else { continue };
                let InstructionKind::ControlBarrier(kind) = &barrier.kind else { continue };
                let entry =
                    barriers.reached.entry(instance).or_insert_with(|| (barrier.clone(), BTreeSet::new()));
                entry.1.insert(thread);
                let invocation = &invocations[thread];
                let participates = |other: &InvocationId| match kind.execution_scope {
                    // A subgroup barrier waits only for lanes that reach it (VK-SW-10).
                    Scope::Invocation | Scope::Subgroup => false,
                    Scope::Workgroup => invocation.workgroup_index == other.workgroup_index,
                    Scope::ShaderCall
                    | Scope::FragmentInterlock
                    | Scope::QueueFamily
                    | Scope::Device
                    | Scope::CrossDevice => true,
                };
                let members = invocations.iter().enumerate().filter(|(_, other)| participates(other));
                barriers.members.entry(instance).or_default().extend(members.map(|(index, _)| index));
            }
        }
        barriers
    }

    /// Returns the barriers that other threads wait at and this one never reaches.
    fn unreached_barriers(&self, thread: usize) -> Vec<Emitted> {
        self.reached
            .iter()
            .filter(|(instance, (_, reaching))| {
                !reaching.contains(&thread)
                    && self.members.get(instance).is_some_and(|members| members.contains(&thread))
            })
            .map(|(_, (barrier, _))| barrier.clone())
            .collect()
    }

    /// Refuses subgroup barriers that an invocation may bypass depending on a read value.
    ///
    /// The barrier does not wait for that lane, but the litmus test would.
    fn check_subgroup_barriers(
        &self,
        context: &LiftContext<'_>,
        walked: &[EmittedThread],
    ) -> Result<(), Problem> {
        for (barrier, reaching) in self.reached.values() {
            let InstructionKind::ControlBarrier(kind) = &barrier.kind else { continue };
            let is_unaffected = reaching.len() < 2 || kind.execution_scope != Scope::Subgroup;
            if !is_unaffected && reaching.iter().any(|thread| can_bypass_barrier(&walked[*thread], kind)) {
                let line = line_of(context, barrier);
                let what = "a subgroup control barrier under a condition on a read value";
                return Err(unsupported(format!("{what} (line {line})")));
            }
        }
        Ok(())
    }

    /// Reports instances that some invocation always reaches and another never does.
    fn report_divergence(&self, findings: &mut BTreeSet<LiftFinding>, walked: &[EmittedThread]) {
        for (instance, (barrier, reaching)) in &self.reached {
            let members = &self.members[instance];
            // With one path into each segment, no read value decides which barrier follows.
            let has_single_paths = |member: &usize| walked[*member].segments.len() == walked[*member].paths;
            let absent_thread =
                members.iter().find(|member| !reaching.contains(member) && has_single_paths(member));
            let waiting_thread = reaching.iter().find(|member| has_single_paths(member));
            if let (Some(never), Some(surely)) = (absent_thread, waiting_thread) {
                let at = spot_of(*surely, barrier);
                let message = format!(
                    "invocation {surely} waits at a control barrier that invocation {never} does not reach"
                );
                findings.insert(LiftFinding {
                    cause: FindingCause::MissedBarrier,
                    element: String::new(),
                    message,
                    at: vec![at],
                });
            }
        }
    }
}

/// Returns true if a thread may end without a barrier.
fn can_bypass_barrier(walked: &EmittedThread, barrier: &litmus::ControlBarrier) -> bool {
    let starts_with_barrier = |index: usize| {
        let first = walked.segments.get(index).and_then(|segment| segment.barrier.as_ref());
        first.is_some_and(
            |first| matches!(&first.kind, InstructionKind::ControlBarrier(other) if other == barrier),
        )
    };
    let can_end = |index: usize| {
        let code = walked.segments.get(index).map_or(&[][..], |segment| &segment.code);
        code.iter().any(|emitted| emit::labels_of(&emitted.kind).0 == Some(LabelId(END_LABEL)))
    };
    let (mut seen, mut next) = (BTreeSet::new(), vec![0]);
    while let Some(index) = next.pop() {
        if starts_with_barrier(index) || !seen.insert(index) {
            continue;
        }
        if can_end(index) {
            return true;
        }
        next.extend(walked.segments.get(index).into_iter().flat_map(|segment| &segment.successors));
    }
    false
}

struct ThreadCode {
    instructions: Vec<Emitted>,
    labels: Vec<u16>,
}

fn assemble_code(
    context: &LiftContext<'_>,
    walked: &EmittedThread,
    missing: &[Emitted],
) -> Result<ThreadCode, Problem> {
    let plain =
        |kind: InstructionKind| Emitted { kind, line: 0, place: spirv_reader::SourcePosition::Module };
    let mut code = Vec::new();
    for index in sort_segments(walked)? {
        let segment = &walked.segments[index];
        if let Some(barrier) = &segment.barrier {
            code.push(plain(emit::label(context.segment_label(index))));
            code.push(barrier.clone());
            // Paths with different states join at the barrier. The register `ENTRY_REGISTER` identifies
            // the path and selects where the thread continues.
            let entries = segment.entry_labels();
            for (entry, label) in entries.iter().enumerate() {
                let last = entry + 1 == entries.len();
                code.push(plain(if last {
                    emit::jump(*label)
                } else {
                    let (who, number) =
                        (SymbolicNumber::Register(ENTRY_REGISTER), SymbolicNumber::Known(entry as u64));
                    emit::branch(litmus::Comparison::Equal, who, number, *label)
                }));
            }
        }
        code.extend(segment.code.iter().cloned());
    }
    code.push(plain(emit::jump(END_LABEL)));
    // After the jump: the thread never reaches these barriers, but the others wait for it there.
    code.extend(missing.iter().cloned());
    code.push(plain(emit::label(END_LABEL)));
    remove_unused_code(&mut code);
    // Final register values are not part of any outcome.
    let mut assigned: Vec<_> = code.iter().flat_map(|emitted| emitted.kind.destinations()).collect();
    assigned.sort_unstable();
    assigned.dedup();
    code.extend(assigned.iter().map(|register| plain(emit::assign(register.0, 0))));
    // Labels are numbered in code order.
    let mut labels = Vec::new();
    for emitted in &code {
        if let (_, Some(label)) = emit::labels_of(&emitted.kind) {
            labels.push(label.0);
        }
    }
    for emitted in &mut code {
        let number = |label: &LabelId| {
            let position = labels.iter().position(|known| *known == label.0).unwrap_or(labels.len());
            LabelId(position as u16)
        };
        emit::relabel(&mut emitted.kind, &number);
    }
    Ok(ThreadCode { instructions: code, labels: (0..labels.len() as u16).collect() })
}

/// Returns the segments in topological order.
fn sort_segments(walked: &EmittedThread) -> Result<Vec<usize>, Problem> {
    let count = walked.segments.len();
    // Kahn's algorithm.
    let mut pending_predecessors = vec![0_usize; count];
    for segment in &walked.segments {
        segment.successors.iter().for_each(|next| pending_predecessors[*next] += 1);
    }
    let mut ready: Vec<usize> = (0..count).rev().filter(|index| pending_predecessors[*index] == 0).collect();
    let mut order = Vec::with_capacity(count);
    while let Some(index) = ready.pop() {
        order.push(index);
        for next in walked.segments[index].successors.iter().rev() {
            pending_predecessors[*next] -= 1;
            if pending_predecessors[*next] == 0 {
                ready.push(*next);
            }
        }
    }
    if order.len() == count {
        Ok(order)
    } else {
        Err(unsupported("control barriers that invocations reach in different orders"))
    }
}

/// Removes unused labels, jumps to the next instruction, and unused computations.
fn remove_unused_code(code: &mut Vec<Emitted>) {
    loop {
        // Each removal may make others unused.
        let before = code.len();
        let targets: HashSet<LabelId> =
            code.iter().filter_map(|emitted| emit::labels_of(&emitted.kind).0).collect();
        code.retain(|emitted| emit::labels_of(&emitted.kind).1.is_none_or(|label| targets.contains(&label)));
        let needed: HashSet<_> =
            code.iter().flat_map(|emitted| emit::registers_of(&emitted.kind).1).collect();
        code.retain(|emitted| {
            emit::registers_of(&emitted.kind).0.is_none_or(|register| needed.contains(&register))
        });
        // A jump to the next instruction does nothing.
        let follows: Vec<bool> = code
            .iter()
            .enumerate()
            .map(|(index, emitted)| match (emit::jump_of(&emitted.kind), code.get(index + 1)) {
                (Some(target), Some(next)) => emit::labels_of(&next.kind).1 == Some(target),
                _ => false,
            })
            .collect();
        let mut follows = follows.into_iter();
        code.retain(|_| !follows.next().unwrap_or(false));
        if code.len() == before {
            return;
        }
    }
}

/// Returns, for cells of a binding with several variables, the variable that accesses them.
fn accessing_variables(
    context: &LiftContext<'_>,
    locations: &BTreeMap<MemoryCell, LocationId>,
    walked: &[EmittedThread],
) -> BTreeMap<MemoryCell, u32> {
    let shared: BTreeMap<LocationId, MemoryCell> = locations
        .iter()
        .filter(|(cell, _)| context.is_shared_binding(cell.object.variable))
        .map(|(cell, location)| (*location, *cell))
        .collect();
    let mut all = BTreeMap::new();
    if shared.is_empty() {
        return all;
    }
    for emitted in walked.iter().flat_map(|one| &one.segments).flat_map(|segment| &segment.code) {
        let cell = emit::location_of(&emitted.kind).and_then(|location| shared.get(&location));
        let Some(cell) = cell.filter(|cell| !all.contains_key(*cell)) else { continue };
        if let Some(variable) = accessed_variable(context.module(), emitted.place) {
            all.insert(*cell, variable);
        }
    }
    all
}
