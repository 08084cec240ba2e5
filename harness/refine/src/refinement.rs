//! Translation validation: is every behaviour of a module AFTER a compiler one of the module BEFORE it?
//!
//! Three methods answer, each sound in one direction:
//!
//! 1. A simulation ([`simulation`]) compares the memory events of each invocation. Every load of shared memory
//!    may return any value of a set, so the proof holds in every context: `refines`, closed and open.
//! 2. In a **closed** world, the final contents and defects of the whole grid are compared, by the walk or by
//!    the model: `refines` or `breaks` for these inputs.
//! 3. In an **open** world, a search looks for an environment in which AFTER has an outcome that the model forbids for
//!    BEFORE ([`environment`]): `breaks`. An environment that only leaves contents is a closed world with these contents.
//!
//! If none decides, the answer is `unknown`. A BEFORE without defined behaviour allows anything.
//!
//! Bounds: loops that depend on read values have the lifter's bound. In the simulation, a load returns any number;
//! operations on it are functions ([`symbolic::function`]). A kernel that cannot be executed with it, for example since
//! a result of a subgroup decides a branch, is not proved. Environments write 0, 1, a number near each constant of
//! the code, and an unusual one. Descriptors do not alias unless they have one binding, also by an alias in the
//! options.

mod condition;
mod contents;
mod environment;
mod event;
mod expression;
mod program;
mod simulation;
mod volatile;

use std::collections::{BTreeMap, HashSet};

use model::{Budget, Model};

use analysis::dispatch::uses_subgroups;
use analysis::{InputNeeds, decide};
use contents::{compare_contents, compare_for_contents};
use entry_point::launch::LaunchParameters;
use entry_point::open_memory::{OpenMemory, OpenPart, OpenParts, is_open};
use entry_point::{AnalysisOptions, FindingKind, InvocationId, Problem, Refusal, Spot};
use environment::{EnvironmentSearch, LocatedKernel, find_environment};
use event::{CellKey, MemoryKey};
use expression::Expression;
use program::Program;
use results::wire::RefineVerdict;
use simulation::{Mismatch, NoProof, Simulation};
use spirv_reader::{SourcePosition, SpirvModule, SpirvType, Stage};
use symbolic::{Lifted, MAX_INVOCATIONS, compared_values, lift};
use volatile::{have_different_counts, volatile_places};
use walk::{GridReport, NeededInput};

/// Upper bound on the invocations that are compared one by one.
const MAX_COMPARED: usize = 4_096;
/// Upper bound on the values that others write, other than 0 and 1.
const MAX_OPEN_VALUES: usize = 6;
/// The reason if the iterations of a loop do not suffice.
const LONGER_LOOPS: &str = "loops of BEFORE that depend on read values are longer than the bound";
/// The reason without a place where the events differ.
const UNEXPLAINED: &str = "no rule explains a change of the events";
/// The subgroup sizes of devices, the most frequent first.
const SUBGROUP_SIZES: [u32; 6] = [32, 64, 16, 8, 4, 128];
/// A value that no constant of the code is likely to equal.
const UNUSUAL_VALUE: u64 = 42;

/// A version of a kernel with its inputs.
#[derive(Clone, Copy)]
pub struct KernelVersion<'k> {
    pub module: &'k SpirvModule,
    pub options: &'k AnalysisOptions,
}

impl<'k> KernelVersion<'k> {
    fn with_options(self, options: &'k AnalysisOptions) -> KernelVersion<'k> {
        KernelVersion { options, ..self }
    }
}

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

/// A behaviour of AFTER that BEFORE does not have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Counterexample {
    /// `outcome`, `volatile`, or the kind of a finding.
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

impl Counterexample {
    /// Returns a counterexample without positions and environment.
    fn new(kind: &'static str, message: String) -> Counterexample {
        Counterexample { kind, message, before: None, after: None, environment: Vec::new() }
    }
}

/// The answer of a comparison.
#[derive(Clone, Debug)]
pub struct Refinement {
    /// The verdict.
    pub verdict: RefineVerdict,
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
    fn new(verdict: RefineVerdict, reason: impl Into<String>) -> Refinement {
        let coverage = RefinementCoverage::GivenInputs;
        Refinement { verdict, reason: reason.into(), coverage, needs: Vec::new(), difference: None }
    }

    fn unknown(reason: impl Into<String>) -> Refinement {
        Refinement::new(RefineVerdict::Unknown, reason)
    }

    fn undefined_before(why: &str) -> Refinement {
        let reason = format!("BEFORE has no defined behaviour ({why}), so it allows anything");
        let coverage = RefinementCoverage::UndefinedBefore;
        Refinement { coverage, ..Refinement::new(RefineVerdict::Refines, reason) }
    }

    fn breaks(difference: Counterexample) -> Refinement {
        let reason = difference.message.clone();
        Refinement { difference: Some(difference), ..Refinement::new(RefineVerdict::Breaks, reason) }
    }

    /// Returns the rank of the verdict. The lowest counts: one choice of inputs suffices to break refinement.
    fn rank(&self) -> u8 {
        match self.verdict {
            RefineVerdict::Breaks => 0,
            RefineVerdict::Unknown | RefineVerdict::Failed => 1,
            RefineVerdict::Refines => 2,
            RefineVerdict::Stronger => 3,
        }
    }

    /// Combines the answers for several choices of inputs, and makes a proof `unknown` that inputs could refute.
    ///
    /// `needs` are the inputs that no option supplies and that the answers depend on.
    pub fn combine(answers: Vec<Refinement>, needs: &InputNeeds) -> Option<Refinement> {
        let answer = answers.into_iter().min_by_key(Refinement::rank)?;
        if matches!(answer.verdict, RefineVerdict::Breaks | RefineVerdict::Unknown) {
            return Some(answer);
        }
        let depends = |needed: &&NeededInput| match answer.coverage {
            RefinementCoverage::EveryContext => !needed.is_contents && !needed.lines.is_empty(),
            RefinementCoverage::GivenInputs => true,
            RefinementCoverage::UndefinedBefore => needs.decide_findings,
        };
        let needs: Vec<NeededInput> = needs.inputs.iter().filter(depends).cloned().collect();
        let verdict = if needs.is_empty() { answer.verdict } else { RefineVerdict::Unknown };
        Some(Refinement { verdict, needs, ..answer })
    }
}

/// Compares an entry point of two modules. Both get the inputs of `options`.
///
/// Without a subgroup size, modules that depend on it are compared for each of [`SUBGROUP_SIZES`].
///
/// # Errors
/// Fails if the modules have different interfaces.
pub fn refine(
    before: KernelVersion<'_>,
    after: KernelVersion<'_>,
    query: &RefinementQuery<'_>,
) -> Result<Refinement, Refusal> {
    check_interfaces(before, after)?;
    if before.module.words() == after.module.words() {
        let answer = Refinement::new(RefineVerdict::Refines, "the modules are equal, in every context");
        return Ok(Refinement { coverage: RefinementCoverage::EveryContext, ..answer });
    }
    let is_free = before.options.subgroup_size.is_none()
        && before.module.annotations.config.is_none()
        && (uses_subgroups(before.module) || uses_subgroups(after.module));
    if !is_free {
        return Ok(refine_for_subgroup_size(before, after, query));
    }
    let mut answers = Vec::with_capacity(SUBGROUP_SIZES.len());
    for size in SUBGROUP_SIZES {
        let sized =
            |options: &AnalysisOptions| AnalysisOptions { subgroup_size: Some(size), ..options.clone() };
        let (first, second) = (sized(before.options), sized(after.options));
        let (before, after) = (before.with_options(&first), after.with_options(&second));
        let mut answer = refine_for_subgroup_size(before, after, query);
        if let Some(difference) = &mut answer.difference {
            difference.environment.push(format!("have subgroups of {size} invocations"));
            return Ok(answer);
        }
        answers.push(answer);
    }
    let sizes = SUBGROUP_SIZES.map(|size| size.to_string()).join(", ");
    let weakest = answers.into_iter().min_by_key(Refinement::rank);
    let mut answer = weakest.unwrap_or_else(|| Refinement::unknown("no subgroup size"));
    answer.reason += &format!("; for subgroups of {sizes} invocations");
    Ok(answer)
}

fn refine_for_subgroup_size(
    before: KernelVersion<'_>,
    after: KernelVersion<'_>,
    query: &RefinementQuery<'_>,
) -> Refinement {
    let report_before = decide(before.module, before.options, query.model, query.budget);
    let undefined = report_before.as_ref().ok().and_then(undefined_reason);
    // A module without defined behaviour allows anything. In an open world, that holds for these contents of
    // memory: an environment that acts after all invocations of BEFORE orders none of them. Other contents
    // may be free of races.
    if let Some(undefined) = undefined.as_deref().filter(|_| query.open.is_none()) {
        return Refinement::undefined_before(undefined);
    }
    let proof = prove_by_simulation(before, after, query);
    let (mismatch, why) = match proof {
        Proof::Complete { is_stronger, coverage } => {
            let verdict = if is_stronger { RefineVerdict::Stronger } else { RefineVerdict::Refines };
            let answer = Refinement::new(verdict, coverage);
            return Refinement { coverage: RefinementCoverage::EveryContext, ..answer };
        }
        Proof::LongerLoop => (None, LONGER_LOOPS.to_owned()),
        Proof::OrderOnly(why) | Proof::Limit(why) => (None, why),
        Proof::Volatile(mismatch) => {
            let spots = mismatch.as_ref().map(|mismatch| (mismatch.before, mismatch.after));
            let (before, after) = spots.unwrap_or_default();
            let message =
                "the number of volatile accesses differs: none may be eliminated, duplicated or combined";
            let difference = Counterexample::new("volatile", message.to_owned());
            return Refinement::breaks(Counterexample { before, after, ..difference });
        }
        Proof::Mismatch(mismatch) => {
            let why = mismatch.as_ref().map_or(UNEXPLAINED, |mismatch| &mismatch.what).to_owned();
            (mismatch, why)
        }
    };
    if let Some(open) = query.open {
        // Without a place where the events differ, a defect of AFTER is the likeliest difference.
        let for_contents = || compare_for_contents(before, after, open, query);
        if let Some(refinement) = mismatch.is_none().then(for_contents).flatten() {
            return refinement;
        }
        if let Some(difference) = search_environment(before, after, mismatch.as_ref(), open, query) {
            return Refinement::breaks(difference);
        }
        if let Some(refinement) = mismatch.is_some().then(for_contents).flatten() {
            return refinement;
        }
    }
    if let Some(undefined) = undefined {
        // Without a branch on a read value, the behaviour is undefined for all contents of memory.
        let open = OpenMemory { values: Some(open_values(&[before])), ..OpenMemory::default() };
        let lifted = lift(before.module, &open_options(before.options, open, &[])).ok();
        let threads = lifted.iter().flat_map(|lifted| &lifted.cases).flat_map(|case| &case.test.threads);
        let mut code = threads.flat_map(|thread| &thread.instructions);
        let branches = |one: &litmus::Instruction| {
            matches!(one.kind, litmus::InstructionKind::Flow(litmus::Flow::Branch { .. }))
        };
        if lifted.is_some() && !code.any(branches) {
            return Refinement::undefined_before(&undefined);
        }
        return Refinement::unknown(format!(
            "BEFORE has no defined behaviour for these contents of memory ({undefined}), and may have one for others; {why}"
        ));
    }
    // In an open world, equal contents of one closed run prove nothing.
    if query.open.is_some() {
        let mut unknown = Refinement::unknown(format!(
            "{why}; no environment was found that shows it (of one thread, for at most {MAX_INVOCATIONS} invocations)"
        ));
        if mismatch.is_none() {
            unknown.reason = why;
        }
        return unknown;
    }
    let answer = compare_contents(before, after, report_before.as_ref().ok(), &why, query);
    let is_volatile = |module: &SpirvModule| !volatile_places(module).is_empty();
    let holds = matches!(answer.verdict, RefineVerdict::Refines | RefineVerdict::Stronger)
        && answer.coverage == RefinementCoverage::GivenInputs;
    if holds && (is_volatile(before.module) || is_volatile(after.module)) {
        return Refinement::unknown(format!("{why}; equal contents do not decide volatile accesses"));
    }
    answer
}

/// Checks that both modules can be given the same inputs.
fn check_interfaces(before: KernelVersion<'_>, after: KernelVersion<'_>) -> Result<(), Refusal> {
    let different = |what: String| Refusal::from(Problem::Input(what));
    let first = before.module.find_entry(before.options.entry.as_deref())?;
    let second = after.module.find_entry(after.options.entry.as_deref())?;
    if first.shader_stage() != second.shader_stage() {
        return Err(different(format!(
            "the stage of BEFORE is {:?} and that of AFTER is {:?}",
            first.shader_stage(),
            second.shader_stage()
        )));
    }
    let size = |kernel: KernelVersion<'_>, function: u32| {
        LaunchParameters::new(kernel.module, kernel.options, function).map(|launch| launch.local_size)
    };
    let sizes = [size(before, first.function)?, size(after, second.function)?];
    if sizes[0] != sizes[1] {
        return Err(different(format!(
            "the workgroup size of BEFORE is {:?} and that of AFTER is {:?}",
            sizes[0], sizes[1]
        )));
    }
    // A compiler may remove all uses of a descriptor, but not add one.
    let (known, more) = (before.module.descriptors(), after.module.descriptors());
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

/// The result of the simulation of all invocations.
enum Proof {
    Complete {
        is_stronger: bool,
        coverage: String,
    },
    /// The order of the events agrees, but their values are not compared.
    OrderOnly(String),
    Mismatch(Option<Mismatch>),
    /// A mismatch of an invocation whose numbers of volatile accesses differ on all paths.
    Volatile(Option<Mismatch>),
    /// More iterations of a loop of BEFORE may decide.
    LongerLoop,
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
    let values = Some(open_values(&[KernelVersion { module, options }]));
    AnalysisOptions { open: Some(OpenMemory { parts, values, models_functions: false }), ..options.clone() }
}

/// Returns the values that others may write, from the constants of modules.
fn open_values(kernels: &[KernelVersion<'_>]) -> Vec<u64> {
    let mut values = vec![0, 1];
    for kernel in kernels {
        let near = compared_values(kernel.module, kernel.options);
        for value in near.unwrap_or_default() {
            if !values.contains(&value) && values.len() < MAX_OPEN_VALUES + 2 {
                values.push(value);
            }
        }
    }
    if !values.contains(&UNUSUAL_VALUE) {
        values.push(UNUSUAL_VALUE);
    }
    values
}

/// Lists the invocations of a dispatch, up to a bound, and returns their number.
fn list_invocations(
    KernelVersion { module, options }: KernelVersion<'_>,
) -> Result<(Vec<InvocationId>, u64), Refusal> {
    let entry = module.find_entry(options.entry.as_deref())?;
    let stage: Stage = entry.shader_stage();
    let launch = LaunchParameters::new(module, options, entry.function)?;
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
    before: KernelVersion<'_>,
    after: KernelVersion<'_>,
    query: &RefinementQuery<'_>,
) -> Proof {
    let open_memory = |values, functions| OpenMemory { parts: None, values, models_functions: functions };
    // A body of AFTER may be two of BEFORE, or start in the middle of one.
    let more = 2 * before.options.max_open_iterations() + 1;
    let longer = AnalysisOptions {
        max_open_iterations: Some(more),
        unroll: before.options.unroll.map(|_| more),
        ..before.options.clone()
    };
    let simulate = |open: &OpenMemory| match simulate(before, after, open, query) {
        Proof::LongerLoop => simulate(before.with_options(&longer), after, open, query),
        proof => proof,
    };
    let why = match simulate(&open_memory(None, true)) {
        decided @ (Proof::Complete { .. } | Proof::Volatile(_)) => return decided,
        Proof::LongerLoop => LONGER_LOOPS.to_owned(),
        Proof::OrderOnly(why) | Proof::Limit(why) => why,
        Proof::Mismatch(mismatch) => {
            mismatch.map_or_else(|| UNEXPLAINED.to_owned(), |mismatch| mismatch.what)
        }
    };
    match simulate(&open_memory(None, false)) {
        Proof::Limit(_) | Proof::LongerLoop => {}
        decided => return decided,
    }
    let values = open_values(&[before, after]);
    match simulate(&open_memory(Some(values.clone()), false)) {
        Proof::Complete { .. } => {
            let values: Vec<String> = values.iter().map(u64::to_string).collect();
            Proof::Limit(format!(
                "{why}; the events agree if loads return {}, other values were not compared",
                values.join(", ")
            ))
        }
        Proof::OrderOnly(_) | Proof::Limit(_) | Proof::LongerLoop => Proof::Limit(why),
        mismatch @ (Proof::Mismatch(_) | Proof::Volatile(_)) => mismatch,
    }
}

/// Simulates each invocation, if loads of shared memory return the values of `open`.
fn simulate(
    before: KernelVersion<'_>,
    after: KernelVersion<'_>,
    open: &OpenMemory,
    query: &RefinementQuery<'_>,
) -> Proof {
    let limit = |refusal: &Refusal| Proof::Limit(format!("the events are not known: {refusal}"));
    let (all, total) = match list_invocations(before) {
        Ok(listed) => listed,
        Err(refusal) => return limit(&refusal),
    };
    let (mut is_stronger, mut is_cut, mut is_opaque) = (false, false, false);
    let mut barriers = BTreeMap::new();
    let volatile: [HashSet<SourcePosition>; 2] = [before.module, after.module].map(volatile_places);
    // The events of an invocation do not depend on the others here, since every load may return any
    // value. So chunks can be lifted separately.
    for only in all.chunks(MAX_INVOCATIONS) {
        let lifted = |kernel: KernelVersion<'_>| {
            lift(kernel.module, &open_options(kernel.options, open.clone(), only))
        };
        let (first, second) = match (lifted(before), lifted(after)) {
            (Ok(first), Ok(second)) => (first, second),
            (Err(refusal), _) | (_, Err(refusal)) => return limit(&refusal),
        };
        if let Some(reason) = incomparability_reason(&first, &second) {
            return Proof::Limit(reason);
        }
        let (Some(one), Some(other)) = (first.cases.first(), second.cases.first()) else {
            return Proof::Limit("a module has no test".to_owned());
        };
        is_opaque |= !one.opaque.is_empty() || !other.opaque.is_empty();
        for thread in 0..only.len() {
            let first = Program::new(one, before.module, &volatile[0], thread);
            let second = Program::new(other, after.module, &volatile[1], thread);
            let mut simulation = Simulation::new(&first, &second, &mut barriers, query.stop);
            let proof = simulation.prove_thread();
            is_stronger |= simulation.is_stronger;
            is_cut |= simulation.is_cut;
            match proof {
                Ok(()) => {}
                Err(NoProof::Limit(why)) => return Proof::Limit(why),
                Err(NoProof::LongerLoop) => return Proof::LongerLoop,
                Err(NoProof::Mismatch) => {
                    let mismatch = simulation.mismatch.take();
                    let is_volatile = volatile.iter().any(|places| !places.is_empty());
                    return match is_volatile && have_different_counts(&first, &second) {
                        true => Proof::Volatile(mismatch),
                        false => Proof::Mismatch(mismatch),
                    };
                }
            }
        }
    }
    if total > all.len() as u64 {
        return Proof::Limit(format!("only {} of {total} invocations were compared", all.len()));
    }
    if is_opaque {
        let has_float =
            |module: &SpirvModule| module.types.values().any(|ty| matches!(ty, SpirvType::Float { .. }));
        let numbers = match has_float(before.module) || has_float(after.module) {
            true => "numbers computed with floats",
            false => "numbers that the events do not determine, such as results of subgroup operations,",
        };
        return Proof::OrderOnly(format!(
            "the order of memory events is preserved; {numbers} were not compared"
        ));
    }
    let count = if total == 1 { "1 invocation".to_owned() } else { format!("{total} invocations") };
    let loops = if is_cut {
        format!(", loops that depend on read values up to {} bodies", after.options.max_open_iterations())
    } else {
        String::new()
    };
    let coverage =
        format!("the memory events of AFTER are events of BEFORE in every context ({count}{loops})");
    Proof::Complete { is_stronger, coverage }
}

/// Returns why two lifted kernels cannot be compared.
fn incomparability_reason(before: &Lifted, after: &Lifted) -> Option<String> {
    let new =
        after.findings.iter().find(|found| !before.findings.iter().any(|known| known.kind() == found.kind()));
    if let Some(found) = new {
        return Some(format!("AFTER has a defect: {}", found.message));
    }
    let is_sampled = before.is_sampled || after.is_sampled;
    is_sampled.then(|| "a kernel depends on memory that nothing initializes".to_owned())
}

/// Searches for an environment of the whole dispatch.
///
/// Fewer invocations would not do: BEFORE may race with the environment in another one.
fn search_environment(
    before: KernelVersion<'_>,
    after: KernelVersion<'_>,
    mismatch: Option<&Mismatch>,
    open: &OpenParts,
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
    let whole_buffer = |(set, binding)| OpenPart { set, binding, scalar: None };
    let parts =
        open.clone().unwrap_or_else(|| before.module.descriptors().into_iter().map(whole_buffer).collect());
    let lifted = |kernel: KernelVersion<'_>| {
        let open =
            OpenMemory { parts: Some(parts.clone()), values: Some(values.clone()), models_functions: false };
        lift(kernel.module, &open_options(kernel.options, open, &[])).ok()
    };
    let (first, second) = (lifted(before)?, lifted(after)?);
    // Of several choices of unspecified values, one is not all of BEFORE.
    if first.is_sampled || first.cases.len() > 1 || second.is_sampled {
        return None;
    }
    let first = LocatedKernel::new(&first, before.module)?;
    find_environment(&first, &LocatedKernel::new(&second, after.module)?, mismatch, &search)
}
