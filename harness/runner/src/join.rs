//! The dependencies between the phases of a program: the mechanisms of the API, each as plan steps.

use std::str::FromStr;

use litmus::closed_enum;
use plan::{
    AccessMask, BufferId, DependencyKind, Feature, PlanStep, QueueId, Semaphore, SemaphoreId, StageMask,
};
use shaders::{Dependency, Program};

use crate::calls;

closed_enum! {
    /// An API mechanism that orders consecutive dispatches.
    #[derive(Default)]
    pub enum Join {
        /// `calls`: the calls of the test itself, on its queues.
        Calls = "calls",
        /// `barrier`: a pipeline barrier in the same command buffer, with the test's access masks.
        #[default]
        Barrier = "barrier",
        /// `event`: an event that is set and waited for, with the same masks.
        Event = "event",
        /// `submit`: a second submission, which starts with the pipeline barrier.
        Submit = "submit",
        /// `semaphore`: a binary semaphore between two submissions, which makes all memory available and visible.
        Semaphore = "semaphore",
        /// `timeline`: a timeline semaphore between two submissions.
        Timeline = "timeline",
        /// `fence`: the host waits on a fence between two submissions, which makes all memory available and then
        /// visible. The second submission still starts with the pipeline barrier.
        Fence = "fence",
    }
}

/// The error for a word that is not the name of a mechanism.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown mechanism to order dispatches `{0}`; expected one of {names}", names = Join::ALL.map(Join::name).join(", "))]
pub struct UnknownJoin(pub String);

impl Join {
    /// Returns the Vulkan feature that it needs for a program.
    pub fn required_feature(self, program: &Program) -> Option<Feature> {
        match self {
            Join::Timeline => Some(Feature::TimelineSemaphore),
            Join::Calls => {
                let counts = program.schedule.as_ref().is_some_and(calls::uses_timeline_semaphores);
                counts.then_some(Feature::TimelineSemaphore)
            }
            Join::Barrier | Join::Event | Join::Submit | Join::Semaphore | Join::Fence => None,
        }
    }

    /// Returns why it cannot order the phases of a program, or `None`.
    pub fn refusal_reason(self, program: &Program) -> Option<String> {
        if let (Join::Calls, Some(Err(rule))) =
            (self, program.hosts.as_ref().and_then(|hosts| hosts.call_schedule.as_ref()))
        {
            return Some(rule.to_string());
        }
        match &program.calls_only {
            Some(rule) if self != Join::Calls => Some(rule.to_string()),
            _ => self.mechanism_refusal(program).map(str::to_owned),
        }
    }

    fn mechanism_refusal(self, program: &Program) -> Option<&'static str> {
        let several = program.queues.len() > 1 && program.phases.len() > 1;
        match self {
            Join::Calls => match &program.schedule {
                None => Some("no API calls to run as written"),
                Some(schedule) if !schedule.owned.is_empty() && program.hosts.is_some() => {
                    Some("owned memory together with host threads")
                }
                Some(schedule) if !schedule.owned.is_empty() && !program.has_separate_owned => {
                    Some("owned memory together with separate memory")
                }
                Some(schedule)
                    if !schedule.owned.is_empty()
                        && program
                            .kernels()
                            .any(|kernel| kernel.uses_addresses || !kernel.images.is_empty()) =>
                {
                    Some("owned memory in images or by address")
                }
                Some(schedule) => calls::order_calls(program, schedule, BufferId(0)).err(),
            },
            // Host threads submit and wait between phases.
            _ if program.hosts.is_some() => (self != Join::Barrier)
                .then_some("another mechanism to order dispatches together with host threads"),
            Join::Barrier | Join::Event | Join::Submit if several => Some("barrier between queues"),
            Join::Barrier | Join::Submit => None,
            // The stages of an event that the device sets must be device stages
            // (VUID-vkCmdSetEvent-stageMask-01149).
            Join::Event => {
                let mut phases = program.phases.iter();
                let host = phases.any(|phase| phase.dependency.available.intersects(AccessMask::HOST));
                host.then_some("event after accesses of the host")
            }
            // The mechanism publishes all memory; the model would judge a weaker program.
            Join::Semaphore | Join::Timeline | Join::Fence => {
                (!program.all_memory).then_some("semaphore or fence in place of access masks")
            }
        }
    }

    /// Appends the steps between two phases, on each of their queues.
    pub(crate) fn append_steps(
        self,
        queues: &[QueueId],
        dependency: Dependency,
        stages: (StageMask, StageMask),
        semaphores: &mut Vec<Semaphore>,
        steps: &mut Vec<PlanStep>,
    ) {
        let (available, visible) = (dependency.available, dependency.visible);
        let stages = (
            stages.0.with(StageMask::for_accesses(available)),
            stages.1.with(StageMask::for_accesses(visible)),
        );
        let dependency_step = |queue, kind| PlanStep::Dependency { queue, kind, stages, available, visible };
        let barriers = || queues.iter().map(|queue| dependency_step(*queue, DependencyKind::Barrier));
        match self {
            // The calls of the test contain the dependencies.
            Join::Calls => {}
            Join::Barrier => steps.extend(barriers()),
            Join::Event => {
                steps.extend(queues.iter().map(|queue| dependency_step(*queue, DependencyKind::Event)))
            }
            Join::Submit => {
                steps.extend(queues.iter().map(|queue| PlanStep::Submit { queue: *queue }));
                steps.extend(barriers());
            }
            Join::Semaphore | Join::Timeline => {
                let kind = if self == Join::Timeline { Semaphore::Timeline } else { Semaphore::Binary };
                let mut waits = Vec::new();
                // Every queue signals every queue: the later phase may run on any of them.
                for (from, to) in queues.iter().flat_map(|from| queues.iter().map(move |to| (*from, *to))) {
                    let semaphore = SemaphoreId(semaphores.len() as u32);
                    semaphores.push(kind);
                    steps.push(PlanStep::Signal { queue: from, semaphore, value: 1 });
                    waits.push(PlanStep::Wait { queue: to, semaphore, value: 1 });
                }
                steps.extend(waits);
            }
            Join::Fence => {
                steps.extend(queues.first().map(|queue| PlanStep::HostWait { queue: *queue }));
                steps.extend(barriers());
            }
        }
    }
}

impl FromStr for Join {
    type Err = UnknownJoin;

    fn from_str(word: &str) -> Result<Join, UnknownJoin> {
        Join::from_name(word).ok_or_else(|| UnknownJoin(word.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_joins_round_trip() {
        for join in Join::ALL {
            assert_eq!(join.name().parse(), Ok(join));
        }
        let unknown = "hope".parse::<Join>().unwrap_err().to_string();
        assert_eq!(
            unknown,
            "unknown mechanism to order dispatches `hope`; expected one of calls, barrier, event, submit, semaphore, timeline, fence"
        );
    }
}
