//! Lifts a kernel with its grid and inputs to litmus tests.
//!
//! The lifter executes every invocation symbolically ([`crate::executor`]) and iterates to a fixpoint over the
//! values that shared memory may hold: each iteration reads values that the previous one may have stored. The
//! result over-approximates the kernel's executions within the unrolling bound. Unspecified inputs get
//! candidate values ([`crate::candidate_values`]), one test for each choice.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet, HashMap};

use crate::constants::SymbolicModule;
use crate::context::{Assignment, LiftContext};
use crate::executor::Executor;
use crate::lifted::{Lifted, LiftedCase};
use crate::round::{CellAccess, EmittedThread, Round, SharedMemoryFacts};
use crate::value::UndefOrigin;
use crate::{assemble, candidate_values};
use entry_point::dataflow::find_loops;
use entry_point::interlock::InterlockExecutionMode;
use entry_point::launch::{LaunchParameters, positions_at, reflected_push_constants, running_workgroups};
use entry_point::layout::MemoryCell;
use entry_point::question::{NameScope, ResolvedQuestion};
use entry_point::{AnalysisOptions, InvocationId, LiftFinding, Problem, Refusal, launch, malformed};
use spirv_reader::{SourcePosition, SpirvModule, Stage};

/// Upper bound on the invocations of a grid: the engine's bound on threads.
pub const MAX_INVOCATIONS: usize = 16;
/// Upper bound on the fixpoint iterations.
const MAX_ROUNDS: usize = 400;
/// Upper bound on the paths of all invocations in all iterations.
const MAX_PATHS: usize = 1 << 16;

/// Lifts a kernel to litmus tests.
///
/// # Errors
/// Returns the position of what is malformed or unsupported.
pub fn lift(module: &SpirvModule, options: &AnalysisOptions) -> Result<Lifted, Refusal> {
    let entry = module.find_entry(options.entry.as_deref())?;
    launch::check_stage(module, entry.shader_stage(), options.grid)?;
    lift_entry(module, options, (entry.function, entry.shader_stage()), &entry.name)
}

fn lift_entry(
    module: &SpirvModule,
    options: &AnalysisOptions,
    (function, stage): (u32, Stage),
    name: &str,
) -> Result<Lifted, Refusal> {
    let without_position = |problem: Problem| problem.located_at(SourcePosition::Module);
    let LaunchParameters {
        inputs,
        values_by_spec_id: by_id,
        values_by_result: by_result,
        local_size,
        grid,
        config,
        is_annotated: annotated,
    } = LaunchParameters::new(module, options, function).map_err(without_position)?;
    let specialized = SymbolicModule::new(module, &by_id, &by_result, config.map(|_| local_size))
        .map_err(without_position)?;
    let invocations = match options.only_invocations.len() {
        0 => running_workgroups(options, stage, grid)
            .and_then(|running| enumerate_invocations(grid, running, local_size, stage))
            .map_err(without_position)?,
        1..=MAX_INVOCATIONS => options.only_invocations.clone(),
        _ => {
            return Err(Problem::Invocations { bound: MAX_INVOCATIONS, one_workgroup: false }
                .located_at(SourcePosition::Module));
        }
    };
    let all = local_size.iter().product::<u32>();
    let subgroup_size = options.subgroup_size.or(config.map(|config| config[0])).unwrap_or(all).max(1);
    let subgroup_size = if stage.has_workgroups() { subgroup_size } else { 1 };

    let mut buffers: HashMap<u32, &[u8]> = HashMap::new();
    let mut canonical = HashMap::new();
    let mut first_of: BTreeMap<(u32, u32), u32> = BTreeMap::new();
    for id in module.variables.keys() {
        let decorations = module.decorations_of(*id);
        if let (Some(set), Some(binding)) = (decorations.set.or(Some(0)), decorations.binding) {
            canonical.insert(*id, *first_of.entry((set, binding)).or_insert(*id));
            if let Some(bytes) = options.buffers.get(&(set, binding)) {
                buffers.insert(*id, bytes);
            }
        }
    }
    let mut setting = LiftContext {
        specialized: &specialized,
        stage,
        stage_inputs: &options.stage_inputs,
        grid,
        sections: InterlockExecutionMode::from_execution_modes(module.execution_modes(function)),
        local_size,
        subgroup_size,
        unroll: options.unroll,
        unroll_open_loops: options.max_open_iterations(),
        deadline: options.deadline.clone(),
        keep_all: options.keep_all,
        keep_final: options.keep_final,
        open: options.open.as_ref(),
        observed: BTreeSet::new(),
        assignment: Assignment::new(),
        inputs,
        buffers,
        push: BTreeMap::new(),
        push_bytes: &options.push,
        images: &options.images,
        is_annotated: annotated,
        canonical,
        loops: find_loops(module),
        dead_variables: RefCell::default(),
    };
    setting.push = reflected_push_constants(&specialized, grid, local_size);
    let names = NameScope { specialized: &specialized, canonical: &setting.canonical };
    let question = ResolvedQuestion::new(&names, options)?;
    setting.observed = question.cells.clone();

    let mut notes = Vec::new();
    if !module.uses_vulkan_model {
        notes.push(
            "the module's memory model is GLSL450; it is analyzed under the Vulkan model: Coherent and \
             Volatile accesses as non-private, available and visible at queue-family scope, workgroup \
             memory at workgroup scope"
                .to_owned(),
        );
    }
    notes.extend(setting.assumed_image_notes());
    notes.extend(setting.sections.and_then(|sections| sections.note).map(str::to_owned));
    let mut lifted = Lifted {
        entry: name.to_owned(),
        cases: Vec::new(),
        is_sampled: false,
        invocations: invocations.clone(),
        subgroup_size,
        findings: Vec::new(),
        question: question.text.clone(),
        notes,
    };
    let mut findings = BTreeSet::new();
    let mut undefined = BTreeSet::new();
    let first = lift_case(&setting, function, name, &invocations, &question, &mut findings, &mut undefined)?;
    lifted.cases.push(first);
    // The question may also refer to memory that no invocation writes.
    for cell in &question.cells {
        if setting.initial_value(*cell).map_err(without_position)?.is_none() {
            undefined.insert(UndefOrigin::from_cell(*cell));
        }
    }
    lifted.is_sampled = !undefined.is_empty();
    let values = candidate_values::candidate_values(&setting, &question.compared_numbers());
    for assignment in candidate_values::enumerate_assignments(&undefined, &values) {
        setting.assignment = assignment;
        let mut further_undefined = BTreeSet::new();
        let next = lift_case(
            &setting,
            function,
            name,
            &invocations,
            &question,
            &mut findings,
            &mut further_undefined,
        )?;
        // Most values lead to the same test as others.
        if lifted.cases.iter().all(|known| known.test != next.test) {
            lifted.cases.push(next);
        }
    }
    lifted.findings = findings.into_iter().collect();
    Ok(lifted)
}

/// Lifts one test for the current choice of unspecified values.
fn lift_case(
    context: &LiftContext<'_>,
    function: u32,
    name: &str,
    invocations: &[InvocationId],
    question: &ResolvedQuestion,
    findings: &mut BTreeSet<LiftFinding>,
    undefined: &mut BTreeSet<UndefOrigin>,
) -> Result<LiftedCase, Refusal> {
    let mut knowledge = SharedMemoryFacts::default();
    let (mut frozen, mut paths) = (false, 0);
    for number in 0.. {
        let mut round = Round::default();
        let mut walked: Vec<EmittedThread> = Vec::new();
        for (thread, identity) in invocations.iter().enumerate() {
            let executor = Executor::new(context, &knowledge, &mut round, thread as u16, identity);
            let executor = executor.execute_all_paths(function)?;
            paths += executor.paths;
            if paths > MAX_PATHS {
                let (what, remedy) = ("paths of all invocations", "; lower --grid or --unroll");
                let budget = Problem::Exhausted { what, bound: MAX_PATHS, remedy };
                return Err(budget.located_at(SourcePosition::Module));
            }
            walked.push(executor);
        }
        check_overlaps(context, &round.facts.accesses)
            .map_err(|problem| problem.located_at(SourcePosition::Module))?;
        let mut next = knowledge.clone();
        let mut grown = false;
        if !frozen {
            for (cell, domain) in &round.facts.domains {
                let known = next.domains.entry(*cell).or_insert_with(crate::value::NumberDomain::empty);
                grown |= known.union_with(domain);
            }
        }
        for (cell, touch) in &round.facts.accesses {
            let known: &mut CellAccess = next.accesses.entry(*cell).or_default();
            known.readers |= touch.readers;
            known.writers |= touch.writers;
            known.has_ordering_access |= touch.has_ordering_access;
        }
        next.opaque.extend(round.facts.opaque.iter().copied());
        for (cell, by_thread) in &round.facts.updates {
            let known = next.updates.entry(*cell).or_default();
            for (thread, count) in by_thread {
                let max_updates = known.entry(*thread).or_default();
                *max_updates = (*max_updates).max(*count);
            }
        }
        for (cell, by_value) in &round.facts.generations {
            let known = next.generations.entry(*cell).or_default();
            for (value, generation) in by_value {
                let min_generation = known.entry(*value).or_insert(*generation);
                *min_generation = (*min_generation).min(*generation);
            }
        }
        let is_fixpoint = next.accesses == knowledge.accesses
            && next.opaque == knowledge.opaque
            && (frozen || next.updates == knowledge.updates && next.generations == knowledge.generations);
        if is_fixpoint && !grown {
            let opaque_cell = knowledge.opaque.iter().find(|cell| context.is_in_buffer(**cell));
            if let Some(cell) = opaque_cell.filter(|_| context.keep_final) {
                let what =
                    format!("the value stored to `{}`", context.module().display_name(cell.object.variable));
                return Err(Problem::Opaque { what }.located_at(SourcePosition::Module));
            }
            findings.extend(std::mem::take(&mut round.findings));
            undefined.extend(std::mem::take(&mut round.undefined));
            // The answer depends on the initial content of memory that is queried and never written.
            for cell in &question.cells {
                let written = knowledge.accesses.get(cell).is_some_and(|touch| touch.writers != 0);
                if !written
                    && context
                        .initial_value(*cell)
                        .map_err(|problem| problem.located_at(SourcePosition::Module))?
                        .is_none()
                {
                    undefined.insert(UndefOrigin::Memory(cell.object, cell.offset, None));
                }
            }
            return assemble::assemble_case(context, name, invocations, question, round, walked, findings)
                .map_err(|problem| problem.located_at(SourcePosition::Module));
        }
        // Widening bound: an execution has at most this many writes, and each value depends on earlier ones.
        // One iteration finds the address, one the sharing, and one the value.
        let writes: u32 = walked.iter().map(|walked| walked.writes).sum();
        frozen |= number > 3 * (writes as usize + 1);
        if number > MAX_ROUNDS {
            let (what, remedy) = ("rounds of values", "; lower --grid or --unroll");
            let budget = Problem::Exhausted { what, bound: MAX_ROUNDS, remedy };
            return Err(budget.located_at(SourcePosition::Module));
        }
        knowledge = next;
    }
    Err(malformed("no round").located_at(SourcePosition::Module))
}

/// Refuses shared cells that overlap and differ in extent.
fn check_overlaps(
    context: &LiftContext<'_>,
    touched: &BTreeMap<MemoryCell, CellAccess>,
) -> Result<(), Problem> {
    let mut before: Option<(MemoryCell, CellAccess)> = None;
    for (cell, touch) in touched {
        if let Some((earlier, union)) = before
            && earlier.object == cell.object
            && earlier.offset.saturating_add(u64::from(earlier.bytes)) > cell.offset
        {
            let union = CellAccess {
                readers: union.readers | touch.readers,
                writers: union.writers | touch.writers,
                has_ordering_access: union.has_ordering_access || touch.has_ordering_access,
            };
            if union.is_shared() {
                let name = context.module().display_name(cell.object.variable);
                return Err(Problem::MixedSize { name, first: cell.bytes, second: earlier.bytes });
            }
            let end = |cell: MemoryCell| cell.offset.saturating_add(u64::from(cell.bytes));
            before = Some((if end(*cell) > end(earlier) { *cell } else { earlier }, union));
            continue;
        }
        before = Some((*cell, *touch));
    }
    Ok(())
}

/// Lists the invocations of the workgroups at `running`, or of the whole grid if that is empty.
fn enumerate_invocations(
    grid: [u32; 3],
    running: Vec<[u32; 3]>,
    local: [u32; 3],
    stage: Stage,
) -> Result<Vec<InvocationId>, Problem> {
    let count = |size: [u32; 3]| size.iter().fold(1_u64, |all, one| all.saturating_mul(u64::from(*one)));
    let (each, bound) = (count(local), MAX_INVOCATIONS as u64);
    let workgroups = if running.is_empty() { count(grid) } else { running.len() as u64 };
    if each.saturating_mul(workgroups) > bound {
        return Err(Problem::Invocations { bound: MAX_INVOCATIONS, one_workgroup: each > bound });
    }
    let running =
        if running.is_empty() { positions_at(&grid.map(|count| (0..count).collect())) } else { running };
    let locals = positions_at(&local.map(|count| (0..count).collect()));
    let invocations = (0..).zip(running).flat_map(|(workgroup_index, workgroup)| {
        (0..).zip(&locals).map(move |(local_index, local)| InvocationId {
            workgroup,
            local: *local,
            workgroup_index,
            local_index,
            stage,
        })
    });
    Ok(invocations.collect())
}
