//! Loops that wait for another lane of the same subgroup, which nobody promises to go on meanwhile.
//!
//! A walk lets everybody go on, so that such a loop ends in it. Where a lane repeats one while another of its subgroup could go
//! on, the walk is tried from there with all lanes of that subgroup held back but the one, and everybody else going on in turn:
//! if nobody changes anything any more and the lane is still in a loop, that is a run without end under progress models that
//! owe lanes of a subgroup nothing.

use crate::lift::{FindingKind, Identity};

use super::machine::{Interpreter, InvocationCtx, InvocationState, SiteFinding};
use super::schedule::{SchedulePolicy, ScheduleRng, StarvedLanes};

/// Rounds in which nothing changes before it is asked whether anything ever will.
const MAX_IDLE_ROUNDS: u32 = 2;
/// Steps of a trial at most.
const MAX_TRIAL_STEPS: u64 = 2_000_000;

/// How often it is still looked whether a lane waits for another.
#[derive(Clone, Copy, Debug)]
pub(super) struct TrialBudget {
    /// Whether a loop comes round.
    loops: u32,
    /// What comes of it where the others are held back.
    trials: u32,
}

impl Default for TrialBudget {
    fn default() -> TrialBudget {
        TrialBudget { loops: 64, trials: 4 }
    }
}

/// A lane that repeats a loop, and another of its subgroup that goes on.
struct LaneWait {
    waiting: (u32, Identity),
    /// The lanes of the subgroup: the first of them, and how many.
    lanes: (u32, u32),
    awaited: (u32, Identity),
}

impl Interpreter<'_> {
    /// Looks for a lane that waits for another of its subgroup, and tells it; whether there is one.
    pub(super) fn find_starved_lane(&mut self, left: &[u32]) -> bool {
        if self.trial_budget.loops == 0 || self.trial_budget.trials == 0 || self.setup.subgroup_size < 2 {
            return false;
        }
        let Some(wait) = left.iter().find_map(|index| self.find_lane_wait(*index)) else { return false };
        self.trial_budget.trials -= 1;
        let mut trial = self.clone();
        (trial.steps, trial.trial_budget.trials) = (0, 0);
        let spins = trial.run_without_other_lanes(left.to_vec(), &wait);
        self.steps += trial.steps;
        let Some(site) = spins else { return false };
        let ((_, me), (there, other)) = (wait.waiting, wait.awaited);
        let message = format!(
            "invocation {me} repeats a loop for good where invocation {other} does not go on meanwhile: lanes of one subgroup \
             are promised no progress, and hardware that runs them in turns may never come to the other"
        );
        self.report(SiteFinding {
            kind: FindingKind::Hang,
            message,
            at: vec![(site, me, None), (there, other, None)],
        });
        true
    }

    fn find_lane_wait(&mut self, index: u32) -> Option<LaneWait> {
        let size = self.setup.subgroup_size.max(1) as usize;
        let mut workgroup = self.workgroups.remove(&index)?;
        let mut found = None;
        for first in (0..workgroup.invocations.len()).step_by(size) {
            let lanes = first..(first + size).min(workgroup.invocations.len());
            let of = |fruitless: bool| {
                let goes = |at: &usize| workgroup.invocations[*at].state == InvocationState::Running;
                lanes.clone().filter(goes).find(|at| workgroup.invocations[*at].made_no_change == fruitless)
            };
            let (Some(at), Some(other), 1..) = (of(true), of(false), self.trial_budget.loops) else {
                continue;
            };
            self.trial_budget.loops -= 1;
            if self.find_spin(&mut InvocationCtx { workgroup: &mut workgroup, index: at }).is_none() {
                continue;
            }
            let (me, other) = (&workgroup.invocations[at], &workgroup.invocations[other]);
            found = Some(LaneWait {
                waiting: (me.number, me.identity),
                lanes: (workgroup.invocations[first].number, lanes.len() as u32),
                awaited: (self.current_site(other), other.identity),
            });
            break;
        }
        self.workgroups.insert(index, workgroup);
        found
    }

    /// Goes on without the other lanes of the subgroup: where the one is in a loop that never ends.
    fn run_without_other_lanes(&mut self, mut left: Vec<u32>, wait: &LaneWait) -> Option<u32> {
        let (number, me) = wait.waiting;
        let mut behind =
            StarvedLanes { lanes: Some(wait.lanes), except: Some(number), ..StarvedLanes::default() };
        let mut random = ScheduleRng::new(1);
        let mut idle = 0;
        while idle <= MAX_IDLE_ROUNDS {
            let before = self.changes;
            left = self
                .run_round(left, SchedulePolicy::RoundRobin, &mut behind, &mut random, MAX_TRIAL_STEPS)
                .ok()?;
            idle = if self.changes == before { idle + 1 } else { 0 };
            let invocations = &self.workgroups.get(&me.workgroup_index)?.invocations;
            if invocations.get(me.local_index as usize)?.state != InvocationState::Running {
                return None;
            }
        }
        let (spins, all) = self.find_spinning(&left, behind);
        spins.into_iter().find(|spin| all && spin.identity == me).map(|spin| spin.site)
    }
}
