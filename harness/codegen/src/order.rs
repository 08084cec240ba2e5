//! Checks that machine code keeps an order of the test, by a table of the instructions required between two
//! accesses.
//!
//! It is simpler than exploration, and available for every vendor with a table ([`vendor::order`]). Cases
//! without a row are [`OrderKept::Unknown`], and so are accesses that the text does not distinguish.

use litmus::{InstructionKind, MemoryAccess, Scope, Semantics, Test};
use vendor::order::{MissingOperation, NeedPart, NeedPlace, Order, OrderNeed};

use crate::align::{Alignment, LineSource};
use crate::form::FormKernel;
use crate::machine::{CodeOperation, CodePath, Disassembly, LineKind};

/// The verdict on an order; the worst part decides.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum OrderKept {
    /// Everything that it needs is present.
    Kept,
    /// A part of it is present.
    Weakened,
    /// The table has no row for it, or the text does not distinguish the accesses.
    Unknown,
    /// Nothing orders the two accesses, or they are in reverse order.
    Lost,
}

/// Two accesses of a thread that an instruction of the test orders.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RequiredOrder {
    /// The order.
    pub order: Order,
    /// The widest requested scope.
    pub scope: Scope,
    /// The earlier access.
    pub first: LineSource,
    /// The later access.
    pub second: LineSource,
    /// True if the second access must see writes of others: it is atomic, visible, or follows a visibility
    /// operation.
    pub visible: bool,
}

/// The result of a check.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OrderFinding {
    /// The verdict.
    pub verdict: OrderKept,
    /// The present or missing instruction, in words.
    pub why: String,
    /// The source of the requirement.
    pub source: Option<&'static str>,
    /// True if the compiler merged two loads across an operation that orders them.
    pub is_merged: bool,
}

impl OrderFinding {
    fn new(verdict: OrderKept, why: impl Into<String>) -> OrderFinding {
        OrderFinding { verdict, why: why.into(), source: None, is_merged: false }
    }
}

/// Returns the orders that a kernel's threads require.
///
/// An acquire orders all later accesses, a release all earlier ones. A memory barrier orders accesses across it if
/// the earlier one is an atomic read (acquire) or the later one an atomic write (release).
pub fn required_orders(test: &Test, unit: &FormKernel) -> Vec<RequiredOrder> {
    let mut all = Vec::new();
    for thread in &unit.threads {
        let instructions = &test.thread(*thread).instructions;
        let accesses: Vec<(usize, &MemoryAccess)> = (0..)
            .zip(instructions)
            .filter_map(|(index, instruction)| Some((index, instruction.kind.access()?)))
            .collect();
        let mut add = |order,
                       scope,
                       semantics: &Semantics,
                       (first, a): (usize, &MemoryAccess),
                       (second, b): (usize, &MemoryAccess)| {
            let visible = b.strength.scope().is_some() || semantics.make_visible;
            let ordered =
                semantics.classes.contains(a.place.class) && semantics.classes.contains(b.place.class);
            let (first, second) =
                (LineSource::Instruction(*thread, first), LineSource::Instruction(*thread, second));
            let known = all
                .iter()
                .any(|one: &RequiredOrder| (one.order, one.first, one.second) == (order, first, second));
            if ordered && !known {
                all.push(RequiredOrder { order, scope, first, second, visible });
            }
        };
        for &(index, access) in &accesses {
            let litmus::Access::Atomic { scope, semantics } = access.strength else { continue };
            if semantics.order.acquires() {
                accesses.iter().filter(|(later, _)| *later > index).for_each(|later| {
                    add(Order::Acquire, scope, &semantics, (index, access), *later);
                });
            }
            if semantics.order.releases() {
                accesses.iter().filter(|(earlier, _)| *earlier < index).for_each(|earlier| {
                    add(Order::Release, scope, &semantics, *earlier, (index, access));
                });
            }
        }
        for (index, instruction) in instructions.iter().enumerate() {
            let InstructionKind::Fence { scope, semantics } = instruction.kind else { continue };
            let (before, after): (Vec<_>, Vec<_>) = accesses.iter().copied().partition(|(at, _)| *at < index);
            let is_atomic = |access: &MemoryAccess| matches!(access.strength, litmus::Access::Atomic { .. });
            for &first in &before {
                for &second in &after {
                    if semantics.order.acquires() && is_atomic(first.1) && first.1.reads() {
                        add(Order::Acquire, scope, &semantics, first, second);
                    }
                    if semantics.order.releases() && is_atomic(second.1) && second.1.writes() {
                        add(Order::Release, scope, &semantics, first, second);
                    }
                }
            }
        }
    }
    all
}

const NOT_TOLD: &str = "the text does not distinguish the accesses";

/// Checks that the lines between two accesses contain what their order needs, on chips of a compiler's
/// `target`.
pub fn check_order(
    asked: &RequiredOrder,
    machine: &Disassembly,
    alignment: &Alignment,
    target: &str,
) -> OrderFinding {
    let line_of = |source| alignment.sources.iter().position(|found| *found == Some(source));
    if let Some(earlier) = alignment.merged_into(asked.second).filter(|_| line_of(asked.second).is_none()) {
        if is_before(earlier, asked.first) {
            let why = "the second access has no line, and the value is that of a load before the first";
            return OrderFinding { is_merged: true, ..OrderFinding::new(OrderKept::Lost, why) };
        }
        return check_order(&RequiredOrder { second: earlier, ..asked.clone() }, machine, alignment, target);
    }
    let (Some(first), Some(second)) = (line_of(asked.first), line_of(asked.second)) else {
        return OrderFinding::new(OrderKept::Unknown, "an access has no line");
    };
    let access = |at: usize| match machine.lines.get(at).map(|line| line.kind) {
        Some(LineKind::Access(access)) => Some(access),
        _ => None,
    };
    let (Some(of_first), Some(of_second)) = (access(first), access(second)) else {
        return OrderFinding::new(OrderKept::Unknown, "an access has no line");
    };
    let both =
        |is: fn(&Alignment, LineSource) -> bool| is(alignment, asked.first) && is(alignment, asked.second);
    if !both(Alignment::is_likely) || (second < first && !both(Alignment::is_certain)) {
        return OrderFinding::new(OrderKept::Unknown, NOT_TOLD);
    }
    if second < first {
        return OrderFinding::new(OrderKept::Lost, "the second access is before the first");
    }
    let holds = |need: &&OrderNeed| {
        need.order == asked.order
            && need.first.contains(&of_first.operation)
            && (need.targets.is_empty() || need.targets.iter().any(|start| target.starts_with(start)))
    };
    let Some(need) = machine.dialect.needs.iter().find(holds) else {
        return OrderFinding::new(OrderKept::Unknown, "no table lists what this order needs here");
    };
    // The workgroup's memory has no cache.
    let cached = of_second.operation == CodeOperation::Load && of_second.path != CodePath::Workgroup;
    let found = check_steps(need, machine, (first, second), cached && asked.visible);
    let found = OrderFinding { source: Some(need.source), ..found };
    // An uncertain match is not evidence against a compiler.
    if found.verdict != OrderKept::Kept && !both(Alignment::is_certain) {
        return OrderFinding { verdict: OrderKept::Unknown, why: NOT_TOLD.to_owned(), ..found };
    }
    let narrow = match asked.scope {
        Scope::QueueFamily | Scope::Device | Scope::CrossDevice => false,
        Scope::Invocation
        | Scope::Subgroup
        | Scope::Workgroup
        | Scope::ShaderCall
        | Scope::FragmentInterlock => true,
    };
    if narrow && found.verdict != OrderKept::Kept {
        let why = format!("{}; the scope is narrower than the table's, so less may be sufficient", found.why);
        return OrderFinding { verdict: OrderKept::Unknown, why, ..found };
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
    need: &OrderNeed,
    machine: &Disassembly,
    (first, second): (usize, usize),
    second_reads: bool,
) -> OrderFinding {
    let text = |at: usize| machine.lines.get(at).map_or("", |line| line.text.as_str());
    let mut from = first + 1;
    let mut worst = OrderFinding::new(OrderKept::Kept, "");
    for step in need.steps {
        let NeedPart { place, any, perhaps, without, words } = *step;
        let has = |line: usize, parts: &[&str]| parts.iter().any(|part| text(line).contains(part));
        let there = match place {
            NeedPlace::Between => {
                let at = (from..second).find(|line| has(*line, any));
                if let Some(at) = at {
                    from = at + 1;
                }
                at.is_some()
            }
            NeedPlace::SecondLoad => {
                !second_reads || has(second, any) || (from..second).any(|line| has(line, any))
            }
            NeedPlace::NotOnEither => !has(first, any) && !has(second, any),
        };
        if there {
            continue;
        }
        let uncertain = place == NeedPlace::Between && (from..second).any(|line| has(line, perhaps));
        let verdict = match without {
            _ if uncertain => OrderKept::Unknown,
            MissingOperation::Lost => OrderKept::Lost,
            MissingOperation::Weakened => OrderKept::Weakened,
            MissingOperation::Unknown => OrderKept::Unknown,
        };
        let why = match verdict {
            _ if uncertain => format!("possibly present: {words}"),
            OrderKept::Unknown => format!("not present: {words}; the needs of others are unknown"),
            _ => format!("missing: {words}"),
        };
        if verdict > worst.verdict {
            worst = OrderFinding::new(verdict, why);
        }
        if verdict == OrderKept::Lost {
            break;
        }
    }
    if worst.verdict == OrderKept::Kept {
        let words: Vec<&str> = need.steps.iter().map(|step| step.words).collect();
        worst.why = words.join(", ");
    }
    worst
}

/// Checks an acquire between two loads in NIR, Mesa's shared intermediate form, in the last form that a
/// driver prints.
///
/// The result is unknown unless the kernel has as many atomic loads as the test.
pub fn check_nir(asked: &RequiredOrder, nir: &str, loads: usize) -> Option<OrderFinding> {
    if asked.order != Order::Acquire {
        return None;
    }
    let (_, main) = nir.rsplit_once("\nimpl main {").or_else(|| nir.split_once("impl main {"))?;
    let main = main.split("\n}").next().unwrap_or(main);
    let of_accesses =
        |line: &&str| line.contains("@load_") && line.contains("access=") && line.contains("|atomic");
    let is_fence = |line: &str| line.contains("@barrier") && line.contains("mem_semantics=ACQ");
    let lines: Vec<&str> = main.lines().filter(|line| of_accesses(line) || is_fence(line)).collect();
    let found = lines.iter().filter(|line| of_accesses(line)).count();
    if found != loads || loads < 2 {
        return Some(OrderFinding::new(OrderKept::Unknown, "the loads of the test differ from those of NIR"));
    }
    let between = |window: &[&str]| window.iter().any(|line| is_fence(line));
    let first = lines.iter().position(of_accesses)?;
    let last = lines.iter().rposition(of_accesses)?;
    if !lines.get(first..last).is_some_and(between) {
        return Some(OrderFinding::new(OrderKept::Lost, "no barrier is between the loads"));
    }
    if lines.iter().filter(|line| of_accesses(line)).any(|line| line.contains("reorderable")) {
        return Some(OrderFinding::new(
            OrderKept::Weakened,
            "a load is `reorderable` although it is `atomic`: a later pass or compiler may move it",
        ));
    }
    Some(OrderFinding::new(OrderKept::Kept, "a barrier between loads that are not `reorderable`"))
}
