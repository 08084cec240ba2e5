//! Instructions other than control flow: dispatch to loads, stores, atomics, barriers and arithmetic.

use std::rc::Rc;

use arithmetic::mask;
use litmus::InterlockEnd;
use rspirv::spirv::{Op, StorageClass};

use crate::error::{malformed, unsupported};
use crate::order::{MemoryOperands, scope_from_number, semantics_from_number};
use crate::stage;

use super::machine::{Interpreter, InvocationCtx, InvocationState, Step, StepInterrupt, WorkgroupState};
use super::program::{Inst, OpFamily, TypeLayout};
use super::value::{ConcretePointer, ConcreteValue, LOCAL, OPAQUE, SCHEDULE_DEPENDENT, UNDEFINED};

/// Clock ticks per executed step.
const TICKS: u64 = 16;
/// Upper bound on the size of a function variable.
pub(super) const MAX_OWN: usize = 1 << 18;

impl Interpreter<'_> {
    /// Executes an instruction and advances to the next.
    pub(super) fn execute_instruction(&mut self, here: &mut InvocationCtx<'_>, inst: &Inst) -> Step<()> {
        let program = self.program;
        let operands = program.module.operands_of(&inst.raw);
        let value = match inst.raw.op {
            Op::Variable => self.execute_variable(here, inst)?,
            Op::Load => {
                let pointer = self.operand_pointer(here, inst, 0)?;
                let memory = MemoryOperands::parse(operands.get(1..).unwrap_or_default());
                if inst.result.count > 0 {
                    return self.load_vector(here, inst, &pointer, memory);
                }
                self.load_value(here, &pointer, memory)?
            }
            Op::Store => {
                let pointer = self.operand_pointer(here, inst, 0)?;
                let id = program.module.operand_at(&inst.raw, 1)?;
                let memory = MemoryOperands::parse(operands.get(2..).unwrap_or_default());
                if program.slots_of(id).count > 0 {
                    self.store_vector(here, id, &pointer, memory)?;
                } else {
                    let value = self.value_of_id(here, id)?;
                    self.store_value(here, &pointer, &value, memory)?;
                }
                ConcreteValue::NoBits(0)
            }
            Op::CopyMemory | Op::CopyMemorySized => return self.copy_memory(here, inst),
            Op::AccessChain | Op::InBoundsAccessChain => self.access_chain(here, inst, 1)?,
            Op::PtrAccessChain | Op::InBoundsPtrAccessChain => self.access_chain(here, inst, 2)?,
            Op::ArrayLength => self.array_length(here, inst)?,
            Op::Undef => program.filled_value(inst.raw.ty, UNDEFINED)?,
            Op::CompositeConstruct => self.construct_composite(here, inst)?,
            Op::CompositeExtract => {
                let mut value = self.operand_value(here, inst, 0)?;
                for index in operands.get(1..).unwrap_or_default() {
                    value = self.extract_component(&value, *index as usize)?;
                }
                value
            }
            Op::CompositeInsert => {
                let (value, into) = (self.operand_value(here, inst, 0)?, self.operand_value(here, inst, 1)?);
                self.insert_component(&into, operands.get(2..).unwrap_or_default(), value)?
            }
            Op::VectorExtractDynamic => {
                let (value, index) = (self.operand_value(here, inst, 0)?, self.operand_bits(here, inst, 1)?);
                match self.extract_component(&value, index.0 as usize) {
                    Ok(element) => element.with_taint(index.1),
                    Err(_) => ConcreteValue::Bits(
                        0,
                        index.1 | self.undefined_instruction_result(here, inst.raw.op, index.1)?,
                    ),
                }
            }
            Op::VectorInsertDynamic => {
                let (into, value) = (self.operand_value(here, inst, 0)?, self.operand_value(here, inst, 1)?);
                let index = self.operand_bits(here, inst, 2)?;
                match self.insert_component(&into, &[index.0 as u32], value) {
                    Ok(all) => all.with_taint(index.1),
                    Err(_) => {
                        let lacks = self.undefined_instruction_result(here, inst.raw.op, index.1)?;
                        into.with_taint(index.1 | lacks)
                    }
                }
            }
            Op::VectorShuffle => {
                let (left, right) = (self.operand_value(here, inst, 0)?, self.operand_value(here, inst, 1)?);
                let (ConcreteValue::Composite(left), ConcreteValue::Composite(right)) = (&left, &right)
                else {
                    return Err(malformed("a shuffle of values that are not vectors").into());
                };
                let pick = |index: &u32| {
                    let index = *index as usize;
                    let found = left.get(index).or_else(|| right.get(index.checked_sub(left.len())?));
                    found.cloned().unwrap_or(ConcreteValue::Bits(0, UNDEFINED))
                };
                ConcreteValue::from_components(operands[2..].iter().map(pick))
            }
            Op::CopyObject | Op::CopyLogical => self.operand_value(here, inst, 0)?,
            Op::Select => self.select_value(here, inst)?,
            Op::Bitcast | Op::ConvertUToPtr | Op::ConvertPtrToU => self.compute_bitcast(here, inst)?,
            Op::PtrEqual | Op::PtrNotEqual | Op::PtrDiff => self.compare_pointers(here, inst)?,
            Op::ExtInst => self.execute_extended(here, inst)?,
            Op::ControlBarrier | Op::MemoryBarrier => return self.execute_barrier(here, inst),
            Op::ControlBarrierArriveINTEL => return self.arrive_at_split(here),
            Op::ControlBarrierWaitINTEL => {
                self.events += 1;
                return Err(self.wait_for_others(here));
            }
            Op::BeginInvocationInterlockEXT => return self.execute_interlock(here, InterlockEnd::Begin),
            Op::EndInvocationInterlockEXT => return self.execute_interlock(here, InterlockEnd::End),
            Op::CooperativeMatrixLoadKHR | Op::CooperativeMatrixStoreKHR => self.access_matrix(here, inst)?,
            Op::IsHelperInvocationEXT => ConcreteValue::from_bool(false, 0),
            op if stage::is_derivative(op) => program.filled_value(inst.raw.ty, OPAQUE)?,
            // A clock value depends on the schedule.
            Op::ReadClockKHR => {
                let now = self.steps.wrapping_mul(TICKS);
                match program.type_layout(inst.raw.ty)? {
                    TypeLayout::Vector { .. } => ConcreteValue::from_components(
                        [now & mask(32), now >> 32].map(|part| ConcreteValue::Bits(part, SCHEDULE_DEPENDENT)),
                    ),
                    _ => ConcreteValue::Bits(now, SCHEDULE_DEPENDENT),
                }
            }
            Op::CooperativeMatrixMulAddKHR => ConcreteValue::NoBits(OPAQUE),
            _ => match inst.family {
                OpFamily::Atomic => return self.execute_atomic(here, inst),
                OpFamily::Image => return self.execute_image(here, inst),
                OpFamily::Collective => return Err(self.wait_for_others(here)),
                OpFamily::Ballot => return self.execute_ballot_query(here, inst),
                OpFamily::Other => self.compute_elementwise(here, inst)?,
            },
        };
        self.set_result(here, inst, value)
    }

    /// Compares two pointers, or returns the number of elements between them.
    fn compare_pointers(&mut self, here: &mut InvocationCtx<'_>, inst: &Inst) -> Step<ConcreteValue> {
        let (left, right) = (self.operand_pointer(here, inst, 0)?, self.operand_pointer(here, inst, 1)?);
        let taint = left.taint | right.taint;
        let op = inst.raw.op;
        if op != Op::PtrDiff {
            let same = (left.object, left.offset) == (right.object, right.offset);
            return Ok(ConcreteValue::from_bool(same == (op == Op::PtrEqual), taint));
        }
        let stride = self.stride_of(inst, &left);
        let apart = left.offset.wrapping_sub(right.offset) as i64;
        let bits = self.program.number_layout(inst.raw.ty).map_or(32, |of| of.1);
        match apart.checked_rem(stride) {
            Some(0) if left.object == right.object => {
                Ok(ConcreteValue::Bits((apart / stride) as u64 & mask(bits), taint))
            }
            _ => Ok(ConcreteValue::Bits(0, taint | self.undefined_instruction_result(here, op, taint)?)),
        }
    }

    /// Blocks the invocation until others arrive.
    pub(super) fn wait_for_others(&mut self, here: &mut InvocationCtx<'_>) -> StepInterrupt {
        let instance = self.dynamic_instance(&here.workgroup.invocations[here.index]);
        here.invocation_mut().state = InvocationState::Waiting(instance);
        StepInterrupt::Waits
    }

    fn execute_barrier(&mut self, here: &mut InvocationCtx<'_>, inst: &Inst) -> Step<()> {
        self.events += 1;
        if inst.raw.op == Op::ControlBarrier {
            return Err(self.wait_for_others(here));
        }
        let vulkan = self.program.module.vulkan;
        let at = scope_from_number(self.control_number(here, inst, 0, "a scope")?, vulkan)?;
        let order = super::sync::restrict_to_tracked_classes(semantics_from_number(self.control_number(
            here,
            inst,
            1,
            "semantics",
        )?)?);
        if !self.setup.skip_race_checks {
            here.invocation_mut().execute_fence(at, order);
        }
        here.frame_mut()?.at += 1;
        Ok(())
    }

    fn execute_variable(&mut self, here: &mut InvocationCtx<'_>, inst: &Inst) -> Step<ConcreteValue> {
        let program = self.program;
        let Some((class, to)) = program.pointee_of(inst.raw.ty) else {
            return Err(malformed("a variable whose type is not a pointer").into());
        };
        if class != StorageClass::Function {
            return Err(malformed("a function-scope variable of another storage class").into());
        }
        let size = usize::try_from(program.type_size(to)).ok().filter(|size| *size <= MAX_OWN);
        let size = size.ok_or_else(|| unsupported(format!("a variable of more than {MAX_OWN} bytes")))?;
        let initializer = program.module.operands_of(&inst.raw).get(1);
        let value = initializer.map(|id| self.value_of_id(here, *id)).transpose()?;
        let WorkgroupState { invocations, .. } = &mut *here.workgroup;
        let locals = &mut invocations[here.index].locals;
        let at = locals.push_variable(inst.raw.result, size, &mut self.spare_objects);
        if let (Some(value), Some(object)) = (value, locals.as_mut_slice().get_mut(at)) {
            self.fill_object(object, &ConcretePointer::to_object(0, to), to, &value)?;
        }
        Ok(ConcreteValue::Pointer(ConcretePointer::to_object(LOCAL | at as u32, to)))
    }

    fn array_length(&mut self, here: &mut InvocationCtx<'_>, inst: &Inst) -> Step<ConcreteValue> {
        let program = self.program;
        let pointer = self.operand_pointer(here, inst, 0)?;
        let member = u64::from(program.module.operand_at(&inst.raw, 1)?);
        let array = super::access::part_pointer(program, &pointer, member)?;
        let TypeLayout::Array { stride, .. } = program.type_layout(array.ty)? else {
            return Err(malformed("OpArrayLength of a member that is not an array").into());
        };
        let of = self.object_mut(here, array.object);
        let (bytes, taint) = of.map_or((0, 0), |object| (object.bytes.len() as u64, object.length_taint));
        Ok(ConcreteValue::Bits(bytes.saturating_sub(array.offset) / (*stride).max(1), taint))
    }

    fn construct_composite(&mut self, here: &mut InvocationCtx<'_>, inst: &Inst) -> Step<ConcreteValue> {
        let program = self.program;
        let operands = program.module.operands_of(&inst.raw);
        let mut parts = Vec::with_capacity(operands.len());
        let vector = matches!(program.type_layout(inst.raw.ty)?, TypeLayout::Vector { .. });
        for id in operands {
            match self.value_of_id(here, *id)? {
                // A vector may be constructed from scalars and vectors.
                ConcreteValue::Composite(inner) if vector => parts.extend(inner.iter().cloned()),
                other => parts.push(other),
            }
        }
        if matches!(program.type_layout(inst.raw.ty)?, TypeLayout::Handle) {
            return Ok(ConcreteValue::NoBits(OPAQUE));
        }
        Ok(ConcreteValue::from_components(parts))
    }

    fn insert_component(
        &self,
        into: &ConcreteValue,
        path: &[u32],
        value: ConcreteValue,
    ) -> Step<ConcreteValue> {
        let Some((first, rest)) = path.split_first() else { return Ok(value) };
        match into {
            ConcreteValue::Composite(parts) => {
                let inner = parts.get(*first as usize);
                let inner = inner.ok_or_else(|| malformed("an index beyond its composite"))?;
                let changed = self.insert_component(inner, rest, value)?;
                let mut parts = Rc::clone(parts);
                Rc::make_mut(&mut parts)[*first as usize] = changed;
                Ok(ConcreteValue::Composite(parts))
            }
            ConcreteValue::NoBits(taint) => Ok(ConcreteValue::NoBits(*taint | OPAQUE)),
            _ => Err(malformed("a member of a type without members").into()),
        }
    }

    fn select_value(&mut self, here: &mut InvocationCtx<'_>, inst: &Inst) -> Step<ConcreteValue> {
        let (yes, no) = (self.operand_value(here, inst, 1)?, self.operand_value(here, inst, 2)?);
        match self.operand_value(here, inst, 0)? {
            ConcreteValue::Bits(condition, taint) => {
                let chosen = if condition != 0 { yes } else { no };
                Ok(chosen.with_taint(taint))
            }
            ConcreteValue::Composite(conditions) => {
                let mut parts = Vec::with_capacity(conditions.len());
                for (index, condition) in conditions.iter().enumerate() {
                    let ConcreteValue::Bits(holds, taint) = condition else {
                        return Err(malformed("a condition that is not a boolean").into());
                    };
                    let from = if *holds != 0 { &yes } else { &no };
                    parts.push(self.extract_component(from, index)?.with_taint(*taint));
                }
                Ok(ConcreteValue::from_components(parts))
            }
            other => Ok(yes.with_taint(other.combined_taint() | OPAQUE)),
        }
    }

    /// Executes a load or store of a cooperative matrix; each element is accessed by one lane.
    fn access_matrix(&mut self, here: &mut InvocationCtx<'_>, inst: &Inst) -> Step<ConcreteValue> {
        let program = self.program;
        let loads = inst.raw.op == Op::CooperativeMatrixLoadKHR;
        let operands = program.module.operands_of(&inst.raw);
        let pointer = self.operand_pointer(here, inst, 0)?;
        let ty = if loads { inst.raw.ty } else { program.type_of(program.module.operand_at(&inst.raw, 1)?) };
        let shape = program.module.handles.get(&ty).map_or(&[][..], Vec::as_slice);
        let [component, matrix_scope, rows, columns, ..] = *shape else {
            return Err(malformed("a matrix whose type is not a matrix type").into());
        };
        let number = |id: u32| {
            program
                .specialized
                .constant_number(id)
                .ok_or_else(|| unsupported("a matrix without a constant size"))
        };
        let (rows, columns) = (number(rows)?, number(columns)?);
        if number(matrix_scope)? != 3 {
            return Err(unsupported("cooperative matrices with a scope other than Subgroup").into());
        }
        let first = if loads { 1 } else { 2 };
        let by_columns = self.control_number(here, inst, first, "this matrix layout")? == 1;
        let stride = match operands.get(first + 1) {
            Some(_) => self.control_number(here, inst, first + 1, "this matrix stride")?,
            None => return Err(unsupported("a matrix without a stride").into()),
        };
        let memory = MemoryOperands::parse(operands.get(first + 2..).unwrap_or_default());
        // The stride counts elements of the pointee type.
        let unit = program.type_size(pointer.ty);
        let bytes = program.type_size(component);
        let lanes = u64::from(self.setup.subgroup_size);
        let lane = u64::from(here.invocation_mut().lane);
        let (outer, inner) = if by_columns { (columns, rows) } else { (rows, columns) };
        if outer.saturating_mul(inner) > 1 << 16 {
            return Err(unsupported("a matrix with this number of elements").into());
        }
        self.notes.insert("one distribution of matrix elements over lanes is assumed".to_owned());
        for element in 0..outer * inner {
            if (element + u64::from(self.rotation)) % lanes != lane {
                continue;
            }
            let (line, at) = (element / inner, element % inner);
            let offset = pointer.offset.wrapping_add(line.wrapping_mul(stride).wrapping_mul(unit));
            let place = ConcretePointer { offset: offset.wrapping_add(at * bytes), ty: component, ..pointer };
            if loads {
                self.load_value(here, &place, memory)?;
            } else {
                let value = ConcreteValue::Bits(0, OPAQUE);
                self.store_value(here, &place, &value, memory)?;
            }
        }
        Ok(ConcreteValue::NoBits(OPAQUE))
    }
}
