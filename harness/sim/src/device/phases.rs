//! Translates the steps of a plan into phases: the dispatches that run together, and the cache operations
//! between them.

use std::collections::{BTreeMap, VecDeque};

use plan::{AccessMask, BufferId, DependencyKind, Plan, PlanStep, QueueId, SemaphoreId, StageMask};

use super::bind;
use crate::fault::Fault;
use crate::random::Random;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    /// Unordered dispatches, by step.
    Run(Vec<usize>),
    /// Fills a buffer with a word.
    Fill(BufferId, u32),
    /// Copies words from one memory to another: numbered with buffers before images.
    Copy { from: u32, to: u32, words: u32 },
    /// An execution dependency, with its availability and visibility operations.
    Order { available: bool, visible: bool },
    /// A memory domain operation: from the device to the host, or the reverse.
    Domain { to_host: bool },
    /// Host threads, and their batches with the queue of each.
    Hosts(Vec<(QueueId, Vec<Phase>)>),
    /// Next to host threads: a semaphore reaches a value.
    Signal(SemaphoreId, u32),
    /// Next to host threads: the queue waits until a semaphore has reached a value.
    Await(SemaphoreId, u32),
}

/// Returns true if queues advance independently, so that their order is random.
pub(super) fn has_random_order(plan: &Plan) -> bool {
    plan.queues.len() > 1 && plan.hosts.is_none()
}

/// Returns an order of the steps: it keeps each queue's order, puts semaphore waits after their signals, and
/// moves nothing across a host wait. If no order is random, it is the plan's order.
fn order_steps(plan: &Plan, random: &mut Random) -> Vec<usize> {
    if !has_random_order(plan) {
        return (0..plan.steps.len()).collect();
    }
    let mut order = Vec::with_capacity(plan.steps.len());
    let mut reached: BTreeMap<SemaphoreId, u32> = BTreeMap::new();
    let mut first = 0;
    while first < plan.steps.len() {
        let rest = plan.steps.get(first..).unwrap_or_default();
        // The host submits nothing more before its wait, so the queues are ordered section by
        // section.
        let waits = rest.iter().position(|step| matches!(step, PlanStep::HostWait { .. }));
        let last = waits.map_or(plan.steps.len(), |at| first + at);
        let mut remaining: BTreeMap<QueueId, VecDeque<usize>> = BTreeMap::new();
        for (number, step) in (first..last).zip(rest) {
            remaining.entry(step.queue()).or_default().push_back(number);
        }
        loop {
            let can_execute =
                |number: usize, reached: &BTreeMap<SemaphoreId, u32>| match plan.steps.get(number) {
                    Some(PlanStep::Wait { semaphore, value, .. }) => {
                        reached.get(semaphore).is_some_and(|reached| reached >= value)
                    }
                    _ => true,
                };
            let mut ready: Vec<&mut VecDeque<usize>> = remaining
                .values_mut()
                .filter(|own| own.front().is_some_and(|next| can_execute(*next, &reached)))
                .collect();
            let chosen = random.below(ready.len().max(1));
            let Some(number) = ready.get_mut(chosen).and_then(|own| own.pop_front()) else { break };
            if let Some(PlanStep::Signal { semaphore, value, .. }) = plan.steps.get(number) {
                reached.insert(*semaphore, *value);
            }
            order.push(number);
        }
        order.extend(waits.map(|_| last));
        first = last + 1;
    }
    order
}

/// Translates the steps into phases: adjacent dispatches without a step in between run together.
pub(super) fn build_phases(
    plan: &Plan,
    buffers: &[(u32, u32)],
    fault: Fault,
    random: &mut Random,
) -> Vec<Phase> {
    let mut phases: Vec<Phase> = Vec::new();
    let mut is_joined = false;
    let image = |image: plan::ImageId| plan.buffers.len() as u32 + image.0;
    let words = |number: u32| buffers.get(number as usize).map_or(0, |(_, words)| *words);
    let copy = |phases: &mut Vec<Phase>, (from, to): (u32, u32), words: u32| {
        phases.push(Phase::Order { available: true, visible: false });
        phases.push(Phase::Copy { from, to, words });
        // Caches may still hold older image data than the copy has written.
        phases.push(Phase::Order { available: false, visible: true });
    };
    // Phases before the host threads start, and the batches before the current one.
    let (mut outer, mut batches): (Vec<Phase>, Vec<(QueueId, Vec<Phase>)>) = (Vec::new(), Vec::new());
    let ordering_steps = find_ordering_steps(plan);
    for number in order_steps(plan, random) {
        let Some(step) = plan.steps.get(number) else { continue };
        let mut joins_previous = false;
        let (before, after) = plan.steps.split_at(number);
        let skips_flush = fault == Fault::FragmentStoresKept && is_between_fragments(plan, before, after);
        match step {
            PlanStep::Hosts { .. } => {
                outer = std::mem::take(&mut phases);
                outer.push(Phase::Order { available: true, visible: true });
            }
            PlanStep::Batch { queue, .. } => {
                if let Some((_, own)) = batches.last_mut() {
                    *own = std::mem::take(&mut phases);
                }
                batches.push((*queue, Vec::new()));
            }
            PlanStep::HostsEnd { .. } => {
                if let Some((_, own)) = batches.last_mut() {
                    *own = std::mem::take(&mut phases);
                }
                phases = std::mem::take(&mut outer);
                phases.push(Phase::Hosts(std::mem::take(&mut batches)));
                phases.push(Phase::Order { available: true, visible: true });
            }
            PlanStep::Fill { buffer, value, .. } => phases.push(Phase::Fill(*buffer, *value)),
            PlanStep::Copy { from, to, .. } => copy(&mut phases, (from.0, to.0), words(from.0)),
            PlanStep::ToImage { from, to, .. } => copy(&mut phases, (from.0, image(*to)), words(image(*to))),
            PlanStep::FromImage { from, to, .. } => {
                copy(&mut phases, (image(*from), to.0), words(image(*from)))
            }
            PlanStep::Dispatch { .. } | PlanStep::Draw { .. } => {
                joins_previous = true;
                match phases.last_mut() {
                    // No step since the last launch orders anything, so the two run together.
                    Some(Phase::Run(steps)) if is_joined => steps.push(number),
                    _ => phases.push(Phase::Run(vec![number])),
                }
            }
            // Recording and submission order nothing. Ownership was validated earlier; the semaphore between
            // the halves of a transfer publishes its writes.
            PlanStep::CommandBuffer { .. }
            | PlanStep::Submit { .. }
            | PlanStep::Release { .. }
            | PlanStep::Acquire { .. } => {
                joins_previous = is_joined;
            }
            PlanStep::Barrier { .. }
            | PlanStep::ExecutionBarrier { .. }
            | PlanStep::Dependency { .. }
            | PlanStep::Wait { .. }
            | PlanStep::HostWait { .. }
                if fault == Fault::DependencyIgnored =>
            {
                joins_previous = is_joined;
            }
            // A host thread may wait for it.
            PlanStep::Signal { semaphore, value, .. } if fault == Fault::DependencyIgnored => {
                match plan.hosts {
                    Some(_) => phases.push(Phase::Signal(*semaphore, *value)),
                    None => joins_previous = is_joined,
                }
            }
            PlanStep::Dependency { .. } if fault == Fault::StageMaskTooNarrow => joins_previous = is_joined,
            PlanStep::Dependency { kind: DependencyKind::Event | DependencyKind::Await(_), .. }
                if fault == Fault::EventWaitTooEarly =>
            {
                joins_previous = is_joined;
            }
            // It is on no path between two launches, so it orders nothing.
            PlanStep::Dependency { .. } if !ordering_steps.contains(&number) => joins_previous = is_joined,
            // An event orders commands at its wait, not at its set operation.
            PlanStep::Dependency { kind: DependencyKind::Set(_), .. } => joins_previous = is_joined,
            PlanStep::Barrier { .. } | PlanStep::ToHost { .. } | PlanStep::HostWait { .. } => {
                phases.push(Phase::Order { available: !skips_flush, visible: true });
            }
            PlanStep::ExecutionBarrier { .. } => {
                phases.push(Phase::Order { available: false, visible: false })
            }
            PlanStep::Dependency { available: step_available, visible, .. } => {
                let available = match fault {
                    Fault::MemoryAccessIgnored => step_available.intersects(AccessMask::SHADER_WRITE),
                    _ => step_available.covers_access(false, true),
                };
                // Written words need no visibility operation: a dirty line holds no stale data.
                let (source, target) = (*step_available, *visible);
                if source.intersects(AccessMask::HOST_WRITE) {
                    phases.push(Phase::Domain { to_host: false });
                }
                phases.push(Phase::Order {
                    available: available && !skips_flush,
                    visible: visible.covers_access(false, false),
                });
                if target.intersects(AccessMask::HOST) {
                    phases.push(Phase::Domain { to_host: true });
                }
            }
            PlanStep::Signal { semaphore, value, .. } => {
                let available = !skips_flush && !fault.suppresses_availability(&plan.queues);
                phases.push(Phase::Order { available, visible: false });
                if plan.hosts.is_some() {
                    phases.push(Phase::Signal(*semaphore, *value));
                }
            }
            PlanStep::Wait { semaphore, value, .. } => {
                if plan.hosts.is_some() {
                    phases.push(Phase::Await(*semaphore, *value));
                }
                // Without in-order batches, the plan's dependencies define the visible writes.
                if plan.hosts.as_ref().is_none_or(|hosts| hosts.is_in_order) {
                    phases.push(Phase::Order { available: false, visible: true });
                }
            }
        }
        is_joined = joins_previous;
    }
    phases
}

/// Returns the shader stage that a step launches.
fn launched_stage<'p>(plan: &'p Plan, step: &PlanStep) -> Option<&'p plan::KernelStage> {
    let (kernel, _) = bind::kernel_and_bindings(step)?;
    plan.kernels.get(kernel).map(|kernel| &kernel.stage)
}

/// A dependency of a queue: its begin and end, and its source and target stages.
struct QueueDependency {
    queue: QueueId,
    opens: usize,
    closes: usize,
    source: StageMask,
    target: StageMask,
}

/// Returns the dependency steps on a path from an earlier launch to a later one. A path joins dependencies
/// whose stages intersect.
fn find_ordering_steps(plan: &Plan) -> Vec<usize> {
    let set_position = |event: u32| {
        let is_set = |step: &PlanStep| matches!(step, PlanStep::Dependency { kind: DependencyKind::Set(own), .. } if *own == event);
        plan.steps.iter().position(is_set)
    };
    let dependencies: Vec<QueueDependency> = (0..)
        .zip(&plan.steps)
        .filter_map(|(closes, step)| {
            let PlanStep::Dependency { queue, kind, stages, .. } = step else { return None };
            let opens = match kind {
                DependencyKind::Barrier | DependencyKind::Event => closes,
                DependencyKind::Set(_) => return None,
                DependencyKind::Await(event) => set_position(*event)?,
            };
            let (source, target) = (stages.0.to_first_scope(), stages.1.to_second_scope());
            Some(QueueDependency { queue: *queue, opens, closes, source, target })
        })
        .collect();
    // Everything after the first transfer to the host is ordered by that transfer and starts no path.
    let before = plan.steps.iter().take_while(|step| !matches!(step, PlanStep::ToHost { .. }));
    let launches: Vec<(usize, QueueId, StageMask)> = (0..)
        .zip(before)
        .filter_map(|(number, step)| Some((number, step.queue(), launched_stages(plan, step)?)))
        .collect();
    // The host is always active; next to host threads, batches may run in another order than the steps.
    let has_launch = |wanted: &dyn Fn(usize) -> bool, queue: QueueId, stages: StageMask| {
        plan.hosts.as_ref().is_some_and(|hosts| !hosts.is_in_order)
            || stages.intersects(StageMask::HOST)
            || launches
                .iter()
                .any(|(at, own, stage)| wanted(*at) && *own == queue && stage.intersects(stages))
    };
    let are_joined = |from: &QueueDependency, to: &QueueDependency| {
        from.queue == to.queue && from.closes < to.opens && from.target.intersects(to.source)
    };
    // Dependencies are sorted by their end.
    let mut starts: Vec<bool> = Vec::with_capacity(dependencies.len());
    // Forward: which dependencies have an earlier launch on a path to them. Backward below: which
    // lead to a later one. Only those with both order anything.
    for own in &dependencies {
        let reached =
            dependencies.iter().zip(&starts).any(|(other, starts)| *starts && are_joined(other, own));
        starts.push(reached || has_launch(&|at| at < own.opens, own.queue, own.source));
    }
    let mut ends = vec![false; dependencies.len()];
    for (number, own) in dependencies.iter().enumerate().rev() {
        let leads = dependencies.iter().zip(&ends).any(|(other, ends)| *ends && are_joined(own, other));
        let end = leads || has_launch(&|at| at > own.closes, own.queue, own.target);
        ends.iter_mut().skip(number).take(1).for_each(|own| *own = end);
    }
    let both = dependencies.iter().zip(starts.iter().zip(&ends));
    both.filter(|(_, (starts, ends))| **starts && **ends).map(|(own, _)| own.closes).collect()
}

/// Returns the stages of a step's launch; fills and copies are transfers.
fn launched_stages(plan: &Plan, step: &PlanStep) -> Option<StageMask> {
    match step {
        PlanStep::Fill { .. }
        | PlanStep::Copy { .. }
        | PlanStep::ToImage { .. }
        | PlanStep::FromImage { .. } => Some(StageMask::TRANSFER),
        _ => launched_stage(plan, step).map(plan::KernelStage::as_set),
    }
}

/// Returns true if fragments were shaded immediately before, and the next launch shades fragments again.
fn is_between_fragments(plan: &Plan, before: &[PlanStep], after: &[PlanStep]) -> bool {
    let fragments =
        |stage: Option<&plan::KernelStage>| stage.is_some_and(|stage| stage.as_set() == StageMask::FRAGMENT);
    fragments(before.iter().rev().find_map(|step| launched_stage(plan, step)))
        && fragments(after.iter().find_map(|step| launched_stage(plan, step)))
}
