//! Translation validation: is every behaviour of a module AFTER a compiler one of the module BEFORE it?
//!
//! Three methods answer, each sound in one direction:
//!
//! 1. A simulation ([`simulation`]) compares the memory events of each invocation. Every load of shared memory
//!    may return any value of a set, so the proof holds in every context: `refines`, closed and open.
//! 2. In a **closed** world, the final contents and defects of the whole grid are compared, by the walk or by
//!    the model: `refines` or `breaks` for these inputs.
//! 3. In an **open** world, a search looks for an environment in which AFTER has an outcome that the model forbids for
//!    BEFORE ([`environment`]): `breaks`.
//!
//! If none decides, the answer is `unknown`. A BEFORE without defined behaviour allows anything.
//!
//! Bounds: loops that depend on read values have the lifter's bound. In the simulation, a load returns any number;
//! operations on it are functions ([`crate::function`]). A kernel that cannot be executed with it, for example since
//! a result of a subgroup decides a branch, is not proved. Environments write 0, 1, a number near each constant of
//! the code, and an unusual one. Descriptors do not alias unless they have one binding, also by an alias in the
//! options.

mod condition;
mod environment;
mod event;
mod expression;
mod program;
mod simulation;

use std::collections::{BTreeMap, BTreeSet};

use model::{Budget, Model};

use crate::choose::InputNeeds;
use crate::dispatch::plan_dispatch;
use crate::error::{Problem, Refusal, SourcePosition};
use crate::finding::{FindingKind, InvocationId, Spot};
use crate::grid::{GridReport, GridVerdict, NeededInput};
use crate::judge::judge;
use crate::launch::Launch;
use crate::lift::{MAX_INVOCATIONS, lift};
use crate::lifted::Lifted;
use crate::open::{OpenMemory, OpenPart, OpenParts, is_open};
use crate::options::AnalysisOptions;
use crate::outcomes::{FinalContents, enumerate_contents};
use crate::tried;
use environment::{EnvironmentSearch, find_environment};
use event::{CellKey, MemoryKey};
use expression::Expression;
use program::Program;
use simulation::{Mismatch, NoProof, Simulation};
use spirv_reader::{SpirvModule, Stage};

/// Upper bound on the invocations that are compared one by one.
const MAX_COMPARED: usize = 4_096;
/// Upper bound on the values that others write, other than 0 and 1.
const MAX_OPEN_VALUES: usize = 6;
/// A value that no constant of the code is likely to equal.
const UNUSUAL: u64 = 42;

/// A comparison of two modules.
#[derive(Clone, Copy)]
pub struct RefinementQuery<'q> {
    /// The model that decides races and outcomes.
    pub model: &'q Model,
    /// The limit of the model.
    pub budget: Budget<'q>,
    /// When to give up.
    pub stop: &'q dyn Fn() -> bool,
    /// The memory that others access; `None` in the inner option for all. Default: a closed world.
    pub open: Option<&'q OpenParts>,
}

/// The inputs and contexts that an answer covers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RefinementCoverage {
    /// Every context and all contents of shared memory, for these constants and uniforms.
    EveryContext,
    /// Only these inputs.
    GivenInputs,
    /// Only these inputs, for which BEFORE has no defined behaviour.
    UndefinedBefore,
}

/// The verdict of a comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RefinementVerdict {
    /// Every behaviour of AFTER is one of BEFORE.
    Refines,
    /// AFTER refines BEFORE and orders more.
    Stronger,
    /// AFTER has a behaviour that BEFORE does not have.
    Breaks,
    /// Not decided.
    Unknown,
}

/// A behaviour of AFTER that BEFORE does not have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Counterexample {
    /// `outcome`, or the kind of a finding.
    pub kind: &'static str,
    /// The description.
    pub message: String,
    /// The position in BEFORE.
    pub before: Option<Spot>,
    /// The position in AFTER.
    pub after: Option<Spot>,
    /// The steps of other threads.
    pub environment: Vec<String>,
}

/// The answer of a comparison.
#[derive(Clone, Debug)]
pub struct Refinement {
    /// The verdict.
    pub verdict: RefinementVerdict,
    /// The reason for the verdict, as one sentence.
    pub reason: String,
    /// The inputs that the verdict covers.
    pub coverage: RefinementCoverage,
    /// The inputs on which a proof depends.
    pub needs: Vec<NeededInput>,
    /// The behaviour that breaks refinement.
    pub difference: Option<Counterexample>,
}

impl Refinement {
    /// Returns an answer for the given inputs.
    fn new(verdict: RefinementVerdict, reason: impl Into<String>) -> Refinement {
        let coverage = RefinementCoverage::GivenInputs;
        Refinement { verdict, reason: reason.into(), coverage, needs: Vec::new(), difference: None }
    }

    fn unknown(reason: impl Into<String>) -> Refinement {
        Refinement::new(RefinementVerdict::Unknown, reason)
    }

    fn undefined_before(why: &str) -> Refinement {
        let reason = format!("BEFORE has no defined behaviour ({why}), so it allows anything");
        let coverage = RefinementCoverage::UndefinedBefore;
        Refinement { coverage, ..Refinement::new(RefinementVerdict::Refines, reason) }
    }

    fn breaks(difference: Counterexample) -> Refinement {
        let reason = difference.message.clone();
        Refinement { difference: Some(difference), ..Refinement::new(RefinementVerdict::Breaks, reason) }
    }

    /// Combines the answers for several choices of inputs, and makes a proof `unknown` that inputs could refute.
    ///
    /// `needs` are the inputs that no option supplies and that the answers depend on.
    pub fn combine(answers: Vec<Refinement>, needs: &InputNeeds) -> Option<Refinement> {
        // The weakest answer counts: one choice of inputs suffices to break refinement.
        let rank = |answer: &Refinement| match answer.verdict {
            RefinementVerdict::Breaks => 0,
            RefinementVerdict::Unknown => 1,
            RefinementVerdict::Refines => 2,
            RefinementVerdict::Stronger => 3,
        };
        let answer = answers.into_iter().min_by_key(rank)?;
        if matches!(answer.verdict, RefinementVerdict::Breaks | RefinementVerdict::Unknown) {
            return Some(answer);
        }
        let depends = |needed: &&NeededInput| match answer.coverage {
            RefinementCoverage::EveryContext => !needed.is_contents && !needed.lines.is_empty(),
            RefinementCoverage::GivenInputs => true,
            RefinementCoverage::UndefinedBefore => needs.decide_findings,
        };
        let needs: Vec<NeededInput> = needs.inputs.iter().filter(depends).cloned().collect();
        let verdict = if needs.is_empty() { answer.verdict } else { RefinementVerdict::Unknown };
        Some(Refinement { verdict, needs, ..answer })
    }
}

/// Compares an entry point of two modules. Both get the inputs of `options`.
///
/// # Errors
/// Fails if the modules have different interfaces.
pub fn refine(
    before: (&SpirvModule, &AnalysisOptions),
    after: (&SpirvModule, &AnalysisOptions),
    query: &RefinementQuery<'_>,
) -> Result<Refinement, Refusal> {
    check_interfaces(before, after)?;
    if before.0.words() == after.0.words() {
        let answer = Refinement::new(RefinementVerdict::Refines, "the modules are equal, in every context");
        return Ok(Refinement { coverage: RefinementCoverage::EveryContext, ..answer });
    }
    let judged = judge(before.0, before.1, query.model, query.budget);
    let undefined = judged.as_ref().ok().and_then(undefined_reason);
    // A module without defined behaviour allows anything. In an open world, that holds for these contents of
    // memory: an environment that acts after all invocations of BEFORE orders none of them. Other contents
    // may be free of races.
    if let Some(undefined) = undefined.as_deref().filter(|_| query.open.is_none()) {
        return Ok(Refinement::undefined_before(undefined));
    }
    let proof = prove_by_simulation(before, after, query);
    let (mismatch, why) = match proof {
        Proof::Complete { is_stronger, coverage } => {
            let verdict = if is_stronger { RefinementVerdict::Stronger } else { RefinementVerdict::Refines };
            let answer = Refinement::new(verdict, coverage);
            return Ok(Refinement { coverage: RefinementCoverage::EveryContext, ..answer });
        }
        Proof::OrderOnly(why) | Proof::Limit(why) => (None, why),
        Proof::Mismatch(mismatch) => {
            let found =
                query.open.and_then(|open| search_environment(before, after, (&mismatch, open), query));
            if let Some(difference) = found {
                return Ok(Refinement::breaks(difference));
            }
            let why = mismatch.as_ref().map_or_else(
                || "no rule explains a change of the events".to_owned(),
                |mismatch| mismatch.what.clone(),
            );
            (mismatch, why)
        }
    };
    if let Some(undefined) = undefined {
        // Without a branch on a read value, the behaviour is undefined for all contents of memory.
        let open = OpenMemory { values: Some(open_values(&[before])), ..OpenMemory::default() };
        let lifted = lift(before.0, &open_options(before.1, open, &[])).ok();
        let threads = lifted.iter().flat_map(|lifted| &lifted.cases).flat_map(|case| &case.test.threads);
        let mut code = threads.flat_map(|thread| &thread.instructions);
        let branches = |one: &litmus::Instruction| {
            matches!(one.kind, litmus::InstructionKind::Flow(litmus::Flow::Branch { .. }))
        };
        if lifted.is_some() && !code.any(branches) {
            return Ok(Refinement::undefined_before(&undefined));
        }
        return Ok(Refinement::unknown(format!(
            "BEFORE has no defined behaviour for these contents of memory ({undefined}), and may have one for others; {why}"
        )));
    }
    // In an open world, equal contents of one closed run prove nothing.
    if query.open.is_some() {
        let mut unknown = Refinement::unknown(format!(
            "{why}; no environment was found that shows it (of one thread, for at most {MAX_INVOCATIONS} invocations)"
        ));
        if mismatch.is_none() {
            unknown.reason = why;
        }
        return Ok(unknown);
    }
    Ok(compare_contents(before, after, judged.as_ref().ok(), &why, query))
}

/// Checks that both modules can be given the same inputs.
fn check_interfaces(
    (before, before_options): (&SpirvModule, &AnalysisOptions),
    (after, after_options): (&SpirvModule, &AnalysisOptions),
) -> Result<(), Refusal> {
    let nowhere = |problem: Problem| problem.located_at(SourcePosition::Module);
    let different = |what: String| nowhere(Problem::Input(what));
    let first = before.find_entry(before_options.entry.as_deref())?;
    let second = after.find_entry(after_options.entry.as_deref())?;
    if first.shader_stage() != second.shader_stage() {
        return Err(different(format!(
            "the stage of BEFORE is {:?} and that of AFTER is {:?}",
            first.shader_stage(),
            second.shader_stage()
        )));
    }
    let size = |module: &SpirvModule, options: &AnalysisOptions, function: u32| {
        Launch::new(module, options, function).map(|launch| launch.local_size).map_err(nowhere)
    };
    let sizes = [size(before, before_options, first.function)?, size(after, after_options, second.function)?];
    if sizes[0] != sizes[1] {
        return Err(different(format!(
            "the workgroup size of BEFORE is {:?} and that of AFTER is {:?}",
            sizes[0], sizes[1]
        )));
    }
    // A compiler may remove all uses of a descriptor, but not add one.
    let (known, more) = (before.descriptors(), after.descriptors());
    if let Some((set, binding)) = more.difference(&known).next() {
        return Err(different(format!(
            "AFTER uses the descriptor {set}.{binding}, which BEFORE does not have"
        )));
    }
    Ok(())
}

/// Returns why a kernel has no defined behaviour.
fn undefined_reason(report: &GridReport) -> Option<String> {
    let found = report.findings.iter().find(|found| leaves_nothing_defined(found.kind))?;
    Some(format!("{}: {}", found.kind.name(), found.message))
}

fn leaves_nothing_defined(kind: FindingKind) -> bool {
    match kind {
        FindingKind::Race
        | FindingKind::Lockstep
        | FindingKind::UnpublishedRead
        | FindingKind::DivergentBarrier
        | FindingKind::OutOfBounds
        | FindingKind::UndefinedBehaviour => true,
        FindingKind::UninitialisedRead | FindingKind::Hang | FindingKind::Assertion => false,
    }
}

/// Returns true for defects that a compiler may not add.
///
/// An undefined value may become visible by a legal change.
fn is_new_defect(kind: FindingKind) -> bool {
    leaves_nothing_defined(kind) || kind == FindingKind::Hang
}

/// Returns true if contents are undefined only because of an undefined value.
fn is_value_undefined(reason: &str) -> bool {
    reason.starts_with(FindingKind::UninitialisedRead.name())
}

/// The result of the simulation of all invocations.
enum Proof {
    Complete {
        is_stronger: bool,
        coverage: String,
    },
    /// The order of the events agrees, but their values are not compared.
    OrderOnly(String),
    Mismatch(Option<Mismatch>),
    Limit(String),
}

/// Returns the options for lifting with all shared memory open.
fn open_options(options: &AnalysisOptions, open: OpenMemory, only: &[InvocationId]) -> AnalysisOptions {
    AnalysisOptions {
        keep_all: true,
        keep_final: false,
        assertion: None,
        ignore_filter: true,
        only_invocations: only.to_vec(),
        open: Some(open),
        ..options.clone()
    }
}

/// Returns options for lifting a kernel whose memory others access.
pub fn with_open_memory(
    module: &SpirvModule,
    options: &AnalysisOptions,
    parts: OpenParts,
) -> AnalysisOptions {
    let values = Some(open_values(&[(module, options)]));
    AnalysisOptions { open: Some(OpenMemory { parts, values, functions: false }), ..options.clone() }
}

/// Returns the values that others may write, from the constants of modules.
fn open_values(modules: &[(&SpirvModule, &AnalysisOptions)]) -> Vec<u64> {
    let mut values = vec![0, 1];
    for (module, options) in modules {
        let near = crate::context::with_context(module, options, |setting| {
            Ok(tried::values(setting, &BTreeSet::new()))
        });
        for value in near.unwrap_or_default() {
            if !values.contains(&value) && values.len() < MAX_OPEN_VALUES + 2 {
                values.push(value);
            }
        }
    }
    if !values.contains(&UNUSUAL) {
        values.push(UNUSUAL);
    }
    values
}

/// Lists the invocations of a dispatch, up to a bound, and returns their number.
fn list_invocations(
    module: &SpirvModule,
    options: &AnalysisOptions,
) -> Result<(Vec<InvocationId>, u64), Refusal> {
    let nowhere = |problem: Problem| problem.located_at(SourcePosition::Module);
    let entry = module.find_entry(options.entry.as_deref())?;
    let stage: Stage = entry.shader_stage();
    let launch = Launch::new(module, options, entry.function).map_err(nowhere)?;
    let count = |size: [u32; 3]| size.iter().fold(1_u64, |all, one| all.saturating_mul(u64::from(*one)));
    let (local, groups) = (count(launch.local_size), count(launch.grid));
    let at = |index: u64, size: [u32; 3]| {
        let (x, y) = (u64::from(size[0].max(1)), u64::from(size[1].max(1)));
        [(index % x) as u32, (index / x % y) as u32, (index / x / y) as u32]
    };
    let total = local.saturating_mul(groups);
    let listed = (0..total.min(MAX_COMPARED as u64)).map(|index| {
        let (group, own) = (index / local.max(1), index % local.max(1));
        InvocationId {
            workgroup: at(group, launch.grid),
            local: at(own, launch.local_size),
            workgroup_index: group as u32,
            local_index: own as u32,
            stage,
        }
    });
    Ok((listed.collect(), total))
}

/// Simulates each invocation of AFTER by BEFORE.
///
/// First with functions of the numbers that loads return, then with operations as far as the lifter has them. If
/// the code cannot be executed for every number, some numbers are tried. They may show where the modules differ,
/// but they prove nothing.
fn prove_by_simulation(
    before: (&SpirvModule, &AnalysisOptions),
    after: (&SpirvModule, &AnalysisOptions),
    query: &RefinementQuery<'_>,
) -> Proof {
    let opened = |values, functions| OpenMemory { parts: None, values, functions };
    let why = match simulate(before, after, &opened(None, true), query) {
        complete @ Proof::Complete { .. } => return complete,
        Proof::OrderOnly(why) | Proof::Limit(why) => why,
        Proof::Mismatch(mismatch) => mismatch
            .map_or_else(|| "no rule explains a change of the events".to_owned(), |mismatch| mismatch.what),
    };
    match simulate(before, after, &opened(None, false), query) {
        Proof::Limit(_) => {}
        decided => return decided,
    }
    let values = open_values(&[before, after]);
    match simulate(before, after, &opened(Some(values.clone()), false), query) {
        Proof::Complete { .. } => {
            let values: Vec<String> = values.iter().map(u64::to_string).collect();
            Proof::Limit(format!(
                "{why}; the events agree if loads return {}, other values were not compared",
                values.join(", ")
            ))
        }
        Proof::OrderOnly(_) | Proof::Limit(_) => Proof::Limit(why),
        mismatch @ Proof::Mismatch(_) => mismatch,
    }
}

/// Simulates each invocation, if loads of shared memory return the values of `open`.
fn simulate(
    before: (&SpirvModule, &AnalysisOptions),
    after: (&SpirvModule, &AnalysisOptions),
    open: &OpenMemory,
    query: &RefinementQuery<'_>,
) -> Proof {
    let limit = |refusal: &Refusal| Proof::Limit(format!("the events are not known: {refusal}"));
    let (all, total) = match list_invocations(before.0, before.1) {
        Ok(listed) => listed,
        Err(refusal) => return limit(&refusal),
    };
    let (mut is_stronger, mut is_cut, mut is_opaque) = (false, false, false);
    let mut barriers = BTreeMap::new();
    // The events of an invocation do not depend on the others here, since every load may return any
    // value. So chunks can be lifted separately.
    for only in all.chunks(MAX_INVOCATIONS) {
        let lifted = |(module, options): (&SpirvModule, &AnalysisOptions)| {
            lift(module, &open_options(options, open.clone(), only))
        };
        let (first, second) = match (lifted(before), lifted(after)) {
            (Ok(first), Ok(second)) => (first, second),
            (Err(refusal), _) | (_, Err(refusal)) => return limit(&refusal),
        };
        if let Some(reason) = incomparable(&first, &second) {
            return Proof::Limit(reason);
        }
        let (Some(one), Some(other)) = (first.cases.first(), second.cases.first()) else {
            return Proof::Limit("a module has no test".to_owned());
        };
        is_opaque |= !one.opaque.is_empty() || !other.opaque.is_empty();
        for thread in 0..only.len() {
            let programs = (Program::new(one, before.0, thread), Program::new(other, after.0, thread));
            let mut simulation = Simulation::new(programs.0, programs.1, &mut barriers, query.stop);
            let proof = simulation.prove_thread();
            is_stronger |= simulation.is_stronger;
            is_cut |= simulation.is_cut;
            match proof {
                Ok(()) => {}
                Err(NoProof::Limit(why)) => return Proof::Limit(why),
                Err(NoProof::Mismatch) => {
                    return Proof::Mismatch(simulation.mismatch.take());
                }
            }
        }
    }
    if total > all.len() as u64 {
        return Proof::Limit(format!("only {} of {total} invocations were compared", all.len()));
    }
    if is_opaque {
        return Proof::OrderOnly(
            "the order of memory events is preserved; numbers computed with floats were not compared"
                .to_owned(),
        );
    }
    let count = if total == 1 { "1 invocation".to_owned() } else { format!("{total} invocations") };
    let loops = if is_cut {
        format!(", loops that depend on read values up to {} bodies", before.1.open_bodies())
    } else {
        String::new()
    };
    let coverage =
        format!("the memory events of AFTER are events of BEFORE in every context ({count}{loops})");
    Proof::Complete { is_stronger, coverage }
}

/// Returns why two lifted kernels cannot be compared.
fn incomparable(before: &Lifted, after: &Lifted) -> Option<String> {
    let new =
        after.findings.iter().find(|found| !before.findings.iter().any(|known| known.kind == found.kind));
    if let Some(found) = new {
        return Some(format!("AFTER has a defect: {}", found.message));
    }
    let is_sampled = before.sampled || after.sampled;
    is_sampled.then(|| "a kernel depends on memory that nothing initializes".to_owned())
}

/// Searches for an environment of the whole dispatch.
///
/// Fewer invocations would not do: BEFORE may race with the environment in another one.
fn search_environment(
    before: (&SpirvModule, &AnalysisOptions),
    after: (&SpirvModule, &AnalysisOptions),
    (mismatch, open): (&Option<Mismatch>, &OpenParts),
    query: &RefinementQuery<'_>,
) -> Option<Counterexample> {
    let values = open_values(&[before, after]);
    let is_open = |key: &CellKey| match (&key.memory, &key.offset) {
        (MemoryKey::Buffer { set, binding, .. }, Expression::Known(offset)) => {
            is_open(open, Some((*set, *binding)), *offset, key.bytes)
        }
        _ => false,
    };
    let search =
        EnvironmentSearch { model: query.model, budget: query.budget, stop: query.stop, is_open: &is_open };
    // All buffers, but no workgroup memory, which only the kernel can access.
    let whole = |(set, binding)| OpenPart { set, binding, scalar: None };
    let parts = open.clone().unwrap_or_else(|| before.0.descriptors().into_iter().map(whole).collect());
    let lifted = |(module, options): (&SpirvModule, &AnalysisOptions)| {
        let open = OpenMemory { parts: Some(parts.clone()), values: Some(values.clone()), functions: false };
        lift(module, &open_options(options, open, &[])).ok()
    };
    let (first, second) = (lifted(before)?, lifted(after)?);
    find_environment((&first, before.0), (&second, after.0), mismatch.as_ref(), &search)
}

/// Compares defects and final contents of the whole grid.
fn compare_contents(
    before: (&SpirvModule, &AnalysisOptions),
    after: (&SpirvModule, &AnalysisOptions),
    judged: Option<&GridReport>,
    why: &str,
    query: &RefinementQuery<'_>,
) -> Refinement {
    let with_contents = |options: &AnalysisOptions| AnalysisOptions { keep_final: true, ..options.clone() };
    let walked = |(module, options): (&SpirvModule, &AnalysisOptions)| {
        judge(module, &with_contents(options), query.model, query.budget).ok()
    };
    let is_settled = |report: &GridReport| {
        report.verdict == GridVerdict::Clean
            && report.findings.is_empty()
            && !report.is_schedule_dependent
            && !report.has_partial_subgroups
    };
    // A defect of AFTER counts if BEFORE has none in any schedule.
    let second = walked(after);
    if let (Some(first), Some(second)) = (judged, &second)
        && is_settled(first)
        && let Some(found) = second.findings.iter().find(|found| is_new_defect(found.kind))
    {
        let spot = found.at.first();
        let after = spot.map(|at| Spot { thread: 0, line: at.line, place: at.place, access: at.access });
        let (message, kind) = (format!("AFTER only: {}", found.message), found.kind.name());
        return Refinement::breaks(Counterexample {
            kind,
            message,
            before: None,
            after,
            environment: Vec::new(),
        });
    }
    // The contents do not depend on the schedule, so equal contents suffice.
    if let (Some(first), Some(second)) = (walked(before), &second)
        && is_settled(&first)
        && is_settled(second)
        && !first.final_buffers.is_empty()
        && first.final_buffers == second.final_buffers
        && first.final_buffers.iter().all(|buffer| buffer.first_open_byte.is_none())
    {
        let reason = "both are free of races and leave the same contents for these inputs";
        return Refinement::new(RefinementVerdict::Refines, reason);
    }
    // Otherwise all final contents of both are enumerated.
    let contents = |(module, options): (&SpirvModule, &AnalysisOptions)| {
        let dispatch = plan_dispatch(module, options)?;
        let describe = |refusal: &Refusal| refusal.to_string();
        let found = enumerate_contents(module, &dispatch, options, query.model, query.budget, &describe);
        Ok::<_, Refusal>((dispatch, found))
    };
    let (first, second) = match (contents(before), contents(after)) {
        (Ok(first), Ok(second)) => (first, second),
        (Err(refusal), _) | (_, Err(refusal)) => return Refinement::unknown(format!("{why}; {refusal}")),
    };
    let (cells, allowed) = match first.1 {
        FinalContents::Known { cells, contents } => (cells, contents),
        FinalContents::Undefined(undefined) if !is_value_undefined(&undefined) => {
            return Refinement::undefined_before(&undefined);
        }
        FinalContents::Undefined(open) | FinalContents::Unknown { why: open, .. } => {
            return Refinement::unknown(format!(
                "{why}; the contents that BEFORE leaves are not known: {open}"
            ));
        }
    };
    let (more, shown) = match second.1 {
        FinalContents::Known { cells, contents } => (cells, contents),
        FinalContents::Undefined(undefined) if !is_value_undefined(&undefined) => {
            let (kind, message) = ("race", format!("AFTER only: {undefined}"));
            let (before, after, environment) = (None, None, Vec::new());
            return Refinement::breaks(Counterexample { kind, message, before, after, environment });
        }
        FinalContents::Undefined(open) | FinalContents::Unknown { why: open, .. } => {
            return Refinement::unknown(format!(
                "{why}; the contents that AFTER leaves are not known: {open}"
            ));
        }
    };
    type Contents = BTreeMap<((u32, u32, u32), u64, u32), u64>;
    let initial = |at: (u32, u32, u32), offset: u64, bytes: u32| {
        let buffers = &first.0.buffers;
        let buffer = buffers.iter().find(|own| (own.set, own.binding, own.element) == at);
        let start = usize::try_from(offset).unwrap_or(usize::MAX);
        let part = buffer.and_then(|buffer| buffer.bytes.get(start..start.checked_add(bytes as usize)?));
        part.map_or(0, |part| part.iter().rev().fold(0, |all, byte| all << 8 | u64::from(*byte)))
    };
    // A cell that only one of the kernels writes keeps its initial value in the other.
    let places: BTreeMap<_, _> = cells
        .iter()
        .chain(&more)
        .map(|cell| ((cell.at, cell.offset, cell.bytes), initial(cell.at, cell.offset, cell.bytes)))
        .collect();
    let whole = |cells: &[crate::outcomes::FinalCell], values: &[u64]| -> Contents {
        let mut all: Contents = places.clone();
        all.extend(
            cells.iter().zip(values).map(|(cell, value)| ((cell.at, cell.offset, cell.bytes), *value)),
        );
        all
    };
    let kept = |cells: &[crate::outcomes::FinalCell], of: &BTreeMap<Vec<u64>, _>| -> BTreeSet<Contents> {
        let allowed = of.iter().filter(|(_, content): &(_, &crate::outcomes::FinalContent)| content.allowed);
        allowed.map(|(values, _)| whole(cells, values)).collect()
    };
    let (allowed, shown) = (kept(&cells, &allowed), kept(&more, &shown));
    match shown.difference(&allowed).next() {
        None => {
            let fewer = shown.len() < allowed.len();
            let verdict = if fewer { RefinementVerdict::Stronger } else { RefinementVerdict::Refines };
            let reason = format!("{} of {} final contents remain", shown.len(), allowed.len());
            Refinement::new(verdict, reason)
        }
        Some(content) => {
            let parts: Vec<String> = content
                .iter()
                .map(|(((set, binding, _), offset, _), value)| {
                    format!("{set}.{binding} at byte {offset} = {value}")
                })
                .collect();
            let message = format!("AFTER may end with {}, BEFORE may not", parts.join(", "));
            let (kind, before, after, environment) = ("outcome", None, None, Vec::new());
            Refinement::breaks(Counterexample { kind, message, before, after, environment })
        }
    }
}
