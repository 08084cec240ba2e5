//! Execution of single instructions: memory, atomics and computations.
//!
//! Long because every instruction has an arm in one match.

use std::rc::Rc;

use arithmetic::{Kind, NumberShape, Operand, decides, fold, fold_extended, folds, mask, values_of};
use litmus::{ArithmeticOperation, InterlockEnd};
use rspirv::spirv::{GlslStd450Op, Op, StorageClass};
use spirv_reader::{SpirvInstruction, SpirvType, opcode::is_atomic};

use crate::access::AccessFlags;
use crate::emit;
use crate::error::{malformed, unsupported};
use crate::layout::known_number;
use crate::order::{MemoryOperands, scope_from_number, semantics_from_number};
use crate::relation::relation;
use crate::stage;
use crate::state::PathState;
use crate::value::{ObjectId, SymbolicNumber, SymbolicPointer, SymbolicTruth, SymbolicValue, UndefOrigin};
use crate::walk::{Step, Walk};

impl Walk<'_> {
    /// Returns the value of an id.
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
        let module = self.setting.module();
        if let Some(variable) = module.variables.get(&id) {
            let decorations = module.decorations_of(id);
            let object = ObjectId {
                variable: self.setting.canonical_variable(id),
                instance: match variable.class {
                    StorageClass::Workgroup => u64::from(self.identity.workgroup_index),
                    _ => 0,
                },
            };
            let coherent = decorations.coherent || decorations.volatile;
            return Ok(SymbolicValue::Pointer(SymbolicPointer {
                object,
                offset: 0,
                ty: variable.ty,
                stride: None,
                coherent,
            }));
        }
        Err(malformed(format!("{} has no value here", module.display_name(id))).into())
    }

    pub(crate) fn operand_value(
        &mut self,
        state: &PathState,
        instruction: &SpirvInstruction,
        index: usize,
    ) -> Step<SymbolicValue> {
        let id = self.setting.module().operand_at(instruction, index)?;
        self.value_of_id(state, id)
    }

    /// Returns the type of an operand.
    pub(crate) fn type_of_operand(
        &self,
        state: &PathState,
        instruction: &SpirvInstruction,
        index: usize,
    ) -> Step<u32> {
        let module = self.setting.module();
        let id = module.operand_at(instruction, index)?;
        if let Some((ty, _)) = module.constants.get(&id) {
            return Ok(*ty);
        }
        let function = state.frames.last().map_or(0, |frame| frame.function);
        let ty = self.setting.result_type(function, id);
        ty.ok_or_else(|| malformed(format!("{} has no type here", module.display_name(id))).into())
    }

    /// Executes an instruction other than control flow.
    pub(crate) fn execute_instruction(
        &mut self,
        state: &mut PathState,
        instruction: &SpirvInstruction,
    ) -> Step<SymbolicValue> {
        let module = self.setting.module();
        let operands = module.operands_of(instruction).to_vec();
        match instruction.op {
            Op::Load => {
                let pointer = self.operand_pointer(state, instruction, 0)?;
                let way = AccessFlags {
                    operands: MemoryOperands::parse(operands.get(1..).unwrap_or_default()),
                    coherent: pointer.coherent,
                };
                self.load_value(state, pointer, instruction.ty, way)
            }
            Op::Store => {
                let pointer = self.operand_pointer(state, instruction, 0)?;
                let value = self.operand_value(state, instruction, 1)?;
                let way = AccessFlags {
                    operands: MemoryOperands::parse(operands.get(2..).unwrap_or_default()),
                    coherent: pointer.coherent,
                };
                self.store_value(state, pointer, pointer.ty, &value, way)?;
                Ok(SymbolicValue::Opaque)
            }
            Op::CopyMemory => {
                let to = self.operand_pointer(state, instruction, 0)?;
                let from = self.operand_pointer(state, instruction, 1)?;
                let operands = MemoryOperands::parse(operands.get(2..).unwrap_or_default());
                let value =
                    self.load_value(state, from, from.ty, AccessFlags { operands, coherent: from.coherent })?;
                self.store_value(state, to, to.ty, &value, AccessFlags { operands, coherent: to.coherent })?;
                Ok(SymbolicValue::Opaque)
            }
            Op::ImageRead | Op::ImageWrite | Op::ImageTexelPointer => self.access_texel(state, instruction),
            Op::AccessChain | Op::InBoundsAccessChain => self.access_chain(state, instruction, 1),
            Op::PtrAccessChain | Op::InBoundsPtrAccessChain => self.access_chain(state, instruction, 2),
            Op::PtrEqual | Op::PtrNotEqual | Op::PtrDiff => self.compare_pointers(state, instruction),
            Op::ArrayLength => {
                let pointer = self.operand_pointer(state, instruction, 0)?;
                let member = u64::from(*operands.get(1).ok_or_else(|| malformed("no member"))?);
                let at = self.specialized().part_of(pointer.ty, member)?;
                let stride = self.specialized().part_of(at.ty, 0)?.stride.unwrap_or(1);
                let start = pointer.offset.wrapping_add(at.offset);
                Ok(SymbolicValue::Known(self.setting.array_length(pointer.object, start, stride)))
            }
            Op::CompositeConstruct => {
                let mut parts = Vec::new();
                let vector = matches!(module.type_of_id(instruction.ty)?, SpirvType::Vector { .. });
                for index in 0..operands.len() {
                    let value = self.operand_value(state, instruction, index)?;
                    match value {
                        SymbolicValue::Composite(inner) if vector => parts.extend(inner.iter().cloned()),
                        other => parts.push(other),
                    }
                }
                Ok(SymbolicValue::Composite(Rc::new(parts)))
            }
            Op::CompositeExtract => {
                let mut value = self.operand_value(state, instruction, 0)?;
                for index in operands.get(1..).unwrap_or_default() {
                    value = self.extract_part(&value, *index as usize)?;
                }
                Ok(state.resolve_value(&value))
            }
            Op::CompositeInsert => {
                let object = self.operand_value(state, instruction, 0)?;
                let composite = self.operand_value(state, instruction, 1)?;
                let path = operands.get(2..).unwrap_or_default();
                self.insert_component(&composite, instruction.ty, path, object)
            }
            Op::VectorShuffle => {
                let first = self.vector_components(state, instruction, 0)?;
                let second = self.vector_components(state, instruction, 1)?;
                let place = UndefOrigin::Instruction(instruction.result, self.thread);
                let parts = operands.get(2..).unwrap_or_default().iter().map(|index| {
                    let index = *index as usize;
                    let value =
                        if index < first.len() { first.get(index) } else { second.get(index - first.len()) };
                    value.cloned().unwrap_or(SymbolicValue::Undefined(place))
                });
                Ok(SymbolicValue::Composite(Rc::new(parts.collect())))
            }
            Op::VectorExtractDynamic => {
                let vector = self.operand_value(state, instruction, 0)?;
                let index = self.operand_value(state, instruction, 1)?;
                let index = self.fork_to_known(state, &index, "an index")?;
                let ty = self.type_of_operand(state, instruction, 0)?;
                if index >= self.specialized().part_count(ty)? as u64 {
                    return Ok(self.undefined_result_value(instruction));
                }
                let value = self.extract_part(&vector, index as usize)?;
                Ok(state.resolve_value(&value))
            }
            Op::VectorInsertDynamic => {
                let vector = self.operand_value(state, instruction, 0)?;
                let object = self.operand_value(state, instruction, 1)?;
                let index = self.operand_value(state, instruction, 2)?;
                let index = self.fork_to_known(state, &index, "an index")?;
                if index >= self.specialized().part_count(instruction.ty)? as u64 {
                    return Ok(self.undefined_result_value(instruction));
                }
                self.insert_component(&vector, instruction.ty, &[index as u32], object)
            }
            Op::CopyObject | Op::CopyLogical => self.operand_value(state, instruction, 0),
            Op::Undef => {
                Ok(SymbolicValue::Undefined(UndefOrigin::Instruction(instruction.result, self.thread)))
            }
            Op::Select => self.select_value(state, instruction),
            Op::IAddCarry | Op::ISubBorrow | Op::UMulExtended | Op::SMulExtended => {
                self.compute_wide_pair(state, instruction)
            }
            Op::SDot | Op::UDot | Op::SUDot | Op::SDotAccSat | Op::UDotAccSat | Op::SUDotAccSat => {
                self.dot_product(state, instruction)
            }
            Op::MemoryBarrier => {
                let value = self.operand_value(state, instruction, 0)?;
                let at = self.fork_to_known(state, &value, "a scope")?;
                let value = self.operand_value(state, instruction, 1)?;
                let order = semantics_from_number(self.fork_to_known(state, &value, "semantics")?)?;
                if order.order != litmus::Order::Relaxed {
                    self.emit_instruction(emit::memory_barrier(
                        scope_from_number(at, module.vulkan)?,
                        order,
                    ))?;
                }
                Ok(SymbolicValue::Opaque)
            }
            Op::ControlBarrierArriveINTEL | Op::ControlBarrierWaitINTEL => {
                self.execute_split_barrier(state, instruction)?;
                Ok(SymbolicValue::Opaque)
            }
            Op::BeginInvocationInterlockEXT => {
                self.execute_interlock(state, InterlockEnd::Begin)?;
                Ok(SymbolicValue::Opaque)
            }
            Op::EndInvocationInterlockEXT => {
                self.execute_interlock(state, InterlockEnd::End)?;
                Ok(SymbolicValue::Opaque)
            }
            Op::ExtInst => self.execute_extended(state, instruction),
            op if is_atomic(op) => self.execute_atomic(state, instruction),
            op if is_group(op) => Ok(SymbolicValue::Opaque),
            Op::IsHelperInvocationEXT => Ok(SymbolicValue::Known(0)),
            Op::ConvertFToS | Op::ConvertFToU => self.compute_reduction(state, instruction),
            Op::ReadClockKHR => Ok(SymbolicValue::Opaque),
            op if stage::is_derivative(op) => Ok(SymbolicValue::Opaque),
            op if is_float(op) => Ok(SymbolicValue::Opaque),
            op => self.compute_elementwise(state, instruction, op),
        }
    }

    /// Truncates a known 32-bit float to an integer, such as a pixel coordinate.
    fn compute_reduction(
        &mut self,
        state: &PathState,
        instruction: &SpirvInstruction,
    ) -> Step<SymbolicValue> {
        let (of, ty) = (self.type_of_operand(state, instruction, 0)?, instruction.ty);
        if self.specialized().scalar_bits(of)? != 32 || self.specialized().scalar_bits(ty)? != 32 {
            return Ok(SymbolicValue::Opaque);
        }
        let convert = |value: &SymbolicValue| match state.resolve_value(value) {
            SymbolicValue::Known(bits) => {
                let float = f32::from_bits(bits as u32);
                let whole =
                    if instruction.op == Op::ConvertFToS { float as i32 as u32 } else { float as u32 };
                SymbolicValue::Known(whole.into())
            }
            _ => SymbolicValue::Opaque,
        };
        match self.operand_value(state, instruction, 0)? {
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
    ) -> Step<SymbolicValue> {
        let ty = self.type_of_operand(state, instruction, 0)?;
        let (bits, scalar) = (self.specialized().scalar_bits(ty)?, self.specialized().is_scalar(ty)?);
        let shape = NumberShape { kind: Kind::Integer, bits, rows: 1, columns: 1 };
        let pair = |walk: &mut Self,
                    state: &mut PathState,
                    left: &SymbolicValue,
                    right: &SymbolicValue|
         -> Step<[SymbolicValue; 2]> {
            if let Some(lacking) = [left, right].into_iter().find(|side| side.is_undefined_result()) {
                return Ok([lacking.clone(), lacking.clone()]);
            }
            if [left, right].iter().any(|side| matches!(state.resolve_value(side), SymbolicValue::Opaque)) {
                return Ok([SymbolicValue::Opaque, SymbolicValue::Opaque]);
            }
            let left = [walk.fork_to_known(state, left, "a computation")?];
            let right = [walk.fork_to_known(state, right, "a computation")?];
            let operands = [&left, &right].map(|numbers| Operand { numbers, shape });
            let halves = arithmetic::Instruction::Core(instruction.op).compute(&operands, &[shape, shape]);
            let halves = halves.and_then(|halves| <[u64; 2]>::try_from(halves).ok());
            let halves = halves.ok_or_else(|| unsupported(format!("Op{:?}", instruction.op)))?;
            Ok(halves.map(SymbolicValue::Known))
        };
        if scalar {
            let (left, right) =
                (self.operand_value(state, instruction, 0)?, self.operand_value(state, instruction, 1)?);
            return Ok(SymbolicValue::Composite(Rc::new(pair(self, state, &left, &right)?.to_vec())));
        }
        let (left, right) =
            (self.vector_components(state, instruction, 0)?, self.vector_components(state, instruction, 1)?);
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
    fn dot_product(&mut self, state: &mut PathState, instruction: &SpirvInstruction) -> Step<SymbolicValue> {
        let count = values_of(instruction.op, self.setting.module().operands_of(instruction).len());
        let mut rows = Vec::with_capacity(count);
        for index in 0..count {
            let ty = self.type_of_operand(state, instruction, index)?;
            let parts = match self.specialized().is_scalar(ty)? {
                true => vec![self.operand_value(state, instruction, index)?],
                false => self.vector_components(state, instruction, index)?,
            };
            let mut numbers = Vec::with_capacity(parts.len());
            for part in parts {
                if part == SymbolicValue::Opaque || part.is_undefined_result() {
                    return Ok(part);
                }
                numbers.push(self.fork_to_known(state, &part, "a computation")?);
            }
            let (bits, rows_of) = (self.specialized().scalar_bits(ty)?, numbers.len() as u32);
            rows.push((numbers, NumberShape { kind: Kind::Integer, bits, rows: rows_of, columns: 1 }));
        }
        let operands: Vec<Operand<'_>> =
            rows.iter().map(|(numbers, shape)| Operand { numbers, shape: *shape }).collect();
        let bits = self.specialized().scalar_bits(instruction.ty)?;
        let result = NumberShape { kind: Kind::Integer, bits, rows: 1, columns: 1 };
        let sum = arithmetic::Instruction::Core(instruction.op).compute(&operands, &[result]);
        Ok(match sum.as_deref() {
            Some([sum]) => SymbolicValue::Known(*sum),
            _ => self.undefined_result_value(instruction),
        })
    }

    fn vector_components(
        &mut self,
        state: &PathState,
        instruction: &SpirvInstruction,
        index: usize,
    ) -> Step<Vec<SymbolicValue>> {
        let ty = self.type_of_operand(state, instruction, index)?;
        let count = self.specialized().part_count(ty)?;
        let value = self.operand_value(state, instruction, index)?;
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

    fn select_value(&mut self, state: &mut PathState, instruction: &SpirvInstruction) -> Step<SymbolicValue> {
        let condition = self.operand_value(state, instruction, 0)?;
        let yes = self.operand_value(state, instruction, 1)?;
        let no = self.operand_value(state, instruction, 2)?;
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
    ) -> Step<SymbolicValue> {
        let module = self.setting.module();
        let count = module.operands_of(instruction).len();
        if count == 0 || instruction.result == 0 || !is_computation(op) {
            return Err(unsupported(format!("Op{op:?}")).into());
        }
        let arguments = (0..count)
            .map(|index| self.operand_value(state, instruction, index))
            .collect::<Step<Vec<_>>>()?;
        let of = self.type_of_operand(state, instruction, 0)?;
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
            let elements = self.vector_components(state, instruction, 0)?;
            if let Some(lacking) = elements.iter().find(|element| element.is_undefined_result()) {
                return Ok(lacking.clone());
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
        if let Some(lacking) = arguments.iter().find(|argument| argument.is_undefined_result()) {
            let alone = |argument: &&SymbolicValue| {
                known_number(argument).is_some_and(|number| decides(op, number, bits))
            };
            return Ok(arguments.iter().find(alone).unwrap_or(lacking).clone());
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
                None if folds(op) => Ok(self.undefined_result_value(instruction)),
                None => Err(unsupported(format!("Op{op:?}")).into()),
            };
        }
        if let Some((relation, swapped, negated)) = relation(op) {
            let (left, right) = if swapped { (numbers[1], numbers[0]) } else { (numbers[0], numbers[1]) };
            let truth = SymbolicTruth::Compare { relation, left, right, bits: from };
            return Ok(SymbolicValue::Truth(Rc::new(if negated {
                SymbolicTruth::Not(Rc::new(truth))
            } else {
                truth
            })));
        }
        let whole = SymbolicNumber::Known(mask(bits));
        let second = numbers.get(1).copied();
        let simple = match (op, second) {
            (Op::IAdd, Some(right)) => Some((ArithmeticOperation::Add, numbers[0], right)),
            (Op::ISub, Some(right)) => Some((ArithmeticOperation::Subtract, numbers[0], right)),
            (Op::IMul, Some(right)) => Some((ArithmeticOperation::Multiply, numbers[0], right)),
            (Op::BitwiseAnd, Some(right)) => Some((ArithmeticOperation::And, numbers[0], right)),
            (Op::BitwiseOr, Some(right)) => Some((ArithmeticOperation::Or, numbers[0], right)),
            (Op::BitwiseXor, Some(right)) => Some((ArithmeticOperation::Xor, numbers[0], right)),
            (Op::SNegate, _) => Some((ArithmeticOperation::Subtract, SymbolicNumber::Known(0), numbers[0])),
            (Op::Not, _) => Some((ArithmeticOperation::Xor, numbers[0], whole)),
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
                        whole,
                    ),
                    other => Ok(other),
                }
            }
            None if matches!(op, Op::UConvert | Op::Bitcast) && bits >= from => Ok(arguments[0].clone()),
            None if op == Op::UConvert && from <= 32 => {
                self.compute_number(state, ArithmeticOperation::And, numbers[0], whole)
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

    /// Returns the undefined result of an instruction.
    pub(crate) fn undefined_result_value(&self, instruction: &SpirvInstruction) -> SymbolicValue {
        SymbolicValue::Undefined(UndefOrigin::Lacking(instruction.result, self.thread))
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
            (Op::LogicalEqual, [left, right]) => SymbolicTruth::Same(left.clone(), right.clone()),
            (Op::LogicalNotEqual, [left, right]) => SymbolicTruth::Same(left.clone(), not(right)),
            _ => return Err(malformed(format!("Op{op:?} with these operands")).into()),
        };
        Ok(state.resolve_value(&SymbolicValue::Truth(Rc::new(truth))))
    }

    fn execute_extended(
        &mut self,
        state: &mut PathState,
        instruction: &SpirvInstruction,
    ) -> Step<SymbolicValue> {
        let module = self.setting.module();
        let operands = module.operands_of(instruction);
        let set = operands.first().and_then(|set| module.extended.get(set)).map_or("", String::as_str);
        if set.starts_with("NonSemantic.") || set.ends_with("DebugInfo.100") {
            return Ok(SymbolicValue::Opaque);
        }
        let number = module.operand_at(instruction, 1)?;
        if set != "GLSL.std.450" {
            return Err(unsupported(format!("instruction {number} of `{set}`")).into());
        }
        let op = GlslStd450Op::from_u32(number)
            .ok_or_else(|| unsupported(format!("instruction {number} of GLSL.std.450")))?;
        let ty = instruction.ty;
        // The value stored through the pointer is a float, too.
        if matches!(op, GlslStd450Op::Modf | GlslStd450Op::Frexp) {
            let pointer = self.operand_pointer(state, instruction, 3)?;
            let way = AccessFlags { operands: MemoryOperands::default(), coherent: pointer.coherent };
            self.store_value(state, pointer, pointer.ty, &SymbolicValue::Opaque, way)?;
            return Ok(SymbolicValue::Opaque);
        }
        let integer = match module.type_of_id(ty)? {
            SpirvType::Vector { element, .. } => {
                matches!(module.type_of_id(*element)?, SpirvType::Integer { .. })
            }
            other => matches!(other, SpirvType::Integer { .. }),
        };
        if !integer {
            return Ok(SymbolicValue::Opaque);
        }
        let bits = self.specialized().scalar_bits(ty)?;
        let arguments = (2..operands.len())
            .map(|at| self.operand_value(state, instruction, at))
            .collect::<Step<Vec<_>>>()?;
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
            results.push(if let Some(lacking) = lacking {
                lacking
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

/// Returns true for arithmetic instructions.
fn is_computation(op: Op) -> bool {
    folds(op) || matches!(op, Op::Any | Op::All)
}

/// Returns true for subgroup operations, whose results are opaque; they order nothing.
fn is_group(op: Op) -> bool {
    format!("{op:?}").starts_with("GroupNonUniform")
}

/// Returns true for float operations, whose results are opaque.
fn is_float(op: Op) -> bool {
    matches!(
        op,
        Op::FAdd
            | Op::FSub
            | Op::FMul
            | Op::FDiv
            | Op::FRem
            | Op::FMod
            | Op::FNegate
            | Op::FConvert
            | Op::QuantizeToF16
            | Op::ConvertFToS
            | Op::ConvertFToU
            | Op::ConvertSToF
            | Op::ConvertUToF
            | Op::Dot
            | Op::VectorTimesScalar
            | Op::MatrixTimesScalar
            | Op::VectorTimesMatrix
            | Op::MatrixTimesVector
            | Op::MatrixTimesMatrix
            | Op::OuterProduct
            | Op::Transpose
            | Op::IsNan
            | Op::IsInf
            | Op::FOrdEqual
            | Op::FUnordEqual
            | Op::FOrdNotEqual
            | Op::FUnordNotEqual
            | Op::FOrdLessThan
            | Op::FUnordLessThan
            | Op::FOrdGreaterThan
            | Op::FUnordGreaterThan
            | Op::FOrdLessThanEqual
            | Op::FUnordLessThanEqual
            | Op::FOrdGreaterThanEqual
            | Op::FUnordGreaterThanEqual
    )
}
