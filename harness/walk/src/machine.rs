//! The interpreter of a grid walk: invocations, call frames and control flow.
//!
//! One [`Interpreter`] executes one schedule. The other modules of the walk extend it: memory accesses,
//! atomics, subgroup operations, synchronization and the scheduler.

use std::rc::Rc;

use arithmetic::Instruction;
use spirv_reader::{HlslMemory, ShaderLanguage, SourcePosition, SpirvOperation, Stage, switch_cases};

use super::state::{
    CallFrame, Interpreter, Invocation, InvocationCtx, InvocationState, SiteFinding, WORKGROUP_TAG,
};
use super::step::{Step, StepInterrupt};
use super::trial::STORED_UNWRITTEN;
use entry_point::{
    FindingCause, FindingKind, InvocationId, Problem, malformed, undefined_result, unsupported,
};

use super::access::AccessConflict;
use super::compute::instruction_name;
use super::memory::MemoryObject;
use super::program::DecodedInstruction;
use super::race_check::{AccessOrder, AccessRecord};
use super::report::{GridSpot, variable_of_element};
use super::shadow::WORD_BYTES;
use super::slots::{GLOBAL_TAG, Slots, copy_slots, gather_slots, read_slot, scatter_value};
use super::value::{
    COMPUTED_FROM_UNWRITTEN, ConcretePointer, ConcreteValue, FIRST_SITE, LAST_SITE, LAST_VALUE, OPAQUE,
    PRIVATE_TAG, SCHEDULE_DEPENDENT, SITE_MASK, Taint, UNDEFINED,
};

/// The reason that a lockstep finding gives.
const LOCKSTEP_REASON: &str =
    "the accesses are not ordered: they are lanes of one subgroup, which need not execute in lockstep";
/// Upper bound on nested calls.
const MAX_CALLS: usize = 64;
impl Interpreter<'_> {
    /// Returns the value of an id.
    pub fn value_of_id(&self, ctx: &InvocationCtx<'_>, id: u32) -> Step<ConcreteValue> {
        let slots = self.program.slots_of(id);
        if slots.count == 0 {
            return self.single_slot_value(ctx, id).cloned();
        }
        gather_slots(self.frame_values(ctx), &self.globals, slots).ok_or_else(|| self.missing_value(id))
    }

    fn frame_values<'v>(&self, ctx: &'v InvocationCtx<'_>) -> &'v [ConcreteValue] {
        ctx.workgroup.invocations[ctx.index].frames.last().map_or(&[], |frame| &frame.values)
    }

    fn missing_value(&self, id: u32) -> StepInterrupt {
        malformed(format!("{} has no value", self.program.module.display_name(id))).into()
    }

    /// Returns the value of an id that occupies one slot.
    #[inline]
    pub fn single_slot_value<'v>(&'v self, ctx: &'v InvocationCtx<'_>, id: u32) -> Step<&'v ConcreteValue> {
        let slots = self.program.slots_of(id);
        if slots.count > 0 {
            return Err(malformed(format!("{} is a vector", self.program.module.display_name(id))).into());
        }
        slots.single_slot().and_then(|slot| self.slot_value(ctx, slot)).ok_or_else(|| self.missing_value(id))
    }

    /// Returns the value in a slot.
    pub fn slot_value<'v>(&'v self, ctx: &'v InvocationCtx<'_>, slot: u32) -> Option<&'v ConcreteValue> {
        read_slot(self.frame_values(ctx), &self.globals, slot)
    }

    /// Returns an operand that decides control flow, an address or a parameter of an operation.
    pub fn control_number(&mut self, ctx: &mut InvocationCtx<'_>, id: u32, what: &str) -> Step<u64> {
        let (bits, taint) = match self.single_slot_value(ctx, id)? {
            ConcreteValue::Bits(bits, taint) => (*bits, *taint),
            ConcreteValue::NoBits(taint) => (0, *taint),
            _ => return Err(malformed(format!("{what} that is not a number")).into()),
        };
        self.check_control_dependence(ctx, taint, what)?;
        Ok(bits)
    }

    /// Records that a value with this taint decides control flow or an address.
    ///
    /// An opaque value refuses the walk, an undefined one is a finding, a schedule-dependent one limits the
    /// coverage.
    pub fn check_control_dependence(
        &mut self,
        ctx: &mut InvocationCtx<'_>,
        taint: Taint,
        what: &str,
    ) -> Step<()> {
        if taint == 0 {
            return Ok(());
        }
        self.note_inputs(ctx, taint);
        if taint & OPAQUE != 0 {
            return Err(self.opaque_value_problem(what).into());
        }
        self.observe_undefined(taint);
        if taint & UNDEFINED != 0 {
            let message = format!("{what} depends on {}", super::value::undefined_source(taint));
            self.report_here(ctx, FindingCause::UndefinedValue, message);
        }
        self.is_schedule_dependent |= taint & (SCHEDULE_DEPENDENT | LAST_VALUE) != 0;
        Ok(())
    }

    /// Records undefined behaviour of this site lazily; returns the taint bit of its result.
    ///
    /// The finding is reported only if the value is observed.
    pub fn undefined_result(
        &mut self,
        ctx: &InvocationCtx<'_>,
        cause: FindingCause,
        message: String,
        access: Option<bool>,
    ) -> Taint {
        if let Some(known) = self.undefined_site_taint(ctx) {
            return known;
        }
        let invocation = &ctx.workgroup.invocations[ctx.index];
        let at = vec![(self.current_site(invocation), invocation.identity, access)];
        self.undefined_sources.push(SiteFinding { cause, element: String::new(), message, at, inputs: 0 });
        self.undefined_site_taint(ctx).unwrap_or(SITE_MASK)
    }

    /// Does the same for an instruction whose result is undefined for its operands.
    ///
    /// `operands` is the taint of its operands.
    pub fn undefined_instruction_result(
        &mut self,
        ctx: &InvocationCtx<'_>,
        instruction: Instruction,
        operands: Taint,
    ) -> Step<Taint> {
        let (cause, message) = undefined_result(instruction)
            .ok_or_else(|| unsupported(instruction_name(instruction) + " of this type"))?;
        self.note_inputs(ctx, operands);
        Ok(self.undefined_result(ctx, cause, message, None))
    }

    /// Returns the taint bit of the current site, if it produced an undefined value before.
    pub fn undefined_site_taint(&self, ctx: &InvocationCtx<'_>) -> Option<Taint> {
        let site = self.current_site(&ctx.workgroup.invocations[ctx.index]);
        let at = self
            .undefined_sources
            .iter()
            .position(|found| found.at.first().is_some_and(|at| at.0 == site))?;
        // Sites beyond the last bit share it: a value from one of them is attributed to all.
        Some(1 << (FIRST_SITE + at as u32).min(LAST_SITE))
    }

    /// Reports the sites that a tainted value comes from.
    pub fn observe_undefined(&mut self, taint: Taint) {
        if taint & SITE_MASK == 0 {
            return;
        }
        for at in 0..self.undefined_sources.len() {
            if taint >> (FIRST_SITE + at as u32).min(LAST_SITE) & 1 != 0 {
                self.report_finding(self.undefined_sources[at].clone());
            }
        }
    }

    /// Reports a number that leaves the workgroup and was computed from memory that no invocation has written.
    ///
    /// Copies are not reported: correct shaders copy padding.
    pub fn observe_unwritten(&mut self, ctx: &mut InvocationCtx<'_>, taint: Taint) {
        if taint & COMPUTED_FROM_UNWRITTEN != 0 {
            self.report_here(ctx, FindingCause::StoredUnwritten, STORED_UNWRITTEN.to_owned());
        }
    }

    /// Returns true while probing for a spin loop: no effect may become visible.
    pub fn is_probing(&self) -> bool {
        self.spin_reads.is_some()
    }

    /// Returns the number of the current instruction.
    pub fn current_site(&self, invocation: &Invocation) -> u32 {
        let Some(frame) = invocation.frames.last() else { return invocation.last_site };
        let function = self.program.functions.get(frame.function);
        function.map_or(0, |function| function.first_site) + frame.at as u32
    }

    /// Reports a defect at the current instruction.
    pub fn report_here(&mut self, ctx: &mut InvocationCtx<'_>, cause: FindingCause, message: String) {
        self.report_element(ctx, cause, message, String::new());
    }

    /// Reports a defect of an element at the current instruction.
    pub fn report_element(
        &mut self,
        ctx: &mut InvocationCtx<'_>,
        cause: FindingCause,
        message: String,
        element: String,
    ) {
        let invocation = &ctx.workgroup.invocations[ctx.index];
        let at = vec![(self.current_site(invocation), invocation.identity, None)];
        self.report_finding(SiteFinding { cause, element, message, at, inputs: 0 });
    }

    /// Returns the source positions of a finding.
    pub fn grid_spots(&self, found: &SiteFinding) -> Vec<GridSpot> {
        let spot = |(site, invocation, access): &(u32, InvocationId, Option<bool>)| {
            let (line, place) = self.program.source_place(*site);
            GridSpot { line, place, invocation: *invocation, writes: *access }
        };
        found.at.iter().map(spot).collect()
    }

    /// Reports a defect once for each set of source lines, and a race once for each variable there.
    pub fn report_finding(&mut self, mut found: SiteFinding) {
        if self.reported.insert(self.finding_lines(&found)) {
            if found.cause.kind() == FindingKind::Hang {
                found.inputs |= self.influence.control;
            }
            self.findings.push(found);
        }
    }

    /// Returns the kind and the lines of a finding, and the variable of a race, by which each is reported once.
    fn finding_lines(&self, found: &SiteFinding) -> (FindingKind, Vec<u32>, String) {
        let mut sites: Vec<u32> = found
            .at
            .iter()
            .map(|(site, ..)| match self.program.source_place(*site) {
                // Sites without a line are distinguished by their number; the tag distinguishes them from
                // lines.
                (0, _) => *site | GLOBAL_TAG,
                (line, _) => line,
            })
            .collect();
        sites.sort_unstable();
        // Unequal stores of the same lines are reported as well.
        sites.extend((found.cause == FindingCause::EqualStores).then_some(u32::MAX));
        let kind = found.cause.kind();
        let variable = if kind.is_race() { variable_of_element(&found.element) } else { "" };
        (kind, sites, variable.to_owned())
    }

    /// Returns true for a race in workgroup memory of an atomic at a place that inputs decide and a plain access at one that
    /// they do not decide.
    ///
    /// An atomic expects that several invocations meet at its place, so they also meet the plain access: a histogram that is
    /// cleared without a barrier races for all keys but a permutation.
    pub fn is_keyed_race(&self, found: &SiteFinding) -> bool {
        let [first, second] = found.at[..] else { return false };
        let is_atomic = |site| self.program.workgroup_access(site);
        let is_decided = |site| self.influence.inputs_at_site(site) != 0;
        let is_keyed = |one, other| {
            (is_atomic(one), is_atomic(other)) == (Some(true), Some(false))
                && is_decided(one)
                && !is_decided(other)
        };
        found.cause.kind().is_race() && (is_keyed(first.0, second.0) || is_keyed(second.0, first.0))
    }

    /// Reports a conflict of two accesses.
    pub fn report_conflict(
        &mut self,
        ctx: &mut InvocationCtx<'_>,
        pointer: &ConcretePointer,
        conflict: &AccessConflict,
    ) {
        let program = self.program;
        let [earlier, later] = [&conflict.earlier, &conflict.later]
            .map(|record| (record, self.invocation_id(record.epoch.invocation)));
        let stores = |record: &AccessRecord| {
            record.site.kind.writes || program.loads_for_store(record.site.instruction)
        };
        let verb_of = |record: &AccessRecord| match (record.site.kind.is_atomic, stores(record)) {
            (true, true) => "atomically writes",
            (true, false) => "atomically reads",
            (false, true) => "writes",
            (false, false) => "reads",
        };
        let (cause, why) = match conflict.order {
            AccessOrder::Unpublished => (
                FindingCause::Unpublished,
                "the write happens before, but is not made available and visible to the read",
            ),
            _ if earlier.0.site.kind.is_atomic && later.0.site.kind.is_atomic => (
                FindingCause::AtomicMismatch,
                "both are atomic, but outside each other's scope or of different sizes",
            ),
            _ if (earlier.0.epoch.workgroup, earlier.0.subgroup)
                == (later.0.epoch.workgroup, later.0.subgroup) =>
            {
                // One instruction executed by all lanes together is unordered even in lockstep.
                let lockstep =
                    earlier.0.site.instruction != later.0.site.instruction && self.setup.subgroups > 1;
                match lockstep {
                    true => (FindingCause::LockstepOrder, LOCKSTEP_REASON),
                    false => (
                        FindingCause::Unordered,
                        "the accesses are not ordered, although both invocations are lanes of one subgroup",
                    ),
                }
            }
            _ => (FindingCause::Unordered, "the accesses are not ordered"),
        };
        let writes = |record: &AccessRecord| record.site.kind.writes && !record.site.kind.is_atomic;
        let stored = conflict.repeated_store.filter(|_| writes(earlier.0) && writes(later.0));
        let is_equal = stored == Some(0) && cause == FindingCause::Unordered;
        let cause = if is_equal { FindingCause::EqualStores } else { cause };
        let spot = |(record, identity): (&AccessRecord, InvocationId)| {
            (record.site.instruction, identity, Some(stores(record)))
        };
        let at = vec![spot(earlier), spot(later)];
        // Most conflicts are those of other elements at the same instructions.
        let sites = [at[0].0.min(at[1].0), at[0].0.max(at[1].0)];
        if !self.conflicts.insert((cause.kind(), is_equal, sites)) {
            return;
        }
        let name = self.element_name(ctx, pointer, conflict.word * WORD_BYTES);
        let same = match (stored, program.module.language) {
            (None, _) => "",
            (Some(0), Some(ShaderLanguage::Hlsl))
                if conflict.class != litmus::StorageClass::Workgroup
                    && program.module.hlsl.memory == HlslMemory::Direct3d =>
            {
                "; the write stores the value that memory already holds, which HLSL defines and Vulkan does not"
            }
            (Some(0), _) => "; the write stores the value that memory already holds, which is still a race",
            _ => "; with these inputs the write stores the value that memory already holds",
        };
        let is_private = earlier.0.site.kind.is_private || later.0.site.kind.is_private;
        let module = &program.module;
        let is_private =
            is_private && module.uses_vulkan_model && module.language == Some(ShaderLanguage::Glsl);
        let private = match cause == FindingCause::Unpublished && is_private {
            true => {
                "; the access is private: in GLSL, `gl_SemanticsMakeVisible` and the like select the Vulkan memory \
                     model, as `#pragma use_vulkan_memory_model` does, and memory without `nonprivate` or a coherence \
                     qualifier is private in it"
            }
            false => "",
        };
        let message = format!(
            "data race on `{name}`: invocation {} {} it{}, invocation {} {} it{}, and {why}{same}{private}",
            earlier.1,
            verb_of(earlier.0),
            self.describe_calls(earlier.0.site.calls),
            later.1,
            verb_of(later.0),
            self.describe_calls(later.0.site.calls)
        );
        self.report_finding(SiteFinding { cause, element: name, message, at, inputs: 0 });
    }

    /// Describes the calls that led to an access, innermost first.
    fn describe_calls(&self, mut calls: u32) -> String {
        let mut lines = Vec::new();
        // Call stacks are numbered from 1; 0 is that of the entry point.
        while let Some((before, site)) = calls.checked_sub(1).and_then(|at| self.calls.get(at as usize)) {
            if let SourcePosition::Line(line) = self.source_position(*site) {
                lines.push(line.to_string());
            }
            calls = *before;
        }
        match &lines[..] {
            [] => String::new(),
            [line] => format!(" in the call of line {line}"),
            lines => format!(" in the calls of lines {}", lines.join(", ")),
        }
    }

    pub fn set_result(
        &self,
        ctx: &mut InvocationCtx<'_>,
        inst: &DecodedInstruction<'_>,
        value: ConcreteValue,
    ) -> Step<()> {
        let frame = ctx.frame_mut()?;
        scatter_value(&mut frame.values, inst.result, value)?;
        frame.at += 1;
        Ok(())
    }

    /// Returns a frame for a function, reusing an old one.
    pub fn new_frame(&mut self, function: usize, result: Slots, locals: usize) -> Option<CallFrame> {
        let decoded = self.program.functions.get(function)?;
        // Stale values are harmless: every result is written before it is read.
        let left = self.spare_frames.get_mut(function).and_then(Vec::pop);
        let (values, loops) = left.map_or_else(
            || (vec![ConcreteValue::Bits(0, UNDEFINED); decoded.slots as usize], Vec::new()),
            |left| (left.values, left.loops),
        );
        Some(CallFrame { function, at: 0, block: 0, values, loops, result, locals, calls: 0 })
    }

    /// Stores a frame for reuse.
    fn recycle_frame(&mut self, mut frame: CallFrame) {
        if frame.function >= self.spare_frames.len() {
            self.spare_frames.resize_with(frame.function + 1, Vec::new);
        }
        frame.loops.clear();
        self.spare_frames[frame.function].push(frame);
    }

    /// Ends an invocation at its current instruction.
    pub fn end_invocation(&mut self, ctx: &mut InvocationCtx<'_>) {
        let site = self.current_site(&ctx.workgroup.invocations[ctx.index]);
        let invocation = ctx.invocation_mut();
        invocation.last_site = site;
        invocation.state = InvocationState::Ended;
        let mut frames = std::mem::take(&mut invocation.frames);
        frames.drain(..).for_each(|frame| self.recycle_frame(frame));
        let invocation = ctx.invocation_mut();
        invocation.frames = frames;
        invocation.locals.truncate_to(0);
    }

    /// Enters a called function.
    fn call_function(
        &mut self,
        ctx: &mut InvocationCtx<'_>,
        inst: &DecodedInstruction<'_>,
        callee: u32,
        arguments: &[u32],
        site: u32,
    ) -> Step<()> {
        let program = self.program;
        let Some(function) = program.by_id.get(&callee) else {
            return Err(malformed("a call of an id that is not a function").into());
        };
        if ctx.invocation_mut().frames.len() >= MAX_CALLS {
            return Err(Problem::Budget { what: "nested calls", bound: MAX_CALLS }.into());
        }
        let locals = ctx.invocation_mut().locals.len();
        let calls = (ctx.frame_mut()?.calls, site);
        let next = self.calls.len() as u32 + 1;
        let number = *self.calls_by_site.entry(calls).or_insert(next);
        // The pair of caller and site was new.
        if number == next {
            self.calls.push(calls);
        }
        let frame = self.new_frame(*function, inst.result, locals);
        let mut frame = frame.ok_or_else(|| malformed("no such function"))?;
        frame.calls = number;
        let caller = ctx.frame_mut()?;
        for (to, id) in program.functions[*function].parameters.iter().zip(arguments) {
            copy_slots(&self.globals, &caller.values, program.slots_of(*id), &mut frame.values, *to)
                .ok_or_else(|| self.missing_value(*id))?;
        }
        ctx.invocation_mut().frames.push(frame);
        Ok(())
    }

    /// Returns the dynamic instance of the current instruction.
    ///
    /// It consists of the calls and loop iterations around it, in an order that puts earlier positions first.
    pub fn dynamic_instance(&mut self, invocation: &Invocation) -> Rc<Vec<u32>> {
        let mut all = std::mem::take(&mut self.instance_buffer);
        all.clear();
        // Lexicographic order: outer calls and loops first, so that a smaller list is an earlier
        // position in structured control flow.
        for frame in &invocation.frames {
            let function = &self.program.functions[frame.function];
            for (header, bodies) in &frame.loops {
                all.push(function.labels.get(header).copied().unwrap_or(0) as u32);
                all.push(*bodies);
            }
            all.push(frame.at as u32);
        }
        // Most lanes wait at one instance.
        if *self.last_instance != all {
            self.last_instance = Rc::new(all.clone());
        }
        self.instance_buffer = all;
        self.last_instance.clone()
    }

    /// Executes one instruction.
    pub fn step_once(&mut self, ctx: &mut InvocationCtx<'_>) -> Step<()> {
        self.run_steps(ctx, 1)
    }

    /// Executes at most `most` instructions.
    pub fn run_steps(&mut self, ctx: &mut InvocationCtx<'_>, most: u64) -> Step<()> {
        // The fast path stops at the first instruction that it does not handle, which is executed
        // below.
        if self.run_fast_path(ctx, most)? {
            return Ok(());
        }
        let program = self.program;
        let frame = ctx.workgroup.invocations[ctx.index].frames.last().ok_or(StepInterrupt::Ended)?;
        let function = &program.functions[frame.function];
        let Some(inst) = function.code.get(frame.at) else {
            return Err(malformed("control flow leaves a function without a return").into());
        };
        let site = function.first_site as usize + frame.at;
        self.steps += 1;
        match inst.operation {
            SpirvOperation::Label => {
                let frame = ctx.frame_mut()?;
                if frame.block == 0 {
                    frame.block = inst.raw.result;
                }
                frame.at += 1;
                self.block_entries.count_entry(site);
                Ok(())
            }
            SpirvOperation::Branch { target } => self.jump_to(ctx, target),
            SpirvOperation::BranchConditional { condition, yes, no } => {
                // The condition does not matter if both targets are the same.
                if yes == no {
                    return self.jump_to(ctx, yes);
                }
                if self.value_of_id(ctx, condition)?.combined_taint() & OPAQUE != 0 {
                    return self.execute_both_branches(ctx, [yes, no]);
                }
                let holds = self.control_number(ctx, condition, "a condition")?;
                self.note_branch(ctx, condition, &[])?;
                self.jump_to(ctx, if holds != 0 { yes } else { no })
            }
            SpirvOperation::Switch { selector, default, cases } => {
                let selected = self.control_number(ctx, selector, "a selector")?;
                self.note_branch(ctx, selector, cases)?;
                let mut cases = switch_cases(cases, program.number_bits(selector));
                let case = cases.find(|case| case.literal == selected);
                self.jump_to(ctx, case.map_or(default, |case| case.target))
            }
            SpirvOperation::Return { value } => self.return_from_function(ctx, value),
            SpirvOperation::Call { function, arguments } => {
                self.call_function(ctx, inst, function, arguments, site as u32)
            }
            SpirvOperation::Unreachable => {
                self.report_here(ctx, FindingCause::Unreachable, "OpUnreachable is reached".to_owned());
                Err(StepInterrupt::Ended)
            }
            // A helper invocation has no effects.
            SpirvOperation::Kill { .. } => Err(StepInterrupt::Ended),
            SpirvOperation::EmitMeshTasks { .. } if self.setup.stage == Stage::Task => {
                Err(StepInterrupt::Ended)
            }
            // The declared vertex and primitive counts do not affect memory.
            SpirvOperation::SetMeshOutputs { .. } if self.setup.stage == Stage::Mesh => {
                ctx.frame_mut()?.at += 1;
                Ok(())
            }
            _ => self.execute_instruction(ctx, inst),
        }
    }

    fn return_from_function(&mut self, ctx: &mut InvocationCtx<'_>, value: Option<u32>) -> Step<()> {
        let invocation = ctx.invocation_mut();
        if invocation.frames.len() < 2 {
            return Err(StepInterrupt::Ended);
        }
        let (Some(left), Some(frame)) = (invocation.frames.pop(), invocation.frames.last_mut()) else {
            return Err(StepInterrupt::Ended);
        };
        if let Some(id) = value {
            let slots = self.program.slots_of(id);
            copy_slots(&self.globals, &left.values, slots, &mut frame.values, left.result)
                .ok_or_else(|| self.missing_value(id))?;
        }
        frame.at += 1;
        invocation.locals.truncate_to(left.locals);
        self.recycle_frame(left);
        Ok(())
    }

    /// Returns the source position of an instruction.
    pub fn source_position(&self, site: u32) -> SourcePosition {
        let (line, place) = self.program.source_place(site);
        match self.program.module.lines.get(line as usize) {
            Some(source) if line > 0 => SourcePosition::Line(source.line),
            _ => place,
        }
    }

    /// Returns the blocks that were entered at least `count` times.
    pub fn blocks_entered(&self, count: u8) -> Vec<bool> {
        self.block_entries.counts.iter().map(|entries| *entries >= count).collect()
    }

    /// Returns the accessed bytes and the size of their shadow memory.
    pub fn shadow_bytes(&self) -> (u64, u64) {
        let objects = self.objects.iter().chain(self.workgroups.values().flat_map(|one| &one.objects));
        objects
            .map(|object| object.shadow.byte_counts())
            .fold(self.largest_shadow, |all, one| (all.0 + one.0, all.1 + one.1))
    }

    /// Returns the object that a pointer refers to.
    pub fn object_mut<'m>(
        &'m mut self,
        ctx: &'m mut InvocationCtx<'_>,
        number: u32,
    ) -> Option<&'m mut MemoryObject> {
        if number & PRIVATE_TAG != 0 {
            ctx.invocation_mut().locals.as_mut_slice().get_mut((number & !PRIVATE_TAG) as usize)
        } else if number & WORKGROUP_TAG != 0 {
            ctx.workgroup.objects.get_mut((number & !WORKGROUP_TAG) as usize)
        } else {
            self.objects.get_mut(number as usize)
        }
    }
}
