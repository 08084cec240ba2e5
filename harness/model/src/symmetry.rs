//! Interchangeable threads: a swap of two of them maps each execution of the test to another one.
//!
//! All executions that swaps reach from one have the same races and answers, so one of them is enough: that in which the
//! threads write in a fixed order (`guarded`).
//!
//! Two threads are interchangeable if they have the same code and each is alone in its subgroup, workgroup or queue family,
//! as far as these differ. If no scope is as narrow as a subgroup, or as a workgroup, the Vulkan model does not depend on
//! the placement of threads in these. The model refers to subgroups and workgroups only in links of availability and
//! visibility chains, and in the domains that these reach. Operations of device scope are in all narrower instances too (`in-subgroup`,
//! `in-workgroup`). So each such link is also a link of the queue family, and each domain is contained in the
//! device's. Links of narrower operations extend chains that links of the queue family do not (`in-device`).
//! But if all semantics name the same storage classes, such a chain is one happens-before edge by these
//! classes. Its first link then reaches as far as its last (VK-AVC-01, VK-AVC-02, VK-VISC-01, VK-VISC-02,
//! VK-AVSEM-07). The execution scope of a control barrier determines the invocations that it joins.
//!
//! Threads with other numbers and locations are interchangeable if these can be swapped too (`renaming`).

mod renaming;

use litmus::{
    Access, AccessKind, Comparison, Condition, InstructionKind, Order, Placement, RmwOperation, Scope,
    Semantics, StorageClassSet, Term, Test, Thread, ThreadId, ThreadPlace,
};

use self::renaming::Renaming;
use crate::skeleton::ExecutionSemantics;

/// Two threads that may be swapped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ThreadSwap {
    pub threads: [usize; 2],
    /// True if the swap preserves the condition of the question.
    pub preserves_condition: bool,
    /// True if locations or numbers are swapped too: only what both threads do on all paths corresponds.
    pub is_renaming: bool,
}

/// Returns the swaps of interchangeable threads: of each and the next one like it, which generate all permutations.
///
/// Each swap preserves the filter.
pub fn find_swaps(test: &Test, semantic: ExecutionSemantics) -> Vec<ThreadSwap> {
    let mut swaps = Vec::new();
    let Some(places) = comparable_places(test, semantic) else { return swaps };
    let condition = test.question.as_ref().map(|question| &question.condition);
    for later in 1..test.threads.len() {
        let candidates = || (0..later).rev().filter(|earlier| have_like_places(&places, *earlier, later));
        let alike = |earlier: &usize| has_same_code(&test.threads[*earlier], &test.threads[later]);
        let (earlier, renaming) = match candidates().find(alike) {
            Some(earlier) => (earlier, None),
            None => match candidates().find_map(|e| Some((e, Renaming::new(test, [e, later])?))) {
                Some((earlier, renaming)) => (earlier, Some(renaming)),
                None => continue,
            },
        };
        let preserves = |condition: Option<&Condition>| {
            preserves_condition([earlier, later], condition)
                && renaming.as_ref().is_none_or(|renaming| renaming.preserves(condition))
        };
        if preserves(test.filter.as_ref()) {
            let preserves_condition = preserves(condition);
            let is_renaming = renaming.is_some();
            swaps.push(ThreadSwap { threads: [earlier, later], preserves_condition, is_renaming });
        }
    }
    swaps
}

/// Returns the places of the threads as far as the model distinguishes them; `None` if it numbers or orders threads.
fn comparable_places(test: &Test, semantic: ExecutionSemantics) -> Option<Vec<Placement>> {
    let mut instructions = test.threads.iter().flat_map(|thread| &thread.instructions);
    let is_numbered = instructions.any(|instruction| {
        use InstructionKind::{Interlock, ShaderCall, Subgroup, System};
        matches!(instruction.kind, System(_) | ShaderCall(_) | Interlock(_) | Subgroup(_))
    });
    if is_numbered || !test.system_sync.is_empty() || test.khronos.is_some() {
        return None;
    }
    let narrowest = if semantic.has_scope_symmetry { narrowest_scope(test) } else { Scope::Invocation };
    let place = |thread: &Thread| match thread.place {
        ThreadPlace::Device(mut place) => {
            place.workgroup = if narrowest > Scope::Workgroup { 0 } else { place.workgroup };
            place.subgroup = if narrowest > Scope::Subgroup { 0 } else { place.subgroup };
            Some(place)
        }
        ThreadPlace::Host => None,
    };
    test.threads.iter().map(place).collect()
}

/// Returns true if two threads have the same instructions, registers and labels.
fn has_same_code(one: &Thread, other: &Thread) -> bool {
    let kinds = |thread: &Thread| thread.instructions.iter().map(|i| i.kind.clone()).collect::<Vec<_>>();
    let declarations =
        |thread: &Thread| thread.registers.iter().map(|r| (r.init, r.declared)).collect::<Vec<_>>();
    one.instructions.len() == other.instructions.len()
        && declarations(one) == declarations(other)
        && kinds(one) == kinds(other)
}

/// Returns true if the places of two threads can be swapped: where they first differ, each is alone.
fn have_like_places(places: &[Placement], one: usize, other: usize) -> bool {
    for scope in [Scope::Subgroup, Scope::Workgroup, Scope::QueueFamily] {
        let group = |place: &Placement| place.scope_instance(scope);
        let (left, right) = (group(&places[one]), group(&places[other]));
        if left == right {
            return true;
        }
        let is_alone = |wanted| places.iter().filter(|place| group(place) == wanted).count() == 1;
        if !is_alone(left) || !is_alone(right) {
            return false;
        }
    }
    true
}

/// Returns true if a swap of two threads preserves a condition.
fn preserves_condition([one, other]: [usize; 2], condition: Option<&Condition>) -> bool {
    let swapped = |term: &Term| match term {
        Term::Register(thread, register) => {
            let thread = match usize::from(thread.0) {
                index if index == one => ThreadId(other as u16),
                index if index == other => ThreadId(one as u16),
                _ => *thread,
            };
            Term::Register(thread, *register)
        }
        term => term.clone(),
    };
    condition.is_none_or(|condition| {
        canonical_form(condition, &Term::clone) == canonical_form(condition, &swapped)
    })
}

/// Returns a condition over substituted terms as text, independent of the order of conjuncts and disjuncts.
fn canonical_form(condition: &Condition, term: &dyn Fn(&Term) -> Term) -> String {
    fn collect_operands(
        condition: &Condition,
        and: bool,
        term: &dyn Fn(&Term) -> Term,
        all: &mut Vec<String>,
    ) {
        match (condition, and) {
            (Condition::And(left, right), true) | (Condition::Or(left, right), false) => {
                collect_operands(left, and, term, all);
                collect_operands(right, and, term, all);
            }
            _ => all.push(canonical_form(condition, term)),
        }
    }
    match condition {
        Condition::True => "true".to_owned(),
        Condition::Compare { left, comparison, right } => {
            let (left, right) = (format!("{:?}", term(left)), format!("{:?}", term(right)));
            // Only these two comparisons stay the same if their operands change places.
            let (left, right) = match comparison {
                Comparison::Equal | Comparison::NotEqual if right < left => (right, left),
                _ => (left, right),
            };
            format!("({left} {comparison:?} {right})")
        }
        Condition::And(..) | Condition::Or(..) => {
            let and = matches!(condition, Condition::And(..));
            let mut all = Vec::new();
            collect_operands(condition, and, term, &mut all);
            // A chain of one connective means the same in every order and nesting.
            all.sort_unstable();
            format!("{}({})", if and { "and" } else { "or" }, all.join(", "))
        }
        Condition::Not(inner) => format!("not {}", canonical_form(inner, term)),
    }
}

/// Returns the narrowest scope for which thread placement matters: invocation scope if an instruction
/// observes placement.
fn narrowest_scope(test: &Test) -> Scope {
    let mut narrowest = Scope::CrossDevice;
    let mut classes: Vec<StorageClassSet> = Vec::new();
    let mut add_scope = |scope: Scope, semantics: Option<&Semantics>| {
        narrowest = match scope {
            // These scopes contain parts of subgroups and workgroups.
            Scope::ShaderCall | Scope::FragmentInterlock => Scope::Invocation,
            _ => narrowest.min(scope),
        };
        let ordering = semantics.filter(|semantics| semantics.order != Order::Relaxed);
        classes
            .extend(ordering.map(|ordering| ordering.classes).filter(|all| *all != StorageClassSet::EMPTY));
    };
    for instruction in test.threads.iter().flat_map(|thread| &thread.instructions) {
        match &instruction.kind {
            InstructionKind::Access(access) => match &access.strength {
                Access::Private | Access::NonPrivate => {}
                Access::Coherent { scope } => add_scope(*scope, None),
                Access::Atomic { scope, semantics } => {
                    add_scope(*scope, Some(semantics));
                    if let AccessKind::Rmw {
                        operation: RmwOperation::CompareExchange { unequal, .. }, ..
                    } = &access.kind
                    {
                        add_scope(*scope, Some(unequal));
                    }
                }
            },
            InstructionKind::Fence { scope, semantics } => add_scope(*scope, Some(semantics)),
            InstructionKind::ControlBarrier(barrier) => {
                add_scope(barrier.execution_scope, None);
                add_scope(barrier.memory_scope, barrier.semantics.as_ref());
            }
            InstructionKind::Compute(_) | InstructionKind::Flow(_) => {}
            _ => add_scope(Scope::Invocation, None),
        }
    }
    // Not sorted: one entry is left if and only if all are equal.
    classes.dedup();
    if narrowest >= Scope::Device || classes.len() <= 1 { narrowest } else { Scope::Invocation }
}
