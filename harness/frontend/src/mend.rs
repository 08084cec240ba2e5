//! Why a kernel races, and what mends it: changes of the shader, each tried.
//!
//! A change is made wherever its line is executed, in every invocation; a mend is the cheapest one after which nothing races
//! and what is asked holds.

mod edit;
mod handover;
mod walked;

use std::collections::BTreeSet;

use litmus::{
    Condition, Instruction, InstructionKind, Question, QuestionKind, Race, Scope, Semantics, Span,
    StorageClass, Test,
};
use model::{Model, PredictError};

use crate::answer::{Asking, RaceSpot, verdict};
use crate::emit::{self, Ordering};
use crate::error::Place;
use crate::lift::{Case, Lifted, Spot};
use crate::module::Module;

pub(crate) use walked::accessed;
pub use walked::{WalkedChange, WalkedMends, mend_walked};

/// Steps for one changed kernel.
const TRIAL_STEPS: u64 = 40_000;
/// Changed kernels at most.
const MAX_TRIALS: usize = 600;

/// Which order two racing accesses lack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lack {
    /// An access is private to its invocation: no synchronization publishes it.
    NonPrivate,
    /// No synchronization brings one before the other.
    HappensBefore,
    /// They are ordered, but what is written is not made available, or not visible, where it is read.
    Availability,
    /// Synchronization is there, of too narrow a scope.
    Scope,
}

impl Lack {
    /// In words.
    pub fn words(self) -> &'static str {
        match self {
            Lack::NonPrivate => {
                "an access is private to its invocation, so that no synchronization publishes it"
            }
            Lack::HappensBefore => "no synchronization brings either access before the other",
            Lack::Availability => {
                "the accesses are synchronized, but the memory is not made available and visible between them"
            }
            Lack::Scope => "the synchronization between the accesses is of too narrow a scope",
        }
    }
}

/// A change of a shader.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    kind: ChangeKind,
    /// The place where it is made; of a declaration one of its accesses.
    pub at: Spot,
    /// In the words of shaders, without its place.
    pub text: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ChangeKind {
    /// The atomics and barriers of a place.
    Ordered(Place, Ordering),
    Widened(Place, Scope),
    /// All accesses of a variable.
    NonPrivate(u32),
    Coherent(u32, Scope),
    /// Memory barriers around what is at a place.
    Fence(Place, bool, Scope, Semantics),
    /// A control barrier before or behind what is at a place.
    Barrier(Place, bool, Scope, Semantics),
    Atomic(Place, Place, Scope),
}

/// What a shader is written in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Language {
    Glsl,
    /// HLSL, and Slang, which has its functions.
    Hlsl,
    Wgsl,
}

impl Language {
    fn of(module: &Module) -> Language {
        let named = |extension: &str| module.lines.iter().any(|line| line.file.ends_with(extension));
        match () {
            () if named(".wgsl") => Language::Wgsl,
            () if named(".hlsl") || named(".slang") => Language::Hlsl,
            () => Language::Glsl,
        }
    }

    /// A memory barrier.
    fn memory(self, class: StorageClass) -> &'static str {
        match (self, class) {
            (Language::Hlsl, StorageClass::Workgroup) => "GroupMemoryBarrier();",
            (Language::Hlsl, _) => "DeviceMemoryBarrier();",
            (_, StorageClass::Buffer | StorageClass::Output) => "memoryBarrierBuffer();",
            (_, StorageClass::Workgroup) => "memoryBarrierShared();",
            (_, StorageClass::Image) => "memoryBarrierImage();",
        }
    }

    /// A memory barrier for all classes.
    fn all_memory(self) -> &'static str {
        match self {
            Language::Hlsl => "AllMemoryBarrier();",
            Language::Glsl | Language::Wgsl => "memoryBarrier();",
        }
    }

    /// A barrier at which the workgroup meets.
    fn control(self, class: StorageClass) -> String {
        let one = match (self, class) {
            (Language::Wgsl, StorageClass::Workgroup) => "workgroupBarrier();",
            (Language::Wgsl, StorageClass::Image) => "textureBarrier();",
            (Language::Wgsl, _) => "storageBarrier();",
            (Language::Hlsl, StorageClass::Workgroup) => "GroupMemoryBarrierWithGroupSync();",
            (Language::Hlsl, _) => "DeviceMemoryBarrierWithGroupSync();",
            (Language::Glsl, StorageClass::Workgroup) => "barrier();",
            // What the meeting orders is shared memory alone: others need a barrier on both sides of it.
            (Language::Glsl, class) => {
                let memory = self.memory(class);
                return format!("{memory} barrier(); {memory}");
            }
        };
        one.to_owned()
    }

    fn coherent(self) -> &'static str {
        match self {
            Language::Glsl => "coherent",
            Language::Hlsl => "globallycoherent",
            // WGSL takes it for granted, and modules that naga makes do not say so.
            Language::Wgsl => "`@coherent`, which naga adds to WGSL",
        }
    }

    /// That a variable is to be coherent, or an access of it alone, where others are already.
    fn made_coherent(self, module: &Module, ids: &[u32], left_out: bool) -> String {
        let name = all_called(module, ids);
        match left_out {
            true => format!(
                "make this access of `{name}` coherent, as others are: where it is declared so, write `x = x + 1` for \
                 `x++`, of whose store glslang leaves it out"
            ),
            false => format!("declare `{name}` {}", self.coherent()),
        }
    }

    /// Whether it has words for a change: all atomics of WGSL are relaxed, and its barriers are of a workgroup.
    fn says(self, change: ChangeKind) -> bool {
        let words = |change| {
            matches!(change, ChangeKind::Barrier(..) | ChangeKind::Atomic(..) | ChangeKind::Coherent(..))
        };
        self != Language::Wgsl || words(change)
    }
}

/// What a reader calls a variable, or a structure behind an address.
fn called(module: &Module, id: u32) -> String {
    module
        .variables
        .get(&id)
        .map_or_else(|| module.name(id), |variable| module.variable_name(id, variable.ty))
}

/// Several of them, as they stand between backticks.
fn all_called(module: &Module, ids: &[u32]) -> String {
    ids.iter().map(|id| called(module, *id)).collect::<Vec<_>>().join("` and `")
}

/// What was found.
#[derive(Clone, Debug)]
pub struct Mended {
    /// The changes, all of them needed; none where nothing was found.
    pub changes: Vec<Change>,
    /// How many changed kernels were tried.
    pub tried: usize,
}

/// Which order two accesses lack: what happens when the others are given.
///
/// # Errors
/// Where the kernel is beyond the bounds of the engine.
pub fn lack(lifted: &Lifted, model: &Model, asking: &Asking<'_>) -> Result<Lack, PredictError> {
    let races = |change: &dyn Fn(&InstructionKind) -> Option<InstructionKind>| {
        let mut changed = lifted.clone();
        for instruction in instructions(&mut changed) {
            if let Some(kind) = change(&instruction.kind) {
                instruction.kind = kind;
            }
        }
        let asking =
            Asking { budget: asking.budget.at_most(TRIAL_STEPS), race: true, question: false, places: false };
        Ok(verdict(&changed, model, &asking)?.race != Race::Free)
    };
    let wide = |kind: &InstructionKind| emit::widened(kind, Scope::QueueFamily);
    let published = |kind: &InstructionKind| emit::coherent(kind, Scope::QueueFamily);
    Ok(if !races(&emit::non_private)? {
        Lack::NonPrivate
    } else if !races(&published)? {
        Lack::Availability
    } else if !races(&wide)? || !races(&|kind| published(kind).or_else(|| wide(kind)))? {
        Lack::Scope
    } else {
        Lack::HappensBefore
    })
}

fn instructions(lifted: &mut Lifted) -> impl Iterator<Item = &mut Instruction> {
    lifted
        .cases
        .iter_mut()
        .flat_map(|case| &mut case.test.threads)
        .flat_map(|thread| &mut thread.instructions)
}

/// The cheapest changes after which nothing races and what is asked holds.
///
/// # Errors
/// Where the kernel is beyond the bounds of the engine.
pub fn mend(
    module: &Module,
    lifted: &Lifted,
    model: &Model,
    race: Option<&RaceSpot>,
    asking: &Asking<'_>,
) -> Result<Mended, PredictError> {
    let candidates = candidates(module, lifted, race);
    let mut search = Search { lifted, model, asking, tried: 0 };
    // A smaller number of changes first, then the order of the candidates.
    for count in 1..=3 {
        if let Some(found) = search.of_size(&candidates, count)? {
            return Ok(Mended { changes: found, tried: search.tried });
        }
    }
    let last = race.map(|race| atomic(module, race));
    if let Some(last) = last
        && search.mends(&[&last])?
    {
        return Ok(Mended { changes: vec![last], tried: search.tried });
    }
    Ok(Mended { changes: Vec::new(), tried: search.tried })
}

/// The first choice of `count` among `of`, in order, that something is found for; `None` where the search was given up before.
fn choices<T>(
    of: usize,
    count: usize,
    mut tried: impl FnMut(&[usize]) -> Option<Option<T>>,
) -> Option<Option<T>> {
    let mut chosen: Vec<usize> = (0..count).collect();
    while chosen.last().is_some_and(|last| *last < of) {
        if let Some(found) = tried(&chosen)? {
            return Some(Some(found));
        }
        // The next choice in order.
        let Some(position) = (0..count).rev().find(|at| chosen[*at] + count - at < of) else { break };
        chosen[position] += 1;
        for at in position + 1..count {
            chosen[at] = chosen[at - 1] + 1;
        }
    }
    Some(None)
}

struct Search<'a> {
    lifted: &'a Lifted,
    model: &'a Model,
    asking: &'a Asking<'a>,
    tried: usize,
}

impl Search<'_> {
    fn of_size(&mut self, candidates: &[Change], count: usize) -> Result<Option<Vec<Change>>, PredictError> {
        let found = choices(candidates.len(), count, |chosen| {
            let changes: Vec<&Change> = chosen.iter().map(|index| &candidates[*index]).collect();
            match self.mends(&changes) {
                Ok(true) => Some(Some(Ok(changes.into_iter().cloned().collect()))),
                Ok(false) => (self.tried < MAX_TRIALS).then_some(None),
                Err(error) => Some(Some(Err(error))),
            }
        });
        found.flatten().transpose()
    }

    fn mends(&mut self, changes: &[&Change]) -> Result<bool, PredictError> {
        let mut changed = self.lifted.clone();
        for change in changes {
            if !change.kind.apply(&mut changed) {
                return Ok(false);
            }
        }
        self.tried += 1;
        let budget = self.asking.budget.at_most(TRIAL_STEPS);
        let race =
            verdict(&changed, self.model, &Asking { budget, race: true, question: false, places: false })?;
        if race.race != Race::Free {
            return Ok(false);
        }
        // A run must still come to its end: what blocks everybody races no more.
        let mut ending = changed.clone();
        for case in &mut ending.cases {
            let (kind, condition, span) = (QuestionKind::Exists, Condition::True, Span::default());
            case.test.question = Some(Question { kind, condition, span });
        }
        let ends =
            verdict(&ending, self.model, &Asking { budget, race: false, question: true, places: false })?;
        if ends.holds != Some(true) {
            return Ok(false);
        }
        let claim = changed.cases.first().and_then(|case| case.test.question.as_ref()).map(|q| q.kind);
        if !matches!(claim, Some(QuestionKind::Forall | QuestionKind::NotExists)) {
            return Ok(true);
        }
        let asked =
            verdict(&changed, self.model, &Asking { budget, race: false, question: true, places: false })?;
        Ok(asked.holds == Some(true))
    }
}

impl ChangeKind {
    /// Makes the change; false where it changes nothing or cannot be made.
    fn apply(self, lifted: &mut Lifted) -> bool {
        let mut changed = false;
        for case in &mut lifted.cases {
            changed |= match self {
                ChangeKind::Ordered(place, more) => {
                    replace(case, Some(place), |_, kind| emit::ordered(kind, more))
                }
                ChangeKind::Widened(place, wide) => {
                    replace(case, Some(place), |_, kind| emit::widened(kind, wide))
                }
                ChangeKind::NonPrivate(variable) => declare(case, variable, &emit::non_private),
                ChangeKind::Coherent(variable, scope) => {
                    declare(case, variable, &|kind| emit::coherent(kind, scope))
                }
                ChangeKind::Atomic(first, second, scope) => {
                    let one = replace(case, Some(first), |_, kind| emit::atomic(kind, scope));
                    replace(case, Some(second), |_, kind| emit::atomic(kind, scope)) || one
                }
                ChangeKind::Fence(place, behind, scope, semantics) => {
                    insert(case, place, behind, |_, _| emit::memory_barrier(scope, semantics))
                }
                ChangeKind::Barrier(place, behind, scope, semantics) => {
                    meets_everywhere(case, place)
                        && insert(case, place, behind, |place, number| {
                            // No other barrier has numbers this large.
                            let instance = 100_000 * (1 + place) + number;
                            emit::control_barrier(instance, Scope::Workgroup, scope, Some(semantics))
                        })
                }
            };
        }
        changed
    }
}

/// Changes all accesses of a variable.
fn declare(
    case: &mut Case,
    variable: u32,
    change: &dyn Fn(&InstructionKind) -> Option<InstructionKind>,
) -> bool {
    let of: Vec<u32> = case.cells.iter().map(|cell| cell.object.variable).collect();
    replace(case, None, |_, kind| {
        let location = emit::location_of(kind)?;
        let mine = of.get(usize::from(location.0)) == Some(&variable);
        change(kind).filter(|_| mine)
    })
}

fn replace(
    case: &mut Case,
    place: Option<Place>,
    change: impl Fn(usize, &InstructionKind) -> Option<InstructionKind>,
) -> bool {
    let mut changed = false;
    for (thread, origins) in case.test.threads.iter_mut().zip(&case.origins) {
        for (index, (instruction, origin)) in thread.instructions.iter_mut().zip(origins).enumerate() {
            if place.is_some_and(|place| origin.place != place) {
                continue;
            }
            if let Some(kind) = change(index, &instruction.kind) {
                instruction.kind = kind;
                changed = true;
            }
        }
    }
    changed
}

/// Inserts instructions before or behind the accesses of a place.
fn insert(
    case: &mut Case,
    place: Place,
    behind: bool,
    make: impl Fn(usize, usize) -> InstructionKind,
) -> bool {
    let number = match place {
        Place::Line(number) | Place::Word(number) => number as usize,
        Place::Module => return false,
    };
    let mut changed = false;
    for (thread, origins) in case.test.threads.iter_mut().zip(&mut case.origins) {
        let mut count = 0;
        let mut at = 0;
        while at < thread.instructions.len() {
            if origins[at].place == place && thread.instructions[at].kind.is_event() {
                let made = Instruction {
                    kind: make(number * 2 + usize::from(behind), count),
                    span: Span::default(),
                };
                let position = at + usize::from(behind);
                let origin = Spot { access: None, ..origins[at] };
                thread.instructions.insert(position, made);
                // What is inserted has no place of its own, so that it is not taken for what stands there.
                origins.insert(position, Spot { place: Place::Module, ..origin });
                (count, at, changed) = (count + 1, at + 1, true);
            }
            at += 1;
        }
    }
    changed
}

/// Whether every invocation executes what is at a place equally often, whatever it reads.
fn meets_everywhere(case: &Case, place: Place) -> bool {
    let straight = |test: &Test| {
        test.threads.iter().all(|thread| thread.instructions.iter().all(|i| !emit::branches(&i.kind)))
    };
    let counts: BTreeSet<usize> = case
        .test
        .threads
        .iter()
        .zip(&case.origins)
        .map(|(thread, origins)| {
            let here = thread.instructions.iter().zip(origins);
            here.filter(|(instruction, origin)| origin.place == place && instruction.kind.is_event()).count()
        })
        .collect();
    straight(&case.test) && counts.len() == 1 && !counts.contains(&0)
}

/// Every change that may help, from cheap to dear.
fn candidates(module: &Module, lifted: &Lifted, race: Option<&RaceSpot>) -> Vec<Change> {
    let Some(case) = lifted.cases.first() else { return Vec::new() };
    // The narrowest scope that two invocations of the race, or else all, share.
    let workgroup = |spot: &Spot| lifted.invocations.get(usize::from(spot.thread)).map(|one| one.workgroup);
    let one_workgroup = match race {
        Some(race) => workgroup(&race.at[0]) == workgroup(&race.at[1]),
        None => lifted.invocations.iter().all(|one| one.workgroup == lifted.invocations[0].workgroup),
    };
    let scope = match (one_workgroup, module.vulkan) {
        (true, _) => Scope::Workgroup,
        (false, true) => Scope::Device,
        (false, false) => Scope::QueueFamily,
    };
    let mut places: Vec<(Spot, InstructionKind)> = Vec::new();
    let mut raced: BTreeSet<(StorageClass, u32)> = BTreeSet::new();
    for (thread, origins) in case.test.threads.iter().zip(&case.origins) {
        for (instruction, origin) in thread.instructions.iter().zip(origins) {
            if emit::word_of(&instruction.kind).is_none() || origin.place == Place::Module {
                continue;
            }
            if let (Some(class), Some(location)) =
                (emit::class_of(&instruction.kind), emit::location_of(&instruction.kind))
                && let Some(variable) =
                    case.cells.get(usize::from(location.0)).map(|cell| &cell.object.variable)
                && race.is_none_or(|race| race.at.iter().any(|at| at.place == origin.place))
            {
                raced.insert((class, *variable));
            }
            if places.iter().all(|(known, _)| known.place != origin.place) {
                places.push((*origin, instruction.kind.clone()));
            }
        }
    }
    let mut found = Vec::new();
    let language = Language::of(module);
    let mut add = |kind: ChangeKind, at: Spot, text: String| {
        if language.says(kind) {
            found.push(Change { kind, at, text });
        }
    };
    for (class, _) in &raced {
        let class = *class;
        let words = class_words(class);
        for (spot, kind) in &places {
            let Some(word) = emit::word_of(kind) else { continue };
            let is_barrier =
                matches!(kind, InstructionKind::ControlBarrier(_) | InstructionKind::Fence { .. });
            let orders: &[(bool, bool)] =
                if is_barrier { &[(true, true)] } else { &[(true, false), (false, true), (true, true)] };
            for (acquire, release) in orders {
                let more = Ordering { acquire: *acquire, release: *release, class };
                if !(module.vulkan || is_barrier) || emit::ordered(kind, more).is_none() {
                    continue;
                }
                let text = if is_barrier && !module.vulkan {
                    format!("put `{}` before and behind this `{word}`", language.memory(class))
                } else {
                    format!("give the {word} {} semantics on {words}", order_words(*acquire, *release))
                };
                add(ChangeKind::Ordered(spot.place, more), *spot, text);
            }
        }
        if !module.vulkan {
            let semantics = emit::full_semantics(class);
            for (spot, kind) in &places {
                let Some(word) = emit::word_of(kind).filter(|word| word.starts_with("atomic")) else {
                    continue;
                };
                for behind in [true, false] {
                    let side = if behind { "behind" } else { "before" };
                    let text = format!("put `{}` {side} the {word}", language.memory(class));
                    add(ChangeKind::Fence(spot.place, behind, scope, semantics), *spot, text);
                }
            }
        }
    }
    for (spot, kind) in &places {
        if emit::widened(kind, scope).is_some()
            && let Some(word) = emit::word_of(kind)
        {
            let text = format!("widen the scope of the {word} to {}", scope_words(scope));
            add(ChangeKind::Widened(spot.place, scope), *spot, text);
        }
    }
    for (class, variable) in &raced {
        let mut accesses = places.iter().filter(|(_, kind)| {
            emit::coherent(kind, scope).is_some()
                && emit::location_of(kind)
                    .and_then(|l| case.cells.get(usize::from(l.0)).map(|cell| &cell.object.variable))
                    == Some(variable)
        });
        // Of several blocks of one binding those that are accessed.
        let blocks: BTreeSet<u32> =
            accesses.clone().filter_map(|(spot, _)| accessed(module, spot.place)).collect();
        let mut blocks: Vec<u32> = blocks.into_iter().collect();
        if blocks.is_empty() {
            blocks.push(*variable);
        }
        let first = accesses.next().filter(|_| *class != StorageClass::Workgroup || module.vulkan);
        if let Some((spot, _)) = first {
            let left_out = blocks.iter().any(|block| walked::is_shared_elsewhere(module, *block));
            let text = language.made_coherent(module, &blocks, left_out);
            if module.vulkan && !left_out {
                let name = all_called(module, &blocks);
                add(ChangeKind::NonPrivate(*variable), *spot, format!("declare `{name}` nonprivate"));
            }
            add(ChangeKind::Coherent(*variable, scope), *spot, text);
        }
    }
    if one_workgroup {
        for (class, _) in &raced {
            for (spot, kind) in &places {
                if matches!(kind, InstructionKind::ControlBarrier(_)) || !meets_everywhere(case, spot.place) {
                    continue;
                }
                for behind in [true, false] {
                    let side = if behind { "behind" } else { "before" };
                    let function = language.control(*class);
                    let semantics = emit::full_semantics(*class);
                    let text = format!("put `{function}` {side} this line");
                    add(ChangeKind::Barrier(spot.place, behind, Scope::Workgroup, semantics), *spot, text);
                }
            }
        }
    }
    found
}

/// The last resort: it orders nothing else.
fn atomic(module: &Module, race: &RaceSpot) -> Change {
    let [first, second] = race.at;
    let scope = if module.vulkan { Scope::Device } else { Scope::QueueFamily };
    let text = "make the racing accesses atomic".to_owned();
    Change { kind: ChangeKind::Atomic(first.place, second.place, scope), at: first, text }
}

fn class_words(class: StorageClass) -> &'static str {
    match class {
        StorageClass::Buffer => "buffer memory",
        StorageClass::Workgroup => "shared memory",
        StorageClass::Image => "images",
        StorageClass::Output => "outputs",
    }
}

fn order_words(acquire: bool, release: bool) -> &'static str {
    match (acquire, release) {
        (true, false) => "Acquire and MakeVisible",
        (false, true) => "Release and MakeAvailable",
        _ => "AcquireRelease, MakeAvailable and MakeVisible",
    }
}

fn scope_words(scope: Scope) -> &'static str {
    match scope {
        Scope::Workgroup => "the workgroup",
        Scope::Device => "the device",
        _ => "the queue family",
    }
}
