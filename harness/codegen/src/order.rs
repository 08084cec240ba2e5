//! Checks that machine code keeps an order of the test, by a table of the instructions required between two
//! accesses.
//!
//! It is simpler than exploration, and available for every vendor with a table ([`vendor::order`]). Cases
//! without a row are [`OrderVerdict::Unknown`], and so are accesses that the text does not distinguish.

use litmus::{InstructionKind, MemoryAccess, Scope, Semantics, Test};
use vendor::order::{MissingOperation, Order, OrderRequirement, RequirementPart, RequirementPosition};

use crate::align::{Alignment, LineSource};
use crate::disassembly::{CodeOperation, CodePath, Disassembly, LineKind};
use crate::form::FormKernel;

/// The verdict on an order; the worst part decides.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum OrderVerdict {
    /// Everything that it needs is present.
    Kept,
    /// A part of it is present.
    Weakened,
    /// The table has no row for it, or the text does not distinguish the accesses.
    Unknown,
    /// No table covers what orders them: a control barrier, or workgroup memory.
    NotCovered,
    /// Nothing orders the two accesses, or they are in reverse order.
    Lost,
}

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
    /// True if one of the two is a control barrier.
    pub has_barrier: bool,
}

/// The result of a check.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OrderFinding {
    pub verdict: OrderVerdict,
    /// The present or missing instruction, in words.
    pub why: String,
    /// The source of the requirement.
    pub source: Option<&'static str>,
    /// True if the compiler merged two loads across an operation that orders them.
    pub is_merged: bool,
}

impl OrderFinding {
    fn new(verdict: OrderVerdict, why: impl Into<String>) -> OrderFinding {
        OrderFinding { verdict, why: why.into(), source: None, is_merged: false }
    }
}

/// Returns the orders that a kernel's threads require.
///
/// An acquire orders all later accesses, a release all earlier ones. A memory barrier orders accesses across it if
/// the earlier one is an atomic read (acquire) or the later one an atomic write (release). A control barrier
/// releases earlier accesses and acquires for later ones.
pub fn find_required_orders(test: &Test, form_kernel: &FormKernel) -> Vec<RequiredOrder> {
    let mut all = Vec::new();
    for thread in &form_kernel.threads {
        let instructions = &test.thread(*thread).instructions;
        let accesses: Vec<(usize, &MemoryAccess)> = (0..)
            .zip(instructions)
            .filter_map(|(index, instruction)| Some((index, instruction.kind.access()?)))
            .collect();
        let mut add_order = |order,
                             scope,
                             semantics: &Semantics,
                             (first, a): (usize, &MemoryAccess),
                             (second, b): (usize, &MemoryAccess)| {
            let visible = b.strength.scope().is_some() || semantics.make_visible;
            let is_ordered =
                semantics.classes.contains(a.place.class) && semantics.classes.contains(b.place.class);
            let (first, second) =
                (LineSource::Instruction(*thread, first), LineSource::Instruction(*thread, second));
            let is_known = all
                .iter()
                .any(|one: &RequiredOrder| (one.order, one.first, one.second) == (order, first, second));
            if is_ordered && !is_known {
                let needs_visibility = visible;
                all.push(RequiredOrder { order, scope, first, second, needs_visibility, has_barrier: false });
            }
        };
        for &(index, access) in &accesses {
            let litmus::Access::Atomic { scope, semantics } = access.strength else { continue };
            if semantics.order.acquires() {
                accesses.iter().filter(|(later, _)| *later > index).for_each(|later| {
                    add_order(Order::Acquire, scope, &semantics, (index, access), *later);
                });
            }
            if semantics.order.releases() {
                accesses.iter().filter(|(earlier, _)| *earlier < index).for_each(|earlier| {
                    add_order(Order::Release, scope, &semantics, *earlier, (index, access));
                });
            }
        }
        for (index, instruction) in instructions.iter().enumerate() {
            let InstructionKind::Fence { scope, semantics } = instruction.kind else { continue };
            let (before, after): (Vec<_>, Vec<_>) = accesses.iter().copied().partition(|(at, _)| *at < index);
            let is_atomic = |access: &MemoryAccess| matches!(access.strength, litmus::Access::Atomic { .. });
            for &first in &before {
                for &second in &after {
                    if semantics.order.acquires() && is_atomic(first.1) && first.1.is_read() {
                        add_order(Order::Acquire, scope, &semantics, first, second);
                    }
                    if semantics.order.releases() && is_atomic(second.1) && second.1.is_write() {
                        add_order(Order::Release, scope, &semantics, first, second);
                    }
                }
            }
        }
        for (index, instruction) in instructions.iter().enumerate() {
            let (scope, semantics) = match &instruction.kind {
                InstructionKind::ControlBarrier(barrier) => (barrier.memory_scope, barrier.semantics),
                InstructionKind::SplitBarrier(half) => (half.memory_scope, half.semantics),
                _ => continue,
            };
            let Some(semantics) = semantics else { continue };
            let barrier = LineSource::Instruction(*thread, index);
            for &(at, access) in
                accesses.iter().filter(|(_, own)| semantics.classes.contains(own.place.class))
            {
                let source = LineSource::Instruction(*thread, at);
                let (order, first, second, is_ordered) = match at < index {
                    true => (Order::Release, source, barrier, semantics.order.releases()),
                    false => (Order::Acquire, barrier, source, semantics.order.acquires()),
                };
                if is_ordered {
                    let needs_visibility = access.strength.scope().is_some() || semantics.make_visible;
                    all.push(RequiredOrder {
                        order,
                        scope,
                        first,
                        second,
                        needs_visibility,
                        has_barrier: true,
                    });
                }
            }
        }
    }
    all
}

const NOT_DISTINGUISHED: &str = "the text does not distinguish the accesses";

/// Checks that the lines between two accesses contain what their order needs, on chips of a compiler's
/// `target`.
pub fn check_order(
    required: &RequiredOrder,
    disassembly: &Disassembly,
    alignment: &Alignment,
    target: &str,
) -> OrderFinding {
    if required.has_barrier {
        return OrderFinding::new(OrderVerdict::NotCovered, "no table lists what a control barrier needs");
    }
    let line_of = |source| alignment.sources.iter().position(|found| *found == Some(source));
    if let Some(earlier) =
        alignment.merged_into(required.second).filter(|_| line_of(required.second).is_none())
    {
        if is_before(earlier, required.first) {
            let why = "the second access has no line, and the value is that of a load before the first";
            return OrderFinding { is_merged: true, ..OrderFinding::new(OrderVerdict::Lost, why) };
        }
        return check_order(
            &RequiredOrder { second: earlier, ..required.clone() },
            disassembly,
            alignment,
            target,
        );
    }
    let (Some(first), Some(second)) = (line_of(required.first), line_of(required.second)) else {
        return OrderFinding::new(OrderVerdict::Unknown, "an access has no line");
    };
    let access_at = |at: usize| match disassembly.lines.get(at).map(|line| line.kind) {
        Some(LineKind::Access(access)) => Some(access),
        _ => None,
    };
    let (Some(first_access), Some(of_second)) = (access_at(first), access_at(second)) else {
        return OrderFinding::new(OrderVerdict::Unknown, "an access has no line");
    };
    let both = |predicate: fn(&Alignment, LineSource) -> bool| {
        predicate(alignment, required.first) && predicate(alignment, required.second)
    };
    if !both(Alignment::is_likely) || (second < first && !both(Alignment::is_certain)) {
        return OrderFinding::new(OrderVerdict::Unknown, NOT_DISTINGUISHED);
    }
    if second < first {
        return OrderFinding::new(OrderVerdict::Lost, "the second access is before the first");
    }
    let applies = |need: &&OrderRequirement| {
        need.order == required.order
            && need.first_operations.contains(&first_access.operation)
            && (need.targets.is_empty() || need.targets.iter().any(|start| target.starts_with(start)))
    };
    let Some(requirement) = disassembly.dialect.order_requirements.iter().find(applies) else {
        let is_shared = [first_access, of_second].iter().any(|access| access.path == CodePath::Workgroup);
        let verdict = if is_shared { OrderVerdict::NotCovered } else { OrderVerdict::Unknown };
        return OrderFinding::new(verdict, "no table lists what this order needs here");
    };
    // The workgroup's memory has no cache.
    let may_be_cached = of_second.operation == CodeOperation::Load && of_second.path != CodePath::Workgroup;
    let found =
        check_steps(requirement, disassembly, (first, second), may_be_cached && required.needs_visibility);
    let found = OrderFinding { source: Some(requirement.source), ..found };
    // An uncertain match is not evidence against a compiler.
    if found.verdict != OrderVerdict::Kept && !both(Alignment::is_certain) {
        return OrderFinding { verdict: OrderVerdict::Unknown, why: NOT_DISTINGUISHED.to_owned(), ..found };
    }
    let is_narrow = match required.scope {
        Scope::QueueFamily | Scope::Device | Scope::CrossDevice => false,
        Scope::Invocation
        | Scope::Subgroup
        | Scope::Workgroup
        | Scope::ShaderCall
        | Scope::FragmentInterlock => true,
    };
    if is_narrow && found.verdict != OrderVerdict::Kept {
        let why = format!("{}; the scope is narrower than the table's, so less may be sufficient", found.why);
        return OrderFinding { verdict: OrderVerdict::Unknown, why, ..found };
    }
    found
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
    requirement: &OrderRequirement,
    disassembly: &Disassembly,
    (first, second): (usize, usize),
    second_reads: bool,
) -> OrderFinding {
    let text = |at: usize| disassembly.lines.get(at).map_or("", |line| line.text.as_str());
    let mut search_start = first + 1;
    let mut worst = OrderFinding::new(OrderVerdict::Kept, "");
    for step in requirement.steps {
        let RequirementPart { place, alternatives, uncertain_alternatives, if_missing, description: words } =
            *step;
        let line_contains = |line: usize, parts: &[&str]| parts.iter().any(|part| text(line).contains(part));
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
                    || (search_start..second).any(|line| line_contains(line, alternatives))
            }
            RequirementPosition::OnNeither => {
                !line_contains(first, alternatives) && !line_contains(second, alternatives)
            }
        };
        if is_present {
            continue;
        }
        let is_uncertain = place == RequirementPosition::Between
            && (search_start..second).any(|line| line_contains(line, uncertain_alternatives));
        let verdict = match if_missing {
            _ if is_uncertain => OrderVerdict::Unknown,
            MissingOperation::Lost => OrderVerdict::Lost,
            MissingOperation::Weakened => OrderVerdict::Weakened,
            MissingOperation::Unknown => OrderVerdict::Unknown,
        };
        let why = match verdict {
            _ if is_uncertain => format!("possibly present: {words}"),
            OrderVerdict::Unknown => format!("not present: {words}; the needs of others are unknown"),
            _ => format!("missing: {words}"),
        };
        if verdict > worst.verdict {
            worst = OrderFinding::new(verdict, why);
        }
        if verdict == OrderVerdict::Lost {
            break;
        }
    }
    if worst.verdict == OrderVerdict::Kept {
        let words: Vec<&str> = requirement.steps.iter().map(|step| step.description).collect();
        worst.why = words.join(", ");
    }
    worst
}

/// Checks an acquire between two loads in NIR, Mesa's shared intermediate form, in the last form that a
/// driver prints.
///
/// The result is unknown unless the kernel has as many atomic loads as the test.
pub fn check_nir(required: &RequiredOrder, nir: &str, loads: usize) -> Option<OrderFinding> {
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
        return Some(OrderFinding::new(
            OrderVerdict::Unknown,
            "the loads of the test differ from those of NIR",
        ));
    }
    let has_fence = |window: &[&str]| window.iter().any(|line| is_fence(line));
    let first = lines.iter().position(is_atomic_load)?;
    let last = lines.iter().rposition(is_atomic_load)?;
    if !lines.get(first..last).is_some_and(has_fence) {
        return Some(OrderFinding::new(OrderVerdict::Lost, "no barrier is between the loads"));
    }
    if lines.iter().filter(|line| is_atomic_load(line)).any(|line| line.contains("reorderable")) {
        return Some(OrderFinding::new(
            OrderVerdict::Weakened,
            "a load is `reorderable` although it is `atomic`: a later pass or compiler may move it",
        ));
    }
    Some(OrderFinding::new(OrderVerdict::Kept, "a barrier between loads that are not `reorderable`"))
}
