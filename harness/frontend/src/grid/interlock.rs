//! Fragment shader interlock: fragments of one pixel execute their sections one at a time.
//!
//! Each section acquires what the previous one released ("Fragment Shader Interlock" in the Vulkan
//! specification).

use litmus::{InterlockEnd, InterlockOrder, Scope};
use spirv_reader::SpirvOperation;

use super::state::{Interpreter, InvocationCtx, InvocationState, PixelInterlock, WalkSetup, WorkgroupState};
use crate::error::Refusal;
use crate::finding::{FindingKind, InvocationId};
use crate::section::{Sections, semantics};

use super::step::{Step, StepInterrupt};

impl WalkSetup {
    /// Returns true if fragments of one pixel may enter their sections in any order.
    pub fn has_unordered_interlock(&self) -> bool {
        let unordered = |sections: Sections| sections.order == InterlockOrder::Unordered;
        self.sections.is_some_and(unordered) && self.grid[2] > 1
    }
}

impl Interpreter<'_> {
    /// Executes the begin or end of a section.
    pub(super) fn execute_interlock(&mut self, here: &mut InvocationCtx<'_>, end: InterlockEnd) -> Step<()> {
        let sections = Sections::here(self.setup.sections, end, self.setup.stage)?;
        let me = here.invocation_mut();
        let next = match me.interlock.past(end) {
            Ok(next) => next,
            Err(what) => {
                self.report_here(here, FindingKind::UndefinedBehaviour, what.to_owned());
                return Err(StepInterrupt::Ended);
            }
        };
        self.notes.extend(sections.note.map(str::to_owned));
        self.events += 1;
        match end {
            InterlockEnd::Begin if !self.can_enter_interlock(here.invocation_mut().identity, sections) => {
                return Err(self.wait_for_others(here));
            }
            InterlockEnd::Begin => self.enter_interlock(here),
            InterlockEnd::End => {
                here.invocation_mut().make_available(Scope::FragmentInterlock, semantics(end), true);
                let message = here.invocation_mut().release(Scope::FragmentInterlock, semantics(end));
                self.pixel_mut(here.invocation_mut().identity).last_release = Some(message);
                self.leave_interlock(here.invocation_mut().identity);
            }
        }
        here.invocation_mut().interlock = next;
        self.changes += 1;
        here.frame_mut()?.at += 1;
        Ok(())
    }

    fn pixel_mut(&mut self, of: InvocationId) -> &mut PixelInterlock {
        let [x, y, _] = of.workgroup;
        self.pixels.entry((x, y)).or_default()
    }

    /// Returns true if a fragment may enter its section now.
    fn can_enter_interlock(&mut self, me: InvocationId, sections: Sections) -> bool {
        let [_, _, primitive] = me.workgroup;
        let pixel = self.pixel_mut(me);
        pixel.active_primitive.is_none_or(|inside| inside == primitive)
            && (sections.order == InterlockOrder::Unordered
                // Ordered sections follow the order of primitives. A fragment that ended without a
                // section counts as finished.
                || (0..primitive).all(|earlier| pixel.finished_primitives.contains(&earlier)))
    }

    fn enter_interlock(&mut self, here: &mut InvocationCtx<'_>) {
        let me = here.invocation_mut();
        let pixel = self.pixel_mut(me.identity);
        pixel.active_primitive = Some(me.identity.workgroup[2]);
        if let Some(message) = pixel.last_release.clone() {
            me.acquire(&message, Scope::FragmentInterlock, semantics(InterlockEnd::Begin));
        }
        me.make_visible(Scope::FragmentInterlock, semantics(InterlockEnd::Begin));
        self.schedule_dependent |= self.setup.has_unordered_interlock();
    }

    /// Lets the pixel's next fragment enter, after a section or an ended fragment.
    pub(super) fn leave_interlock(&mut self, me: InvocationId) {
        if self.setup.sections.is_some() {
            let primitive = me.workgroup[2];
            let pixel = self.pixel_mut(me);
            pixel.active_primitive.take_if(|inside| *inside == primitive);
            pixel.finished_primitives.insert(primitive);
        }
    }

    /// Resumes fragments that may enter their section now.
    pub(super) fn resume_interlock_waits(&mut self, workgroup: &mut WorkgroupState) -> Result<bool, Refusal> {
        let mut met = false;
        for index in 0..workgroup.invocations.len() {
            let Some((_, SpirvOperation::BeginInterlock, site)) = self.waiting_at(workgroup, index) else {
                continue;
            };
            let mut here = InvocationCtx { workgroup, index };
            // Tries the begin again; if the section is still occupied, the invocation waits again.
            here.invocation_mut().state = InvocationState::Running;
            match self.execute_interlock(&mut here, InterlockEnd::Begin) {
                Ok(()) => met = true,
                Err(StepInterrupt::Refused(problem)) => {
                    return Err(problem.located_at(self.source_position(site)));
                }
                Err(StepInterrupt::Waits | StepInterrupt::Ended) => {}
            }
        }
        Ok(met)
    }
}
