//! Whether the order that a test asks for stands in machine code, by a table of what must stand between two accesses.
//!
//! Simpler than exploring, and there for every vendor with a table ([`vendor::order`]). It knows no more than its rows: what
//! they do not speak of is [`Verdict::Unknown`], and so is a pair of accesses that the text does not tell apart.

use litmus::{InstructionKind, MemoryAccess, Scope, Semantics, Test};
use vendor::order::{Need, Order, Place, Step, Without};

use crate::align::{Alignment, Source};
use crate::form::Unit;
use crate::machine::{LineKind, Machine, Operation, Path};

/// What became of an order; of several parts the last of these decides.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Verdict {
    /// All that it needs is there.
    Kept,
    /// Part of it is there.
    Weakened,
    /// No row of the table says it, or the text does not tell the accesses apart.
    Unknown,
    /// Nothing orders the two accesses, or they stand the other way round.
    Lost,
}

/// Two accesses of a thread that an instruction of the test orders.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Asked {
    /// The order.
    pub order: Order,
    /// The widest scope at which it is asked for.
    pub scope: Scope,
    /// The first access.
    pub first: Source,
    /// The second.
    pub second: Source,
    /// Whether the second has to see what others have written: it is atomic or visible of its own, or made so.
    pub visible: bool,
}

/// What was found of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found {
    /// The verdict.
    pub verdict: Verdict,
    /// What is there, or missing, in words.
    pub why: String,
    /// Who says what is needed.
    pub source: Option<&'static str>,
}

impl Found {
    fn new(verdict: Verdict, why: impl Into<String>) -> Found {
        Found { verdict, why: why.into(), source: None }
    }
}

/// The orders that a kernel's threads ask for: an acquire orders all accesses behind it, a release all before it, and a
/// barrier those on its two sides of which the atomic one is its partner.
pub fn asked(test: &Test, unit: &Unit) -> Vec<Asked> {
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
            let (first, second) = (Source::Instruction(*thread, first), Source::Instruction(*thread, second));
            let known =
                all.iter().any(|one: &Asked| (one.order, one.first, one.second) == (order, first, second));
            if ordered && !known {
                all.push(Asked { order, scope, first, second, visible });
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

const NOT_TOLD: &str = "the text does not tell the accesses apart";

/// Looks for what an order needs between the lines of its two accesses, on chips of a compiler's `target`.
pub fn check(asked: &Asked, machine: &Machine, alignment: &Alignment, target: &str) -> Found {
    let line_of = |source| alignment.sources.iter().position(|found| *found == Some(source));
    let (Some(first), Some(second)) = (line_of(asked.first), line_of(asked.second)) else {
        return Found::new(Verdict::Unknown, "an access has no line");
    };
    let access = |at: usize| match machine.lines.get(at).map(|line| line.kind) {
        Some(LineKind::Access(access)) => Some(access),
        _ => None,
    };
    let (Some(of_first), Some(of_second)) = (access(first), access(second)) else {
        return Found::new(Verdict::Unknown, "an access has no line");
    };
    let both = |is: fn(&Alignment, Source) -> bool| is(alignment, asked.first) && is(alignment, asked.second);
    if !both(Alignment::is_likely) || (second < first && !both(Alignment::is_certain)) {
        return Found::new(Verdict::Unknown, NOT_TOLD);
    }
    if second < first {
        return Found::new(Verdict::Lost, "the second access stands before the first");
    }
    let holds = |need: &&Need| {
        need.order == asked.order
            && need.first.contains(&of_first.operation)
            && (need.targets.is_empty() || need.targets.iter().any(|start| target.starts_with(start)))
    };
    let Some(need) = machine.dialect.needs.iter().find(holds) else {
        return Found::new(Verdict::Unknown, "no table says what this order needs here");
    };
    // No cache stands before the workgroup's memory.
    let cached = of_second.operation == Operation::Load && of_second.path != Path::Workgroup;
    let found = steps(need, machine, (first, second), cached && asked.visible);
    let found = Found { source: Some(need.source), ..found };
    // What is only likely is not held against a compiler.
    if found.verdict != Verdict::Kept && !both(Alignment::is_certain) {
        return Found { verdict: Verdict::Unknown, why: NOT_TOLD.to_owned(), ..found };
    }
    let narrow = !matches!(asked.scope, Scope::QueueFamily | Scope::Device | Scope::CrossDevice);
    if narrow && found.verdict != Verdict::Kept {
        let why = format!("{}; but the scope is narrower than the table's, and less may do", found.why);
        return Found { verdict: Verdict::Unknown, why, ..found };
    }
    found
}

fn steps(need: &Need, machine: &Machine, (first, second): (usize, usize), second_reads: bool) -> Found {
    let text = |at: usize| machine.lines.get(at).map_or("", |line| line.text.as_str());
    let mut from = first + 1;
    let mut worst = Found::new(Verdict::Kept, "");
    for step in need.steps {
        let Step { place, any, perhaps, without, words } = *step;
        let has = |line: usize, parts: &[&str]| parts.iter().any(|part| text(line).contains(part));
        let there = match place {
            Place::Between => {
                let at = (from..second).find(|line| has(*line, any));
                if let Some(at) = at {
                    from = at + 1;
                }
                at.is_some()
            }
            Place::SecondLoad => {
                !second_reads || has(second, any) || (from..second).any(|line| has(line, any))
            }
            Place::NotOnEither => !has(first, any) && !has(second, any),
        };
        if there {
            continue;
        }
        let uncertain = place == Place::Between && (from..second).any(|line| has(line, perhaps));
        let verdict = match without {
            _ if uncertain => Verdict::Unknown,
            Without::Lost => Verdict::Lost,
            Without::Weakened => Verdict::Weakened,
            Without::Unknown => Verdict::Unknown,
        };
        let why = match verdict {
            _ if uncertain => format!("perhaps there: {words}"),
            Verdict::Unknown => format!("not there: {words}; what others need is not known"),
            _ => format!("missing: {words}"),
        };
        if verdict > worst.verdict {
            worst = Found::new(verdict, why);
        }
        if verdict == Verdict::Lost {
            break;
        }
    }
    if worst.verdict == Verdict::Kept {
        let words: Vec<&str> = need.steps.iter().map(|step| step.words).collect();
        worst.why = words.join(", ");
    }
    worst
}

/// What became of an acquire between two loads in NIR, Mesa's form that all its compilers share, by the last text of it that a
/// driver shows. Only in kernels with as many atomic loads as the test has: else nothing is known.
pub fn check_nir(asked: &Asked, nir: &str, loads: usize) -> Option<Found> {
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
        return Some(Found::new(Verdict::Unknown, "the loads of the test are not those of NIR"));
    }
    let between = |window: &[&str]| window.iter().any(|line| is_fence(line));
    let first = lines.iter().position(of_accesses)?;
    let last = lines.iter().rposition(of_accesses)?;
    if !lines.get(first..last).is_some_and(between) {
        return Some(Found::new(Verdict::Lost, "no barrier stands between the loads"));
    }
    if lines.iter().filter(|line| of_accesses(line)).any(|line| line.contains("reorderable")) {
        return Some(Found::new(
            Verdict::Weakened,
            "a load is `reorderable` although it is `atomic`: a later pass or compiler may move it",
        ));
    }
    Some(Found::new(Verdict::Kept, "a barrier between loads that are not `reorderable`"))
}
