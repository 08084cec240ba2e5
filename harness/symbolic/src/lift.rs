//! Lifts a kernel with its grid and inputs to litmus tests.
//!
//! The lifter executes every invocation symbolically ([`crate::executor`]) and iterates to a fixpoint over the
//! values that shared memory may hold: each iteration reads values that the previous one may have stored. The
//! result over-approximates the kernel's executions within the unrolling bound. Unspecified inputs get
//! candidate values ([`crate::candidate_values`]), one test for each choice.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet, HashMap};

use crate::context::{Assignment, LiftContext};
use crate::executor::Executor;
use crate::lifted::{Lifted, LiftedCase, LiftedEntry};
use crate::round::{CellAccess, EmittedThread, Round, SharedMemoryFacts};
use crate::value::UndefOrigin;
use crate::{assemble, candidate_values};
use entry_point::dataflow::find_loops;
use entry_point::interlock::InterlockExecutionMode;
use entry_point::launch::{LaunchParameters, positions_at, reflected_push_constants, running_workgroups};
use entry_point::layout::MemoryCell;
use entry_point::question::{NameScope, ResolvedQuestion};
use entry_point::{AnalysisOptions, InvocationId, LiftFinding, Problem, Refusal, launch, unsupported};
use spirv_reader::{Specialized, SpirvModule, Stage};

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
    let (function, stage) = (entry.function, entry.shader_stage());
    launch::check_stage(module, stage, options.grid)?;
    if module.orders_lanes() {
        return Err(unsupported("full lockstep in a memory model").into());
    }
    let launch = LaunchParameters::new(module, options, function)?;
    let LaunchParameters { grid, local_size, config, .. } = launch;
    let (by_id, by_result) = (&launch.values_by_spec_id, &launch.values_by_result);
    let specialized = Specialized::new(module, by_id, by_result, config.map(|_| local_size))?;
    let invocations = match options.only_invocations.len() {
        0 => running_workgroups(options, stage, grid)
            .and_then(|running| enumerate_invocations(grid, running, local_size, stage))?,
        1..=MAX_INVOCATIONS => options.only_invocations.clone(),
        _ => {
            return Err(Problem::Invocations { bound: MAX_INVOCATIONS, one_workgroup: false }.into());
        }
    };
    if !options.buffer_elements.is_empty() || !options.image_elements.is_empty() {
        return Err(entry_point::unsupported("contents of single elements of an array of descriptors").into());
    }
    let subgroup_size = match options.subgroup_size.or(config.map(|config| config[0])) {
        _ if !stage.has_workgroups() => 1,
        size => size.unwrap_or(local_size.iter().product()).max(1),
    };
    let canonical = first_variables(module);
    let mut context = LiftContext {
        specialized: &specialized,
        stage,
        stage_inputs: &options.stage_inputs,
        grid,
        reconverges_maximally: module.reconverges_maximally(function),
        sections: InterlockExecutionMode::from_execution_modes(module.execution_modes(function)),
        local_size,
        subgroup_size,
        is_robust: options.robustness.unwrap_or_default().has_buffers(),
        unroll: options.unroll,
        unroll_open_loops: options.max_open_iterations(),
        deadline: options.deadline.clone(),
        keep_all: options.keep_all,
        keep_final: options.keep_final,
        open: options.open.as_ref(),
        observed: BTreeSet::new(),
        assignment: Assignment::new(),
        inputs: launch.inputs,
        buffers: given_buffers(module, options),
        push: reflected_push_constants(&specialized, grid, local_size),
        push_bytes: &options.push,
        images: &options.images,
        is_annotated: launch.is_annotated,
        canonical,
        loops: find_loops(module),
        dead_variables: RefCell::default(),
    };
    let names = NameScope { specialized: &specialized, canonical: &context.canonical };
    let question = ResolvedQuestion::new(&names, options)?;
    context.observed = question.cells.clone();
    let entry = LiftedEntry { name: &entry.name, function, invocations: &invocations, question: &question };
    lift_all_cases(context, &entry)
}

/// Returns the first variable of the binding of each variable; they alias.
fn first_variables(module: &SpirvModule) -> HashMap<u32, u32> {
    let mut first_of: BTreeMap<(u32, u32), u32> = BTreeMap::new();
    let bound = module.variables.keys().filter_map(|id| Some((*id, module.descriptor_of(*id)?)));
    bound.map(|(id, at)| (id, *first_of.entry(at).or_insert(id))).collect()
}

/// Returns the given contents of each variable.
fn given_buffers<'o>(module: &SpirvModule, options: &'o AnalysisOptions) -> HashMap<u32, &'o [u8]> {
    let given = |id: &u32| Some((*id, options.buffers.get(&module.descriptor_of(*id)?)?.as_slice()));
    module.variables.keys().filter_map(given).collect()
}

/// Returns the assumptions of the analysis.
fn assumptions(context: &LiftContext<'_>) -> Vec<String> {
    let mut notes = Vec::new();
    if !context.module().uses_vulkan_model {
        notes.push(
            "the module's memory model is GLSL450; it is analyzed under the Vulkan model: Coherent and \
             Volatile accesses as non-private, available and visible at queue-family scope, workgroup \
             memory at workgroup scope"
                .to_owned(),
        );
    }
    notes.extend(context.assumed_image_notes());
    notes.extend(context.sections.and_then(|sections| sections.note).map(str::to_owned));
    notes
}

/// Lifts one test for each choice of unspecified values, if it differs from the others.
fn lift_all_cases(mut context: LiftContext<'_>, entry: &LiftedEntry<'_>) -> Result<Lifted, Refusal> {
    let mut findings = BTreeSet::new();
    let mut undefined = BTreeSet::new();
    let mut cases = vec![lift_case(&context, entry, &mut findings, &mut undefined)?];
    // The question may also refer to memory that no invocation writes.
    for cell in &entry.question.cells {
        if context.initial_value(*cell)?.is_none() {
            undefined.insert(UndefOrigin::from_cell(*cell));
        }
    }
    let values = candidate_values::candidate_values(context.specialized, &entry.question.compared_numbers());
    for assignment in candidate_values::enumerate_assignments(&undefined, &values) {
        context.assignment = assignment;
        let next = lift_case(&context, entry, &mut findings, &mut BTreeSet::new())?;
        // Most values lead to the same test as others.
        if cases.iter().all(|known| known.test != next.test) {
            cases.push(next);
        }
    }
    Ok(Lifted {
        entry: entry.name.to_owned(),
        cases,
        is_sampled: !undefined.is_empty(),
        invocations: entry.invocations.to_vec(),
        subgroup_size: context.subgroup_size,
        findings: findings.into_iter().collect(),
        question: entry.question.text.clone(),
        notes: assumptions(&context),
    })
}

/// Lifts one test for the current choice of unspecified values.
fn lift_case(
    context: &LiftContext<'_>,
    entry: &LiftedEntry<'_>,
    findings: &mut BTreeSet<LiftFinding>,
    undefined: &mut BTreeSet<UndefOrigin>,
) -> Result<LiftedCase, Refusal> {
    let mut knowledge = SharedMemoryFacts::default();
    let (mut frozen, mut paths) = (false, 0);
    for number in 0..=MAX_ROUNDS + 1 {
        let mut round = Round::default();
        let mut walked: Vec<EmittedThread> = Vec::new();
        for (thread, identity) in entry.invocations.iter().enumerate() {
            let executor = Executor::new(context, &knowledge, &mut round, thread as u16, identity);
            let executor = executor.execute_all_paths(entry.function)?;
            paths += executor.paths;
            if paths > MAX_PATHS {
                return Err(exhausted("paths of all invocations", MAX_PATHS));
            }
            walked.push(executor);
        }
        check_overlaps(context, &round.facts.accesses)?;
        let mut next = knowledge.clone();
        let has_new_values = next.join(&round.facts, frozen);
        let is_fixpoint = next.accesses == knowledge.accesses
            && next.opaque == knowledge.opaque
            && (frozen || next.updates == knowledge.updates && next.generations == knowledge.generations);
        if is_fixpoint && !has_new_values {
            check_final_values(context, &knowledge)?;
            findings.extend(std::mem::take(&mut round.findings));
            undefined.extend(std::mem::take(&mut round.undefined));
            // The answer depends on the initial content of memory that is queried and never written.
            for cell in &entry.question.cells {
                let written = knowledge.accesses.get(cell).is_some_and(|touch| touch.writers != 0);
                if !written && context.initial_value(*cell)?.is_none() {
                    undefined.insert(UndefOrigin::Memory(cell.object, cell.offset, None));
                }
            }
            return Ok(assemble::assemble_case(context, entry, round, &walked, findings)?);
        }
        // Widening bound: an execution has at most this many writes, and each value depends on earlier ones.
        // One iteration finds the address, one the sharing, and one the value.
        let writes: u32 = walked.iter().map(|walked| walked.writes).sum();
        frozen |= number > 3 * (writes as usize + 1);
        knowledge = next;
    }
    Err(exhausted("rounds of values", MAX_ROUNDS))
}

fn exhausted(what: &'static str, bound: usize) -> Refusal {
    Problem::Exhausted { what, bound, remedy: "; lower --grid or --unroll" }.into()
}

/// Refuses a queried buffer with a value that no test has.
fn check_final_values(context: &LiftContext<'_>, facts: &SharedMemoryFacts) -> Result<(), Problem> {
    let mut opaque = facts.opaque.iter().filter(|_| context.keep_final);
    match opaque.find(|cell| context.is_in_buffer(**cell)) {
        Some(cell) => {
            let name = context.module().display_name(cell.object.variable);
            Err(Problem::Opaque { what: format!("the value stored to `{name}`") })
        }
        None => Ok(()),
    }
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
            let union = union.union(*touch);
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
