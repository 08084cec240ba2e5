//! The valid memory semantics of each instruction.

use litmus::{IgnoredClasses, Order, Scope, Semantics};

use crate::rules::SemanticsRule;

/// The kinds of instruction with memory semantics.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SemanticsInstruction {
    Load,
    Store,
    Rmw,
    MemoryBarrier,
    ControlBarrier,
    /// The first half of a split control barrier.
    Arrival,
    /// The second half of a split control barrier.
    Wait,
}

/// Checks that an instruction may have these semantics at this scope.
///
/// # Errors
///
/// The rule that the semantics break.
pub fn check(
    operation: SemanticsInstruction,
    scope: Scope,
    semantics: Semantics,
) -> Result<(), SemanticsRule> {
    use SemanticsInstruction::{Arrival, Load, MemoryBarrier, Store, Wait};
    let order = semantics.order;
    let (relaxed, has_class) = (order == Order::Relaxed, semantics.classes.iter().next().is_some());
    first_broken(&[
        (semantics.ignored != IgnoredClasses::NONE, SemanticsRule::Ignored),
        (semantics.sequential, SemanticsRule::Sequential),
        (semantics.make_available && !order.releases(), SemanticsRule::AvailableWithoutRelease),
        (semantics.make_visible && !order.acquires(), SemanticsRule::VisibleWithoutAcquire),
        (relaxed && has_class, SemanticsRule::RelaxedWithClasses),
        (relaxed && operation == MemoryBarrier, SemanticsRule::RelaxedBarrier),
        (operation == Load && order.releases(), SemanticsRule::ReleaseLoad),
        (operation == Store && order.acquires(), SemanticsRule::AcquireStore),
        (operation == Arrival && order.acquires(), SemanticsRule::AcquireArrival),
        (operation == Wait && order.releases(), SemanticsRule::ReleaseWait),
        (!relaxed && !has_class, SemanticsRule::OrderWithoutClass),
        (!relaxed && scope == Scope::Invocation, SemanticsRule::OrderAtInvocation),
    ])
}

fn first_broken(rules: &[(bool, SemanticsRule)]) -> Result<(), SemanticsRule> {
    rules.iter().find(|(broken, _)| *broken).map_or(Ok(()), |(_, rule)| Err(*rule))
}

/// Checks that a compare-exchange with semantics `equal` may have these `unequal` ones.
///
/// # Errors
///
/// The rule that the semantics break.
pub fn check_unequal(scope: Scope, equal: Semantics, unequal: Semantics) -> Result<(), SemanticsRule> {
    match check(SemanticsInstruction::Load, scope, unequal) {
        Err(SemanticsRule::ReleaseLoad) => return Err(SemanticsRule::ReleaseUnequal),
        other => other?,
    }
    let has_more_classes = unequal.classes.iter().any(|class| !equal.classes.contains(class));
    first_broken(&[
        (unequal.order.acquires() && !equal.order.acquires(), SemanticsRule::UnequalStronger),
        (has_more_classes, SemanticsRule::UnequalClasses),
        (unequal.make_visible && !equal.make_visible, SemanticsRule::UnequalVisible),
    ])
}
