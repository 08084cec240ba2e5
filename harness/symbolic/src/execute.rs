//! Execution of single instructions: memory, barriers and composites.

use std::rc::Rc;

use arithmetic::Instruction;
use litmus::{InterlockEnd, SplitHalf};
use rspirv::spirv::{Op, StorageClass};
use spirv_reader::{
    BarrierPart, CompositeOperation, MemoryOperands, SpirvInstruction, SpirvOperation, SpirvType,
};

use crate::constants::constant_value;
use crate::emit;
use crate::executor::{Executor, Step};
use crate::state::PathState;
use crate::value::{SymbolicPointer, SymbolicValue, UndefOrigin};
use entry_point::layout::ObjectId;
use entry_point::order::{scope_from_number, semantics_from_number};
use entry_point::{Problem, malformed, unknown_instruction, unsupported};

/// The value of an instruction without a result.
fn no_result((): ()) -> SymbolicValue {
    SymbolicValue::Opaque
}

impl Executor<'_> {
    pub(crate) fn value_of_id(&mut self, state: &PathState, id: u32) -> Step<SymbolicValue> {
        if let Some(value) = state.frames.last().and_then(|frame| frame.values.get(&id)) {
            return Ok(state.resolve_value(value));
        }
        if let Some(constant) = constant_value(self.specialized(), id) {
            return Ok(match constant {
                SymbolicValue::Undefined(UndefOrigin::Instruction(id, _)) => {
                    SymbolicValue::Undefined(UndefOrigin::Instruction(id, self.thread))
                }
                other => other,
            });
        }
        let module = self.context.module();
        if let Some(variable) = module.variables.get(&id) {
            let decorations = module.decorations_of(id);
            let object = ObjectId {
                variable: self.context.canonical_variable(id),
                instance: match variable.class {
                    StorageClass::Workgroup => u64::from(self.identity.workgroup_index),
                    _ => 0,
                },
            };
            let coherent = decorations.coherent || decorations.volatile;
            return Ok(SymbolicValue::Pointer(SymbolicPointer {
                object,
                offset: 0,
                variable_offset: None,
                ty: variable.ty,
                stride: None,
                coherent,
            }));
        }
        Err(malformed(format!("{} has no value here", module.display_name(id))).into())
    }

    pub fn type_of_id(&self, state: &PathState, id: u32) -> Step<u32> {
        let module = self.context.module();
        if let Some((ty, _)) = module.constants.get(&id) {
            return Ok(*ty);
        }
        let function = state.frames.last().map_or(0, |frame| frame.function);
        let ty = self.context.result_type(function, id);
        ty.ok_or_else(|| malformed(format!("{} has no type here", module.display_name(id))).into())
    }

    /// Executes an instruction other than a branch, a call or a control barrier.
    pub(crate) fn execute_instruction(
        &mut self,
        state: &mut PathState,
        instruction: &SpirvInstruction,
        operation: SpirvOperation<'_>,
    ) -> Step<SymbolicValue> {
        let module = self.context.module();
        match operation {
            SpirvOperation::Nop
            | SpirvOperation::SelectionMerge { .. }
            | SpirvOperation::LoopMerge { .. }
            | SpirvOperation::Phi { .. } => Ok(SymbolicValue::Opaque),
            SpirvOperation::Variable { initializer } => {
                self.execute_variable(state, instruction, initializer)
            }
            SpirvOperation::Load { pointer, memory } => {
                let pointer = self.pointer_of_id(state, pointer)?;
                self.load_value(state, pointer, instruction.ty, memory)
            }
            SpirvOperation::Store { pointer, value, memory } => {
                let pointer = self.pointer_of_id(state, pointer)?;
                let value = self.value_of_id(state, value)?;
                self.store_value(state, pointer, &value, memory).map(no_result)
            }
            SpirvOperation::CopyMemory { target, source, memory: [store, load] } => {
                let (to, from) = (self.pointer_of_id(state, target)?, self.pointer_of_id(state, source)?);
                let value = self.load_value(state, from, from.ty, load)?;
                self.store_value(state, to, &value, store).map(no_result)
            }
            SpirvOperation::Image(operation) => self.execute_image(state, instruction, operation),
            SpirvOperation::AccessChain { base, element, indices } => {
                self.access_chain(state, base, element, indices)
            }
            SpirvOperation::ComparePointers { comparison, left, right } => {
                self.compare_pointers(state, instruction, comparison, [left, right])
            }
            SpirvOperation::ArrayLength { block, member } => self.array_length(state, block, member),
            SpirvOperation::Composite(operation) => self.execute_composite(state, instruction, operation),
            SpirvOperation::Copy { value } => self.value_of_id(state, value),
            SpirvOperation::Undef => {
                Ok(SymbolicValue::Undefined(UndefOrigin::Instruction(instruction.result, self.thread)))
            }
            SpirvOperation::Select { condition, yes, no } => self.select_value(state, condition, yes, no),
            SpirvOperation::Bitcast { value } => {
                self.compute_elementwise(state, instruction, Op::Bitcast, &[value])
            }
            SpirvOperation::Compute { instruction: Instruction::Extended(op), operands } => {
                self.compute_extended(state, instruction, op, operands)
            }
            SpirvOperation::Compute { operands, .. } => self.compute(state, instruction, operands),
            SpirvOperation::ComputeAndStore { pointer, .. } => {
                // The value stored through the pointer is a float, too.
                let pointer = self.pointer_of_id(state, pointer)?;
                let operands = MemoryOperands::default();
                self.store_value(state, pointer, &SymbolicValue::Opaque, operands).map(no_result)
            }
            SpirvOperation::MemoryBarrier { scope, semantics } => {
                self.execute_memory_barrier(state, scope, semantics).map(no_result)
            }
            SpirvOperation::ControlBarrier { part, execution, scope, semantics } => {
                let half = match part {
                    BarrierPart::Arrive => SplitHalf::Arrive,
                    BarrierPart::Wait => SplitHalf::Wait,
                    BarrierPart::Whole => return Err(unknown_instruction(instruction.op).into()),
                };
                self.execute_split_barrier(state, half, [execution, scope, semantics]).map(no_result)
            }
            SpirvOperation::BeginInterlock => {
                self.execute_interlock(state, InterlockEnd::Begin).map(no_result)
            }
            SpirvOperation::EndInterlock => self.execute_interlock(state, InterlockEnd::End).map(no_result),
            SpirvOperation::Atomic(access) => self.execute_atomic(state, instruction, access),
            SpirvOperation::IsHelperInvocation => Ok(SymbolicValue::Known(0)),
            // Subgroup operations order nothing.
            SpirvOperation::Subgroup(_)
            | SpirvOperation::BallotQuery { .. }
            | SpirvOperation::ReadClock { .. }
            | SpirvOperation::Derivative { .. } => Ok(SymbolicValue::Opaque),
            SpirvOperation::UnknownExtended { set, number } => {
                Err(Problem::from(module.unknown_extended_instruction(set, number)).into())
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
            | SpirvOperation::ConvertPointer { .. }
            | SpirvOperation::RayQuery { .. }
            | SpirvOperation::CooperativeMatrix(_)
            | SpirvOperation::Unknown { .. } => Err(unknown_instruction(instruction.op).into()),
        }
    }

    fn execute_composite(
        &mut self,
        state: &mut PathState,
        instruction: &SpirvInstruction,
        operation: CompositeOperation<'_>,
    ) -> Step<SymbolicValue> {
        match operation {
            CompositeOperation::Construct { parts: ids } => {
                let mut parts = Vec::new();
                let vector =
                    matches!(self.context.module().type_of_id(instruction.ty)?, SpirvType::Vector { .. });
                for id in ids {
                    match self.value_of_id(state, *id)? {
                        SymbolicValue::Composite(inner) if vector => parts.extend(inner.iter().cloned()),
                        other => parts.push(other),
                    }
                }
                Ok(SymbolicValue::Composite(Rc::new(parts)))
            }
            CompositeOperation::Extract { composite, path } => {
                let mut value = self.value_of_id(state, composite)?;
                for index in path {
                    value = self.extract_part(&value, *index as usize)?;
                }
                Ok(state.resolve_value(&value))
            }
            CompositeOperation::Insert { value, composite, path } => {
                let (object, composite) =
                    (self.value_of_id(state, value)?, self.value_of_id(state, composite)?);
                self.insert_component(&composite, instruction.ty, path, object)
            }
            CompositeOperation::Shuffle { first, second, components } => {
                let first = self.vector_components(state, first)?;
                let second = self.vector_components(state, second)?;
                let place = UndefOrigin::Instruction(instruction.result, self.thread);
                let parts = components.iter().map(|index| {
                    let index = *index as usize;
                    let value =
                        if index < first.len() { first.get(index) } else { second.get(index - first.len()) };
                    value.cloned().unwrap_or(SymbolicValue::Undefined(place))
                });
                Ok(SymbolicValue::Composite(Rc::new(parts.collect())))
            }
            CompositeOperation::ExtractDynamic { vector, index } => {
                let ty = self.type_of_id(state, vector)?;
                let (vector, index) = (self.value_of_id(state, vector)?, self.value_of_id(state, index)?);
                let index = self.fork_to_known(state, &index, "an index")?;
                if index >= self.specialized().part_count(ty)? as u64 {
                    return Ok(self.undefined_result_value(instruction));
                }
                let value = self.extract_part(&vector, index as usize)?;
                Ok(state.resolve_value(&value))
            }
            CompositeOperation::InsertDynamic { vector, component, index } => {
                let (vector, object) =
                    (self.value_of_id(state, vector)?, self.value_of_id(state, component)?);
                let index = self.value_of_id(state, index)?;
                let index = self.fork_to_known(state, &index, "an index")?;
                if index >= self.specialized().part_count(instruction.ty)? as u64 {
                    return Ok(self.undefined_result_value(instruction));
                }
                self.insert_component(&vector, instruction.ty, &[index as u32], object)
            }
        }
    }

    fn array_length(&mut self, state: &PathState, block: u32, member: u32) -> Step<SymbolicValue> {
        let pointer = self.pointer_of_id(state, block)?;
        let at = self.specialized().part_of(pointer.ty, member.into())?;
        let stride = self.specialized().part_of(at.ty, 0)?.stride.unwrap_or(1);
        if pointer.variable_offset.is_some() {
            return Err(unsupported("the length of an array at a variable position").into());
        }
        let start = pointer.offset.wrapping_add(at.offset);
        Ok(SymbolicValue::Known(self.context.array_length(pointer.object, start, stride)))
    }

    fn execute_memory_barrier(&mut self, state: &mut PathState, scope: u32, semantics: u32) -> Step<()> {
        let value = self.value_of_id(state, scope)?;
        let scope = self.fork_to_known(state, &value, "a scope")?;
        let value = self.value_of_id(state, semantics)?;
        let order = semantics_from_number(self.fork_to_known(state, &value, "semantics")?)?;
        if order.order != litmus::Order::Relaxed {
            let scope = scope_from_number(scope, self.context.module().uses_vulkan_model)?;
            self.emit_instruction(emit::memory_barrier(scope, order))?;
        }
        Ok(())
    }

    fn execute_variable(
        &mut self,
        state: &mut PathState,
        instruction: &SpirvInstruction,
        initializer: Option<u32>,
    ) -> Step<SymbolicValue> {
        let instance = state.next_object;
        state.next_object += 1;
        let SpirvType::Pointer { pointee: to, .. } = *self.context.module().type_of_id(instruction.ty)?
        else {
            return Err(malformed("a variable whose type is not a pointer").into());
        };
        let object = ObjectId { variable: instruction.result, instance };
        let pointer = SymbolicPointer {
            object,
            offset: 0,
            variable_offset: None,
            ty: to,
            stride: None,
            coherent: false,
        };
        if let Some(initializer) = initializer {
            let value = self.value_of_id(state, initializer)?;
            self.store_private(state, pointer, to, &value)?;
        }
        Ok(SymbolicValue::Pointer(pointer))
    }

    pub(crate) fn vector_components(&mut self, state: &PathState, id: u32) -> Step<Vec<SymbolicValue>> {
        let count = self.specialized().part_count(self.type_of_id(state, id)?)?;
        let value = self.value_of_id(state, id)?;
        (0..count).map(|part| self.extract_part(&value, part)).collect()
    }

    fn insert_component(
        &mut self,
        composite: &SymbolicValue,
        ty: u32,
        path: &[u32],
        object: SymbolicValue,
    ) -> Step<SymbolicValue> {
        let Some((first, rest)) = path.split_first() else { return Ok(object) };
        let count = self.specialized().part_count(ty)?;
        let at = *first as usize;
        if at >= count {
            return Err(malformed("an index beyond its composite").into());
        }
        let mut parts =
            (0..count).map(|index| self.extract_part(composite, index)).collect::<Step<Vec<_>>>()?;
        let inner = self.specialized().part_of(ty, u64::from(*first))?.ty;
        parts[at] = self.insert_component(&parts[at].clone(), inner, rest, object)?;
        Ok(SymbolicValue::Composite(Rc::new(parts)))
    }

    fn select_value(
        &mut self,
        state: &mut PathState,
        condition: u32,
        yes: u32,
        no: u32,
    ) -> Step<SymbolicValue> {
        let condition = self.value_of_id(state, condition)?;
        let (yes, no) = (self.value_of_id(state, yes)?, self.value_of_id(state, no)?);
        if yes == no {
            return Ok(yes);
        }
        match condition {
            SymbolicValue::Composite(conditions) => {
                let mut parts = Vec::new();
                for (index, condition) in conditions.iter().enumerate() {
                    if condition.is_undefined_result() {
                        parts.push(condition.clone());
                        continue;
                    }
                    let chosen = self.fork_on_truth(state, condition, "a selection")?;
                    parts.push(self.extract_part(if chosen { &yes } else { &no }, index)?);
                }
                Ok(SymbolicValue::Composite(Rc::new(parts)))
            }
            SymbolicValue::Opaque if !matches!(yes, SymbolicValue::Pointer(_)) => Ok(SymbolicValue::Opaque),
            lacking if lacking.is_undefined_result() => Ok(lacking),
            condition => Ok(if self.fork_on_truth(state, &condition, "a selection")? { yes } else { no }),
        }
    }
}
