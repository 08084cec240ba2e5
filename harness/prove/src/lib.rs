//! Proves that an entry point has no data race for every grid and input.
//!
//! Two arbitrary different invocations are compared, as GPUVerify (Betts and others, TOPLAS 2015) and Faial do for other
//! languages. The entry point is executed symbolically once ([`execute`]); the second invocation is the first one with
//! other symbols. Barriers cut the execution of a workgroup into intervals for each storage class ([`intervals`]). Two
//! accesses that may be unordered, of which one writes, must not overlap; a SAT solver decides what simplification and
//! ranges leave open ([`decide`]).
//!
//! Sound direction: a proof covers every execution of the module, within its printed assumptions. A counterexample is a
//! candidate; the caller replays it. Not modelled: order by atomics, fences and subgroup operations (never assumed), and
//! stages other than compute.

mod assumption;
mod bounds;
mod condition;
mod counterexample;
mod decide;
mod execute;
mod graph;
mod input;
mod instruction;
mod intervals;
mod memory;
mod names;
mod ordinary;
mod prover;
mod radix;
mod read_only;
mod refusal;
mod smt;
mod term;
mod value;

use std::collections::{BTreeMap, BTreeSet, HashMap};

use rspirv::spirv::{BuiltIn, StorageClass};
use spirv_reader::{Specialized, SpirvConstant, SpirvModule, SpirvType, Stage};

pub use crate::decide::Stop;
use crate::execute::{Executor, MAX_WORKGROUPS};
use crate::graph::Graph;
use crate::input::GivenValue;
pub use crate::input::{InputMemory, InputValue, RacyInputs};
use crate::prover::{Answer, PairKind, Prover, Query};
use crate::read_only::writes_no_shared_memory;
pub use crate::refusal::{Unproved, UnprovedReason};
pub use crate::smt::SmtSolver;
use crate::term::{FunctionKind, Operator, TermArena, TermId, Uniformity};

/// The steps of a proof by default, of which each takes microseconds.
pub const DEFAULT_STEPS: u64 = 400_000;

/// The name of the solver of `solver`.
const BUILT_IN_SOLVER: &str = "batsat";

/// The steps for the counterexamples of a report.
const STEPS_OF_COUNTEREXAMPLES: u64 = 100_000;
/// Upper bound on the counterexamples of a report.
const MAX_COUNTEREXAMPLES: usize = 4;

/// Options of a proof.
#[derive(Clone, Debug, Default)]
pub struct ProofOptions {
    /// The entry point; may be omitted if there is only one.
    pub entry: Option<String>,
    /// Values of specialization constants by `SpecId`; others are symbols.
    pub specialization: HashMap<u32, u64>,
    /// The number of workgroups. Default: any.
    pub grid: Option<[u32; 3]>,
    /// Given bytes of inputs, from an offset.
    pub given: Vec<(InputMemory, u64, Vec<u8>)>,
    /// Conditions on the inputs, such as `pc.stride >= pc.width`.
    pub assumed: Vec<String>,
    /// Upper bound on the steps of the solver; 0 for the default. The search for conditions has as many again.
    pub steps: u64,
}

/// The result of an attempt to prove an entry point.
#[derive(Clone, Debug, Default)]
pub struct ProofReport {
    /// True if no two invocations race under the conditions and assumptions.
    pub is_proved: bool,
    /// The number of workgroups of each dimension; `None` for any.
    pub grid: [Option<u32>; 3],
    /// Conditions on the inputs.
    pub conditions: Vec<String>,
    /// Given and inferred conditions in the form of [`ProofOptions::assumed`].
    pub assumable: Vec<String>,
    /// Limits of the proof, which hold in ordinary executions.
    pub assumptions: Vec<String>,
    /// Why there is no proof.
    pub unproved: Vec<Unproved>,
    /// Candidates for replay, each with the obligation that it refutes, or [`UnprovedReason::Budget`] if they may violate a
    /// condition that was not found.
    pub counterexamples: Vec<(Unproved, RacyInputs)>,
    /// Inputs that satisfy inferred conditions.
    pub example: Option<RacyInputs>,
    /// The solvers that decided something, as text.
    pub solver: String,
    /// True if more steps or time might give another report.
    pub is_cut_off: bool,
}

/// Attempts to prove that an entry point has no data race, until `stop` returns true.
///
/// An installed solver decides queries that the built-in solver cannot decide.
pub fn prove<'m>(
    module: &'m SpirvModule,
    options: &ProofOptions,
    stop: Option<Stop<'m>>,
    solver: Option<SmtSolver<'m>>,
) -> ProofReport {
    let mut report = ProofReport { solver: BUILT_IN_SOLVER.to_owned(), ..ProofReport::default() };
    if let Err(unproved) = attempt(module, options, (stop, solver), &mut report) {
        report.is_proved = false;
        report.is_cut_off |= unproved.reason == UnprovedReason::Budget;
        report.unproved.push(unproved);
    }
    report.unproved.sort();
    report.unproved.dedup();
    report
}

fn attempt<'m>(
    module: &'m SpirvModule,
    options: &ProofOptions,
    (stop, solver): (Option<Stop<'m>>, Option<SmtSolver<'m>>),
    report: &mut ProofReport,
) -> Result<(), Unproved> {
    let malformed = |what: String| Unproved::new(UnprovedReason::Malformed(what));
    let entry = module.find_entry(options.entry.as_deref()).map_err(|error| malformed(error.to_string()))?;
    match Stage::from_execution_model(entry.model) {
        Some(Stage::Compute) => {}
        Some(Stage::Vertex | Stage::Fragment)
            if options.assumed.is_empty() && writes_no_shared_memory(module, entry.function) =>
        {
            report.is_proved = true;
            return Ok(());
        }
        _ => {
            let code = module.functions.get(&entry.function).map(|function| &function.code);
            return Err(Unproved::at(UnprovedReason::Stage, code.and_then(|code| code.first())));
        }
    }
    let specialized = Specialized::new(module, &options.specialization, &HashMap::new(), None)
        .map_err(|problem| malformed(problem.to_string()))?;
    let graph = Graph::new(module, entry.function)?;
    let mut terms = TermArena::default();
    let (symbolic, fixed) = symbolic_constants(module, options);
    let local_size = local_size(module, &specialized, entry.function, &symbolic, &mut terms)
        .ok_or_else(|| malformed("a local size that is not three numbers".to_owned()))?;
    let mut executor = Executor::new(module, &specialized, graph, terms, local_size);
    executor.symbolic_constants = symbolic;
    executor.summary.given.clone_from(&options.given);
    let fixed = fixed.into_iter().map(|(name, value)| (name, GivenValue::Integer(value.into())));
    executor.summary.used.extend(fixed);
    executor.summary.stop = stop;
    let given_counts = options.grid.into_iter().flatten().map(u64::from);
    executor.summary.max_workgroups = given_counts.chain([MAX_WORKGROUPS]).max().unwrap_or(MAX_WORKGROUPS);
    let summary = executor.run()?;
    let steps = if options.steps == 0 { DEFAULT_STEPS } else { options.steps };
    let used = used_dimensions(&summary);
    let given = options.grid.map_or([None; 3], |grid| grid.map(Some));
    let mut prover = Prover::new(summary, given, steps, solver);
    for text in &options.assumed {
        let conditions = prover.parse_condition(text).map_err(|(column, expected)| {
            Unproved::new(UnprovedReason::Condition { text: text.clone(), column, expected })
        })?;
        for condition in conditions {
            report.assumable.push(condition.text);
            prover.conditions.push(condition.claim);
        }
    }
    if !prover.conditions.is_empty() && prover.is_contradictory() {
        return Err(Unproved::new(UnprovedReason::Condition {
            text: options.assumed.join(" and "),
            column: 1,
            expected: "conditions that some input and grid satisfy".to_owned(),
        }));
    }
    prover.find_exact_forms();
    let mut conflicts = prover.conflict_queries()?;
    let are_different = |query: &Query| query.kind == PairKind::DifferentWorkgroups;
    let unused = (0..3).filter(|axis| !used[*axis] && options.grid.is_none());
    let unused: Vec<usize> = unused.filter(|_| !waits_alone(&prover.summary, used)).collect();
    // Workgroups that differ in an unused dimension do the same. A shader that uses none is written for one workgroup.
    let mut across = conflicts.iter().filter(|query| are_different(query));
    if !unused.is_empty() && across.all(|query| matches!(prover.answer(query), Answer::Proved)) {
        conflicts.retain(|query| !are_different(query));
    } else if !unused.is_empty() {
        unused.iter().for_each(|axis| prover.grid[*axis] = Some(1));
        conflicts = prover.conflict_queries()?;
    }
    let mut queries = prover.barrier_queries();
    queries.extend(conflicts);
    let (mut exact, mut refuted) = (BTreeSet::new(), Vec::new());
    for query in queries {
        match prover.answer(&query) {
            Answer::Proved => {}
            Answer::ProvedIfExact(terms) => exact.extend(terms),
            Answer::Refuted(model) => refuted.push((query, model)),
            Answer::Open => report.unproved.push(unproved(&query, UnprovedReason::Budget)),
        }
    }
    report.is_cut_off = prover.steps == 0;
    if !refuted.is_empty() {
        prover.steps = steps;
        let found = prover.find_conditions(&refuted);
        report.is_cut_off |= prover.steps == 0;
        prover.steps = prover.steps.max(STEPS_OF_COUNTEREXAMPLES);
        match found {
            Ok(found) => {
                report.assumable.extend(found.conditions.into_iter().map(|condition| condition.text));
                report.example = Some(prover.read_inputs(&found.example));
                exact.extend(found.exact);
                refuted.truncate(if report.unproved.is_empty() { refuted.len() } else { 0 });
            }
            // The inputs may violate a condition that was not found.
            Err(true) => {
                report.unproved.extend(refuted.iter().map(|one| unproved(&one.0, UnprovedReason::Budget)));
                refuted.iter_mut().for_each(|(query, _)| query.reason = UnprovedReason::Budget);
            }
            Err(false) => {
                report
                    .unproved
                    .extend(refuted.iter().map(|(query, _)| unproved(query, query.reason.clone())));
            }
        }
        for (query, model) in refuted.iter().take(MAX_COUNTEREXAMPLES) {
            let counterexample = prover.counterexample(query, model);
            report.counterexamples.push((unproved(query, query.reason.clone()), counterexample));
        }
    }
    if report.example.is_none() && !options.assumed.is_empty() {
        report.example = prover.example().map(|model| prover.read_inputs(&model));
    }
    report.conditions =
        prover.summary.used.iter().map(|(name, value)| format!("{name} == {value}")).collect();
    report.conditions.extend_from_slice(&report.assumable);
    // A condition of a number includes the sums and products in it.
    let is_whole = |term: &&TermId| {
        exact.iter().all(|other| other == *term || !prover.summary.terms.has_part(*other, **term))
    };
    let wraps = exact.iter().filter(is_whole).map(|term| names::wrap_text(&prover.summary, *term));
    report.conditions.extend(wraps.collect::<BTreeSet<String>>());
    let unbounded = prover.unbounded_names();
    if let Some(solver) = prover.solver {
        let (solver, is_used) = (solver.name.to_owned(), prover.has_used_solver);
        report.solver += &if is_used { format!(", {solver}") } else { String::new() };
        let failed = prover.solver_failure.take().filter(|_| !report.unproved.is_empty());
        let failed = failed.map(|why| Unproved::new(UnprovedReason::Solver { solver, why }));
        report.unproved.extend(failed);
    }
    report.is_proved = report.unproved.is_empty();
    report.is_cut_off |= prover.steps == 0 || prover.summary.is_stopped();
    report.grid = prover.grid;
    report.assumptions = assumptions(&prover);
    report.conditions.extend(unbounded.iter().map(|name| assumption::in_bounds_text(name)));
    Ok(())
}

/// Returns what a query leaves open, at its first instruction.
fn unproved(query: &Query, reason: UnprovedReason) -> Unproved {
    let (line, place) = query.spots[0];
    Unproved { reason, line, place }
}

/// Returns the specialization constants without a given value: those that are symbols, and the default values, by name, of
/// those that decide the size of an array.
fn symbolic_constants(
    module: &SpirvModule,
    options: &ProofOptions,
) -> (BTreeSet<u32>, BTreeMap<String, u64>) {
    let mut fixed = BTreeSet::new();
    let mut open: Vec<u32> = module
        .types
        .iter()
        .filter_map(|(id, ty)| match ty {
            SpirvType::Array { length, .. } if !is_whole_workgroup_array(module, *id) => Some(*length),
            _ => None,
        })
        .collect();
    while let Some(id) = open.pop() {
        open.extend(same_constants(module, id).filter(|same| !fixed.contains(same) && *same != id));
        if fixed.insert(id)
            && let Some((_, SpirvConstant::Composite(parts) | SpirvConstant::Operation(_, parts))) =
                module.constants.get(&id)
        {
            open.extend(parts);
        }
    }
    let is_open = |id: &u32| {
        let specialization = module.decorations_of(*id).specialization;
        specialization.is_some_and(|number| !options.specialization.contains_key(&number))
    };
    let open: BTreeSet<u32> = module.constants.keys().copied().filter(is_open).collect();
    let defaults = open.intersection(&fixed).filter_map(|id| match module.constants.get(id) {
        Some((_, SpirvConstant::Scalar(value))) => Some((module.display_name(*id), *value)),
        _ => None,
    });
    let defaults = defaults.collect();
    (open.difference(&fixed).copied().collect(), defaults)
}

/// Returns true for an array whose length decides no address: whole variables in workgroup memory are its only use.
fn is_whole_workgroup_array(module: &SpirvModule, array: u32) -> bool {
    let is_used = |ty: &SpirvType| match ty {
        SpirvType::Array { element, .. } | SpirvType::RuntimeArray { element } => *element == array,
        SpirvType::Struct { members } => members.contains(&array),
        SpirvType::Pointer { class, pointee } => {
            *pointee == array && *class != rspirv::spirv::StorageClass::Workgroup
        }
        _ => false,
    };
    let is_type = |ty: &u32| *ty == array;
    !module.types.values().any(is_used)
        && !module.constants.values().any(|(ty, _)| is_type(ty))
        && !module.functions.values().any(|function| function.types.values().any(is_type))
}

/// Returns the size of a workgroup, with symbols for specialization constants.
fn local_size(
    module: &SpirvModule,
    specialized: &Specialized<'_>,
    function: u32,
    symbolic: &BTreeSet<u32>,
    terms: &mut TermArena,
) -> Option<[TermId; 3]> {
    let sizes = specialized.local_size(function).ok()?;
    let decorated = module.constants.iter().find_map(|(id, (_, constant))| match constant {
        SpirvConstant::Composite(parts)
            if module.decorations_of(*id).built_in == Some(BuiltIn::WorkgroupSize) =>
        {
            Some(parts.clone())
        }
        _ => None,
    });
    let declared = module.declared_local_size(function).filter(|(_, are_ids)| *are_ids);
    let ids = decorated.or_else(|| declared.map(|(ids, _)| ids.to_vec()));
    let mut all = Vec::new();
    for (axis, size) in sizes.iter().enumerate() {
        let id = ids.as_ref().and_then(|ids| ids.get(axis)).filter(|id| symbolic.contains(id));
        all.push(match id {
            Some(id) => {
                let range = (1, execute::MAX_LOCAL_SIZE);
                let kind = FunctionKind::Specialization(representative_constant(module, *id));
                let function = terms.named_function(kind, 32, range, Uniformity::Grid);
                terms.apply(function, &[])
            }
            None => terms.constant(32, u64::from(*size)),
        });
    }
    all.try_into().ok()
}

/// Returns the specialization constants with the number of a given one, which share its value.
fn same_constants(module: &SpirvModule, id: u32) -> impl Iterator<Item = u32> {
    let number = |id: u32| module.decorations_of(id).specialization;
    let is_same = move |other: &u32| *other == id || number(id).is_some() && number(*other) == number(id);
    module.constants.keys().copied().filter(is_same)
}

/// Returns the constant that represents those with the number of a given one: the first with a name, else the first.
pub(crate) fn representative_constant(module: &SpirvModule, id: u32) -> u32 {
    let rank = |id: &u32| (module.source_name(*id).is_none(), *id);
    same_constants(module, id).min_by_key(rank).unwrap_or(id)
}

/// Returns true if only invocations of other workgroups can end a loop, although no workgroup uses its position.
fn waits_alone(summary: &execute::Summary<'_>, used: [bool; 3]) -> bool {
    let is_awaited =
        |access: &execute::Access| access.atomic.is_some() && summary.graph.loop_of[access.node].is_some();
    let is_alone = summary.local_size.iter().all(|size| summary.terms.constant_of(*size) == Some(1));
    is_alone && used == [false; 3] && summary.accesses.iter().any(is_awaited)
}

/// Returns the dimensions of the grid whose ids or size some computation or stored value of the shader uses.
fn used_dimensions(summary: &execute::Summary<'_>) -> [bool; 3] {
    let terms = &summary.terms;
    // The built-in values themselves, which are computed for every dimension: ids, and global ids as their sums.
    let axis_of = |id: TermId| match terms.kind_of(id) {
        Some(FunctionKind::GroupId(axis) | FunctionKind::GroupCount(axis)) => Some(*axis),
        _ => None,
    };
    let product_axis = |id: TermId| match terms.term(id).operator {
        Operator::Multiply => terms.term(id).arguments.iter().find_map(|one| axis_of(*one)),
        _ => axis_of(id),
    };
    let built_in = |id: TermId| -> Option<usize> {
        let (atoms, constant) = terms.linear_form(id);
        let is_local = |id, axis| terms.kind_of(id) == Some(&FunctionKind::LocalId(axis));
        match atoms.as_slice() {
            [(only, _)] if constant == 0 => product_axis(*only),
            [(a, _), (b, _)] if constant == 0 => product_axis(*a)
                .filter(|axis| is_local(*b, *axis))
                .or_else(|| product_axis(*b).filter(|axis| is_local(*a, *axis))),
            _ => None,
        }
    };
    let mut used = [false; 3];
    for access in &summary.accesses {
        for roots in [&access.values, access.location.terms()] {
            terms.for_each_application(roots, |id, _| {
                axis_of(id).into_iter().for_each(|axis| used[axis] = true);
            });
        }
    }
    for id in terms.ids().filter(|id| built_in(*id).is_none()) {
        for argument in &terms.term(id).arguments {
            built_in(*argument).into_iter().for_each(|axis| used[axis] = true);
        }
    }
    used
}

/// Returns the assumptions of a proof as sentences' parts.
fn assumptions(prover: &Prover<'_>) -> Vec<String> {
    use StorageClass::{StorageBuffer, Uniform, UniformConstant};
    let (summary, module) = (&prover.summary, prover.summary.module);
    let is_workgroup = |access: &execute::Access| access.class == vocabulary::StorageClass::Workgroup;
    let descriptors = module
        .variables
        .iter()
        .filter(|(_, variable)| matches!(variable.class, StorageBuffer | UniformConstant | Uniform));
    let place = |id: &u32| (module.decorations_of(*id).set, module.decorations_of(*id).binding);
    let places: BTreeSet<_> = descriptors.map(|(id, _)| place(id)).collect();
    let reads_unwritten = |access: &execute::Access| {
        let variable = module.variables.get(&access.descriptor.variable);
        is_workgroup(access) && !access.writes && variable.is_some_and(|variable| variable.initializer == 0)
    };
    let is_indexed = |access: &execute::Access| match access.location {
        execute::Location::Bytes { offset, .. } => {
            !is_workgroup(access) && summary.terms.constant_of(offset).is_none()
        }
        execute::Location::Texel { .. } => false,
    };
    let any = |holds: &dyn Fn(&execute::Access) -> bool| summary.accesses.iter().any(holds);
    let has_symbolic_size = summary.local_size.iter().any(|size| summary.terms.constant_of(*size).is_none());
    let (groups, size) = (summary.max_workgroups, execute::MAX_LOCAL_SIZE);
    let all = [
        (
            prover.grid.contains(&None),
            format!("at most {groups} workgroups in each dimension, counted from 0"),
        ),
        (
            places.len() > 1 && any(&|one| one.writes && !is_workgroup(one)),
            "different descriptors are different memory".to_owned(),
        ),
        (has_symbolic_size, format!("at most {size} invocations in each dimension of a workgroup")),
        (summary.assumes_divisors, "no quotient is undefined".to_owned()),
        (
            summary.assumes_written || any(&reads_unwritten),
            "variables are written before they are read".to_owned(),
        ),
        (!summary.graph.loops.is_empty(), "loops end".to_owned()),
        (prover.uses_tickets, "counters do not wrap".to_owned()),
        (prover.uses_elections, "subgroups reconverge where branches join".to_owned()),
        (any(&is_indexed), "accesses of buffers are in bounds".to_owned()),
    ];
    all.into_iter().filter_map(|(is_assumed, text)| is_assumed.then_some(text)).collect()
}
