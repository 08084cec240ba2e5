//! Redundant barriers: without them, the recorded accesses have the same hazards.
//!
//! The steps are divided where the host has waited for all accesses; each part is searched without one barrier after the other. A barrier
//! without effect stays removed, so all redundant barriers can be removed together (the search is monotone: less order has more hazards).
//! Barriers with a layout transition, an ownership transfer, events or a stage of the host, and dependencies of render passes do more than
//! order commands, and are not tried.
//! Processes with commands of unknown accesses have none. The cost is barriers × commands of a part, up to [`MAX_WORK`].

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ops::Range;

use crate::bindings::MemoryBindings;
use crate::hazard::{CommandHazard, ResourceBytes};
use crate::hazards::HazardSearch;
use crate::journal::{Command, DispatchResource, Event};
use crate::scopes::stage;
use crate::timeline::{Step, Timeline};

/// Upper bound on the steps and on the earlier accesses that all searches look at.
const MAX_WORK: usize = 10_000_000;

/// A recorded barrier without an effect on the recorded accesses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RedundantBarrier {
    /// Index of its first execution.
    pub command: usize,
    /// Number of executions.
    pub count: u64,
}

/// The barriers of a process.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BarrierCheck {
    /// Barriers whose effect is known.
    pub checked: u64,
    /// Those without an effect.
    pub redundant: Vec<RedundantBarrier>,
}

/// Steps between two waits of the host for all accesses, with the events that were signalled before.
type Part = (Range<usize>, HashMap<u64, Vec<usize>>);

/// Finds the barriers whose removal adds no hazard.
///
/// `accessed_bytes` returns the bytes of a resource that a dispatch accesses.
pub fn find_redundant_barriers<F>(
    timeline: &Timeline<'_>,
    events: &[Event],
    accessed_bytes: F,
) -> BarrierCheck
where
    F: Fn(usize, &Command, &DispatchResource) -> ResourceBytes,
{
    let bindings = MemoryBindings::from_events(events);
    let (mut parts, mut start): (Vec<Part>, usize) = (Vec::new(), 0);
    let mut whole = HazardSearch::new(timeline, &bindings, &accessed_bytes);
    let mut signalled = HashMap::new();
    for (index, step) in timeline.steps.iter().enumerate() {
        whole.take_step(step);
        if whole.is_idle() || index + 1 == timeline.steps.len() {
            parts.push((start..index + 1, std::mem::replace(&mut signalled, whole.events.clone())));
            start = index + 1;
        }
    }
    let search_part = |(steps, signalled): &Part, removed: &BTreeSet<usize>| -> (Vec<CommandHazard>, usize) {
        let mut search = HazardSearch::new(timeline, &bindings, &accessed_bytes);
        (search.removed, search.events) = (removed.clone(), signalled.clone());
        search.events.values_mut().for_each(Vec::clear);
        timeline.steps.get(steps.clone()).into_iter().flatten().for_each(|step| search.take_step(step));
        (search.hazards, search.work + steps.len())
    };
    // The executions of a recorded barrier have the address of its command.
    let mut trials: BTreeMap<usize, Trial> = BTreeMap::new();
    let mut total = 0;
    for part in &parts {
        let mut executions: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
        for step in timeline.steps.get(part.0.clone()).into_iter().flatten() {
            if let Step::Execute(index) = step
                && let Some(executed) = timeline.commands.get(*index)
                && is_order_alone(executed.command)
            {
                executions.entry(std::ptr::from_ref(executed.command).addr()).or_default().push(*index);
            }
        }
        if executions.is_empty() {
            continue;
        }
        let mut removed = BTreeSet::new();
        let (hazards, work) = search_part(part, &removed);
        total += work;
        for (address, indices) in executions {
            let trial = trials.entry(address).or_insert_with(|| Trial {
                first: indices.first().copied().unwrap_or_default(),
                count: 0,
                is_redundant: true,
                is_checked: true,
            });
            trial.count += indices.len() as u64;
            trial.is_checked &= total < MAX_WORK;
            if !trial.is_redundant || !trial.is_checked {
                continue;
            }
            let before = removed.clone();
            removed.extend(indices);
            let (without, work) = search_part(part, &removed);
            total += work;
            trial.is_redundant = without == hazards;
            if !trial.is_redundant {
                removed = before;
            }
        }
    }
    let checked = trials.values().filter(|trial| trial.is_checked || !trial.is_redundant);
    let redundant = trials.values().filter(|trial| trial.is_checked && trial.is_redundant);
    let mut redundant: Vec<RedundantBarrier> =
        redundant.map(|trial| RedundantBarrier { command: trial.first, count: trial.count }).collect();
    redundant.sort_by_key(|barrier| barrier.command);
    BarrierCheck { checked: checked.count() as u64, redundant }
}

/// A recorded barrier, with what its removal showed.
struct Trial {
    first: usize,
    count: u64,
    is_redundant: bool,
    is_checked: bool,
}

/// Returns true for a barrier whose only effect is the order of recorded commands.
fn is_order_alone(command: &Command) -> bool {
    let Command::Barrier(one) = command else { return false };
    (one.from.0 | one.to.0) & stage::HOST == 0
        && one.events.is_empty()
        && one.subpasses.is_none()
        && one.families.is_none_or(|[a, b]| a == b)
        && one.transition().is_none()
}
