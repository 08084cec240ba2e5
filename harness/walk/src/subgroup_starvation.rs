//! Detects spin loops that wait for another lane of the same subgroup.
//!
//! The schedules of a walk are fair, so such a loop ends in them. Vulkan guarantees no forward progress
//! between lanes of one subgroup. So if a lane spins while another lane of its subgroup can run, a trial
//! continues with only the spinning lane of that subgroup; all other invocations run in turn. If nothing
//! changes any more and the lane still spins, the loop is endless under progress models without guarantees
//! for lanes.
//!
//! A finding is sound for the walked schedule. The budget bounds the trials, so loops may be missed.

use entry_point::{FindingCause, InvocationId};

use super::schedule::{SchedulePolicy, ScheduleRng, StarvedLanes};
use super::state::{Interpreter, InvocationCtx, InvocationState, SiteFinding};

/// Rounds without a change before a trial checks for a spin loop.
const MAX_IDLE_ROUNDS: u32 = 2;
/// Upper bound on the steps of a trial.
const MAX_TRIAL_STEPS: u64 = 2_000_000;

/// A spinning lane and another lane of its subgroup that can run.
struct LaneWait {
    waiting: (u32, InvocationId),
    /// The first lane of the subgroup, and the number of lanes.
    lanes: (u32, u32),
    awaited: (u32, InvocationId),
}

impl Interpreter<'_> {
    /// Reports a lane that waits for another lane of its subgroup; returns true if one was found.
    pub(super) fn find_starved_lane(&mut self, unfinished: &[u32]) -> bool {
        if self.trial_budget.loops == 0 || self.trial_budget.trials == 0 || self.setup.subgroup_size < 2 {
            return false;
        }
        let Some(wait) = unfinished.iter().find_map(|index| self.find_lane_wait(*index)) else {
            return false;
        };
        self.trial_budget.trials -= 1;
        // A copy of the whole state: the trial must not influence the walk. It starts no trials
        // itself.
        let mut trial = self.clone();
        (trial.steps, trial.trial_budget.trials) = (0, 0);
        let spins = trial.run_without_other_lanes(unfinished.to_vec(), &wait);
        self.steps += trial.steps;
        let Some(site) = spins else { return false };
        let ((_, me), (there, other)) = (wait.waiting, wait.awaited);
        let message = format!(
            "invocation {me} loops forever while invocation {other} does not make progress: lanes of one \
             subgroup have no forward-progress guarantee, and hardware may never schedule the other lane"
        );
        self.report_finding(SiteFinding {
            cause: FindingCause::SubgroupStarvation,
            element: String::new(),
            message,
            at: vec![(site, me, None), (there, other, None)],
            inputs: 0,
        });
        true
    }

    fn find_lane_wait(&mut self, index: u32) -> Option<LaneWait> {
        let size = self.setup.subgroup_size.max(1) as usize;
        let mut workgroup = self.workgroups.remove(&index)?;
        let mut found = None;
        for first in (0..workgroup.invocations.len()).step_by(size) {
            let lanes = first..(first + size).min(workgroup.invocations.len());
            // A lane that made no change in its last turn may spin; one that did can run.
            let find_lane = |made_no_change: bool| {
                let is_running = |at: &usize| workgroup.invocations[*at].state == InvocationState::Running;
                lanes
                    .clone()
                    .filter(is_running)
                    .find(|at| workgroup.invocations[*at].made_no_change == made_no_change)
            };
            let (Some(at), Some(other), 1..) = (find_lane(true), find_lane(false), self.trial_budget.loops)
            else {
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

    /// Runs without the other lanes; returns the site of the endless loop, if any.
    fn run_without_other_lanes(&mut self, mut unfinished: Vec<u32>, wait: &LaneWait) -> Option<u32> {
        let (number, me) = wait.waiting;
        let mut starved =
            StarvedLanes { lanes: Some(wait.lanes), except: Some(number), ..StarvedLanes::default() };
        let mut random = ScheduleRng::new(1);
        let mut idle = 0;
        while idle <= MAX_IDLE_ROUNDS {
            let before = self.changes;
            unfinished = self
                .run_round(unfinished, SchedulePolicy::RoundRobin, &mut starved, &mut random, MAX_TRIAL_STEPS)
                .ok()?;
            idle = if self.changes == before { idle + 1 } else { 0 };
            let invocations = &self.workgroups.get(&me.workgroup_index)?.invocations;
            if invocations.get(me.local_index as usize)?.state != InvocationState::Running {
                return None;
            }
        }
        let (spins, all) = self.find_spinning(&unfinished, starved);
        spins.into_iter().find(|spin| all && spin.identity == me).map(|spin| spin.site)
    }
}
