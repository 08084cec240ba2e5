//! Dependency chains of barriers and events on one queue (`#synchronization-dependencies-chains`).
//!
//! Two dependencies chain if the target of the first and the source of the second have a stage in common.

use super::super::{CallKind, MemoryDependency, ParsedCall, SyncScope};
use super::{Derived, OperationList, WorkItem, availability_operation, visibility_operation};
use crate::error::CallError;
use crate::span::Span;
use vocabulary::{AccessMask, StageMask};

/// A dependency among items, from its first scope to its second.
///
/// For a barrier both are at one item. For an event, the first ends at the set and the second begins at the
/// await; items in between belong to neither.
struct DependencySpan {
    opens: usize,
    closes: usize,
    source: SyncScope,
    target: SyncScope,
    span: Span,
}

/// Returns the dependencies among items in the order of their second scopes.
fn dependency_spans(items: &[WorkItem<'_>]) -> Vec<DependencySpan> {
    items
        .iter()
        .enumerate()
        .filter_map(|(closes, item)| {
            let WorkItem::Call(call) = item else { return None };
            let (opens, dependency) = match &call.kind {
                CallKind::Barrier(dependency) => (closes, dependency),
                CallKind::Await(event) => items.iter().enumerate().find_map(|(at, item)| match item {
                    WorkItem::Call(ParsedCall { kind: CallKind::Set(set, dependency), .. })
                        if set == event =>
                    {
                        Some((at, dependency))
                    }
                    _ => None,
                })?,
                _ => return None,
            };
            let MemoryDependency { source, target, .. } = *dependency;
            Some(DependencySpan { opens, closes, source, target, span: call.span })
        })
        .collect()
}

/// Returns, for each dependency, the bit set of dependencies that chain to it, including itself; at most
/// `MAX_CALLS` bits.
fn chained_from(dependencies: &[DependencySpan]) -> Vec<u128> {
    let mut reached: Vec<u128> = Vec::new();
    for (at, own) in dependencies.iter().enumerate() {
        let earlier = dependencies.iter().zip(&reached);
        let chaining = earlier.filter(|(other, _)| {
            other.closes < own.opens && other.target.stages.intersects(own.source.stages)
        });
        reached.push(chaining.fold(1 << at, |all, (_, from)| all | from));
    }
    reached
}

/// Returns the operations that dependencies among `items` perform on writes of a host.
///
/// A chain begins with `host_write` and a source that intersects `stages`, and ends with a compute target.
pub(super) fn host_write_operations(items: &[WorkItem<'_>], stages: StageMask) -> OperationList {
    let dependencies = dependency_spans(items);
    let reached = chained_from(&dependencies);
    let mut between = OperationList::new();
    for (first, own) in dependencies.iter().enumerate() {
        let writes = own.source.accesses.intersects(AccessMask::HOST_WRITE);
        if !writes || !own.source.stages.intersects(stages) {
            continue;
        }
        let ends = dependencies.iter().zip(&reached);
        for (last, _) in ends.filter(|(last, from)| {
            *from & (1 << first) != 0 && last.target.stages.intersects(StageMask::COMPUTE)
        }) {
            between.extend(
                availability_operation(AccessMask::HOST_WRITE)
                    .into_iter()
                    .chain(visibility_operation(last.target)),
            );
        }
    }
    between
}

/// Returns the operations of the chains from a dispatch to a later one, for the items between the two.
///
/// `None` if no chain leads to the later dispatch.
pub(super) fn chain_operations(items: &[WorkItem<'_>]) -> Derived<Option<OperationList>> {
    let dependencies = dependency_spans(items);
    let reached = chained_from(&dependencies);
    let dependency_bits = |predicate: &dyn Fn(&DependencySpan) -> bool| {
        let found = dependencies.iter().enumerate().filter(|(_, own)| predicate(own));
        found.fold(0_u128, |all, (at, _)| all | 1 << at)
    };
    let starts = dependency_bits(&|own| own.source.stages.intersects(StageMask::COMPUTE));
    let ends = dependency_bits(&|own| own.target.stages.intersects(StageMask::COMPUTE));
    // The dependencies that chain to an end of a chain.
    let leading_to_end = reached
        .iter()
        .enumerate()
        .filter(|(at, _)| ends & (1 << at) != 0)
        .fold(0, |all, (_, from)| all | from);
    let chain_starts = starts & leading_to_end;
    let chain_ends: Vec<(usize, bool, bool)> = reached
        .iter()
        .enumerate()
        .map(|(at, from)| (at, chain_starts & (1 << at) != 0, ends & (1 << at) != 0 && from & starts != 0))
        .filter(|(_, first, last)| *first || *last)
        .collect();
    let mut between = OperationList::new();
    for (at, first, last) in &chain_ends {
        let Some(DependencySpan { source, target, span, .. }) = dependencies.get(*at) else { continue };
        // All chains that begin up to here must continue to the end.
        let starts_so_far = chain_starts & (u128::MAX >> (127 - at));
        if *last && reached.get(*at).is_none_or(|from| starts_so_far & !from != 0) {
            return Err(CallError::BrokenChain { span: *span });
        }
        if *first {
            // `host_write_operations` handles host writes, because it has the position of the wait for them.
            between.extend(availability_operation(source.accesses.without(AccessMask::HOST)));
        }
        if *last {
            between.extend(visibility_operation(*target));
        }
    }
    Ok((!chain_ends.is_empty()).then_some(between))
}
