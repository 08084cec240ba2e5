//! Split barriers: who arrives goes on, and who waits does so until all have arrived as often as it has waited.

use litmus::Scope;

use crate::error::Refusal;
use crate::lift::FindingKind;

use super::machine::{Doing, Found, Here, Invocation, Machine, Step, Stop, Workgroup};
use super::sync::Barrier;

/// The number of an execution scope among those that rounds are counted of.
fn number(scope: Scope) -> usize {
    usize::from(scope == Scope::Workgroup)
}

/// Whose rounds these are: of a subgroup, or of the whole workgroup.
fn whose(invocation: &Invocation, scope: Scope) -> Option<u32> {
    (scope == Scope::Subgroup).then_some(invocation.subgroup)
}

impl Machine<'_> {
    /// An invocation arrives.
    pub(super) fn arrive(&mut self, here: &mut Here<'_>) -> Step<()> {
        self.events += 1;
        self.changes += 1;
        let site = self.site_of(&here.workgroup.invocations[here.index]);
        let (scope, barrier) = self.barrier_at(site).map_err(|refusal| Stop::Refused(refusal.what))?;
        let me = here.me();
        let all = me.arrives(barrier);
        let round = me.split[number(scope)].0;
        me.split[number(scope)].0 += 1;
        let key = (whose(me, scope), round);
        here.workgroup.rounds.entry(key).or_default().extend(all);
        here.frame()?.at += 1;
        Ok(())
    }

    /// Lets those go on whose round is whole.
    pub(super) fn waited(&mut self, workgroup: &mut Workgroup) -> Result<bool, Refusal> {
        let mut met = false;
        for index in 0..workgroup.invocations.len() {
            let Some((_, scope, barrier)) = self.waits_split(workgroup, index)? else { continue };
            if self.missing(workgroup, index, scope).is_some() {
                continue;
            }
            let Workgroup { invocations, rounds, .. } = &mut *workgroup;
            let me = &mut invocations[index];
            let key = (whose(me, scope), me.split[number(scope)].1);
            let messages = rounds.get(&key).map_or(&[][..], Vec::as_slice);
            me.waits(messages, barrier);
            me.split[number(scope)].1 += 1;
            me.doing = Doing::Runs;
            if let Some(frame) = me.frames.last_mut() {
                frame.at += 1;
            }
            self.changes += 1;
            met = true;
        }
        Ok(met)
    }

    /// The wait of a split barrier that an invocation stands at.
    fn waits_split(
        &self,
        workgroup: &Workgroup,
        index: usize,
    ) -> Result<Option<(u32, Scope, Barrier)>, Refusal> {
        let Some((_, rspirv::spirv::Op::ControlBarrierWaitINTEL, site)) = self.waits_at(workgroup, index)
        else {
            return Ok(None);
        };
        let (scope, barrier) = self.barrier_at(site)?;
        Ok(Some((site, scope, barrier)))
    }

    /// Somebody who has not arrived in the round that an invocation waits for.
    fn missing<'w>(&self, workgroup: &'w Workgroup, index: usize, scope: Scope) -> Option<&'w Invocation> {
        let me = &workgroup.invocations[index];
        let round = me.split[number(scope)].1;
        let mut all = workgroup.invocations.iter();
        all.find(|other| whose(other, scope) == whose(me, scope) && other.split[number(scope)].0 <= round)
    }

    /// Tells who waits for those that never arrive.
    pub(super) fn never_arrived(&mut self, indices: &[u32]) -> Result<(), Refusal> {
        let mut all = Vec::new();
        for workgroup in indices.iter().filter_map(|index| self.workgroups.get(index)) {
            for index in 0..workgroup.invocations.len() {
                let Some((site, scope, _)) = self.waits_split(workgroup, index)? else { continue };
                let Some(other) = self.missing(workgroup, index, scope) else { continue };
                let me = workgroup.invocations[index].identity;
                let message = format!(
                    "invocation {me} waits at a split barrier for invocation {}, which does not arrive",
                    other.identity
                );
                let at = vec![(site, me, None), (self.site_of(other), other.identity, None)];
                all.push(Found { kind: FindingKind::DivergentBarrier, message, at });
            }
        }
        all.into_iter().for_each(|found| self.found(found));
        Ok(())
    }
}
