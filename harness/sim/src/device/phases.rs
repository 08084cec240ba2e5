//! The steps of a plan as phases: what runs together, and what caches do between.

use plan::{Accesses, BufferId, Plan, Stages, Step};

use super::bind;
use crate::fault::Fault;

/// A step as the machine takes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    /// Dispatches, by step, that nothing orders.
    Run(Vec<usize>),
    /// Every word of a buffer.
    Fill(BufferId, u32),
    /// The first words of one piece of memory to another: by number, buffers before images.
    Copy { from: u32, to: u32, words: u32 },
    /// What went before has ended; whether its writes are made available, and what is available visible.
    Order { available: bool, visible: bool },
    /// Moves what is available to the host to the device, or the other way.
    Domain { to_host: bool },
    /// Threads of the host, and their batches.
    Hosts(Vec<Vec<Phase>>),
}

/// The steps as phases: what stands together without a step between runs together.
pub(super) fn phases(plan: &Plan, buffers: &[(u32, u32)], fault: Fault) -> Vec<Phase> {
    let mut phases: Vec<Phase> = Vec::new();
    let mut joined = false;
    let image = |image: plan::ImageId| plan.buffers.len() as u32 + image.0;
    let words = |number: u32| buffers.get(number as usize).map_or(0, |(_, words)| *words);
    let copy = |phases: &mut Vec<Phase>, (from, to): (u32, u32), words: u32| {
        phases.push(Phase::Order { available: true, visible: false });
        phases.push(Phase::Copy { from, to, words });
        // What caches still hold of an image is older than what the copy has put there.
        phases.push(Phase::Order { available: false, visible: true });
    };
    // What stands before threads of the host, and the batches before the one that is made.
    let (mut outer, mut batches): (Vec<Phase>, Vec<Vec<Phase>>) = (Vec::new(), Vec::new());
    for (number, step) in plan.steps.iter().enumerate() {
        let mut together = false;
        let (before, after) = plan.steps.split_at(number);
        let kept = fault == Fault::FragmentStoresKept && between_fragments(plan, (before, after));
        match step {
            Step::Hosts { .. } => {
                outer = std::mem::take(&mut phases);
                outer.push(Phase::Order { available: true, visible: true });
            }
            Step::Batch { number, .. } => {
                if *number > 0 {
                    batches.push(std::mem::take(&mut phases));
                }
            }
            Step::HostsEnd { .. } => {
                batches.push(std::mem::take(&mut phases));
                phases = std::mem::take(&mut outer);
                phases.push(Phase::Hosts(std::mem::take(&mut batches)));
                phases.push(Phase::Order { available: true, visible: true });
            }
            Step::Fill { buffer, value, .. } => phases.push(Phase::Fill(*buffer, *value)),
            Step::Copy { from, to, .. } => copy(&mut phases, (from.0, to.0), words(from.0)),
            Step::ToImage { from, to, .. } => copy(&mut phases, (from.0, image(*to)), words(image(*to))),
            Step::FromImage { from, to, .. } => copy(&mut phases, (image(*from), to.0), words(image(*from))),
            Step::Dispatch { .. } | Step::Draw { .. } => {
                together = true;
                match phases.last_mut() {
                    Some(Phase::Run(steps)) if joined => steps.push(number),
                    _ => phases.push(Phase::Run(vec![number])),
                }
            }
            // Nothing is ordered by how commands are recorded and submitted.
            Step::CommandBuffer { .. } | Step::Submit { .. } => together = joined,
            Step::Barrier { .. }
            | Step::ExecutionBarrier { .. }
            | Step::Dependency { .. }
            | Step::Signal { .. }
            | Step::Wait { .. }
            | Step::HostWait { .. }
                if fault == Fault::DependencyIgnored =>
            {
                together = joined;
            }
            Step::Dependency { .. } if fault == Fault::StageMaskTooNarrow => together = joined,
            // What stands before it or behind it is of other stages: it orders nothing.
            Step::Dependency { stages, .. }
                if misses(plan, stages.0, before.iter().rev().filter(on_queue(step)))
                    || misses(plan, stages.1, after.iter().filter(on_queue(step))) =>
            {
                together = joined;
            }
            Step::Barrier { .. } | Step::ToHost { .. } | Step::HostWait { .. } => {
                phases.push(Phase::Order { available: !kept, visible: true });
            }
            Step::ExecutionBarrier { .. } => phases.push(Phase::Order { available: false, visible: false }),
            Step::Dependency { available: step_available, visible, .. } => {
                let available = match fault {
                    Fault::MemoryAccessIgnored => step_available.intersects(Accesses::SHADER_WRITE),
                    _ => step_available.covers_writes(),
                };
                // What is written needs no visibility: a dirty line holds nothing old.
                let (source, target) = (*step_available, *visible);
                if source.intersects(Accesses::HOST_WRITE) {
                    phases.push(Phase::Domain { to_host: false });
                }
                phases.push(Phase::Order { available: available && !kept, visible: visible.covers_reads() });
                if target.intersects(Accesses::HOST) {
                    phases.push(Phase::Domain { to_host: true });
                }
            }
            Step::Signal { .. } => {
                let available = !kept && !fault.keeps_back(&plan.queues);
                phases.push(Phase::Order { available, visible: false });
            }
            Step::Wait { .. } => phases.push(Phase::Order { available: false, visible: true }),
        }
        joined = together;
    }
    phases
}

/// The stage of what a step launches.
fn stage<'p>(plan: &'p Plan, step: &Step) -> Option<&'p plan::Stage> {
    let (kernel, _) = bind::launched(step)?;
    plan.kernels.get(kernel).map(|kernel| &kernel.stage)
}

/// Whether a step is of the queue of another one.
fn on_queue(step: &Step) -> impl Fn(&&Step) -> bool {
    let queue = step.queue();
    move |other| other.queue() == queue
}

/// Whether the first of these steps that launches anything is of none of the stages.
fn misses<'p>(plan: &'p Plan, stages: Stages, mut steps: impl Iterator<Item = &'p Step>) -> bool {
    let first = steps.find_map(|step| stage(plan, step));
    first.is_some_and(|stage| !stage.set().intersects(stages))
}

/// Whether fragments were shaded just before, and the next that is launched are fragments again.
fn between_fragments(plan: &Plan, (before, after): (&[Step], &[Step])) -> bool {
    let fragments = |stage: Option<&plan::Stage>| stage.is_some_and(|stage| stage.set() == Stages::FRAGMENT);
    fragments(before.iter().rev().find_map(|step| stage(plan, step)))
        && fragments(after.iter().find_map(|step| stage(plan, step)))
}
