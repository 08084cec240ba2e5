//! Divides the steps of a plan into submissions and command buffers.

use ash::vk;
use plan::{Plan, PlanStep, StageMask};

/// A submission: some steps of one queue.
pub(crate) struct Submission {
    /// Index of the queue in the plan.
    pub(crate) queue: usize,
    /// Its command buffers, in order.
    pub(crate) recordings: Vec<Recording>,
    /// The semaphores that it waits for, by index, with the awaited values of timelines.
    pub(crate) waits: Vec<(usize, u32)>,
    pub(crate) shader_stages: StageMask,
    /// The semaphores that it signals, by index, with the new values of timelines.
    pub(crate) signals: Vec<(usize, u32)>,
    /// The batch that it belongs to, if host threads run.
    pub(crate) batch: Option<u32>,
    /// The number of host waits before it.
    pub(crate) stage: usize,
    /// True for the queue's last submission before a host wait or the end.
    pub(crate) is_fenced: bool,
    /// True for the queue's last submission.
    pub(crate) last: bool,
}

/// A command buffer of a submission.
#[derive(Default)]
pub(crate) struct Recording {
    /// Indices of the steps, in order.
    pub(crate) steps: Vec<usize>,
    /// True for the first of its queue, which starts the clock.
    pub(crate) first: bool,
    /// True for the last of its queue, which stops the clock.
    pub(crate) last: bool,
    pub(crate) commands: vk::CommandBuffer,
    /// True if it must be recorded before it is submitted.
    pub(crate) is_stale: bool,
    /// The number of its mark, if it is the last before a host wait.
    pub(crate) mark: Option<u32>,
}

/// The part of a queue that is not yet in a submission.
#[derive(Default)]
struct OpenSubmission {
    recordings: Vec<Vec<usize>>,
    waits: Vec<(usize, u32)>,
    signals: Vec<(usize, u32)>,
    batch: Option<u32>,
}

/// Returns the number of host waits before the host threads begin; `None` without host threads.
pub(crate) fn host_stage(plan: &Plan) -> Option<usize> {
    let at = plan.steps.iter().position(|step| matches!(step, PlanStep::Hosts { .. }))?;
    let waits = plan.steps.iter().take(at).filter(|step| matches!(step, PlanStep::HostWait { .. }));
    Some(waits.count() + 1)
}

/// Returns the submissions of a plan in submission order.
///
/// Steps after a queue's last explicit submission are submitted at the end, in queue order.
pub(crate) fn split_into_submissions(plan: &Plan) -> Vec<Submission> {
    let mut open: Vec<OpenSubmission> = plan.queues.iter().map(|_| OpenSubmission::default()).collect();
    let mut submissions: Vec<Submission> = Vec::new();
    let mut stage = 0;
    for (number, step) in plan.steps.iter().enumerate() {
        let queue = step.queue().0 as usize;
        let Some(open_submission) = open.get_mut(queue) else { continue };
        match step {
            PlanStep::Submit { .. } => submissions.extend(open_submission.close_submission(queue, stage)),
            PlanStep::Signal { semaphore, value, .. } => {
                open_submission.signals.push((semaphore.0 as usize, *value));
                submissions.extend(open_submission.close_submission(queue, stage));
            }
            PlanStep::Wait { semaphore, value, .. } => {
                submissions.extend(open_submission.close_submission(queue, stage));
                open_submission.waits.push((semaphore.0 as usize, *value));
            }
            PlanStep::HostWait { .. } | PlanStep::Hosts { .. } | PlanStep::HostsEnd { .. } => {
                if matches!(step, PlanStep::Hosts { .. }) {
                    open_submission.add_step(number);
                }
                for (queue, own) in open.iter_mut().enumerate() {
                    submissions.extend(own.close_submission(queue, stage));
                    own.batch = None;
                }
                stage += 1;
            }
            PlanStep::CommandBuffer { .. } => open_submission.recordings.push(Vec::new()),
            PlanStep::Batch { number, .. } => {
                submissions.extend(open_submission.close_submission(queue, stage));
                open_submission.batch = Some(*number);
            }
            _ => open_submission.add_step(number),
        }
    }
    for (queue, own) in open.iter_mut().enumerate() {
        submissions.extend(own.close_submission(queue, stage));
    }
    for submission in &mut submissions {
        let steps = submission.recordings.iter().flat_map(|recording| &recording.steps);
        let drawn = steps.filter_map(|step| match plan.steps.get(*step) {
            Some(PlanStep::Draw { kernel, .. }) => plan.kernels.get(kernel.0 as usize),
            _ => None,
        });
        submission.shader_stages =
            drawn.fold(StageMask::COMPUTE, |all, kernel| all.with(kernel.stage.as_set()));
    }
    for queue in 0..plan.queues.len() {
        mark_first_and_last(&mut submissions, queue);
    }
    submissions
}

impl OpenSubmission {
    /// Adds a step to the open command buffer.
    fn add_step(&mut self, number: usize) {
        match self.recordings.last_mut() {
            Some(steps) => steps.push(number),
            None => self.recordings.push(vec![number]),
        }
    }

    /// Closes the open part as a submission; `None` if it is empty.
    fn close_submission(&mut self, queue: usize, stage: usize) -> Option<Submission> {
        let batch = self.batch;
        let OpenSubmission { recordings, waits, signals, .. } =
            std::mem::replace(self, OpenSubmission { batch, ..OpenSubmission::default() });
        let recordings: Vec<Recording> = recordings
            .into_iter()
            .filter(|steps| !steps.is_empty())
            .map(|steps| Recording {
                steps,
                commands: vk::CommandBuffer::null(),
                is_stale: true,
                ..Recording::default()
            })
            .collect();
        if recordings.is_empty() && waits.is_empty() && signals.is_empty() {
            return None;
        }
        let stages = StageMask::COMPUTE;
        Some(Submission {
            queue,
            recordings,
            waits,
            shader_stages: stages,
            signals,
            batch,
            stage,
            is_fenced: false,
            last: false,
        })
    }
}

/// Marks the first and last submissions of a queue, overall and before each host wait.
///
/// Batches are excluded: they have their own order and fences.
fn mark_first_and_last(submissions: &mut [Submission], queue: usize) {
    let mut later_stage = None;
    let own = |submission: &Submission| submission.queue == queue && submission.batch.is_none();
    for submission in submissions.iter_mut().rev().filter(|submission| own(submission)) {
        submission.last = later_stage.is_none();
        submission.is_fenced = later_stage != Some(submission.stage);
        later_stage = Some(submission.stage);
    }
    let mut recordings: Vec<&mut Recording> = submissions
        .iter_mut()
        .filter(|submission| own(submission))
        .flat_map(|submission| &mut submission.recordings)
        .collect();
    if let Some(first) = recordings.first_mut() {
        first.first = true;
    }
    if let Some(last) = recordings.last_mut() {
        last.last = true;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use plan::{Queue, QueueId, SemaphoreId};

    fn work(queue: u32) -> PlanStep {
        PlanStep::Barrier { queue: QueueId(queue) }
    }

    fn plan(queues: usize, steps: Vec<PlanStep>) -> Plan {
        Plan { queues: vec![Queue { family: 0 }; queues], steps, ..Plan::default() }
    }

    fn all_steps(submission: &Submission) -> Vec<usize> {
        submission.recordings.iter().flat_map(|recording| recording.steps.clone()).collect()
    }

    #[test]
    fn steps_fall_on_submissions_by_queue() {
        let submit = |queue| PlanStep::Submit { queue: QueueId(queue) };
        let steps = vec![
            submit(0),
            work(1),
            work(0),
            work(1),
            submit(0),
            work(0),
            submit(1),
            submit(1),
            work(2),
            work(0),
        ];
        let found: Vec<_> = split_into_submissions(&plan(4, steps))
            .iter()
            .map(|submission| {
                let first = submission.recordings.iter().any(|recording| recording.first);
                (submission.queue, all_steps(submission), first, submission.last)
            })
            .collect();
        let expected = [
            (0, vec![2], true, false),
            (1, vec![1, 3], true, true),
            (0, vec![5, 9], false, true),
            (2, vec![8], true, true),
        ];
        assert_eq!(found, expected);
    }

    #[test]
    fn semaphores_and_the_host_end_submissions() {
        let queue = QueueId(0);
        let semaphore = SemaphoreId(0);
        let steps = vec![
            work(0),
            PlanStep::CommandBuffer { queue },
            work(0),
            PlanStep::Signal { queue, semaphore, value: 3 },
            work(1),
            PlanStep::Wait { queue, semaphore, value: 2 },
            work(0),
            PlanStep::HostWait { queue },
            work(0),
        ];
        let found: Vec<_> = split_into_submissions(&plan(2, steps))
            .iter()
            .map(|s| {
                let buffers: Vec<usize> = s.recordings.iter().map(|r| r.steps.len()).collect();
                (s.queue, buffers, s.waits.clone(), s.signals.clone(), s.stage, s.is_fenced, s.last)
            })
            .collect();
        let expected = [
            (0, vec![1, 1], vec![], vec![(0, 3)], 0, false, false),
            (0, vec![1], vec![(0, 2)], vec![], 0, true, false),
            (1, vec![1], vec![], vec![], 0, true, true),
            (0, vec![1], vec![], vec![], 1, true, true),
        ];
        assert_eq!(found, expected);
    }

    #[test]
    fn batches_are_separate_submissions() {
        let queue = QueueId(0);
        let steps = vec![
            work(0),
            PlanStep::HostWait { queue },
            PlanStep::Hosts { queue },
            PlanStep::Batch { queue, number: 0 },
            work(0),
            work(0),
            PlanStep::Batch { queue, number: 1 },
            work(0),
            PlanStep::HostsEnd { queue },
            work(0),
        ];
        let plan = plan(1, steps);
        assert_eq!(host_stage(&plan), Some(2));
        let found: Vec<_> = split_into_submissions(&plan)
            .iter()
            .map(|s| (all_steps(s), s.batch, s.stage, s.is_fenced, s.last, s.recordings[0].first))
            .collect();
        let expected = [
            (vec![0], None, 0, true, false, true),
            (vec![2], None, 1, true, false, false),
            (vec![4, 5], Some(0), 2, false, false, false),
            (vec![7], Some(1), 2, false, false, false),
            (vec![9], None, 3, true, true, false),
        ];
        assert_eq!(found, expected);
    }

    #[test]
    fn a_clock_spans_all_submissions_of_its_queue() {
        let steps = vec![
            work(0),
            PlanStep::Submit { queue: QueueId(0) },
            work(0),
            PlanStep::CommandBuffer { queue: QueueId(0) },
            work(0),
        ];
        let marks: Vec<_> = split_into_submissions(&plan(1, steps))
            .iter()
            .flat_map(|s| s.recordings.iter().map(|r| (r.first, r.last)).collect::<Vec<_>>())
            .collect();
        assert_eq!(marks, [(true, false), (false, false), (false, true)]);
    }
}
