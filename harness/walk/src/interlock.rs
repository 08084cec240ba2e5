//! Fragment shader interlock: fragments of one pixel execute their sections one at a time.
//!
//! Each section acquires what the previous one released ("Fragment Shader Interlock" in the Vulkan
//! specification).

use litmus::{InterlockEnd, InterlockOrder, Scope};
use spirv_reader::SpirvOperation;

use super::state::{Interpreter, InvocationCtx, InvocationState, PixelInterlock, WalkSetup, WorkgroupState};
use entry_point::interlock::{InterlockExecutionMode, interlock_semantics};
use entry_point::{FindingCause, InvocationId, Refusal};

use super::step::{Step, StepInterrupt};

impl WalkSetup {
    /// Returns true if fragments of one pixel may enter their sections in any order.
    pub fn has_unordered_interlock(&self) -> bool {
        let unordered = |sections: InterlockExecutionMode| sections.order == InterlockOrder::Unordered;
        self.sections.is_some_and(unordered) && self.grid[2] > 1
    }
}

impl Interpreter<'_> {
    /// Executes the begin or end of a section.
    pub(super) fn execute_interlock(&mut self, ctx: &mut InvocationCtx<'_>, end: InterlockEnd) -> Step<()> {
        let sections = InterlockExecutionMode::require_at(self.setup.sections, end, self.setup.stage)?;
        let invocation = ctx.invocation_mut();
        let next = match invocation.interlock.advance(end) {
            Ok(next) => next,
            Err(what) => {
                self.report_here(ctx, FindingCause::InterlockOrder, what.to_owned());
                return Err(StepInterrupt::Ended);
            }
        };
        self.notes.extend(sections.note.map(str::to_owned));
        self.events += 1;
        match end {
            InterlockEnd::Begin if !self.can_enter_interlock(ctx.invocation_mut().identity, sections) => {
                return Err(self.wait_for_others(ctx));
            }
            InterlockEnd::Begin => self.enter_interlock(ctx),
            InterlockEnd::End => {
                ctx.invocation_mut().make_available(Scope::FragmentInterlock, interlock_semantics(end), true);
                let message =
                    ctx.invocation_mut().release(Scope::FragmentInterlock, interlock_semantics(end));
                self.pixel_mut(ctx.invocation_mut().identity).last_release = Some(message);
                self.leave_interlock(ctx.invocation_mut().identity);
            }
        }
        ctx.invocation_mut().interlock = next;
        self.changes += 1;
        ctx.frame_mut()?.at += 1;
        Ok(())
    }

    fn pixel_mut(&mut self, identity: InvocationId) -> &mut PixelInterlock {
        let [x, y, _] = identity.workgroup;
        self.pixels.entry((x, y)).or_default()
    }

    /// Returns true if a fragment may enter its section now.
    fn can_enter_interlock(&mut self, identity: InvocationId, sections: InterlockExecutionMode) -> bool {
        let [_, _, primitive] = identity.workgroup;
        let pixel = self.pixel_mut(identity);
        pixel.active_primitive.is_none_or(|inside| inside == primitive)
            && (sections.order == InterlockOrder::Unordered
                // Ordered sections follow the order of primitives. A fragment that ended without a
                // section counts as finished.
                || (0..primitive).all(|earlier| pixel.finished_primitives.contains(&earlier)))
    }

    fn enter_interlock(&mut self, ctx: &mut InvocationCtx<'_>) {
        let invocation = ctx.invocation_mut();
        let pixel = self.pixel_mut(invocation.identity);
        pixel.active_primitive = Some(invocation.identity.workgroup[2]);
        if let Some(message) = pixel.last_release.clone() {
            invocation.acquire(&message, Scope::FragmentInterlock, interlock_semantics(InterlockEnd::Begin));
        }
        invocation.make_visible(Scope::FragmentInterlock, interlock_semantics(InterlockEnd::Begin));
        self.is_schedule_dependent |= self.setup.has_unordered_interlock();
    }

    /// Lets the pixel's next fragment enter, after a section or an ended fragment.
    pub(super) fn leave_interlock(&mut self, identity: InvocationId) {
        if self.setup.sections.is_some() {
            let primitive = identity.workgroup[2];
            let pixel = self.pixel_mut(identity);
            pixel.active_primitive.take_if(|inside| *inside == primitive);
            pixel.finished_primitives.insert(primitive);
        }
    }

    /// Resumes fragments that may enter their section now.
    pub(super) fn resume_interlock_waits(&mut self, workgroup: &mut WorkgroupState) -> Result<bool, Refusal> {
        let mut has_resumed = false;
        for index in 0..workgroup.invocations.len() {
            let Some((_, SpirvOperation::BeginInterlock, site)) = self.waiting_at(workgroup, index) else {
                continue;
            };
            let mut ctx = InvocationCtx { workgroup, index };
            // Tries the begin again; if the section is still occupied, the invocation waits again.
            ctx.invocation_mut().state = InvocationState::Running;
            match self.execute_interlock(&mut ctx, InterlockEnd::Begin) {
                Ok(()) => has_resumed = true,
                Err(StepInterrupt::Refused(problem)) => {
                    return Err(problem.located_at(self.source_position(site)));
                }
                Err(StepInterrupt::Waits | StepInterrupt::Ended) => {}
            }
        }
        Ok(has_resumed)
    }
}
