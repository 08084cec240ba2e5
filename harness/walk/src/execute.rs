//! Instructions other than control flow: dispatch to loads, stores, atomics, barriers and arithmetic.

use std::rc::Rc;

use arithmetic::{Instruction, mask};
use litmus::InterlockEnd;
use rspirv::spirv::{GlslStd450Op, Scope, StorageClass};
use spirv_reader::{
    BarrierPart, CompositeOperation, MatrixOperation, MemoryOperands, PointerComparison, SpirvOperation,
    SpirvType,
};

use entry_point::{malformed, unknown_instruction, unsupported};

use super::program::DecodedInstruction;
use super::state::{Interpreter, InvocationCtx, InvocationState, WorkgroupState};
use super::step::{Step, StepInterrupt};
use super::value::{
    ConcretePointer, ConcreteValue, INPUT_MASK, OPAQUE, PRIVATE_TAG, SCHEDULE_DEPENDENT, UNDEFINED,
};

/// Clock ticks per executed step.
const TICKS_PER_STEP: u64 = 16;
/// Upper bound on the size of a function variable.
pub(super) const MAX_FUNCTION_VARIABLE: usize = 1 << 18;

impl Interpreter<'_> {
    /// Executes an instruction and advances to the next.
    pub(super) fn execute_instruction(
        &mut self,
        ctx: &mut InvocationCtx<'_>,
        inst: &DecodedInstruction<'_>,
    ) -> Step<()> {
        let program = self.program;
        let value = match inst.operation {
            SpirvOperation::Nop
            | SpirvOperation::SelectionMerge { .. }
            | SpirvOperation::LoopMerge { .. }
            | SpirvOperation::Phi { .. } => ConcreteValue::NoBits(0),
            SpirvOperation::Variable { initializer } => self.execute_variable(ctx, inst, initializer)?,
            SpirvOperation::Load { pointer, memory } => {
                let pointer = self.pointer_of_id(ctx, pointer)?;
                if inst.result.count > 0 {
                    return self.load_vector(ctx, inst, &pointer, memory);
                }
                self.load_value(ctx, &pointer, memory)?
            }
            SpirvOperation::Store { pointer, value, memory } => {
                self.execute_store(ctx, pointer, value, memory)?;
                ConcreteValue::NoBits(0)
            }
            SpirvOperation::CopyMemory { target, source, memory: [store, load] } => {
                let (target, source) = (self.pointer_of_id(ctx, target)?, self.pointer_of_id(ctx, source)?);
                let value = self.load_value(ctx, &source, load)?;
                self.store_value(ctx, &target, &value, store)?;
                ConcreteValue::NoBits(0)
            }
            SpirvOperation::AccessChain { base, element, indices } => {
                self.access_chain(ctx, base, element, indices)?
            }
            SpirvOperation::ArrayLength { block, member } => self.array_length(ctx, block, member)?,
            SpirvOperation::Undef => program.filled_value(inst.raw.ty, UNDEFINED)?,
            SpirvOperation::Composite(operation) => self.execute_composite(ctx, inst, operation)?,
            SpirvOperation::Copy { value } => self.value_of_id(ctx, value)?,
            SpirvOperation::Select { condition, yes, no } => self.select_value(ctx, condition, yes, no)?,
            SpirvOperation::Bitcast { value } | SpirvOperation::ConvertPointer { value } => {
                self.compute_bitcast(ctx, inst, value)?
            }
            SpirvOperation::ComparePointers { comparison, left, right } => {
                self.compare_pointers(ctx, inst, comparison, [left, right])?
            }
            SpirvOperation::Compute { instruction, operands } => {
                self.compute(ctx, inst, instruction, operands)?
            }
            SpirvOperation::ComputeAndStore { instruction: GlslStd450Op::Modf, value, pointer } => {
                self.split_float(ctx, value, pointer)?
            }
            SpirvOperation::ComputeAndStore { instruction, .. } => {
                return Err(unsupported(format!("{instruction:?}")).into());
            }
            SpirvOperation::Atomic(access) => return self.execute_atomic(ctx, inst, access),
            SpirvOperation::MemoryBarrier { scope, semantics } => {
                self.execute_memory_barrier(ctx, scope, semantics)?;
                ConcreteValue::NoBits(0)
            }
            SpirvOperation::ControlBarrier { part: BarrierPart::Arrive, .. } => {
                return self.arrive_at_split(ctx);
            }
            SpirvOperation::ControlBarrier { part: BarrierPart::Whole | BarrierPart::Wait, .. } => {
                self.events += 1;
                return Err(self.wait_for_others(ctx));
            }
            SpirvOperation::BeginInterlock => return self.execute_interlock(ctx, InterlockEnd::Begin),
            SpirvOperation::EndInterlock => return self.execute_interlock(ctx, InterlockEnd::End),
            SpirvOperation::Image(operation) => self.execute_image(ctx, inst, operation)?,
            SpirvOperation::Subgroup(_) => return Err(self.wait_for_others(ctx)),
            SpirvOperation::BallotQuery { query, ballot, .. } => {
                self.query_ballot(ctx, inst, query, ballot)?
            }
            SpirvOperation::CooperativeMatrix(operation) => self.execute_matrix(ctx, inst, operation)?,
            SpirvOperation::IsHelperInvocation => ConcreteValue::from_bool(false, 0),
            SpirvOperation::Derivative { .. } => program.filled_value(inst.raw.ty, OPAQUE)?,
            SpirvOperation::ReadClock { .. } => self.read_clock(inst.raw.ty),
            SpirvOperation::RayQuery { query, function } => {
                self.execute_ray_query(ctx, inst, query, function)?
            }
            SpirvOperation::UnknownExtended { set, number } => {
                return Err(program.module.unknown_extended_instruction(set, number).into());
            }
            // The caller executes control flow and the operations of mesh stages; those of other stages have no meaning.
            SpirvOperation::Label
            | SpirvOperation::Branch { .. }
            | SpirvOperation::BranchConditional { .. }
            | SpirvOperation::Switch { .. }
            | SpirvOperation::Call { .. }
            | SpirvOperation::Return { .. }
            | SpirvOperation::Kill { .. }
            | SpirvOperation::Unreachable
            | SpirvOperation::EmitMeshTasks { .. }
            | SpirvOperation::SetMeshOutputs { .. }
            | SpirvOperation::CopyMemorySized { .. }
            | SpirvOperation::Unknown { .. } => return Err(unknown_instruction(inst.raw.op).into()),
        };
        self.set_result(ctx, inst, value)
    }

    fn execute_store(
        &mut self,
        ctx: &mut InvocationCtx<'_>,
        pointer: u32,
        value: u32,
        memory: MemoryOperands,
    ) -> Step<()> {
        let pointer = self.pointer_of_id(ctx, pointer)?;
        if self.program.slots_of(value).count > 0 {
            return self.store_vector(ctx, value, &pointer, memory);
        }
        let value = self.value_of_id(ctx, value)?;
        self.store_value(ctx, &pointer, &value, memory)
    }

    fn execute_memory_barrier(
        &mut self,
        ctx: &mut InvocationCtx<'_>,
        scope: u32,
        semantics: u32,
    ) -> Step<()> {
        self.events += 1;
        let (scope, semantics) = (self.scope_of_id(ctx, scope)?, self.semantics_of_id(ctx, semantics)?);
        ctx.invocation_mut().execute_fence(scope, semantics);
        Ok(())
    }

    /// Returns a clock value, which depends on the schedule.
    fn read_clock(&self, ty: u32) -> ConcreteValue {
        let clock_value = self.steps.wrapping_mul(TICKS_PER_STEP);
        let halves = [clock_value & mask(32), clock_value >> 32];
        match self.program.slot_count(ty) {
            0 => ConcreteValue::Bits(clock_value, SCHEDULE_DEPENDENT),
            _ => ConcreteValue::from_components(
                halves.map(|part| ConcreteValue::Bits(part, SCHEDULE_DEPENDENT)),
            ),
        }
    }

    fn execute_composite(
        &mut self,
        ctx: &mut InvocationCtx<'_>,
        inst: &DecodedInstruction<'_>,
        operation: CompositeOperation<'_>,
    ) -> Step<ConcreteValue> {
        Ok(match operation {
            CompositeOperation::Construct { parts } => self.construct_composite(ctx, inst, parts)?,
            CompositeOperation::Extract { composite, path } => {
                let mut value = self.value_of_id(ctx, composite)?;
                for index in path {
                    value = self.extract_component(&value, *index as usize)?;
                }
                value
            }
            CompositeOperation::Insert { value, composite, path } => {
                let (value, into) = (self.value_of_id(ctx, value)?, self.value_of_id(ctx, composite)?);
                self.insert_component(&into, path, value)?
            }
            CompositeOperation::ExtractDynamic { vector, index } => {
                let (value, index) = (self.value_of_id(ctx, vector)?, self.bits_of_id(ctx, index)?);
                match self.extract_component(&value, index.0 as usize) {
                    Ok(element) => element.with_taint(index.1),
                    Err(_) => ConcreteValue::Bits(
                        0,
                        index.1
                            | self.undefined_instruction_result(
                                ctx,
                                Instruction::Core(inst.raw.op),
                                index.1,
                            )?,
                    ),
                }
            }
            CompositeOperation::InsertDynamic { vector, component, index } => {
                let (into, value) = (self.value_of_id(ctx, vector)?, self.value_of_id(ctx, component)?);
                let index = self.bits_of_id(ctx, index)?;
                match self.insert_component(&into, &[index.0 as u32], value) {
                    Ok(all) => all.with_taint(index.1),
                    Err(_) => {
                        let undefined_taint =
                            self.undefined_instruction_result(ctx, Instruction::Core(inst.raw.op), index.1)?;
                        into.with_taint(index.1 | undefined_taint)
                    }
                }
            }
            CompositeOperation::Shuffle { first, second, components } => {
                let (left, right) = (self.value_of_id(ctx, first)?, self.value_of_id(ctx, second)?);
                let (ConcreteValue::Composite(left), ConcreteValue::Composite(right)) = (&left, &right)
                else {
                    return Err(malformed("a shuffle of values that are not vectors").into());
                };
                let pick = |index: &u32| {
                    let index = *index as usize;
                    let found = left.get(index).or_else(|| right.get(index.checked_sub(left.len())?));
                    found.cloned().unwrap_or(ConcreteValue::Bits(0, UNDEFINED))
                };
                ConcreteValue::from_components(components.iter().map(pick))
            }
        })
    }

    /// Compares two pointers, or returns the number of elements between them.
    fn compare_pointers(
        &mut self,
        ctx: &mut InvocationCtx<'_>,
        inst: &DecodedInstruction<'_>,
        comparison: PointerComparison,
        [first, second]: [u32; 2],
    ) -> Step<ConcreteValue> {
        let (left, right) = (self.pointer_of_id(ctx, first)?, self.pointer_of_id(ctx, second)?);
        let taint = left.taint | right.taint;
        let same = (left.object, left.offset) == (right.object, right.offset);
        match comparison {
            PointerComparison::Equal => return Ok(ConcreteValue::from_bool(same, taint)),
            PointerComparison::NotEqual => return Ok(ConcreteValue::from_bool(!same, taint)),
            PointerComparison::Difference => {}
        }
        let stride = self.stride_of(first, &left);
        let byte_distance = left.offset.wrapping_sub(right.offset) as i64;
        let bits = self.program.number_bits(inst.raw.result);
        match byte_distance.checked_rem(stride) {
            Some(0) if left.object == right.object => {
                Ok(ConcreteValue::Bits((byte_distance / stride) as u64 & mask(bits), taint))
            }
            _ => {
                let undefined_taint =
                    self.undefined_instruction_result(ctx, Instruction::Core(inst.raw.op), taint)?;
                Ok(ConcreteValue::Bits(0, taint | undefined_taint))
            }
        }
    }

    /// Blocks the invocation until others arrive.
    pub(super) fn wait_for_others(&mut self, ctx: &mut InvocationCtx<'_>) -> StepInterrupt {
        let instance = self.dynamic_instance(&ctx.workgroup.invocations[ctx.index]);
        ctx.invocation_mut().state = InvocationState::Waiting(instance);
        StepInterrupt::Waits
    }

    fn execute_variable(
        &mut self,
        ctx: &mut InvocationCtx<'_>,
        inst: &DecodedInstruction<'_>,
        initializer: Option<u32>,
    ) -> Step<ConcreteValue> {
        let program = self.program;
        let Some((class, to)) = program.pointee_of(inst.raw.ty) else {
            return Err(malformed("a variable whose type is not a pointer").into());
        };
        if class != StorageClass::Function {
            return Err(malformed("a function-scope variable of another storage class").into());
        }
        let size = usize::try_from(program.type_size(to)).ok().filter(|size| *size <= MAX_FUNCTION_VARIABLE);
        let size = size
            .ok_or_else(|| unsupported(format!("a variable of more than {MAX_FUNCTION_VARIABLE} bytes")))?;
        let value = initializer.map(|id| self.value_of_id(ctx, id)).transpose()?;
        let WorkgroupState { invocations, .. } = &mut *ctx.workgroup;
        let locals = &mut invocations[ctx.index].locals;
        let at = locals.push_variable(inst.raw.result, size);
        if let (Some(value), Some(object)) = (value, locals.as_mut_slice().get_mut(at)) {
            self.fill_object(object, &ConcretePointer::at_object_start(0, to), to, &value)?;
        }
        Ok(ConcreteValue::Pointer(ConcretePointer::at_object_start(PRIVATE_TAG | at as u32, to)))
    }

    fn array_length(&mut self, ctx: &mut InvocationCtx<'_>, block: u32, member: u32) -> Step<ConcreteValue> {
        let program = self.program;
        let pointer = self.pointer_of_id(ctx, block)?;
        let array = super::access::part_pointer(program, &pointer, member.into())?;
        let Some(stride) = program.specialized.part_of(array.ty, 0)?.stride else {
            return Err(malformed("OpArrayLength of a member that is not an array").into());
        };
        let of = self.object_mut(ctx, array.object);
        let (bytes, taint) = of.map_or((0, 0), |object| (object.bytes.len() as u64, object.length_taint));
        Ok(ConcreteValue::Bits(bytes.saturating_sub(array.offset) / stride.max(1), taint))
    }

    fn construct_composite(
        &mut self,
        ctx: &mut InvocationCtx<'_>,
        inst: &DecodedInstruction<'_>,
        operands: &[u32],
    ) -> Step<ConcreteValue> {
        let program = self.program;
        let mut parts = Vec::with_capacity(operands.len());
        let ty = program.module.type_of_id(inst.raw.ty)?;
        let vector = matches!(ty, SpirvType::Vector { .. });
        for id in operands {
            match self.value_of_id(ctx, *id)? {
                // A vector may be constructed from scalars and vectors.
                ConcreteValue::Composite(inner) if vector => parts.extend(inner.iter().cloned()),
                other => parts.push(other),
            }
        }
        if matches!(ty, SpirvType::Handle(_)) {
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

    fn select_value(
        &mut self,
        ctx: &mut InvocationCtx<'_>,
        condition: u32,
        yes: u32,
        no: u32,
    ) -> Step<ConcreteValue> {
        let (yes, no) = (self.value_of_id(ctx, yes)?, self.value_of_id(ctx, no)?);
        let holds = self.value_of_id(ctx, condition)?;
        if holds.combined_taint() & INPUT_MASK != 0 && self.setup.launch_taint.is_tracked() {
            self.note_selection(ctx, condition);
        }
        match holds {
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

    /// Executes an operation of a cooperative matrix; each element is accessed by one lane.
    fn execute_matrix(
        &mut self,
        ctx: &mut InvocationCtx<'_>,
        inst: &DecodedInstruction<'_>,
        operation: MatrixOperation,
    ) -> Step<ConcreteValue> {
        let program = self.program;
        let (ty, access, loads) = match operation {
            MatrixOperation::Load(access) => (inst.raw.ty, access, true),
            MatrixOperation::Store { value, access } => (program.type_of(value), access, false),
            MatrixOperation::MulAdd => return Ok(ConcreteValue::NoBits(OPAQUE)),
        };
        let pointer = self.pointer_of_id(ctx, access.pointer)?;
        let shape = program.module.handle_operands.get(&ty).map_or(&[][..], Vec::as_slice);
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
        let matrix_scope = Scope::from_u32(number(matrix_scope)? as u32);
        let by_columns = self.control_number(ctx, access.layout, "this matrix layout")? == 1;
        let stride = match access.stride {
            Some(stride) => self.control_number(ctx, stride, "this matrix stride")?,
            None => return Err(unsupported("a matrix without a stride").into()),
        };
        // The stride counts elements of the pointee type.
        let unit = program.type_size(pointer.ty);
        let bytes = program.type_size(component);
        let invocation = ctx.invocation_mut();
        let (lanes, lane) = match matrix_scope {
            Some(Scope::Subgroup) => (self.setup.subgroup_size, invocation.lane),
            Some(Scope::Workgroup) => {
                (self.setup.local_size.iter().product(), invocation.identity.local_index)
            }
            _ => {
                let what = "cooperative matrices with a scope other than Subgroup and Workgroup";
                return Err(unsupported(what).into());
            }
        };
        let (lanes, lane) = (u64::from(lanes), u64::from(lane));
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
                self.load_value(ctx, &place, access.memory)?;
            } else {
                let value = ConcreteValue::Bits(0, OPAQUE);
                self.store_value(ctx, &place, &value, access.memory)?;
            }
        }
        Ok(ConcreteValue::NoBits(OPAQUE))
    }
}
