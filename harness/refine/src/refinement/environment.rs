//! Searches for an environment in which AFTER has an outcome that BEFORE does not have.
//!
//! An environment is one more thread: it may wait for a write of the kernel, accesses one location plainly or
//! by a relaxed atomic, and may publish that by a write that the kernel reads. A found environment is a proof:
//! the model finds BEFORE free of races in it, and AFTER racy, undefined, or with another outcome; or BEFORE always
//! ends under fair scheduling, and AFTER does not. If none is found, nothing is proved.

use std::collections::{BTreeMap, BTreeSet};

use litmus::{
    Access, ArithmeticOperation, Comparison, Instruction, InstructionKind, Label, Location, LocationId,
    LocationInit, Observable, Order, Outcome, Placement, Prediction, Race, Reference, Register, RegisterInit,
    Scope, Semantics, Span, StorageClass, StorageClassSet, Term, Test, Thread, ThreadPlace,
};
use model::progress::{Fairness, ProgressLimits, ProgressModel, check_termination};
use model::{Budget, Model, PredictOptions, predict};
use spirv_reader::{SourcePosition, SpirvModule};

use super::event::{CellKey, MemoryKey};
use super::program::cell_keys;
use super::simulation::Mismatch;
use super::{Counterexample, leaves_nothing_defined};
use entry_point::{FindingKind, LiftFinding, Spot};
use symbolic::emit::AccessTarget;
use symbolic::{Lifted, LiftedCase, NumberDomain, SymbolicNumber, confirm_suspicions, emit, locate_race};

/// Model steps for one environment.
const MODEL_STEPS: u64 = 40_000;
/// Upper bound on the environments.
const MAX_ENVIRONMENTS: usize = 400;
/// Upper bound on the values that are published at one location.
const MAX_PUBLISHED: usize = 6;
/// The registers of the thread.
const WAIT_REGISTER: u16 = 0;
const LOAD_REGISTER: u16 = 1;
/// A workgroup that no kernel has.
const OUTSIDE_WORKGROUP: u32 = 1 << 20;

/// Upper bound on the states of a kernel with an environment that may run forever.
const MAX_STATES: usize = 50_000;

/// The access of an environment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum EnvironmentAccess {
    Load,
    Store(u64),
    AtomicLoad,
    AtomicStore(u64),
    AtomicAdd(u64),
}

/// One thread that accesses the memory of a kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Environment {
    /// The location whose change is waited for.
    wait: Option<CellKey>,
    access: CellKey,
    /// The value of the accessed location at the start, if not that of the inputs.
    initial: Option<u64>,
    kind: EnvironmentAccess,
    /// The location and value of the release.
    publish: Option<(CellKey, u64)>,
}

impl Environment {
    /// Describes the thread, one step per line.
    fn describe(&self) -> Vec<String> {
        let initial = self.initial.iter().map(|value| format!("have left {value} in {}", self.access));
        let wait = self.wait.iter().map(|cell| format!("waits for a write of {cell} (acquire)"));
        let access = match self.kind {
            EnvironmentAccess::Load => format!("loads {}", self.access),
            EnvironmentAccess::Store(value) => format!("stores {value} to {}", self.access),
            EnvironmentAccess::AtomicLoad => format!("loads {} (relaxed atomic)", self.access),
            EnvironmentAccess::AtomicStore(value) => {
                format!("stores {value} to {} (relaxed atomic)", self.access)
            }
            EnvironmentAccess::AtomicAdd(value) => {
                format!("adds {value} to {} (relaxed atomic)", self.access)
            }
        };
        let publish = self.publish.iter().map(|(cell, value)| format!("stores {value} to {cell} (release)"));
        initial.chain(wait).chain([access]).chain(publish).collect()
    }
}

/// A kernel with the identities of its locations.
pub(super) struct LocatedKernel<'a> {
    lifted: &'a Lifted,
    case: &'a LiftedCase,
    keys: Vec<CellKey>,
}

impl<'a> LocatedKernel<'a> {
    pub(super) fn new(lifted: &'a Lifted, module: &SpirvModule) -> Option<LocatedKernel<'a>> {
        let case = lifted.cases.first()?;
        Some(LocatedKernel { lifted, case, keys: cell_keys(case, module) })
    }

    /// Returns the locations that hold numbers computed with floats, which have no value in the test.
    fn opaque_keys(&self) -> impl Iterator<Item = CellKey> {
        let cells = self.case.cells.iter().zip(&self.keys);
        cells.filter(|(cell, _)| self.case.opaque.contains(cell)).map(|(_, key)| key.clone())
    }

    /// Returns the values that a location may hold, other than the initial one.
    fn other_values(&self, key: &CellKey) -> Vec<u64> {
        let Some(position) = self.keys.iter().position(|known| known == key) else { return Vec::new() };
        let initial = initial_value(&self.case.test.locations[position]);
        match &self.case.domains[position] {
            NumberDomain::Values(values) => {
                values.iter().copied().filter(|value| *value != initial).collect()
            }
            NumberDomain::Any => Vec::new(),
        }
    }

    /// Returns the buffer locations of accesses that satisfy `keep`.
    fn accessed_keys(&self, keep: impl Fn(&litmus::MemoryAccess) -> bool) -> BTreeSet<CellKey> {
        let code = self.case.test.threads.iter().flat_map(|thread| &thread.instructions);
        let accesses = code.filter_map(|instruction| instruction.kind.access());
        let matching = accesses.filter(|access| keep(access));
        matching
            .filter_map(|access| self.keys.get(usize::from(access.place.location.0)))
            .filter(|key| matches!(key.memory, MemoryKey::Buffer { .. }))
            .cloned()
            .collect()
    }

    /// Returns the kernel with one more thread. `known` are the locations of both kernels.
    fn with_environment(
        &self,
        environment: &Environment,
        known: &BTreeMap<CellKey, Location>,
    ) -> Option<CombinedKernel> {
        let mut combined = CombinedKernel {
            case: self.case.clone(),
            keys: self.keys.clone(),
            thread: self.case.test.threads.len(),
            initial: environment.wait.as_ref().and_then(|cell| known.get(cell)).map(initial_value),
        };
        let code = combined.environment_code(environment, known)?;
        combined.add_thread(code);
        let CombinedKernel { case, keys, .. } = &mut combined;
        let test = &mut case.test;
        let buffers = (0..test.locations.len())
            .filter(|index| test.locations[*index].reference != Some(Reference::Workgroup))
            .map(|index| LocationId(index as u16));
        // The outcome is the final content of all buffers and images.
        test.listed_terms = buffers.map(|location| Term::Location(location, 0)).collect();
        (test.question, test.filter) = (None, None);
        case.names.resize_with(keys.len(), String::new);
        case.domains.resize_with(keys.len(), NumberDomain::empty);
        Some(combined)
    }
}

fn initial_value(location: &Location) -> u64 {
    match location.init {
        LocationInit::Constant(value) => value as u64,
        _ => 0,
    }
}

/// A kernel with an environment.
struct CombinedKernel {
    case: LiftedCase,
    keys: Vec<CellKey>,
    /// The index of the environment's thread.
    thread: usize,
    /// The initial value of the location that the environment waits for: with it, the thread does nothing further.
    initial: Option<u64>,
}

/// The compared part of an outcome: the buffers, and the register of the environment.
type ComparedOutcome = (BTreeMap<CellKey, u64>, Option<u64>);

/// The locations of both kernels.
struct ComparedLocations {
    known: BTreeMap<CellKey, Location>,
    /// The locations whose values a test does not have.
    opaque: BTreeSet<CellKey>,
}

impl CombinedKernel {
    /// Returns the location of a cell. Adds one that only the environment accesses.
    fn access_target(&mut self, key: &CellKey, known: &BTreeMap<CellKey, Location>) -> Option<AccessTarget> {
        let locations = &mut self.case.test.locations;
        let position = match self.keys.iter().position(|own| own == key) {
            Some(position) => position,
            None => {
                let name = format!("environment{}", self.keys.len());
                locations.push(Location { name, ..known.get(key)?.clone() });
                self.keys.push(key.clone());
                self.keys.len() - 1
            }
        };
        let class = locations[position].reference.map_or(StorageClass::Buffer, Reference::storage_class);
        let location = LocationId(u16::try_from(position).ok()?);
        Some(AccessTarget { location, class, scalar: None })
    }

    fn environment_code(
        &mut self,
        environment: &Environment,
        known: &BTreeMap<CellKey, Location>,
    ) -> Option<Vec<InstructionKind>> {
        let scope = Scope::QueueFamily;
        let global = Semantics { classes: StorageClassSet::GLOBAL, ..Semantics::RELAXED };
        let plain = Access::Coherent { scope };
        let mut code = Vec::new();
        if let Some(cell) = &environment.wait {
            let semantics = Semantics { order: Order::Acquire, make_visible: true, ..global };
            let target = self.access_target(cell, known)?;
            code.push(emit::load(WAIT_REGISTER, target, Access::Atomic { scope, semantics }));
            // The environment acts only once it has read another value than the initial one.
            code.push(emit::branch(
                Comparison::Equal,
                SymbolicNumber::Register(WAIT_REGISTER),
                SymbolicNumber::Known(initial_value(known.get(cell)?)),
                0,
            ));
        }
        let place = self.access_target(&environment.access, known)?;
        let relaxed = Access::Atomic { scope, semantics: Semantics::RELAXED };
        code.push(match environment.kind {
            EnvironmentAccess::Load => emit::load(LOAD_REGISTER, place, plain),
            EnvironmentAccess::Store(value) => emit::store(place, SymbolicNumber::Known(value), plain),
            EnvironmentAccess::AtomicLoad => emit::load(LOAD_REGISTER, place, relaxed),
            EnvironmentAccess::AtomicStore(value) => {
                emit::store(place, SymbolicNumber::Known(value), relaxed)
            }
            EnvironmentAccess::AtomicAdd(value) => emit::read_modify_write(
                LOAD_REGISTER,
                place,
                Some(ArithmeticOperation::Add),
                SymbolicNumber::Known(value),
                scope,
                Semantics::RELAXED,
            ),
        });
        if let Some((cell, value)) = &environment.publish {
            let semantics = Semantics { order: Order::Release, make_available: true, ..global };
            let (target, value) = (self.access_target(cell, known)?, SymbolicNumber::Known(*value));
            code.push(emit::store(target, value, Access::Atomic { scope, semantics }));
        }
        if let Some(initial) = environment.initial {
            let location = &mut self.case.test.locations[usize::from(place.location.0)];
            location.init = LocationInit::Constant(initial as i64);
        }
        // The branch after the wait leads to a label at the end.
        code.extend(environment.wait.is_some().then(|| emit::label(0)));
        Some(code)
    }

    fn add_thread(&mut self, code: Vec<InstructionKind>) {
        let spot = |kind: &InstructionKind| Spot {
            thread: self.thread as u16,
            line: 0,
            place: SourcePosition::Module,
            writes: emit::access_writes(kind),
        };
        self.case.origins.push(code.iter().map(spot).collect());
        let placement = Placement { queue_family: 0, queue: 0, workgroup: OUTSIDE_WORKGROUP, subgroup: 0 };
        let register = |number: u16| Register {
            name: format!("r{number}"),
            init: RegisterInit::Constant(0),
            declared: false,
        };
        let label = code.iter().any(|kind| emit::labels_of(kind).1.is_some());
        self.case.test.threads.push(Thread {
            number: self.thread as u32,
            place: ThreadPlace::Device(placement),
            registers: [WAIT_REGISTER, LOAD_REGISTER].map(register).into(),
            labels: label.then(|| Label { name: "LC00".to_owned() }).into_iter().collect(),
            instructions: code.into_iter().map(|kind| Instruction { kind, span: Span::default() }).collect(),
            span: Span::default(),
        });
    }

    fn predict(&self, model: &Model, budget: Budget<'_>) -> Option<Prediction> {
        let test: &Test = &self.case.test;
        predict(test, model, &PredictOptions { budget: budget.with_step_limit(MODEL_STEPS), unroll: 1 }).ok()
    }

    /// Returns true if every execution ends under fair scheduling; `None` if that is not known.
    fn terminates(&self, search: &EnvironmentSearch<'_>) -> Option<bool> {
        let budget = search.budget.with_step_limit(MODEL_STEPS);
        let limits = ProgressLimits { max_states: MAX_STATES, budget };
        let model: ProgressModel = "fair".parse().ok()?;
        check_termination(&self.case.test, search.model, &model, Fairness::Weak, &limits).ok()?.terminates
    }

    /// Returns true if some thread has a loop.
    fn has_loop(&self) -> bool {
        self.case.test.threads.iter().any(|thread| {
            let mut passed = BTreeSet::new();
            thread.instructions.iter().any(|instruction| {
                let (target, label) = emit::labels_of(&instruction.kind);
                passed.extend(label.map(|label| label.0));
                target.is_some_and(|target| passed.contains(&target.0))
            })
        })
    }

    /// Returns the compared part of an outcome. Other locations keep their initial value.
    fn compared_outcome(
        &self,
        prediction: &Prediction,
        outcome: &Outcome,
        compared: &ComparedLocations,
    ) -> ComparedOutcome {
        let mut cells: BTreeMap<CellKey, u64> =
            compared.known.iter().map(|(key, location)| (key.clone(), initial_value(location))).collect();
        let (mut loaded, mut has_waited) = (None, true);
        for (observable, value) in prediction.observables.iter().zip(&outcome.0) {
            match observable {
                Observable::Location(location, _) => {
                    if let Some(key) = self.keys.get(usize::from(location.0)) {
                        cells.insert(key.clone(), value.0);
                    }
                }
                Observable::Register(thread, register) => {
                    if usize::from(thread.0) == self.thread {
                        match register.0 {
                            LOAD_REGISTER => loaded = Some(value.0),
                            WAIT_REGISTER => has_waited = self.initial != Some(value.0),
                            _ => {}
                        }
                    }
                }
            }
        }
        // Only buffers and images outlive the kernel.
        cells.retain(|key, _| {
            matches!(key.memory, MemoryKey::Buffer { .. }) && !compared.opaque.contains(key)
        });
        (cells, loaded.filter(|_| has_waited))
    }
}

/// The inputs of a search other than the kernels.
pub(super) struct EnvironmentSearch<'s> {
    pub model: &'s Model,
    pub budget: Budget<'s>,
    pub stop: &'s dyn Fn() -> bool,
    /// Returns true if others may access the location.
    pub is_open: &'s dyn Fn(&CellKey) -> bool,
}

/// Searches for an environment that distinguishes the kernels.
pub(super) fn find_environment(
    before: &LocatedKernel<'_>,
    after: &LocatedKernel<'_>,
    mismatch: Option<&Mismatch>,
    search: &EnvironmentSearch<'_>,
) -> Option<Counterexample> {
    let opaque: BTreeSet<CellKey> = before.opaque_keys().chain(after.opaque_keys()).collect();
    let mut known: BTreeMap<CellKey, Location> = BTreeMap::new();
    for kernel in [after, before] {
        known.extend(kernel.keys.iter().cloned().zip(kernel.case.test.locations.iter().cloned()));
    }
    let compared = ComparedLocations { known, opaque };
    let is_open = |key: &CellKey| (search.is_open)(key) && !compared.opaque.contains(key);
    let environments = candidate_environments(before, after, mismatch, &is_open);
    for environment in environments.into_iter().take(MAX_ENVIRONMENTS) {
        if (search.stop)() {
            return None;
        }
        let Some(first) = before.with_environment(&environment, &compared.known) else { continue };
        let Some(allowed) = first.predict(search.model, search.budget) else { continue };
        // An environment in which BEFORE also races is no counterexample. No race was found in the first bodies
        // of a loop that the bound cuts.
        let is_cut = allowed.race == Race::Unknown && allowed.truncated_runs > 0;
        if allowed.race != Race::Free && !is_cut || allowed.race_thin_air {
            continue;
        }
        let Some(second) = after.with_environment(&environment, &compared.known) else { continue };
        let Some(shown) = second.predict(search.model, search.budget) else { continue };
        let race = !is_cut && shown.race == Race::Racy && !shown.race_thin_air;
        let undefined = (!race && !is_cut)
            .then(|| find_defects(after, &second, search).0.into_iter())
            .and_then(|mut found| found.find(|one| leaves_nothing_defined(one.kind())));
        let outcome = match race || is_cut || undefined.is_some() {
            true => None,
            false => new_outcome(&first, &allowed, &second, &shown, &compared),
        };
        let may_hang = !race && outcome.is_none() && undefined.is_none() && shown.race != Race::Racy;
        let hang = may_hang
            && second.has_loop()
            && first.terminates(search) == Some(true)
            && second.terminates(search) == Some(false);
        let is_different = race || hang || outcome.is_some() || undefined.is_some();
        if !is_different || find_defects(before, &first, search) != (Vec::new(), false) {
            continue;
        }
        let is_own = |spot: &Spot| usize::from(spot.thread) != second.thread;
        let mut difference = Counterexample {
            kind: match &undefined {
                Some(found) => found.kind().name(),
                None if race => FindingKind::Race.name(),
                None if hang => FindingKind::Hang.name(),
                None => "outcome",
            },
            message: String::new(),
            before: mismatch.and_then(|mismatch| mismatch.before),
            after: mismatch.and_then(|mismatch| mismatch.after),
            environment: environment.describe(),
        };
        if let Some(outcome) = outcome {
            difference.message = format!("in this environment AFTER may end with {outcome}, BEFORE may not");
        } else if hang {
            difference.message = "in this environment AFTER may run forever, BEFORE always ends".to_owned();
        } else if let Some(found) = undefined {
            difference.after = found.at.first().copied().or(difference.after);
            difference.message = format!("in this environment AFTER only: {}", found.message);
        } else {
            let found = locate_race(&second.case, search.model, search.budget).ok().flatten();
            let own = found.as_ref().and_then(|found| found.at.iter().copied().find(is_own));
            difference.after = own.or(difference.after);
            // Invocations of the kernel may race with each other, wherever the environment accesses memory.
            let place = match &found {
                Some(found) if found.at.iter().all(is_own) => format!("`{}`", found.element),
                Some(_) | None => environment.access.to_string(),
            };
            difference.message = format!("in this environment AFTER races on {place}, BEFORE does not");
        }
        return Some(difference);
    }
    None
}

/// Returns the reachable defects that depend on the environment. The flag is true if some are not decided.
fn find_defects(
    kernel: &LocatedKernel<'_>,
    combined: &CombinedKernel,
    search: &EnvironmentSearch<'_>,
) -> (Vec<LiftFinding>, bool) {
    if combined.case.suspicions.is_empty() {
        return (Vec::new(), false);
    }
    let cases = vec![combined.case.clone()];
    let lifted = Lifted { cases, findings: Vec::new(), ..kernel.lifted.clone() };
    confirm_suspicions(&lifted, search.model, search.budget)
}

/// Returns an allowed outcome of AFTER that BEFORE does not allow, in words.
fn new_outcome(
    first: &CombinedKernel,
    allowed: &Prediction,
    second: &CombinedKernel,
    shown: &Prediction,
    compared: &ComparedLocations,
) -> Option<String> {
    // An outcome is new only if all outcomes of BEFORE are known.
    let is_complete = allowed.complete && allowed.truncated_runs == 0 && shown.race == Race::Free;
    if !is_complete {
        return None;
    }
    let of_before: BTreeSet<ComparedOutcome> = (allowed.outcomes.iter())
        .filter(|(_, verdict)| verdict.allowed)
        .map(|(outcome, _)| first.compared_outcome(allowed, outcome, compared))
        .collect();
    let mut of_after = shown.outcomes.iter().filter(|(_, verdict)| verdict.allowed && !verdict.thin_air);
    let (cells, loaded) = of_after.find_map(|(outcome, _)| {
        Some(second.compared_outcome(shown, outcome, compared)).filter(|seen| !of_before.contains(seen))
    })?;
    let initial = |key: &CellKey| compared.known.get(key).map_or(0, initial_value);
    let mut parts: Vec<String> = (cells.iter())
        .filter(|(key, value)| **value != initial(key))
        .map(|(key, value)| format!("{key} = {value}"))
        .collect();
    parts.extend(loaded.map(|value| format!("the load of the environment = {value}")));
    Some(if parts.is_empty() { "unchanged buffers".to_owned() } else { parts.join(", ") })
}

/// Selects small values, which code compares with, and large ones, which it is least likely to store.
fn select_values(mut values: Vec<u64>) -> Vec<u64> {
    let middle = MAX_PUBLISHED / 2;
    let last = values.len().saturating_sub(MAX_PUBLISHED - middle).max(middle.min(values.len()));
    values.drain(middle.min(values.len())..last);
    values.reverse();
    values
}

/// Returns the environments to try, the most promising first.
fn candidate_environments(
    before: &LocatedKernel<'_>,
    after: &LocatedKernel<'_>,
    mismatch: Option<&Mismatch>,
    is_open: &dyn Fn(&CellKey) -> bool,
) -> Vec<Environment> {
    let open = |cells: BTreeSet<CellKey>| cells.into_iter().filter(|key| is_open(key)).collect::<Vec<_>>();
    // The environment can only wait for atomic writes of the kernel, and only publish to its
    // atomic reads.
    let waits = open(before.accessed_keys(|access| access.strength.is_atomic() && access.is_write()));
    let published = open(before.accessed_keys(|access| access.strength.is_atomic() && access.is_read()));
    let mut plain = before.accessed_keys(|access| !access.strength.is_atomic());
    plain.extend(after.accessed_keys(|access| !access.strength.is_atomic()));
    let mut plain = open(plain);
    let is_other = |key: &CellKey| !mismatch.is_some_and(|mismatch| mismatch.cells.contains(key));
    // `false` sorts first: cells of the mismatch are tried before the others.
    plain.sort_by_key(|key| (is_other(key), key.clone()));
    let mut publishes: Vec<Option<(CellKey, u64)>> = vec![None];
    for cell in &published {
        let values = select_values(before.other_values(cell));
        publishes.extend(values.into_iter().map(|value| Some((cell.clone(), value))));
    }
    let mut atomics = waits.clone();
    for cell in published.iter().chain(&open(after.accessed_keys(|access| access.strength.is_atomic()))) {
        if !atomics.contains(cell) {
            atomics.push(cell.clone());
        }
    }
    atomics.sort_by_key(|key| (is_other(key), key.clone()));
    let mut all = Vec::new();
    let mut atomic_accesses = Vec::new();
    for access in &atomics {
        let values = select_values(before.other_values(access));
        let mut kinds: Vec<EnvironmentAccess> =
            values.into_iter().map(EnvironmentAccess::AtomicStore).collect();
        kinds.extend([EnvironmentAccess::AtomicAdd(1), EnvironmentAccess::AtomicLoad]);
        atomic_accesses.extend(kinds.into_iter().map(|kind| Environment {
            wait: None,
            access: access.clone(),
            initial: None,
            kind,
            publish: None,
        }));
    }
    all.extend(atomic_accesses.iter().cloned());
    for access in &plain {
        all.extend(select_values(before.other_values(access)).into_iter().map(|value| Environment {
            wait: None,
            access: access.clone(),
            initial: Some(value),
            kind: EnvironmentAccess::Load,
            publish: None,
        }));
    }
    let waits: Vec<Option<CellKey>> = std::iter::once(None).chain(waits.into_iter().map(Some)).collect();
    for access in &plain {
        // The largest value is least likely to occur in the kernel.
        let mut values = before.other_values(access);
        values.extend(after.other_values(access));
        let value = values.last().copied().unwrap_or(1);
        let other = values.first().copied().unwrap_or(0);
        // Also from another initial value, so that a missing store or a stale load shows.
        let initial_and_kind = [
            (None, EnvironmentAccess::Store(value)),
            (None, EnvironmentAccess::Load),
            (Some(value), EnvironmentAccess::Store(other)),
        ];
        for wait in &waits {
            for publish in &publishes {
                for (initial, kind) in initial_and_kind {
                    let is_flag = |key: &CellKey| key == access;
                    // A plain access of the flag itself would race with the atomics.
                    if wait.as_ref().is_some_and(is_flag)
                        || publish.as_ref().is_some_and(|(key, _)| is_flag(key))
                    {
                        continue;
                    }
                    let (wait, publish) = (wait.clone(), publish.clone());
                    all.push(Environment { wait, access: access.clone(), initial, kind, publish });
                }
            }
        }
    }
    // Atomics of two locations, in the order that an acquire or a release of the kernel gives them.
    for one in atomic_accesses {
        for wait in waits.iter().flatten().filter(|key| **key != one.access) {
            all.push(Environment { wait: Some(wait.clone()), ..one.clone() });
        }
        for publish in publishes.iter().flatten().filter(|(key, _)| *key != one.access) {
            all.push(Environment { publish: Some(publish.clone()), ..one.clone() });
        }
    }
    all
}
