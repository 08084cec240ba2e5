//! Checks that machine code keeps an order of the test, by a table of the instructions required between two
//! accesses.
//!
//! It is simpler than exploration, and available for every vendor with a table ([`vendor::order`]). Cases
//! without a row are [`CodegenOrderVerdict::Unknown`], and so are accesses that the text does not distinguish.

use std::collections::HashSet;

use litmus::{Access, Instruction, InstructionKind, Scope, Semantics, StorageClass, Test, ThreadId};
use results::wire::{CodegenOrderVerdict, CodegenOrdered};
use vendor::order::{MissingOperation, Order, OrderRequirement, RequirementPart, RequirementPosition};

use crate::align::{Alignment, LineSource};
use crate::disassembly::{CodeOperation, CodePath, Disassembly, LineKind};
use crate::form::FormKernel;

/// Two accesses of a thread that an instruction of the test orders, or an access and a control barrier.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RequiredOrder {
    pub order: Order,
    /// The widest requested scope.
    pub scope: Scope,
    pub first: LineSource,
    pub second: LineSource,
    /// True if the second access must see writes of others: it is atomic, visible, or follows a visibility
    /// operation.
    pub needs_visibility: bool,
    /// The control barrier that is one of the two.
    pub barrier: Option<BarrierPosition>,
    /// The smallest scope with the same invocations, which no observer is outside of.
    pub observers: Scope,
}

impl RequiredOrder {
    /// Narrows the observers to those of a workgroup of `invocations`, in subgroups of at most `subgroup_size`.
    #[must_use]
    pub fn in_workgroup(self, invocations: u32, subgroup_size: u32) -> RequiredOrder {
        let observers = match self.scope {
            Scope::Subgroup | Scope::Workgroup if invocations == 1 => Scope::Invocation,
            Scope::Workgroup if invocations <= subgroup_size => Scope::Subgroup,
            scope => scope,
        };
        RequiredOrder { observers, ..self }
    }
}

/// A control barrier among those of its kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BarrierPosition {
    pub index: usize,
    pub count: usize,
    /// The number of control barriers before the access.
    pub region: usize,
}

impl BarrierPosition {
    /// A barrier that several threads share, so that its line is unknown.
    const SHARED: BarrierPosition = BarrierPosition { index: 0, count: usize::MAX, region: 0 };
}

/// An instruction that accesses memory or orders accesses.
#[derive(Clone, Debug)]
pub struct MemoryStep {
    pub source: LineSource,
    pub kind: StepKind,
}

/// The kind of a [`MemoryStep`].
#[derive(Clone, Copy, Debug)]
pub enum StepKind {
    Access {
        class: StorageClass,
        strength: Access,
        is_read: bool,
        is_write: bool,
    },
    /// A memory barrier.
    Fence {
        scope: Scope,
        semantics: Semantics,
    },
    /// A control barrier, or half of one.
    Barrier {
        scope: Scope,
        semantics: Option<Semantics>,
    },
}

impl StepKind {
    /// Returns whether an access reads and writes.
    pub fn directions(self) -> Option<(bool, bool)> {
        match self {
            StepKind::Access { is_read, is_write, .. } => Some((is_read, is_write)),
            StepKind::Fence { .. } | StepKind::Barrier { .. } => None,
        }
    }

    fn is_private(self) -> bool {
        matches!(self, StepKind::Access { strength: Access::Private, .. })
    }

    fn is_atomic(self) -> bool {
        matches!(self, StepKind::Access { strength: Access::Atomic { .. }, .. })
    }

    /// Returns the storage class of an access.
    fn class(self) -> Option<StorageClass> {
        match self {
            StepKind::Access { class, .. } => Some(class),
            StepKind::Fence { .. } | StepKind::Barrier { .. } => None,
        }
    }
}

/// Returns the orders that a kernel's threads require.
pub fn find_required_orders(test: &Test, form_kernel: &FormKernel) -> Vec<RequiredOrder> {
    // Several threads share the barriers of a kernel.
    let is_single = form_kernel.threads.len() == 1;
    let orders_of = |thread: &ThreadId| {
        let mut orders = orders_of_steps(&thread_steps(test, *thread));
        for order in orders.iter_mut().filter(|order| order.barrier.is_some() && !is_single) {
            order.barrier = Some(BarrierPosition::SHARED);
        }
        orders
    };
    form_kernel.threads.iter().flat_map(orders_of).collect()
}

/// Returns the memory instructions of a thread.
fn thread_steps(test: &Test, thread: ThreadId) -> Vec<MemoryStep> {
    let to_step = |(index, instruction): (usize, &Instruction)| {
        let kind = match &instruction.kind {
            InstructionKind::Fence { scope, semantics } => {
                StepKind::Fence { scope: *scope, semantics: *semantics }
            }
            InstructionKind::ControlBarrier(barrier) => {
                StepKind::Barrier { scope: barrier.memory_scope, semantics: barrier.semantics }
            }
            InstructionKind::SplitBarrier(half) => {
                StepKind::Barrier { scope: half.memory_scope, semantics: half.semantics }
            }
            other => {
                let access = other.access()?;
                StepKind::Access {
                    class: access.place.class,
                    strength: access.strength,
                    is_read: access.is_read(),
                    is_write: access.is_write(),
                }
            }
        };
        Some(MemoryStep { source: LineSource::Instruction(thread, index), kind })
    };
    test.thread(thread).instructions.iter().enumerate().filter_map(to_step).collect()
}

/// Returns the orders that the instructions of one thread require.
///
/// An acquire orders all later accesses, a release all earlier ones. A memory barrier orders accesses across it if
/// the earlier one is an atomic read (acquire) or the later one an atomic write (release). A control barrier
/// releases earlier accesses and acquires for later ones. Private accesses are not ordered.
pub fn orders_of_steps(steps: &[MemoryStep]) -> Vec<RequiredOrder> {
    let mut orders = OrderList::default();
    let is_barrier = |step: &&MemoryStep| matches!(step.kind, StepKind::Barrier { .. });
    let count = steps.iter().filter(is_barrier).count();
    let regions: Vec<usize> =
        (0..steps.len()).map(|at| steps[..at].iter().filter(is_barrier).count()).collect();
    for (at, step) in steps.iter().enumerate() {
        let (before, after) = (&steps[..at], &steps[at + 1..]);
        match step.kind {
            StepKind::Access { strength: Access::Atomic { scope, semantics }, .. } => {
                if semantics.order.acquires() {
                    after
                        .iter()
                        .for_each(|later| orders.add(Order::Acquire, scope, semantics, [step, later]));
                }
                if semantics.order.releases() {
                    before.iter().for_each(|one| orders.add(Order::Release, scope, semantics, [one, step]));
                }
            }
            StepKind::Access { .. } => {}
            StepKind::Fence { scope, semantics } => {
                let reads = |one: &MemoryStep| {
                    one.kind.is_atomic() && matches!(one.kind, StepKind::Access { is_read: true, .. })
                };
                let writes = |one: &MemoryStep| {
                    one.kind.is_atomic() && matches!(one.kind, StepKind::Access { is_write: true, .. })
                };
                for (first, second) in before.iter().flat_map(|one| after.iter().map(move |two| (one, two))) {
                    if semantics.order.acquires() && reads(first) {
                        orders.add(Order::Acquire, scope, semantics, [first, second]);
                    }
                    if semantics.order.releases() && writes(second) {
                        orders.add(Order::Release, scope, semantics, [first, second]);
                    }
                }
            }
            StepKind::Barrier { semantics: None, .. } => {}
            StepKind::Barrier { scope, semantics: Some(semantics) } => {
                let index = regions[at];
                for (other_at, other) in steps.iter().enumerate() {
                    orders.barrier = Some(BarrierPosition { index, count, region: regions[other_at] });
                    if other_at < at && semantics.order.releases() {
                        orders.add(Order::Release, scope, semantics, [other, step]);
                    } else if other_at > at && semantics.order.acquires() {
                        orders.add(Order::Acquire, scope, semantics, [step, other]);
                    }
                }
                orders.barrier = None;
            }
        }
    }
    orders.all
}

/// Collects orders without repetition.
#[derive(Default)]
struct OrderList {
    all: Vec<RequiredOrder>,
    known: HashSet<(bool, LineSource, LineSource)>,
    /// The control barrier whose orders are added.
    barrier: Option<BarrierPosition>,
}

impl OrderList {
    fn add(&mut self, order: Order, scope: Scope, semantics: Semantics, [first, second]: [&MemoryStep; 2]) {
        let is_end = |one: &MemoryStep| match one.kind {
            StepKind::Access { class, .. } => semantics.classes.contains(class) && !one.kind.is_private(),
            StepKind::Barrier { .. } => self.barrier.is_some(),
            StepKind::Fence { .. } => false,
        };
        if !is_end(first) || !is_end(second) || first.kind.class().or(second.kind.class()).is_none() {
            return;
        }
        if !self.known.insert((order == Order::Acquire, first.source, second.source)) {
            return;
        }
        // At a control barrier, what other threads see is a matter of the access.
        let seen = match self.barrier {
            Some(_) if order == Order::Release => first,
            _ => second,
        };
        let is_visible = matches!(seen.kind, StepKind::Access { strength, .. } if strength.scope().is_some());
        self.all.push(RequiredOrder {
            order,
            scope,
            first: first.source,
            second: second.source,
            needs_visibility: is_visible || semantics.make_visible,
            barrier: self.barrier,
            observers: scope,
        });
    }
}

/// Returns pairs of consecutive shared accesses, at least one of them atomic, that nothing orders.
pub fn unordered_neighbours(steps: &[MemoryStep], required: &[RequiredOrder]) -> Vec<RequiredOrder> {
    let shared: Vec<&MemoryStep> =
        steps.iter().filter(|one| one.kind.class().is_some() && !one.kind.is_private()).collect();
    let unordered = |pair: &[&MemoryStep]| {
        let (first, second) = (pair[0], pair[1]);
        let is_required = |one: &RequiredOrder| (one.first, one.second) == (first.source, second.source);
        let has_atomic = first.kind.is_atomic() || second.kind.is_atomic();
        (has_atomic && !required.iter().any(is_required)).then_some(RequiredOrder {
            order: Order::Release,
            scope: Scope::Device,
            first: first.source,
            second: second.source,
            needs_visibility: false,
            barrier: None,
            observers: Scope::Device,
        })
    };
    shared.windows(2).filter_map(unordered).collect()
}

const NOT_DISTINGUISHED: &str = "the text does not distinguish the accesses";
const NO_LINE: &str = "an access has no line: it may be unneeded, or part of another";

/// Checks that the lines between two accesses contain what their order needs, on chips of a compiler's
/// `target`.
///
/// A loss is only reported where an invocation can observe it: not at a scope of one invocation, nor within one
/// subgroup, whose invocations execute in lockstep on some hardware.
pub fn check_order(
    required: &RequiredOrder,
    disassembly: &Disassembly,
    alignment: &Alignment,
    target: &str,
) -> CodegenOrdered {
    if required.observers == Scope::Invocation {
        return CodegenOrdered::new(CodegenOrderVerdict::Kept, "the scope has no other invocation");
    }
    let found = match required.barrier {
        Some(position) => check_barrier_order(required, position, disassembly, alignment, target),
        None => check_access_order(required, disassembly, alignment, target),
    };
    if required.observers == Scope::Subgroup && found.verdict == CodegenOrderVerdict::Lost {
        let why = format!("{}; the scope has one subgroup, which may be unable to observe it", found.why);
        return CodegenOrdered::new(CodegenOrderVerdict::Unknown, why);
    }
    found
}

/// Checks the order of two accesses.
fn check_access_order(
    required: &RequiredOrder,
    disassembly: &Disassembly,
    alignment: &Alignment,
    target: &str,
) -> CodegenOrdered {
    let line_of = |source| alignment.sources.iter().position(|found| *found == Some(source));
    if let Some(earlier) =
        alignment.merged_into(required.second).filter(|_| line_of(required.second).is_none())
    {
        if is_before(earlier, required.first) {
            // If the earlier load is dead code, the line may be that of the second access.
            let is_line_before = || {
                let (line, first) = (line_of(earlier)?, line_of(required.first)?);
                (line < first).then(|| disassembly.is_entered_at_start(line..first))
            };
            if alignment.is_module && is_line_before() != Some(true) {
                return CodegenOrdered::new(CodegenOrderVerdict::Unknown, NOT_DISTINGUISHED);
            }
            let why = "the second access has no line, and the value is that of a load before the first";
            return CodegenOrdered { is_merged: true, ..CodegenOrdered::new(CodegenOrderVerdict::Lost, why) };
        }
        return check_access_order(
            &RequiredOrder { second: earlier, ..required.clone() },
            disassembly,
            alignment,
            target,
        );
    }
    let (Some(first), Some(second)) = (line_of(required.first), line_of(required.second)) else {
        return CodegenOrdered::new(CodegenOrderVerdict::Unknown, NO_LINE);
    };
    let access_at = |at: usize| match disassembly.lines.get(at).map(|line| line.kind) {
        Some(LineKind::Access(access)) => Some(access),
        _ => None,
    };
    let (Some(first_access), Some(of_second)) = (access_at(first), access_at(second)) else {
        return CodegenOrdered::new(CodegenOrderVerdict::Unknown, NO_LINE);
    };
    let both = |predicate: fn(&Alignment, LineSource) -> bool| {
        predicate(alignment, required.first) && predicate(alignment, required.second)
    };
    if !both(Alignment::is_likely) || (second < first && !both(Alignment::is_certain)) {
        return CodegenOrdered::new(CodegenOrderVerdict::Unknown, NOT_DISTINGUISHED);
    }
    let is_shared = [first_access, of_second].iter().any(|access| access.path == CodePath::Workgroup);
    if is_shared {
        return CodegenOrdered::new(
            CodegenOrderVerdict::NotCovered,
            "no table lists what workgroup memory needs here",
        );
    }
    if second < first {
        return CodegenOrdered::new(CodegenOrderVerdict::Lost, "the second access is before the first");
    }
    let dialect = disassembly.dialect;
    let applies =
        |need: &&OrderRequirement| need.applies_to(required.order, Some(first_access.operation), target);
    let Some(requirement) = dialect.order_requirements.iter().find(applies) else {
        return CodegenOrdered::new(
            CodegenOrderVerdict::Unknown,
            "no table lists what this order needs here",
        );
    };
    let may_be_cached = of_second.operation == CodeOperation::Load;
    let steps = dialect.parts_of(requirement);
    let found = check_steps(&steps, disassembly, (first, second), may_be_cached && required.needs_visibility);
    let found = CodegenOrdered { source: Some(requirement.source.clone()), ..found };
    // An uncertain match is not evidence against a compiler, unless no other match keeps the order.
    let no_match_keeps = || {
        let lines = alignment.lines_of(required.first).iter();
        let pairs =
            lines.flat_map(|one| alignment.lines_of(required.second).iter().map(move |two| (*one, *two)));
        let is_lost =
            |pair| check_steps(&steps, disassembly, pair, false).verdict == CodegenOrderVerdict::Lost;
        let mut pairs = pairs.filter(|(one, two)| one < two);
        found.verdict == CodegenOrderVerdict::Lost
            && pairs.all(|pair| disassembly.is_entered_at_start(pair.0..pair.1) && is_lost(pair))
    };
    // Blocks of a module may be in any order.
    let is_elsewhere = alignment.is_module && !disassembly.is_entered_at_start(first..second);
    if found.verdict != CodegenOrderVerdict::Kept
        && (is_elsewhere || !both(Alignment::is_certain) && !no_match_keeps())
    {
        return CodegenOrdered {
            verdict: CodegenOrderVerdict::Unknown,
            why: NOT_DISTINGUISHED.to_owned(),
            ..found
        };
    }
    weaken_narrow(required.scope, found)
}

/// Makes the answer for a scope unknown that is narrower than those of the tables, unless the order is kept.
fn weaken_narrow(scope: Scope, found: CodegenOrdered) -> CodegenOrdered {
    let is_narrow = match scope {
        Scope::QueueFamily | Scope::Device | Scope::CrossDevice => false,
        Scope::Invocation
        | Scope::Subgroup
        | Scope::Workgroup
        | Scope::ShaderCall
        | Scope::FragmentInterlock => true,
    };
    if is_narrow && found.verdict != CodegenOrderVerdict::Kept {
        let why = format!("{}; the scope is narrower than the table's, so less may be sufficient", found.why);
        return CodegenOrdered { verdict: CodegenOrderVerdict::Unknown, why, ..found };
    }
    found
}

/// Checks the order of an access and a control barrier.
///
/// The barriers of the source and of the code correspond by number. An access is looked for among the lines
/// between the barriers around it, all of which must be ordered.
fn check_barrier_order(
    required: &RequiredOrder,
    position: BarrierPosition,
    disassembly: &Disassembly,
    alignment: &Alignment,
    target: &str,
) -> CodegenOrdered {
    let not_covered = |why: &str| CodegenOrdered::new(CodegenOrderVerdict::NotCovered, why);
    if disassembly.dialect.barriers.is_empty() || position.count == usize::MAX {
        return not_covered("no table lists what a control barrier needs");
    }
    let barriers = disassembly.barriers();
    let Some(barrier) = barriers.get(position.index).filter(|_| barriers.len() == position.count) else {
        let (code, source) = (barriers.len(), position.count);
        let cause = match code > source {
            true => "an unrolled loop repeats its own",
            false => "a workgroup of one subgroup needs none",
        };
        let why = format!("{code} control barriers in the code, {source} in the source: {cause}");
        return not_covered(&why);
    };
    let is_release = required.order == Order::Release;
    let source = if is_release { required.first } else { required.second };
    let start = position.region.checked_sub(1).and_then(|before| barriers.get(before));
    let end = barriers.get(position.region);
    let near = start.map_or(0, |before| before.end)..end.map_or(disassembly.lines.len(), |after| after.start);
    let candidates = alignment.lines_of(source);
    let lines: Vec<usize> = candidates.iter().copied().filter(|line| near.contains(line)).collect();
    let Some(LineKind::Access(access)) =
        lines.first().and_then(|line| disassembly.lines.get(*line)).map(|line| line.kind)
    else {
        // Loops are unrolled and accesses repeated, but a single one that is elsewhere has moved.
        let is_straight = !disassembly.lines.iter().any(|line| line.kind == LineKind::Jump);
        return match is_straight && alignment.is_certain(source) {
            true => CodegenOrdered::new(
                CodegenOrderVerdict::Lost,
                "the access is on the other side of a control barrier",
            ),
            false => CodegenOrdered::new(
                CodegenOrderVerdict::Unknown,
                "the access has no line between its control barriers",
            ),
        };
    };
    let is_shared = access.path == CodePath::Workgroup;
    if is_shared && disassembly.dialect.workgroup_requirements.is_empty() {
        return not_covered("no table lists what workgroup memory needs at a control barrier");
    }
    let may_be_cached = access.operation == CodeOperation::Load && !is_shared && required.needs_visibility;
    if !is_release && !may_be_cached {
        return CodegenOrdered::new(CodegenOrderVerdict::Kept, "after the control barrier");
    }
    let dialect = disassembly.dialect;
    let rows = if is_shared { &dialect.workgroup_requirements } else { &dialect.order_requirements };
    let operation = is_release.then_some(access.operation);
    let applies = |need: &&OrderRequirement| need.applies_to(required.order, operation, target);
    let Some(requirement) = rows.iter().find(applies) else {
        return CodegenOrdered::new(
            CodegenOrderVerdict::Unknown,
            "no table lists what this order needs here",
        );
    };
    // After the barrier, nothing waits for an access before it.
    let mut steps = dialect.parts_of(requirement);
    steps.retain(|step| is_release || step.place == RequirementPosition::SecondLoad);
    let check = |line: &usize| {
        let ends = if is_release { (*line, barrier.start) } else { (barrier.end - 1, *line) };
        check_steps(&steps, disassembly, ends, may_be_cached)
    };
    let mut found: Vec<CodegenOrdered> = lines.iter().map(check).collect();
    found.sort_by_key(|one| one.verdict);
    let is_mixed = found.first().map(|one| one.verdict) != found.last().map(|one| one.verdict);
    let worst = found.pop().unwrap_or_else(|| not_covered("no line"));
    let worst = CodegenOrdered { source: Some(requirement.source.clone()), ..worst };
    if is_mixed {
        return CodegenOrdered {
            verdict: CodegenOrderVerdict::Unknown,
            why: NOT_DISTINGUISHED.to_owned(),
            ..worst
        };
    }
    // A wait or fence may follow the barrier, or be in another block.
    let worst = match worst.verdict {
        CodegenOrderVerdict::Lost => CodegenOrdered { verdict: CodegenOrderVerdict::Unknown, ..worst },
        _ => worst,
    };
    // The table of workgroup memory is about workgroups.
    if is_shared { worst } else { weaken_narrow(required.scope, worst) }
}

/// Returns true if both are instructions of one thread, in this order.
fn is_before(earlier: LineSource, later: LineSource) -> bool {
    match (earlier, later) {
        (LineSource::Instruction(thread, first), LineSource::Instruction(other, second)) => {
            thread == other && first < second
        }
        (LineSource::Instruction(..) | LineSource::Result(_), _) => false,
    }
}

fn check_steps(
    steps: &[&RequirementPart],
    disassembly: &Disassembly,
    (first, second): (usize, usize),
    second_reads: bool,
) -> CodegenOrdered {
    let text = |at: usize| disassembly.lines.get(at).map_or("", |line| line.text.as_str());
    let mut search_start = first + 1;
    let mut worst = CodegenOrdered::new(CodegenOrderVerdict::Kept, "");
    for step in steps {
        let RequirementPart { place, alternatives, uncertain_alternatives, if_missing, description: words } =
            step;
        let line_contains =
            |line: usize, parts: &[String]| parts.iter().any(|part| text(line).contains(part));
        let is_access = |line: &usize| {
            disassembly.lines.get(*line).is_some_and(|line| matches!(line.kind, LineKind::Access(_)))
        };
        let is_present = match place {
            RequirementPosition::Between => {
                let at = (search_start..second).find(|line| line_contains(*line, alternatives));
                if let Some(at) = at {
                    search_start = at + 1;
                }
                at.is_some()
            }
            RequirementPosition::SecondLoad => {
                !second_reads
                    || line_contains(second, alternatives)
                    // The bits of other accesses say nothing about this one.
                    || (search_start..second)
                        .any(|line| !is_access(&line) && line_contains(line, alternatives))
            }
            RequirementPosition::OnNeither => {
                !line_contains(first, alternatives) && !line_contains(second, alternatives)
            }
        };
        if is_present {
            continue;
        }
        let is_uncertain = *place == RequirementPosition::Between
            && (search_start..second).any(|line| line_contains(line, uncertain_alternatives));
        let verdict = match if_missing {
            _ if is_uncertain => CodegenOrderVerdict::Unknown,
            MissingOperation::Lost => CodegenOrderVerdict::Lost,
            MissingOperation::Weakened => CodegenOrderVerdict::Weakened,
            MissingOperation::Unknown => CodegenOrderVerdict::Unknown,
        };
        let why = match verdict {
            _ if is_uncertain => format!("possibly present: {words}"),
            CodegenOrderVerdict::Unknown => format!("not present: {words}; the needs of others are unknown"),
            _ => format!("missing: {words}"),
        };
        if verdict > worst.verdict {
            worst = CodegenOrdered::new(verdict, why);
        }
        if verdict == CodegenOrderVerdict::Lost {
            break;
        }
    }
    if worst.verdict == CodegenOrderVerdict::Kept {
        let words: Vec<&str> = steps.iter().map(|step| step.description.as_str()).collect();
        worst.why = if words.is_empty() { "in this order".to_owned() } else { words.join(", ") };
    }
    worst
}

/// Checks an acquire between two loads in NIR, Mesa's shared intermediate form, in the last form that a
/// driver prints.
///
/// The result is unknown unless the kernel has as many atomic loads as the test.
pub fn check_nir(required: &RequiredOrder, nir: &str, loads: usize) -> Option<CodegenOrdered> {
    if required.order != Order::Acquire {
        return None;
    }
    let (_, main_body) = nir.rsplit_once("\nimpl main {").or_else(|| nir.split_once("impl main {"))?;
    let main = main_body.split("\n}").next().unwrap_or(main_body);
    let is_atomic_load =
        |line: &&str| line.contains("@load_") && line.contains("access=") && line.contains("|atomic");
    let is_fence = |line: &str| line.contains("@barrier") && line.contains("mem_semantics=ACQ");
    let lines: Vec<&str> = main.lines().filter(|line| is_atomic_load(line) || is_fence(line)).collect();
    let load_count = lines.iter().filter(|line| is_atomic_load(line)).count();
    if load_count != loads || loads < 2 {
        return Some(CodegenOrdered::new(
            CodegenOrderVerdict::Unknown,
            "the loads of the test differ from those of NIR",
        ));
    }
    let has_fence = |window: &[&str]| window.iter().any(|line| is_fence(line));
    let first = lines.iter().position(is_atomic_load)?;
    let last = lines.iter().rposition(is_atomic_load)?;
    if !lines.get(first..last).is_some_and(has_fence) {
        return Some(CodegenOrdered::new(CodegenOrderVerdict::Lost, "no barrier is between the loads"));
    }
    if lines.iter().filter(|line| is_atomic_load(line)).any(|line| line.contains("reorderable")) {
        return Some(CodegenOrdered::new(
            CodegenOrderVerdict::Weakened,
            "a load is `reorderable` although it is `atomic`: a later pass or compiler may move it",
        ));
    }
    Some(CodegenOrdered::new(CodegenOrderVerdict::Kept, "a barrier between loads that are not `reorderable`"))
}
