//! Split barriers (`SPV_INTEL_split_barrier`): an arrival does not block, a wait blocks until its round is
//! complete.
//!
//! A round of a subgroup or workgroup is complete when every invocation has arrived as often as the waiting
//! one has waited.

use litmus::Scope;
use spirv_reader::{BarrierPart, SpirvOperation};

use entry_point::{FindingCause, Refusal};

use super::state::{
    BarrierSemantics, Interpreter, Invocation, InvocationCtx, InvocationState, SiteFinding, WorkgroupState,
};
use super::step::{Step, StepInterrupt};

/// Returns the index of an execution scope in `split_counts`.
fn scope_index(scope: Scope) -> usize {
    usize::from(scope == Scope::Workgroup)
}

/// Returns the subgroup that owns a round; `None` for the whole workgroup.
fn round_owner(invocation: &Invocation, scope: Scope) -> Option<u32> {
    (scope == Scope::Subgroup).then_some(invocation.subgroup)
}

impl Interpreter<'_> {
    /// Executes an arrival.
    pub(super) fn arrive_at_split(&mut self, ctx: &mut InvocationCtx<'_>) -> Step<()> {
        self.events += 1;
        self.changes += 1;
        let site = self.current_site(&ctx.workgroup.invocations[ctx.index]);
        let (scope, barrier) =
            self.control_barrier_at(site).map_err(|refusal| StepInterrupt::from(refusal.what))?;
        let invocation = ctx.invocation_mut();
        let all = invocation.arrive_at_split_barrier(barrier);
        // The number of earlier arrivals is the number of this round.
        let round = invocation.split_counts[scope_index(scope)].0;
        invocation.split_counts[scope_index(scope)].0 += 1;
        let key = (round_owner(invocation, scope), round);
        ctx.workgroup.split_rounds.entry(key).or_default().extend(all);
        ctx.frame_mut()?.at += 1;
        Ok(())
    }

    /// Resumes the invocations whose round is complete.
    pub(super) fn complete_split_waits(&mut self, workgroup: &mut WorkgroupState) -> Result<bool, Refusal> {
        let mut has_resumed = false;
        for index in 0..workgroup.invocations.len() {
            let Some((_, scope, barrier)) = self.split_wait_at(workgroup, index)? else { continue };
            if self.missing_arrival(workgroup, index, scope).is_some() {
                continue;
            }
            let WorkgroupState { invocations, split_rounds: rounds, .. } = &mut *workgroup;
            let invocation = &mut invocations[index];
            let key = (round_owner(invocation, scope), invocation.split_counts[scope_index(scope)].1);
            let messages = rounds.get(&key).map_or(&[][..], Vec::as_slice);
            invocation.finish_split_barrier(messages, barrier);
            invocation.split_counts[scope_index(scope)].1 += 1;
            invocation.state = InvocationState::Running;
            if let Some(frame) = invocation.frames.last_mut() {
                frame.at += 1;
            }
            self.changes += 1;
            has_resumed = true;
        }
        Ok(has_resumed)
    }

    /// Returns the split wait at which an invocation is blocked.
    fn split_wait_at(
        &self,
        workgroup: &WorkgroupState,
        index: usize,
    ) -> Result<Option<(u32, Scope, BarrierSemantics)>, Refusal> {
        let waiting = self.waiting_at(workgroup, index);
        let Some((_, SpirvOperation::ControlBarrier { part: BarrierPart::Wait, .. }, site)) = waiting else {
            return Ok(None);
        };
        let (scope, barrier) = self.control_barrier_at(site)?;
        Ok(Some((site, scope, barrier)))
    }

    /// Returns an invocation that has not arrived in the awaited round.
    fn missing_arrival<'w>(
        &self,
        workgroup: &'w WorkgroupState,
        index: usize,
        scope: Scope,
    ) -> Option<&'w Invocation> {
        let invocation = &workgroup.invocations[index];
        let round = invocation.split_counts[scope_index(scope)].1;
        let mut all = workgroup.invocations.iter();
        all.find(|other| {
            // Rounds count from 0: an invocation that has arrived in the round has a count above
            // it.
            round_owner(other, scope) == round_owner(invocation, scope)
                && other.split_counts[scope_index(scope)].0 <= round
        })
    }

    /// Reports waits for invocations that never arrive.
    pub(super) fn report_missing_arrivals(&mut self, indices: &[u32]) -> Result<(), Refusal> {
        let mut all = Vec::new();
        for workgroup in indices.iter().filter_map(|index| self.workgroups.get(index)) {
            for index in 0..workgroup.invocations.len() {
                let Some((site, scope, _)) = self.split_wait_at(workgroup, index)? else { continue };
                let Some(other) = self.missing_arrival(workgroup, index, scope) else { continue };
                let me = workgroup.invocations[index].identity;
                let message = format!(
                    "invocation {me} waits at a split barrier for invocation {}, which does not arrive",
                    other.identity
                );
                let at = vec![(site, me, None), (self.current_site(other), other.identity, None)];
                all.push(SiteFinding {
                    cause: FindingCause::MissedArrival,
                    element: String::new(),
                    message,
                    at,
                    inputs: 0,
                });
            }
        }
        all.into_iter().for_each(|found| self.report_finding(found));
        Ok(())
    }
}
