//! How the phases of a program follow one another on a queue: the ways of the API, each as steps of a plan.

use std::fmt;
use std::str::FromStr;

use plan::{DependencyKind, QueueId, Semaphore, SemaphoreId, Step};
use shaders::Dependency;

/// A way of the API to put dispatches one after another.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Join {
    /// `barrier`: a pipeline barrier in the same command buffer, with the memory accesses that the test asks for.
    #[default]
    Barrier,
    /// `event`: an event, set and waited for, with the same accesses.
    Event,
    /// `submit`: the pipeline barrier begins another submission.
    Submit,
    /// `semaphore`: a binary semaphore between two submissions, which makes all memory available and visible.
    Semaphore,
    /// `timeline`: a timeline semaphore between them.
    Timeline,
    /// `fence`: the host waits on a fence before it makes the other submission, which begins with the pipeline barrier.
    Fence,
}

/// A word that no way has.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no way to order dispatches is called `{0}`; there are {names}", names = Join::ALL.map(Join::name).join(", "))]
pub struct UnknownJoin(pub String);

impl Join {
    /// All ways.
    pub const ALL: [Join; 6] =
        [Join::Barrier, Join::Event, Join::Submit, Join::Semaphore, Join::Timeline, Join::Fence];

    /// The word for it, in variants of tests.
    pub fn name(self) -> &'static str {
        match self {
            Join::Barrier => "barrier",
            Join::Event => "event",
            Join::Submit => "submit",
            Join::Semaphore => "semaphore",
            Join::Timeline => "timeline",
            Join::Fence => "fence",
        }
    }

    /// The Vulkan feature that it needs.
    pub fn feature(self) -> Option<&'static str> {
        match self {
            Join::Timeline => Some("timelineSemaphore"),
            Join::Barrier | Join::Event | Join::Submit | Join::Semaphore | Join::Fence => None,
        }
    }

    /// Appends what stands between two phases.
    pub(crate) fn steps(
        self,
        queue: QueueId,
        dependency: Dependency,
        semaphores: &mut Vec<Semaphore>,
        steps: &mut Vec<Step>,
    ) {
        let Dependency { available, reads, writes } = dependency;
        let by = |kind| Step::Dependency { queue, kind, available, reads, writes };
        match self {
            Join::Barrier => steps.push(by(DependencyKind::Barrier)),
            Join::Event => steps.push(by(DependencyKind::Event)),
            Join::Submit => steps.extend([Step::Submit { queue }, by(DependencyKind::Barrier)]),
            Join::Semaphore | Join::Timeline => {
                let semaphore = SemaphoreId(semaphores.len() as u32);
                semaphores.push(match self {
                    Join::Timeline => Semaphore::Timeline,
                    _ => Semaphore::Binary,
                });
                steps.extend([Step::Signal { queue, semaphore }, Step::Wait { queue, semaphore }]);
            }
            // A fence makes writes available, and nothing visible to what comes later: that is left to the barrier.
            Join::Fence => steps.extend([Step::HostWait { queue }, by(DependencyKind::Barrier)]),
        }
    }
}

impl fmt::Display for Join {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Join {
    type Err = UnknownJoin;

    fn from_str(word: &str) -> Result<Join, UnknownJoin> {
        Join::ALL.into_iter().find(|join| join.name() == word).ok_or_else(|| UnknownJoin(word.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_and_ways_correspond() {
        for join in Join::ALL {
            assert_eq!(join.name().parse(), Ok(join));
        }
        let unknown = "hope".parse::<Join>().unwrap_err().to_string();
        assert_eq!(
            unknown,
            "no way to order dispatches is called `hope`; there are barrier, event, submit, semaphore, timeline, fence"
        );
    }
}
