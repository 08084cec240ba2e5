//! The steps of one or two invocations in the schedule that shows a finding.
//!
//! The schedules of a walk are repeated in their order until one shows the finding. The followed invocations then execute
//! one instruction at a time; consecutive instructions of a line are one step. What an invocation has seen of the other
//! is the last access of the other whose epoch its clock includes: all earlier ones happen before too.

use litmus::StorageClass;
use results::wire::{TraceEffectRecord, TraceRecord, TraceStepRecord};
use spirv_reader::{SourcePosition, SpirvModule, SpirvOperation, SpirvType, is_synthetic_name};

use entry_point::{AnalysisOptions, InvocationId, Refusal, source_location};

use super::explore::DEFAULT_SCHEDULES;
use super::happens_before::Epoch;
use super::report::GridFinding;
use super::scalar_kind::ScalarKind;
use super::schedule::SchedulePolicy;
use super::setup::with_interpreter;
use super::slots::gather_slots;
use super::state::{Interpreter, InvocationCtx, InvocationState};
use super::step::{Step, StepInterrupt};
use super::trace_recorder::{MAX_STEPS, TraceRecorder};
use super::value::{ConcretePointer, ConcreteValue, NULL_OBJECT, PRIVATE_TAG};

/// Upper bound on the numbers of a value that is shown.
const MAX_NUMBERS: u64 = 16;
/// Upper bound on the steps of one schedule.
const MAX_WALK: u64 = 50_000_000;

/// Returns the steps of the invocations of a finding, with its inputs; `None` if no schedule of the walk shows it. `file` is
/// the name of the module's file.
///
/// # Errors
/// See [`super::analyze_grid`].
pub fn trace_finding(
    file: &str,
    module: &SpirvModule,
    options: &AnalysisOptions,
    finding: &GridFinding,
) -> Result<Option<TraceRecord>, Refusal> {
    let entry = module.find_entry(options.entry.as_deref())?;
    let mut invocations: Vec<InvocationId> = finding.at.iter().map(|spot| spot.invocation).collect();
    invocations.dedup();
    invocations.truncate(2);
    with_interpreter(module, options, entry, |first| {
        let size = first.setup.numbering().workgroup_size;
        let number = |id: &InvocationId| id.workgroup_index * size + id.local_index;
        let names = invocations.iter().map(ToString::to_string).collect();
        let recorder = TraceRecorder {
            file: file.to_owned(),
            numbers: invocations.iter().map(number).collect(),
            sites: finding.sites.clone(),
            trace: TraceRecord { invocations: names, steps: Vec::new(), is_cut_off: false },
            last_place: (0, SourcePosition::Module),
            accesses: [Vec::new(), Vec::new()],
            is_done: false,
        };
        for order in 0..options.schedules.unwrap_or(DEFAULT_SCHEDULES).max(DEFAULT_SCHEDULES) {
            let mut machine = first.clone();
            machine.rotation = order as u32 + 1;
            machine.trace = Some(Box::new(recorder.clone()));
            // A limit or a refusal may come after the finding.
            let walked = machine.run_schedule(SchedulePolicy::for_schedule(order, options.seed), MAX_WALK);
            if let Some(found) = machine.trace.filter(|recorder| recorder.is_done) {
                return Ok(Some(found.trace));
            }
            if let Err(refusal) = walked.map_err(|refusal| (!refusal.what.is_limit()).then_some(refusal)) {
                return refusal.map_or(Ok(None), Err);
            }
        }
        Ok(None)
    })
}

/// The memory or the variable that an instruction accesses.
enum Accessed {
    Shared { pointer: ConcretePointer, class: StorageClass, element: String, writes: bool },
    Private { name: String, pointer: ConcretePointer },
    Register { name: String, variable: u32 },
}

impl Interpreter<'_> {
    /// Returns true if the steps of an invocation are recorded.
    pub(super) fn is_traced(&self, number: u32) -> bool {
        let is_followed = |trace: &TraceRecorder| !trace.is_done && trace.numbers.contains(&number);
        !self.is_probing() && self.trace.as_ref().is_some_and(|trace| is_followed(trace))
    }

    /// Executes one instruction and records what it does.
    pub(super) fn run_traced_step(&mut self, ctx: &mut InvocationCtx<'_>) -> Step<()> {
        let invocation = &ctx.workgroup.invocations[ctx.index];
        let (number, site) = (invocation.number, self.current_site(invocation));
        let (workgroup, time) = (invocation.identity.workgroup_index, invocation.current_time());
        let subgroup_start = number - invocation.lane;
        let accessed = self.accessed_by_next(ctx);
        let before = accessed.as_ref().map(|one| self.accessed_text(ctx, one)).unwrap_or_default();
        let result = self.run_steps(ctx, 1);
        let is_waiting = matches!(result, Err(StepInterrupt::Waits))
            && matches!(ctx.workgroup.invocations[ctx.index].state, InvocationState::Waiting(_));
        let mut effects = Vec::new();
        let mut access = None;
        if let Some(one) = accessed.filter(|_| result.is_ok()) {
            let after = self.accessed_text(ctx, &one);
            effects.extend(match one {
                Accessed::Shared { element, class, writes, .. } => {
                    let barrier_epoch = ctx.workgroup.barrier_epochs[class];
                    access = Some((
                        class,
                        Epoch { invocation: number, workgroup, time, barrier_epoch, subgroup_start },
                    ));
                    Some(match writes {
                        true => TraceEffectRecord::Write { element, before, after },
                        false => TraceEffectRecord::Read { element, value: after },
                    })
                }
                Accessed::Private { name, .. } | Accessed::Register { name, .. } => {
                    Some(TraceEffectRecord::Variable { name, value: after })
                }
            });
        } else if let Some(named) = self.named_result(ctx, site).filter(|_| result.is_ok()) {
            effects.push(named);
        }
        effects.extend(is_waiting.then_some(TraceEffectRecord::Wait));
        effects.extend(matches!(result, Err(StepInterrupt::Ended)).then_some(TraceEffectRecord::End));
        self.add_trace_step(ctx, site, effects, access);
        result
    }

    fn add_trace_step(
        &mut self,
        ctx: &InvocationCtx<'_>,
        site: u32,
        effects: Vec<TraceEffectRecord>,
        access: Option<(StorageClass, Epoch)>,
    ) {
        let invocation = &ctx.workgroup.invocations[ctx.index];
        let (line, place) = self.program.source_place(site);
        // Code of the compiler.
        if line == 0 && effects.is_empty() {
            return;
        }
        let Some(recorder) = self.trace.as_mut() else { return };
        let Some(own) = recorder.numbers.iter().position(|number| *number == invocation.number) else {
            return;
        };
        let own_workgroup = invocation.identity.workgroup_index;
        let is_seen = |(_, class, epoch): &&(usize, StorageClass, Epoch)| {
            invocation.views[*class].ordering.before.includes_epoch(own_workgroup, epoch)
        };
        let seen = recorder.accesses[1 - own].iter().rev().find(is_seen).map(|(step, ..)| *step);
        let (last_line, last_place) = std::mem::replace(&mut recorder.last_place, (line, place));
        let is_same_place = if line > 0 { last_line == line } else { last_place == place };
        let steps = &mut recorder.trace.steps;
        let has_room = steps.len() < MAX_STEPS;
        match steps.last_mut().filter(|last| last.invocation == own && last.seen == seen && is_same_place) {
            Some(last) => last.effects.extend(effects),
            None if has_room => {
                let (file, line) = source_location(&recorder.file, self.program.module, line, place);
                steps.push(TraceStepRecord { invocation: own, file, line, effects, seen });
            }
            None => recorder.trace.is_cut_off = true,
        }
        if let Some((class, epoch)) = access {
            recorder.accesses[own].push((recorder.trace.steps.len() - 1, class, epoch));
        }
        let is_target = |sites: &mut Vec<u32>| {
            sites.sort_unstable();
            *sites == recorder.sites
        };
        let mut found = self.findings.iter().map(|found| found.at.iter().map(|at| at.0).collect());
        recorder.is_done = found.any(|mut sites: Vec<u32>| is_target(&mut sites));
    }

    /// Returns what the next instruction of an invocation accesses, if it is a load, a store or an atomic.
    fn accessed_by_next(&mut self, ctx: &mut InvocationCtx<'_>) -> Option<Accessed> {
        let program = self.program;
        let frame = ctx.workgroup.invocations[ctx.index].frames.last()?;
        let operation = program.functions.get(frame.function)?.code.get(frame.at)?.operation;
        let id = operation.accessed_pointer()?;
        let writes = match operation {
            SpirvOperation::Store { .. } => true,
            SpirvOperation::Atomic(access) => access.kind.writes(),
            _ => false,
        };
        if program.register_variables.contains_key(&id) {
            let name = program.module.source_name(id).filter(|name| writes && !is_synthetic_name(name))?;
            return Some(Accessed::Register { name: name.to_owned(), variable: id });
        }
        let pointer = self.pointer_of_id(ctx, id).ok().filter(|pointer| pointer.object != NULL_OBJECT)?;
        let object = self.object_mut(ctx, pointer.object)?;
        let (class, variable) = (object.class, object.variable);
        if pointer.object & PRIVATE_TAG != 0 {
            let name = program.module.source_name(variable).filter(|_| writes)?;
            return Some(Accessed::Private { name: name.to_owned(), pointer });
        }
        let element = self.element_name(ctx, &pointer, pointer.offset);
        // Memory that nothing writes has no class.
        Some(Accessed::Shared { pointer, class: class.unwrap_or(StorageClass::Buffer), element, writes })
    }

    fn accessed_text(&mut self, ctx: &mut InvocationCtx<'_>, accessed: &Accessed) -> String {
        match accessed {
            Accessed::Shared { pointer, .. } | Accessed::Private { pointer, .. } => {
                self.memory_text(ctx, pointer).unwrap_or_else(|| "?".to_owned())
            }
            Accessed::Register { variable, .. } => {
                let slots = self.program.register_variables.get(variable).copied();
                let frame = ctx.workgroup.invocations[ctx.index].frames.last();
                let value = slots
                    .zip(frame)
                    .and_then(|(slots, frame)| gather_slots(&frame.values, &self.globals, slots));
                let ty =
                    self.program.pointee_of(self.program.type_of(*variable)).map_or(0, |pointee| pointee.1);
                value.map_or_else(|| "?".to_owned(), |value| self.value_text(&value, ty))
            }
        }
    }

    /// Returns the numbers in memory, as the source would write them.
    fn memory_text(&mut self, ctx: &mut InvocationCtx<'_>, pointer: &ConcretePointer) -> Option<String> {
        if let Some((_, bytes)) = self.scalar_layout(pointer.ty) {
            let object = self.object_mut(ctx, pointer.object)?;
            let (number, _) = object
                .contains_range(pointer.offset, bytes)
                .then(|| object.read_scalar(pointer.offset, bytes))?;
            return Some(number_text(self.program.module, pointer.ty, number));
        }
        let count = self.program.specialized.part_count(pointer.ty).ok().map(|count| count as u64);
        let count = count.filter(|count| (1..=MAX_NUMBERS).contains(count))?;
        let mut parts = Vec::new();
        for index in 0..count {
            let part = super::access::part_pointer(self.program, pointer, index).ok()?;
            parts.push(self.memory_text(ctx, &part)?);
        }
        Some(format!("({})", parts.join(", ")))
    }

    fn value_text(&self, value: &ConcreteValue, ty: u32) -> String {
        match value {
            ConcreteValue::Bits(bits, _) => number_text(self.program.module, ty, *bits),
            ConcreteValue::Composite(parts) => {
                let text = |(index, part): (usize, &ConcreteValue)| {
                    let ty = self.program.specialized.part_of(ty, index as u64).map_or(0, |part| part.ty);
                    self.value_text(part, ty)
                };
                let parts: Vec<String> =
                    parts.iter().enumerate().take(MAX_NUMBERS as usize).map(text).collect();
                format!("({})", parts.join(", "))
            }
            _ => "?".to_owned(),
        }
    }

    /// Returns the value of a result that has a name in the source.
    fn named_result(&self, ctx: &InvocationCtx<'_>, site: u32) -> Option<TraceEffectRecord> {
        let program = self.program;
        let frame = ctx.workgroup.invocations[ctx.index].frames.last()?;
        let function = program.functions.get(frame.function)?;
        let inst = function.code.get(site.checked_sub(function.first_site)? as usize)?;
        let name = program.module.source_name(inst.raw.result).filter(|name| !is_synthetic_name(name))?;
        let is_number =
            program.number_layout(inst.raw.ty).is_some_and(|(kind, ..)| kind != ScalarKind::Address);
        if !is_number {
            return None;
        }
        let value = self.value_of_id(ctx, inst.raw.result).ok()?;
        Some(TraceEffectRecord::Variable {
            name: name.to_owned(),
            value: self.value_text(&value, inst.raw.ty),
        })
    }
}

/// Formats a number of a scalar type.
fn number_text(module: &SpirvModule, ty: u32, bits: u64) -> String {
    match module.types.get(&ty) {
        Some(SpirvType::Float { bits: width }) => arithmetic::float_from_bits(bits, *width).to_string(),
        Some(SpirvType::Integer { bits: width, signed: true }) => {
            arithmetic::sign_extend(bits, *width).to_string()
        }
        Some(SpirvType::Bool) => (bits != 0).to_string(),
        _ => bits.to_string(),
    }
}
