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
    let order = semantics.order;
    if semantics.ignored != IgnoredClasses::NONE {
        return Err(SemanticsRule::Ignored);
    }
    if semantics.sequential {
        return Err(SemanticsRule::Sequential);
    }
    if semantics.make_available && !order.releases() {
        return Err(SemanticsRule::AvailableWithoutRelease);
    }
    if semantics.make_visible && !order.acquires() {
        return Err(SemanticsRule::VisibleWithoutAcquire);
    }
    if order == Order::Relaxed {
        if semantics.classes.iter().next().is_some() {
            return Err(SemanticsRule::RelaxedWithClasses);
        }
        return if operation == SemanticsInstruction::MemoryBarrier {
            Err(SemanticsRule::RelaxedBarrier)
        } else {
            Ok(())
        };
    }
    if operation == SemanticsInstruction::Load && order.releases() {
        return Err(SemanticsRule::ReleaseLoad);
    }
    if operation == SemanticsInstruction::Store && order.acquires() {
        return Err(SemanticsRule::AcquireStore);
    }
    if operation == SemanticsInstruction::Arrival && order.acquires() {
        return Err(SemanticsRule::AcquireArrival);
    }
    if operation == SemanticsInstruction::Wait && order.releases() {
        return Err(SemanticsRule::ReleaseWait);
    }
    if semantics.classes.iter().next().is_none() {
        return Err(SemanticsRule::OrderWithoutClass);
    }
    if scope == Scope::Invocation {
        return Err(SemanticsRule::OrderAtInvocation);
    }
    Ok(())
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
    if unequal.order.acquires() && !equal.order.acquires() {
        return Err(SemanticsRule::UnequalStronger);
    }
    if unequal.classes.iter().any(|class| !equal.classes.contains(class)) {
        return Err(SemanticsRule::UnequalClasses);
    }
    if unequal.make_visible && !equal.make_visible {
        return Err(SemanticsRule::UnequalVisible);
    }
    Ok(())
}
