//! The hazards that one barrier orders.

use crate::hazard::{CommandHazard, MissingOrder};
use crate::journal::Command;
use crate::timeline::Timeline;

impl CommandHazard {
    /// Returns true if its commands are on one queue.
    pub fn is_on_one_queue(&self, timeline: &Timeline<'_>) -> bool {
        let queue = |command: usize| timeline.commands.get(command).map(|executed| executed.queue);
        self.second.is_none_or(|second| queue(self.first) == queue(second))
    }

    /// Returns true if one change can order both: the same part is missing, between the same queues.
    fn is_alike(&self, other: &CommandHazard, timeline: &Timeline<'_>) -> bool {
        let executed = |command: Option<usize>| command.and_then(|command| timeline.commands.get(command));
        let queues =
            |one: &CommandHazard| [Some(one.first), one.second].map(|at| executed(at).map(|at| at.queue));
        let subpasses =
            |one: &CommandHazard| [Some(one.first), one.second].map(|at| executed(at).map(|at| at.subpass));
        // Transitions are compared by their scopes.
        let scopes = |one: &CommandHazard| match executed(one.second).map(|executed| executed.command) {
            Some(Command::Barrier(barrier)) => Some((barrier.from, barrier.to)),
            _ => None,
        };
        (self.missing, self.is_possible) == (other.missing, other.is_possible)
            && matches!(
                self.missing,
                MissingOrder::Execution | MissingOrder::Availability | MissingOrder::Visibility
            )
            && queues(self) == queues(other)
            && subpasses(self) == subpasses(other)
            && scopes(self) == scopes(other)
    }
}

/// Groups hazards that one barrier orders: it is after the first command and before the second of each.
pub fn group_by_barrier(timeline: &Timeline<'_>, hazards: Vec<CommandHazard>) -> Vec<Vec<CommandHazard>> {
    let mut groups: Vec<Vec<CommandHazard>> = Vec::new();
    for hazard in hazards {
        let has_place = |group: &[CommandHazard]| {
            let all = || group.iter().chain([&hazard]);
            let (first, second) = (all().map(|one| one.first).max(), all().map(|one| one.second).min());
            group.iter().all(|one| one.is_alike(&hazard, timeline)) && first < second.flatten()
        };
        match groups.iter_mut().find(|group| has_place(group)) {
            Some(group) => group.push(hazard),
            None => groups.push(vec![hazard]),
        }
    }
    groups
}
