//! Execution of single instructions: memory, atomics and computations.
//!
//! Long because every instruction has an arm in one match.

use std::rc::Rc;

use arithmetic::{
    Instruction, NumberKind, NumberShape, Operand, can_fold, fold, fold_extended, is_absorbing_operand, mask,
};
use litmus::{ArithmeticOperation, InterlockEnd, SplitHalf};
use rspirv::spirv::{GlslStd450Op, Op, StorageClass};
use spirv_reader::{BarrierPart, MemoryOperands, SpirvInstruction, SpirvOperation, SpirvType};

use crate::access::AccessFlags;
use crate::constants::known_number;
use crate::emit;
use crate::executor::{Executor, Step};
use crate::function::FunctionCode;
use crate::relation::relation;
use crate::state::PathState;
use crate::value::{SymbolicNumber, SymbolicPointer, SymbolicTruth, SymbolicValue, UndefOrigin};
use entry_point::layout::ObjectId;
use entry_point::order::{scope_from_number, semantics_from_number};
use entry_point::{Problem, malformed, unknown_instruction, unsupported};

impl Executor<'_> {
    pub(crate) fn value_of_id(&mut self, state: &PathState, id: u32) -> Step<SymbolicValue> {
        if let Some(value) = state.frames.last().and_then(|frame| frame.values.get(&id)) {
            return Ok(state.resolve_value(value));
        }
        if let Some(constant) = self.specialized().constant_value(id) {
            return Ok(match constant {
                SymbolicValue::Undefined(UndefOrigin::Instruction(id, _)) => {
                    SymbolicValue::Undefined(UndefOrigin::Instruction(*id, self.thread))
                }
                other => other.clone(),
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
                let way = AccessFlags { operands: memory, coherent: pointer.coherent };
                self.load_value(state, pointer, instruction.ty, way)
            }
            SpirvOperation::Store { pointer, value, memory } => {
                let pointer = self.pointer_of_id(state, pointer)?;
                let value = self.value_of_id(state, value)?;
                let way = AccessFlags { operands: memory, coherent: pointer.coherent };
                self.store_value(state, pointer, pointer.ty, &value, way)?;
                Ok(SymbolicValue::Opaque)
            }
            SpirvOperation::CopyMemory { target, source, memory: [store, load] } => {
                let (to, from) = (self.pointer_of_id(state, target)?, self.pointer_of_id(state, source)?);
                let load = AccessFlags { operands: load, coherent: from.coherent };
                let value = self.load_value(state, from, from.ty, load)?;
                let store = AccessFlags { operands: store, coherent: to.coherent };
                self.store_value(state, to, to.ty, &value, store)?;
                Ok(SymbolicValue::Opaque)
            }
            SpirvOperation::ImageRead { image, coordinate, operands } => {
                let texel = self.texel_pointer(state, [image, coordinate], true)?;
                self.read_texel(state, instruction.ty, texel, &operands)
            }
            SpirvOperation::ImageWrite { image, coordinate, texel, operands } => {
                let pointer = self.texel_pointer(state, [image, coordinate], false)?;
                let value = self.value_of_id(state, texel)?;
                self.write_texel(state, pointer, &value, &operands)
            }
            SpirvOperation::ImageTexelPointer { image, coordinate } => {
                Ok(SymbolicValue::Pointer(self.texel_pointer(state, [image, coordinate], false)?))
            }
            SpirvOperation::AccessChain { base, element, indices } => {
                self.access_chain(state, base, element, indices)
            }
            SpirvOperation::ComparePointers { comparison, left, right } => {
                self.compare_pointers(state, instruction, comparison, [left, right])
            }
            SpirvOperation::ArrayLength { block, member } => {
                let pointer = self.pointer_of_id(state, block)?;
                let at = self.specialized().part_of(pointer.ty, member.into())?;
                let stride = self.specialized().part_of(at.ty, 0)?.stride.unwrap_or(1);
                if pointer.variable_offset.is_some() {
                    return Err(unsupported("the length of an array at a variable position").into());
                }
                let start = pointer.offset.wrapping_add(at.offset);
                Ok(SymbolicValue::Known(self.context.array_length(pointer.object, start, stride)))
            }
            SpirvOperation::CompositeConstruct { parts: ids } => {
                let mut parts = Vec::new();
                let vector = matches!(module.type_of_id(instruction.ty)?, SpirvType::Vector { .. });
                for id in ids {
                    match self.value_of_id(state, *id)? {
                        SymbolicValue::Composite(inner) if vector => parts.extend(inner.iter().cloned()),
                        other => parts.push(other),
                    }
                }
                Ok(SymbolicValue::Composite(Rc::new(parts)))
            }
            SpirvOperation::CompositeExtract { composite, path } => {
                let mut value = self.value_of_id(state, composite)?;
                for index in path {
                    value = self.extract_part(&value, *index as usize)?;
                }
                Ok(state.resolve_value(&value))
            }
            SpirvOperation::CompositeInsert { value, composite, path } => {
                let (object, composite) =
                    (self.value_of_id(state, value)?, self.value_of_id(state, composite)?);
                self.insert_component(&composite, instruction.ty, path, object)
            }
            SpirvOperation::VectorShuffle { first, second, components } => {
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
            SpirvOperation::VectorExtractDynamic { vector, index } => {
                let ty = self.type_of_id(state, vector)?;
                let (vector, index) = (self.value_of_id(state, vector)?, self.value_of_id(state, index)?);
                let index = self.fork_to_known(state, &index, "an index")?;
                if index >= self.specialized().part_count(ty)? as u64 {
                    return Ok(self.undefined_result_value(instruction));
                }
                let value = self.extract_part(&vector, index as usize)?;
                Ok(state.resolve_value(&value))
            }
            SpirvOperation::VectorInsertDynamic { vector, component, index } => {
                let (vector, object) =
                    (self.value_of_id(state, vector)?, self.value_of_id(state, component)?);
                let index = self.value_of_id(state, index)?;
                let index = self.fork_to_known(state, &index, "an index")?;
                if index >= self.specialized().part_count(instruction.ty)? as u64 {
                    return Ok(self.undefined_result_value(instruction));
                }
                self.insert_component(&vector, instruction.ty, &[index as u32], object)
            }
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
                let way = AccessFlags { operands: MemoryOperands::default(), coherent: pointer.coherent };
                self.store_value(state, pointer, pointer.ty, &SymbolicValue::Opaque, way)?;
                Ok(SymbolicValue::Opaque)
            }
            SpirvOperation::MemoryBarrier { scope, semantics } => {
                let value = self.value_of_id(state, scope)?;
                let at = self.fork_to_known(state, &value, "a scope")?;
                let value = self.value_of_id(state, semantics)?;
                let order = semantics_from_number(self.fork_to_known(state, &value, "semantics")?)?;
                if order.order != litmus::Order::Relaxed {
                    self.emit_instruction(emit::memory_barrier(
                        scope_from_number(at, module.uses_vulkan_model)?,
                        order,
                    ))?;
                }
                Ok(SymbolicValue::Opaque)
            }
            SpirvOperation::ControlBarrier { part, execution, scope, semantics } => {
                let half = match part {
                    BarrierPart::Arrive => SplitHalf::Arrive,
                    BarrierPart::Wait => SplitHalf::Wait,
                    BarrierPart::Whole => return Err(unknown_instruction(instruction.op).into()),
                };
                self.execute_split_barrier(state, half, [execution, scope, semantics])?;
                Ok(SymbolicValue::Opaque)
            }
            SpirvOperation::BeginInterlock => {
                self.execute_interlock(state, InterlockEnd::Begin)?;
                Ok(SymbolicValue::Opaque)
            }
            SpirvOperation::EndInterlock => {
                self.execute_interlock(state, InterlockEnd::End)?;
                Ok(SymbolicValue::Opaque)
            }
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
            | SpirvOperation::Image { .. }
            | SpirvOperation::SampledImage { .. }
            | SpirvOperation::RayQuery { .. }
            | SpirvOperation::ImageFetch { .. }
            | SpirvOperation::ImageSample { .. }
            | SpirvOperation::ImageQuery { .. }
            | SpirvOperation::CooperativeMatrixLoad(_)
            | SpirvOperation::CooperativeMatrixStore { .. }
            | SpirvOperation::CooperativeMatrixMulAdd { .. }
            | SpirvOperation::Unknown { .. } => Err(unknown_instruction(instruction.op).into()),
        }
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

    /// Executes a computation of core SPIR-V.
    fn compute(
        &mut self,
        state: &mut PathState,
        instruction: &SpirvInstruction,
        operands: &[u32],
    ) -> Step<SymbolicValue> {
        match (instruction.op, operands) {
            (Op::ConvertFToS | Op::ConvertFToU, [value]) => {
                match self.truncate_float(state, instruction, *value)? {
                    SymbolicValue::Opaque => self.apply_function(state, instruction, operands),
                    known => Ok(known),
                }
            }
            (Op::IAddCarry | Op::ISubBorrow | Op::UMulExtended | Op::SMulExtended, [left, right]) => {
                self.compute_wide_pair(state, instruction, [*left, *right])
            }
            (Op::SDot | Op::UDot | Op::SUDot | Op::SDotAccSat | Op::UDotAccSat | Op::SUDotAccSat, _) => {
                self.dot_product(state, instruction, operands)
            }
            (op, [_, ..]) if can_fold(op) || matches!(op, Op::Any | Op::All) => {
                self.compute_elementwise(state, instruction, op, operands)
            }
            // Floats are not computed.
            _ => self.apply_function(state, instruction, operands),
        }
    }

    /// Truncates a known 32-bit float to an integer, such as a pixel coordinate.
    fn truncate_float(
        &mut self,
        state: &PathState,
        instruction: &SpirvInstruction,
        value: u32,
    ) -> Step<SymbolicValue> {
        let (of, ty) = (self.type_of_id(state, value)?, instruction.ty);
        if self.specialized().scalar_bits(of)? != 32 || self.specialized().scalar_bits(ty)? != 32 {
            return Ok(SymbolicValue::Opaque);
        }
        let convert = |value: &SymbolicValue| match state.resolve_value(value) {
            SymbolicValue::Known(bits) => {
                let float = f32::from_bits(bits as u32);
                let integral_value =
                    if instruction.op == Op::ConvertFToS { float as i32 as u32 } else { float as u32 };
                SymbolicValue::Known(integral_value.into())
            }
            _ => SymbolicValue::Opaque,
        };
        match self.value_of_id(state, value)? {
            SymbolicValue::Composite(parts) => {
                Ok(SymbolicValue::Composite(Rc::new(parts.iter().map(convert).collect())))
            }
            one => Ok(convert(&one)),
        }
    }

    /// Computes sums and products with a high half, as a structure of two scalars or vectors.
    fn compute_wide_pair(
        &mut self,
        state: &mut PathState,
        instruction: &SpirvInstruction,
        [first, second]: [u32; 2],
    ) -> Step<SymbolicValue> {
        let ty = self.type_of_id(state, first)?;
        let (bits, scalar) = (self.specialized().scalar_bits(ty)?, self.specialized().is_scalar(ty)?);
        let shape = NumberShape { kind: NumberKind::Integer, bits, rows: 1, columns: 1 };
        let pair = |executor: &mut Self,
                    state: &mut PathState,
                    left: &SymbolicValue,
                    right: &SymbolicValue|
         -> Step<[SymbolicValue; 2]> {
            if let Some(undefined_operand) = [left, right].into_iter().find(|side| side.is_undefined_result())
            {
                return Ok([undefined_operand.clone(), undefined_operand.clone()]);
            }
            if [left, right].iter().any(|side| matches!(state.resolve_value(side), SymbolicValue::Opaque)) {
                return Ok([SymbolicValue::Opaque, SymbolicValue::Opaque]);
            }
            let is_open = |side| matches!(state.resolve_value(side), SymbolicValue::Register(_));
            if executor.context.has_functions() && [left, right].into_iter().any(is_open) {
                let operands = [left.clone(), right.clone()];
                let mut half = |component| {
                    let instruction = Instruction::Core(instruction.op);
                    let code = FunctionCode { instruction, component, bits: [bits; 2] };
                    executor.apply_to_numbers(state, code, &operands)
                };
                return Ok([half(0)?, half(1)?]);
            }
            let left = [executor.fork_to_known(state, left, "a computation")?];
            let right = [executor.fork_to_known(state, right, "a computation")?];
            let operands = [&left, &right].map(|numbers| Operand { numbers, shape });
            let halves = Instruction::Core(instruction.op).compute(&operands, &[shape, shape]);
            let halves = halves.and_then(|halves| <[u64; 2]>::try_from(halves).ok());
            let halves = halves.ok_or_else(|| unsupported(format!("Op{:?}", instruction.op)))?;
            Ok(halves.map(SymbolicValue::Known))
        };
        if scalar {
            let (left, right) = (self.value_of_id(state, first)?, self.value_of_id(state, second)?);
            return Ok(SymbolicValue::Composite(Rc::new(pair(self, state, &left, &right)?.to_vec())));
        }
        let (left, right) = (self.vector_components(state, first)?, self.vector_components(state, second)?);
        let (mut low, mut high) = (Vec::new(), Vec::new());
        for (left, right) in left.iter().zip(&right) {
            let [of_low, of_high] = pair(self, state, left, right)?;
            low.push(of_low);
            high.push(of_high);
        }
        Ok(SymbolicValue::Composite(Rc::new(
            [low, high].map(|half| SymbolicValue::Composite(Rc::new(half))).to_vec(),
        )))
    }

    /// Computes integer dot products, also of packed vectors.
    fn dot_product(
        &mut self,
        state: &mut PathState,
        instruction: &SpirvInstruction,
        operands: &[u32],
    ) -> Step<SymbolicValue> {
        let mut rows = Vec::with_capacity(operands.len());
        for id in operands {
            let ty = self.type_of_id(state, *id)?;
            let parts = match self.specialized().is_scalar(ty)? {
                true => vec![self.value_of_id(state, *id)?],
                false => self.vector_components(state, *id)?,
            };
            let mut numbers = Vec::with_capacity(parts.len());
            for part in parts {
                if part == SymbolicValue::Opaque || part.is_undefined_result() {
                    return Ok(part);
                }
                numbers.push(self.fork_to_known(state, &part, "a computation")?);
            }
            let (bits, rows_of) = (self.specialized().scalar_bits(ty)?, numbers.len() as u32);
            rows.push((numbers, NumberShape { kind: NumberKind::Integer, bits, rows: rows_of, columns: 1 }));
        }
        let operands: Vec<Operand<'_>> =
            rows.iter().map(|(numbers, shape)| Operand { numbers, shape: *shape }).collect();
        let bits = self.specialized().scalar_bits(instruction.ty)?;
        let result = NumberShape { kind: NumberKind::Integer, bits, rows: 1, columns: 1 };
        let sum = Instruction::Core(instruction.op).compute(&operands, &[result]);
        Ok(match sum.as_deref() {
            Some([sum]) => SymbolicValue::Known(*sum),
            _ => self.undefined_result_value(instruction),
        })
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

    /// Executes a componentwise instruction.
    fn compute_elementwise(
        &mut self,
        state: &mut PathState,
        instruction: &SpirvInstruction,
        op: Op,
        operands: &[u32],
    ) -> Step<SymbolicValue> {
        let module = self.context.module();
        let first = *operands.first().ok_or_else(|| malformed(format!("Op{op:?} without operands")))?;
        let arguments = operands.iter().map(|id| self.value_of_id(state, *id)).collect::<Step<Vec<_>>>()?;
        let of = self.type_of_id(state, first)?;
        let ty = instruction.ty;
        if op == Op::Bitcast && self.specialized().size_of(of)? != self.specialized().size_of(ty)? {
            return Err(malformed("a bitcast between types of different sizes").into());
        }
        if let SpirvType::Vector { element, count } = module.type_of_id(ty)? {
            if op == Op::Bitcast
                && self.specialized().scalar_bits(of)? != self.specialized().scalar_bits(ty)?
            {
                return Ok(SymbolicValue::Composite(Rc::new(vec![SymbolicValue::Opaque; *count as usize])));
            }
            let _ = element;
            let (from, bits) = (self.specialized().scalar_bits(of)?, self.specialized().scalar_bits(ty)?);
            let mut parts = Vec::with_capacity(*count as usize);
            for index in 0..*count as usize {
                let one = arguments
                    .iter()
                    .map(|argument| match argument {
                        SymbolicValue::Known(_) | SymbolicValue::Register(_) | SymbolicValue::Truth(_) => {
                            Ok(argument.clone())
                        }
                        vector => self.extract_part(vector, index).map(|value| state.resolve_value(&value)),
                    })
                    .collect::<Step<Vec<_>>>()?;
                parts.push(self.compute_scalar(state, instruction, op, &one, from, bits)?);
            }
            return Ok(SymbolicValue::Composite(Rc::new(parts)));
        }
        if op == Op::Any || op == Op::All {
            let elements = self.vector_components(state, first)?;
            if let Some(undefined_element) = elements.iter().find(|element| element.is_undefined_result()) {
                return Ok(undefined_element.clone());
            }
            let mut all = op == Op::All;
            for element in &elements {
                let holds = self.fork_on_truth(state, element, "a truth")?;
                all = if op == Op::All { all && holds } else { all || holds };
            }
            return Ok(SymbolicValue::Known(u64::from(all)));
        }
        if !self.specialized().is_scalar(of)? || !self.specialized().is_scalar(ty)? {
            return match op {
                Op::Bitcast => Ok(SymbolicValue::Opaque),
                _ => Err(unsupported(format!("Op{op:?}")).into()),
            };
        }
        let (from, bits) = (self.specialized().scalar_bits(of)?, self.specialized().scalar_bits(ty)?);
        self.compute_scalar(state, instruction, op, &arguments, from, bits)
    }

    fn compute_scalar(
        &mut self,
        state: &mut PathState,
        instruction: &SpirvInstruction,
        op: Op,
        arguments: &[SymbolicValue],
        from: u32,
        bits: u32,
    ) -> Step<SymbolicValue> {
        let logical = matches!(
            op,
            Op::LogicalNot | Op::LogicalAnd | Op::LogicalOr | Op::LogicalEqual | Op::LogicalNotEqual
        );
        let arguments: Vec<SymbolicValue> =
            arguments.iter().map(|argument| state.resolve_value(argument)).collect();
        if let Some(undefined_argument) = arguments.iter().find(|argument| argument.is_undefined_result()) {
            let is_single_value = |argument: &&SymbolicValue| {
                known_number(argument).is_some_and(|number| is_absorbing_operand(op, number, bits))
            };
            return Ok(arguments.iter().find(is_single_value).unwrap_or(undefined_argument).clone());
        }
        if logical && arguments.iter().any(|argument| matches!(argument, SymbolicValue::Truth(_))) {
            return self.compute_logical(state, op, &arguments);
        }
        if arguments.iter().any(|argument| matches!(argument, SymbolicValue::Opaque)) {
            return Ok(SymbolicValue::Opaque);
        }
        if arguments.iter().any(|argument| matches!(argument, SymbolicValue::Pointer(_))) {
            return Err(unsupported(format!("Op{op:?} of a pointer")).into());
        }
        let mut numbers = Vec::with_capacity(arguments.len());
        for argument in &arguments {
            numbers.push(self.resolve_number(state, argument, "a computation")?);
        }
        let known: Option<Vec<u64>> = numbers
            .iter()
            .map(|number| match number {
                SymbolicNumber::Known(value) => Some(*value),
                SymbolicNumber::Register(_) => None,
            })
            .collect();
        if let Some(known) = known {
            return match fold(op, &known, from, bits) {
                Some(value) => Ok(SymbolicValue::Known(value)),
                None if can_fold(op) => Ok(self.undefined_result_value(instruction)),
                None => Err(unsupported(format!("Op{op:?}")).into()),
            };
        }
        // Registers of tests are compared as 32-bit numbers.
        let is_comparable = from <= 32 || !self.context.has_functions();
        if let Some((relation, swapped, negated)) = relation(op).filter(|_| is_comparable) {
            let (left, right) = if swapped { (numbers[1], numbers[0]) } else { (numbers[0], numbers[1]) };
            let truth = SymbolicTruth::Compare { relation, left, right, bits: from };
            return Ok(SymbolicValue::Truth(Rc::new(if negated {
                SymbolicTruth::Not(Rc::new(truth))
            } else {
                truth
            })));
        }
        let all_ones = SymbolicNumber::Known(mask(bits));
        let second = numbers.get(1).copied();
        let simple = match (op, second) {
            (Op::IAdd, Some(right)) => Some((ArithmeticOperation::Add, numbers[0], right)),
            (Op::ISub, Some(right)) => Some((ArithmeticOperation::Subtract, numbers[0], right)),
            (Op::IMul, Some(right)) => Some((ArithmeticOperation::Multiply, numbers[0], right)),
            (Op::BitwiseAnd, Some(right)) => Some((ArithmeticOperation::And, numbers[0], right)),
            (Op::BitwiseOr, Some(right)) => Some((ArithmeticOperation::Or, numbers[0], right)),
            (Op::BitwiseXor, Some(right)) => Some((ArithmeticOperation::Xor, numbers[0], right)),
            (Op::SNegate, _) => Some((ArithmeticOperation::Subtract, SymbolicNumber::Known(0), numbers[0])),
            (Op::Not, _) => Some((ArithmeticOperation::Xor, numbers[0], all_ones)),
            (Op::ShiftLeftLogical, Some(SymbolicNumber::Known(shift))) if shift < 32 => {
                Some((ArithmeticOperation::Multiply, numbers[0], SymbolicNumber::Known(1 << shift)))
            }
            _ => None,
        };
        match simple {
            Some((operation, left, right)) if bits <= 32 && from <= 32 => {
                let result = self.compute_number(state, operation, left, right)?;
                match result {
                    SymbolicValue::Register(register) if bits < 32 => self.compute_number(
                        state,
                        ArithmeticOperation::And,
                        SymbolicNumber::Register(register),
                        all_ones,
                    ),
                    other => Ok(other),
                }
            }
            None if matches!(op, Op::UConvert | Op::Bitcast) && bits >= from => Ok(arguments[0].clone()),
            None if op == Op::UConvert && from <= 32 => {
                self.compute_number(state, ArithmeticOperation::And, numbers[0], all_ones)
            }
            _ if self.context.has_functions() => {
                let code =
                    FunctionCode { instruction: Instruction::Core(op), component: 0, bits: [from, bits] };
                self.apply_to_numbers(state, code, &arguments)
            }
            _ => {
                // An operation without a litmus equivalent is computed for each value of its operands.
                for argument in &arguments {
                    self.fork_to_known(state, argument, &format!("Op{op:?}"))?;
                }
                Err(unsupported(format!("Op{op:?}")).into())
            }
        }
    }

    pub(crate) fn undefined_result_value(&self, instruction: &SpirvInstruction) -> SymbolicValue {
        SymbolicValue::Undefined(UndefOrigin::UndefinedResult(instruction.result, self.thread))
    }

    fn compute_logical(
        &mut self,
        state: &mut PathState,
        op: Op,
        arguments: &[SymbolicValue],
    ) -> Step<SymbolicValue> {
        let mut truths = Vec::new();
        for argument in arguments {
            truths.push(match argument {
                SymbolicValue::Truth(truth) => truth.clone(),
                SymbolicValue::Opaque => return Ok(SymbolicValue::Opaque),
                other => Rc::new(SymbolicTruth::Known(self.fork_on_truth(state, other, "a truth")?)),
            });
        }
        let not = |truth: &Rc<SymbolicTruth>| Rc::new(SymbolicTruth::Not(truth.clone()));
        let truth = match (op, &truths[..]) {
            (Op::LogicalNot, [inner]) => SymbolicTruth::Not(inner.clone()),
            (Op::LogicalAnd, [left, right]) => SymbolicTruth::And(left.clone(), right.clone()),
            (Op::LogicalOr, [left, right]) => {
                SymbolicTruth::Not(Rc::new(SymbolicTruth::And(not(left), not(right))))
            }
            (Op::LogicalEqual, [left, right]) => SymbolicTruth::Equal(left.clone(), right.clone()),
            (Op::LogicalNotEqual, [left, right]) => SymbolicTruth::Equal(left.clone(), not(right)),
            _ => return Err(malformed(format!("Op{op:?} with these operands")).into()),
        };
        Ok(state.resolve_value(&SymbolicValue::Truth(Rc::new(truth))))
    }

    /// Executes a computation of `GLSL.std.450`.
    fn compute_extended(
        &mut self,
        state: &mut PathState,
        instruction: &SpirvInstruction,
        op: GlslStd450Op,
        operands: &[u32],
    ) -> Step<SymbolicValue> {
        let (module, ty) = (self.context.module(), instruction.ty);
        let integer = match module.type_of_id(ty)? {
            SpirvType::Vector { element, .. } => {
                matches!(module.type_of_id(*element)?, SpirvType::Integer { .. })
            }
            other => matches!(other, SpirvType::Integer { .. }),
        };
        if !integer || self.context.has_functions() && !self.has_known_operands(state, operands)? {
            return self.apply_function(state, instruction, operands);
        }
        let bits = self.specialized().scalar_bits(ty)?;
        let arguments = operands.iter().map(|id| self.value_of_id(state, *id)).collect::<Step<Vec<_>>>()?;
        let count = match module.type_of_id(ty)? {
            SpirvType::Vector { count, .. } => Some(*count as usize),
            _ => None,
        };
        let mut results = Vec::new();
        for index in 0..count.unwrap_or(1) {
            let mut numbers = Vec::new();
            let (mut opaque, mut lacking) = (false, None);
            for argument in &arguments {
                let one =
                    if count.is_some() { self.extract_part(argument, index)? } else { argument.clone() };
                if one.is_undefined_result() {
                    lacking = Some(one);
                } else if matches!(state.resolve_value(&one), SymbolicValue::Opaque) {
                    opaque = true;
                } else {
                    numbers.push(self.fork_to_known(state, &one, &format!("{op:?}"))?);
                }
            }
            results.push(if let Some(undefined_argument) = lacking {
                undefined_argument
            } else if opaque {
                SymbolicValue::Opaque
            } else {
                let folded = fold_extended(op, &numbers, bits, bits);
                SymbolicValue::Known(folded.ok_or_else(|| unsupported(format!("{op:?}")))?)
            });
        }
        Ok(match count {
            Some(_) => SymbolicValue::Composite(Rc::new(results)),
            None => results.pop().unwrap_or(SymbolicValue::Opaque),
        })
    }
}
