//! Loops that wait for another lane of the same subgroup, which nobody promises to go on meanwhile.
//!
//! A walk lets everybody go on, so that such a loop ends in it. Where a lane repeats one while another of its subgroup could go
//! on, the walk is tried from there with all lanes of that subgroup held back but the one, and everybody else going on in turn:
//! if nobody changes anything any more and the lane is still in a loop, that is a run without end under progress models that
//! owe lanes of a subgroup nothing.

use crate::lift::{FindingKind, Identity};

use super::machine::{Doing, Found, Here, Machine};
use super::schedule::{Behind, Plan, Random};

/// Rounds in which nothing changes before it is asked whether anything ever will.
const IDLE: u32 = 2;
/// Steps of a trial at most.
const MAX_STEPS: u64 = 2_000_000;

/// How often it is still looked whether a lane waits for another.
#[derive(Clone, Copy, Debug)]
pub(super) struct Looks {
    /// Whether a loop comes round.
    loops: u32,
    /// What comes of it where the others are held back.
    trials: u32,
}

impl Default for Looks {
    fn default() -> Looks {
        Looks { loops: 64, trials: 4 }
    }
}

/// A lane that repeats a loop, and another of its subgroup that goes on.
struct Wait {
    who: (u32, Identity),
    /// The lanes of the subgroup: the first of them, and how many.
    lanes: (u32, u32),
    other: (u32, Identity),
}

impl Machine<'_> {
    /// Looks for a lane that waits for another of its subgroup, and tells it; whether there is one.
    pub(super) fn starve(&mut self, left: &[u32]) -> bool {
        if self.looks.loops == 0 || self.looks.trials == 0 || self.setup.subgroup_size < 2 {
            return false;
        }
        let Some(wait) = left.iter().find_map(|index| self.waits_for_lane(*index)) else { return false };
        self.looks.trials -= 1;
        let mut trial = self.clone();
        (trial.steps, trial.looks.trials) = (0, 0);
        let spins = trial.held_back(left.to_vec(), &wait);
        self.steps += trial.steps;
        let Some(site) = spins else { return false };
        let ((_, me), (there, other)) = (wait.who, wait.other);
        let message = format!(
            "invocation {me} repeats a loop for good where invocation {other} does not go on meanwhile: lanes of one subgroup \
             are promised no progress, and hardware that runs them in turns may never come to the other"
        );
        self.found(Found {
            kind: FindingKind::Hang,
            message,
            at: vec![(site, me, None), (there, other, None)],
        });
        true
    }

    fn waits_for_lane(&mut self, index: u32) -> Option<Wait> {
        let size = self.setup.subgroup_size.max(1) as usize;
        let mut workgroup = self.workgroups.remove(&index)?;
        let mut found = None;
        for first in (0..workgroup.invocations.len()).step_by(size) {
            let lanes = first..(first + size).min(workgroup.invocations.len());
            let of = |fruitless: bool| {
                let goes = |at: &usize| workgroup.invocations[*at].doing == Doing::Runs;
                lanes.clone().filter(goes).find(|at| workgroup.invocations[*at].fruitless == fruitless)
            };
            let (Some(at), Some(other), 1..) = (of(true), of(false), self.looks.loops) else { continue };
            self.looks.loops -= 1;
            if self.comes_round(&mut Here { workgroup: &mut workgroup, index: at }).is_none() {
                continue;
            }
            let (me, other) = (&workgroup.invocations[at], &workgroup.invocations[other]);
            found = Some(Wait {
                who: (me.number, me.identity),
                lanes: (workgroup.invocations[first].number, lanes.len() as u32),
                other: (self.site_of(other), other.identity),
            });
            break;
        }
        self.workgroups.insert(index, workgroup);
        found
    }

    /// Goes on without the other lanes of the subgroup: where the one is in a loop that never ends.
    fn held_back(&mut self, mut left: Vec<u32>, wait: &Wait) -> Option<u32> {
        let (number, me) = wait.who;
        let mut behind = Behind { lanes: Some(wait.lanes), except: Some(number), ..Behind::default() };
        let mut random = Random::new(1);
        let mut idle = 0;
        while idle <= IDLE {
            let before = self.changes;
            left = self.round(left, Plan::InTurn, &mut behind, &mut random, MAX_STEPS).ok()?;
            idle = if self.changes == before { idle + 1 } else { 0 };
            let invocations = &self.workgroups.get(&me.workgroup_index)?.invocations;
            if invocations.get(me.local_index as usize)?.doing != Doing::Runs {
                return None;
            }
        }
        let (spins, all) = self.spinning(&left, behind);
        spins.into_iter().find(|spin| all && spin.identity == me).map(|spin| spin.site)
    }
}
